"""Checks of a log: its batches and records, and its producers' sequences and transactions."""

from collections import deque
from pathlib import Path
from typing import NamedTuple

from kseg.errors import FileError, OpenError, plural
from kseg.findings.findings import MARKER_MAY_BE_LOST, Finding, Findings, open_since
from kseg.findings.kinds import id_of_damage
from kseg.formats.codes import (
    DELETE_HORIZON_MASK,
    LIKENESSES,
    MAXIMUM_RELATIVE_OFFSET,
    MAXIMUM_TRANSACTION_MS,
    NO_TIMESTAMP,
    TAIL_KINDS,
    ControlType,
    DamageKind,
)
from kseg.index.entries import TransactionIndex
from kseg.index.producers import KnownProducers, ProducerSnapshot, snapshot_problem
from kseg.kernel.contract import LEAST, MOST
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.log.transaction_snapshots import carried_transactions
from kseg.reading.blocks import Damage
from kseg.times import time_text
from kseg.verify.batches import JUDGED, CheckedBatch, offsets_problem
from kseg.verify.stops import Stop, stop_of

REMEMBERED_EPOCHS = 10_000


class SeenEpoch(NamedTuple):
    """The start of a leader epoch in the log."""

    epoch: int
    offset: int
    file: Path
    position: int


