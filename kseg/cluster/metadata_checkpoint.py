"""Checkpoints of the metadata log: snapshots of all that its records add up to."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.model import control_type
from kseg.errors import OpenError
from kseg.formats.codes import ControlType
from kseg.formats.file_names import parse_file_name
from kseg.formats.messages import MessageError, parse_message
from kseg.formats.schemas import message_schema
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.replay import Unreadable
from kseg.reading.batch import Batch, scan_log
from kseg.reading.log_file import LogFile


class Checkpoint(NamedTuple):
    """A snapshot of the metadata up to, not including, an offset."""

    end_offset: int
    name: str
    last_timestamp: int
    """Time of the last record that it contains."""
    records: tuple[Record, ...]
    control: tuple[Record, ...]
    """Records of the quorum, between header and footer."""


def checkpoint_files(partition: PartitionLog) -> list[tuple[int, Path]]:
    """The checkpoints beside the log, newest first, each with the offset that it ends before."""
    named = [(parse_file_name(file.path), file.path) for file in partition.metadata_snapshots]
    found = [(name.base_offset, name.epoch or 0, path) for name, path in named if name.base_offset is not None]
    return [(end_offset, path) for end_offset, _, path in sorted(found, reverse=True)]


def last_timestamp(path: Path) -> int | None:
    """Return the time that a checkpoint header has of its last record, or None if it has no header."""
    with suppress(OpenError, MessageError), LogFile(path) as log_file:
        first = next(iter(scan_log(log_file)), None)
        if isinstance(first, Batch) and first.is_valid and first.is_control:
            return _contained_until(next(iter(first.records())))
    return None


def _contained_until(header: Record) -> int:
    """Return the time of the last record that a snapshot contains, according to its header. Raises MessageError."""
    found: int = parse_message(message_schema("SnapshotHeaderRecord"), 0, header.value or b"").value[
        "lastContainedLogTimestamp"
    ]
    return found


def read_checkpoint(path: Path, end_offset: int) -> Checkpoint | Unreadable:
    """Return the records of a checkpoint if it is complete, from the header to the footer."""

    def bad(reason: str) -> Unreadable:
        return Unreadable(path.name, None, f"checkpoint not used: {reason}")

    records: list[Record] = []
    control: list[Record] = []
    try:
        with LogFile(path) as log_file:
            for item in scan_log(log_file):
                if not isinstance(item, Batch):
                    return bad(item.brief)
                if not item.is_valid or item.problem() is not None:
                    return bad(f"the batch at position {item.position} can't be read completely")
                (control if item.is_control else records).extend(item.records())
    except OpenError as error:
        return bad(error.message)
    if not control or control_type(control[0]) != ControlType.SNAPSHOT_HEADER:
        return bad("it doesn't begin with a snapshot's header")
    if control_type(control[-1]) != ControlType.SNAPSHOT_FOOTER:
        return bad("it doesn't end with a snapshot's footer")
    try:
        last = _contained_until(control[0])
    except MessageError as error:
        return bad(error.message)
    return Checkpoint(end_offset, path.name, last, tuple(records), tuple(control))
