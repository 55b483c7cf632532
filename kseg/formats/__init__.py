"""Grammars of Kafka's files, with each field and its meaning declared once."""
