"""Checks what a partition's batches say about their producers: sequences, transactions, .txnindex and .snapshot."""

from collections import deque
from pathlib import Path
from typing import NamedTuple

from kseg.errors import KsegError, OpenError
from kseg.findings.findings import MARKER_MAY_BE_LOST, Finding, Findings
from kseg.formats.codes import ControlType, DamageKind
from kseg.index.producer_snapshot import ProducerSnapshot, snapshot_problem
from kseg.index.transaction_index import TransactionIndex
from kseg.kafka_defaults import MAXIMUM_TRANSACTION_MS
from kseg.kernel.contract import MOST
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.partition.known_producers import KnownProducers
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.verify.batch_events import JUDGED
from kseg.log.verify.checked_batches import CheckedBatch
from kseg.reading.damage import Damage

_SEQUENCES = 0x7FFFFFFF


class _OpenTransaction(NamedTuple):
    """A transaction without an end: where its first batch stands, and when it had certainly been written.

    The broker's clock says so in its last LogAppendTime, or in the next marker or such time: records' own times
    may be anything.
    may_have_ended: damage lies after its first batch.
    """

    file: Path
    position: int
    seen_at: int | None = None
    may_have_ended: bool = False


class _Aborted(NamedTuple):
    """Where an aborted transaction's records begin that can be read; `is_whole`: the log start offset cuts none off."""

    first_offset: int | None
    is_whole: bool


