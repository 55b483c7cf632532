"""Batches and log entries made by hand, including some that no producer writes, and strategies for them."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

from crc32c import crc32c
from hypothesis import strategies as st

Header = tuple[bytes, bytes | None]
MARKER_KEY = struct.pack(">hh", 0, 1)  # version, type: commit
MARKER_VALUE = struct.pack(">hi", 0, 7)  # version, coordinator epoch


def varint(number: int, extra: int = 0) -> bytes:
    """Return a zig-zag number in groups of 7 bits, as an int64; `extra` superfluous groups of zeros after it."""
    rest = (number << 1 ^ number >> 63) & 0xFFFFFFFF_FFFFFFFF
    groups = [rest & 0x7F]
    while rest := rest >> 7:
        groups.append(rest & 0x7F)
    groups += [0] * extra
    return bytes([0x80 | group for group in groups[:-1]] + groups[-1:])


@dataclass(frozen=True, slots=True)
class Record:
    """A v2 record; `extra` makes its varints longer than necessary."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[Header] = ()
    offset_delta: int = 0
    timestamp_delta: int = 0
    attributes: int = 0
    extra: int = 0

    def encode(self) -> bytes:
        body = struct.pack(">b", self.attributes) + varint(self.timestamp_delta) + varint(self.offset_delta, self.extra)
        body += self._with_size(self.key) + self._with_size(self.value) + varint(len(self.headers), self.extra)
        for key, value in self.headers:
            body += self._with_size(key) + self._with_size(value)
        return varint(len(body), self.extra) + body

    def _with_size(self, text: bytes | None) -> bytes:
        return varint(-1, self.extra) if text is None else varint(len(text), self.extra) + text


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """Fields of a v2 batch; `count` None: the number of records."""

    base_offset: int = 0
    leader_epoch: int = 0
    magic: int = 2
    attributes: int = 0
    last_offset_delta: int = 0
    base_timestamp: int = 0
    max_timestamp: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int | None = None


def batch(header: BatchHeader, records: Sequence[Record] = (), body: bytes | None = None) -> bytes:
    """Return a complete batch with a right length and CRC; `body` replaces the records' bytes."""
    body = b"".join(record.encode() for record in records) if body is None else body
    count = len(records) if header.count is None else header.count
    checked = struct.pack(
        ">hiqqqhii",
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        count,
    )
    checked += body
    start = struct.pack(">qiib", header.base_offset, 9 + len(checked), header.leader_epoch, header.magic)
    return start + struct.pack(">I", crc32c(checked)) + checked


@dataclass(frozen=True, slots=True)
class Message:
    """A v0 or v1 log entry; a wrapper's value is its compressed messages."""

    key: bytes | None = None
    value: bytes | None = None
    offset: int = 0
    magic: int = 1
    attributes: int = 0
    timestamp: int = 0
    trailing: bytes = field(default=b"")

    def encode(self) -> bytes:
        checked = struct.pack(">bB", self.magic, self.attributes)
        checked += struct.pack(">q", self.timestamp) if self.magic == 1 else b""
        checked += self._with_size(self.key) + self._with_size(self.value) + self.trailing
        return struct.pack(">qiI", self.offset, 4 + len(checked), crc32(checked)) + checked

    def _with_size(self, text: bytes | None) -> bytes:
        return struct.pack(">i", -1) if text is None else struct.pack(">i", len(text)) + text


# --- strategies ------------------------------------------------------------------------------------------------------

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2000), st.sampled_from([2**62, 2**63 - 1, -(2**63)]))
TEXTS = st.one_of(
    st.none(), st.binary(max_size=8), st.text(max_size=6).map(str.encode), st.binary(min_size=60, max_size=200)
)
HEADERS = st.lists(st.tuples(st.binary(max_size=70), TEXTS), max_size=3)

RECORDS = st.builds(
    Record,
    key=st.one_of(TEXTS, st.just(MARKER_KEY)),
    value=st.one_of(TEXTS, st.just(MARKER_VALUE)),
    headers=HEADERS,
    offset_delta=st.one_of(st.integers(-3, 200), INT32),
    timestamp_delta=st.one_of(st.integers(-3, 9000), INT64),
    attributes=st.one_of(st.just(0), st.integers(-128, 127)),
    extra=st.sampled_from([0, 0, 0, 1, 3, 4]),
)
BATCH_HEADERS = st.builds(
    BatchHeader,
    base_offset=INT64,
    leader_epoch=INT32,
    attributes=st.one_of(st.sampled_from([0, 0x08, 0x10, 0x20, 0x30, 0x40]), INT16),
    last_offset_delta=INT32,
    base_timestamp=INT64,
    max_timestamp=INT64,
    producer_id=INT64,
    producer_epoch=INT16,
    base_sequence=st.one_of(st.just(-1), INT32),
    count=st.one_of(st.none(), st.integers(-1, 6), st.just(2**31 - 1)),
)
BATCHES = st.builds(batch, BATCH_HEADERS, st.lists(RECORDS, max_size=5))
MESSAGES = st.builds(
    Message,
    key=TEXTS,
    value=TEXTS,
    offset=INT64,
    magic=st.integers(0, 1),
    attributes=st.integers(0, 255),
    timestamp=INT64,
    trailing=st.sampled_from([b"", b"", b"\0"]),
)
ENTRIES = MESSAGES.map(Message.encode)


@dataclass(frozen=True, slots=True)
class Damage:
    """A change of bytes: `size` of them, from a share of their length on, are replaced."""

    place: float
    size: int
    others: bytes

    def of(self, content: bytes) -> bytes:
        at = int(self.place * len(content))
        return content[:at] + self.others + content[at + self.size :]


DAMAGES = st.lists(
    st.builds(Damage, st.floats(0, 1, exclude_max=True), st.sampled_from([0, 1, 1, 1, 4, 40]), st.binary(max_size=4)),
    max_size=3,
)


@st.composite
def damage_contents(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> bytes:
    """Return contents with bytes changed, removed or inserted; sometimes unchanged."""
    content = draw(contents)
    for damage in draw(DAMAGES):
        content = damage.of(content)
    return content
