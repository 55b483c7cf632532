"""Copies of partitions compared: where they differ, what only one has, what a leader would have the others truncate."""
