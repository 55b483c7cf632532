"""Headers of batches without their records, read with few bytes or taken from checked runs."""

from collections.abc import Iterator

from kseg import kernel
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.kernel.contract import LEAST, MOST, ROW, SIZE, START, VALID, Rows, new_rows
from kseg.kernel.fold_contract import UNCHECKED, HeaderFold, ProducerTable
from kseg.reading.batch import Batch, BatchHeader, parse_header
from kseg.reading.blocks import HEADER_WINDOW, Damage
from kseg.reading.log_file import BUFFER_SIZE, LogFile, Run

WINDOW_SIZE = 1 << 14
"""Bytes read at first, and after a large batch."""
LARGEST_WINDOW = 1 << 18
"""Bytes read at once while batches are small."""
LARGE_BATCH = 1 << 12
"""The size of a batch after which only the next header is read."""
_WINDOW_ROWS = 1 << 12
_SPARSE_SIZE = 1 << 24
"""Bytes of a log whose large batches' headers are read into one buffer; it takes a page of memory per header."""
_HEADERS_FIRST, _HEADERS_MOST = 4, 256
"""Headers made at once: few at first, since often only one is wanted."""
_VALIDITY = {0: False, 1: True, UNCHECKED: None}


def headers_of(run: Run) -> Iterator[BatchHeader]:
    """Yield the headers of the batches of a run."""
    if run.row_count == 1:
        yield header_of(run, 0)
        return
    first, count = 0, _HEADERS_FIRST
    while first < run.row_count:
        last = min(first + count, run.row_count)
        yield from _headers_between(run, first, last)
        first, count = last, min(4 * count, _HEADERS_MOST)


def _headers_between(run: Run, first: int, last: int) -> Iterator[BatchHeader]:
    columns = kernel.load().header_columns(run.buffer, run.rows, first, last, run.position)
    if columns.has_wrappers:
        return (header_of(run, row) for row in range(first, last))
    values = [memoryview(columns.column(name)).cast("B").cast("q") for name in BatchHeader._fields[:-1]]
    are_valid = map(_VALIDITY.__getitem__, run.rows[first * ROW + VALID : last * ROW : ROW])
    return map(BatchHeader._make, zip(*values, are_valid, strict=True))


def header_of(run: Run, row: int) -> BatchHeader:
    """Return the header of one of the batches of a run."""
    start = run.rows[row * ROW + START]
    return parse_header(run.buffer, start, run.position + start, _VALIDITY[run.rows[row * ROW + VALID]])


def checked_headers(log_file: LogFile, start: int = 0) -> Iterator[BatchHeader | Damage]:
    """Yield headers of all batches from a batch's position on, CRCs checked, and damages; every byte is read."""
    for item in log_file.runs(start):
        if isinstance(item, Damage):
            yield item
        else:
            yield from headers_of(item)


def walk_headers(log_file: LogFile, start: int = 0) -> Iterator[BatchHeader | Damage]:
    """Yield the headers of `header_runs`, one by one (`is_valid` None)."""
    for item in header_runs(log_file, start):
        if isinstance(item, Damage):
            yield item
        else:
            yield from headers_of(item)


def _untouched_memory(size: int) -> memoryview:
    """Return zeros, of which only the pages that are written take memory: a new bytearray takes all of its own."""
    from mmap import mmap

    return memoryview(mmap(-1, size))


