"""Explanations of bytes, field by field."""
