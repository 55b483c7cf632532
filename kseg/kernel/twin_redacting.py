"""Header values replaced where they stand: the twin's."""

from collections.abc import Callable, Iterator

from kseg.kernel.twin_headers import varint, varlong
from kseg.kernel.twin_records import read_record
from kseg.kernel.twin_values import OFFSET, BatchValues, header_count_of

_NO_BATCH: BatchValues = (0,) * OFFSET


def replace_header_values(
    records: bytearray, start: int, end: int, count: int, replace: Callable[[bytes], bytes]
) -> None:
    """Replaces the values of the records' headers where they stand; see the contract."""
    if not 0 <= start <= end <= len(records):
        raise IndexError("records outside the buffer")
    body, at = bytes(records[start:end]), 0
    for _ in range(count):
        if at == len(body):
            return
        record, following = read_record(body, at, _NO_BATCH)
        if record is None:
            return
        header_count = header_count_of(record)
        if header_count:
            for first, last in _header_values(body, _headers_position(body, at), header_count):
                replaced = replace(body[first:last])
                if len(replaced) != last - first:
                    raise ValueError("what replaces a value must have its size")
                records[start + first : start + last] = replaced
        at = following


def _headers_position(body: bytes, at: int) -> int:
    """Where the headers of a readable record begin, after their count."""
    _, at = varint(body, at)
    _, at = varlong(body, at + 1)
    _, at = varint(body, at)
    for _ in range(2):
        size, at = varint(body, at)
        at += max(size, 0)
    return varint(body, at)[1]


def _header_values(body: bytes, at: int, count: int) -> Iterator[tuple[int, int]]:
    """Where the values of headers that can be read begin and end, but for empty ones."""
    for number in range(2 * count):
        size = body[at]
        if size < 0x80:
            size = size >> 1 ^ -(size & 1)
            at += 1
        else:
            size, at = varint(body, at)
        if size > 0:
            if number & 1:
                yield at, at + size
            at += size
