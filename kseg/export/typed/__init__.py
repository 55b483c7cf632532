"""Typed columns: what a schema says of keys and values, as columns of a table."""
