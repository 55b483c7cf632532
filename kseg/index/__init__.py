"""Index files of a segment: reading, searching, Kafka's checks, and rebuilding them from the log."""
