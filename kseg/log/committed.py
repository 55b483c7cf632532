"""Reads with `read_committed`: aborted transactions, and the suffix that an open one holds back."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kseg import kernel
from kseg.errors import KsegError
from kseg.formats.codes import ControlType
from kseg.formats.header_fields import AbortedTransaction
from kseg.index.entries import TransactionIndex
from kseg.index.header_scan import header_of, header_runs, is_intact
from kseg.index.producers import ProducerStates, read_end_marker
from kseg.kernel.contract import LEAST, MOST
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile, Run


class Withheld(NamedTuple):
    """Offsets withheld, from `first_offset` to below `end_offset`, and the records there, as headers count them.

    producer_id: whose transaction is open; since_ms: the time of its first record, in milliseconds since 1970. Both are
    None if the batch at the first offset isn't there, or has none.
    """

    first_offset: int
    end_offset: int
    records: int
    producer_id: int | None
    since_ms: int | None


def find_withheld(segments: Sequence[SegmentFiles], open_from: int, end_offset: int = MOST) -> Withheld:
    """What a transaction that is open from an offset on withholds, by the headers from there to an end, or the log's.

    Raises OpenError if a log can't be opened.

    Args:
        segments: those of the partition.
        open_from: the first offset of the oldest open transaction.
        end_offset: the first one that isn't wanted.
    """
    fold = kernel.load().HeaderFold(Event.BOUND)
    fold.passes_legacy = True
    fold.offset_bound, fold.next_offset = open_from, open_from
    producer_id = since_ms = None
    for header in _stops(segments, open_from, fold):
        if fold.offset_bound == open_from:
            fold.records, fold.offset_bound = 0, end_offset
        if header.first_offset >= end_offset:
            break
        fold.take(header)
        if header.is_transactional and header.first_offset == open_from:
            producer_id, since_ms = header.producer_id, _time_of(header)
    return Withheld(open_from, min(fold.next_offset, end_offset), fold.records, producer_id, since_ms)


def _stops(segments: Sequence[SegmentFiles], offset: int, fold: HeaderFold) -> Iterator[BatchHeader]:
    """The headers at which a fold stops, of the batches that may reach an offset; they are to be taken."""
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= offset:
            continue
        with segment.open_log() as log_file:
            for item in header_runs(log_file):
                if not isinstance(item, Damage):
                    yield from _stops_in(item, fold)


def _stops_in(run: Run, fold: HeaderFold) -> Iterator[BatchHeader]:
    row = 0
    while row < run.row_count:
        row, _ = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
        if row < run.row_count:
            yield header_of(run, row)
            row += 1


def _time_of(header: BatchHeader) -> int | None:
    time = header.max_timestamp if header.is_log_append_time else header.base_timestamp
    return None if time < 0 else time


Span = tuple[int, int]
OpenTransactions = dict[int, int]
"""First offsets of open transactions, by producer id."""
_NOWHERE = -1
"""As position_bound: the next batch is looked at, whatever is in it."""
DECIDES = "the log decides; `kseg reindex` rebuilds it"


class ReadCommitted(NamedTuple):
    """Aborted transactions by producer id, as ordered (first offset, offset of the marker), and how far one may read.

    `last_stable_offset` is the first offset of the oldest open transaction; None if none is open below the
    requested end. `notes` say which file contradicts the log, and what isn't committed yet.
    """

    aborted: dict[int, list[Span]]
    last_stable_offset: int | None
    notes: tuple[str, ...]

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        """Whether a producer's transactional batch that begins at an offset was aborted."""
        spans = self.aborted.get(producer_id, [])
        place = bisect_right(spans, offset, key=_first_of)
        return place > 0 and offset <= spans[place - 1][1]


def _first_of(span: Span) -> int:
    return span[0]


def _base_of(segment: SegmentFiles) -> int:
    return segment.base_offset


