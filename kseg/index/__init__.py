"""Index files beside a segment: reading, searching, Kafka's checks, and rebuilding them from the log."""
