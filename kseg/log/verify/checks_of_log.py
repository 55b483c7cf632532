"""Checks of a partition's batches: bytes, offsets within and between batches and segments, times, leader epochs."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.findings.finding_kinds import id_of_damage
from kseg.findings.findings import Findings
from kseg.formats.codes import DELETE_HORIZON_MASK, MAXIMUM_RELATIVE_OFFSET, NO_TIMESTAMP, TAIL_KINDS, DamageKind
from kseg.kernel.contract import LEAST, MOST
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.verify.checked_batches import CheckedBatch, offsets_problem
from kseg.reading.damage import Damage
from kseg.times import time_text

if TYPE_CHECKING:
    from kseg.log.partition.segment_files import SegmentFiles

REMEMBERED_EPOCHS = 10_000


class SeenEpoch(NamedTuple):
    """Where a leader epoch begins in the log."""

    epoch: int
    offset: int
    file: Path
    position: int


class LogChecks:
    """Takes a partition's batches in order; `findings` takes what is wrong with them.

    fold: passes the batches in which nothing happens; has what is known from those before. epochs: starts of leader
    epochs as batches have them, none of which lies below the log start offset. ends_with_epoch: whether the last batch
    has one. is_damaged: whether bytes of the log can't be read, so that what follows from the whole log can't be told.
    is_compacted: whether anything shows that compaction has been over the log.
    """

    def __init__(self, partition: PartitionLog, fold: HeaderFold, findings: Findings) -> None:
        self.fold = fold
        self._partition = partition
        self._findings = findings
        self._segment: SegmentFiles | None = None
        self._next_base: int | None = None
        self._is_last = False
        self._is_end_known = False
        self._batches_noticed = 0
        self._is_behind_damage = False
        self._gaps = self._missing = 0
        self._first_gap: tuple[Path, int] | None = None
        self.epochs: list[SeenEpoch] = []
        self.ends_with_epoch = False
        self._log_start = partition.log_start_offset()
        self.is_damaged = False
        self.is_compacted = partition.was_compacted()

    def begin(self, number: int) -> None:
        """Continues with segment `number` of the partition."""
        segments = self._partition.segments
        self._segment = segments[number]
        self._is_last = self._partition.is_last(self._segment)
        self._next_base = segments[number + 1].base_offset if number + 1 < len(segments) else None
        if not self._is_end_known:
            self.fold.next_offset = min(self._segment.base_offset, MOST)
            self._is_end_known = True

    @property
    def next_offset(self) -> int | None:
        """The offset after the largest so far; None if that isn't known."""
        return self.fold.next_offset if self._is_end_known else None

    @property
    def offset_bound(self) -> int:
        """Batches that end below need no look at their offsets if they follow on."""
        assert self._segment is not None
        base = self._segment.base_offset
        if self.fold.next_offset < base or self._is_epoch_wanted:
            return LEAST
        bounds = [base + MAXIMUM_RELATIVE_OFFSET + 1]
        if self._next_base is not None:
            bounds.append(self._next_base)
        if self.fold.next_offset <= self._log_start:
            bounds.append(self._log_start)  # epochs count from there on
        return min(*bounds, MOST)

    @property
    def unneeded(self) -> int:
        """Events that nothing follows from any more: in a compacted log offsets and sequences are missing."""
        if not self.is_compacted:
            return 0
        traces = Event.SPARSE | Event.DELETE_HORIZON | Event.SEQUENCE
        return traces if self._first_gap is None else traces | Event.GAP

    @property
    def _is_epoch_wanted(self) -> bool:
        """Whether the largest epoch has no start yet above the log start offset."""
        if self.fold.next_offset <= self._log_start or len(self.epochs) == REMEMBERED_EPOCHS:
            return False
        return self.fold.leader_epoch > (self.epochs[-1].epoch if self.epochs else -1)

    @property
    def _file(self) -> Path:
        assert self._segment is not None
        return self._segment.path

    def pass_over(self) -> None:
        """Leaves out a segment that can't be opened: what comes next isn't known."""
        self.is_damaged = True
        self._is_end_known = False

    def notice_passed(self) -> None:
        """Notices whether the fold has passed batches since this was last asked, or one was taken here."""
        if self.fold.batches > self._batches_noticed:
            self._batches_noticed = self.fold.batches
            self.ends_with_epoch = self.fold.leader_epoch >= 0
            self._is_behind_damage = False

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
        self._is_behind_damage = False

    def pass_batch(self, batch: CheckedBatch) -> None:
        """Adds a batch that all checks have taken to the fold."""
        self.fold.take(batch.header._replace(base_offset=batch.base_offset))
        self.fold.ends_keyed = None if batch.header.is_control else batch.ends_keyed
        self._batches_noticed = self.fold.batches

    def finish(self) -> None:
        """Reports what is only known at the end."""
        if self.is_compacted and self._first_gap is not None:
            file, position = self._first_gap
            missing, gaps = self._missing + self.fold.missing, self._gaps + self.fold.gaps
            sentence = f"{missing} offsets are missing in {gaps} places from here on: compaction removed them"
            self._findings.add("offsets-compacted", file, sentence, position=position)

    def _check_order(self, batch: CheckedBatch) -> None:
        expected, first = self.fold.next_offset, batch.base_offset
        assert self._segment is not None
        if batch.header.base_offset is None and not batch.offsets:
            return  # a wrapper whose messages can't be read doesn't tell where it begins
        if first > expected:
            self._take_gap(batch, expected)
        if first >= expected or first < self._segment.base_offset:
            return  # offsets below the base are found as such
        if (first, batch.last_offset, batch.header.crc) in self.fold.recent():
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
        is_unkeyed = begins_keyed is False or self.fold.ends_keyed is False
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
            told, found = (time_text(each, none="none") for each in (header.max_timestamp, batch.largest_timestamp))
            sentence = f"the header's largest time is {told}, the records' {found}"
            self._add("max-timestamp", batch, sentence)

    def _check_epoch(self, batch: CheckedBatch) -> None:
        epoch = batch.header.partition_leader_epoch
        self.ends_with_epoch = epoch >= 0
        if epoch < 0:
            return
        if epoch < self.fold.leader_epoch:
            self._add("leader-epoch-falls", batch, f"leader epoch {epoch} after {self.fold.leader_epoch}")
        if batch.last_offset < self._log_start or len(self.epochs) == REMEMBERED_EPOCHS:
            return  # a broker forgets epochs that end below the log start offset
        if not self.epochs or epoch > self.epochs[-1].epoch:
            start = max(batch.base_offset, self._log_start)
            self.epochs.append(SeenEpoch(epoch, start, self._file, batch.header.position))

    def _add(self, finding_id: str, batch: CheckedBatch, sentence: str) -> None:
        offsets = (batch.base_offset, batch.last_offset)
        self._findings.add(finding_id, self._file, sentence, position=batch.header.position, offsets=offsets)
