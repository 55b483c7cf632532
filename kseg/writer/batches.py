"""Builders of v2 batches, v0 and v1 messages, and wrappers. Source: MemoryRecordsBuilder."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from kseg import kernel
from kseg.codecs.bodies import check_level, compress, decompress
from kseg.errors import RecordError, plural
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAXIMUM_RELATIVE_OFFSET,
    MINIMUM_HEADER_SIZE,
    MINIMUM_SIZE_FIELD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Codec,
    ControlType,
    TimestampType,
    size_field,
    wrapper_value,
)
from kseg.formats.header_fields import (
    BATCH_BASE_OFFSET,
    BATCH_CRC,
    BATCH_HEADER_FIELDS,
    CONTROL_KEY_TYPE,
    CONTROL_KEY_VERSION,
    ENTRY_V0_OFFSET,
    MARKER_COORDINATOR_EPOCH,
    MARKER_VERSION,
)
from kseg.kernel.entry_points import Appended, Encoded
from kseg.kernel.record import Record
from kseg.reading.batch import NEW_HEADER, Batch, BatchHeader, parse_header
from kseg.writer.messages import (
    LARGEST_SIZE,
    HeaderPair,
    InvalidMessageError,
    Message,
    MessageAndOffset,
    attributes_of,
    encode_entry,
    encode_record,
    encode_wrapper,
    entry_size,
    parse_entry,
    record_size,
)

_MAGIC = 2


def build_batch(header: BatchHeader, records: bytes, level: int | None = None) -> bytes:
    """Build a batch of encoded records; compresses them with the attributes' codec.

    Size, CRC and magic in the header are ignored. A batch without records has no body, whatever its codec: compaction
    leaves such batches. Raises RecordError if it becomes too large or a field doesn't fit.
    """
    if header.codec != Codec.NONE and records:
        records = compress(header.codec, records, magic=_MAGIC, level=level)
    if BATCH_HEADER_SIZE + len(records) > LARGEST_SIZE:
        raise RecordError(
            f"a batch of {plural(BATCH_HEADER_SIZE + len(records), 'byte')} is larger than {LARGEST_SIZE}"
        )
    encoded = bytearray(_encode_header(header, len(records)))
    BATCH_CRC.write(encoded, kernel.load().crc32c(memoryview(b"".join((encoded[BATCH_CRC.end :], records)))))
    return b"".join((encoded, records))


def _encode_header(header: BatchHeader, size: int) -> bytes:
    from struct import error as struct_error

    values = header._asdict() | {
        "base_offset": header.first_offset,
        "length": BATCH_HEADER_SIZE - LOG_OVERHEAD + size,
        "magic": _MAGIC,
        "crc": 0,
        "attributes": (header.attributes + 0x8000) % 0x10000 - 0x8000,
        "last_offset_delta": header.last_offset - header.first_offset,
    }
    try:
        return BATCH_HEADER_FIELDS.struct.pack(*map(values.__getitem__, BATCH_HEADER_FIELDS.names))
    except struct_error as error:
        raise RecordError(f"a field of the batch from offset {header.first_offset} is out of range") from error


class MemoryRecords:
    """The bytes of v2 batches, or of v0 and v1 log entries; magics may mix.

    raw: all bytes. A cut batch at the end, as after a fetch, isn't one of its batches.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @property
    def size_in_bytes(self) -> int:
        """The number of all bytes."""
        return len(self.raw)

    @cached_property
    def valid_bytes(self) -> int:
        """The number of bytes in complete batches."""
        return max((at + size for at, size in self._places()), default=0)

    def shallow(self) -> Iterator[Batch]:
        """Yield its batches; wrappers and v0 and v1 messages are batches too."""
        for at, size in self._places():
            batch = Batch.parse(self.raw[at : at + size], at, is_valid=True)
            yield batch if batch.compute_crc() == batch.crc else Batch.parse(batch.raw, at, is_valid=False)

    def deep(self) -> Iterator[Record]:
        """Yield its records, including those in compressed batches and wrappers.

        Raises DamagedError if one can't be read.
        """
        for batch in self.shallow():
            yield from batch.records()

    def messages(self) -> Iterator[MessageAndOffset]:
        """Yield its v0 and v1 log entries, with wrappers as single entries; omits v2 batches."""
        for at, size in self._places():
            if self.raw[at + MAGIC_POSITION] < 2:
                yield parse_entry(self.raw[at : at + size])

    def write_to(self, target: BinaryIO) -> int:
        """Write all bytes to a file or pipe, even if it accepts only some at a time; return their count."""
        rest = memoryview(self.raw)
        while rest:
            rest = rest[target.write(rest) or 0 :]
        return len(self.raw)

    def assign_offsets(self, first_offset: int) -> "MemoryRecords":
        """Return the same records at consecutive offsets from `first_offset` on.

        In place, without new checksums, if the format allows it: v2 batches, plain messages, v1 wrappers whose inner
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
        """Yield positions and sizes of complete batches. Raises RecordError for a size below its format's minimum."""
        at = 0
        while at + MINIMUM_HEADER_SIZE <= len(self.raw):
            size = size_field(self.raw, at)
            least = MINIMUM_SIZE_FIELD.get(self.raw[at + MAGIC_POSITION], BATCH_HEADER_SIZE - LOG_OVERHEAD)
            if size < least:
                raise RecordError(f"the batch at byte {at} has size {size}, but its format needs at least {least}")
            if at + LOG_OVERHEAD + size > len(self.raw):
                return
            yield at, size + LOG_OVERHEAD
            at += size + LOG_OVERHEAD

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRecords) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)


