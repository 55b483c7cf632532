"""All golden partitions, at both isolation levels, in all formats of tables: the rows are those that others read.

Each format at one level, and Parquet at both: the level decides which rows are read, the format how they are written.
"""

from pathlib import Path

import pytest

from kseg.export.settings import TableFormat
from tests import run
from tests.export import every_partition


@pytest.mark.parametrize(
    ("table_format", "isolation"),
    [
        (TableFormat.PARQUET, "read_uncommitted"),
        (TableFormat.PARQUET, "read_committed"),
        (TableFormat.DELTA, "read_committed"),
        (TableFormat.ICEBERG, "read_uncommitted"),
    ],
)
def test_every_partitions_rows_are_those_that_others_read(
    table_format: TableFormat, isolation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    places = every_partition.linked(tmp_path / "logs")
    options = ["--format", table_format.value, "--isolation", isolation, "-o", "json"]
    ran = run.kseg(["export", "logs", "--to", "out", *options], tmp_path)
    assert (ran.status, ran.stderr) == (1, b""), "some are damaged"
    table = every_partition.TABLES[table_format](tmp_path / "out")
    assert every_partition.differences(places, table, isolation) == []
    with capsys.disabled():
        print(f"\n{table_format}, {isolation}: {table.num_rows} rows of {len(places)} partitions are equal")  # noqa: T201
