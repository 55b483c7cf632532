"""Kafka's protocol: requests and responses out of captures, frames and hex text, read by Kafka's own schemas."""
