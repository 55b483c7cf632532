"""Where Spark finds kseg's data source by itself."""

from kseg.spark.data_source import KsegSource as DefaultSource

__all__ = ["DefaultSource"]
