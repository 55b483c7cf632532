"""What internal topics add up to: groups, members, transactions."""
