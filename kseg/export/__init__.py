"""Export of partitions to Parquet files: plan, execution of work orders, commit, report."""
