"""Typed columns that Spark's executors write without a registry, and that Spark reads with all their fields."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kseg.export.commit.order import Job
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import ColumnDecoding, DecodedAs, LogSelection, ReadOptions
from kseg.log.selection import PartitionChoice
from tests.export.typed_logs import TypedLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
NEW = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}},
        {"name": "either", "type": ["null", "int", "string"], "default": None},
    ],
}


def export(spark: "SparkSession", logs: TypedLogs, out: Path) -> None:
    """Export by Spark; the registry is deleted before executors begin."""
    from kseg.spark.job import by_context

    registry = logs.registry()
    run = by_context(spark.sparkContext, 2)

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
        shutil.rmtree(registry)
        return run(orders, job)

    decode = ColumnDecoding(value="avro", registry=str(registry), decoded_as=DecodedAs.TYPED)
    selection = LogSelection(partitions=PartitionChoice(("orders",)))
    report = run_export(Export((str(logs.directory),), str(out), selection, ReadOptions(decode=decode)), execute)
    assert (report.is_whole, report.partitions[0].undecoded) == (True, 0)


def test_a_table_that_grew_is_read_as_one(spark: "SparkSession", tmp_path: Path) -> None:
    logs, out = TypedLogs(tmp_path / "logs"), tmp_path / "out"
    logs.avro("orders", OLD, [{"id": 1}])
    export(spark, logs, out)
    logs.avro("orders", NEW, [{"id": 2**40, "at": 1000, "tags": {"a": "b"}, "either": "x"}])
    export(spark, logs, out)
    table = spark.read.option("mergeSchema", "true").parquet(str(out)).orderBy("offset")
    rows = table.selectExpr(
        "valueDecoded.id", "unix_millis(valueDecoded.at)", "valueDecoded.tags", "valueDecoded.either.string"
    ).collect()
    assert list(map(tuple, rows)) == [(1, None, None, None), (2**40, 1000, {"a": "b"}, "x")]
