"""Partitions: segments by offset, lookup, listing, transactions, cleaning."""