def read_committed(
    segments: Sequence[SegmentFiles],
    partition: PartitionLog | None = None,
    first_offset: int = LEAST,
    end_offset: int = MOST,
) -> ReadCommitted:
    """The transactions in consecutive segments, as far as they matter for a range of offsets.

    Reads headers from a producer snapshot on that matches the log, or from the first segment, until the outcome of all
    transactions that began below the end is known. Raises OpenError if a log can't be opened.

    Args:
        segments: all segments of a partition, or only one.
        partition: the partition whose snapshots may be used; None for none.
        first_offset: the first one wanted.
        end_offset: the first one that isn't wanted.
    """
    reading = _Reading(end_offset)
    slot = max(bisect_right(segments, first_offset, key=_base_of) - 1, 0)
    start = 0 if partition is None else _confirmed_slot(partition, slot, reading)
    if partition is not None and not start:
        reading.begun.update(_carried_in(partition, reading))
    for number, segment in enumerate(segments[start:], start):
        reading.read(segment, has_index=partition is not None)
        if reading.is_decided:
            break
        if partition is not None and reading.is_doubtful:
            reading.ask(partition, segments[number + 1].base_offset if number + 1 < len(segments) else None)
    reading.forget_damaged()
    open_from = min((first for first in reading.begun.values() if first < end_offset), default=None)
    if open_from is not None and segments:
        place = segments[0].path.parent
        reading.notes.append(f"{place}: a transaction is open: nothing from offset {open_from} on is committed")
    spans = {producer_id: sorted(found) for producer_id, found in reading.aborted.items()}
    return ReadCommitted(spans, open_from, tuple(dict.fromkeys(reading.notes)))


def read_last_stable_offset(partition: PartitionLog) -> int | None:
    """The first offset of the oldest open transaction of a partition; None if none is open.

    Reads only the headers of the last segments if a snapshot there matches the log. Raises OpenError.
    """
    if not partition.segments:
        return None
    return read_committed(partition.segments, partition, partition.base_offsets[-1]).last_stable_offset


class _MaybeEnded(NamedTuple):
    """A transaction that may have ended in damage: where it began, and the first damaged offset after that."""

    begun: int
    damaged_from: int


