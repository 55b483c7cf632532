"""Findings, and their kinds."""
