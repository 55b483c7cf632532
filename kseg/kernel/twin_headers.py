"""Varints and headers of records, as the twin reads them."""

from collections.abc import Iterator, Sequence
from typing import overload

from kseg.formats.varint_bytes import LONGEST_VARINT, LONGEST_VARLONG, from_zigzag, read_uvarint


def header(record: bytes, at: int) -> tuple[tuple[bytes, bytes | None], int]:
    """The header at a place of a record, and where it ends. Raises EOFError if it can't be read."""
    key, at = nullable_bytes(record, at)
    if key is None:
        raise EOFError
    value, at = nullable_bytes(record, at)
    return (key, value), at


class ManyHeaders(Sequence[tuple[bytes, bytes | None]]):
    """Headers that are read when they are asked for: as Python's objects they take forty times their bytes."""

    def __init__(self, record: bytes, at: int, count: int) -> None:
        self._record, self._at, self._count = record, at, count

    def end(self) -> int:
        """Where they end. Raises EOFError if one of them can't be read."""
        record, at = self._record, self._at
        try:
            for number in range(2 * self._count):
                size = record[at]
                if size < 0x80:
                    size = size >> 1 ^ -(size & 1)
                    at += 1
                else:
                    size, at = varint(record, at)
                if size < 0 and number & 1 == 0:
                    raise EOFError  # a null key
                at += max(size, 0)
        except IndexError as error:
            raise EOFError from error
        if at > len(record):
            raise EOFError
        return at

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[bytes, bytes | None]]:
        at = self._at
        for _ in range(self._count):
            pair, at = header(self._record, at)
            yield pair

    @overload
    def __getitem__(self, index: int) -> tuple[bytes, bytes | None]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[bytes, bytes | None]]: ...
    def __getitem__(self, index: int | slice) -> tuple[bytes, bytes | None] | list[tuple[bytes, bytes | None]]:
        return list(self)[index]


def nullable_bytes(record: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes after their size, None for null, and where they end. Raises EOFError if they aren't there."""
    size, at = varint(record, at)
    if size < 0:
        return None, at
    if size > len(record) - at:
        raise EOFError
    return record[at : at + size], at + size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag int32, and where it ends. Raises EOFError if it doesn't end in time."""
    value, at = read_uvarint(data, at, LONGEST_VARINT)
    value &= 0xFFFFFFFF  # Kafka drops what doesn't fit of the last byte
    return from_zigzag(value), at


def varlong(data: bytes, at: int) -> tuple[int, int]:
    """The same for an int64."""
    value, at = read_uvarint(data, at, LONGEST_VARLONG)
    value &= 0xFFFFFFFF_FFFFFFFF
    return from_zigzag(value), at
