"""Intact batches of damaged partitions, copied in the longest row whose offsets rise."""
