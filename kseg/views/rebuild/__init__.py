"""Rebuilds a lost quorum of controllers from a broker's copy of `__cluster_metadata`."""
