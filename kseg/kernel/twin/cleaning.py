"""Compaction by the twin: the offset map, the batches that stay, and records written as bytes."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, auto
from struct import Struct
from typing import NamedTuple

from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.varint_bytes import LONGEST_VARINT, LONGEST_VARLONG, few_varints, read_uvarint, varint
from kseg.kernel.contract import MOST, ROW, VALID, Appended, Buffer, RecordProblem, Rows
from kseg.kernel.statistics_contract import DIGEST_SIZE, ENTRY_SIZE
from kseg.kernel.twin.fold import ProducerTable
from kseg.kernel.twin.records import batch_pieces, entry_pieces, read_batch, read_entry
from kseg.kernel.twin.rows import Bodies, has_batch_header, take_rows
from kseg.kernel.twin.values import (
    BASE_TIMESTAMP,
    CODEC,
    HAS_DELETE_HORIZON,
    LAST_OFFSET,
    MAGIC,
    PRODUCER_ID,
    BatchValues,
    RecordValues,
    int64,
    key_of,
    offset_of,
    timestamp_of,
    validity_of,
    value_of,
)

_NUMBER, _OFFSET = Struct(">I"), Struct("=Q")
_OFFSET_AT = DIGEST_SIZE
_MOST_STARTS = DIGEST_SIZE - _NUMBER.size


class _Fate(Enum):
    """What becomes of a batch."""

    LOOK = auto()
    WHOLE = auto()
    NOTHING_LEFT = auto()


class _Record(Enum):
    """What becomes of a record."""

    KEPT = auto()
    SUPERSEDED = auto()
    WITHOUT_KEY = auto()


class _Row(NamedTuple):
    """A batch: its own values, its records, and whether these are all."""

    batch: BatchValues
    records: list[RecordValues]
    is_whole: bool


class OffsetTable:
    """See the contract."""

    def __init__(self, memory: Buffer, most: int, digest: Callable[[bytes], bytes], function: int = 0) -> None:
        self._memory = memoryview(memory)
        self._slots = len(self._memory) // ENTRY_SIZE
        if most >= max(self._slots, 1):
            raise IndexError("as many keys as slots: probing wouldn't end")
        self._most, self._digest = most, digest
        self._count = 0
        self.latest_offset, self.end_offset = -1, MOST
        self.producers = ProducerTable()
        self.kept = self.superseded = self.without_key = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another key."""
        return self._count >= self._most

    def put(self, key: bytes, offset: int) -> None:
        """Sets a key's offset; see the contract."""
        digest = self._digest(key)
        place, stored = self._find(digest) if self._slots else (0, 0)
        if not stored:
            if self._count + 1 >= self._slots:
                raise IndexError("no room for another key")
            self._count += 1
        self._memory[place : place + DIGEST_SIZE] = digest
        _OFFSET.pack_into(self._memory, place + _OFFSET_AT, offset + 1)
        self.latest_offset = offset

    def get(self, key: bytes) -> int:
        """A key's offset, -1 if it isn't there."""
        return self._find(self._digest(key))[1] - 1 if self._slots else -1

    def _find(self, digest: bytes) -> tuple[int, int]:
        """The slot of a digest, or the free one for it, and its offset + 1.

        Probes along the digest, then along the table.
        """
        probe = 0
        while True:
            start = min(probe, _MOST_STARTS)
            place = (_NUMBER.unpack_from(digest, start)[0] + probe - start) % self._slots * ENTRY_SIZE
            (stored,) = _OFFSET.unpack_from(self._memory, place + _OFFSET_AT)
            if not stored or self._memory[place : place + DIGEST_SIZE] == digest:
                return place, stored
            probe += 1

    def add(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Bodies | None,
        first_body: int,
        first_offset: int,
    ) -> int:
        """Sets the offsets of the keys of all records, from an offset on; see the contract."""
        for number, row in enumerate(_rows(buffer, rows, first, last, bodies, first_body), first):
            if row.batch[LAST_OFFSET] < first_offset:
                continue
            for record in row.records:
                key, offset = key_of(record), offset_of(record)
                if key is None or offset < first_offset:
                    continue
                if self.is_full:
                    return number
                self.put(key, offset)
            if not row.is_whole:
                return number
            self.latest_offset = row.batch[LAST_OFFSET]
        return last

    def keep(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Bodies | None,
        first_body: int,
        target: bytearray,
        target_rows: Rows,
    ) -> tuple[int, int]:
        """Copies the batches that lose no record, and leaves out those that lose all; see the contract."""
        used = copies = 0
        for number, row in enumerate(_rows(buffer, rows, first, last, bodies, first_body), first):
            fate = self._fate(row) if rows[number * ROW + VALID] else _Fate.LOOK
            if fate is _Fate.LOOK:
                return number, copies
            if fate is _Fate.WHOLE:
                start, size, _ = rows[number * ROW : (number + 1) * ROW]
                if size > len(target) - used or (copies + 1) * ROW > len(target_rows):
                    raise IndexError("no room for a copy")
                target[used : used + size] = buffer[start : start + size]
                target_rows[copies * ROW : (copies + 1) * ROW] = array("q", (used, size, 1))
                used += size
                copies += 1
        return last, copies

    def rest(
        self, buffer: memoryview, rows: Rows, row: int, bodies: Bodies | None, first_body: int
    ) -> tuple[bytes, int, int, int] | None:
        """What is left of a v2 batch that loses some of its records; see the contract."""
        start, size, is_valid = rows[row * ROW : (row + 1) * ROW]
        (read,) = _rows(buffer, rows, row, row + 1, bodies, first_body)
        judged = self._judged(read.records)
        left = [record for record, fate in zip(read.records, judged, strict=True) if fate is _Record.KEPT]
        if read.batch[MAGIC] < 2 or not is_valid or not read.is_whole or not left or None in map(value_of, left):
            return None
        body = bodies[row - first_body] if bodies is not None and read.batch[CODEC] else None
        pieces = _cut(buffer[start + BATCH_HEADER_SIZE : start + size].tobytes() if body is None else body)
        has_horizon = read.batch[HAS_DELETE_HORIZON]
        base: int = read.batch[BASE_TIMESTAMP] if has_horizon else timestamp_of(left[0])
        kept = [
            _timed(piece, int64(timestamp_of(record) - base))
            for piece, record, fate in zip(pieces, read.records, judged, strict=True)
            if fate is _Record.KEPT
        ]
        self._note(judged)
        return b"".join(kept), len(left), base, max(map(timestamp_of, left))

    def _fate(self, row: _Row) -> _Fate:
        """What becomes of a batch; counts its records unless it has to be looked at."""
        judged = self._judged(row.records)
        left = [record for record, fate in zip(row.records, judged, strict=True) if fate is _Record.KEPT]
        is_bad = not row.is_whole or not all(map(validity_of, row.records))
        is_mixed = 0 < len(left) < len(judged)
        if is_bad or is_mixed or any(value_of(record) is None for record in left):
            return _Fate.LOOK
        if not left and (not judged or self._header_stays(row.batch)):
            return _Fate.LOOK
        self._note(judged)
        return _Fate.WHOLE if left else _Fate.NOTHING_LEFT

    def _judged(self, records: list[RecordValues]) -> list["_Record"]:
        return [self._record_fate(key_of(record), offset_of(record)) for record in records]

    def _record_fate(self, key: bytes | None, offset: int) -> "_Record":
        if offset > self.latest_offset:
            return _Record.KEPT
        if key is None:
            return _Record.WITHOUT_KEY
        return _Record.SUPERSEDED if offset < self.get(key) else _Record.KEPT

    def _note(self, judged: list["_Record"]) -> None:
        self.kept += judged.count(_Record.KEPT)
        self.superseded += judged.count(_Record.SUPERSEDED)
        self.without_key += judged.count(_Record.WITHOUT_KEY)

    def _header_stays(self, batch: BatchValues) -> bool:
        """Whether a batch stays without its records."""
        if batch[MAGIC] < 2:
            return False
        known = self.producers.get(batch[PRODUCER_ID])
        is_last = int64(batch[LAST_OFFSET] + 1) == self.end_offset
        return is_last or (known is not None and batch[LAST_OFFSET] == known[3])


