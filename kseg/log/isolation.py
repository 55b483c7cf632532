"""What a consumer with `read_committed` doesn't get: aborted transactions, and what follows an open one.

Source: UnifiedLog.collectAbortedTransactions, UnifiedLog.fetchLastStableOffset.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.codes import ControlType
from kseg.formats.fixed import AbortedTransaction
from kseg.index.headers import BatchHeader, walk_headers
from kseg.index.producer_state import read_end_marker
from kseg.index.transaction_index import TransactionIndex
from kseg.kernel.contract import LEAST
from kseg.log.partition import PartitionLog, SegmentFiles
from kseg.log.segment_search import SegmentStep, seek_offset
from kseg.log_file import LogFile

ENTRIES_SOUGHT = 100
"""Entries of a transaction index that are looked up in the log one by one; for more its headers are read once."""
Span = tuple[int, int]
SCANNED = "the log is scanned for aborted transactions instead; `kseg reindex` rebuilds it"


class Isolation(NamedTuple):
    """Aborted transactions by producer id, as rising (first offset, offset of the marker); and how far one may read.

    `last_stable_offset` is the first offset of the oldest open transaction; None if none is open. `notes` say what was
    scanned, and why.
    """

    aborted: dict[int, list[Span]]
    last_stable_offset: int | None
    notes: tuple[str, ...]

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        """Whether a transactional batch of a producer, that begins with the offset, was aborted."""
        spans = self.aborted.get(producer_id, [])
        place = bisect_right(spans, offset, key=_first_of)
        return place > 0 and offset <= spans[place - 1][1]


def _first_of(span: Span) -> int:
    return span[0]


def _base_of(segment: SegmentFiles) -> int:
    return segment.base_offset


def read_isolation(
    segments: Sequence[SegmentFiles], partition: PartitionLog | None = None, first_offset: int = LEAST
) -> Isolation:
    """The transactions of segments that follow one another, as far as they touch offsets from the first one on.

    Aborted ones are those of each segment's .txnindex, if every entry has its marker in the log. If a segment has none
    that can be used, headers are read, from a producer snapshot on that can be. Open ones are those of the newest such
    snapshot and of the headers behind it. Raises OpenError if a log can't be opened.

    Args:
        segments: all of a partition, or one alone.
        partition: whose snapshots can be used; None for none.
        first_offset: the first one wanted.
    """
    notes: list[str] = []
    aborted: defaultdict[int, set[Span]] = defaultdict(set)
    first_slot = max(bisect_right(segments, first_offset, key=_base_of) - 1, 0)
    indexed = [_indexed(segment, notes) for segment in segments[first_slot:]]
    is_indexed = all(entries is not None for entries in indexed)
    begun, start = _open_at_snapshot(partition, len(segments) if is_indexed else first_slot + 1)
    for entry in chain.from_iterable(entries or () for entries in indexed if is_indexed):
        aborted[entry.producer_id].add((entry.first_offset, entry.last_offset))
    has_transactions = False
    for segment in segments:
        if segment.base_offset >= start:
            for producer_id, span in _aborted_in(segment, begun):
                has_transactions = True
                if span is not None:
                    aborted[producer_id].add(span)
    missing = sum(segment.transaction_index is None for segment in segments[first_slot:])
    if missing and has_transactions:
        notes.append(f"{segments[0].path.parent}: {missing} of {len(indexed)} .txnindex are missing: {SCANNED}")
    spans = {producer_id: sorted(found) for producer_id, found in aborted.items()}
    return Isolation(spans, min(begun.values(), default=None), tuple(notes))


def _open_at_snapshot(partition: PartitionLog | None, count: int) -> tuple[dict[int, int], int]:
    """First offsets of open transactions by producer, of a snapshot, and the offset where it ends; none at LEAST.

    It is the newest that can be used, of those that end where one of the first `count` segments begins.
    """
    if partition is not None:
        for offset in reversed(partition.base_offsets[:count]):
            try:
                states = partition.read_producer_states(offset)
            except KsegError:
                continue
            if states is not None:
                return dict(states.open_transactions), offset
    return {}, LEAST


def _indexed(segment: SegmentFiles, notes: list[str]) -> list[AbortedTransaction] | None:
    """The entries of a segment's transaction index; None if it has none, or one that the log doesn't bear out."""
    if segment.transaction_index is None:
        return None
    path = segment.transaction_index.path
    try:
        with TransactionIndex(path, segment.base_offset) as index, segment.open_log() as log_file:
            entries = list(index.entries())
            problem = index.sanity_problem()
            if problem is None:
                problem = _first_problem(entries, segment, log_file)
    except KsegError as error:
        notes.append(f"{error}: {SCANNED}")
        return None
    if problem is not None:
        notes.append(f"{path}: {problem}: {SCANNED}")
        return None
    return entries


def _first_problem(entries: list[AbortedTransaction], segment: SegmentFiles, log_file: LogFile) -> str | None:
    """What the log says against the first entry that it doesn't bear out; None if there is none."""
    if len(entries) <= ENTRIES_SOUGHT:
        found = (_entry_problem(entry, segment, log_file) for entry in entries)
        return next((problem for problem in found if problem is not None), None)
    headers = (header for header in walk_headers(log_file) if isinstance(header, BatchHeader))
    aborts = {(header.producer_id, header.last_offset) for header in headers if _is_abort(log_file, header)}
    wrong = (entry for entry in entries if (entry.producer_id, entry.last_offset) not in aborts)
    return next(map(_no_abort, wrong), None)


def _is_abort(log_file: LogFile, header: BatchHeader) -> bool:
    marker = read_end_marker(log_file, header) if header.is_control else None
    return marker is not None and marker.control_type is ControlType.ABORT


def _no_abort(entry: AbortedTransaction) -> str:
    return f"no abort of producer {entry.producer_id} at offset {entry.last_offset}"


def _entry_problem(entry: AbortedTransaction, segment: SegmentFiles, log_file: LogFile) -> str | None:
    step = SegmentStep(segment)
    seek_offset(log_file, step, entry.last_offset, [])
    for header in walk_headers(log_file, step.scan_position):
        if isinstance(header, BatchHeader) and header.last_offset >= entry.last_offset:
            is_named = (header.producer_id, header.last_offset) == (entry.producer_id, entry.last_offset)
            if is_named and _is_abort(log_file, header):
                return None
            break
    return _no_abort(entry)


def _aborted_in(segment: SegmentFiles, begun: dict[int, int]) -> Iterator[tuple[int, Span | None]]:
    """Producers of transactional batches in a segment, with the aborted transaction where one ends.

    `begun`, the first offsets of open transactions, is kept up to date.
    """
    with segment.open_log() as log_file:
        for header in walk_headers(log_file):
            if not isinstance(header, BatchHeader) or not header.is_transactional:
                continue
            if not header.is_control:
                begun.setdefault(header.producer_id, header.base_offset or 0)
                yield header.producer_id, None
            elif marker := read_end_marker(log_file, header):
                first = begun.pop(header.producer_id, header.last_offset)
                is_aborted = marker.control_type is ControlType.ABORT
                yield header.producer_id, (first, header.last_offset) if is_aborted else None
