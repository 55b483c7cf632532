"""Segments as a data source of Spark, and exports by Spark's executors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: "SparkSession") -> None:
    """Makes `spark.read.format("kseg")` known to a session, and lets Spark offer its filters to sources in Python.

    Where kseg is installed, Spark finds it by itself, but offers no filters unless its configuration says so.
    """
    from pyspark.errors import AnalysisException

    from kseg.spark.source import KsegSource

    try:
        spark.dataSource.register(KsegSource)
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):  # pyspark 4.0 refuses what it has found by itself
            raise
    if not spark.conf.get(_PUSHDOWN, None):
        spark.conf.set(_PUSHDOWN, "true")
