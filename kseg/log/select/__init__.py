"""The batches and records of a partition that match a selection."""
