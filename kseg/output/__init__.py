"""Forms of output: JSON, CSV, tables; the columns of batches and records."""
