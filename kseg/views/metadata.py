"""A cluster's metadata at an offset or time, replayed from `__cluster_metadata` and its newest usable checkpoint."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.decode.topic import find_topic
from kseg.errors import OpenError
from kseg.formats.codes import ControlType
from kseg.formats.messages import MessageError, parse_message
from kseg.formats.names import parse_file_name
from kseg.formats.schemas import message_schema
from kseg.kernel.record import Record
from kseg.log.partition.log_dir import Refuse
from kseg.log.partition.partition_log import METADATA_TOPIC, PartitionLog
from kseg.reading.batch import Batch
from kseg.reading.log_file import LogFile
from kseg.reading.scan import scan_log
from kseg.times import parse_time
from kseg.views.cluster import ClusterMetadata
from kseg.views.metadata_replay import MetadataReplay
from kseg.views.quorum import control_type, static_voters
from kseg.views.replay import Unreadable, partition_batches, unreadable_batch

if TYPE_CHECKING:
    from kseg.reading.damage import Damage


LARGEST_OFFSET_DIGITS = 12
"""A number of more digits is a time: milliseconds since 1970 have had 13 since 2001."""


class Until(NamedTuple):
    """How far records are taken: up to and with an offset, or a time (milliseconds since 1970); None: all."""

    offset: int | None = None
    timestamp_ms: int | None = None

    @classmethod
    def parse(cls, text: str | None, zone: tzinfo = UTC) -> "Until":
        """Of an offset, or of a time as `kseg.times` reads it; None: all. Raises UsageError for anything else."""
        if text is None:
            return cls()
        if re.fullmatch(r"[0-9]+", text) and len(text) <= LARGEST_OFFSET_DIGITS:
            return cls(offset=int(text))
        return cls(timestamp_ms=parse_time(text, zone))

    def is_before(self, offset: int, timestamp: int) -> bool:
        """Whether a record is after it."""
        too_far = self.offset is not None and offset > self.offset
        return too_far or (self.timestamp_ms is not None and timestamp > self.timestamp_ms)


def read_cluster_metadata(
    paths: Path | Sequence[Path], until: Until | None = None, refuse: Refuse | None = None
) -> ClusterMetadata:
    """The cluster's metadata in a partition directory of `__cluster_metadata`, or in log directories that have it.

    A log's end that was never committed is taken for committed: the files alone don't tell.

    Args:
        paths: a directory, or several; parents of log directories too. Of several replicas the furthest is taken.
        until: how far; None: to the end.
        refuse: takes the errors of paths that can't be listed while others can; None lets them be raised.

    Raises:
        OpenError: there is no such directory, or no metadata in it.
    """
    places = find_topic(paths, METADATA_TOPIC, refuse)
    partition = places.partitions[0]
    found = replace(cluster_metadata_of(partition, until or Until()), log_dirs=places.log_dirs)
    is_known = found.kraft_version > 0 or found.voters or until not in (None, Until())
    return found if is_known else replace(found, voters=static_voters(partition))


def cluster_metadata_of(partition: PartitionLog, until: Until) -> ClusterMetadata:
    """The cluster's metadata of the partition."""
    replay = MetadataReplay()
    checkpoint = _load_checkpoint(partition, until, replay)
    start = 0 if checkpoint is None else checkpoint.end_offset
    base_offset = partition.base_offsets[0] if partition.segments else start
    for record in _records(partition, start, until, replay):
        replay.add(record)
    missing_before = base_offset if base_offset > start else None
    return replay.result(None if checkpoint is None else checkpoint.name, missing_before)


def _records(partition: PartitionLog, start: int, until: Until, replay: MetadataReplay) -> Iterator[Record]:
    """The log's records from an offset on."""
    for item in partition_batches(partition):
        if isinstance(item, Unreadable):
            replay.unreadable.append(item)
        elif item.last_offset >= start:
            damages: list[Damage] = []
            for record in item.records(on_damage=damages.append):
                if until.is_before(record.offset, record.timestamp):
                    return
                if item.is_control:
                    replay.add_control(record)
                elif record.offset >= start:
                    yield record
            replay.unreadable += [unreadable_batch(partition.path.name, item, damage) for damage in damages]


class _Checkpoint(NamedTuple):
    """A snapshot of the metadata up to, not including, an offset."""

    end_offset: int
    name: str
    last_timestamp: int
    """Of the last record that it contains."""
    records: tuple[Record, ...]
    control: tuple[Record, ...]
    """Of the quorum, between header and footer."""


def _load_checkpoint(partition: PartitionLog, until: Until, replay: MetadataReplay) -> _Checkpoint | None:
    """The newest checkpoint that is whole and not beyond `until`; its records are taken."""
    named = [(parse_file_name(file.path), file.path) for file in partition.metadata_snapshots]
    snapshots = [(name.base_offset, name.epoch or 0, path) for name, path in named if name.base_offset is not None]
    for end_offset, _, path in sorted(snapshots, reverse=True):
        if until.offset is not None and end_offset > until.offset + 1:
            continue
        found = _checkpoint(path, end_offset)
        if isinstance(found, Unreadable):
            replay.unreadable.append(found)
        elif until.timestamp_ms is None or found.last_timestamp <= until.timestamp_ms:
            for record in found.control:
                replay.add_control(record)
            for record in found.records:
                replay.add(record)
            replay.offset, replay.timestamp = end_offset - 1, found.last_timestamp
            return found
    return None


def _checkpoint(path: Path, end_offset: int) -> _Checkpoint | Unreadable:
    """A checkpoint's records, if all are there: it begins with a header and ends with a footer."""

    def bad(reason: str) -> Unreadable:
        return Unreadable(path.name, None, f"checkpoint not used: {reason}")

    records: list[Record] = []
    control: list[Record] = []
    try:
        with LogFile(path) as log_file:
            for item in scan_log(log_file):
                if not isinstance(item, Batch):
                    return bad(f"{item.kind} at position {item.position}")
                if not item.is_valid or item.problem() is not None:
                    return bad(f"the batch at position {item.position} can't be read whole")
                (control if item.is_control else records).extend(item.records())
    except OpenError as error:
        return bad(error.message)
    if not control or control_type(control[0]) != ControlType.SNAPSHOT_HEADER:
        return bad("it doesn't begin with a snapshot's header")
    if control_type(control[-1]) != ControlType.SNAPSHOT_FOOTER:
        return bad("it doesn't end with a snapshot's footer")
    try:
        header = parse_message(message_schema("SnapshotHeaderRecord"), 0, control[0].value or b"").value
    except MessageError as error:
        return bad(error.message)
    return _Checkpoint(end_offset, path.name, header["lastContainedLogTimestamp"], tuple(records), tuple(control))
