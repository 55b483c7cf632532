"""Plans and reports of exports, as tables and as JSON objects."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kseg.errors import KsegError, plural
from kseg.export.commit.formats import FORMATS
from kseg.log.committed import why_withheld
from kseg.output.columns import Column, Field
from kseg.output.forms import Form
from kseg.output.progress import talk
from kseg.output.streams import flush_stdout, write_line
from kseg.output.table import aligned_lines
from kseg.sizes import human_size
from kseg.text import fields

if TYPE_CHECKING:  # these import pyarrow
    from kseg.export.changes import ChangeCounts
    from kseg.export.commit.protocol import ExportPlan
    from kseg.export.plan import WorkOrder
    from kseg.export.report import PartitionReport, Report
    from kseg.export.results import LostOffsets
    from kseg.export.undecoded import DeadLetters

Row = TypeVar("Row")

UNKNOWN = "?"


def _shown(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _column(field: Field, title: str, value: Callable[[Row], object]) -> Column[Row]:
    column = Column(field, title, value)
    return column._replace(show=lambda row: UNKNOWN if value(row) is None else column.text(row))


_REPORT_COLUMNS: "tuple[Column[PartitionReport], ...]" = (
    _column(fields.TOPIC, "topic", lambda row: row.topic),
    _column(fields.PARTITION, "partition", lambda row: row.partition),
    _column(fields.FROM_OFFSET, "from", lambda row: row.from_offset),
    _column(fields.TO_OFFSET, "to", lambda row: row.to_offset),
    _column(fields.RECORDS_IN, "in", lambda row: row.records_in),
    _column(fields.RECORDS_OUT, "out", lambda row: row.records_out),
    _column(fields.CONTROL_RECORDS, "control", lambda row: row.control_records),
    _column(fields.ABORTED, "aborted", lambda row: row.aborted),
    _column(fields.GAPS, "gaps", lambda row: row.gaps),
    Column(
        fields.LOST, "lost", lambda row: row.lost, lambda row: f"{row.lost}+" if row.has_lost_more else str(row.lost)
    ),
    _column(fields.RECOVERED, "recovered", lambda row: row.recovered),
    _column(fields.BYTES, "size", lambda row: row.bytes),
)
_RARE_COLUMNS: "tuple[Column[PartitionReport], ...]" = (
    _column(fields.PASSED_OVER, "passed over", lambda row: row.passed_over),
    _column(fields.MISSED, "missed", lambda row: row.missed),
    _column(fields.WITHHELD, "withheld", lambda row: row.withheld),
    _column(fields.UNASKED, "unasked", lambda row: row.unasked),
    _column(fields.UNSELECTED, "unselected", lambda row: row.unselected),
)
"""Columns that a report has only if a partition has a value."""
_TOPIC_ID: "Column[PartitionReport]" = _column(fields.TOPIC_ID, "topic id", lambda row: row.topic_id)
"""Column that a report has only if a topic was recreated."""


@dataclass(slots=True)
class PlanRow:
    """The plan for a partition: orders, and bytes and ranges of files to read."""

    topic: str
    partition: int | None
    orders: int = 0
    bytes: int = 0
    file_count: int = 0


_PLAN_COLUMNS: tuple[Column[PlanRow], ...] = (
    _column(fields.TOPIC, "topic", lambda row: row.topic),
    _column(fields.PARTITION, "partition", lambda row: row.partition),
    _column(fields.ORDERS, "tasks", lambda row: row.orders),
    _column(fields.BYTES, "size", lambda row: row.bytes),
    _column(fields.FILE_COUNT, "files", lambda row: row.file_count),
)


def plan_rows(orders: "Iterable[WorkOrder]") -> list[PlanRow]:
    """Return one row per partition."""
    rows: dict[tuple[str, int | None], PlanRow] = {}
    for order in orders:
        row = rows.setdefault((order.topic, order.partition), PlanRow(order.topic, order.partition))
        row.orders += 1
        row.bytes += order.size
        row.file_count += len(order.ranges)
    return sorted(rows.values(), key=lambda row: (row.topic, row.partition or 0))


def plan_objects(orders: "Sequence[WorkOrder]") -> Iterator[dict[str, Any]]:
    """Yield a plan as objects: one per partition, and a summary."""
    rows = plan_rows(orders)
    yield from ({"type": "partition", **{column.name: column.value(row) for column in _PLAN_COLUMNS}} for row in rows)
    size = sum(row.bytes for row in rows)
    yield {"type": "summary", "partitions": len(rows), "orders": len(orders), "bytes": size}


def plan_lines(orders: "Sequence[WorkOrder]") -> Iterator[str]:
    """Yield a plan as a table."""
    rows = plan_rows(orders)
    yield from aligned_lines(_PLAN_COLUMNS, rows)
    sums = (
        plural(len(rows), "partition"),
        plural(len(orders), "task"),
        human_size(sum(row.bytes for row in rows)),
    )
    yield ", ".join(sums)


def report_objects(report: "Report") -> Iterator[dict[str, Any]]:
    """Yield a report as objects: one per partition, one per damage, and a summary."""
    yield from account_objects(report)
    yield {"type": "summary", **table_members(report)}


def account_objects(report: "Report") -> Iterator[dict[str, Any]]:
    """Yield the accounts of partitions, each followed by its damages."""
    for partition in report.partitions:
        members = partition.to_json()
        damages = members.pop("damages")
        yield {"type": "partition", **members}
        place = {"topic": partition.topic, "partition": partition.partition}
        yield from ({"type": "damage", **place, **damage} for damage in damages)


def table_members(report: "Report") -> dict[str, Any]:
    """Return the sums of a report, its other facts, and commands that read the export."""
    left_alone = {"leftAlone": list(report.left_alone)} if report.left_alone else {}
    merged = {} if report.merged is None else dict(zip(("filesBefore", "filesAfter"), report.merged, strict=True))
    taken = {} if report.taken is None else {"taken": report.taken.to_json()}
    letters = {} if report.dead_letters is None else {"deadLetters": report.dead_letters.to_json()}
    changes = {} if report.changes is None else {"changes": report.changes.to_json()}
    return {**sums_of([report]), **letters, **changes, **merged, **left_alone, **taken, **_readers(report)}


def report_lines(report: "Report", *, verbose: bool = False) -> Iterator[str]:
    """Yield a report as a table, then damages and notes, and commands that read the export."""
    yield from partition_lines(report.partitions)
    yield from account_lines(report)
    if report.taken is not None:
        yield from report.taken.sentences(verbose=verbose)
    yield from reader_lines(report)


def partition_lines(partitions: "Sequence[PartitionReport]") -> Iterator[str]:
    """Yield the accounts of partitions as a table."""
    rare = [column for column in _RARE_COLUMNS if any(map(column.value, partitions))]
    rare += [_TOPIC_ID] if _find_recreated(partitions) else []
    yield from aligned_lines((*_REPORT_COLUMNS, *rare), partitions)


def account_lines(report: "Report") -> Iterator[str]:
    """Yield what a report says in addition to the table: damages and notes, the sums, and other runs."""
    for partition in report.partitions:
        for loss in partition.damages:
            offsets = _offsets(loss.first, loss.end)
            recovered = ", recovered from another copy" if _is_recovered(loss, partition) else ""
            yield f"{loss.segment}: at position {loss.position}: {loss.kind}: {loss.detail}; {offsets}{recovered}"
    yield from (remark for partition in report.partitions for remark in partition.remarks)
    yield from (line for partition in report.partitions for line in _lines_about(partition))
    yield from _lines_about_times(report)
    yield from (each.line() for each in report.undecoded_parts())
    remade = _find_recreated(report.partitions)
    yield from (line for earlier, later in remade for line in _lines_about_recreated(earlier, later))
    sums = sums_of([report])
    yield sums_line(sums, report.destination)
    yield from () if report.changes is None else _lines_about_changes(report.changes)
    yield from _lines_about_earlier(report.partitions, sums)
    if report.dead_letters is not None:
        yield _line_about_letters(report.dead_letters)
    if report.taken_up:
        yield f"{report.taken_up} of the new files come from interrupted runs"
    if report.merged is not None:
        before, after = report.merged
        yield (
            f"merged: {plural(before, 'file')} became {after}"
            if after < before
            else f"merged: none; {plural(after, 'file')} as before"
        )
    yield from (f"left alone: {run}" for run in report.left_alone)


def sums_line(sums: Mapping[str, Any], destination: str) -> str:
    """Return the sums of records, offsets and files in one line."""
    return (
        f"{sums['recordsOut']} of {plural(sums['recordsIn'], 'record')}, {plural(sums['lost'], 'offset')} lost, "
        f"{_more(sums)}{plural(sums['damageCount'], 'damage')}; "
        f"{plural(sums['newFiles'], 'new file')} in {destination}"
    )


def reader_lines(report: "Report") -> Iterator[str]:
    """Yield commands that read the export."""
    yield from (f"{name}: {line}" for name, line in _readers(report).items())


def _offsets(first: int | None, end: int | None) -> str:
    """Return a range of offsets for people, with the last offset instead of the end."""
    return f"offsets {_shown(first)} to {_shown(None if end is None else end - 1)}"


def _is_recovered(loss: "LostOffsets", partition: "PartitionReport") -> bool:
    """Return True if damage cost offsets that the export has nevertheless."""
    if loss.first is None or loss.end is None or loss.first >= loss.end:
        return False
    return all(loss.end <= first or loss.first >= end for first, end in partition.lost_offsets)


def _name(partition: "PartitionReport") -> str:
    return partition.topic if partition.partition is None else f"{partition.topic}-{partition.partition}"


def _find_recreated(partitions: "Iterable[PartitionReport]") -> "list[tuple[PartitionReport, PartitionReport]]":
    """Return pairs of accounts of same-named partitions whose topics followed one another."""
    return [(one, other) for one, other in pairwise(partitions) if _name(one) == _name(other)]


def _lines_about_recreated(earlier: "PartitionReport", later: "PartitionReport") -> Iterator[str]:
    first = f"topic id {_shown(earlier.topic_id)} until offset {_shown(earlier.to_offset)}"
    then = f"then {_shown(later.topic_id)} from offset {_shown(later.from_offset)} on"
    yield f"{_name(later)}: the topic was recreated: {first}, {then}; both are exported"


def _lines_about(partition: "PartitionReport") -> Iterator[str]:
    """Yield facts about a partition that its columns don't have: missing and changed contents."""
    name = _name(partition)
    if partition.is_gone:
        yield f"{name}: the partition no longer exists; its {partition.records_out} exported records stay"
    for first, end in partition.missed_offsets:
        yield f"{name}: {_offsets(first, end)} are missed: the log lost them after the previous run"
    if partition.open_from is not None:
        why = why_withheld(partition.open_producer_id, partition.open_since, is_unknown=partition.is_open_unknown)
        yield (
            f"{name}: {plural(partition.withheld, 'offset')} from {partition.open_from} on,"
            f" {plural(partition.withheld_records, 'record')}, held back: {why}"
        )
    for first, end in partition.remote:
        yield f"{name}: {_offsets(first, end)} are only in the remote tier: not exported"
    if partition.disordered:
        yield (
            f"{name}: {plural(partition.disordered, 'record follows', 'records follow')} higher offsets: the log"
            " is out of order"
        )
    if partition.passed_over:
        yield f"{name}: kseg skipped {plural(partition.passed_over, 'record')}: other records have the same offsets"


