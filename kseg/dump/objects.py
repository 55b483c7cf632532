"""Indexes, snapshots and text files as objects: their entries, and their problems."""

from collections.abc import Callable, Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING

from kseg.dump.entry_lines import check_entries, check_producer_snapshot, checked_transactions, entries
from kseg.dump.forms import Problems
from kseg.dump.index_lines import check_offset_index, check_time_index
from kseg.errors import FileError
from kseg.formats.checkpoints import Members
from kseg.formats.file_names import FileKind
from kseg.index.entries import OffsetIndex, TimeIndex
from kseg.index.producers import ProducerSnapshot
from kseg.system.placed_path import StrPath
from kseg.times import iso_time

if TYPE_CHECKING:
    from kseg.dump.options import DumpOptions


def entry_objects(path: StrPath, kind: FileKind, options: "DumpOptions", found: Problems) -> Iterator[Members]:
    """Yield the entries of a file; its problems are found before the first one.

    Raises OpenError if it can't be opened.
    """
    _check(path, kind, options, found)
    try:
        for members in _ENTRIES.get(kind, entries)(path):
            yield {"type": kind.value, "file": str(path), **_with_time(members, options.zone)}
    except FileError as error:
        if not found.lines:
            raise
        line = f"kseg: {path}: {error.message}"
        if line not in found.lines:
            found.lines.append(line)


def _check(path: StrPath, kind: FileKind, options: "DumpOptions", found: Problems) -> None:
    match kind:
        case FileKind.OFFSET_INDEX:
            check_offset_index(path, options, found)
        case FileKind.TIME_INDEX:
            check_time_index(path, options, found)
        case FileKind.TRANSACTION_INDEX:
            for _ in checked_transactions(path, found):
                pass  # its problems are noted
        case FileKind.PRODUCER_SNAPSHOT:
            check_producer_snapshot(path, found)
        case _:
            check_entries(path, found)


def _with_time(members: Members, zone: tzinfo) -> Members:
    """Return the entry with its timestamp as a time, if it has a member for that."""
    timestamp = members.get("timestamp")
    return {**members, "time": iso_time(timestamp, zone)} if isinstance(timestamp, int) else members


def finding_objects(path: StrPath, found: Problems) -> Iterator[Members]:
    """Yield the problems as objects."""
    for problem in found.details:
        yield {"type": "finding", "file": str(path), "detail": problem}
    reports = found.reports
    for by_path, kind, names in (
        (reports.mismatches, "index-mismatch", ("indexOffset", "logOffset")),
        (reports.timestamp_mismatches, "timestamp-mismatch", ("indexTimestamp", "logTimestamp")),
        (reports.out_of_order_timestamps, "timestamp-out-of-order", ("indexTimestamp", "previousTimestamp")),
        (reports.offsets_not_found, "offset-not-found", ("indexOffset", "foundOffset")),
    ):
        for pairs in by_path.values():
            for numbers in zip(*pairs.as_found(), strict=True):
                both = dict(zip(names, numbers, strict=True))
                yield {"type": "finding", "file": str(path), "kind": kind, **both}


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
"""Kinds of files whose objects differ from their entries in the format."""
