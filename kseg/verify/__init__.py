"""Checks of partitions and directories."""
