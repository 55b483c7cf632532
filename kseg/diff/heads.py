"""The next record of each copy in a comparison, and a follower's truncation."""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import cached_property
from operator import attrgetter, eq
from typing import NamedTuple

from kseg.codecs.bodies import decompress
from kseg.diff.cursor import OFFSETS_FALL, BatchCursor
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, NO_TIMESTAMP, Codec
from kseg.formats.header_fields import BATCH_MAGIC
from kseg.index.header_scan import FoldWithin, header_runs
from kseg.kernel.contract import MOST, VALID
from kseg.kernel.fold_contract import Event
from kseg.kernel.record import Header, Record
from kseg.log.committed import read_committed
from kseg.log.compaction_plan import OffsetMap, stretches
from kseg.log.partition import PartitionLog
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies

_content_of = attrgetter("offset", "timestamp", "key", "value", "headers")


class RecordContent(NamedTuple):
    """A record's contents without its offset, for comparisons. timestamp: None if its format has none."""

    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    is_control: bool

    def is_as(self, other: "RecordContent") -> bool:
        """Return True if both are the same record: a timestamp counts if both formats have one."""
        if self == other:
            return True
        has_times = self.timestamp is not None and other.timestamp is not None
        return not has_times and self[1:] == other[1:]


class CopyHead:
    """A walk through the records of a copy, from its cursor on.

    number: the copy's place among the copies. header: of the next record's batch; None at the end of the log. offset:
    at most the next record's.
    """

    header: BatchHeader | None
    offset: int

    def __init__(self, number: int, cursor: BatchCursor, start: int) -> None:
        """Take a cursor at a batch; records below the offset `start` are skipped."""
        self.number = number
        self.cursor = cursor
        self._start = start
        self._last_offset = start - 1
        self._records: list[Record] | None = None
        self._place = 0
        self.read_header()

    @property
    def is_between_batches(self) -> bool:
        """True if no record of the next batch is passed."""
        return self._records is None or self._place == 0

    @property
    def is_loaded(self) -> bool:
        """True if `offset` is the next record's."""
        return self._records is not None

    @property
    def record(self) -> Record:
        """The next record, after it is loaded."""
        assert self._records is not None
        return self._records[self._place]

    def read_header(self) -> None:
        """Read the header of the batch at the cursor."""
        self._records, self._place = None, 0
        if self.cursor.is_at_end:
            self.header = None
            return
        self.header = self.cursor.header()
        base = self.header.base_offset
        self.offset = self._last_offset + 1 if base is None else max(base, self._last_offset + 1)

    def begin_after(self, offset: int) -> None:
        """Read the header of the batch at the cursor, after other batches up to an offset were passed."""
        self._last_offset = max(self._last_offset, offset)
        self.cursor.begin_records()
        self.read_header()

    def load(self) -> None:
        """Read the records of the batch; continue with the next one if there are none."""
        assert self.header is not None
        records = [each for each in self.cursor.records() if each.offset >= self._start]
        rising = [each for each in records if each.offset > self._last_offset]
        if len(rising) < len(records):
            header = self.header
            detail = f"offset {records[0].offset} after {self._last_offset}"
            self.cursor.note(OFFSETS_FALL, header.position, header.size, detail)
        if not rising:
            self.pass_batch()
            return
        self._records, self._place = rising, 0
        self.offset = rising[0].offset

    def content(self) -> RecordContent:
        """Return the contents of the next record."""
        assert self.header is not None
        record = self.record
        time = None if record.timestamp == NO_TIMESTAMP and self.header.magic == 0 else record.timestamp
        return RecordContent(time, record.key, record.value, record.headers, self.header.is_control)

    def same_count(self, other: "CopyHead") -> int:
        """Return the number of equal next records of both batches, as far as both are loaded."""
        if self._records is None or other._records is None or self.header is None or other.header is None:
            return 0
        if self.header.is_control is not other.header.is_control:
            return 0
        most = min(len(self._records) - self._place, len(other._records) - other._place)
        own = map(_content_of, self._records[self._place : self._place + most])
        others = map(_content_of, other._records[other._place : other._place + most])
        return next((number for number, is_same in enumerate(map(eq, own, others)) if not is_same), most)

    def pass_records(self, count: int) -> None:
        """Pass some records of the batch."""
        assert self._records is not None
        self._last_offset = self._records[self._place + count - 1].offset
        self._place += count
        if self._place == len(self._records):
            self.pass_batch()
        else:
            self.offset = self.record.offset

    def pass_batch(self) -> None:
        """Pass the batch."""
        assert self.header is not None
        self._last_offset = max(self._last_offset, self.header.last_offset)
        self.cursor.advance(1)
        self.read_header()

    def is_whole_below(self, offset: int | None) -> bool:
        """Return True if the next batch, with a record count in its header, ends below an offset; None for no bound."""
        header = self.header
        if header is None or self._records is not None or header.base_offset is None or header.records_count is None:
            return False
        is_right = self._last_offset < header.base_offset <= header.last_offset and header.records_count > 0
        return is_right and (offset is None or header.last_offset < offset)

    def has_same_records(self, other: "CopyHead") -> bool:
        """Return True if the next batches have the same records: all bytes except the leader epoch, or their bodies.

        False if the records must be read.
        """
        header, others = self.header, other.header
        if header is None or others is None or header.is_legacy or _shape(header) != _shape(others):
            return False
        raw, other_raw = self._raw(), other._raw()
        if header.crc == others.crc and raw[BATCH_MAGIC.position :] == other_raw[BATCH_MAGIC.position :]:
            return True
        body = _body(header, raw)
        return body is not None and body == _body(others, other_raw)

    def _raw(self) -> bytes:
        cursor = self.cursor
        return bytes(cursor.run.buffer[cursor.start_of(cursor.row) : cursor.end_of(cursor.row)])