class LogChecks:
    """Checks of the batches of a partition, taken in order; `findings` collects the problems.

    fold: passes the batches without events, and has the facts from earlier batches. epochs: starts of leader epochs in
    the batches, none below the log start offset. ends_with_epoch: the last batch has one. is_damaged: bytes of the log
    can't be read, so that conclusions from the complete log are impossible. is_compacted: something shows that
    compaction has cleaned the log.
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
        self._is_gapless = partition.is_gapless()

    def begin(self, number: int) -> None:
        """Continue with segment `number` of the partition."""
        segments = self._partition.segments
        self._segment = segments[number]
        self._is_last = self._partition.is_last(self._segment)
        self._next_base = segments[number + 1].base_offset if number + 1 < len(segments) else None
        if not self._is_end_known:
            self.fold.next_offset = min(self._segment.base_offset, MOST)
            self._is_end_known = True

    @property
    def next_offset(self) -> int | None:
        """The offset after the largest so far, or None if unknown."""
        return self.fold.next_offset if self._is_end_known else None

    @property
    def offset_bound(self) -> int:
        """The bound below which batches need no check of their offsets if they are consecutive."""
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
        """Events without further consequences: in a compacted log offsets and sequences are missing."""
        if not self.is_compacted:
            return 0
        traces = Event.SPARSE | Event.DELETE_HORIZON | Event.SEQUENCE
        return traces if self._first_gap is None else traces | Event.GAP

    @property
    def _is_epoch_wanted(self) -> bool:
        """True if the largest epoch has no start yet above the log start offset."""
        if self.fold.next_offset <= self._log_start or len(self.epochs) == REMEMBERED_EPOCHS:
            return False
        return self.fold.leader_epoch > (self.epochs[-1].epoch if self.epochs else -1)

    @property
    def _file(self) -> Path:
        assert self._segment is not None
        return self._segment.path

    def pass_over(self) -> None:
        """Skip a segment that can't be opened: the next offset is unknown."""
        self.is_damaged = True
        self._is_end_known = False

    def notice_passed(self) -> None:
        """Note batches that the fold has passed, or that were taken here, since the last call."""
        if self.fold.batches > self._batches_noticed:
            self._batches_noticed = self.fold.batches
            self.ends_with_epoch = self.fold.leader_epoch >= 0
            self._is_behind_damage = False

    def take_damage(self, damage: Damage) -> None:
        """Take an unreadable stretch of the log."""
        self.is_damaged = self.is_damaged or damage.kind not in TAIL_KINDS or not self._is_last
        finding_id = id_of_damage(damage.kind, is_last=self._is_last)
        lost = f", {plural(damage.size, 'byte')} lost" if damage.size else ""
        if damage.kind in (DamageKind.ZERO_TAIL, *LIKENESSES):
            lost = f", {plural(damage.size, 'byte')}"
        first, last = self.next_offset, None if damage.next_offset is None else damage.next_offset - 1
        if damage.size == 0 or first is None or (last is not None and last < first):
            first = last = None
        self._findings.add(
            finding_id, self._file, f"{damage.detail}{lost}", position=damage.position, offsets=(first, last)
        )
        self._is_behind_damage = damage.size > 0

    def take(self, batch: CheckedBatch) -> None:
        """Check the next batch."""
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
        """Add a batch that all checks have taken to the fold."""
        self.fold.take(batch.header._replace(base_offset=batch.base_offset))
        self.fold.ends_keyed = None if batch.header.is_control else batch.ends_keyed
        self._batches_noticed = self.fold.batches

    def finish(self) -> None:
        """Report problems known only at the end."""
        if self.is_compacted and self._first_gap is not None:
            file, position = self._first_gap
            missing, gaps = self._missing + self.fold.missing, self._gaps + self.fold.gaps
            sentence = (
                f"from here on, {plural(missing, 'offset is', 'offsets are')} missing in {plural(gaps, 'place')}:"
                " compaction removed them"
            )
            self._findings.add("offsets-compacted", file, sentence, position=position)

    def _check_order(self, batch: CheckedBatch) -> None:
        expected, first = self.fold.next_offset, batch.base_offset
        assert self._segment is not None
        if batch.header.base_offset is None and not batch.offsets:
            return  # a wrapper with unreadable messages doesn't show its start
        if first > expected:
            self._take_gap(batch, expected)
        if first >= expected or first < self._segment.base_offset:
            return  # offsets below the base have their own finding
        if (first, batch.last_offset, batch.header.crc) in self.fold.recent():
            finding_id, sentence = "duplicate-batch", f"the batch of offsets {first} to {batch.last_offset} is repeated"
        else:
            finding_id, sentence = "offsets-fall", f"the batch begins at offset {first}, expected {expected}"
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
        last = batch.base_offset - 1
        which = f"offset {expected} is" if count == 1 else f"offsets {expected} to {last}, {count} of them, are"
        sentence = f"{which} missing{where}"
        sentence += self._empty_between(expected, batch.base_offset)
        begins_keyed = None if batch.header.is_control else batch.begins_keyed
        is_unkeyed = begins_keyed is False or self.fold.ends_keyed is False or self._is_gapless
        self._findings.add(
            "offsets-lost" if is_unkeyed else "offsets-missing",
            self._file,
            sentence,
            position=batch.header.position,
            offsets=(expected, batch.base_offset - 1),
            unless_compacted=True,
        )

    def _empty_between(self, first: int, end: int) -> str:
        """Return the name of a log that should have some offsets and has no bytes."""
        empty = (each for each in self._partition.segments if not each.size and first <= each.base_offset < end)
        found = next(empty, None)
        return "" if found is None else f"; {found.path.name} is empty"

    def _check_bounds(self, batch: CheckedBatch) -> None:
        assert self._segment is not None
        base = self._segment.base_offset
        if batch.base_offset < base:
            self._add("offset-below-base", batch, f"offset {batch.base_offset} in the segment with base offset {base}")
        if batch.last_offset > base + MAXIMUM_RELATIVE_OFFSET:
            self._add("offset-too-far", batch, f"offset {batch.last_offset} in the segment with base offset {base}")
        elif self._next_base is not None and batch.last_offset >= self._next_base:
            sentence = f"offset {batch.last_offset}, but the next segment begins at {self._next_base}"
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
            sentence = f"the header's largest timestamp is {told}, the records' is {found}"
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


_SEQUENCES = 0x7FFFFFFF


class _OpenTransaction(NamedTuple):
    """A transaction without an end: the place of its first batch, or of a snapshot that has it, and its time.

    The time is from the broker's clock: its last LogAppendTime, or the next marker or such timestamp. Records' own
    timestamps may be anything. may_have_ended: damage is after its first batch.
    """

    file: Path
    position: int | None
    seen_at: int | None = None
    may_have_ended: bool = False


class _AbortedStart(NamedTuple):
    """The first readable record of an aborted transaction; `is_whole`: the log start offset cuts none off."""

    first_offset: int | None
    is_whole: bool


