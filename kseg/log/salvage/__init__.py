"""Saves intact batches of damaged partitions, in the longest sequence with increasing offsets."""
