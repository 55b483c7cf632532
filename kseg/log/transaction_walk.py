"""A walk through a partition's transactions: beginnings and ends, and the evidence of ends where a log is damaged.

Every command gets transactions from this walk. The first available evidence decides:

1. The marker in the log, if its batch is intact.
2. The segment's `.txnindex`, where a marker is damaged or in an unreadable stretch: its entry is an abort. A damaged
marker that contains an abort is ignored if the index was written after it, without an entry for it.
3. A producer snapshot that no longer has the transaction: it has ended, and since the index would list an abort, it
was committed. The outcome is unknown where the index can't be read, or is missing in a log without indexes.
4. Nothing: whether the transaction ended is unknown, and it counts as open.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from kseg import kernel
from kseg.errors import FileError
from kseg.formats.codes import ControlType
from kseg.formats.header_fields import AbortedTransaction
from kseg.index.entries import TransactionIndex
from kseg.index.header_scan import header_of, header_runs, is_intact
from kseg.index.producers import EndMarker, ProducerState, end_marker_in
from kseg.kernel.contract import LEAST, MOST
from kseg.kernel.fold_contract import Event, HeaderFold, ProducerTable
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.log.transaction_snapshots import OpenTransactions, carried_transactions, open_at
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile, Run

_ENDED = ProducerState(0, 0)[2:]
_OPEN = ProducerState(0, 0, current_txn_first_offset=0)[2:]
"""The fold's knowledge of a producer with an open transaction: whether its batches continue it."""
_NOWHERE = -1
"""A position_bound at which the fold stops at the next batch, whatever its contents."""
DECIDES = "kseg uses the log instead; run `kseg reindex` to rebuild it"


class Evidence(StrEnum):
    """The evidence of a transaction's end."""

    MARKER = "marker"
    INDEX = "index"
    SNAPSHOT = "snapshot"


class Begun(NamedTuple):
    """A batch with which a transaction begins, or continues with another epoch of its producer."""

    segment: SegmentFiles
    header: BatchHeader


class Ended(NamedTuple):
    """The end of a producer's transaction.

    first_offset: its beginning; None if nothing of it is left. end_offset: the marker's; None if unknown. is_aborted:
    None if unknown. header, marker: None where the log has none. evidence: the deciding one. lost_from, until: the
    marker was at an offset from the first on, and before the second; None if its offset is known.
    """

    producer_id: int
    first_offset: int | None
    end_offset: int | None
    is_aborted: bool | None
    evidence: Evidence
    header: BatchHeader | None = None
    marker: EndMarker | None = None
    lost_from: int | None = None
    until: int | None = None

    @property
    def place(self) -> int:
        """The offset of its end; if unknown, the first possible one."""
        found = self.lost_from if self.end_offset is None else self.end_offset
        return 0 if found is None else found


class Lost(NamedTuple):
    """An unreadable stretch of a segment."""

    segment: SegmentFiles
    damage: Damage


TransactionEvent = Begun | Ended | Lost


class _MaybeEnded(NamedTuple):
    """A transaction that may have ended in damage.

    begun: its beginning. damaged_from: the first damaged offset after that. is_certainly_no_abort: the index of the
    damaged segment is readable, so it would have an abort there.
    """

    begun: int
    damaged_from: int
    is_certainly_no_abort: bool = True


