"""Tiered storage: remote objects as the files of a segment, read by ranges."""
