"""Records read for work orders, and accounts of their offsets."""