def header_runs(log_file: LogFile, start: int = 0) -> Iterator[Run | Damage]:
    """Yield runs of batches by their headers from a batch's position on, CRCs unchecked; reads little but headers.

    As in Kafka, a length is trusted up to the end of the file. At an impossible header, LogFile examines the bytes,
    and the walk continues after them. A run's buffer holds its batches' headers, not all of their bytes; buffer and
    rows are valid until the next run is taken. A log that is read together with other copies is read completely, since
    this finds its holes. Source: FileLogInputStream.
    """
    if log_file.is_joined:
        yield from log_file.runs(start)
        return
    position, wanted = start, WINDOW_SIZE
    walk = log_file.kernel.walk
    rows = new_rows(min(_WINDOW_ROWS, max(log_file.size - start, 0) // HEADER_WINDOW + 1))
    sparse = memoryview(b"")
    while position < log_file.size:
        if wanted == BATCH_HEADER_SIZE:
            sparse = sparse or _untouched_memory(min(_SPARSE_SIZE, log_file.size - position))
            count, end = log_file.read_headers(position, sparse, rows, LARGE_BATCH)
            if count:
                yield Run(sparse, position, rows, count, 0)
                position += end
                continue
        window = log_file.read(position, log_file.cheap_size(position, wanted, BATCH_HEADER_SIZE))
        if not window:
            return  # the file was cut while it was read
        count, end, _ = walk(window, 0, rows, log_file.size - position)
        if not log_file.is_readable(position, len(window)):
            count, end = _readable_headers(log_file, position, rows, count, end)
        if count:
            yield Run(memoryview(window), position, rows, count, 0)
            position += end
            is_small = rows[(count - 1) * ROW + SIZE] < LARGE_BATCH
            wanted = min(max(2 * wanted, WINDOW_SIZE), LARGEST_WINDOW) if is_small else BATCH_HEADER_SIZE
            continue
        for item in log_file.runs(position):
            yield item
            position = end_of(item)
            break
        else:
            return


def _readable_headers(log_file: LogFile, position: int, rows: Rows, count: int, end: int) -> tuple[int, int]:
    """Return the rows up to the first header that the disk can't read, and their end."""
    for row in range(count):
        start = rows[row * ROW + START]
        if not log_file.is_readable(position + start, BATCH_HEADER_SIZE):
            return row, start
    return count, end


def first_header(log_file: LogFile) -> BatchHeader | None:
    """Return the first batch header, its CRC unchecked, at any position, or None if it doesn't exist."""
    header = _plausible_header(log_file, 0)
    if header is not None and log_file.is_readable(0, BATCH_HEADER_SIZE):
        return header
    return next((item for item in walk_headers(log_file) if isinstance(item, BatchHeader)), None)


def intact_header(log_file: LogFile, position: int) -> BatchHeader | None:
    """Return the header of the batch at a position, if its CRC is right; reads little but that batch."""
    header = _plausible_header(log_file, position)
    return header._replace(is_valid=True) if header is not None and is_intact(log_file, header) else None


def is_intact(log_file: LogFile, header: BatchHeader) -> bool:
    """Return True if the CRC of the batch is right; reads the batch unless that is known, a large one in pieces."""
    if header.is_valid is not None:
        return header.is_valid
    if header.size > BUFFER_SIZE:
        item = next(log_file.runs(header.position), None)
        return isinstance(item, Run) and bool(item.rows[VALID])
    raw = log_file.read(header.position, header.size)
    if len(raw) < header.size:
        return False
    batch = Batch.parse(raw, header.position, is_valid=True)
    return batch.compute_crc() == batch.crc and log_file.is_readable(header.position, header.size)


def _plausible_header(log_file: LogFile, position: int) -> BatchHeader | None:
    """Return the header at a position if it is possible."""
    window = log_file.read(position, BATCH_HEADER_SIZE)
    count, _, _ = log_file.kernel.walk(window, 0, new_rows(1), log_file.size - position)
    return parse_header(window, 0, position) if count else None


def end_of(item: Run | Damage) -> int:
    """Return the position after a run's last batch, or after a damage."""
    if isinstance(item, Damage):
        return item.position + item.size
    last = (item.row_count - 1) * ROW
    size: int = item.rows[last + START] + item.rows[last + SIZE]
    return item.position + size


def events(fold: HeaderFold, run: Run) -> Iterator[tuple[BatchHeader, int]]:
    """Yield headers of the batches of a run in which one of the fold's events happens, and the events, see Event.

    At each, the fold's state is the result of the batches before it. The fold takes the header when the next one is
    requested, so a caller may change the state before.
    """
    row = 0
    while True:
        row, happened = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
        if row == run.row_count:
            return
        header = header_of(run, row)
        yield header, happened
        fold.take(header)
        row += 1


def pass_all(fold: HeaderFold, run: Run) -> None:
    """Pass all of the batches of a run, whatever happens in them."""
    for _ in events(fold, run):
        pass


class FoldWithin:
    """Processes the v2 batches in a range of offsets and skips all others.

    fold: takes no headers; a caller sets the state that it needs.
    """

    def __init__(self, watched: int, offsets: range, producers: ProducerTable | None = None) -> None:
        """Take the events to stop at, the range, and the producers known so far."""
        new_fold = kernel.load().HeaderFold
        below, self.fold, above = new_fold(0), new_fold(watched, producers), new_fold(0)
        self.fold.offset_floor = below.offset_bound = min(max(offsets.start, LEAST), MOST)
        self.fold.offset_bound = above.offset_floor = min(offsets.stop, MOST)
        self._offsets = offsets
        self._folds = (below, above, self.fold) if offsets.stop <= MOST else (below, self.fold)
        for each in self._folds:
            each.passes_legacy = True

    def events(self, run: Run) -> Iterator[BatchHeader]:
        """Yield headers of the batches of a run in the range in which one of the fold's events happens."""
        row = 0
        while row < run.row_count:
            for fold in self._folds:
                row, _ = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
            if row < run.row_count:
                header = header_of(run, row)
                if header.last_offset in self._offsets:
                    yield header
                row += 1
