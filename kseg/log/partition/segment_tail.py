"""The end of a segment's log, found from its last index entry on where that matches the log."""

from typing import NamedTuple

from kseg.errors import OpenError
from kseg.formats.entries import OffsetIndexEntry
from kseg.index.folding import pass_all
from kseg.index.headers import header_of, header_runs, intact_header
from kseg.index.offset_index import OffsetIndex
from kseg.log.partition.segment_files import SegmentFiles
from kseg.reading.batch import Batch
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import LogFile


class Tail(NamedTuple):
    """The end of a segment's log.

    first_position: where reading started: at the last index entry, or 0. first, last: the headers of the first batch
    from there on and of the last one, None if none was found. max_timestamp: the largest of the batches read, -1 if
    there is none. damage: the last one met. index_problem: why an offset index that is there wasn't used.
    """

    first_position: int
    first: BatchHeader | None
    last: BatchHeader | None
    max_timestamp: int
    damage: Damage | None
    index_problem: str | None = None


def read_tail(segment: SegmentFiles, *, keep_cache: bool = False) -> Tail:
    """The end of a segment: headers from its last index entry on, if that matches the log; otherwise from the start.

    `keep_cache`: as in LogFile. Raises OpenError if the log can't be opened.
    """
    with segment.open_log(keep_cache=keep_cache) as log_file:
        return tail_of(log_file, read_index_end(segment))


class IndexEnd(NamedTuple):
    """The end of a segment's offset index: the last entry, None without an index; how many; its file's bytes.

    has_trailing: whether bytes follow the last whole entry. error: why it can't be opened or read.
    """

    last: OffsetIndexEntry | None = None
    entries: int = 0
    size: int = 0
    has_trailing: bool = False
    error: OpenError | None = None


def read_index_end(segment: SegmentFiles) -> IndexEnd:
    """The end of a segment's offset index, if it has one."""
    if segment.offset_index is None:
        return IndexEnd()
    try:
        with OffsetIndex(segment.offset_index.full_name, segment.base_offset) as index:
            return IndexEnd(index.last_entry(), index.count, index.size, index.trailing > 0)
    except OpenError as error:
        return IndexEnd(size=segment.offset_index.size, error=error)


def tail_of(log_file: LogFile, index: IndexEnd) -> Tail:
    """The end of an open log, as `read_tail` gives it."""
    problem: str | None = str(index.error) if index.error is not None and index.size else None
    if index.last is None or index.last.position == 0:
        return _tail_from(log_file, 0, None, problem)
    known = _header_of_entry(log_file, index.last.offset, index.last.position)
    if isinstance(known, str):
        return _tail_from(log_file, 0, None, known)
    return _tail_from(log_file, known.position, known._replace(is_valid=None), None)


def _tail_from(log_file: LogFile, start: int, known: BatchHeader | None, problem: str | None) -> Tail:
    """The tail from a batch on, whose header may be known already."""
    first, last, damage = known, known, None
    fold = log_file.kernel.HeaderFold(0)
    fold.passes_legacy = True
    for item in header_runs(log_file, start if known is None else known.end):
        if isinstance(item, Damage):
            damage = item
        else:
            pass_all(fold, item)
            first = first or header_of(item, 0)
            last = header_of(item, item.row_count - 1)
    largest = fold.max_timestamp if known is None else max(fold.max_timestamp, known.max_timestamp)
    return Tail(start, first, last, largest, damage, problem)


def entry_problem(log_file: LogFile, offset: int, position: int) -> str | None:
    """How the log contradicts an index entry; None if a search may start there.

    There must be a batch with a right CRC at the position, and it must begin at or below the entry's offset: then all
    offsets from the entry's on are there or later, whichever offset of its batch or append the entry has.
    """
    if position == 0:
        return None
    found = _header_of_entry(log_file, offset, position)
    return found if isinstance(found, str) else None


def _header_of_entry(log_file: LogFile, offset: int, position: int) -> BatchHeader | str:
    """The header of the batch that an entry points at, or how the log contradicts the entry."""
    if not 0 < position < log_file.size:
        return f"the entry {offset} → {position} points beyond the log's {log_file.size} bytes"
    header = intact_header(log_file, position)
    if header is None:
        return f"the entry {offset} → {position} doesn't point at an intact batch"
    first = header.first_offset
    if header.base_offset is None and first > offset:
        first = Batch.parse(log_file.read(header.position, header.size), header.position, is_valid=True).base_offset
    if first > offset:
        return f"the entry {offset} → {position} points at a batch that begins with offset {first}"
    return header
