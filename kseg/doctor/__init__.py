"""Check-ups of the directories of a broker."""
