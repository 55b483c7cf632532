"""The evidence of one transaction: in the log, its transaction indexes and its producer snapshots."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from kseg import kernel
from kseg.errors import FileError, plural
from kseg.formats.codes import ControlType, DamageKind
from kseg.formats.header_fields import AbortedTransaction
from kseg.index.entries import TransactionIndex
from kseg.index.header_scan import header_of, headers_of
from kseg.index.producers import end_marker_in, snapshot_problem
from kseg.kernel.contract import VALID
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.log.selection import Selection
from kseg.log.transaction_walk import Evidence
from kseg.log.transactions import Outcome, Transaction
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile, Run
from kseg.times import time_text


class ClueKind(StrEnum):
    """A kind of evidence of a transaction."""

    BATCH = "batch"
    MARKER = "marker"
    DAMAGE = "damage"
    INDEX = "index"
    SNAPSHOT = "snapshot"
    COORDINATOR = "coordinator"
    OUTCOME = "outcome"


class Clue(NamedTuple):
    """One file's evidence of a transaction.

    offset: of a batch's first record or a marker, or the end of a snapshot; None for damage. position: of a batch or
    damage in its log. file: None for the outcome, the conclusion from the earlier clues.
    """

    topic: str | None
    partition: int | None
    kind: ClueKind
    offset: int | None
    file: str | None
    position: int | None
    told: str


def clues_of(partition: PartitionLog, transaction: Transaction) -> Iterator[Clue]:
    """Yield the clues of one of a partition's transactions, in the order of the log.

    Reads and checks the segments from its beginning to its end. Raises OpenError if a log can't be opened.
    """
    return _Clues(partition, transaction).all()


class _Clues:
    """A walk through the files of a partition, until a marker, an index or a snapshot shows the end."""

    def __init__(self, partition: PartitionLog, transaction: Transaction) -> None:
        self._partition = partition
        self._transaction = transaction
        first = transaction.end_offset if transaction.first_offset is None else transaction.first_offset
        self._first = 0 if first is None else first
        self._began = transaction.first_offset is not None and transaction.first_offset < partition.log_start_offset()
        self._outcome_offset: int | None = None

    def all(self) -> Iterator[Clue]:
        place, bases = self._partition, self._partition.base_offsets
        for slot in range(place.floor_slot(self._first) or 0, len(bases)):
            segment = place.segments[slot]
            if bases[slot] > self._first:
                yield from self._snapshot(bases[slot])
            if self._outcome_offset is not None:
                break
            yield from self._segment(segment)
        else:
            for offset in (each for each in place.snapshots if each > max(bases[-1:], default=0)):
                yield from self._snapshot(offset)

    def _clue(
        self, kind: ClueKind, offset: int | None, sentence: str, file: str | None = None, position: int | None = None
    ) -> Clue:
        return Clue(self._partition.topic, self._partition.partition, kind, offset, file, position, sentence)

    # --- a segment ----------------------------------------------------------------------------------------------------

    def _segment(self, segment: SegmentFiles) -> Iterator[Clue]:
        name, index = segment.path.name, segment.transaction_index
        entries, problem = _entries(segment, self._transaction.producer_id)
        is_damaged = False
        if problem is not None:
            yield self._clue(ClueKind.INDEX, None, f"can't be used: {problem}", segment.path.stem + ".txnindex")
        for first, clue in self._batches(segment, name):
            while entries and first is not None and entries[0].last_offset < first:
                yield from self._entry(entries.pop(0), segment)
            if self._outcome_offset is not None and (clue.offset is None or clue.offset > self._outcome_offset):
                break
            yield clue
            is_damaged |= clue.kind is ClueKind.DAMAGE
        if index is None and is_damaged:
            yield self._clue(ClueKind.INDEX, None, "isn't there", segment.path.stem + ".txnindex")
        for entry in entries:
            if self._outcome_offset is None or entry.last_offset <= self._outcome_offset:
                yield from self._entry(entry, segment)

    def _batches(self, segment: SegmentFiles, name: str) -> Iterator[tuple[int | None, Clue]]:
        wanted = Selection(from_offset=self._first, producer_id=self._transaction.producer_id).batch_filter()
        with self._partition.open_log(segment) as log_file:
            for item in log_file.runs():
                if isinstance(item, Damage):
                    if item.kind is not DamageKind.ZERO_TAIL and self._began:
                        sentence = f"{item.kind}: {plural(item.size, 'byte')}, {item.detail}"
                        yield None, self._clue(ClueKind.DAMAGE, None, sentence, name, item.position)
                elif not item.rows[VALID]:
                    yield from self._damage_clues(header_of(item, 0), name)
                else:
                    count, _, _, _ = kernel.load().select(item.buffer, item.rows, item.row_count, wanted)
                    for header in headers_of(item._replace(row_count=count)) if count else ():
                        if header.is_transactional and header.first_offset >= self._first:
                            yield header.first_offset, self._batch(header, item, log_file, name)

    def _damage_clues(self, header: BatchHeader, name: str) -> Iterator[tuple[None, Clue]]:
        if not self._began and header.producer_id != self._transaction.producer_id:
            return
        what = "a marker" if header.is_control else "a batch"
        sentence = f"{what} of producer {header.producer_id} by its header, whose CRC is wrong"
        yield None, self._clue(ClueKind.DAMAGE, header.base_offset, sentence, name, header.position)

    def _batch(self, header: BatchHeader, run: Run, log_file: LogFile, name: str) -> Clue:
        epoch, first = f"epoch {header.producer_epoch}", header.first_offset
        if not header.is_control:
            verb = "continues" if self._began else "begins"
            self._began = True
            records = plural(header.records_count or 0, "record")
            time = time_text(header.max_timestamp, none="no time")
            sentence = f"{verb}: {records} up to offset {header.last_offset}, {epoch}, {time}"
            return self._clue(ClueKind.BATCH, first, sentence, name, header.position)
        marker = end_marker_in(run, log_file, header)
        if marker is None:
            return self._clue(ClueKind.MARKER, first, f"a control record of {epoch} that ends nothing", name)
        what = "ABORT" if marker.control_type is ControlType.ABORT else "COMMIT"
        self._outcome_offset = header.last_offset
        time = time_text(marker.timestamp, none="no time")
        sentence = f"{what}, {epoch}, coordinator epoch {marker.coordinator_epoch}, {time}"
        return self._clue(ClueKind.MARKER, first, sentence, name, header.position)

    def _entry(self, entry: AbortedTransaction, segment: SegmentFiles) -> Iterator[Clue]:
        if entry.last_offset < self._first:
            return
        if entry.first_offset >= self._first:
            known = self._outcome_offset
            self._outcome_offset = entry.last_offset if known is None else min(known, entry.last_offset)
        sentence = (
            f"aborted, from offset {entry.first_offset} on; the last stable offset then was {entry.last_stable_offset}"
        )
        yield self._clue(ClueKind.INDEX, entry.last_offset, sentence, segment.path.stem + ".txnindex")

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def _snapshot(self, offset: int) -> Iterator[Clue]:
        found = self._partition.snapshots.get(offset)
        if found is None:
            yield self._clue(ClueKind.SNAPSHOT, offset, "isn't there", f"{offset:020}.snapshot")
            return
        problem = snapshot_problem(found.path)
        states = None if problem is not None else self._partition.read_producer_states(offset)
        if states is None:
            yield self._clue(
                ClueKind.SNAPSHOT, offset, f"can't be used: {problem or 'it no longer exists'}", found.name
            )
            return
        producer_id = self._transaction.producer_id
        opened = states.open_transactions.get(producer_id)
        if producer_id not in states.producers:
            sentence = f"doesn't have producer {producer_id}"
        elif opened is None:
            sentence = "doesn't have it: the producer has no open transaction"
        elif opened == self._transaction.first_offset:
            sentence = f"has it, open since offset {opened}"
        else:
            sentence = f"doesn't have it: the producer's open transaction began at offset {opened}"
        decides = self._transaction.evidence is Evidence.SNAPSHOT
        if decides and opened != self._transaction.first_offset:
            self._outcome_offset = offset
        yield self._clue(ClueKind.SNAPSHOT, offset, sentence, found.name)


def _entries(segment: SegmentFiles, producer_id: int) -> tuple[list[AbortedTransaction], str | None]:
    """Return the entries of a producer in a segment's transaction index, and the reason why it can't be read."""
    if segment.transaction_index is None:
        return [], None
    try:
        with TransactionIndex(segment.transaction_index.path, segment.base_offset) as index:
            found = [entry for entry in index.entries() if entry.producer_id == producer_id]
            return found, index.sanity_problem()
    except FileError as error:
        return [], error.message


_WHY = {
    Evidence.MARKER: "its marker says so",
    Evidence.INDEX: "the marker is lost to damage, but a transaction index has the outcome",
    Evidence.SNAPSHOT: "the marker is lost to damage; it wasn't an abort, which the index would list, and a producer"
    " snapshot no longer has it",
}


def outcome_text(transaction: Transaction) -> str:
    """Return the outcome of a transaction, and its evidence or the evidence that is missing."""
    if transaction.outcome is Outcome.OPEN:
        return "open: no marker ends it"
    if transaction.outcome is Outcome.UNKNOWN and not transaction.is_open:
        return (
            "unknown: it ended in a damaged part of the log, since a producer snapshot no longer has it; the segment's"
            " .txnindex, which would list an abort, can't be read; specify another copy of the partition"
        )
    if transaction.outcome is Outcome.UNKNOWN:
        return (
            "unknown: its marker may be in a damaged part of the log; specify another copy of the partition,"
            " or the segment's"
            " .txnindex and a later producer snapshot"
        )
    return f"{transaction.outcome}: {'' if transaction.evidence is None else _WHY[transaction.evidence]}"
