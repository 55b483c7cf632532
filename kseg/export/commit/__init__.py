"""Commits of exports: manifests, Delta, Iceberg."""
