"""Checks of a partition's batches: bytes, offsets within and between batches and segments, times, leader epochs."""

from collections import deque
from pathlib import Path
from typing import NamedTuple

from kseg.formats.codes import DELETE_HORIZON_MASK, MAXIMUM_RELATIVE_OFFSET, NO_TIMESTAMP, TAIL_KINDS, DamageKind
from kseg.log.partition.partition_log import PartitionLog, SegmentFiles
from kseg.log.verify.checked_batches import CheckedBatch, offsets_problem
from kseg.log.verify.finding_kinds import id_of_damage
from kseg.log.verify.findings import Findings
from kseg.reading.damage import Damage

REMEMBERED_BATCHES = 256
"""A batch's twin is recognised among so many batches before it."""
REMEMBERED_EPOCHS = 10_000


class SeenEpoch(NamedTuple):
    """Where a leader epoch begins in the log."""

    epoch: int
    offset: int
    file: Path
    position: int


class LogChecks:
    """Takes a partition's batches in order; `findings` takes what is wrong with them.

    next_offset: after the last batch. largest_timestamp: so far. epochs: starts of leader epochs as batches have
    them, none of which lies below the log start offset. ends_with_epoch: whether the last batch has one.
    is_damaged: whether bytes of the log can't be read, so that what follows from the whole log can't be told.
    is_compacted: whether anything shows that compaction has been over the log.
    """

    def __init__(self, partition: PartitionLog, findings: Findings) -> None:
        self._partition = partition
        self._findings = findings
        self._segment: SegmentFiles | None = None
        self._next_base: int | None = None
        self._is_last = False
        self._ends_keyed: bool | None = None
        self._recent: deque[tuple[int, int, int]] = deque(maxlen=REMEMBERED_BATCHES)
        self._is_behind_damage = False
        self._gaps = self._missing = 0
        self._first_gap: tuple[Path, int] | None = None
        self.next_offset: int | None = None
        self.largest_timestamp = -1
        self.epochs: list[SeenEpoch] = []
        self.ends_with_epoch = False
        self._log_start = partition.log_start_offset()
        self._largest_epoch = -1
        self.is_damaged = False
        self.is_compacted = partition.was_compacted()

    def begin(self, number: int) -> None:
        """Continues with segment `number` of the partition."""
        segments = self._partition.segments
        self._segment = segments[number]
        self._is_last = number + 1 == len(segments)
        self._next_base = None if self._is_last else segments[number + 1].base_offset
        if self.next_offset is None:
            self.next_offset = self._segment.base_offset

    @property
    def _file(self) -> Path:
        assert self._segment is not None
        return self._segment.path

    def pass_over(self) -> None:
        """Leaves out a segment that can't be opened: what comes next isn't known."""
        self.is_damaged = True
        self.next_offset = None

    def take_damage(self, damage: Damage) -> None:
        """Takes a stretch of the log that can't be read."""
        self.is_damaged = self.is_damaged or damage.kind not in TAIL_KINDS or not self._is_last
        finding_id = id_of_damage(damage.kind, is_last=self._is_last)
        lost = f", {damage.size} bytes lost" if damage.size else ""
        if damage.kind is DamageKind.ZERO_TAIL:
            lost = f", {damage.size} bytes"
        first, last = self.next_offset, None if damage.next_offset is None else damage.next_offset - 1
        if damage.size == 0 or first is None or last is None or last < first:
            first = last = None
        self._findings.add(
            finding_id, self._file, f"{damage.detail}{lost}", position=damage.position, offsets=(first, last)
        )
        self._is_behind_damage = damage.size > 0

    def take(self, batch: CheckedBatch) -> None:
        """Takes the next batch."""
        if batch.damage is not None:
            self.take_damage(batch.damage)
        self._check_order(batch)
        self._check_bounds(batch)
        self._check_records(batch)
        self._check_epoch(batch)
        if batch.is_sparse or (batch.header.magic >= 2 and batch.header.attributes & DELETE_HORIZON_MASK):
            self.is_compacted = True
        self._recent.append((batch.base_offset, batch.last_offset, batch.header.crc))
        self.next_offset = max(self.next_offset or 0, batch.last_offset + 1)
        self.largest_timestamp = max(self.largest_timestamp, batch.header.max_timestamp)
        self._ends_keyed = None if batch.header.is_control else batch.ends_keyed
        self._is_behind_damage = False

    def finish(self) -> None:
        """Reports what is only known at the end."""
        if self.is_compacted and self._first_gap is not None:
            file, position = self._first_gap
            sentence = (
                f"{self._missing} offsets are missing in {self._gaps} places from here on: compaction removed them"
            )
            self._findings.add("offsets-compacted", file, sentence, position=position)

    def _check_order(self, batch: CheckedBatch) -> None:
        expected, first = self.next_offset, batch.base_offset
        assert expected is not None
        assert self._segment is not None
        if batch.header.base_offset is None and not batch.offsets:
            return  # a wrapper whose messages can't be read doesn't tell where it begins
        if first > expected:
            self._take_gap(batch, expected)
        if first >= expected or first < self._segment.base_offset:
            return  # offsets below the base are found as such
        if (first, batch.last_offset, batch.header.crc) in self._recent:
            finding_id, sentence = "duplicate-batch", f"the batch of offsets {first} to {batch.last_offset} comes again"
        else:
            finding_id, sentence = "offsets-fall", f"the batch begins with offset {first}, {expected} should follow"
        self._add(finding_id, batch, sentence)

    def _take_gap(self, batch: CheckedBatch, expected: int) -> None:
        self._gaps += 1
        self._missing += batch.base_offset - expected
        if self._first_gap is None:
            self._first_gap = self._file, batch.header.position
        if self._is_behind_damage:
            return  # the damage explains it
        count = batch.base_offset - expected
        where = "" if batch.header.position else " before the segment's first batch"
        sentence = f"offsets {expected} to {batch.base_offset - 1}, {count} of them, are missing{where}"
        begins_keyed = None if batch.header.is_control else batch.begins_keyed
        is_unkeyed = begins_keyed is False or self._ends_keyed is False
        self._findings.add(
            "offsets-lost" if is_unkeyed else "offsets-missing",
            self._file,
            sentence,
            position=batch.header.position,
            offsets=(expected, batch.base_offset - 1),
            unless_compacted=True,
        )

    def _check_bounds(self, batch: CheckedBatch) -> None:
        assert self._segment is not None
        base = self._segment.base_offset
        if batch.base_offset < base:
            self._add("offset-below-base", batch, f"offset {batch.base_offset} in the segment of base offset {base}")
        if batch.last_offset > base + MAXIMUM_RELATIVE_OFFSET:
            self._add("offset-too-far", batch, f"offset {batch.last_offset} in the segment of base offset {base}")
        elif self._next_base is not None and batch.last_offset >= self._next_base:
            sentence = f"offset {batch.last_offset}, but the next segment begins with {self._next_base}"
            self._add("segment-overlap", batch, sentence)

    def _check_records(self, batch: CheckedBatch) -> None:
        if batch.damage is not None:
            return
        wrong = offsets_problem(batch)
        if wrong is not None:
            self._add("record-offsets", batch, wrong)
        header = batch.header
        if header.magic < 1 or not batch.offsets or header.is_log_append_time:
            return
        if header.max_timestamp not in (batch.largest_timestamp, max(batch.largest_timestamp, NO_TIMESTAMP)):
            sentence = f"the header's largest time is {header.max_timestamp}, the records' {batch.largest_timestamp}"
            self._add("max-timestamp", batch, sentence)

    def _check_epoch(self, batch: CheckedBatch) -> None:
        epoch = batch.header.partition_leader_epoch
        self.ends_with_epoch = epoch >= 0
        if epoch < 0:
            return
        if epoch < self._largest_epoch:
            self._add("leader-epoch-falls", batch, f"leader epoch {epoch} after {self._largest_epoch}")
        self._largest_epoch = max(self._largest_epoch, epoch)
        if batch.last_offset < self._log_start or len(self.epochs) == REMEMBERED_EPOCHS:
            return  # a broker forgets epochs that end below the log start offset
        if not self.epochs or epoch > self.epochs[-1].epoch:
            start = max(batch.base_offset, self._log_start)
            self.epochs.append(SeenEpoch(epoch, start, self._file, batch.header.position))

    def _add(self, finding_id: str, batch: CheckedBatch, sentence: str) -> None:
        offsets = (batch.base_offset, batch.last_offset)
        self._findings.add(finding_id, self._file, sentence, position=batch.header.position, offsets=offsets)
