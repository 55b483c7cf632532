"""SQL over logs, by DuckDB: a view for each topic, and for what else kseg knows of the directories."""
