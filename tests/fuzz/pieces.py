"""Batches and log entries split into parts, and joined again with right lengths and CRCs."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias
from zlib import crc32

from crc32c import crc32c

from kseg.codecs.bodies import compress, decompress
from kseg.errors import RecordError
from kseg.formats.codes import wrapper_value
from tests.kernel.made import varint

HEADER = struct.Struct(">qiibIhiqqqhii")
WIDTHS = {
    "base_offset": 8,
    "length": 4,
    "leader_epoch": 4,
    "magic": 1,
    "crc": 4,
    "attributes": 2,
    "last_offset_delta": 4,
    "base_timestamp": 8,
    "max_timestamp": 8,
    "producer_id": 8,
    "producer_epoch": 2,
    "base_sequence": 4,
    "count": 4,
}
"""Sizes of a header's fields."""
MOST_DECOMPRESSED = 1 << 20
"""The most bytes of a seed's body; kseg must limit mutants itself."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A v2 batch: its header fields, and its records' bytes, decompressed if `codec` is one."""

    fields: dict[str, int]
    body: bytes
    codec: int

    def built(self) -> bytes:
        return right(HEADER.pack(*self.fields.values()) + pack(self.codec, self.body, 2))


@dataclass(frozen=True, slots=True)
class Entry:
    """A v0 or v1 log entry; a wrapper's `inner` are the entries compressed in its value."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    inner: "tuple[Entry | Raw, ...]" = ()

    def built(self) -> bytes:
        value = self.value
        if self.inner:
            value = pack(self.attributes & 7, b"".join(entry.built() for entry in self.inner), self.magic)
        time = struct.pack(">q", self.timestamp) if self.magic == 1 else b""
        covered = struct.pack(">bB", self.magic, self.attributes) + time + _with_size(self.key) + _with_size(value)
        return struct.pack(">qiI", self.offset, 4 + len(covered), crc32(covered)) + covered


@dataclass(frozen=True, slots=True)
class Raw:
    """Unparsed bytes."""

    content: bytes

    def built(self) -> bytes:
        return self.content


Piece: TypeAlias = Batch | Entry | Raw


def right(content: bytes) -> bytes:
    """Return a batch or entry with the right length and CRC for its magic."""
    if len(content) < 26:
        return content
    content = content[:8] + struct.pack(">i", len(content) - 12) + content[12:]
    if content[16] == 2:
        return content[:17] + struct.pack(">I", crc32c(content[21:])) + content[21:]
    return content[:12] + struct.pack(">I", crc32(content[16:])) + content[16:]


def pack(codec: int, content: bytes, magic: int) -> bytes:
    """Return a body compressed by a codec, or unchanged if the format doesn't have the codec."""
    try:
        return compress(codec, content, magic=magic) if codec else content
    except RecordError:
        return content


def cut(content: bytes) -> list[bytes]:
    """Split a log into batches and entries by their lengths; the rest is the last one."""
    found, at = [], 0
    while at < len(content):
        size = 12 + int.from_bytes(content[at + 8 : at + 12], "big", signed=True)
        size = size if 26 <= size <= len(content) - at else len(content) - at
        found.append(content[at : at + size])
        at += size
    return found


@lru_cache(maxsize=4096)
def taken_apart(content: bytes) -> Piece:
    """Return a batch or entry as fields and records, or as bytes if it is neither."""
    if len(content) >= HEADER.size and content[16] == 2:
        fields = dict(zip(WIDTHS, HEADER.unpack_from(content), strict=True))
        codec, body = fields["attributes"] & 7, content[HEADER.size :]
        if codec:
            plain = decompress(codec, 2, memoryview(body), MOST_DECOMPRESSED)
            codec, body = (0, body) if plain.failure else (codec, plain.data)
        return Batch(fields, body, codec)
    if len(content) >= 26 and content[16] < 2:
        return _entry(content)
    return Raw(content)


def _entry(content: bytes) -> Piece:
    magic, attributes = content[16], content[17]
    timestamp = struct.unpack_from(">q", content, 18)[0] if magic == 1 and len(content) >= 34 else -1
    at = 26 if magic == 1 else 18
    key, at = _text(content, at)
    value, at = _text(content, at)
    if at != len(content):
        return Raw(content)
    entry = Entry(struct.unpack_from(">q", content)[0], magic, attributes, timestamp, key, value)
    compressed = wrapper_value(memoryview(content)) if attributes & 7 else None
    if compressed is None:
        return entry
    plain = decompress(attributes & 7, magic, compressed, MOST_DECOMPRESSED)
    inner = [] if plain.failure else [taken_apart(each) for each in cut(plain.data)]
    return replace(entry, inner=tuple(each for each in inner if isinstance(each, Entry | Raw)))


def _text(content: bytes, at: int) -> tuple[bytes | None, int]:
    size = int.from_bytes(content[at : at + 4], "big", signed=True)
    return (None, at + 4) if size < 0 else (content[at + 4 : at + 4 + size], at + 4 + size)


def _with_size(text: bytes | None) -> bytes:
    return struct.pack(">i", -1) if text is None else struct.pack(">i", len(text)) + text


# --- records ---------------------------------------------------------------------------------------------------------

Token: TypeAlias = int | bytes
"""A token of a record: a number stored as a varint, or plain bytes."""


def records_of(body: bytes) -> list[bytes]:
    """Return records without their lengths, as far as these are right; the rest is the last one."""
    found, at = list[bytes](), 0
    while at < len(body):
        size, start = _number(body, at)
        if start == at or not 0 <= size <= len(body) - start:
            return [*found, body[at:]]
        found.append(body[start : start + size])
        at = start + size
    return found


def tokens_of(record: bytes) -> list[Token]:
    """Return attributes, deltas, sizes, texts and numbers of headers in order; the unreadable rest is the last one."""
    found: list[Token] = [record[:1]]
    at = 1
    for kind in _kinds(found):
        if at >= len(record):
            break
        if kind == "text":
            size = found[-1]
            text = record[at : at + size] if isinstance(size, int) and size > 0 else b""
            found.append(text)
            at += len(text)
            continue
        number, end = _number(record, at)
        if end == at:
            break
        found.append(number)
        at = end
    return [*found, record[at:]] if at < len(record) else found


def _kinds(found: list[Token]) -> Iterator[str]:
    yield from ("number", "number", "number", "text", "number", "text", "number")
    count = found[-1]
    for _ in range(min(count, 1000) if isinstance(count, int) else 0):
        yield from ("number", "text", "number", "text")


def of_tokens(tokens: list[Token], extra: int = 0) -> bytes:
    """Return a record without its length; `extra` needless groups in each number."""
    return b"".join(varint(token, extra) if isinstance(token, int) else token for token in tokens)


def with_length(record: bytes) -> bytes:
    """Return a record with its length, as in a body."""
    return varint(len(record)) + record


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Return a zig-zag number and its end; its own start if there is none."""
    value, end = 0, at
    for shift in range(0, 70, 7):
        if end >= len(content):
            break
        value |= (content[end] & 0x7F) << shift
        end += 1
        if content[end - 1] < 0x80:
            return value >> 1 ^ -(value & 1), end
    return 0, at
