"""The state in internal topics: groups, members, transactions."""
