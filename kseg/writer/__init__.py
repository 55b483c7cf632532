"""Records and batches to bytes."""
