"""What the log cleaner takes: records that are missing in a compacted copy, and had to be."""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import cached_property

from kseg.index.folding import FoldWithin
from kseg.index.headers import header_runs
from kseg.kernel.contract import MOST, VALID
from kseg.kernel.fold_contract import Event
from kseg.log.compact.offset_map import OffsetMap
from kseg.log.compact.slices import stretches
from kseg.log.diff.copy_head import CopyHead
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.select.isolation import read_committed
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader

MAP_SIZE = 64 << 20
"""Bytes of a copy's map of keys; memory is taken for those that are there."""


class Supersession(Enum):
    """Whether compaction explains that a record is missing."""

    NONE = auto()
    SUPERSEDED = auto()
    UNKNOWN = auto()


class Superseded:
    """Judges records that a copy has and another lacks."""

    def __init__(self, partitions: Sequence[PartitionLog], map_size: int = MAP_SIZE) -> None:
        """Takes the copies, and the bytes of a map of keys."""
        self._partitions = partitions
        self._map_size = map_size
        self._newest: dict[int, _NewestOffsets] = {}

    @cached_property
    def is_compacted(self) -> bool:
        """Whether the cleaner was at work in any copy: then it may have been in all, each at another time.

        Raises OpenError if a log can't be opened.
        """
        return any(map(was_compacted, self._partitions))

    def judge(self, head: CopyHead) -> Supersession:
        """Whether the cleaner may have taken the next record of a copy out of another.

        It takes markers, tombstones after a while, records without a key, those of aborted transactions, and those
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
    """Whether the cleaner was at work in a copy: by its topic, the cleaner's checkpoint, or its batches' headers.

    Reads headers up to the first that shows it. Raises OpenError if a log can't be opened.
    """
    return partition.was_compacted() or next(_cleaned_batches(partition), None) is not None


def _cleaned_batches(partition: PartitionLog) -> Iterator[BatchHeader]:
    """Batches that only the cleaner leaves so: with fewer records than offsets, or a delete horizon."""
    within = FoldWithin(Event.SPARSE | Event.DELETE_HORIZON, range(MOST + 1))
    for segment in partition.segments:
        with segment.open_log(keep_cache=False) as log_file:
            for item in header_runs(log_file):
                if not isinstance(item, Damage):
                    yield from within.events(item)


class _NewestOffsets:
    """The last offset of each key of a copy, of records from an offset on; as many keys as there is room for."""

    def __init__(self, partition: PartitionLog, offset: int, map_size: int) -> None:
        self._map = OffsetMap(map_size)
        self._is_whole = True
        self._committed = read_committed(partition.segments, partition, offset)
        first = partition.floor_slot(offset) or 0
        for segment in partition.segments[first:]:
            with segment.open_log(keep_cache=False) as log_file:
                for piece in with_bodies(log_file.runs(), log_file.stored_size):
                    if isinstance(piece, Slice) and piece.run.rows[VALID] and not self._add(piece, offset):
                        self._is_whole = False
                        return

    def judge(self, header: BatchHeader, key: bytes, offset: int) -> Supersession:
        """Whether a record was aborted, or its key comes again."""
        if self._is_aborted(header) or self._map.table.get(key) > offset:
            return Supersession.SUPERSEDED
        return Supersession.NONE if self._is_whole else Supersession.UNKNOWN

    def _is_aborted(self, header: BatchHeader) -> bool:
        return header.is_transactional and self._committed.is_aborted(header.producer_id, header.first_offset)

    def _add(self, piece: Slice, offset: int) -> bool:
        """Adds the keys of a slice; False if there is no room."""
        run, table = piece.run, self._map.table
        for first, last, header in stretches(piece):
            if header is not None and (header.is_control or self._is_aborted(header)):
                continue
            row = first
            while row < last:
                row = table.add(run.buffer, run.rows, row, last, piece.bodies, piece.first, offset)
                if row < last and table.is_full:
                    return False
                row += 1  # one whose records can't all be read
        return True
