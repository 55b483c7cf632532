"""The table of runs: Parquet files with a row for each topic of each run, next to the tables of an export.

Each run writes one file, whose name has the run's id. A run that has committed may be killed before it writes the file.
Its commit has the rows too, so the next run with the same table of runs writes them. Both use the same name, so no row
is there twice.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kseg.errors import UsageError
from kseg.export.commit.formats import FORMATS
from kseg.export.commit.manifest import FOLDER, Manifest
from kseg.export.destination import Destination, open_destination, overlap
from kseg.export.planning import Export
from kseg.export.topic_runs import ExportedTable, TopicRun, committed_runs
from kseg.formats.file_names import plain_text
from kseg.store.location import ASIDE
from kseg.times import iso_time

_TIME = pa.timestamp("us", tz="UTC")
_OFFSETS = pa.list_(pa.struct([("partition", pa.int32()), ("fromOffset", pa.int64()), ("toOffset", pa.int64())]))
SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("status", pa.int32()),
        pa.field("newRows", pa.int64()),
        pa.field("totalRows", pa.int64()),
        pa.field("newFiles", pa.int64()),
        pa.field("newBytes", pa.int64()),
        pa.field("newUndecoded", pa.int64()),
        pa.field("newLost", pa.int64()),
        pa.field("newMissed", pa.int64()),
        pa.field("newDeadLetters", pa.int64()),
        pa.field("offsetRanges", _OFFSETS),
        pa.field("commit", pa.int64()),
        pa.field("tableVersion", pa.string()),
        pa.field("destination", pa.string()),
        pa.field("table", pa.string()),
        pa.field("format", pa.string()),
        pa.field("startTime", _TIME),
        pa.field("endTime", _TIME),
        pa.field("seconds", pa.float64()),
        pa.field("runId", pa.string()),
        pa.field("error", pa.string()),
    ]
)
"""Columns of the table, with the names and meanings of the objects of `-q -o json`."""


def exported_table(export: Export) -> ExportedTable:
    """Return the table of an export as its runs name it."""
    has_name = "table" in FORMATS[export.files.table_format].options
    url = open_destination(export.destination).url
    return ExportedTable(url, export.table.name if has_name else None, export.files.table_format)


def check_runs_table(export: Export) -> None:
    """Raise UsageError if the table of runs would be among the files of others."""
    if export.runs_table is None:
        return
    place = open_destination(export.runs_table)
    place.keep_outside([os.fspath(each) for each in export.sources])
    for other in filter(None, (export.destination, export.dead_letters)):
        if overlap(export.runs_table, other):
            raise UsageError(
                "is within the table's directory, or around it; specify --runs-table another directory", place.url
            )
    if next(iter(place.names(FOLDER)), None) is not None:
        raise UsageError("is the destination of an export; specify --runs-table another directory", place.url)


def write_rows(runs_table: str, runs: Sequence[TopicRun]) -> None:
    """Write the rows of one run, unless the table has them. Raises KsegError if they can't be written."""
    open_destination(runs_table).claim(_name_of(runs[0]), _to_parquet(runs))


def write_missing_rows(previous: Manifest, export: Export) -> None:
    """Write the rows of the last commit's run, if it was killed before it wrote them.

    Raises KsegError if they can't be written.
    """
    record, table = previous.record, export.runs_table
    if record is None or table is None or record.runs_table != table or not record.topics:
        return
    runs = list(committed_runs(record, exported_table(export)))
    place, name = open_destination(table), _name_of(runs[0])
    if place.size(name) is None:
        write_rows(place.url, runs)
        _remove_unfinished(place, name)


def _remove_unfinished(place: Destination, name: str) -> None:
    """Remove the incomplete files that a killed run has left: readers of the complete directory would open them."""
    for each in list(place.names()):
        if each.startswith(f"{name}.") and each.endswith(ASIDE):
            place.delete(each)


def _name_of(run: TopicRun) -> str:
    time = (iso_time(run.start.started_ms) or "").translate(str.maketrans("", "", "-:"))
    return f"run-{time}-{run.start.id}.parquet"


def _to_parquet(runs: Iterable[TopicRun]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([*map(_row, runs)], SCHEMA), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _row(run: TopicRun) -> dict[str, Any]:
    times = {"startTime": run.start.started_ms * 1000, "endTime": run.ended_ms * 1000}
    texts = {name: plain_text(value) for name, value in run.to_json().items() if isinstance(value, str)}
    return {**run.to_json(), **texts, **times}
