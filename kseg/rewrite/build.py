"""`build`: makes a partition directory from records, without a broker."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from kseg.errors import RecordError
from kseg.formats.codes import CODEC_MASK, MAXIMUM_RELATIVE_OFFSET, TIMESTAMP_TYPE_MASK, Codec, ControlType
from kseg.log.segments import RollReason
from kseg.log.writer import NEVER, PartitionSettings, PartitionWriter, WrittenSegment
from kseg.writer.batches import LAST_SEQUENCE, BatchSettings, RecordsBuilder, build_batch, check_offset
from kseg.writer.messages import encode_entry, encode_record, encode_wrapper
from kseg.writer.text_source import (
    Note,
    SegmentStart,
    SourceBatch,
    SourceError,
    SourceItem,
    SourceRecord,
    TransactionEnd,
)


@dataclass(slots=True)
class Built:
    """The written files, and notes about the source."""

    segments: list[WrittenSegment]
    record_count: int = 0
    notes: list[Note] = field(default_factory=list)


def build_partition(
    source: Iterable[SourceItem],
    directory: Path,
    *,
    base_offset: int | None = None,
    batches: BatchSettings,
    partition: PartitionSettings | None = None,
    keep_segments: bool = True,
) -> Built:
    """Write records into an existing directory, as a partition.

    Args:
        source: the items to write, in order.
        directory: the directory.
        base_offset: of the first segment, unless the source says where its segments start; None: the first record's, or
            0.
        batches: settings of batches.
        partition: settings of segments.
        keep_segments: start segments where those of the source did.

    Raises:
        SourceError: for a wrong line.
        OSError: if the system can't write.
    """
    with PartitionWriter(directory, base_offset or 0, partition) as writer:
        work = _Build(writer, batches, keep_segments=keep_segments, is_base_open=base_offset is None)
        for item in source:
            work.take(item)
        work.finish()
    work.built.segments = writer.segments
    return work.built


class _Build:
    """Builds the batches. `is_base_open`: the first record offset will be the first segment's base offset."""

    def __init__(
        self, writer: PartitionWriter, settings: BatchSettings, *, keep_segments: bool, is_base_open: bool
    ) -> None:
        self.built = Built([])
        self._writer = writer
        self._settings = settings
        self._keep_segments = keep_segments
        self._sequence = settings.sequence
        self._open: RecordsBuilder | None = None
        self._line = 0
        self._is_in_transaction = False
        self._is_base_open = is_base_open

    def take(self, item: SourceItem) -> None:
        """Add the next item. Raises SourceError if it can't be written."""
        self._line = item.line
        try:
            match item:
                case SourceRecord():
                    self._add_record(item)
                case SourceBatch():
                    self._flush()
                    self._copy_batch(item)
                case TransactionEnd():
                    self._end_transaction(item.control_type)
                case SegmentStart():
                    self._flush()
                    self._start_segment(item)
                case Note():
                    self.built.notes.append(item)
        except RecordError as error:
            raise SourceError(item.line, error.message) from error

    def finish(self) -> None:
        """Write the remaining records, and end the transaction if requested."""
        try:
            self._flush()
            if self._settings.end is not None and self._is_in_transaction:
                self._end_transaction(self._settings.end)
        except RecordError as error:
            raise SourceError(self._line, error.message) from error

    def _start_segment(self, start: SegmentStart) -> None:
        is_first = not self.built.record_count and not self._writer.segments
        if not self._keep_segments and not is_first:
            return
        if start.base_offset < self._writer.next_offset and not is_first:
            raise SourceError(
                start.line, f"the segment {start.base_offset} begins below the next offset, {self._writer.next_offset}"
            )
        check_offset(start.base_offset)
        self._is_base_open = False
        if self._keep_segments:
            self._writer.settings = replace(self._writer.settings, roll=NEVER)
        self._writer.roll(RollReason.UNKNOWN, start.base_offset)

    def _add_record(self, record: SourceRecord) -> None:
        settings = self._settings
        timestamp = settings.timestamp if record.timestamp is None else record.timestamp
        builder = self._open
        if builder is not None and (
            builder.count >= settings.batch_records
            or builder.is_full
            or not builder.has_room_for(timestamp, record.key, record.value, record.headers)
            or (record.offset or 0) - builder.base_offset > MAXIMUM_RELATIVE_OFFSET
        ):
            self._flush()
            builder = None
        if builder is None:
            first = self._writer.next_offset if record.offset is None else record.offset
            self._check_rises(first, record.line)
            if self._is_base_open and first > self._writer.next_offset:
                check_offset(first)
                self._writer.roll(RollReason.UNKNOWN, first)
            self._is_base_open = False
            builder = self._open = self._settings.new_builder(first, self._sequence)
        offset = builder.next_offset if record.offset is None else record.offset
        builder.append_at(offset, timestamp, record.key, record.value, record.headers)

    def _check_rises(self, offset: int, line: int) -> None:
        if offset < self._writer.next_offset:
            raise SourceError(line, f"offset {offset} doesn't increase; the next offset is {self._writer.next_offset}")

    def _flush(self) -> None:
        """Write the open batch."""
        builder, self._open = self._open, None
        if builder is None:
            return
        for raw in _entries(builder):
            self._writer.append(raw)
        self.built.record_count += builder.count
        self._is_in_transaction = builder.is_transactional
        if self._sequence >= 0:
            self._sequence = (self._sequence + builder.next_offset - builder.base_offset) & LAST_SEQUENCE

    def _end_transaction(self, control_type: ControlType) -> None:
        settings = self._settings
        if not settings.is_transactional:
            raise RecordError("there is no transaction to end; specify a producer id, and make batches transactional")
        self._flush()
        self._is_base_open = False
        builder = RecordsBuilder(
            self._writer.next_offset,
            producer_id=settings.producer_id,
            producer_epoch=settings.producer_epoch,
            is_transactional=True,
            is_control=True,
            partition_leader_epoch=settings.partition_leader_epoch,
        )
        builder.append_end_marker(control_type, settings.coordinator_epoch, settings.timestamp)
        self._writer.append(builder.build().raw)
        self.built.record_count += 1
        self._is_in_transaction = False

    def _copy_batch(self, batch: SourceBatch) -> None:
        header = batch.header
        self._is_base_open = False
        self._check_rises(header.first_offset, batch.line)
        if header.last_offset < header.first_offset:
            raise RecordError(f"the batch's last offset {header.last_offset} is below its first, {header.first_offset}")
        check_offset(header.last_offset)
        if self._settings.magic not in (None, header.magic):
            raise RecordError(
                f"the batch has format {header.magic}; run `kseg dump --only records` to print records for"
                f" another format"
            )
        _check_offsets(batch)
        if self._settings.codec is not None and batch.records:
            attributes = header.attributes & ~CODEC_MASK | self._settings.codec
            batch = batch._replace(header=header._replace(attributes=attributes))
        for raw in encode_batch(batch, self._settings.level):
            self._writer.append(raw)
        self.built.record_count += len(batch.records)