def _wrapper_at(entry: bytearray, header: BatchHeader, first_offset: int) -> tuple[bytearray, int]:
    """Return a wrapper with its inner messages at offsets from `first_offset` on, and their count."""
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


LAST_SEQUENCE = 2**31 - 1
"""The last sequence before 0."""
LARGEST_OFFSET = 2**63 - 2
"""The largest offset: the log end offset after it must fit into 64 bits too."""


class RecordsBuilder:
    """A builder of the bytes of a log from records, which get offsets.

    Magic 2 gives one batch; magic 0 or 1 gives a message per record or, with a codec, one wrapper. The arguments are
    per batch:

    base_offset: offset of the first record, if none is given with it. magic: 0, 1 or 2. codec, level: the compression.
    timestamp_type: with LogAppendTime, `log_append_time` is the timestamp of all records. producer_id, producer_epoch,
    base_sequence: of an idempotent producer. is_transactional: part of a transaction. is_control: for markers.
    partition_leader_epoch: as the broker sets it. delete_horizon_ms: from when compaction may drop tombstones.
    write_limit: the uncompressed size of records at which it is full; one record always has room.

    Raises RecordError if a format can't hold the arguments.
    """

    def __init__(  # noqa: PLR0913  users give these for a batch, all by name
        self,
        base_offset: int = 0,
        *,
        magic: int = 2,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        timestamp_type: TimestampType | None = None,
        log_append_time: int = NO_TIMESTAMP,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        partition_leader_epoch: int = -1,
        delete_horizon_ms: int | None = None,
        write_limit: int = LARGEST_SIZE,
    ) -> None:
        self.base_offset = base_offset
        self.magic = magic
        self.codec = codec
        self.level = level
        self.timestamp_type = _default_type(magic) if timestamp_type is None else timestamp_type
        self.log_append_time = log_append_time
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional
        self.is_control = is_control
        self.partition_leader_epoch = partition_leader_epoch
        self.delete_horizon_ms = delete_horizon_ms
        self.write_limit = write_limit
        self._check()
        self._encoded: Encoded = kernel.load().Encoded()
        self._base_timestamp: int | None = None
        if magic == 2 and delete_horizon_ms is not None:
            self._start(delete_horizon_ms)

    def _check(self) -> None:
        if self.magic not in (0, 1, 2):
            raise RecordError(f"there is no format {self.magic}; specify 0, 1 or 2")
        is_v2_only = self.is_transactional or self.is_control or self.delete_horizon_ms is not None
        if self.magic < 2 and (is_v2_only or self.producer_id >= 0):
            raise RecordError(f"format {self.magic} has no producers, transactions, control records or delete horizons")
        if self.magic < 2 and self.codec == Codec.ZSTD:
            raise RecordError(f"format {self.magic} has no codec zstd")
        if (self.magic > 0) == (self.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE):
            raise RecordError(f"format {self.magic} has no timestamp type {self.timestamp_type.name}")
        if self.producer_id < 0 and self.is_transactional and not self.is_control:
            raise RecordError("a transactional batch needs a producer id")
        if self.producer_id >= 0 and (self.producer_epoch < 0 or (self.base_sequence < 0 and not self.is_control)):
            raise RecordError("a producer id needs an epoch and a base sequence")
        check_level(self.codec, self.level)

    def _start(self, base_timestamp: int) -> None:
        self._base_timestamp = base_timestamp
        self._encoded.start(base_timestamp)

    @property
    def next_offset(self) -> int:
        """The offset of the next record without an offset of its own."""
        return self.base_offset + self._encoded.next_delta

    @property
    def count(self) -> int:
        """The number of appended records."""
        return len(self._encoded)

    @property
    def estimated_size(self) -> int:
        """The size that would be built, with uncompressed records."""
        return self._encoded.size + (BATCH_HEADER_SIZE if self.magic == 2 else 0)

    @property
    def is_full(self) -> bool:
        """True if the write limit is reached."""
        return len(self._encoded) > 0 and self.estimated_size >= self.write_limit

    def has_room_for(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Sequence[HeaderPair] = ()
    ) -> bool:
        """Return True if a record fits below the write limit; the first one always does."""
        if len(self._encoded) == 0:
            return True
        if self.magic < 2:
            return self._encoded.size + entry_size(self.magic, key, value) <= self.write_limit
        time_delta = timestamp - (self._base_timestamp or 0)
        size = record_size(time_delta, self.next_offset - self.base_offset, key, value, headers)
        return self.estimated_size + size <= self.write_limit

    def append(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Sequence[HeaderPair] = ()
    ) -> None:
        """Add a record at the next offset. Raises RecordError if the format can't hold it."""
        if not self._encoded.append(timestamp, key, value, headers):
            self.append_at(self.next_offset, timestamp, key, value, headers)

    def append_at(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[HeaderPair] = (),
    ) -> None:
        """Add a record at an offset, the next one or above: compaction leaves gaps. Raises RecordError as `append`."""
        if offset < self.next_offset:
            raise RecordError(f"offset {offset} doesn't increase; the next offset is {self.next_offset}")
        check_offset(offset)
        if offset - self.base_offset > MAXIMUM_RELATIVE_OFFSET:
            raise RecordError(f"offset {offset} is too far above the batch's first, {self.base_offset}")
        if timestamp < NO_TIMESTAMP:
            raise RecordError(f"the timestamp {timestamp} is negative")
        encoded = self._record(offset, timestamp, key, value, headers)
        if self.estimated_size + len(encoded) > LARGEST_SIZE:
            raise RecordError(f"the batch becomes larger than {LARGEST_SIZE} bytes")
        self._encoded.add(encoded, offset - self.base_offset, timestamp)

    def _record(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Sequence[HeaderPair]
    ) -> bytes:
        if self.magic < 2:
            return self._entry(offset, timestamp, key, value, headers)
        base_timestamp = self._base_timestamp
        if base_timestamp is None:
            base_timestamp = timestamp
            self._start(timestamp)
        return encode_record(timestamp - base_timestamp, offset - self.base_offset, key, value, headers)

    def _entry(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Sequence[HeaderPair]
    ) -> bytes:
        if headers:
            raise RecordError(f"format {self.magic} has no headers")
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            timestamp = self.log_append_time
        if self.magic == 1 and self.codec != Codec.NONE:
            offset -= self.base_offset
        attributes = attributes_of(self.magic, Codec.NONE, self.timestamp_type)
        return encode_entry(offset, self.magic, attributes, key, value, timestamp)

    def extend(self, records: Iterable[Appended]) -> None:
        """Add many records (timestamp, key, value, headers) at the next offsets, faster than one by one.

        Raises RecordError as `append`; records before the faulty one stay.
        """
        records = iter(records)
        while (left := self._encoded.extend(records)) is not None:
            timestamp, key, value, headers = left  # the first record, or one that the fast path doesn't take
            self.append_at(self.next_offset, timestamp, key, value, headers)

    def append_end_marker(self, control_type: ControlType, coordinator_epoch: int, timestamp: int) -> None:
        """Add the control record that ends a transaction. Source: EndTransactionMarker."""
        if not self.is_control:
            raise RecordError("a marker needs a control batch")
        key, value = end_marker(control_type, coordinator_epoch)
        self.append(timestamp, key, value)

    def build(self) -> MemoryRecords:
        """Build the records' bytes for a log; empty if there are none. Raises RecordError if they are too large."""
        if len(self._encoded) == 0:
            return MemoryRecords(b"")
        body = self._encoded.body()
        last_offset = self.next_offset - 1
        check_offset(last_offset)
        if self.magic == 2:
            return MemoryRecords(build_batch(self._header(last_offset), body, self.level))
        if self.codec == Codec.NONE:
            return MemoryRecords(body)
        is_append_time = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        timestamp = self.log_append_time if is_append_time else self._encoded.max_timestamp
        attributes = attributes_of(self.magic, self.codec, self.timestamp_type)
        wrapper = encode_wrapper(last_offset, self.magic, attributes, body, timestamp=timestamp, level=self.level)
        return MemoryRecords(wrapper)

    def _header(self, last_offset: int) -> BatchHeader:
        is_append_time = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return NEW_HEADER._replace(
            base_offset=self.base_offset,
            partition_leader_epoch=self.partition_leader_epoch,
            attributes=self._attributes(),
            last_offset=last_offset,
            base_timestamp=NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            max_timestamp=self.log_append_time if is_append_time else self._encoded.max_timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            records_count=len(self._encoded),
        )

    def _attributes(self) -> int:
        flags = {
            TIMESTAMP_TYPE_MASK: self.timestamp_type is TimestampType.LOG_APPEND_TIME,
            TRANSACTIONAL_MASK: self.is_transactional,
            CONTROL_MASK: self.is_control,
            DELETE_HORIZON_MASK: self.delete_horizon_ms is not None,
        }
        return self.codec | sum(mask for mask, is_set in flags.items() if is_set)


