"""Bytes explained field by field."""
