"""What the log cleaner takes: records that are missing in a compacted copy, and had to be."""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import cached_property

from kseg.index.folding import FoldWithin
from kseg.index.headers import header_runs
from kseg.kernel.contract import MOST
from kseg.kernel.fold_contract import Event
from kseg.log.compact.offset_map import OffsetMap
from kseg.log.diff.copy_head import CopyHead
from kseg.log.partition.partition_log import PartitionLog
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader

MAP_SIZE = 64 << 20
"""Bytes of a map of keys; memory is taken for those that are there."""


class Supersession(Enum):
    """Whether compaction explains that a record is missing."""

    NONE = auto()
    SUPERSEDED = auto()
    UNKNOWN = auto()


class Superseded:
    """Judges records that a copy has and another lacks."""

    def __init__(self, partitions: Sequence[PartitionLog]) -> None:
        self._partitions = partitions
        self._newest: dict[int, _NewestOffsets] = {}

    @cached_property
    def compacted(self) -> frozenset[int]:
        """The numbers of the copies that were compacted. Raises OpenError if a log can't be opened."""
        return frozenset(number for number, each in enumerate(self._partitions) if was_compacted(each))

    def judge(self, number: int, head: CopyHead) -> Supersession:
        """Whether the cleaner may have taken the next record of a copy out of another, the one with that number.

        It takes markers, tombstones after a while, records without a key, and those whose key comes again.
        """
        if number not in self.compacted:
            return Supersession.NONE
        assert head.header is not None
        record = head.record
        if head.header.is_control or record.key is None or record.value is None:
            return Supersession.SUPERSEDED
        if head.number not in self._newest:
            self._newest[head.number] = _NewestOffsets(self._partitions[head.number], record.offset)
        return self._newest[head.number].judge(record.key, record.offset)


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

    def __init__(self, partition: PartitionLog, offset: int) -> None:
        self._map = OffsetMap(MAP_SIZE)
        self._is_whole = True
        first = partition.floor_slot(offset) or 0
        for segment in partition.segments[first:]:
            with segment.open_log(keep_cache=False) as log_file:
                for piece in with_bodies(log_file.runs(), log_file.stored_size):
                    if isinstance(piece, Slice) and not self._add(piece, offset):
                        self._is_whole = False
                        return

    def judge(self, key: bytes, offset: int) -> Supersession:
        """Whether a record's key comes again."""
        if self._map.table.get(key) > offset:
            return Supersession.SUPERSEDED
        return Supersession.NONE if self._is_whole else Supersession.UNKNOWN

    def _add(self, piece: Slice, offset: int) -> bool:
        """Adds the keys of a slice; False if there is no room."""
        run, row, table = piece.run, piece.first, self._map.table
        while row < piece.last:
            row = table.add(run.buffer, run.rows, row, piece.last, piece.bodies, piece.first, offset)
            if row < piece.last and table.is_full:
                return False
            row += 1  # one whose records can't all be read
        return True
