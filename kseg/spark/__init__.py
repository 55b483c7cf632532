"""Segments as a data source of Spark, and exports by Spark's executors."""
