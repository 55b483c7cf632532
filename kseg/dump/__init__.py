"""Prints Kafka's files as its own tool does, one module for each kind of file; and messages of its protocol."""
