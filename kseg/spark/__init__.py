"""Segments as a data source of Spark, and exports by Spark's executors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Makes `spark.read.format("kseg")` known to a session; where kseg is installed, Spark finds it by itself."""
    from pyspark.errors import AnalysisException

    from kseg.spark.source import KsegSource

    try:
        spark.dataSource.register(KsegSource)
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):  # pyspark 4.0 refuses what it has found by itself
            raise
