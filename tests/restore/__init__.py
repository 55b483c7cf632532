"""Restores, without a broker."""
