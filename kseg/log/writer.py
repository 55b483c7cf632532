"""A writer of a partition directory, batch by batch, like a broker: segments that roll, indexes, checkpoints."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kseg.formats.codes import INDEX_INTERVAL_BYTES, MAXIMUM_RELATIVE_OFFSET
from kseg.index.producers import EndMarker, ProducerStates, build_producer_snapshot, parse_end_marker
from kseg.index.rebuild import IndexBuilder
from kseg.log.partition import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from kseg.log.segments import ClosedSegment, NextAppend, RollReason, RollSettings, why_rolled
from kseg.reading.batch import BatchHeader, parse_header
from kseg.reading.log_file import LogFile
from kseg.system.new_directory import COPIED_AT_ONCE

_WRITE_BUFFER = 1 << 18


NEVER = RollSettings(1 << 70, 1 << 70, 1 << 70)
"""Settings that keep a source's segments: they roll only if offsets are too far apart."""


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """The settings of a partition: rolling, density of indexes, and the topic id for `partition.metadata`, if any."""

    roll: RollSettings = field(default_factory=RollSettings)
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    topic_id: str | None = None


class WrittenSegment(NamedTuple):
    """A segment that was written: bytes and batches of its log, its offsets, and the reason for closing it."""

    base_offset: int
    next_offset: int
    size: int
    batch_count: int
    rolled: RollReason


class PartitionWriter:
    """A writer that appends batches to a partition directory; a context manager that closes the last segment.

    next_offset: after the last batch. states: its producers. segments: the closed ones. Raises OSError if the system
    can't write.
    """

    def __init__(
        self,
        directory: Path,
        base_offset: int = 0,
        settings: PartitionSettings | None = None,
        states: ProducerStates | None = None,
    ) -> None:
        self.directory = directory
        self.settings = settings or PartitionSettings()
        self.next_offset = base_offset
        self.states = states if states is not None else ProducerStates()
        self.segments: list[WrittenSegment] = []
        self._epochs: list[tuple[int, int]] = []
        self._segment = self._new_segment(base_offset)

    def __enter__(self) -> "PartitionWriter":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._segment.log.close()

    def append(self, raw: bytes) -> None:
        """Append one batch, or one v0 or v1 log entry.

        Start a new segment first if one of Kafka's rules requires it.

        Its offsets must be at or above `next_offset`.
        """
        header = parse_header(raw, 0, 0, is_valid=True)
        self._roll_before(header)
        self._segment.write(raw)
        marker = parse_end_marker(raw) if header.is_control and header.producer_id >= 0 else None
        self._add(header, marker)

    def copy(self, source: LogFile, header: BatchHeader, marker: EndMarker | None = None) -> None:
        """Append a batch of an open log; the kernel copies consecutive batches together.

        source: must stay open until the segment is closed. header: the batch's there. marker: if it is a control batch
        that ends a transaction.
        """
        self._roll_before(header)
        self._segment.copy(source, header.position, header.size)
        self._add(header, marker)

    def _roll_before(self, header: BatchHeader) -> None:
        reason = self._segment.why_rolled(header, self.settings.roll)
        if reason is not RollReason.UNKNOWN:
            self.roll(reason, self._base_of_roll(header))

    def _base_of_roll(self, header: BatchHeader) -> int:
        """Return the base offset of a segment that begins with this batch. Source: `UnifiedLog.maybeRoll`.

        Brokers don't look for the first offset of v0 and v1 messages: they use the lowest that the last one allows.
        """
        if header.magic >= 2:
            return header.first_offset
        return max(self.next_offset, header.last_offset - MAXIMUM_RELATIVE_OFFSET)

    def _add(self, header: BatchHeader, marker: EndMarker | None) -> None:
        self._segment.add(header, marker)
        self._add_epoch(header)
        self.next_offset = header.last_offset + 1

    def roll(self, reason: RollReason, base_offset: int | None = None) -> None:
        """Close the segment and start another, at `next_offset` or the given offset; replace an empty one."""
        base = self.next_offset if base_offset is None else base_offset
        if self._segment.batch_count:
            self._close_segment(reason)
            self._write_snapshot(base)
        else:
            self._segment.discard()
        self.next_offset = base
        self._segment = self._new_segment(base)

    def close(self) -> None:
        """Close the last segment, and write the files next to segments."""
        from kseg.formats.checkpoints import (
            EpochStart,
            LeaderEpochCheckpoint,
            PartitionMetadata,
            build_leader_epoch_checkpoint,
            build_partition_metadata,
        )

        self._close_segment(RollReason.ACTIVE)
        if self.segments[-1].next_offset > 0:
            self._write_snapshot(self.segments[-1].next_offset)
        starts = tuple(EpochStart(*epoch) for epoch in self._epochs)
        checkpoint = build_leader_epoch_checkpoint(LeaderEpochCheckpoint(0, starts))
        (self.directory / LEADER_EPOCH_CHECKPOINT).write_bytes(checkpoint)
        if self.settings.topic_id is not None:
            metadata = build_partition_metadata(PartitionMetadata(0, self.settings.topic_id))
            (self.directory / PARTITION_METADATA).write_bytes(metadata)

    def _new_segment(self, base_offset: int) -> "_OpenSegment":
        log = (self.directory / f"{base_offset:020}.log").open("wb", buffering=_WRITE_BUFFER)
        return _OpenSegment(log, IndexBuilder(base_offset, self.settings.index_interval_bytes, self.states))

    def _close_segment(self, reason: RollReason) -> None:
        segment, indexes = self._segment, self._segment.indexes
        segment.finish_copy()
        segment.log.close()
        indexes.finish()
        stem = self.directory / f"{indexes.base_offset:020}"
        stem.with_suffix(".index").write_bytes(indexes.entries.offset_index)
        stem.with_suffix(".timeindex").write_bytes(indexes.entries.time_index)
        if indexes.transaction_index:
            stem.with_suffix(".txnindex").write_bytes(indexes.transaction_index)
        written = WrittenSegment(indexes.base_offset, self.next_offset, indexes.size, segment.batch_count, reason)
        self.segments.append(written)

    def _write_snapshot(self, offset: int) -> None:
        path = self.directory / f"{offset:020}.snapshot"
        path.write_bytes(build_producer_snapshot(self.states))

    def _add_epoch(self, header: BatchHeader) -> None:
        epoch = header.partition_leader_epoch
        if epoch >= 0 and (not self._epochs or epoch > self._epochs[-1][0]):
            first_offset = header.first_offset
            self._epochs.append((epoch, first_offset))