class TransactionWalk:
    """Transactions of consecutive segments, updated header by header.

    begun: first offsets of the open ones, by producer. producers: their batches and records that the walk has passed
    since the last event. notes: files that contradict the log, and the evidence taken from them. is_decided: the
    outcome of all that began below the end is known. alone: open ones ignored at the end, as the only batch that
    begins them is damaged: its producer id may be any number.
    """

    def __init__(self, partition: PartitionLog | None = None, end_offset: int = MOST) -> None:
        """Read nothing yet.

        Args:
            partition: its snapshots and indexes are used, and its logs may be read together with other copies; None
                for
                none.
            end_offset: the first unwanted offset.
        """
        self._partition = partition
        self._end_offset = end_offset
        self.begun: OpenTransactions = {}
        self.notes: list[str] = []
        self.is_decided = False
        self.producers: ProducerTable = kernel.load().ProducerTable()
        watched = Event.CONTROL | Event.TRANSACTION | Event.OFFSET | Event.SPARSE
        self._fold = kernel.load().HeaderFold(watched, self.producers)
        self._fold.passes_legacy = True
        self.alone: list[BatchHeader] = []
        self._begins: dict[int, tuple[SegmentFiles, BatchHeader]] = {}
        self._carried_starts: dict[int, int | None] = {}
        self._doubtful: dict[int, _MaybeEnded] = {}
        self._next_offset = 0
        self._ends_damaged = False
        self._is_gap = True
        self._whole_from = 0
        self._lacks_indexes = False

    @property
    def maybe_ended(self) -> frozenset[int]:
        """Producers whose open transaction may have ended where the log is damaged."""
        return frozenset(filter(self._may_have_ended, self.begun))

    def walk(self, segments: Sequence[SegmentFiles], wanted_from: int = LEAST) -> Iterator[TransactionEvent]:
        """Yield the events in consecutive segments (all of a partition, or one) from a matching snapshot on.

        wanted_from: earlier events may be omitted. Raises OpenError if a log can't be opened.
        """
        start = self._start(segments, wanted_from)
        for number, segment in enumerate(segments[start:], start):
            yield from self._read(segment, is_closed=number + 1 < len(segments))
            if self.is_decided:
                break
            if self._partition is not None and self._can_ask:
                following = segments[number + 1].base_offset if number + 1 < len(segments) else None
                yield from self._ask(self._partition, following)
        self._forget_damaged()
        self._forget_carried()

    def _start(self, segments: Sequence[SegmentFiles], wanted_from: int) -> int:
        if self._partition is None:
            return 0
        slot = max(bisect_right(segments, wanted_from, key=_base_of) - 1, 0)
        start, self.begun = _confirmed_slot(self._partition, slot)
        if not start:
            self._carry(self._partition)
        return start

    def _read(self, segment: SegmentFiles, *, is_closed: bool) -> Iterator[TransactionEvent]:
        doubtful_before = self._doubtful
        place = self._partition
        opened = segment.open_log() if place is None else place.open_log(segment)
        beside = _AdjacentIndex(segment, self.notes, is_wanted=place is not None, is_closed=is_closed)
        with opened as log_file, beside as index:
            fold = self._fold
            fold.next_offset = min(max(self._next_offset, LEAST), MOST)
            for happened in _headers_and_lost_aborts(log_file, index, fold, self._end_offset):
                if fold.batches:
                    self._note_passed()
                if isinstance(happened, Damage):
                    self._mark_doubtful()
                    self._ends_damaged = self._is_gap = True
                    yield Lost(segment, happened)
                    continue
                if isinstance(happened, AbortedTransaction):
                    yield from self._lost_abort(happened)
                    continue
                run, header = happened
                first = header.first_offset
                if first >= self._end_offset and all(begun >= self._end_offset for begun in self.begun.values()):
                    self.is_decided = True
                    return
                if header.is_control:  # a broker treats it as transactional in any case
                    yield from self._end(run, log_file, header, index)
                elif header.is_transactional and header.base_sequence < 0 and not is_intact(log_file, header):
                    self._mark_doubtful()  # markers alone have no sequence
                elif header.is_transactional:
                    self._begin(segment, header, first)
                    yield Begun(segment, header)
                    self.producers.put((header.producer_id, header.producer_epoch, *_OPEN))
                self._note_gaps(header, first)
                self._next_offset, self._ends_damaged = header.last_offset + 1, False
            if fold.batches:
                self._note_passed()
            self._distrust(index, doubtful_before)

    def _distrust(self, index: "_AdjacentIndex", doubtful_before: Mapping[int, _MaybeEnded]) -> None:
        """Note if a segment's index, read or missing, has no information about lost aborts."""
        self._lacks_indexes |= index.is_broken and index.is_absent
        is_useless = self._lacks_indexes if index.is_absent else index.is_broken
        if is_useless and self._doubtful is not doubtful_before:
            self._doubtful = {
                producer_id: each._replace(is_certainly_no_abort=False) for producer_id, each in self._doubtful.items()
            }

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of the batches so far, -1 if there is none."""
        return self._fold.max_timestamp

    def _note_passed(self) -> None:
        """Note the batches that the fold has passed since the last call."""
        if self._is_gap:
            self._whole_from = self._next_offset
        self._is_gap = self._ends_damaged = False
        self._next_offset = self._fold.last_offset + 1
        self._fold.batches = 0

    def _note_gaps(self, header: BatchHeader, first: int) -> None:
        """Note the offset from which on all offsets up to and including this batch were seen."""
        if self._is_gap or first != self._next_offset:
            self._whole_from = first
        count = header.records_count
        self._is_gap = count is not None and count <= header.last_offset - first

    # --- begin and end ------------------------------------------------------------------------------------------------

    def _begin(self, segment: SegmentFiles, header: BatchHeader, first: int) -> None:
        producer_id = header.producer_id
        if producer_id in self.begun:
            self._begins.pop(producer_id, None)
            if self._carried_starts.get(producer_id, first) is None:
                self._carried_starts[producer_id] = first
        else:
            self.begun[producer_id] = first
            self._begins[producer_id] = segment, header

    def _close(self, ended: Ended) -> Iterator[Ended]:
        """Yield an end without marker; the producer's later batches begin another transaction."""
        self._forget(ended.producer_id)
        yield ended
        self.producers.put((ended.producer_id, -1, *_ENDED))

    def _forget(self, producer_id: int) -> None:
        self._begins.pop(producer_id, None)
        self._carried_starts.pop(producer_id, None)
        self.begun.pop(producer_id, None)

    def _end(self, run: Run, log_file: LogFile, header: BatchHeader, index: "_AdjacentIndex") -> Iterator[Ended]:
        """Yield the end that a control batch marks. If it is damaged, the index decides."""
        producer_id = header.producer_id
        marker = end_marker_in(run, log_file, header)
        begun = self.begun.get(producer_id)
        by_index = index.names(header) and not is_intact(log_file, header)
        if not by_index and (marker is None or begun is None) and not is_intact(log_file, header):
            self._mark_doubtful()  # it was a marker, of any producer
        if marker is None and not by_index:
            return
        is_aborted = by_index or (marker is not None and marker.control_type is ControlType.ABORT)
        if is_aborted and not by_index and index.denies(header) and not is_intact(log_file, header):
            is_aborted, by_index = False, True
        if is_aborted:
            if self._may_have_ended(producer_id):
                doubtful = self._doubtful[producer_id]
                begun = index.first_offset_of(header, doubtful)
                if begun != doubtful.begun:
                    lost_from = doubtful.damaged_from
                    yield from self._close(
                        Ended(producer_id, doubtful.begun, None, False, Evidence.INDEX, lost_from=lost_from)
                    )
            index.confirm(header, begun, self._whole_from)
        evidence = Evidence.INDEX if by_index else Evidence.MARKER
        self._forget(producer_id)
        yield Ended(producer_id, begun, header.first_offset, is_aborted, evidence, header, marker)
        self.producers.put((producer_id, header.producer_epoch, *_ENDED))

    def _lost_abort(self, entry: AbortedTransaction) -> Iterator[Ended]:
        """Yield an abort from the index whose marker is where the log is damaged."""
        ended = Ended(entry.producer_id, entry.first_offset, entry.last_offset, True, Evidence.INDEX)
        return self._close(ended)

    # --- doubt --------------------------------------------------------------------------------------------------------

    def _may_have_ended(self, producer_id: int) -> bool:
        doubtful = self._doubtful.get(producer_id)
        return doubtful is not None and doubtful.begun == self.begun.get(producer_id)

    def _mark_doubtful(self) -> None:
        """Note damage: any open transaction may have ended there."""
        known, end = self._doubtful, self._next_offset
        self._doubtful = {
            producer_id: known[producer_id] if self._may_have_ended(producer_id) else _MaybeEnded(begun, end)
            for producer_id, begun in self.begun.items()
        }

    @property
    def _can_ask(self) -> bool:
        """True if a snapshot could show that an open transaction ended in damage."""
        return bool(self.maybe_ended)

    def _ask(self, partition: PartitionLog, base_offset: int | None) -> Iterator[Ended]:
        """End doubtful transactions that the snapshot at an offset (None: the end of the log) doesn't have."""
        offset = self._end_of(partition) if base_offset is None else base_offset
        opened = open_at(partition, offset)
        if opened is None:
            return
        for producer_id in self.maybe_ended:
            first = self.begun[producer_id]
            following = opened.get(producer_id)
            if following == first:
                continue
            doubtful = self._doubtful[producer_id]
            how = "and not by an abort" if doubtful.is_certainly_no_abort else "with an unknown outcome"
            self.notes.append(
                f"{partition.path}: the transaction of producer {producer_id} from offset {first} on ended in a"
                f" damaged part of the log, {how}: {partition.snapshots[offset].name} no longer has it"
            )
            ended = Ended(producer_id, first, None, is_aborted=None, evidence=Evidence.SNAPSHOT)
            ended = ended._replace(lost_from=doubtful.damaged_from, until=offset if following is None else following)
            yield from self._close(ended._replace(is_aborted=False) if doubtful.is_certainly_no_abort else ended)
            if following is not None:  # the next one may have begun before the part that is read now
                self.begun[producer_id] = following
        self._doubtful = {}

    def _end_of(self, partition: PartitionLog) -> int:
        """Return the end of the log; if it is damaged there, the end by the last snapshot."""
        last = max(partition.snapshots, default=0)
        return max(self._next_offset, last) if self._ends_damaged else self._next_offset

    def _forget_damaged(self) -> None:
        for producer_id, (segment, header) in self._begins.items():
            if producer_id in self.begun and not self.producers.count_passed(producer_id)[0]:
                with segment.open_log() as log_file:
                    if not is_intact(log_file, header):
                        del self.begun[producer_id]
                        self.alone.append(header)

    # --- before the log -----------------------------------------------------------------------------------------------

    def _carry(self, partition: PartitionLog) -> None:
        """Add transactions that were open where the log begins; the log may have none of them."""
        carried = carried_transactions(partition)
        self.begun = carried.begun
        self._carried_starts = dict.fromkeys(carried.begun.keys() - carried.confirmed)
        if carried.doubted_file is not None:
            begun = min(carried.begun.values())
            self.notes.append(
                f"{carried.doubted_file}: a transaction is open since offset {begun}, before the start of the log; "
                "no other snapshot has it"
            )

    def _forget_carried(self) -> None:
        """Let transactions that one snapshot alone has begin with their first batch here, or drop them."""
        for producer_id, first in self._carried_starts.items():
            if producer_id in self.begun:
                if first is None:
                    del self.begun[producer_id]
                else:
                    self.begun[producer_id] = first


