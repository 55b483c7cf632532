"""The check of the table before an export reports success."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kseg.errors import KsegError
from kseg.export.commit.formats import FORMATS
from kseg.export.commit.order import Execute, Job, execute_here
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import FileOptions
from tests import run
from tests.export import exports
from tests.loops import for_each

COUNT = 1000


def without_an_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def without_anything(path: Path) -> None:
    path.write_bytes(b"")


def without_the_last_row(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    pq.write_table(table.slice(0, table.num_rows - 1), path)


def with_another_column(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    pq.write_table(table.append_column("more", table.column("offset")), path)


def with_broken_pages(path: Path) -> None:
    """Damage the bytes between the file's magic and its intact footer."""
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    path.write_bytes(content[:4] + bytes(255 - byte for byte in content[4:-footer]) + content[-footer:])


def spoiling(spoil: Callable[[Path], None], out: Path) -> Execute:
    """Return a function that executes orders and spoils their files."""

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        for result in execute_here(orders, job):
            for file in result.files:
                spoil(out / file.attempt)
            yield result

    return execute


def export_spoilt(tmp_path: Path, table_format: str, spoil: Callable[[Path], None], **options: Any) -> str:
    """Return the message of an export whose files are spoilt."""
    out = tmp_path / "out"
    exports.write_log(tmp_path / "disk/orders-0", 0, COUNT)
    wanted = Export((str(tmp_path / "disk"),), str(out), files=FileOptions(table_format=table_format), **options)
    with pytest.raises(KsegError) as raised:
        run_export(wanted, spoiling(spoil, out))
    assert raised.value.status == 3
    line = raised.value.one_line()
    assert line.startswith(str(out)), line
    assert line.endswith("; don't use the table; export again with --overwrite, or to another destination")
    assert "\n" not in line
    return line


@for_each("table_format", FORMATS)
def test_files_with_other_rows_than_the_report_says_are_an_error(table_format: str, tmp_path: Path) -> None:
    said = export_spoilt(tmp_path, table_format, without_the_last_row)
    assert f"has {COUNT - 1} rows, but the report says {COUNT}" in said


@for_each("spoil", [without_an_end, without_anything])
def test_files_without_a_footer_are_an_error(spoil: Callable[[Path], None], tmp_path: Path) -> None:
    for table_format in ("parquet", "delta"):
        assert ".parquet can't be read: " in export_spoilt(tmp_path / table_format, table_format, spoil)


@for_each("table_format", ["parquet", "delta"])
def test_files_with_other_columns_are_an_error(table_format: str, tmp_path: Path) -> None:
    """pyiceberg refuses such a file itself."""
    assert "the table has other columns than the export" in export_spoilt(tmp_path, table_format, with_another_column)


@for_each("table_format", FORMATS)
def test_verify_full_reads_all_rows(table_format: str, tmp_path: Path) -> None:
    assert "some rows can't be read" in export_spoilt(tmp_path, table_format, with_broken_pages, reads_back=True)


@for_each("table_format, options", [(each, ["--partition-by", "none"]) for each in FORMATS] + [("delta", [])])
def test_verify_full_of_sound_tables_says_nothing(table_format: str, options: list[str], tmp_path: Path) -> None:
    for number in range(2):
        exports.write_log(tmp_path / f"disk/orders-{number}", 0, COUNT)
        options = ["--verify", "full", "--format", table_format, "--merge-files", *options]
        ran = run.kseg(["export", str(tmp_path / "disk"), str(tmp_path / "out"), "-q", *options], tmp_path)
        assert (ran.status, ran.stdout, ran.stderr) == (0, b"", b"")


def test_verify_full_finds_rows_that_others_took(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    out = tmp_path / "out"
    exports.write_log(tmp_path / "disk/orders-0", 0, COUNT)
    exports.export([tmp_path / "disk"], out, table_format="delta")
    DeltaTable(str(out)).delete("offset < 10")
    exports.export([tmp_path / "disk"], out, table_format="delta")
    with pytest.raises(KsegError, match=f"the table has {COUNT - 10} rows of orders-0, but the report says {COUNT}"):
        exports.export([tmp_path / "disk"], out, table_format="delta", reads_back=True)
