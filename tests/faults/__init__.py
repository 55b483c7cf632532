"""Faults that tests must catch: one patch each, and the program that tries them."""
