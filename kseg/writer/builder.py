"""Builds a v2 batch, v0 or v1 messages, or a wrapper of them, record by record. Source: MemoryRecordsBuilder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kseg import kernel
from kseg.codecs.body import check_level
from kseg.errors import RecordError
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    MAXIMUM_RELATIVE_OFFSET,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Codec,
    ControlType,
    TimestampType,
)
from kseg.formats.header_fields import CONTROL_KEY_TYPE, CONTROL_KEY_VERSION, MARKER_COORDINATOR_EPOCH, MARKER_VERSION
from kseg.kernel.contract import Appended, Encoded
from kseg.reading.header import NEW_HEADER, BatchHeader
from kseg.writer.batch_builder import build_batch
from kseg.writer.legacy import attributes_of, encode_entry, encode_wrapper, entry_size
from kseg.writer.memory_records import MemoryRecords
from kseg.writer.message import Message
from kseg.writer.record_encoding import LARGEST_SIZE, HeaderPair, encode_record, record_size

LAST_SEQUENCE = 2**31 - 1
"""After this one, sequences continue with 0."""
LARGEST_OFFSET = 2**63 - 2
"""The log end offset after it must fit into 64 bits too."""


class RecordsBuilder:
    """Takes records, gives them offsets, and builds their bytes for a log.

    With magic 2 that is one batch; with 0 or 1 a message each or, with a codec, one wrapper. These are given per batch:

    base_offset: offset of the first record, if none is given with it. magic: 0, 1 or 2. codec, level: how to compress.
    timestamp_type: LogAppendTime lets `log_append_time` be the time of all records. producer_id, producer_epoch,
    base_sequence: of an idempotent producer. is_transactional: part of a transaction. is_control: for markers.
    partition_leader_epoch: as the broker sets it. delete_horizon_ms: from when compaction may drop tombstones.
    write_limit: it is full at this many bytes of uncompressed records; one record always has room.

    Raises RecordError if a format can't hold what is given.
    """

    def __init__(  # noqa: PLR0913  what users give for a batch, all by name
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
            raise RecordError(f"there is no format {self.magic}: there are 0, 1 and 2")
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
        """Offset of the next record without an offset of its own."""
        return self.base_offset + self._encoded.next_delta

    @property
    def count(self) -> int:
        """Records appended."""
        return len(self._encoded)

    @property
    def estimated_size(self) -> int:
        """Bytes that would be built, with uncompressed records."""
        return self._encoded.size + (BATCH_HEADER_SIZE if self.magic == 2 else 0)

    @property
    def is_full(self) -> bool:
        """Whether the write limit is reached."""
        return len(self._encoded) > 0 and self.estimated_size >= self.write_limit

    def has_room_for(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Sequence[HeaderPair] = ()
    ) -> bool:
        """Whether a record fits below the write limit; the first one always does."""
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
        """Adds a record at the next offset. Raises RecordError if the format can't hold it."""
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
        """Adds a record at an offset, the next one or above: compaction leaves gaps. Raises RecordError as `append`."""
        if offset < self.next_offset:
            raise RecordError(f"the offset {offset} doesn't increase: the next one is {self.next_offset}")
        check_offset(offset)
        if offset - self.base_offset > MAXIMUM_RELATIVE_OFFSET:
            raise RecordError(f"the offset {offset} is too far above the batch's first, {self.base_offset}")
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
        """Adds many records (timestamp, key, value, headers) at the next offsets, faster than one by one.

        Raises RecordError as `append`; those before the one at fault stay.
        """
        records = iter(records)
        while (left := self._encoded.extend(records)) is not None:
            timestamp, key, value, headers = left  # the first of all, or one that the fast way doesn't take
            self.append_at(self.next_offset, timestamp, key, value, headers)

    def append_end_marker(self, control_type: ControlType, coordinator_epoch: int, timestamp: int) -> None:
        """Adds the control record that ends a transaction. Source: EndTransactionMarker."""
        if not self.is_control:
            raise RecordError("a marker needs a control batch")
        key, value = end_marker(control_type, coordinator_epoch)
        self.append(timestamp, key, value)

    def build(self) -> MemoryRecords:
        """The records' bytes for a log; empty if there are none. Raises RecordError if it is too large."""
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
    """Settings for batches of records that come without one. None: the format's or Kafka's default.

    timestamp: of records that have none, in milliseconds; with LogAppendTime, of all. batch_size: bytes of a batch,
    uncompressed. codec: None keeps that of whole batches. sequence: of the producer's first record. is_transactional:
    until an end comes, and `end` at the end.
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
        """A builder for the next batch; sequence: of its first record."""
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
    """Raises RecordError if no record can have it."""
    if offset > LARGEST_OFFSET:
        raise RecordError(f"the offset {offset} is above {LARGEST_OFFSET}, the largest possible one")


def _default_type(magic: int) -> TimestampType:
    return TimestampType.CREATE_TIME if magic > 0 else TimestampType.NO_TIMESTAMP_TYPE


def end_marker(control_type: ControlType, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """Key and value of the control record that ends a transaction: versions 0. Source: EndTransactionMarker."""
    return (
        CONTROL_KEY_VERSION.packed(0) + CONTROL_KEY_TYPE.packed(control_type),
        MARKER_VERSION.packed(0) + MARKER_COORDINATOR_EPOCH.packed(coordinator_epoch),
    )


def create_records(
    *messages: Message, codec: Codec = Codec.NONE, base_offset: int = 0, level: int | None = None
) -> MemoryRecords:
    """Messages as a set at offsets from `base_offset` on: one after another or, with a codec, in one wrapper.

    Raises RecordError if their formats differ, or the format doesn't have the codec.
    Source: ByteBufferMessageSet.create.
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