class _Reading:
    """Transactions, updated header by header. begun: those that are open; aborted: spans by producer.

    Those of `begun` that were open at a damage are doubtful until a snapshot decides.
    """

    def __init__(self, end_offset: int) -> None:
        self.begun: OpenTransactions = {}
        self._alone: dict[int, tuple[SegmentFiles, BatchHeader]] = {}
        self.aborted: defaultdict[int, list[Span]] = defaultdict(list)
        self.notes: list[str] = []
        self.is_decided = False
        self._end_offset = end_offset
        self._doubtful: dict[int, _MaybeEnded] = {}
        self._next_offset = 0
        self._ends_damaged = False
        self._is_gap = True
        self._whole_from = 0

    @property
    def is_doubtful(self) -> bool:
        """Whether an open transaction may have ended where the log is damaged."""
        return any(self._may_have_ended(producer_id) for producer_id in self._doubtful)

    def _may_have_ended(self, producer_id: int) -> bool:
        doubtful = self._doubtful.get(producer_id)
        return doubtful is not None and doubtful.begun == self.begun.get(producer_id)

    def _mark_doubtful(self) -> None:
        """Records damage: any open transaction may have ended there."""
        known, end = self._doubtful, self._next_offset
        self._doubtful = {
            producer_id: known[producer_id] if self._may_have_ended(producer_id) else _MaybeEnded(begun, end)
            for producer_id, begun in self.begun.items()
        }

    def read(self, segment: SegmentFiles, *, has_index: bool) -> None:
        """Reads a segment; `has_index`: compares its transaction index."""
        doubtful_before = self._doubtful
        with segment.open_log() as log_file, _IndexBeside(segment, self.notes, is_wanted=has_index) as index:
            fold = self._new_fold()
            for header in _headers_and_lost_aborts(log_file, index, fold, self._end_offset):
                self._note_passed(fold)
                if isinstance(header, Damage):
                    self._mark_doubtful()
                    self._ends_damaged = self._is_gap = True
                    continue
                if isinstance(header, AbortedTransaction):
                    self.begun.pop(header.producer_id, None)
                    self.aborted[header.producer_id].append((header.first_offset, header.last_offset))
                    continue
                first = header.first_offset
                if first >= self._end_offset and all(begun >= self._end_offset for begun in self.begun.values()):
                    self.is_decided = True
                    return
                if header.is_transactional and not header.is_control:
                    self._begin(segment, header, first)
                elif header.is_transactional:
                    self._end(log_file, header, index)
                self._note_gaps(header, first)
                self._next_offset, self._ends_damaged = header.last_offset + 1, False
            self._note_passed(fold)
            if index.is_broken and self._doubtful is not doubtful_before:
                self._doubtful = {}  # a lost marker may be an abort

    def _new_fold(self) -> HeaderFold:
        """A fold that passes batches which have to do with no transaction and leave no gap."""
        fold = kernel.load().HeaderFold(Event.CONTROL | Event.TRANSACTIONAL | Event.OFFSET | Event.SPARSE)
        fold.passes_legacy = True
        fold.next_offset = min(max(self._next_offset, LEAST), MOST)
        return fold

    def _note_passed(self, fold: HeaderFold) -> None:
        """Takes notice of the batches that a fold has passed since the last time."""
        if not fold.batches:
            return
        if self._is_gap:
            self._whole_from = self._next_offset
        self._is_gap = self._ends_damaged = False
        self._next_offset = fold.last_offset + 1
        fold.batches = 0

    def _note_gaps(self, header: BatchHeader, first: int) -> None:
        """Records from which offset on all offsets up to and including this batch were seen."""
        if self._is_gap or first != self._next_offset:
            self._whole_from = first
        count = header.records_count
        self._is_gap = count is not None and count <= header.last_offset - first

    def ask(self, partition: PartitionLog, base_offset: int | None) -> None:
        """Ends doubtful transactions that the snapshot at an offset (None: the log's end) doesn't have."""
        offset = self._end_of(partition) if base_offset is None else base_offset
        opened = _open_at(partition, offset)
        if opened is None:
            return
        for producer_id in [*filter(self._may_have_ended, self._doubtful)]:
            first = self.begun[producer_id]
            if opened.get(producer_id) != first:
                self.notes.append(
                    f"{partition.path}: producer {producer_id}: its transaction from offset {first} on ended where the"
                    f" log is damaged, and not with an abort: {partition.snapshots[offset].name} no longer has it"
                )
                self._end_in_damage(producer_id, opened.get(producer_id))
        self._doubtful = {}

    def _end_of(self, partition: PartitionLog) -> int:
        """The log's end; if it is damaged there, the end by the last snapshot."""
        last = max(partition.snapshots, default=0)
        return max(self._next_offset, last) if self._ends_damaged else self._next_offset

    def _end_in_damage(self, producer_id: int, next_first: int | None) -> None:
        """Treats a transaction as ended; the producer's next one may have begun before what is read now."""
        self._alone.pop(producer_id, None)
        del self.begun[producer_id]
        if next_first is not None:
            self.begun[producer_id] = next_first

    def _begin(self, segment: SegmentFiles, header: BatchHeader, first: int) -> None:
        if header.producer_id in self.begun:
            self._alone.pop(header.producer_id, None)
            return
        self.begun[header.producer_id] = first
        self._alone[header.producer_id] = segment, header

    def forget_damaged(self) -> None:
        """Drops transactions that only a damaged batch begins: its producer id may be any number."""
        for producer_id, (segment, header) in self._alone.items():
            if producer_id in self.begun:
                with segment.open_log() as log_file:
                    if not is_intact(log_file, header):
                        del self.begun[producer_id]

    def _end(self, log_file: LogFile, header: BatchHeader, index: "_IndexBeside") -> None:
        ended = _ended(log_file, header, index)
        if (ended is None or header.producer_id not in self.begun) and not is_intact(log_file, header):
            self._mark_doubtful()  # it was a marker, of any producer
        if ended is None:
            return
        self._alone.pop(header.producer_id, None)
        doubtful = self._doubtful[header.producer_id] if self._may_have_ended(header.producer_id) else None
        begun = self.begun.pop(header.producer_id, None)
        if ended is ControlType.ABORT:
            if doubtful is not None:
                begun = index.first_offset_of(header, doubtful)
            index.confirm(header, begun, self._whole_from)
            if begun is not None:
                self.aborted[header.producer_id].append((begun, header.last_offset))


