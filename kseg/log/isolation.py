"""What a consumer with `read_committed` doesn't get: aborted transactions, and what follows an open one.

Source: UnifiedLog.collectAbortedTransactions, UnifiedLog.fetchLastStableOffset.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.codes import ControlType
from kseg.formats.fixed import AbortedTransaction
from kseg.index.headers import BatchHeader, walk_headers
from kseg.index.producer_state import parse_end_marker
from kseg.index.transaction_index import TransactionIndex
from kseg.log.partition import PartitionLog, SegmentFiles
from kseg.log.segment_search import SegmentStep, seek_offset
from kseg.log_file import LogFile

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


def read_isolation(segments: Iterable[SegmentFiles], partition: PartitionLog | None = None) -> Isolation:
    """The transactions of segments that follow one another.

    A segment's aborted ones are those of its .txnindex, if each of these has its marker in the log; without one its
    headers are read. Open ones are those of the partition's last producer snapshot that can be used, and of the headers
    behind it; without a snapshot of all headers. Raises OpenError if a log can't be opened.
    """
    segments = list(segments)
    aborted: defaultdict[int, set[Span]] = defaultdict(set)
    notes: list[str] = []
    begun, start = _open_at_snapshot(partition)
    for segment in segments:
        indexed = _indexed(segment, notes)
        for entry in indexed or ():
            aborted[entry.producer_id].add((entry.first_offset, entry.last_offset))
        if indexed is None or segment.base_offset >= start:
            scan = _Scan(segment, begun if segment.base_offset >= start else {})
            if indexed is None:
                scan.add_aborted(aborted)
            if scan.found_transactions and indexed is None and segment.transaction_index is None:
                notes.append(f"{segment.path.with_suffix('.txnindex')}: missing: {SCANNED}")
    spans = {producer_id: sorted(found) for producer_id, found in aborted.items()}
    return Isolation(spans, min(begun.values(), default=None), tuple(notes))


def _open_at_snapshot(partition: PartitionLog | None) -> tuple[dict[int, int], int]:
    """First offsets of open transactions by producer, and the offset where the snapshot that knows them ends; or 0."""
    if partition is not None and partition.segments:
        for offset in sorted(set(partition.snapshots) & set(partition.base_offsets), reverse=True):
            try:
                states = partition.read_producer_states(offset)
            except KsegError:
                continue
            if states is not None:
                return dict(states.open_transactions), offset
    return {}, 0


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
                found = (_entry_problem(entry, segment, log_file) for entry in entries)
                problem = next((each for each in found if each is not None), None)
    except KsegError as error:
        notes.append(f"{error}: {SCANNED}")
        return None
    if problem is not None:
        notes.append(f"{path}: {problem}: {SCANNED}")
        return None
    return entries


def _entry_problem(entry: AbortedTransaction, segment: SegmentFiles, log_file: LogFile) -> str | None:
    step = SegmentStep(segment)
    seek_offset(log_file, step, entry.last_offset, [])
    for header in walk_headers(log_file, step.scan_position):
        if isinstance(header, BatchHeader) and header.last_offset >= entry.last_offset:
            marker = parse_end_marker(log_file.read(header.position, header.size)) if header.is_control else None
            if marker is not None and header.producer_id == entry.producer_id:
                if marker.control_type is ControlType.ABORT and header.last_offset == entry.last_offset:
                    return None
            break
    return f"no abort of producer {entry.producer_id} at offset {entry.last_offset}"


class _Scan:
    """The transactions of a segment, of its headers and markers; `begun` is kept up to date."""

    def __init__(self, segment: SegmentFiles, begun: dict[int, int]) -> None:
        self._aborted: list[tuple[int, Span]] = []
        self.found_transactions = False
        with segment.open_log() as log_file:
            for header in walk_headers(log_file):
                if isinstance(header, BatchHeader) and header.is_transactional:
                    self.found_transactions = True
                    self._add(header, log_file, begun, segment.base_offset)

    def _add(self, header: BatchHeader, log_file: LogFile, begun: dict[int, int], base_offset: int) -> None:
        if not header.is_control:
            begun.setdefault(header.producer_id, header.last_offset if header.base_offset is None else header.base_offset)
            return
        marker = parse_end_marker(log_file.read(header.position, header.size))
        if marker is None:
            return
        first = begun.pop(header.producer_id, base_offset)
        if marker.control_type is ControlType.ABORT:
            self._aborted.append((header.producer_id, (first, header.last_offset)))

    def add_aborted(self, aborted: defaultdict[int, set[Span]]) -> None:
        """Adds the aborted transactions that ended here."""
        for producer_id, span in self._aborted:
            aborted[producer_id].add(span)
