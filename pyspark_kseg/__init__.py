"""The package in which Spark looks for kseg's data source."""

from kseg.spark.data_source import KsegSource as DefaultSource

__all__ = ["DefaultSource"]
