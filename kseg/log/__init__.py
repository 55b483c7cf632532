"""Partitions and log directories: segments by offset, lookup, listing."""
