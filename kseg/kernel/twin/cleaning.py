"""Compaction by the twin: the offset map, the remaining batches, and records written as bytes."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, auto
from struct import Struct

from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.varint_bytes import few_varints, varint
from kseg.kernel.contract import MOST, ROW, Buffer, Rows
from kseg.kernel.entry_points import Appended
from kseg.kernel.statistics_contract import DIGEST_SIZE, ENTRY_SIZE
from kseg.kernel.twin.fold import ProducerTable
from kseg.kernel.twin.headers import Header, int64
from kseg.kernel.twin.records import Cursor, RecordValues, Row, read_rows
from kseg.kernel.twin.rows import Bodies

_NUMBER, _OFFSET = Struct(">I"), Struct("=Q")
_OFFSET_AT = DIGEST_SIZE
_MOST_STARTS = DIGEST_SIZE - _NUMBER.size


class _Fate(Enum):
    """The results of cleaning for a batch."""

    LOOK = auto()
    WHOLE = auto()
    NOTHING_LEFT = auto()


class _Record(Enum):
    """The results of cleaning for a record."""

    KEPT = auto()
    SUPERSEDED = auto()
    WITHOUT_KEY = auto()


class OffsetTable:
    """The offset table of the contract."""

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
        """True if there is no room for another key."""
        return self._count >= self._most

    def put(self, key: bytes, offset: int) -> None:
        """Set a key's offset; see the contract."""
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
        """Return a key's offset, -1 if the table doesn't have it."""
        return self._find(self._digest(key))[1] - 1 if self._slots else -1

    def _find(self, digest: bytes) -> tuple[int, int]:
        """Return the slot of a digest, or the free slot for it, and its offset + 1.

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
        """Set the offsets of the keys of all records, from an offset on; see the contract."""
        for number, row in enumerate(read_rows(buffer, rows, first, last, 0, bodies, first_body), first):
            last_offset = row.header.last_offset
            if last_offset < first_offset:
                continue
            records, is_whole = _read(row)
            for record in records:
                if record.key is None or record.offset < first_offset:
                    continue
                if self.is_full:
                    return number
                self.put(record.key, record.offset)
            if not is_whole:
                return number
            self.latest_offset = last_offset
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
        """Copy the batches that lose no record, and omit those that lose all; see the contract."""
        used = copies = 0
        for number, row in enumerate(read_rows(buffer, rows, first, last, 0, bodies, first_body), first):
            fate = self._fate(row)
            if fate is _Fate.LOOK:
                return number, copies
            if fate is _Fate.WHOLE:
                size = row.header.size
                if size > len(target) - used or (copies + 1) * ROW > len(target_rows):
                    raise IndexError("no room for a copy")
                target[used : used + size] = row.content
                target_rows[copies * ROW : (copies + 1) * ROW] = array("q", (used, size, 1))
                used += size
                copies += 1
        return last, copies

    def rest(
        self, buffer: memoryview, rows: Rows, row: int, bodies: Bodies | None, first_body: int
    ) -> tuple[bytes, int, int, int] | None:
        """Return the rest of a v2 batch that loses some of its records; see the contract."""
        (batch,) = read_rows(buffer, rows, row, row + 1, 0, bodies, first_body)
        header, (records, is_whole) = batch.header, _read(batch)
        judged = self._judge(records)
        left = [record for record, fate in zip(records, judged, strict=True) if fate is _Record.KEPT]
        is_cut = not (header.is_batch and header.is_valid and is_whole)
        if is_cut or not left or any(record.value is None for record in left):
            return None
        base = header.base_timestamp if header.has_delete_horizon else left[0].timestamp
        body = batch.content[BATCH_HEADER_SIZE:].tobytes() if header.codec == 0 else bytes(batch.body or b"")
        kept = [
            _set_time(stored, int64(record.timestamp - base))
            for stored, record, fate in zip(_cut(body), records, judged, strict=True)
            if fate is _Record.KEPT
        ]
        self._note(judged)
        return b"".join(kept), len(left), base, max(record.timestamp for record in left)

    def _fate(self, row: Row) -> _Fate:
        """Return the fate of a batch; count its records unless the caller must handle it."""
        records, is_whole = _read(row)
        judged = self._judge(records)
        left = [record for record, fate in zip(records, judged, strict=True) if fate is _Record.KEPT]
        is_bad = not (row.header.is_valid and is_whole and all(record.is_valid for record in records))
        is_mixed = 0 < len(left) < len(judged)
        if is_bad or is_mixed or any(record.value is None for record in left):
            return _Fate.LOOK
        if not left and (not judged or self._header_stays(row.header)):
            return _Fate.LOOK
        self._note(judged)
        return _Fate.WHOLE if left else _Fate.NOTHING_LEFT

    def _judge(self, records: list[RecordValues]) -> list[_Record]:
        return [self._record_fate(record.key, record.offset) for record in records]

    def _record_fate(self, key: bytes | None, offset: int) -> _Record:
        if offset > self.latest_offset:
            return _Record.KEPT
        if key is None:
            return _Record.WITHOUT_KEY
        return _Record.SUPERSEDED if offset < self.get(key) else _Record.KEPT

    def _note(self, judged: list[_Record]) -> None:
        self.kept += judged.count(_Record.KEPT)
        self.superseded += judged.count(_Record.SUPERSEDED)
        self.without_key += judged.count(_Record.WITHOUT_KEY)

    def _header_stays(self, header: Header) -> bool:
        """Return True if a batch stays without its records."""
        known = self.producers.get(header.producer_id)
        is_last = int64(header.last_offset + 1) == self.end_offset
        return header.is_batch and (is_last or (known is not None and header.last_offset == known[3]))


def _read(row: Row) -> tuple[list[RecordValues], bool]:
    """Return the records of a batch, and whether they are complete; of a missing body there are none."""
    read = list(row.records())
    records = [record for record in read if isinstance(record, RecordValues)]
    is_missing = row.header.codec != 0 and row.body is None
    return records, len(records) == len(read) and not is_missing


def _cut(body: bytes) -> Iterator[bytes]:
    """Yield the readable records of a v2 body, without their lengths."""
    records = Cursor(body)
    while records.left:
        yield records.take(records.varint())


def _set_time(stored: bytes, timestamp_delta: int) -> bytes:
    """Return a record with another timestamp delta. Its attributes become 0, as Kafka writes them."""
    record = Cursor(stored)
    record.take(1)
    record.varlong()
    body = b"\0" + varint(timestamp_delta) + record.take(record.left)
    return varint(len(body)) + body


class Encoded:
    """Encoded records of a batch, in order."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._base_timestamp: int | None = None
        self.size = 0
        self.max_timestamp = -1
        self.next_delta = 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, record: bytes, offset_delta: int, timestamp: int) -> None:
        """Add an encoded record."""
        self._parts.append(record)
        self.size += len(record)
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.next_delta = offset_delta + 1

    def start(self, base_timestamp: int) -> None:
        """Set the time to which timestamps of usual records are relative."""
        self._base_timestamp = base_timestamp

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str | bytes, bytes | None]],
    ) -> bool:
        """Encode a record at the next offset if it is usual: its numbers take one or two bytes; see the contract."""
        few, base = few_varints(), self._base_timestamp
        if headers or timestamp < 0 or base is None:
            return False
        try:
            body = b"".join(
                (b"\0", few[timestamp - base], few[self.next_delta], *_with_size(key), *_with_size(value), b"\0")
            )
            record = few[len(body)] + body
        except KeyError:
            return False
        self.add(record, self.next_delta, timestamp)
        return True

    def extend(self, records: Iterable[Appended]) -> Appended | None:
        """Encode records, up to the first unusual one; see the contract."""
        return next((record for record in records if not self.append(*record)), None)

    def body(self) -> bytes:
        """Return all records."""
        return b"".join(self._parts)


def _with_size(content: bytes | None) -> tuple[bytes, bytes]:
    return (few_varints()[-1], b"") if content is None else (few_varints()[len(content)], content)
