"""Grammars of Kafka's files: every field once, with its meaning."""
