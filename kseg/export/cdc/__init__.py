"""Changes of database rows, as Debezium writes them, and the tables that they make."""
