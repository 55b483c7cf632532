"""Checks of partitions and disks."""
