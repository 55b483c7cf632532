"""Disk usage as a page that anybody can open: verdicts first, then pictures, then tables."""
