"""Replica ids in requests: a broker's own, or what those have who are none."""

CONSUMER = -1
"""Whoever isn't a broker; larger ones are brokers."""
DEBUGGING_CONSUMER = -2
"""A consumer that wants to see everything."""
