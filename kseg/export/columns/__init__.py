"""Typed columns of exports, from the schemas of values."""
