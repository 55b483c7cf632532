"""Logging in by SASL: users, mechanisms, and a connection's way to be let in."""
