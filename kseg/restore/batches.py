"""Batches for the target: stored ones with another header, or small ones merged into new ones, from any offset on."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from kseg import kernel
from kseg.codecs.bodies import compress
from kseg.errors import RecordError
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, LOG_OVERHEAD, TIMESTAMP_TYPE_MASK, Codec
from kseg.formats.header_fields import BATCH_ATTRIBUTES, BATCH_CRC, BATCH_HEADER_FIELDS
from kseg.index.header_scan import header_of
from kseg.kernel.contract import MOST, ROW, SIZE, START, VALID, Buffer, RecordFilter, new_rows
from kseg.kernel.merge_contract import MergedRecords
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import Run
from kseg.restore.source import Checkpoint, SourcePartition, Survey, Walk, part_of

SMALLEST_STORED: Mapping[int, int] = {
    Codec.NONE: 64 << 10,
    Codec.GZIP: 2 << 10,
    Codec.SNAPPY: 64 << 10,
    Codec.LZ4: 64 << 10,
    Codec.ZSTD: 8 << 10,
}
"""Bytes from which a batch is sent as it is stored. Smaller ones are merged: a request has one batch of a partition.

A request takes as much CPU time as merging 200 records with zstd, or more records with quicker codecs, or fewer with
gzip.
"""
MERGED_SIZE = 400 << 10
"""Bytes of uncompressed records from which a merged batch ends, after the last record of a source's batch."""
MAGIC = 2
LARGEST_SEQUENCE = 2**31
"""The first sequence that doesn't exist: 0 follows the one before it."""


class Producer(NamedTuple):
    """A producer's id and epoch."""

    id: int
    epoch: int

    def has_sent(self, header: BatchHeader) -> bool:
        """Return whether it has sent a batch of the target to where it is: the sequence is the offset."""
        sequence = header.first_offset % LARGEST_SEQUENCE
        return (header.producer_id, header.producer_epoch, header.base_sequence) == (*self, sequence)


class StoredBatch(NamedTuple):
    """A batch as a log stores it: a row of a run, valid as long as this."""

    header: BatchHeader
    run: Run
    row: int

    @property
    def raw(self) -> memoryview:
        """Its bytes."""
        start = self.run.rows[self.row * ROW + START]
        return self.run.buffer[start : start + self.header.size]

    @property
    def record_count(self) -> int:
        """The number of its records."""
        return self.header.records_count or 0

    def unpack(self, wanted: RecordFilter | None = None) -> "StoredRecords":
        """Return its records."""
        (run,) = part_of(self.run, self.row, self.row + 1)
        (piece,) = with_bodies(iter((run._replace(codecs=1 << self.header.codec),)), 0)
        assert isinstance(piece, Slice)
        return StoredRecords(piece, wanted)


class StoredRecords(NamedTuple):
    """Records of batches with the same codec, as far as they are wanted."""

    piece: Slice
    wanted: RecordFilter | None = None

    @property
    def codec(self) -> Codec:
        """The codec of their batches; batches of an unknown one have no readable records."""
        codec = header_of(self.piece.run, self.piece.first).codec
        return Codec(codec) if codec in SMALLEST_STORED else Codec.NONE

    def add_to(self, merged: MergedRecords, row: int, enough: int = MOST) -> int:
        """Add the records from a row on, up to enough bytes; return the row where to continue."""
        run, first, last, bodies, *_ = self.piece
        return merged.add(run.buffer, run.rows, row, last, bodies, first, self.wanted, enough)


Part = StoredBatch | StoredRecords
"""Records of a log: a batch that can be sent with another header, or records to be encoded again."""


class StoredRun(Run):
    """A run of batches that are sent as they are stored: nobody needs their bodies decompressed."""

    __slots__ = ()


class TargetBatch(NamedTuple):
    """A batch for the target. first: the target's offset of its first record, which is also its sequence."""

    first: int
    record_count: int
    content: bytearray

    @property
    def end(self) -> int:
        """The offset after its last record."""
        return self.first + self.record_count


def parts_from(source: SourcePartition, survey: Survey, start: Checkpoint | None) -> Iterator[Part]:
    """Yield a partition's records from a checkpoint on. Raises OpenError if a log can't be opened."""
    for slot, log_file, items in Walk(source, start).logs():
        runs = (run for item in items if isinstance(item, Run) for run in _split(source, survey, slot, item))
        for piece in with_bodies(runs, log_file.stored_size):
            if isinstance(piece, Damage):
                continue
            if isinstance(piece.run, StoredRun):
                for row in range(piece.first, piece.last):
                    yield StoredBatch(header_of(piece.run, row), piece.run, row)
            else:
                yield StoredRecords(piece, source.filter_of(piece))


def _split(source: SourcePartition, survey: Survey, slot: int, run: Run) -> Iterator[Run]:
    """Yield the parts of a run whose batches have the same codec and are all sent as they are stored, or none is."""
    codec = run.codecs.bit_length() - 1
    is_uniform = run.codecs == 1 << codec
    if is_uniform and max(run.rows[SIZE : run.row_count * ROW : ROW]) < SMALLEST_STORED.get(codec, 0):
        yield run
        return
    first = 0
    for (is_stored, _), group in groupby(_kinds(source, survey, slot, run)):
        last = first + sum(1 for _ in group)
        for part in part_of(run, first, last):
            yield StoredRun(*part._replace(codecs=1 << Codec.NONE)) if is_stored else part
        first = last


