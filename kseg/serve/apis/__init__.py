"""The APIs that the server answers, one module per group of them, and their table."""
