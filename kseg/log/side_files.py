"""What a partition needs beside its segments, made anew where it is missing or broken: epochs, producers, topic id.

A broker doesn't start where these are broken after a power cut (KAFKA-16814). Each is made of the batches, the topic's
id of what `__cluster_metadata` says.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.index.headers import BatchHeader, walk_headers
from kseg.index.producer_snapshot import ProducerSnapshot, build_producer_snapshot
from kseg.index.producer_state import ProducerStates, read_end_marker
from kseg.log.partition import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    PartitionLog,
    SegmentFiles,
    read_small_file,
)


class Reason(StrEnum):
    """Why a file is made anew."""

    MISSING = "missing"
    BROKEN = "broken"


class SideFile(NamedTuple):
    """A file that is missing or broken, and what it should hold; None if nothing at hand tells.

    detail: what is wrong with it, empty if it is missing.
    """

    name: str
    reason: Reason
    content: bytes | None
    detail: str = ""


def rebuilt_side_files(partition: PartitionLog, topic_id: str | None = None) -> Iterator[SideFile]:
    """What is missing or broken of a partition's small files.

    Leader epochs are missing where batches have some, producer snapshots where batches are producers' and no snapshot
    can be used, `partition.metadata` where the topic's id is known. Raises OpenError if a log can't be opened.
    """
    yield from _leader_epochs(partition)
    yield from _snapshots(partition)
    yield from _metadata(partition, topic_id)


def partition_metadata(partition: PartitionLog, topic_id: str | None = None) -> bytes | None:
    """The content of `partition.metadata`: its own if that can be read, else made of the topic's id."""
    for file in _metadata(partition, topic_id):
        return file.content
    return read_small_file(partition.path / PARTITION_METADATA)


def build_metadata(topic_id: str) -> bytes:
    """The content of `partition.metadata` for a topic's id."""
    from kseg.formats.checkpoint import PartitionMetadata, build_partition_metadata

    return build_partition_metadata(PartitionMetadata(0, topic_id))


def _metadata(partition: PartitionLog, topic_id: str | None) -> Iterator[SideFile]:
    content = None if topic_id is None else build_metadata(topic_id)
    try:
        known = partition.read_topic_id()
    except KsegError as error:
        yield SideFile(PARTITION_METADATA, Reason.BROKEN, content, error.message)
        return
    if known is None and content is not None:
        yield SideFile(PARTITION_METADATA, Reason.MISSING, content)


def _leader_epochs(partition: PartitionLog) -> Iterator[SideFile]:
    from kseg.formats.checkpoint import EpochStart, LeaderEpochCheckpoint, build_leader_epoch_checkpoint

    detail = ""
    try:
        if partition.read_leader_epochs() is not None:
            return
    except KsegError as error:
        detail = error.message
    starts = [EpochStart(*start) for start in leader_epochs(partition)]
    if detail or starts:
        content = build_leader_epoch_checkpoint(LeaderEpochCheckpoint(0, tuple(starts)))
        reason = Reason.BROKEN if detail else Reason.MISSING
        yield SideFile(LEADER_EPOCH_CHECKPOINT, reason, content, detail)


def leader_epochs(partition: PartitionLog) -> Iterator[tuple[int, int]]:
    """(epoch, start offset) of a partition's batches, both rising. Raises OpenError if a log can't be opened."""
    latest = -1
    for segment in partition.segments:
        with segment.open_log(keep_cache=False) as log_file:
            for header in walk_headers(log_file):
                if isinstance(header, BatchHeader) and header.partition_leader_epoch > latest:
                    latest = header.partition_leader_epoch
                    yield latest, header.last_offset if header.base_offset is None else header.base_offset


def _snapshots(partition: PartitionLog) -> Iterator[SideFile]:
    broken = {offset: detail for offset in partition.snapshots if (detail := _snapshot_problem(partition, offset))}
    for offset, detail in broken.items():
        content = build_producer_snapshot(states_at(partition, offset))
        yield SideFile(partition.snapshots[offset].name, Reason.BROKEN, content, detail)
    if not partition.snapshots:
        end = partition.read_log_end_offset()
        states = states_at(partition, end)
        if states.producers:
            yield SideFile(f"{end:020}.snapshot", Reason.MISSING, build_producer_snapshot(states))


def _snapshot_problem(partition: PartitionLog, offset: int) -> str | None:
    """Why a broker wouldn't take a snapshot; None if it would."""
    try:
        with ProducerSnapshot(partition.snapshots[offset].path) as snapshot:
            return snapshot.problem()
    except KsegError as error:
        return error.message


def states_at(partition: PartitionLog, offset: int) -> ProducerStates:
    """The producers at an offset: of the newest usable snapshot up to there, and of the batches behind it.

    Source: UnifiedLog.rebuildProducerState. Raises OpenError if a log can't be opened.
    """
    start, states = 0, ProducerStates()
    for known in sorted((each for each in partition.snapshots if each <= offset), reverse=True):
        found = None if _snapshot_problem(partition, known) else partition.read_producer_states(known)
        if found is not None:
            start, states = known, found
            break
    for segment in partition.segments[partition.floor_slot(start) or 0 :]:
        if segment.base_offset < offset:
            _add_batches(segment, range(start, offset), states)
    return states


def _add_batches(segment: SegmentFiles, offsets: range, states: ProducerStates) -> None:
    with segment.open_log(keep_cache=False) as log_file:
        for header in walk_headers(log_file):
            if isinstance(header, BatchHeader) and header.producer_id >= 0 and header.last_offset in offsets:
                states.add(header, read_end_marker(log_file, header) if header.is_control else None)