class ProducerChecks:
    """Takes a partition's batches in order; `findings` takes what is wrong with their producers.

    Reports what needs the whole log only while no damage was met: `forget` says that there was one.
    """

    def __init__(self, partition: PartitionLog, fold: HeaderFold, known: KnownProducers, findings: Findings) -> None:
        self._fold = fold
        self._findings = findings
        self._partition = partition
        self._first_offset = partition.base_offsets[0] if partition.base_offsets else 0
        self._log_start = partition.log_start_offset()
        self._known = known
        self._open: dict[int, _OpenTransaction] = {}
        self._unseen: set[int] = set()
        self._first_readable: dict[int, int] = {}
        self._aborted: dict[tuple[int, int], _Aborted] = {}
        self._without_records: set[tuple[int, int]] = set()
        self._is_whole = True
        self._clock = -1
        self._next_offset = self._first_offset
        self._snapshots = _readable_snapshots(partition, findings)
        self._file = partition.path

    def begin(self, segment: SegmentFiles) -> None:
        """Continues with a segment."""
        self._file = segment.path
        self._aborted.clear()
        self._without_records.clear()

    def forget(self) -> None:
        """Records that a part of the log can't be read."""
        self._is_whole = False

    def take_damage(self, damage: Damage) -> None:
        """Takes a stretch of the log that can't be read: a marker may have stood there."""
        if damage.kind is not DamageKind.ZERO_TAIL:
            self._doubt_open()

    def pass_over(self) -> None:
        """Leaves out a segment that can't be opened."""
        self._is_whole = False
        self._snapshots.clear()
        self._doubt_open()

    @property
    def offset_bound(self) -> int:
        """Where the next snapshot was taken."""
        return min(self._snapshots[0][0], MOST) if self._snapshots else MOST

    def notice_passed(self) -> None:
        """Takes over what the fold has passed: batches of known producers that follow on, and others."""
        self._next_offset = max(self._next_offset, self._fold.next_offset)
        for producer_id, seen_at in self._fold.continued():
            self._see(producer_id, seen_at, self._open[producer_id])
        self._clock = max(self._clock, self._fold.append_time)

    def take(self, batch: CheckedBatch) -> None:
        """Takes the next batch."""
        self._compare_snapshots(batch.base_offset)
        self._next_offset = max(self._next_offset, batch.last_offset + 1)
        self._take_producer(batch)

    @property
    def watched(self) -> int:
        """The events that matter now: the broker's times while a batch waits for one, beginnings that can be read."""
        watched = JUDGED
        if self._unseen:
            watched |= Event.APPEND_TIME
        if len(self._first_readable) < len(self._known.states.open_transactions):
            watched |= Event.TRANSACTIONAL
        return watched

    def _see(self, producer_id: int, seen_at: int | None, opened: _OpenTransaction) -> None:
        """Takes a batch of an open transaction, with the broker's time if it has one."""
        self._open[producer_id] = opened._replace(seen_at=seen_at)
        (self._unseen.add if seen_at is None else self._unseen.discard)(producer_id)

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
            self._open.pop(header.producer_id, None)
        elif header.is_transactional and not header.is_control:
            opened = self._open.get(header.producer_id) or _OpenTransaction(self._file, header.position)
            self._see(header.producer_id, header.max_timestamp if header.is_log_append_time else None, opened)
            if batch.last_offset >= self._log_start:
                self._first_readable.setdefault(header.producer_id, max(batch.base_offset, self._log_start))
        if batch.marker is not None:
            first_readable = self._first_readable.pop(header.producer_id, None)
            if batch.marker.control_type is ControlType.ABORT and completed is not None:
                is_whole = completed.first_offset >= self._log_start
                first_offset = completed.first_offset if is_whole else first_readable
                self._aborted[header.producer_id, batch.last_offset] = _Aborted(first_offset, is_whole)

    def end(self, segment: SegmentFiles, size: int) -> None:
        """Compares a segment's transaction index, when all its batches were taken; size: bytes of its log then."""
        if self._is_whole:
            self._compare_transactions(segment, size)

    def finish(self) -> None:
        """Reports what is only known at the end."""
        self._compare_snapshots(None)
        for producer_id, transaction in self._open.items():
            self._tell_open(producer_id, transaction)

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
            return  # its batches may have gone by retention, only its marker is known
        expected = (known.last_sequence + 1) & _SEQUENCES if is_same_epoch else 0
        if sequence != expected:
            self._tell_sequence(batch, expected)

    def _tell_sequence(self, batch: CheckedBatch, expected: int) -> None:
        producer_id, _, sequence = batch.header.producer
        ahead = (sequence - expected) & _SEQUENCES
        finding_id = "sequence-gap" if ahead <= _SEQUENCES // 2 else "sequence-repeated"
        sentence = f"producer {producer_id}: sequence {sequence}, {expected} should follow"
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
        """Takes a time of the broker's clock: transactions that are open now are older."""
        self._clock = max(self._clock, timestamp)
        for producer_id in self._unseen:
            if producer_id in self._open:
                self._open[producer_id] = self._open[producer_id]._replace(seen_at=timestamp)
        self._unseen.clear()

    def _doubt_open(self) -> None:
        for producer_id, opened in self._open.items():
            self._open[producer_id] = opened._replace(may_have_ended=True)

    def _tell_open(self, producer_id: int, transaction: _OpenTransaction) -> None:
        first_offset = self._known.states.open_transactions.get(producer_id)
        waited = 0 if transaction.seen_at is None else self._clock - transaction.seen_at
        is_long = waited > MAXIMUM_TRANSACTION_MS
        since = f", for {waited} ms at least" if is_long else ""
        doubt = f"; {MARKER_MAY_BE_LOST}" if transaction.may_have_ended else ""
        sentence = f"producer {producer_id}: open since offset {first_offset}{since}{doubt}"
        finding_id = "long-transaction" if is_long and not transaction.may_have_ended else "open-transaction"
        self._findings.add_to_judge(Finding(finding_id, transaction.file, sentence, transaction.position, first_offset))

    def _compare_transactions(self, segment: SegmentFiles, size: int) -> None:
        """Both ways: what the log's markers abort must be indexed, what is indexed must be in the log.

        The index is read after the log: of a log that has grown since it may name what wasn't read.
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
        """Compares what markers abort with what is indexed, and removes from that what both have."""
        for (producer_id, last_offset), (first_offset, is_whole) in self._aborted.items():
            known = indexed.pop((producer_id, last_offset), None)
            if first_offset is None:
                continue  # all its records lie below the log start offset
            if known is None:
                sentence = f"producer {producer_id}: aborted at offset {last_offset}, no entry says so"
                self._add_transaction("transaction-unindexed", path, sentence, (first_offset, last_offset))
            elif known > first_offset:
                sentence = f"producer {producer_id}: begins at offset {first_offset}, the entry says {known}"
                self._add_transaction("transaction-unindexed", path, sentence, (first_offset, known - 1))
            elif is_whole and self._first_offset <= known < first_offset:
                sentence = f"producer {producer_id}: begins at offset {first_offset}, the entry says {known}"
                self._add_transaction("transaction-unfounded", path, sentence, (known, first_offset - 1))

    def _find_unfounded(self, path: Path, indexed: dict[tuple[int, int], int], end: int) -> None:
        """Finds what is indexed before an offset and in no log."""
        for (producer_id, last_offset), first_offset in indexed.items():
            if last_offset >= end:
                continue
            if first_offset == last_offset and (producer_id, last_offset) in self._without_records:
                continue  # before 2.4 a marker alone was a transaction, of no record but itself
            if first_offset >= self._first_offset:
                sentence = f"producer {producer_id}: no transaction from {first_offset} is aborted at {last_offset}"
                self._add_transaction("transaction-unfounded", path, sentence, (first_offset, last_offset))

    def _add_transaction(self, finding_id: str, path: Path, sentence: str, offsets: tuple[int, int]) -> None:
        self._findings.add(finding_id, path, sentence, offsets=offsets, unless_compacted=True)

    # --- snapshots ---------------------------------------------------------------------------------------------------

    def _compare_snapshots(self, offset: int | None) -> None:
        """Compares the snapshots taken up to an offset, all that are left if it is None."""
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
                    self._known.states.start_with(snapshot.entries())  # what was before the log begins
                for sentence in self._known.contradictions(snapshot.entries(), end_offset):
                    self._findings.add("snapshot-content", path, sentence, unless_compacted=True)
        except KsegError as error:
            if path.exists():  # else a broker deleted it meanwhile
                self._findings.add("snapshot-unreadable", path, error.message)


def _has_grown(log: Path, size: int) -> bool:
    """Whether a log has more bytes than it had; False if it is gone."""
    try:
        return log.stat().st_size > size
    except OSError:
        return False


def _readable_snapshots(partition: PartitionLog, findings: Findings) -> deque[tuple[int, Path]]:
    """End offsets and paths of the snapshots that a broker would take; what is wrong with the others is found."""
    readable: deque[tuple[int, Path]] = deque()
    for end_offset, file in partition.snapshots.items():
        problem = snapshot_problem(file.path)
        if problem is None:
            readable.append((end_offset, file.path))
        elif file.path.exists():  # else a broker deleted it meanwhile
            findings.add("snapshot-unreadable", file.path, problem)
    return readable
