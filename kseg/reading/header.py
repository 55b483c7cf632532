"""The header of a batch, or of a v0 or v1 log entry, as a value: what stands in front of the records."""

from typing import NamedTuple

from kseg.formats.codes import (
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Codec,
    TimestampType,
)
from kseg.formats.header_fields import BATCH_HEADER_FIELDS, LOG_ENTRY_HEADER_V0_FIELDS, LOG_ENTRY_HEADER_V1_FIELDS

_BATCH = BATCH_HEADER_FIELDS.struct
_ENTRY_V0 = LOG_ENTRY_HEADER_V0_FIELDS.struct
_ENTRY_V1 = LOG_ENTRY_HEADER_V1_FIELDS.struct
_LARGEST_SEQUENCE = 2**31 - 1


class BatchHeader(NamedTuple):
    """What the header of a batch, or of a v0 or v1 log entry, says. What a format doesn't have is -1.

    The values that HEADER_NAMES names, in its order. `position` and `size`
    are bytes of the file, the first 12 included. `base_offset` and `records_count` are None for a v0 or v1 wrapper:
    they lie in its compressed value. `last_offset` stands for the delta. `is_valid`: the CRC holds; None if nobody
    looked.
    """

    position: int
    base_offset: int | None
    size: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int | None
    is_valid: bool | None

    @property
    def is_legacy(self) -> bool:
        """Whether it is that of a v0 or v1 entry."""
        return self.magic < 2

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes, see Codec; 5 to 7 are unknown to Kafka."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamps."""
        if self.magic < 1:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else TimestampType.CREATE_TIME

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker's clock set the times."""
        return self.magic >= 1 and bool(self.attributes & TIMESTAMP_TYPE_MASK)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.magic >= 2 and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records."""
        return self.magic >= 2 and bool(self.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers in the batch may go, if that is set."""
        is_set = self.magic >= 2 and bool(self.attributes & DELETE_HORIZON_MASK)
        return self.base_timestamp if is_set else None

    @property
    def first_offset(self) -> int:
        """The base offset; of a wrapper, whose own isn't known here, its last offset."""
        return self.last_offset if self.base_offset is None else self.base_offset

    @property
    def end(self) -> int:
        """Position after the batch."""
        return self.position + self.size

    @property
    def producer(self) -> tuple[int, int, int]:
        """The values that PRODUCER_NAMES names: id, epoch, sequence of the first record."""
        return self.producer_id, self.producer_epoch, self.base_sequence

    def of_producer(self, producer_id: int, epoch: int, sequence: int) -> "BatchHeader":
        """The same header with other values of the producer."""
        return self._replace(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 for none; 0 follows 2³¹ - 1."""
        if self.base_sequence < 0 or self.base_offset is None:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) & _LARGEST_SEQUENCE

    def cut(self, first_offset: int, last_offset: int) -> "BatchHeader":
        """The header of a batch with only the records between two offsets; its count stays."""
        sequence = self.base_sequence
        if sequence >= 0:
            sequence = (sequence + first_offset - self.first_offset) & _LARGEST_SEQUENCE
        return self._replace(base_offset=first_offset, last_offset=last_offset, base_sequence=sequence)


def parse_header(
    buffer: bytes | bytearray | memoryview, at: int, position: int, is_valid: bool | None = None
) -> BatchHeader:
    """The header at byte `at` of a buffer, which holds it whole; `position` is its place in the file."""
    magic = buffer[at + MAGIC_POSITION]
    if 2 <= magic < 128:
        base_offset, length, epoch, magic, crc, attributes, delta, *others = _BATCH.unpack_from(buffer, at)
        size, last_offset = length + LOG_OVERHEAD, base_offset + delta
        fields = (position, base_offset, size, epoch, magic, crc, attributes, last_offset, *others, is_valid)
        return BatchHeader._make(fields)
    timestamp = NO_TIMESTAMP
    if magic == 1:
        offset, size, crc, magic, attributes, timestamp, _ = _ENTRY_V1.unpack_from(buffer, at)
    else:
        offset, size, crc, magic, attributes, _ = _ENTRY_V0.unpack_from(buffer, at)
    is_plain = attributes & CODEC_MASK == Codec.NONE
    return BatchHeader(
        position,
        offset if is_plain else None,
        size + LOG_OVERHEAD,
        -1,
        magic,
        crc,
        attributes & 0xFF,
        offset,
        timestamp,
        timestamp,
        -1,
        -1,
        -1,
        1 if is_plain else None,
        is_valid,
    )


NEW_HEADER = BatchHeader(0, 0, 0, -1, 2, 0, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP, -1, -1, -1, 0, None)
"""A v2 header in which nothing is set yet: what a writer begins with."""
