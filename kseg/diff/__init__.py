"""Comparisons of copies of partitions."""
