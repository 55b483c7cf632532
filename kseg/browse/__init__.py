"""Kafka's files as places to walk through: topics, partitions, segments, batches, records, fields, bytes."""