def _kinds(source: SourcePartition, survey: Survey, slot: int, run: Run) -> Iterator[tuple[bool, int]]:
    """Yield for each batch of a run whether it is sent as it is stored, and its codec."""
    columns = kernel.load().header_columns(run.buffer, run.rows, 0, run.row_count, run.position)
    names = ("records_count", "base_offset", "last_offset", "attributes", "magic", "max_timestamp", "size", "position")
    values = (memoryview(columns.column(name)).cast("B").cast("q") for name in names)
    for count, base, last, attributes, magic, latest, size, position in zip(*values, strict=True):
        codec = attributes & CODEC_MASK
        is_stored = (
            magic == MAGIC
            and size >= SMALLEST_STORED.get(codec, MOST)
            and 0 < count == last - base + 1
            and not attributes & TIMESTAMP_TYPE_MASK
            and base >= source.first_offset
            and latest < source.end_ms
            and (slot, position) not in survey.rebuilt
        )
        yield is_stored, codec


class TargetBatches:
    """A partition's batches for the target, one after another, from an offset on."""

    def __init__(
        self, source: SourcePartition, survey: Survey, first: int, producer: Producer, largest: int, base: int = 0
    ) -> None:
        """Take the target's offsets of the first batch and of the partition's first record.

        largest: the most bytes of a batch.
        """
        self._next, self._producer, self._largest = first, producer, largest
        sent = first - base
        start = survey.checkpoint_at(sent)
        self._parts = parts_from(source, survey, start)
        self._merged = kernel.load().MergedRecords()
        self._merged.to_skip = sent if start is None else sent - start.target_offset
        self._codec = Codec.NONE

    def __iter__(self) -> Iterator[TargetBatch]:
        """Yield the batches.

        Raises:
            RecordError: a record doesn't fit into the target.
            OpenError: a log can't be opened.
        """
        for part in self._parts:
            if not isinstance(part, StoredBatch):
                yield from self._merge(part)
            elif self._merged.to_skip >= part.record_count:
                self._merged.to_skip -= part.record_count
            elif self._merged.to_skip:
                yield from self._merge(part.unpack())
            else:
                yield from self._take_merged()
                header = part.header
                yield self._add(header.codec, part.record_count, header, part.raw[BATCH_HEADER_SIZE:])
        yield from self._take_merged()

    def _merge(self, part: StoredRecords) -> Iterator[TargetBatch]:
        """Add records to those that wait; yield the batches that become complete."""
        if part.codec != self._codec:
            yield from self._take_merged()
            self._codec = part.codec
        row = part.piece.first
        while row < part.piece.last:
            row = part.add_to(self._merged, row, MERGED_SIZE)
            if self._merged.size >= MERGED_SIZE:
                yield from self._take_merged()

    def _take_merged(self) -> Iterator[TargetBatch]:
        """Yield the waiting records as one batch, or as several if it becomes too large."""
        if len(self._merged):
            merged, self._merged = self._merged, kernel.load().MergedRecords()
            yield from self._encode(merged)

    def _encode(self, merged: MergedRecords) -> Iterator[TargetBatch]:
        count = len(merged)
        records = (
            merged.records if self._codec == Codec.NONE else compress(self._codec, bytes(merged.records), magic=MAGIC)
        )
        size = BATCH_HEADER_SIZE + len(records)
        if size <= self._largest:
            yield self._add(self._codec, count, merged, records)
        elif count == 1:
            raise RecordError(f"the record of {size} bytes is larger than max.message.bytes, {self._largest}")
        else:
            whole = with_header(merged.records, Codec.NONE, count, merged, self._producer, 0)
            rows = new_rows(1)
            rows[SIZE], rows[VALID] = len(whole), 1
            middle = count // 2
            for wanted in (RecordFilter(last_offset=middle - 1), RecordFilter(first_offset=middle)):
                half = kernel.load().MergedRecords()
                half.add(memoryview(whole), rows, 0, 1, None, 0, wanted, MOST)
                yield from self._encode(half)

    def _add(self, codec: int, count: int, times: "BatchHeader | MergedRecords", records: Buffer) -> TargetBatch:
        """Return the next batch."""
        first = self._next
        self._next += count
        return TargetBatch(first, count, with_header(records, codec, count, times, self._producer, first))


def with_header(
    records: Buffer, codec: int, count: int, times: "BatchHeader | MergedRecords", producer: Producer, first: int
) -> bytearray:
    """Return a batch of records that are encoded already, with the base and the largest timestamp of others."""
    content = bytearray(BATCH_HEADER_SIZE)
    content += records
    BATCH_HEADER_FIELDS.struct.pack_into(
        content,
        0,
        0,
        len(content) - LOG_OVERHEAD,
        -1,
        MAGIC,
        0,
        codec,
        count - 1,
        times.base_timestamp,
        times.max_timestamp,
        producer.id,
        producer.epoch,
        first % LARGEST_SEQUENCE,
        count,
    )
    BATCH_CRC.write(content, kernel.load().crc32c(memoryview(content)[BATCH_ATTRIBUTES.position :]))
    return content
