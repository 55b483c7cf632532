"""Environments of Spark's tests: a session in this process, and a cluster on this machine."""

from typing import TYPE_CHECKING

import pytest

from tests.spark.standalone import Cluster, standalone_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> "Iterator[SparkSession]":
    """Yield local[2], with the data source registered."""
    from pyspark.sql import SparkSession

    from kseg.spark.data_source import register
    from kseg.spark.job import open_context

    with open_context("local[2]", {"spark.driver.memory": "1g"}) as context:
        session = SparkSession(context)
        register(session)
        yield session


@pytest.fixture
def cluster(tmp_path: "Path") -> "Iterator[Cluster]":
    """Yield a standalone cluster of two workers."""
    with standalone_cluster(tmp_path) as made:
        yield made
