"""Columns and sentences that commands print."""
