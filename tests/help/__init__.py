"""Tests of docs/help and docs/reference against the program."""
