"""Compacts a partition as the log cleaner would."""
