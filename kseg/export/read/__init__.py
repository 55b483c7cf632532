"""Reading of records for work orders, and accounts of their offsets."""