def _rows(
    buffer: memoryview, rows: Rows, first: int, last: int, bodies: Bodies | None, first_body: int
) -> Iterator[_Row]:
    for at, size, is_valid, body in take_rows(buffer, rows, first, last, bodies, first_body):
        if has_batch_header(buffer, at):
            batch = read_batch(buffer, at, size, is_valid, at)
            pieces = batch_pieces(buffer, at, batch, body)
        else:
            entry, message, is_readable = read_entry(buffer[at : at + size], is_valid, at)
            batch, pieces = entry_pieces(entry, message, is_readable, body)
        records: list[RecordValues] = []
        is_whole = is_empty = True
        for piece in pieces:
            is_empty = False
            if isinstance(piece, RecordProblem):
                is_whole = False
            else:
                records += piece
        yield _Row(batch, records, is_whole and not is_empty)


def _cut(body: bytes) -> Iterator[bytes]:
    """The records of a v2 body, each with its length; they could be read."""
    at = 0
    while at < len(body):
        start = at
        number, at = read_uvarint(body, at, LONGEST_VARINT)
        at += number >> 1  # lengths aren't negative
        yield body[start:at]


def _timed(piece: bytes, timestamp_delta: int) -> bytes:
    """A record with another timestamp delta. Its attributes become 0, as Kafka writes them."""
    _, start = read_uvarint(piece, 0, LONGEST_VARINT)
    _, rest = read_uvarint(piece, start + 1, LONGEST_VARLONG)
    body = b"".join((b"\0", varint(timestamp_delta), piece[rest:]))
    return varint(len(body)) + body