def _lines_about_times(report: "Report") -> Iterator[str]:
    """Yield a line about partitions with timestamps that no table can hold, and whether their milliseconds are kept."""
    for partition in report.partitions:
        if partition.without_time:
            count = plural(partition.without_time, "timestamp is", "timestamps are")
            told = f"{_name(partition)}: {count} outside of the years 1 to 9999, so the column timestamp is null"
            yield (
                f"{told}; timestampMs has the milliseconds"
                if report.has_milliseconds
                else f"{told}, and this table has no column timestampMs; export to another destination to keep them"
            )


def _lines_about_changes(counts: "ChangeCounts") -> Iterator[str]:
    """Yield the effects of changes on a table of database rows."""
    yield (
        f"{plural(counts.changes, 'change')}: {plural(counts.inserted, 'row')} inserted, {counts.updated} updated,"
        f" {counts.deleted} deleted; {counts.superseded} superseded, {counts.unchanged} without effect"
        + ("" if counts.total is None else f"; the table has {plural(counts.total, 'row')}")
    )
    if counts.undecided:
        yield (
            f"{plural(counts.undecided, 'pair')} of changes undecided: from different partitions, without a position or"
            " time that tells which one is later"
        )
    if counts.skipped:
        yield f"skipped: {', '.join(f'{count} {_SKIPPED[kind]}' for kind, count in sorted(counts.skipped.items()))}"


