"""Indexes, snapshots and text files as objects: lines of JSON, CSV, tables; what is wrong with them too."""

import json
from collections.abc import Callable, Iterator
from datetime import tzinfo

from kseg.dump.entry_lines import check_entries, entries
from kseg.dump.options import DumpContext, DumpOptions, Found
from kseg.errors import FileError
from kseg.formats.checkpoints import Members
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.index.entries import OffsetIndex, TimeIndex
from kseg.index.producers import ProducerSnapshot
from kseg.output.rows import quoted
from kseg.system.placed_path import StrPath
from kseg.times import iso_time

_REPORTS = (
    ("mismatches", "index-mismatch", ("indexOffset", "logOffset")),
    ("timestamp_mismatches", "timestamp-mismatch", ("indexTimestamp", "logTimestamp")),
    ("out_of_order_timestamps", "timestamp-out-of-order", ("indexTimestamp", "previousTimestamp")),
    ("offsets_not_found", "offset-not-found", ("indexOffset", "foundOffset")),
)
"""What Reports collect, its kind as a finding, and the names of its two numbers."""


def dump_objects(path: StrPath, context: "DumpContext") -> None:
    """Prints a file's entries; findings follow as objects, or in CSV and tables on stderr.

    Raises OpenError if it can't be opened.
    """
    kind = parse_file_name(path).kind
    found = Found(context.options.release)
    _check(path, kind, context.options, found)
    context.found.is_wrong |= found.is_wrong
    try:
        for members in _ENTRIES.get(kind, entries)(path):
            _print({"type": kind.value, "file": str(path), **_with_time(members, context.options.zone)}, context)
    except FileError as error:
        if not found.summaries:
            raise
        line = f"kseg: {path}: {error.message}"
        if context.options.output != "json" and line not in found.summaries:
            context.talk(line)
    _print_findings(path, found, context)


def _check(path: StrPath, kind: FileKind, options: DumpOptions, found: Found) -> None:
    from kseg.dump.entry_lines import (
        check_offset_index,
        check_producer_snapshot,
        check_time_index,
        checked_transactions,
    )

    match kind:
        case FileKind.OFFSET_INDEX:
            check_offset_index(path, options, found)
        case FileKind.TIME_INDEX:
            check_time_index(path, options, found)
        case FileKind.TRANSACTION_INDEX:
            for _ in checked_transactions(path, found):
                pass  # what is wrong with them is noted
        case FileKind.PRODUCER_SNAPSHOT:
            check_producer_snapshot(path, found)
        case _:
            check_entries(path, found)


def _print(members: Members, context: "DumpContext") -> None:
    """An object; in CSV and tables its values, under the names of its kind."""
    output = context.options.output
    if output == "json":
        context.json(members)
        return
    names = tuple(name for name in members if name != "type")
    values = [_flat(members[name]) for name in names]
    if output == "table":
        context.table(names).add(values)
        return
    if output == "text":
        context.line(
            " ".join(f"{name}: {'null' if value is None else value}" for name, value in zip(names, values, strict=True))
        )
        return
    context.line_once(",".join(names))
    context.line(",".join(_csv(value, is_safe=context.options.csv_safe) for value in values))


def _with_time(members: Members, zone: tzinfo) -> Members:
    """The entry with its timestamp as a time, if it has a place for that."""
    timestamp = members.get("timestamp")
    return {**members, "time": iso_time(timestamp, zone)} if isinstance(timestamp, int) else members


def _flat(value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _csv(value: str | int | float | bool | None, *, is_safe: bool) -> str:
    if isinstance(value, str):
        return quoted(value, is_safe=is_safe)
    return "" if value is None else str(value).lower()


def _print_findings(path: StrPath, found: Found, context: "DumpContext") -> None:
    if context.options.output != "json":
        context.found.summaries += found.summaries
        return
    for problem in found.problems:
        _print({"type": "finding", "file": str(path), "detail": problem}, context)
    for attribute, kind, names in _REPORTS:
        for pairs in getattr(found.reports, attribute).values():
            for numbers in zip(*pairs.as_found(), strict=True):
                both = dict(zip(names, numbers, strict=True))
                _print({"type": "finding", "file": str(path), "kind": kind, **both}, context)


# --- entries ---------------------------------------------------------------------------------------------------------


def _offset_index(path: StrPath) -> Iterator[Members]:
    with OffsetIndex(path) as index:
        for entry in index.entries():
            yield {"offset": entry.offset, "position": entry.position}


def _time_index(path: StrPath) -> Iterator[Members]:
    with TimeIndex(path) as index:
        for entry in index.entries():
            yield {"timestamp": entry.timestamp, "time": None, "offset": entry.offset}


def _producer_snapshot(path: StrPath) -> Iterator[Members]:
    names = (
        "producerId",
        "producerEpoch",
        "lastSequence",
        "lastOffset",
        "offsetDelta",
        "timestamp",
        "coordinatorEpoch",
        "currentTxnFirstOffset",
    )
    with ProducerSnapshot(path) as snapshot:
        for entry in snapshot.entries():
            yield {**dict(zip(names, entry, strict=True)), "time": None}


_ENTRIES: dict[FileKind, Callable[[StrPath], Iterator[Members]]] = {
    FileKind.OFFSET_INDEX: _offset_index,
    FileKind.TIME_INDEX: _time_index,
    FileKind.PRODUCER_SNAPSHOT: _producer_snapshot,
}
"""Kinds of files whose objects aren't their entries as the format has them."""