BATCH_SIZE = 16384
"""`batch.size` of a producer."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Settings for batches of records that have no batch. None: the format's or Kafka's default.

    timestamp: of records without one, in milliseconds; with LogAppendTime, of all. batch_size: bytes of a batch,
    uncompressed. codec: None keeps complete batches' codec. sequence: of the producer's first record.
    is_transactional: until an end comes, and `end` at the end.
    """

    timestamp: int
    magic: int | None = None
    codec: Codec | None = None
    level: int | None = None
    timestamp_type: TimestampType | None = None
    batch_size: int = BATCH_SIZE
    batch_records: int = 2**31 - 1
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False
    end: ControlType | None = None
    coordinator_epoch: int = 0
    partition_leader_epoch: int = 0

    def new_builder(self, base_offset: int, sequence: int) -> RecordsBuilder:
        """Return a builder for the next batch; sequence: its first record's."""
        return RecordsBuilder(
            base_offset,
            magic=2 if self.magic is None else self.magic,
            codec=self.codec or Codec.NONE,
            level=self.level,
            timestamp_type=self.timestamp_type,
            log_append_time=self.timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            is_transactional=self.is_transactional,
            partition_leader_epoch=self.partition_leader_epoch,
            write_limit=self.batch_size,
        )


def check_offset(offset: int) -> None:
    """Raise RecordError for an offset that no record can have."""
    if offset > LARGEST_OFFSET:
        raise RecordError(f"offset {offset} is above the largest possible offset, {LARGEST_OFFSET}")


