"""Tests of what docs/help and docs/reference must have of the program."""