def _shape(header: BatchHeader) -> tuple[int | None, ...]:
    """Return the header fields that decide, besides its body, about the records of a v2 batch."""
    offsets = header.base_offset, header.last_offset, header.records_count
    return (*offsets, header.base_timestamp, header.max_timestamp, header.attributes & ~CODEC_MASK)


def _body(header: BatchHeader, raw: bytes) -> bytes | None:
    """Return the bytes of the records of a batch, or None if they aren't completely available."""
    body = memoryview(raw)[BATCH_HEADER_SIZE:]
    if header.codec == Codec.NONE:
        return bytes(body)
    found = decompress(header.codec, header.magic, body)
    return found.data if found.failure is None else None


MAP_SIZE = 64 << 20
"""Bytes of a copy's map of keys; only existing keys take memory."""


class Supersession(Enum):
    """The verdict whether compaction explains that a record is missing."""

    NONE = auto()
    SUPERSEDED = auto()
    UNKNOWN = auto()


class Superseded:
    """Judgements about records that a copy has and another lacks."""

    def __init__(self, partitions: Sequence[PartitionLog], map_size: int = MAP_SIZE) -> None:
        """Take the copies, and the bytes of a map of keys."""
        self._partitions = partitions
        self._map_size = map_size
        self._newest: dict[int, _NewestOffsets] = {}

    @cached_property
    def is_compacted(self) -> bool:
        """True if the cleaner cleaned any copy: then it may have cleaned all, each at another time.

        Raises OpenError if a log can't be opened.
        """
        return any(map(was_compacted, self._partitions))

    def judge(self, head: CopyHead) -> Supersession:
        """Return True if the cleaner may have removed the next record of a copy from another.

        It removes markers, tombstones after a while, records without a key, records of aborted transactions, and those
        whose key comes again.
        """
        if not self.is_compacted:
            return Supersession.NONE
        assert head.header is not None
        record = head.record
        if head.header.is_control or record.key is None or record.value is None:
            return Supersession.SUPERSEDED
        if head.number not in self._newest:
            self._newest[head.number] = _NewestOffsets(self._partitions[head.number], record.offset, self._map_size)
        return self._newest[head.number].judge(head.header, record.key, record.offset)


def was_compacted(partition: PartitionLog) -> bool:
    """Return True if the cleaner cleaned a copy: by its topic, the cleaner's checkpoint, or its batches' headers.

    Reads headers up to the first that shows it. Raises OpenError if a log can't be opened.
    """
    return partition.was_compacted() or next(_cleaned_batches(partition), None) is not None


def _cleaned_batches(partition: PartitionLog) -> Iterator[BatchHeader]:
    """Yield batches with signs of the cleaner: fewer records than offsets, or a delete horizon."""
    within = FoldWithin(Event.SPARSE | Event.DELETE_HORIZON, range(MOST + 1))
    for segment in partition.segments:
        with segment.open_log(keep_cache=False) as log_file:
            for item in header_runs(log_file):
                if not isinstance(item, Damage):
                    yield from within.events(item)


class _NewestOffsets:
    """The last offset of each key of a copy, from an offset on; as many keys as there is room for."""

    def __init__(self, partition: PartitionLog, offset: int, map_size: int) -> None:
        self._map = OffsetMap(map_size)
        self._is_whole = True
        self._committed_reads = read_committed(partition.segments, partition, offset)
        first = partition.floor_slot(offset) or 0
        for segment in partition.segments[first:]:
            with segment.open_log(keep_cache=False) as log_file:
                for piece in with_bodies(log_file.runs(), log_file.stored_size):
                    if isinstance(piece, Slice) and piece.run.rows[VALID] and not self._add(piece, offset):
                        self._is_whole = False
                        return

    def judge(self, header: BatchHeader, key: bytes, offset: int) -> Supersession:
        """Return True if a record was aborted, or its key comes again."""
        if self._is_aborted(header) or self._map.table.get(key) > offset:
            return Supersession.SUPERSEDED
        return Supersession.NONE if self._is_whole else Supersession.UNKNOWN

    def _is_aborted(self, header: BatchHeader) -> bool:
        return header.is_transactional and self._committed_reads.is_aborted(header.producer_id, header.first_offset)

    def _add(self, piece: Slice, offset: int) -> bool:
        """Add the keys of a slice; False without room."""
        run, table = piece.run, self._map.table
        for first, last, header in stretches(piece):
            if header is not None and (header.is_control or self._is_aborted(header)):
                continue
            row = first
            while row < last:
                row = table.add(run.buffer, run.rows, row, last, piece.bodies, piece.first, offset)
                if row < last and table.is_full:
                    return False
                row += 1  # a batch with unreadable records
        return True
