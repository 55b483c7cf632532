"""Decoders: what the bytes of keys, values and control records mean."""
