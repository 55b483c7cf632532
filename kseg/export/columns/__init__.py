"""Typed columns of exports, by the schemas of values."""