def _headers_and_lost_aborts(
    log_file: LogFile, index: "_IndexBeside", fold: HeaderFold, end_offset: int
) -> Iterator[BatchHeader | Damage | AbortedTransaction]:
    """The headers of a log, damage, and those aborts in its index whose markers are where the log is damaged.

    The fold passes headers in which nothing happens, below the end and below the next entry of the index.
    """
    is_damaged = False
    for item in header_runs(log_file):
        if isinstance(item, Damage):
            is_damaged, fold.position_bound = True, _NOWHERE
            yield item
            continue
        row = 0
        while True:
            fold.offset_bound = min(end_offset, index.next_offset)
            row, _ = fold.fold(item.buffer, item.rows, row, item.row_count, item.position)
            if row == item.row_count:
                break
            header = header_of(item, row)
            yield from index.entries_below(header.first_offset, is_damaged=is_damaged)
            is_damaged = False
            yield header
            fold.next_offset = min(max(header.last_offset + 1, LEAST), MOST)
            fold.position_bound = MOST
            row += 1
    yield from index.entries_below(MOST, is_damaged=is_damaged)


def _ended(log_file: LogFile, header: BatchHeader, index: "_IndexBeside") -> ControlType | None:
    """How a control batch ends its producer's transaction; None if it doesn't. If it is damaged, the index decides."""
    marker = read_end_marker(log_file, header)
    if index.names(header) and not is_intact(log_file, header):
        return ControlType.ABORT
    return None if marker is None else marker.control_type


class _IndexBeside:
    """A segment's transaction index, read entry by entry along with the log; notes where the two differ."""

    def __init__(self, segment: SegmentFiles, notes: list[str], *, is_wanted: bool) -> None:
        index = segment.transaction_index
        self._path = segment.path.with_suffix(".txnindex") if index is None else index.path
        self._notes = notes
        self._is_wanted = is_wanted
        self._has_differed = False
        self.is_broken = False
        self._index: TransactionIndex | None = None
        self._entries: Iterator[AbortedTransaction] = iter(())
        self._next: AbortedTransaction | None = None
        if is_wanted and segment.transaction_index is not None:
            self._open(segment.base_offset)
            self._advance()

    def __enter__(self) -> "_IndexBeside":
        return self

    def __exit__(self, *_: object) -> None:
        if self._index is not None:
            self._index.close()

    def _open(self, base_offset: int) -> None:
        try:
            self._index = TransactionIndex(self._path, base_offset)
            problem = self._index.sanity_problem()
            self._entries = self._index.entries()
        except KsegError as error:
            problem = error.message
        if problem is not None:
            self.is_broken = True
            self._differ(problem)

    def _advance(self) -> None:
        try:
            self._next = next(self._entries, None)
        except KsegError as error:
            self._next = None
            self.is_broken = True
            self._differ(error.message)

    def _differ(self, problem: str) -> None:
        """Notes the first difference; more of them wouldn't add anything."""
        if not self._has_differed:
            self._has_differed = True
            self._notes.append(f"{self._path}: {problem}: {DECIDES}")

    @property
    def next_offset(self) -> int:
        """The offset of the next entry's marker; MOST if there is none."""
        return MOST if self._next is None else min(self._next.last_offset, MOST)

    def entries_below(self, offset: int, *, is_damaged: bool) -> Iterator[AbortedTransaction]:
        """Skips to the entries of an offset; yields those skipped if the log is damaged there; else they are wrong."""
        while self._next is not None and self._next.last_offset < offset:
            if is_damaged:
                yield self._next
            else:
                self._differ(f"no abort of producer {self._next.producer_id} at offset {self._next.last_offset}")
            self._advance()

    def names(self, header: BatchHeader) -> bool:
        """Whether the next entry belongs to a marker."""
        entry = self._next
        return entry is not None and (entry.producer_id, entry.last_offset) == (header.producer_id, header.last_offset)

    def first_offset_of(self, header: BatchHeader, ended: _MaybeEnded) -> int:
        """Where an aborted transaction began, if the producer's previous one may have ended in damage."""
        entry = self._next
        if entry is None or not self.names(header) or not ended.damaged_from < entry.first_offset <= header.last_offset:
            return ended.begun
        self._notes.append(
            f"{self._path.parent}: producer {entry.producer_id}: its transaction from offset {ended.begun} on ended"
            f" where the log is damaged: {self._path.name} says that the one aborted at {entry.last_offset} began at"
            f" {entry.first_offset}"
        )
        return entry.first_offset

    def confirm(self, header: BatchHeader, begun: int | None, whole_from: int) -> None:
        """Skips the entry of an abort in the log; if records were aborted, it must be there.

        An entry may begin where nothing is left of the transaction, but not at an offset from `whole_from` on.
        """
        if self._next is not None and self.names(header):
            first = self._next.first_offset
            if begun is not None and (first > begun or whole_from <= first < begun):
                self._differ(
                    f"the transaction that producer {header.producer_id} aborted at offset {header.last_offset} begins"
                    f" at {begun}, the entry says {first}"
                )
            self._advance()
        elif begun is not None and self._index is not None:
            self._differ(f"no entry for the abort of producer {header.producer_id} at offset {header.last_offset}")
        elif begun is not None and self._is_wanted:
            self._differ("missing, and the log has aborted transactions")


