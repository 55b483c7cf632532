"""Kafka's protocol: requests and responses from captures, frames and hex text, read with Kafka's own schemas."""