class Encoded:
    """Records as they stand in a batch, one after another."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._base_timestamp: int | None = None
        self.size = 0
        self.max_timestamp = -1
        self.next_delta = 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, record: bytes, offset_delta: int, timestamp: int) -> None:
        """Adds what is encoded already."""
        self._parts.append(record)
        self.size += len(record)
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.next_delta = offset_delta + 1

    def start(self, base_timestamp: int) -> None:
        """Sets the time to which those of usual records are relative."""
        self._base_timestamp = base_timestamp

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str | bytes, bytes | None]],
    ) -> bool:
        """Encodes a record at the next offset if it is usual; see the contract."""
        return self.extend(((timestamp, key, value, headers),)) is None

    def extend(self, records: Iterable[Appended]) -> Appended | None:
        """Encodes records whose numbers take a byte or two; see the contract."""
        few, parts, join = few_varints(), self._parts, b"".join
        null = few[-1]
        base, delta, size, largest = self._base_timestamp, self.next_delta, self.size, self.max_timestamp
        left = None
        for record in records:
            timestamp, key, value, headers = record
            if headers or timestamp < 0 or base is None:
                left = record
                break
            try:
                body = join(
                    (
                        b"\0",
                        few[timestamp - base],
                        few[delta],
                        null if key is None else few[len(key)],
                        key or b"",
                        null if value is None else few[len(value)],
                        value or b"",
                        b"\0",
                    )
                )
                prefix = few[len(body)]
            except KeyError:
                left = record
                break
            parts.append(prefix + body)
            size += len(prefix) + len(body)
            if timestamp > largest:
                largest = timestamp
            delta += 1
        self.next_delta, self.size, self.max_timestamp = delta, size, largest
        return left

    def body(self) -> bytes:
        """All records."""
        return b"".join(self._parts)
