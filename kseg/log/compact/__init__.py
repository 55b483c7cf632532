"""What the log cleaner would leave of a partition."""
