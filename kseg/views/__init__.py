"""What internal topics and transactions add up to: groups, transactions, a cluster's metadata."""
