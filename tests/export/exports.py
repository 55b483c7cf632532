"""Exports for tests, and their files, read back by pyarrow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import kseg
from kseg.export.commit.delta import DeltaLog
from kseg.export.commit.iceberg import IcebergLog
from kseg.export.commit.manifest import read_manifest
from kseg.export.commit.order import execute_here
from kseg.export.commit.protocol import TableName
from kseg.export.commit.table_log import TableLog
from kseg.export.destination import Destination, open_destination
from kseg.export.planning import Export
from kseg.export.report import PartitionReport, Report
from kseg.export.run import run_export
from kseg.export.settings import FileOptions, LogSelection, ReadOptions
from kseg.index.rebuild import rebuild
from kseg.kernel.record import Record
from kseg.reading.log_file import LogFile
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import some_of_each

YEARS_1_TO_9999 = range(-62_135_596_800_000, 253_402_300_800_000)
"""Times in milliseconds that a table can hold."""


def damaged_directories(root: Path) -> list[Path]:
    """Return one of golden's damaged directories for each kind of damage; all of them in `make test-exhaustive`."""
    directories = sorted(path for path in (root / "damaged").iterdir() if path.is_dir())
    return some_of_each(directories, lambda path: path.name.partition("-")[2])


def export(sources: list[Path], destination: Path, **options: Any) -> Report:
    """Export in this process; options of Export, ReadOptions, FileOptions and Selection are passed by name.

    Orders have no more bytes than files, unless `order_size` is given: so small logs have several.
    """
    parts: dict[str, Any] = {}
    options = {"order_size": options.get("target_size"), **options}
    for name, kind in (("read", ReadOptions), ("files", FileOptions), ("selection", LogSelection)):
        fields = set(kind.__dataclass_fields__) & set(options)
        parts[name] = kind(**{field: options.pop(field) for field in fields})
    wanted = Export(tuple(map(str, sources)), str(destination), **parts, **options)
    return run_export(wanted, execute_here)


def table_log(place: Destination, table: TableName, files: FileOptions) -> TableLog:
    """Return the log of the table at a destination."""
    if files.table_format == "delta":
        return DeltaLog(place, files)
    return IcebergLog(place, files, table)


def of_partition(report: Report, topic: str, partition: int | None = 0) -> PartitionReport:
    """Return one partition's accounts."""
    return next(part for part in report.partitions if (part.topic, part.partition) == (topic, partition))


def tables(destination: Path) -> Iterator[tuple[str, int | None, pa.Table]]:
    """Yield the tables of the valid files with their topics and partitions, in the order of offsets."""
    manifest = read_manifest(open_destination(str(destination)))
    assert manifest is not None
    for result in manifest.results:
        for file in result.files:
            assert file.path is not None
            table = pq.ParquetFile(destination / file.path).read()
            yield result.topic, result.partition, table.slice(file.first_row, file.rows)


def offsets(destination: Path, topic: str, partition: int | None = 0) -> list[int]:
    """Return the written offsets of a partition."""
    return [
        offset
        for own_topic, own_partition, table in tables(destination)
        if (own_topic, own_partition) == (topic, partition)
        for offset in table.column("offset").to_pylist()
    ]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return rows as tuples: offset, microseconds, timestamp type, key, value, headers."""
    microseconds = table.column("timestamp").cast(pa.int64()).to_pylist()
    names = ("offset", "timestampType", "key", "value", "headers")
    columns = [table.column(name).to_pylist() for name in names]
    return [
        (offset, time, kind, key, value, tuple((header["key"], header["value"]) for header in headers))
        for time, offset, kind, key, value, headers in zip(microseconds, *columns, strict=True)
    ]


def row_of(record: Record) -> tuple[Any, ...]:
    """Return the expected row of a record. A time outside of the years 1 to 9999 is null."""
    time = record.timestamp * 1000 if record.timestamp in YEARS_1_TO_9999 else None
    headers = tuple((header.key, header.value) for header in record.headers)
    return (record.offset, time, int(record.timestamp_type), record.key, record.value, headers)


def records_of(directory: Path) -> list[Record]:
    """Return all records of the segments of a partition, in order."""
    found = []
    for path in sorted(directory.glob("*.log")):
        with kseg.open_segment(path) as segment:
            batches = [item for item in segment.scan() if isinstance(item, kseg.Batch)]
        found += [record for batch in batches for record in batch.records(on_damage="skip")]
    return found


def write_log(
    directory: Path, first: int, count: int, per_batch: int = 5, value: bytes = b"value", base: int = 0
) -> Path:
    """Write a segment of plain batches with offsets from `first` on, and its indexes, into a partition directory."""
    batches = [
        NewBatch([NewRecord(b"key-%d" % (offset + i), value) for i in range(per_batch)], offset)
        for offset in range(first, first + count, per_batch)
    ]
    path = write_segment(directory, batches, first)
    write_indexes(path)
    return path


def write_indexes(path: Path) -> None:
    """Write the indexes that a broker would rebuild for a segment."""
    with LogFile(path) as log_file:
        rebuilt = rebuild(log_file, interval=500)
    path.with_suffix(".index").write_bytes(rebuilt.offset_index)
    path.with_suffix(".timeindex").write_bytes(rebuilt.time_index)
    if rebuilt.transaction_index:
        path.with_suffix(".txnindex").write_bytes(rebuilt.transaction_index)
