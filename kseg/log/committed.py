"""Reads with `read_committed`: aborted transactions, and the records that an open transaction holds back."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from kseg import kernel
from kseg.errors import plural
from kseg.index.header_scan import header_of, header_runs, walk_headers
from kseg.kernel.contract import LEAST, MOST
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.log.transaction_walk import Ended, TransactionWalk
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import Run
from kseg.times import iso_time


class HeldBackOffsets(NamedTuple):
    """Offsets held back, from `first_offset` to below `end_offset`, and the number of records there by the headers.

    records: without markers. producer_id: the producer of the open transaction. since_ms: the timestamp of its first
    record, in milliseconds since 1970. Both are None if the batch at the first offset is missing or has none.
    is_unknown: the transaction may have ended where the log is damaged.
    """

    first_offset: int
    end_offset: int
    records: int
    producer_id: int | None
    since_ms: int | None
    is_unknown: bool = False

    def line(self) -> str:
        """Return the number of records held back, their first offset and the reason."""
        verb = "is" if self.records == 1 else "are"
        why = why_withheld(self.producer_id, iso_time(self.since_ms), is_unknown=self.is_unknown)
        return f"{plural(self.records, 'record')} from offset {self.first_offset} on {verb} not yet readable: {why}"


def why_withheld(producer_id: int | None, since: str | None, *, is_unknown: bool) -> str:
    """Return the reason why records are held back: the transaction, and its start if known."""
    whose = "" if producer_id is None else f" of producer {producer_id}"
    began = "" if since is None else f" since {since}"
    if not is_unknown:
        return f"a transaction{whose} is open{began}"
    return (
        f"the end of a transaction{whose}, open{began}, isn't known: its marker may be in a damaged part of the log;"
        " give another copy of the partition too"
    )


def find_withheld(
    segments: Sequence[SegmentFiles], found: "ReadCommitted", end_offset: int = MOST
) -> HeldBackOffsets | None:
    """Return the records that the oldest open transaction holds back, by the headers from its first offset on.

    The end is `end_offset` or the log's end. None if no transaction is open. Raises OpenError if a log can't be
    opened.

    Args:
        segments: all segments of the partition.
        found: the transactions read from them.
        end_offset: the first unwanted offset.
    """
    open_from = found.last_stable_offset
    if open_from is None:
        return None
    fold = kernel.load().HeaderFold(Event.BOUND | Event.CONTROL)
    fold.passes_legacy = True
    fold.offset_bound, fold.next_offset = open_from, open_from
    producer_id = since_ms = None
    markers = 0
    for header in _stops(segments, open_from, fold):
        if fold.offset_bound == open_from and header.last_offset >= open_from:
            fold.records, fold.offset_bound, markers = 0, end_offset, 0
        if header.first_offset >= end_offset:
            break
        fold.take(header)
        markers += (header.records_count or 0) if header.is_control else 0
        if header.is_transactional and header.first_offset == open_from:
            producer_id, since_ms = header.producer_id, _time_of(header)
    end = min(fold.next_offset, end_offset)
    return HeldBackOffsets(open_from, end, fold.records - markers, producer_id, since_ms, found.is_unknown)


def _stops(segments: Sequence[SegmentFiles], offset: int, fold: HeaderFold) -> Iterator[BatchHeader]:
    """Yield the headers at which a fold stops, of batches that may reach an offset.

    The caller adds them to the fold.
    """
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
_UNKNOWN = (
    "{} from offset {} on {} not yet readable: the outcome of a transaction of producer {} isn't known,"
    " since its marker is lost, and"
    " the .txnindex can't be read; specify another copy of the partition too"
)


class ReadCommitted(NamedTuple):
    """The committed records, and the end up to which a consumer may read.

    aborted: certainly or possibly aborted transactions by producer id, as ordered (first offset, offset of the
    marker). last_stable_offset: the first offset of the oldest open transaction; None if none is open below the
    requested end. is_unknown: that transaction may have ended where the log is damaged. notes: the files that
    contradict the log, and the number of records held back because the outcome of their transactions is unknown.
    """

    aborted: dict[int, list[Span]]
    last_stable_offset: int | None
    is_unknown: bool
    notes: tuple[str, ...]

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        """Return True if a producer's transactional batch that begins at an offset was aborted."""
        spans = self.aborted.get(producer_id, [])
        place = bisect_right(spans, offset, key=_first_of)
        return place > 0 and offset <= spans[place - 1][1]


def _first_of(span: Span) -> int:
    return span[0]


