"""Rows of a run for the twin's readers: filters, bodies, and records as values."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    ENTRY_MINIMUM_SIZE,
    MAGIC_POSITION,
    TIMESTAMP_TYPE_MASK,
    Codec,
    TimestampType,
    compressed_body,
)
from kseg.kernel.contract import (
    MOST,
    ROW,
    SIZE,
    START,
    VALID,
    BatchFilter,
    LibraryFunctions,
    RecordFilter,
    RecordProblem,
    Rows,
)
from kseg.kernel.record import Header, Record
from kseg.kernel.twin.records import batch_pieces, entry_pieces, read_batch, read_entry
from kseg.kernel.twin.values import (
    BASE_OFFSET,
    BASE_TIMESTAMP,
    CODEC,
    IS_CONTROL,
    IS_TRANSACTIONAL,
    LAST_OFFSET,
    LOG_APPEND_TIME,
    MAX_TIMESTAMP,
    POSITION,
    PRODUCER_ID,
    TIMESTAMP_TYPE,
    BatchValues,
    Piece,
    RecordValues,
    crc_of,
    headers_of,
    int32,
    key_of,
    offset_of,
    sequence_of,
    timestamp_of,
    validity_of,
    value_of,
)

TakenRow = tuple[int, int, int, "bytes | None"]
"""Where a batch begins in the buffer, its size, whether its CRC holds, its decompressed body."""


class Bodies(list["bytes | None"]):
    """Bodies of consecutive rows."""

    def __init__(self, count: int) -> None:
        super().__init__([None] * count)

    def decompress(
        self, buffer: memoryview, rows: Rows, first: int, functions: LibraryFunctions, limit: int, enough: int
    ) -> tuple[int, list[tuple[int, int, int, int, int]]]:
        """Gives the rows that are left to the libraries' Python interfaces: all that are compressed."""
        last = first + len(self)
        taken = enumerate(take_rows(buffer, rows, first, last, None, -1), first)
        found = ((row, *compressed_body(buffer, start, start + size)) for row, (start, size, _, _) in taken)
        return last, [left for left in found if left[1] != Codec.NONE]


def take_rows(
    buffer: memoryview, rows: Rows, first: int, last: int, bodies: Sequence[bytes | None] | None, first_body: int
) -> Iterator[TakenRow]:
    """Rows first … last - 1 with their bodies, the first of which is row `first_body`'s; `first`'s if that is negative.

    Raises IndexError for rows that don't lie in the buffer, and where bodies are missing.
    """
    first_body = first_body if first_body >= 0 else first
    if not 0 <= first <= last <= len(rows) // ROW:
        raise IndexError("rows that aren't there")
    if bodies is not None and not first_body <= first <= last <= first_body + len(bodies):
        raise IndexError("fewer bodies than rows")
    for row in range(first, last, _ROWS_AT_ONCE):
        stop = min(row + _ROWS_AT_ONCE, last)
        starts, sizes, are_valid = (rows[row * ROW + column : stop * ROW : ROW] for column in (START, SIZE, VALID))
        if min(starts) < 0 or min(sizes) < ENTRY_MINIMUM_SIZE or max(map(add, starts, sizes)) > len(buffer):
            raise IndexError("a row outside the buffer")
        taken = _NO_BODIES if bodies is None else bodies[row - first_body : stop - first_body]
        yield from zip(starts, sizes, are_valid, taken, strict=False)


_ROWS_AT_ONCE = 64
"""Rows checked at once: a caller may come again for the next row, wherever a batch has a problem."""
_NO_BODIES = (None,) * _ROWS_AT_ONCE


def take_pieces(
    buffer: memoryview,
    rows: Rows,
    first: int,
    last: int,
    position: int,
    bodies: Sequence[bytes | None] | None,
    first_body: int,
) -> Iterator[tuple[BatchValues, Iterable[Piece]]]:
    """Rows first … last - 1 as batches with their records; `position` is the buffer's in the file."""
    for at, size, is_valid, body in take_rows(buffer, rows, first, last, bodies, first_body):
        if has_batch_header(buffer, at):
            batch = read_batch(buffer, at, size, is_valid, position + at)
            yield batch, batch_pieces(buffer, at, batch, body)
        else:
            entry, message, is_readable = read_entry(buffer[at : at + size], is_valid, position + at)
            yield entry_pieces(entry, message, is_readable, body)


def has_batch_header(buffer: memoryview, at: int) -> bool:
    """Whether the row at `at` has the header of a v2 batch.

    A size of less than that header doesn't keep Kafka from reading one, if its bytes are there.
    """
    return 2 <= buffer[at + MAGIC_POSITION] < 128 and len(buffer) - at >= BATCH_HEADER_SIZE