# --- snapshots -------------------------------------------------------------------------------------------------------


def _confirmed_slot(partition: PartitionLog, slot: int, reading: _Reading) -> int:
    """The last segment, up to `slot`, where reading may start; `reading` gets what is open there.

    A snapshot matches the log if the previous segment's snapshot and headers lead to the same open transactions: a
    single file that is stale, from another log, or wrong does no harm. Compaction also removes markers, so the two can
    differ: then reading starts earlier.
    """
    for number in range(slot, 0, -1):
        opened = _open_at(partition, partition.base_offsets[number])
        before = _open_at(partition, partition.base_offsets[number - 1])
        if before is None and partition.base_offsets[number - 1] == 0:
            before = {}
        if opened is None or before is None:
            continue
        since = _Reading(MOST)
        since.begun.update(before)
        since.read(partition.segments[number - 1], has_index=False)
        if since.begun == opened:
            reading.begun.update(opened)
            return number
    return 0


def _carried_in(partition: PartitionLog, reading: _Reading) -> OpenTransactions:
    """Transactions that were open where the log begins, by the first snapshot; the log may have nothing of them.

    The last snapshot must be a different one and have them too: a single wrong file would block everything.
    """
    base = partition.base_offsets[0] if partition.segments else 0
    if base == 0:
        return {}
    offsets = [offset for offset in partition.snapshots if offset >= base]
    found = [(offset, opened) for offset in offsets if (opened := _open_at(partition, offset)) is not None]
    if not found:
        return {}
    (_, first), (offset, last) = found[0], found[-1]
    carried = {producer_id: begun for producer_id, begun in first.items() if begun < base}
    if carried and len(found) == 1:
        begun = min(carried.values())
        path = partition.snapshots[offset].path
        reading.notes.append(
            f"{path}: a transaction open since offset {begun}, before the log: no other snapshot has it"
        )
        return {}
    return {producer_id: begun for producer_id, begun in carried.items() if last.get(producer_id) == begun}


def _open_at(partition: PartitionLog, offset: int) -> OpenTransactions | None:
    """Open transactions of the snapshot that ends at an offset; None if there is none that can belong to this log."""
    states = _read_states(partition, offset)
    if states is None or any(state.last_offset >= offset for state in states.producers.values()):
        return None
    return None if any(begun >= offset for begun in states.open_transactions.values()) else states.open_transactions


def _read_states(partition: PartitionLog, offset: int) -> ProducerStates | None:
    try:
        return partition.read_producer_states(offset)
    except KsegError:
        return None
