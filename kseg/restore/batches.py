"""Batches for the target: stored ones with another header, or new ones of their records, from any offset on."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from kseg import kernel
from kseg.errors import RecordError
from kseg.formats.codes import CODEC_MASK, LOG_OVERHEAD, TIMESTAMP_TYPE_MASK, Codec
from kseg.formats.header_fields import BATCH_ATTRIBUTES, BATCH_CRC, BATCH_HEADER_FIELDS
from kseg.index.header_scan import header_of
from kseg.kernel.contract import ROW, SIZE, START, Appended
from kseg.reading.batch import Batch, BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.bodies import with_bodies
from kseg.reading.log_file import LogFile, Run
from kseg.restore.contents import contents_of_batch, contents_of_slice
from kseg.restore.source import SourcePartition, Survey, Walk
from kseg.writer.batches import RecordsBuilder

SMALLEST_STORED, SMALLEST_STORED_COMPRESSED = 64 << 10, 2 << 10
"""Bytes from which a batch is sent as it is stored: joining smaller ones saves the broker more than it costs here."""
QUICK = (Codec.NONE, Codec.LZ4, Codec.SNAPPY)
"""Codecs whose bodies are decompressed and compressed again quickly."""
JOINED_SIZE = 400 << 10
"""Bytes of records, uncompressed, in a batch that joins smaller ones."""
LARGEST_SEQUENCE = 2**31
"""The first sequence that doesn't exist: 0 follows the one before it."""
COUNT, BASE, LAST, ATTRIBUTES, MAGIC = "records_count", "base_offset", "last_offset", "attributes", "magic"


class Producer(NamedTuple):
    """A producer's id and epoch."""

    id: int
    epoch: int

    def has_sent(self, header: BatchHeader) -> bool:
        """Return whether it has sent a batch of the target to where it is: the sequence is the offset."""
        sequence = header.first_offset % LARGEST_SEQUENCE
        return (header.producer_id, header.producer_epoch, header.base_sequence) == (*self, sequence)


class StoredPart(NamedTuple):
    """A stored batch that can be sent with another header. raw: its bytes, valid until the next part is taken."""

    header: BatchHeader
    raw: memoryview

    @property
    def record_count(self) -> int:
        """The number of its records."""
        return self.header.records_count or 0


class RecordsPart(NamedTuple):
    """Contents of records that are encoded again, with the codec of their batches."""

    records: Sequence[Appended]
    codec: Codec

    @property
    def record_count(self) -> int:
        """The number of records."""
        return len(self.records)


Part = StoredPart | RecordsPart


class TargetBatch(NamedTuple):
    """A batch for the target. first: the target's offset of its first record, which is also its sequence."""

    first: int
    record_count: int
    content: bytes | bytearray

    @property
    def end(self) -> int:
        """The offset after its last record."""
        return self.first + self.record_count


def parts_of(source: SourcePartition, survey: Survey, first: int) -> Iterator[Part]:
    """Yield a partition's records from an offset of the target on. Raises OpenError if a log can't be opened."""
    start = survey.checkpoint_at(first)
    skip = first if start is None else first - start.target_offset
    for slot, log_file, items in Walk(source, start).logs():
        for item in items:
            for part in () if isinstance(item, Damage) else _parts_of_run(source, survey, slot, log_file, item):
                if skip >= part.record_count:
                    skip -= part.record_count
                elif skip == 0:
                    yield part
                else:
                    yield _rest(part, skip)
                    skip = 0


def _rest(part: Part, skip: int) -> RecordsPart:
    """Return a part without its first records."""
    codec = part.codec if isinstance(part, RecordsPart) else Codec(part.header.codec)
    return RecordsPart(records_of(part)[skip:], codec)


def records_of(part: Part) -> Sequence[Appended]:
    """Return the contents of a part's records."""
    if isinstance(part, RecordsPart):
        return part.records
    return contents_of_batch(Batch(part.header, bytes(part.raw)))


def _parts_of_run(source: SourcePartition, survey: Survey, slot: int, log_file: LogFile, run: Run) -> Iterator[Part]:
    sizes = run.rows[SIZE : run.row_count * ROW : ROW]
    if max(sizes) < SMALLEST_STORED_COMPRESSED and run.codecs & (run.codecs - 1) == 0:
        yield from _join_records(source, log_file, run)
        return
    kinds = _kinds(source, survey, slot, run)
    first = 0
    for (is_stored, _), group in groupby(kinds):
        last = first + sum(1 for _ in group)
        if is_stored:
            for row in range(first, last):
                start = run.rows[row * ROW + START]
                yield StoredPart(header_of(run, row), run.buffer[start : start + sizes[row]])
        else:
            yield from _join_records(
                source, log_file, run._replace(rows=run.rows[first * ROW : last * ROW], row_count=last - first)
            )
        first = last


