"""Queries by SQL."""