def _base_of(segment: SegmentFiles) -> int:
    return segment.base_offset


def _headers_and_lost_aborts(
    log_file: LogFile, index: "_AdjacentIndex", fold: HeaderFold, end_offset: int
) -> Iterator[tuple[Run, BatchHeader] | Damage | AbortedTransaction]:
    """Yield the headers of a log, each with its run, damages, and index entries of aborts with lost markers.

    The fold passes headers without events, below the end and below the next entry of the index.
    """
    is_damaged, fold.position_bound = False, MOST
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
            first = header.first_offset
            if index.next_offset < first:
                yield from index.entries_below(first, is_damaged=is_damaged)
            if is_damaged:
                is_damaged, fold.position_bound = False, MOST
            if index.next_offset == first and not _is_marker(header, index, log_file):
                yield from index.entries_below(first + 1, is_damaged=True)
            else:
                yield item, header
            if header.max_timestamp > fold.max_timestamp:
                fold.max_timestamp = header.max_timestamp
            fold.next_offset = min(max(header.last_offset + 1, LEAST), MOST)
            row += 1
    yield from index.entries_below(MOST, is_damaged=is_damaged)


def _is_marker(header: BatchHeader, index: "_AdjacentIndex", log_file: LogFile) -> bool:
    """Return whether the marker of an entry can be recognised by its header; an intact batch contradicts the entry."""
    return (header.is_control and index.names(header)) or is_intact(log_file, header)


