"""Batches one after another in memory: what a producer sends and a log holds.

Source: MemoryRecords, ByteBufferMessageSet.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

from kseg.codecs.body import decompress
from kseg.errors import RecordError
from kseg.formats.body import wrapper_value
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MINIMUM_HEADER_SIZE,
    MINIMUM_SIZE_FIELD,
    Codec,
)
from kseg.formats.header_fields import BATCH_BASE_OFFSET, ENTRY_V0_OFFSET
from kseg.formats.positions import size_field
from kseg.kernel.record import Record
from kseg.reading.batch import Batch
from kseg.reading.header import BatchHeader, parse_header
from kseg.writer.legacy import encode_wrapper
from kseg.writer.message import MessageAndOffset, parse_entry


class MemoryRecords:
    """Bytes of v2 batches, or of v0 and v1 log entries; magics may mix.

    raw: all bytes. A cut batch at the end, as after a fetch, isn't one of its batches.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @property
    def size_in_bytes(self) -> int:
        """All its bytes."""
        return len(self.raw)

    @cached_property
    def valid_bytes(self) -> int:
        """Bytes of whole batches."""
        return max((at + size for at, size in self._places()), default=0)

    def shallow(self) -> Iterator[Batch]:
        """Its batches; wrappers and v0 and v1 messages are batches too."""
        for at, size in self._places():
            batch = Batch.parse(self.raw[at : at + size], at, is_valid=True)
            yield batch if batch.compute_crc() == batch.crc else Batch.parse(batch.raw, at, is_valid=False)

    def deep(self) -> Iterator[Record]:
        """Its records, including those in compressed batches and wrappers. Raises DamagedError if one can't be read."""
        for batch in self.shallow():
            yield from batch.records()

    def messages(self) -> Iterator[MessageAndOffset]:
        """Its v0 and v1 log entries, with wrappers as single entries; leaves out v2 batches."""
        for at, size in self._places():
            if self.raw[at + MAGIC_POSITION] < 2:
                yield parse_entry(self.raw[at : at + size])

    def write_to(self, target: BinaryIO) -> int:
        """Writes all bytes to a file or pipe, even if it accepts only some at a time; returns their count."""
        rest = memoryview(self.raw)
        while rest:
            rest = rest[target.write(rest) or 0 :]
        return len(self.raw)

    def assign_offsets(self, first_offset: int) -> "MemoryRecords":
        """The same records at offsets from `first_offset` on, one after another.

        In place, without new checksums, where the format allows it: v2 batches, plain messages, v1 wrappers whose inner
        offsets are 0, 1, 2 …; other wrappers are unpacked and wrapped again. Raises RecordError for a wrapper that
        can't be unpacked. Source: ByteBufferMessageSet.assignOffsets, LogValidator.
        """
        parts, offset = [], first_offset
        for at, size in self._places():
            entry = bytearray(self.raw[at : at + size])
            header = parse_header(entry, 0, at)
            if not header.is_legacy:
                BATCH_BASE_OFFSET.write(entry, offset)
                offset += header.last_offset - header.first_offset + 1
            elif header.codec == Codec.NONE:
                ENTRY_V0_OFFSET.write(entry, offset)
                offset += 1
            else:
                entry, count = _wrapper_at(entry, header, offset)
                offset += count
            parts.append(bytes(entry))
        return MemoryRecords(b"".join(parts))

    def _places(self) -> Iterator[tuple[int, int]]:
        """Positions and sizes of whole batches. Raises RecordError for a size below its format's minimum."""
        at = 0
        while at + MINIMUM_HEADER_SIZE <= len(self.raw):
            size = size_field(self.raw, at)
            least = MINIMUM_SIZE_FIELD.get(self.raw[at + MAGIC_POSITION], BATCH_HEADER_SIZE - LOG_OVERHEAD)
            if size < least:
                raise RecordError(f"the batch at byte {at} has size {size}, the minimum of its format is {least}")
            if at + LOG_OVERHEAD + size > len(self.raw):
                return
            yield at, size + LOG_OVERHEAD
            at += size + LOG_OVERHEAD

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRecords) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)


def _wrapper_at(entry: bytearray, header: BatchHeader, first_offset: int) -> tuple[bytearray, int]:
    """A wrapper with its inner messages at offsets from `first_offset` on, and their count."""
    value = wrapper_value(memoryview(entry))
    body = decompress(header.codec, header.magic, value if value is not None else memoryview(b""))
    if body.failure is not None:
        raise RecordError(f"a wrapper can't be unpacked: {body.failure}")
    inner = MemoryRecords(body.data)
    places = list(inner._places())
    last_offset = first_offset + len(places) - 1
    wanted = range(len(places)) if header.magic == 1 else range(first_offset, last_offset + 1)
    entries = bytearray(body.data[: inner.valid_bytes])
    for offset, (at, _) in zip(wanted, places, strict=True):
        ENTRY_V0_OFFSET.write(entries, offset, at)
    if entries == body.data:
        ENTRY_V0_OFFSET.write(entry, last_offset)
        return entry, len(places)
    timestamp = header.max_timestamp
    wrapper = encode_wrapper(last_offset, header.magic, header.attributes, bytes(entries), timestamp=timestamp)
    return bytearray(wrapper), len(places)
