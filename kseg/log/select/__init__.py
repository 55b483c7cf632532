"""What a selection takes of a partition's logs, batch by batch."""