_SKIPPED: Mapping[str, str] = MappingProxyType(
    {
        "heartbeats": "heartbeats",
        "messages": "logical messages",
        "schemaChanges": "schema changes",
        "tombstones": "tombstones",
        "transactions": "transaction events",
    }
)


def _lines_about_earlier(partitions: "Iterable[PartitionReport]", sums: dict[str, Any]) -> Iterator[str]:
    """Yield losses that earlier runs reported. They don't make this run fail."""
    earlier = {name: sums[name] - sums[f"new{name.capitalize()}"] for name in ("lost", "missed")}
    if any(earlier.values()):
        yield f"before this run: {plural(earlier['lost'], 'offset')} lost, {earlier['missed']} missed"
    elif any(not partition.is_sound and not partition.has_new_losses for partition in partitions):
        yield "before this run: the problems in the lines above, except for new ones"


def _more(sums: Mapping[str, Any]) -> str:
    """Return the number of offsets that the export lacks for other reasons, if there are any."""
    return "".join(f"{sums[name]} {name}, " for name in ("missed", "withheld") if sums[name])


def _line_about_letters(letters: "DeadLetters") -> str:
    line = f"dead letters: {plural(letters.records, 'record')} in {letters.destination}"
    missing = letters.undecoded - letters.records
    return line if missing <= 0 else f"{line}; the logs no longer have {missing} more"


