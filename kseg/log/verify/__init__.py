"""Checks of partitions and disks, and what they find."""
