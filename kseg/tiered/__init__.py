"""Tiered storage: remote objects as a segment's files, read by ranges."""
