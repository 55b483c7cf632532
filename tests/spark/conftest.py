"""A session of Spark in this process, for a module's tests."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> "Iterator[SparkSession]":
    """local[2], with the data source registered."""
    from pyspark.sql import SparkSession

    from kseg.spark import register
    from kseg.spark.session import open_context

    with open_context("local[2]", {"spark.driver.memory": "1g"}) as context:
        session = SparkSession(context)
        register(session)
        yield session
