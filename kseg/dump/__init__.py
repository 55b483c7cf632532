"""Prints Kafka's files like Kafka's own tool, one module for each kind of file; and messages of its protocol."""