class ProducerChecks:
    """Checks of a partition's producers, batch by batch; `findings` collects the problems.

    Reports conclusions from the complete log only without damage: `forget` marks damage.
    """

    def __init__(self, partition: PartitionLog, fold: HeaderFold, known: KnownProducers, findings: Findings) -> None:
        self._fold = fold
        self._findings = findings
        self._partition = partition
        self._first_offset = partition.base_offsets[0] if partition.base_offsets else 0
        self._log_start = partition.log_start_offset()
        self._known = known
        self._open_by_producer: dict[int, _OpenTransaction] = {}
        carried = carried_transactions(partition)
        self._is_doubted = False
        self._carried_starts = {each: carried.begun[each] for each in carried.confirmed}
        self._untimed_producers: set[int] = set()
        self._first_readable: dict[int, int] = {}
        self._aborted_starts: dict[tuple[int, int], _AbortedStart] = {}
        self._without_records: set[tuple[int, int]] = set()
        self._is_whole = True
        self._clock = -1
        self._next_offset = self._first_offset
        self._snapshots = _readable_snapshots(partition, findings)
        self._file = partition.path

    def begin(self, segment: SegmentFiles) -> None:
        """Continue with a segment."""
        self._file = segment.path
        self._aborted_starts.clear()
        self._without_records.clear()

    def forget(self) -> None:
        """Note that a part of the log can't be read."""
        self._is_whole = False

    def take_damage(self, damage: Damage) -> None:
        """Take an unreadable stretch of the log: it may have had a marker."""
        if damage.kind is not DamageKind.ZERO_TAIL:
            self._doubt_open()

    def pass_over(self) -> None:
        """Skip a segment that can't be opened."""
        self._is_whole = False
        self._snapshots.clear()
        self._doubt_open()

    @property
    def offset_bound(self) -> int:
        """The offset of the next snapshot."""
        return min(self._snapshots[0][0], MOST) if self._snapshots else MOST

    def notice_passed(self) -> None:
        """Note the batches that the fold has passed: consecutive ones of known producers, and others."""
        self._next_offset = max(self._next_offset, self._fold.next_offset)
        for producer_id, seen_at in self._fold.take_continued():
            self._see(producer_id, seen_at, self._open_by_producer[producer_id])
        self._clock = max(self._clock, self._fold.append_time)

    def take(self, batch: CheckedBatch) -> None:
        """Check the next batch."""
        self._compare_snapshots(batch.base_offset)
        self._next_offset = max(self._next_offset, batch.last_offset + 1)
        self._take_producer(batch)

    @property
    def watched(self) -> int:
        """The relevant events now: the broker's times while a batch waits for one, readable beginnings."""
        watched = JUDGED
        if self._untimed_producers:
            watched |= Event.APPEND_TIME
        if len(self._first_readable) < len(self._known.states.open_transactions):
            watched |= Event.TRANSACTIONAL
        return watched

    def _see(self, producer_id: int, seen_at: int | None, opened: _OpenTransaction) -> None:
        """Note a batch of an open transaction, with the broker's time if it has one."""
        self._open_by_producer[producer_id] = opened._replace(seen_at=seen_at)
        (self._untimed_producers.add if seen_at is None else self._untimed_producers.discard)(producer_id)

    def _take_producer(self, batch: CheckedBatch) -> None:
        header = batch.header
        if batch.marker is not None or header.is_log_append_time:
            self._read_clock(header.max_timestamp)
        if header.producer_id < 0 or header.base_offset is None:
            return
        if self._is_whole:
            self._check_sequence(batch)
        completed = self._known.add(header, batch.marker)
        if batch.marker is not None:
            if completed is None:
                self._without_records.add((header.producer_id, batch.last_offset))
            self._open_by_producer.pop(header.producer_id, None)
            self._carried_starts.pop(header.producer_id, None)
        elif header.is_transactional and not header.is_control:
            opened = self._open_by_producer.get(header.producer_id) or _OpenTransaction(self._file, header.position)
            self._see(header.producer_id, header.max_timestamp if header.is_log_append_time else None, opened)
            if batch.last_offset >= self._log_start:
                self._first_readable.setdefault(header.producer_id, max(batch.base_offset, self._log_start))
        if batch.marker is not None:
            first_readable = self._first_readable.pop(header.producer_id, None)
            if batch.marker.control_type is ControlType.ABORT and completed is not None:
                is_whole = completed.first_offset >= self._log_start
                first_offset = completed.first_offset if is_whole else first_readable
                self._aborted_starts[header.producer_id, batch.last_offset] = _AbortedStart(first_offset, is_whole)

    def end(self, segment: SegmentFiles, size: int) -> None:
        """Compare a segment's transaction index after all its batches; size: bytes of its log then."""
        if self._is_whole:
            self._compare_transactions(segment, size)

    def finish(self) -> None:
        """Report problems known only at the end."""
        self._compare_snapshots(None)
        before = sorted(self._carried_starts.keys() - self._open_by_producer.keys())
        if before:
            last = self._partition.snapshots[max(self._partition.snapshots)].path
            self._open_by_producer |= dict.fromkeys(
                before, _OpenTransaction(last, None, may_have_ended=self._is_doubted)
            )
        for producer_id, transaction in self._open_by_producer.items():
            self._tell_open(producer_id, transaction)
        is_trusted = all(each.offset_index is not None for each in self._partition.segments)  # else some are recovered
        if (
            self._open_by_producer
            and is_trusted
            and not self._partition.snapshots
            and stop_of(self._partition) is Stop.CLEAN
        ):
            sentence = f"no snapshot, but {plural(len(self._open_by_producer), 'open transaction')}"
            self._findings.add("producer-state-missing", self._partition.path, sentence)

    # --- sequences ---------------------------------------------------------------------------------------------------

    def _check_sequence(self, batch: CheckedBatch) -> None:
        producer_id, epoch, sequence = batch.header.producer
        known = self._known.states.producers.known(producer_id)
        if known is None:
            return
        if epoch < known.epoch:
            self._add("producer-epoch-falls", batch, f"producer {producer_id}: epoch {epoch} after {known.epoch}")
            return
        if batch.header.is_control or sequence < 0:
            return
        is_same_epoch = epoch == known.epoch
        if is_same_epoch and known.last_sequence < 0:
            return  # retention may have deleted its batches, only its marker is known
        expected = (known.last_sequence + 1) & _SEQUENCES if is_same_epoch else 0
        if sequence != expected:
            self._tell_sequence(batch, expected)

    def _tell_sequence(self, batch: CheckedBatch, expected: int) -> None:
        producer_id, _, sequence = batch.header.producer
        ahead = (sequence - expected) & _SEQUENCES
        finding_id = "sequence-gap" if ahead <= _SEQUENCES // 2 else "sequence-repeated"
        sentence = f"producer {producer_id}: sequence {sequence}, expected {expected}"
        self._add(finding_id, batch, sentence)

    def _add(self, finding_id: str, batch: CheckedBatch, sentence: str) -> None:
        self._findings.add(
            finding_id,
            self._file,
            sentence,
            position=batch.header.position,
            offsets=(batch.base_offset, batch.last_offset),
            unless_compacted=True,
        )

    # --- transactions ------------------------------------------------------------------------------------------------

    def _read_clock(self, timestamp: int) -> None:
        """Record a time of the broker's clock. Transactions that are open at this point are older."""
        self._clock = max(self._clock, timestamp)
        for producer_id in self._untimed_producers:
            if producer_id in self._open_by_producer:
                self._open_by_producer[producer_id] = self._open_by_producer[producer_id]._replace(seen_at=timestamp)
        self._untimed_producers.clear()

    def _doubt_open(self) -> None:
        self._is_doubted = True
        for producer_id, opened in self._open_by_producer.items():
            self._open_by_producer[producer_id] = opened._replace(may_have_ended=True)

    def _tell_open(self, producer_id: int, transaction: _OpenTransaction) -> None:
        first_offset = self._carried_starts.get(producer_id, self._known.states.open_transactions.get(producer_id))
        waited = 0 if transaction.seen_at is None else self._clock - transaction.seen_at
        is_long = waited > MAXIMUM_TRANSACTION_MS
        since = f", for at least {waited} ms" if is_long else ""
        doubt = f"; {MARKER_MAY_BE_LOST}" if transaction.may_have_ended else ""
        sentence = f"producer {producer_id}: {open_since(first_offset)}{since}{doubt}"
        finding_id = "long-transaction" if is_long and not transaction.may_have_ended else "open-transaction"
        self._findings.add_to_judge(
            Finding(
                finding_id,
                transaction.file,
                sentence,
                transaction.position,
                first_offset,
                producer_id=producer_id,
            )
        )

    def _compare_transactions(self, segment: SegmentFiles, size: int) -> None:
        """Compare in both directions: the index must have the log's aborts, and the log the indexed ones.

        The index is read after the log: if the log has grown since, it may have an entry for unread batches.
        """
        indexed: dict[tuple[int, int], int] = {}
        path = segment.path.with_suffix(".txnindex")
        if segment.transaction_index is not None:
            path = segment.transaction_index.path
            try:
                with TransactionIndex(path, segment.base_offset) as index:
                    indexed = {(entry.producer_id, entry.last_offset): entry.first_offset for entry in index.entries()}
            except OpenError:
                return  # another finding reports this
        self._find_unindexed(path, indexed)
        self._find_unfounded(path, indexed, self._next_offset if _has_grown(segment.path, size) else MOST)

    def _find_unindexed(self, path: Path, indexed: dict[tuple[int, int], int]) -> None:
        """Report aborts that aren't indexed, and remove the others from `indexed`."""
        for (producer_id, last_offset), (first_offset, is_whole) in self._aborted_starts.items():
            known = indexed.pop((producer_id, last_offset), None)
            if first_offset is None:
                continue  # all its records are below the log start offset
            if known is None:
                sentence = f"producer {producer_id}: aborted at offset {last_offset}, but no entry has it"
                self._add_transaction("transaction-unindexed", path, sentence, (first_offset, last_offset))
            elif known > first_offset:
                sentence = f"producer {producer_id}: begins at offset {first_offset}, the entry says {known}"
                self._add_transaction("transaction-unindexed", path, sentence, (first_offset, known - 1))
            elif is_whole and self._first_offset <= known < first_offset:
                sentence = f"producer {producer_id}: begins at offset {first_offset}, the entry says {known}"
                self._add_transaction("transaction-unfounded", path, sentence, (known, first_offset - 1))

    def _find_unfounded(self, path: Path, indexed: dict[tuple[int, int], int], end: int) -> None:
        """Report aborts that are indexed before an offset and in no log."""
        for (producer_id, last_offset), first_offset in indexed.items():
            if last_offset >= end:
                continue
            if first_offset == last_offset and (producer_id, last_offset) in self._without_records:
                continue  # before 2.4 a marker alone was a transaction without other records
            if first_offset >= self._first_offset:
                sentence = f"producer {producer_id}: no transaction from {first_offset} is aborted at {last_offset}"
                self._add_transaction("transaction-unfounded", path, sentence, (first_offset, last_offset))

    def _add_transaction(self, finding_id: str, path: Path, sentence: str, offsets: tuple[int, int]) -> None:
        self._findings.add(finding_id, path, sentence, offsets=offsets, unless_compacted=True)

    # --- snapshots ---------------------------------------------------------------------------------------------------

    def _compare_snapshots(self, offset: int | None) -> None:
        """Compare the snapshots up to an offset; all remaining ones if it is None."""
        while self._snapshots and (offset is None or self._snapshots[0][0] <= offset):
            end_offset, path = self._snapshots.popleft()
            if end_offset > self._next_offset and offset is None and self._next_offset > self._first_offset:
                sentence = f"taken at offset {end_offset}, the log ends at {self._next_offset}"
                self._findings.add("snapshot-beyond-end", path, sentence, offsets=(self._next_offset, end_offset - 1))
            elif self._is_whole and end_offset >= self._first_offset:
                self._compare_snapshot(path, end_offset)

    def _compare_snapshot(self, path: Path, end_offset: int) -> None:
        try:
            with ProducerSnapshot(path) as snapshot:
                if end_offset == self._first_offset and self._next_offset == end_offset:
                    self._known.states.start_with(snapshot.entries())  # the producers before the log's beginning
                is_newest = end_offset == max(self._partition.snapshots)
                finding_id = "producer-state-wrong" if is_newest else "snapshot-content"
                for sentence in self._known.contradictions(snapshot.entries(), end_offset):
                    self._findings.add(finding_id, path, sentence, unless_compacted=True)
        except FileError as error:
            if path.exists():  # otherwise a broker deleted it meanwhile
                self._findings.add("snapshot-unreadable", path, error.message)


def _has_grown(log: Path, size: int) -> bool:
    """Return True if the log has grown, or False if it has been deleted."""
    try:
        return log.stat().st_size > size
    except OSError:
        return False


def _readable_snapshots(partition: PartitionLog, findings: Findings) -> deque[tuple[int, Path]]:
    """Return end offsets and paths of the snapshots that a broker would use; report the problems of the others."""
    readable: deque[tuple[int, Path]] = deque()
    for end_offset, file in partition.snapshots.items():
        problem = snapshot_problem(file.path)
        if problem is None:
            readable.append((end_offset, file.path))
        elif file.path.exists():  # otherwise a broker deleted it meanwhile
            findings.add("snapshot-unreadable", file.path, problem)
    return readable
