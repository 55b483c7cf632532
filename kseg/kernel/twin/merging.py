"""Records of several batches that become those of one, by the twin."""

from collections.abc import Iterator

from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.varint_bytes import varint
from kseg.kernel.contract import RecordFilter, Rows
from kseg.kernel.twin.headers import int64
from kseg.kernel.twin.records import Cursor, RecordValues, Row, read_rows
from kseg.kernel.twin.rows import Bodies, is_wanted

_NULL = varint(-1)
_NO_HEADERS = varint(0)


class MergedRecords:
    """The merged records of the contract."""

    def __init__(self, *, is_comparable: bool = False) -> None:
        self._is_comparable = is_comparable
        self._content = bytearray()
        self._count = 0
        self._is_complete = False
        self.base_timestamp = self.max_timestamp = -1
        self.to_skip = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._content)

    @property
    def records(self) -> memoryview:
        """The records' bytes."""
        self._is_complete = True
        return memoryview(bytes(self._content))

    def add(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Bodies | None,
        first_body: int,
        record_filter: RecordFilter | None,
        enough: int,
    ) -> int:
        """Add the readable records of rows; see the contract."""
        if self._is_complete:
            raise BufferError("records can't be added after they were taken")
        for number, row in enumerate(read_rows(buffer, rows, first, last, 0, bodies, first_body), first):
            for record, rest in _with_rests(row):
                if record_filter is not None and not is_wanted(record, record_filter):
                    continue
                if self.to_skip > 0:
                    self.to_skip -= 1
                else:
                    self._add(record, rest)
            if self.size >= enough:
                return number + 1
        return last

    def _add(self, record: RecordValues, rest: bytes) -> None:
        timestamp = record.timestamp
        if self._count == 0:
            self.base_timestamp, self.max_timestamp = 0 if self._is_comparable else timestamp, timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        offset_delta = 0 if self._is_comparable else self._count
        attributes = bytes((record.attributes & 0xFF,))
        body = attributes + varint(int64(timestamp - self.base_timestamp)) + varint(offset_delta) + rest
        self._content += varint(len(body)) + body
        self._count += 1


def _with_rests(row: Row) -> Iterator[tuple[RecordValues, bytes]]:
    """Yield the readable records of a row, each with its bytes from the key's size on."""
    header = row.header
    records = (record for record in row.records() if isinstance(record, RecordValues))
    if not header.is_batch:
        for message in records:
            yield message._replace(attributes=0), _with_size(message.key) + _with_size(message.value) + _NO_HEADERS
        return
    body = Cursor(row.content[BATCH_HEADER_SIZE:].tobytes() if header.codec == 0 else bytes(row.body or b""))
    for record in records:
        stored = Cursor(body.take(body.varint()))
        stored.take(1)
        stored.varlong()
        stored.varint()
        yield record, stored.take(stored.left)


def _with_size(content: bytes | None) -> bytes:
    return _NULL if content is None else varint(len(content)) + content