def _readers(report: "Report") -> dict[str, str]:
    """Return commands that read the export, by reader; none if the export is empty."""
    if not report.has_files:
        return {}
    place, folders = report.table or report.destination, report.folders
    scan = FORMATS[report.table_format].scan
    duckdb, polars = (None, None) if scan is None else scan
    return {
        "duckdb": _duckdb_query(place, folders, duckdb, is_typed=bool(report.decode.columns)),
        "polars": _polars_expression(place, folders, polars, report.newest_file if report.decode.columns else None),
    }


def sums_of(reports: "Sequence[Report]") -> dict[str, Any]:
    """Return the sums of reports as JSON's values."""
    partitions = [partition for report in reports for partition in report.partitions]
    return {
        "partitions": len(partitions),
        "isWhole": all(report.is_whole for report in reports),
        "recordsIn": sum(partition.records_in for partition in partitions),
        "recordsOut": sum(partition.records_out for partition in partitions),
        "lost": sum(partition.lost for partition in partitions),
        "newLost": sum(partition.new_lost for partition in partitions),
        "missed": sum(partition.missed for partition in partitions),
        "newMissed": sum(partition.new_missed for partition in partitions),
        "withheld": sum(partition.withheld for partition in partitions),
        "undecoded": sum(partition.undecoded for partition in partitions),
        "newUndecoded": sum(each.undecoded for partition in partitions for each in partition.new_decoded),
        "damageCount": sum(len(partition.damages) for partition in partitions),
        "newFiles": sum(report.new_files for report in reports),
        **({"takenUp": taken_up} if (taken_up := sum(report.taken_up for report in reports)) else {}),
    }


def write_plan(plan: "ExportPlan", form: Form) -> None:
    """Write a plan to standard output; report unreadable sources on stderr."""
    write_each(form, plan_objects(plan.orders) if form.has_objects else plan_lines(plan.orders))
    say_refused(plan.refused)


def write_report(report: "Report", form: Form, *, verbose: bool = False) -> None:
    """Write a report to standard output.

    verbose: the text lists the copy that each partition was read from.
    """
    write_each(form, report_objects(report) if form.has_objects else report_lines(report, verbose=verbose))


def write_kept_report(content: bytes | None, destination: str, form: Form) -> None:
    """Write the report of a destination to standard output.

    content: None if there is no report.
    """
    if content is None:
        talk(f"kseg: {destination}: no report was found")
        return
    report = json.loads(content)
    partitions = report.pop("partitions")
    sums = {name: sum(partition[name] for partition in partitions) for name in ("recordsIn", "recordsOut", "lost")}
    if form.has_objects:
        for partition in partitions:
            form.write_object({"type": "partition", **partition})
        form.write_object({"type": "summary", "partitions": len(partitions), **report, **sums})
    else:
        write_line(
            f"{sums['recordsOut']} of {plural(sums['recordsIn'], 'record')}, {plural(sums['lost'], 'offset')} lost;"
            f" {plural(report['newFiles'], 'new file')} in {destination}; _kseg/report.json there has the accounts"
        )
    flush_stdout()


