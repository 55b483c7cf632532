"""Lineage of exports as OpenLineage events: names of datasets, events, and the places that get them."""