def _default_type(magic: int) -> TimestampType:
    return TimestampType.CREATE_TIME if magic > 0 else TimestampType.NO_TIMESTAMP_TYPE


def end_marker(control_type: ControlType, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """Return key and value of the control record that ends a transaction: versions 0. Source: EndTransactionMarker."""
    return (
        CONTROL_KEY_VERSION.pack(0) + CONTROL_KEY_TYPE.pack(control_type),
        MARKER_VERSION.pack(0) + MARKER_COORDINATOR_EPOCH.pack(coordinator_epoch),
    )


def create_records(
    *messages: Message, codec: Codec = Codec.NONE, base_offset: int = 0, level: int | None = None
) -> MemoryRecords:
    """Build messages at consecutive offsets from `base_offset` on, with a codec in one wrapper.

    Raises RecordError if their formats differ, or the format doesn't have the codec. Source:
    ByteBufferMessageSet.create.
    """
    if not messages:
        return MemoryRecords(b"")
    magics = {message.magic for message in messages}
    if len(magics) > 1:
        raise RecordError("messages of one set must have the same format")
    builder = RecordsBuilder(
        base_offset, magic=magics.pop(), codec=codec, level=level, timestamp_type=messages[0].timestamp_type
    )
    builder.log_append_time = max(message.timestamp for message in messages)
    for message in messages:
        builder.append(message.timestamp, message.key, message.value)
    return builder.build()


__all__ = [
    "InvalidMessageError",
    "MemoryRecords",
    "Message",
    "MessageAndOffset",
    "RecordsBuilder",
    "compress",
    "create_records",
]
