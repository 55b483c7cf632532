"""Check-ups of a broker's directories."""
