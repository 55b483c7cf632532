"""Partitions to Parquet files: a plan of work orders, their execution, the manifest that commits, the report."""
