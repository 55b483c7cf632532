"""Decoders of keys, values and control records."""