_64_BITS = 2**64 - 1
_INCREMENT, _FIRST_FACTOR, _SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def select(buffer: memoryview, rows: Rows, count: int, wanted: BatchFilter) -> tuple[int, int, int, bool]:
    """Keeps of the first `count` rows those whose headers say what is wanted; see the contract."""
    kept = codecs = 0
    earliest, previous, is_behind = MOST, -1, False
    for row, (at, size, is_valid, _) in enumerate(take_rows(buffer, rows, 0, count, None, 0)):
        is_entry = not has_batch_header(buffer, at)
        batch = _entry(buffer, at, size) if is_entry else read_batch(buffer, at, size, is_valid, 0)
        is_wrapper = is_entry and batch[CODEC] != 0
        earliest = min(earliest, batch[BASE_TIMESTAMP], batch[MAX_TIMESTAMP])
        is_behind |= previous >= wanted.last_offset if is_wrapper else batch[BASE_OFFSET] > wanted.last_offset
        previous = batch[LAST_OFFSET]
        if _is_wanted(batch, wanted, is_entry=is_entry):
            rows[kept * ROW : (kept + 1) * ROW] = rows[row * ROW : (row + 1) * ROW]
            codecs |= 1 << batch[CODEC]
            kept += 1
    return kept, codecs, earliest, is_behind


def _entry(buffer: memoryview, at: int, size: int) -> BatchValues:
    """The values of a v0 or v1 entry that its first bytes tell."""
    entry, _, _ = read_entry(buffer[at : at + size], 1, 0)
    attributes = buffer[at + MAGIC_POSITION + 1]
    is_append_time = buffer[at + MAGIC_POSITION] == 1 and attributes & TIMESTAMP_TYPE_MASK
    return (
        *entry[:TIMESTAMP_TYPE],
        LOG_APPEND_TIME if is_append_time else 0,
        *entry[TIMESTAMP_TYPE + 1 : CODEC],
        attributes & CODEC_MASK,
    )


def _is_wanted(batch: BatchValues, wanted: BatchFilter, *, is_entry: bool) -> bool:
    is_wrapper = is_entry and batch[CODEC] != 0
    has_one_timestamp = batch[TIMESTAMP_TYPE] == LOG_APPEND_TIME or (is_entry and not is_wrapper)
    return (
        (batch[LAST_OFFSET] >= wanted.first_offset or (is_wrapper and batch[LAST_OFFSET] == 0))
        and (batch[BASE_OFFSET] <= wanted.last_offset or is_wrapper)
        and batch[MAX_TIMESTAMP] >= wanted.first_timestamp
        and (batch[MAX_TIMESTAMP] <= wanted.last_timestamp or not has_one_timestamp)
        and (wanted.producer_id is None or batch[PRODUCER_ID] == wanted.producer_id)
        and (wanted.is_transactional is None or bool(batch[IS_TRANSACTIONAL]) == wanted.is_transactional)
        and (wanted.is_control is None or bool(batch[IS_CONTROL]) == wanted.is_control)
    )


def test_of(wanted: RecordFilter) -> Callable[[RecordValues], bool]:
    """Whether a record is one that the filter takes, `skip` and `limit` aside."""
    first_offset, last_offset, first_timestamp, last_timestamp, key, key_part, value_part, headers, share, *_ = wanted
    predicate = wanted.predicate

    def takes(record: RecordValues) -> bool:
        offset = offset_of(record)
        if not (first_offset <= offset <= last_offset and first_timestamp <= timestamp_of(record) <= last_timestamp):
            return False
        found_key, found_value = key_of(record), value_of(record)
        if share is not None and mixed(offset) >= share:
            return False
        if key is not None and found_key != key:
            return False
        if key_part is not None and (found_key is None or key_part not in found_key):
            return False
        if value_part is not None and (found_value is None or value_part not in found_value):
            return False
        if headers and not _has_headers(record, headers):
            return False
        return predicate is None or bool(predicate(found_key, found_value))

    return takes


def _has_headers(record: RecordValues, wanted: tuple[tuple[bytes, bytes | None], ...]) -> bool:
    missing = set(wanted)
    for name, value in headers_of(record):
        missing -= {(name, value), (name, None)}
        if not missing:
            return True
    return False


def mixed(number: int) -> int:
    """The number's bits mixed evenly: splitmix64."""
    number = (number + _INCREMENT) & _64_BITS
    number = (number ^ number >> 30) * _FIRST_FACTOR & _64_BITS
    number = (number ^ number >> 27) * _SECOND_FACTOR & _64_BITS
    return number ^ number >> 31


_TIMESTAMP_TYPES = {kind.value: kind for kind in TimestampType}


def records(
    buffer: memoryview,
    rows: Rows,
    first: int,
    last: int,
    position: int,
    bodies: Sequence[bytes | None] | None,
    first_body: int = -1,
) -> Iterator[list[Record] | RecordProblem]:
    """The records of rows first … last - 1 as values; see the contract."""
    for batch, pieces in take_pieces(buffer, rows, first, last, position, bodies, first_body):
        for piece in pieces:
            if isinstance(piece, RecordProblem):
                yield piece
            elif piece:
                yield [_record(batch, values) for values in piece]


def _record(batch: BatchValues, values: RecordValues) -> Record:
    headers = headers_of(values)
    return Record(
        offset_of(values),
        timestamp_of(values),
        _TIMESTAMP_TYPES[batch[TIMESTAMP_TYPE]],
        key_of(values),
        value_of(values),
        tuple([Header(name.decode("utf-8", "replace"), value) for name, value in headers]) if headers else (),
        int32(sequence_of(values)),
        batch[POSITION],
        crc_of(values),
        bool(validity_of(values)),
    )
