"""Restores of topics and groups from disks into a running cluster."""
