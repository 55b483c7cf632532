"""Compression and decompression of batches' bodies, one module per codec, and their limits."""
