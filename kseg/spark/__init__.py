"""Segments as a data source of Spark, and exports by Spark's executors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Makes `spark.read.format("kseg")` known to a session; where kseg is installed, Spark finds it by itself."""
    from kseg.spark.source import KsegSource

    spark.dataSource.register(KsegSource)
