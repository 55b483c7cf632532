"""Partitions and log directories as a whole: segments by offset, lookup, listing."""