def _kinds(source: SourcePartition, survey: Survey, slot: int, run: Run) -> Iterator[tuple[bool, int]]:
    """Yield for each batch of a run whether it is sent as it is stored, and its codec."""
    columns = kernel.load().header_columns(run.buffer, run.rows, 0, run.row_count, run.position)
    names = (COUNT, BASE, LAST, ATTRIBUTES, MAGIC, "max_timestamp", "size", "position")
    values = (memoryview(columns.column(name)).cast("B").cast("q") for name in names)
    for count, base, last, attributes, magic, latest, size, position in zip(*values, strict=True):
        codec = attributes & CODEC_MASK
        is_stored = (
            magic == 2
            and size >= (SMALLEST_STORED if codec in QUICK else SMALLEST_STORED_COMPRESSED)
            and 0 < count == last - base + 1
            and not attributes & TIMESTAMP_TYPE_MASK
            and base >= source.first_offset
            and latest < source.end_ms
            and (slot, position) not in survey.rebuilt
        )
        yield is_stored, codec


def _join_records(source: SourcePartition, log_file: LogFile, run: Run) -> Iterator[RecordsPart]:
    """Yield the records of a run in lists of limited length."""
    for piece in with_bodies(iter((run,)), log_file.stored_size):
        if isinstance(piece, Damage):
            continue
        codec = Codec(header_of(run, piece.first).codec)
        for records in contents_of_slice(piece, source.filter_of(piece), JOINED_SIZE):
            yield RecordsPart(records, codec)


def target_batches(parts: Iterator[Part], first: int, producer: Producer, largest: int) -> Iterator[TargetBatch]:
    """Yield the batches of some parts for the target, one after another.

    first: the target's offset of the first record. largest: the most bytes of a batch. Raises RecordError if a record
    doesn't fit.
    """
    waiting: list[Appended] = []
    size, codec = 0, Codec.NONE
    for part in parts:
        if waiting and (isinstance(part, StoredPart) or part.codec != codec or size >= JOINED_SIZE):
            for batch in _encode_records(waiting, codec, first, producer, largest):
                yield batch
                first = batch.end
            waiting, size = [], 0
        if isinstance(part, StoredPart):
            yield TargetBatch(first, part.record_count, _with_header(part, first, producer))
            first += part.record_count
        else:
            waiting.extend(part.records)
            size += _estimated_size(part.records)
            codec = part.codec
    if waiting:
        yield from _encode_records(waiting, codec, first, producer, largest)


def _estimated_size(records: Sequence[Appended]) -> int:
    """Return about the bytes of some records, by some of them."""
    some = records[:: max(len(records) // 8, 1)]
    sizes = sum(len(key or b"") + len(value or b"") + 16 for _, key, value, _ in some)
    return sizes * len(records) // len(some)


def _encode_records(
    records: list[Appended], codec: Codec, first: int, producer: Producer, largest: int
) -> Iterator[TargetBatch]:
    """Yield one batch of some records, or several if it becomes too large."""
    builder = RecordsBuilder(
        0,
        codec=codec,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=first % LARGEST_SEQUENCE,
        partition_leader_epoch=-1,
    )
    builder.extend(records)
    content = builder.build().raw
    if len(content) <= largest:
        yield TargetBatch(first, len(records), content)
        return
    if len(records) == 1:
        raise RecordError(f"the record of {len(content)} bytes is larger than max.message.bytes, {largest}")
    middle = len(records) // 2
    yield from _encode_records(records[:middle], codec, first, producer, largest)
    yield from _encode_records(records[middle:], codec, first + middle, producer, largest)


def _with_header(part: StoredPart, first: int, producer: Producer) -> bytearray:
    """Return a stored batch with the header of a new one: its records stay as they are."""
    header, raw = part.header, bytearray(part.raw)
    BATCH_HEADER_FIELDS.struct.pack_into(
        raw,
        0,
        0,
        header.size - LOG_OVERHEAD,
        -1,
        header.magic,
        0,
        header.codec,
        header.last_offset - header.first_offset,
        header.base_timestamp,
        header.max_timestamp,
        producer.id,
        producer.epoch,
        first % LARGEST_SEQUENCE,
        part.record_count,
    )
    BATCH_CRC.write(raw, kernel.load().crc32c(memoryview(raw)[BATCH_ATTRIBUTES.position :]))
    return raw
