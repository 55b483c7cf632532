"""Kafka's protocol: requests and responses from captures, frames and hex text, parsed with Kafka's own schemas."""
