"""Chooses batches by their headers, and records by what is in them: the twin's."""

from collections.abc import Callable

from kseg.formats.codes import CODEC_MASK, MAGIC_POSITION, TIMESTAMP_TYPE_MASK
from kseg.kernel.contract import MOST, ROW, BatchFilter, RecordFilter, Rows
from kseg.kernel.twin_messages import read_entry
from kseg.kernel.twin_records import read_batch
from kseg.kernel.twin_rows import has_batch_header, take_rows
from kseg.kernel.twin_values import (
    BASE_OFFSET,
    BASE_TIMESTAMP,
    CODEC,
    IS_CONTROL,
    IS_TRANSACTIONAL,
    LAST_OFFSET,
    LOG_APPEND_TIME,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    TIMESTAMP_TYPE,
    BatchValues,
    RecordValues,
    headers_of,
    key_of,
    offset_of,
    timestamp_of,
    value_of,
)

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
