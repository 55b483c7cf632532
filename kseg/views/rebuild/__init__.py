"""A quorum of controllers that is lost, begun anew from a broker's copy of `__cluster_metadata`."""
