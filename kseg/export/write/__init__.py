"""Files that exports write."""
