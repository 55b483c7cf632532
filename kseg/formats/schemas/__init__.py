"""Kafka's message schemas as tables: names, types and version ranges, written by `tools/read_schemas.py`."""
