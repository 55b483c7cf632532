"""Partitions and log directories: their segments, and the files next to them."""