def _entries(builder: RecordsBuilder) -> Iterator[bytes]:
    """Yield the built entries of the log: plain messages one by one."""
    records = builder.build()
    if builder.magic == 2 or builder.codec != Codec.NONE:
        yield records.raw
    else:
        for batch in records.shallow():
            yield batch.raw


def _check_offsets(batch: SourceBatch) -> None:
    header = batch.header
    next_offset = header.first_offset
    for record in batch.records:
        if record.offset is None or not next_offset <= record.offset <= header.last_offset:
            limits = f"{next_offset} to {header.last_offset}"
            raise SourceError(record.line, f"the offset is {record.offset}, expected {limits} as in the batch")
        next_offset = record.offset + 1


def encode_batch(batch: SourceBatch, level: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a complete batch; v0 and v1 messages that must leave their wrapper in order.

    Raises RecordError if the format can't hold them.
    """
    header = batch.header
    if header.magic == 2:
        yield build_batch(header._replace(records_count=len(batch.records)), b"".join(_encode(batch)), level)
        return
    inner_attributes = header.attributes & ~CODEC_MASK
    is_wrapper = header.codec != Codec.NONE
    base = header.first_offset if is_wrapper and header.magic == 1 else 0
    entries = [
        encode_entry(
            (record.offset or 0) - base,
            header.magic,
            inner_attributes,
            record.key,
            record.value,
            -1 if record.timestamp is None else record.timestamp,
        )
        for record in batch.records
    ]
    if not is_wrapper:
        yield from entries
        return
    yield encode_wrapper(
        header.last_offset,
        header.magic,
        header.attributes,
        b"".join(entries),
        timestamp=header.max_timestamp,
        level=level,
    )


def _encode(batch: SourceBatch) -> Iterator[bytes]:
    header = batch.header
    is_append_time = bool(header.attributes & TIMESTAMP_TYPE_MASK)
    for record in batch.records:
        delta = record.timestamp_delta
        if delta is None:
            delta = 0 if is_append_time or record.timestamp is None else record.timestamp - header.base_timestamp
        yield encode_record(
            delta,
            (record.offset or 0) - header.first_offset,
            record.key,
            record.value,
            record.headers,
            attributes=record.attributes,
        )
