"""Grammars for Kafka's files, with each field and its meaning declared once."""