def write_each(form: Form, rows: Iterator[dict[str, Any]] | Iterator[str]) -> None:
    """Write objects or lines to standard output."""
    for row in rows:
        if isinstance(row, str):
            write_line(row)
        else:
            form.write_object(row)
    flush_stdout()


def say_undecoded(report: "Report") -> None:
    """Report on stderr topics with more undecoded keys or values in this run than the limit."""
    for each in report.beyond_limit():
        limit = report.undecoded_limit
        talk(
            f"kseg: {each.line()}; choose another --{each.counts.part}-decoder, or accept more with --max-undecoded"
            f" (now {limit})"
        )


def say_losses(report: "Report") -> None:
    """Report on stderr the losses that this run found, by topic."""
    new = [partition for partition in report.partitions if partition.has_new_losses]
    for topic, partitions in groupby(new, lambda partition: partition.topic):
        own = list(partitions)
        missed = sum(partition.new_missed for partition in own)
        damaged = [partition for partition in own if partition.new_lost or not partition.new_missed]
        if damaged:
            least = "at least " if any(partition.has_lost_more for partition in damaged) else ""
            cost = plural(sum(partition.new_lost for partition in damaged), "offset")
            where = f"{report.destination}/_kseg/damages.csv"
            talk(f"kseg: {topic}: damage in {plural(len(damaged), 'partition')} costs {least}{cost}; see {where}")
        if missed:
            talk(
                f"kseg: {topic}: the logs lost {plural(missed, 'offset')} before this run; export more often than"
                " retention deletes"
            )
    if report.dead_letters is not None and report.dead_letters.has_new_losses:
        talk(f"kseg: {_line_about_letters(report.dead_letters)}")


def say_refused(refused: Iterable[KsegError]) -> None:
    """Report unreadable sources on stderr."""
    for error in refused:
        talk(f"kseg: {error}")


class _FolderType(NamedTuple):
    duckdb: str
    polars: str


_FOLDER_TYPES = {
    "string": _FolderType("VARCHAR", "pl.String"),
    "bool": _FolderType("BOOLEAN", "pl.Boolean"),
    "int32": _FolderType("INTEGER", "pl.Int32"),
    "int64": _FolderType("BIGINT", "pl.Int64"),
    "date32[day]": _FolderType("DATE", "pl.Date"),
}
"""Types of folder columns by Arrow's: without them, readers take a topic name of digits for a number."""


def _duckdb_query(url: str, folders: Sequence[tuple[str, str]], scan: str | None, *, is_typed: bool) -> str:
    """Return the SQL with which DuckDB reads the export at a path or URL.

    folders: columns of the folders' names. scan: the function that opens a table; None for plain Parquet files.
    is_typed: later files may have more fields in their decoded columns.
    """
    if scan is not None:
        return f"FROM {scan}({_sql_text(url)})"
    types = ", ".join(f"{_sql_text(name)}: {_FOLDER_TYPES[kind].duckdb}" for name, kind in folders)
    hive = f", hive_partitioning = true, hive_types = {{{types}}}" if folders else ""
    union = ", union_by_name = true" if is_typed else ""
    return f"FROM read_parquet({_sql_text(_files(url))}{hive}{union})"


def _polars_expression(url: str, folders: Sequence[tuple[str, str]], scan: str | None, newest_file: str | None) -> str:
    """Return the Python expression with which Polars, imported as `pl`, reads the export.

    Arguments as for `_duckdb_query`. newest_file: a file with all columns, if earlier ones may have fewer or narrower
    ones.
    """
    if scan is not None:
        return f"{scan}({url!r})"
    types = ", ".join(f"{name!r}: {_FOLDER_TYPES[kind].polars}" for name, kind in folders)
    hive = f", hive_schema={{{types}}}" if folders else ""
    newest = f"pl.scan_parquet({f'{url}/{newest_file}'!r}, glob=False).collect_schema()"
    schema = "" if newest_file is None else f", schema={newest}, {_WIDENING}"
    return f"pl.scan_parquet({_files(url)!r}{hive}{schema})"


_WIDENING = (
    "missing_columns='insert', cast_options=pl.ScanCastOptions(integer_cast='upcast', float_cast='upcast',"
    " missing_struct_fields='insert')"
)
"""Arguments with which Polars reads files whose columns are narrower than the schema; decimals widen as integers."""


def _files(url: str) -> str:
    """Return a pattern of the export's files; pattern characters in the path itself are escaped."""
    return f"{escape(url.rstrip('/'))}/**/*.parquet"


def _sql_text(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
