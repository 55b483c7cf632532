"""Kafka's files as places that one can walk in: topics, partitions, segments, batches, records, fields, bytes."""
