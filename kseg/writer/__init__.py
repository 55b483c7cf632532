"""Builders of records and batches as bytes."""