class _AdjacentIndex:
    """A segment's transaction index, read entry by entry along with the log; notes differences between the two.

    next_offset: of the next entry's marker; MOST if there is none.
    """

    def __init__(self, segment: SegmentFiles, notes: list[str], *, is_wanted: bool, is_closed: bool) -> None:
        index = segment.transaction_index
        self._path = segment.path.with_suffix(".txnindex") if index is None else index.path
        self._notes = notes
        self._is_wanted = is_wanted
        self._is_closed = is_closed
        self._has_differed = False
        self.is_absent = index is None
        self.is_broken = False
        self._has_entries = False
        self._index: TransactionIndex | None = None
        self._entries: Iterator[AbortedTransaction] = iter(())
        self._next: AbortedTransaction | None = None
        self.next_offset = MOST
        if is_wanted and segment.transaction_index is not None:
            self._open_index(segment.base_offset)
            self._advance()

    def __enter__(self) -> "_AdjacentIndex":
        return self

    def __exit__(self, *_: object) -> None:
        if self._index is not None:
            self._index.close()

    def _open_index(self, base_offset: int) -> None:
        try:
            self._index = TransactionIndex(self._path, base_offset)
            problem = self._index.sanity_problem()
            self._entries = self._index.entries()
        except FileError as error:
            problem = error.message
        if problem is not None:
            self.is_broken = True
            self._differ(problem)

    def _advance(self) -> None:
        try:
            self._next = next(self._entries, None)
            self._has_entries |= self._next is not None
        except FileError as error:
            self._next = None
            self.is_broken = True
            self._differ(error.message)
        self.next_offset = MOST if self._next is None else min(self._next.last_offset, MOST)

    def _differ(self, problem: str) -> None:
        """Note the first difference; later ones add nothing."""
        if not self._has_differed:
            self._has_differed = True
            self._notes.append(f"{self._path}: {problem}: {DECIDES}")

    def entries_below(self, offset: int, *, is_damaged: bool) -> Iterator[AbortedTransaction]:
        """Skip to the entries of an offset; yield the skipped ones if the log is damaged there; else they are wrong."""
        while self._next is not None and self._next.last_offset < offset:
            if is_damaged:
                yield self._next
            else:
                self._differ(f"no abort of producer {self._next.producer_id} at offset {self._next.last_offset}")
            self._advance()

    def names(self, header: BatchHeader) -> bool:
        """Return True if the next entry belongs to a marker."""
        entry = self._next
        return entry is not None and (entry.producer_id, entry.last_offset) == (header.producer_id, header.first_offset)

    def denies(self, header: BatchHeader) -> bool:
        """Return True if the index has no entry for a marker, but was written after it.

        That is certain if the index continues, or its segment is closed.
        """
        if not self._has_entries or self._has_differed or self.names(header):
            return False
        return self._is_closed if self._next is None else self._next.last_offset > header.first_offset

    def first_offset_of(self, header: BatchHeader, ended: _MaybeEnded) -> int:
        """Return the start of an aborted transaction, if the producer's previous one may have ended in damage."""
        entry = self._next
        if (
            entry is None
            or not self.names(header)
            or not ended.damaged_from < entry.first_offset <= header.first_offset
        ):
            return ended.begun
        self._notes.append(
            f"{self._path.parent}: the transaction of producer {entry.producer_id} from offset {ended.begun} on ended"
            f" in a damaged part of the log: in {self._path.name} the abort at offset {entry.last_offset}"
            f" has first offset"
            f" {entry.first_offset}"
        )
        return entry.first_offset

    def confirm(self, header: BatchHeader, begun: int | None, whole_from: int) -> None:
        """Skip the entry of an abort in the log; if records were aborted, it must exist.

        An entry may begin where nothing is left of the transaction, but not at an offset from `whole_from` on.
        """
        if self._next is not None and self.names(header):
            first = self._next.first_offset
            if begun is not None and (first > begun or whole_from <= first < begun):
                self._differ(
                    f"the transaction that producer {header.producer_id} aborted at offset {header.first_offset} begins"
                    f" at {begun}, but the entry has {first}"
                )
            self._advance()
        elif begun is not None and self._index is not None:
            self.is_broken = True
            self._differ(f"no entry for the abort of producer {header.producer_id} at offset {header.first_offset}")
        elif begun is not None and self._is_wanted:
            self.is_broken = True
            self._differ("missing, although the log has aborted transactions")


# --- snapshots -------------------------------------------------------------------------------------------------------


def _confirmed_slot(partition: PartitionLog, slot: int) -> tuple[int, OpenTransactions]:
    """Return the last segment, up to `slot`, where reading may start, and the transactions open there.

    A snapshot matches the log if the previous segment's snapshot and headers lead to the same open transactions: a
    single file that is stale, from another log, or wrong does no harm. Compaction also removes markers, so the two can
    differ: then reading starts earlier.
    """
    for number in range(slot, 0, -1):
        opened = open_at(partition, partition.base_offsets[number])
        before = open_at(partition, partition.base_offsets[number - 1])
        if before is None and partition.base_offsets[number - 1] == 0:
            before = {}
        if opened is not None and before is not None and _leads_to(partition.segments[number - 1], before) == opened:
            return number, opened
    return 0, {}


def _leads_to(segment: SegmentFiles, before: OpenTransactions) -> OpenTransactions:
    """Return the open transactions after a segment, by its log alone."""
    since = TransactionWalk()
    since.begun = dict(before)
    for _ in since.walk([segment]):
        pass
    return since.begun
