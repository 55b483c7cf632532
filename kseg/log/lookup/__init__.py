"""Finds the record at an offset or a time, and how it was found."""