def read_committed(
    segments: Sequence[SegmentFiles],
    partition: PartitionLog | None = None,
    first_offset: int = LEAST,
    end_offset: int = MOST,
) -> ReadCommitted:
    """Read the transactions in consecutive segments, as far as they matter for a range of offsets.

    Reads headers from a producer snapshot that matches the log, or from the first segment. Stops when the outcome of
    all transactions that began below the end is known. Raises OpenError if a log can't be opened.

    Args:
        segments: all segments of a partition, or only one.
        partition: the partition whose snapshots may be used; None for none.
        first_offset: the first wanted offset.
        end_offset: the first unwanted offset.
    """
    walk, notes = TransactionWalk(partition, end_offset), list[str]()
    aborted = defaultdict[int, list[Span]](list)
    for event in walk.walk(segments, first_offset):
        if not isinstance(event, Ended) or event.is_aborted is False or event.first_offset is None:
            continue
        last = event.end_offset if event.until is None else event.until - 1
        assert last is not None
        aborted[event.producer_id].append((event.first_offset, last))
        if event.is_aborted is None:
            count = _count_records(segments, event.producer_id, range(event.first_offset, last + 1))
            verb = "is" if count == 1 else "are"
            notes.append(_UNKNOWN.format(plural(count, "record"), event.first_offset, verb, event.producer_id))
    open_from = min((first for first in walk.begun.values() if first < end_offset), default=None)
    is_unknown = any(walk.begun[producer_id] == open_from for producer_id in walk.maybe_ended)
    spans = {producer_id: sorted(found) for producer_id, found in aborted.items()}
    place = segments[0].path.parent if segments else ""
    notes_of_walk = [*walk.notes, *(f"{place}: {note}" for note in notes)]
    return ReadCommitted(spans, open_from, is_unknown, tuple(dict.fromkeys(notes_of_walk)))


def _count_records(segments: Sequence[SegmentFiles], producer_id: int, offsets: range) -> int:
    """Count the records in a producer's transactional batches in a range of offsets, by the headers."""
    count = 0
    for number, segment in enumerate(segments):
        is_before = number + 1 < len(segments) and segments[number + 1].base_offset <= offsets.start
        if is_before or segment.base_offset >= offsets.stop:
            continue
        with segment.open_log() as log_file:
            for header in walk_headers(log_file):
                if isinstance(header, BatchHeader) and header.producer_id == producer_id and not header.is_control:
                    count += (header.records_count or 0) if header.first_offset in offsets else 0
    return count


def read_last_stable_offset(partition: PartitionLog) -> int | None:
    """Return the first offset of a partition's oldest open transaction, or its log's start, or None if none is open.

    Reads only the headers of the last segments if a snapshot there matches the log. Raises OpenError.
    """
    first = min(read_open_transactions(partition).values(), default=None)
    return None if first is None else max(first, partition.log_start_offset())


class OpenAtEnds(NamedTuple):
    """The number of open transactions at the end of each segment, and their first offsets at the end of the log."""

    counts: tuple[int, ...]
    first_offset: int | None


def open_at_ends(partition: PartitionLog) -> OpenAtEnds:
    """Return the open transactions at the ends of the segments of a partition, by all headers.

    Raises OpenError if a log can't be opened.
    """
    walk, bases = TransactionWalk(partition), partition.base_offsets
    changes = [0] * (len(bases) + 1)

    def span(first: int, end: int | None) -> None:
        changes[max(bisect_right(bases, first) - 1, 0)] += 1
        changes[len(bases) if end is None else max(bisect_right(bases, end) - 1, 0)] -= 1

    for event in walk.walk(partition.segments):
        if isinstance(event, Ended) and event.first_offset is not None:
            span(event.first_offset, event.place)
    for first in walk.begun.values():
        span(first, None)
    return OpenAtEnds(tuple(accumulate(changes[:-1])), min(walk.begun.values(), default=None))


def read_open_transactions(partition: PartitionLog, end_offset: int = MOST) -> Mapping[int, int]:
    """Return the first offsets of transactions that are open below an offset, or at the end of the log, by producer.

    Reads and raises as `read_last_stable_offset`. If a transaction is open, also reads the batches after the offset,
    until it ends.
    """
    walk = TransactionWalk(partition, end_offset)
    ended = [event for event in walk.walk(partition.segments, end_offset) if isinstance(event, Ended)]
    opened = [(each.producer_id, each.first_offset) for each in ended if each.place >= end_offset]
    return {
        producer_id: first
        for producer_id, first in (*walk.begun.items(), *opened)
        if first is not None and first < end_offset
    }
