"""Partitions and log directories: their segments, and what lies beside them."""
