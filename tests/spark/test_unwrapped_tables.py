"""Spark reads the rows of a database from the tables that several runs made of its change events."""

from pathlib import Path

import pytest

from tests.export.debezium import Database
from tests.export.test_unwrap import expected, export
from tests.spark.connectors import read_by_spark

pytestmark = pytest.mark.spark

FORMATS = ("delta", "iceberg")


def test_spark_reads_the_rows_of_the_database(tmp_path: Path) -> None:
    database = Database(seed=5)
    database.snapshot(200)
    tables = []
    for column in (None, "since", None):
        database.change(300)
        if column is not None:
            database.add_column(column)
        database.write(tmp_path / "logs", late=[0] if column else ())
        tables = [
            (table_format, export(tmp_path / "logs", tmp_path / table_format, table_format).table)
            for table_format in FORMATS
        ]
    for table_format, found in zip(FORMATS, read_by_spark(tables, tmp_path), strict=True):
        rows = [
            {name: value for name, value in row.items() if not name.startswith("_kseg") and value is not None}
            for row in found.sort_by("id").to_pylist()
        ]
        assert rows == expected(database), table_format