class _OpenSegment:
    """The segment that is appended to."""

    def __init__(self, log: BinaryIO, indexes: IndexBuilder) -> None:
        self.log = log
        self.indexes = indexes
        self.batch_count = 0
        self._first_timestamp = -1
        self._copy_range: tuple[LogFile, int, int] | None = None

    def why_rolled(self, header: BatchHeader, settings: RollSettings) -> RollReason:
        """Return the rule that requires a new segment before this batch; UNKNOWN if none does."""
        indexes = self.indexes
        if not self.batch_count or settings is NEVER:
            is_far = header.last_offset - indexes.base_offset > MAXIMUM_RELATIVE_OFFSET
            return RollReason.OFFSET_RANGE if is_far else RollReason.UNKNOWN
        closed = ClosedSegment(
            indexes.base_offset,
            indexes.size,
            self._first_timestamp,
            indexes.entries.offset_count,
            indexes.entries.time_count,
        )
        return why_rolled(closed, NextAppend(header.size, header.last_offset, header.max_timestamp), settings)

    def discard(self) -> None:
        """Remove the file again."""
        self.log.close()
        Path(self.log.name).unlink()

    def add(self, header: BatchHeader, marker: EndMarker | None) -> None:
        """Note a batch that was written."""
        if not self.batch_count:
            self._first_timestamp = header.max_timestamp
        self.batch_count += 1
        self.indexes.add(header, marker)

    def write(self, raw: bytes) -> None:
        self.finish_copy()
        self.log.write(raw)

    def copy(self, source: LogFile, position: int, size: int) -> None:
        """Note a stretch of an open log to copy; join it with the previous one if they touch.

        A large stretch is copied at once, so that the disk works while the next one is checked.
        """
        if self._copy_range is not None and self._copy_range[0] is source and sum(self._copy_range[1:]) == position:
            self._copy_range = (source, self._copy_range[1], self._copy_range[2] + size)
        else:
            self.finish_copy()
            self._copy_range = (source, position, size)
        if self._copy_range[2] >= COPIED_AT_ONCE:
            self.finish_copy()

    def finish_copy(self) -> None:
        if self._copy_range is not None:
            self.log.flush()
            source, position, size = self._copy_range
            source.copy_to(self.log.fileno(), position, size)
            self.log.seek(0, os.SEEK_END)
            self._copy_range = None
