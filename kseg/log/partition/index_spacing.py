"""The `index.interval.bytes` that a partition's indexes were written with, as far as their entries tell."""

from collections.abc import Iterator
from itertools import islice, pairwise, takewhile

from kseg.errors import OpenError
from kseg.index.headers import walk_headers
from kseg.index.offset_index import OffsetIndex
from kseg.index.rebuild import INDEX_INTERVAL_BYTES
from kseg.log.partition.partition_log import PartitionLog, SegmentFiles
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile

_SAMPLED_GAPS = 64
"""Of each segment: its batches are walked between so many entries."""


def interval_by_spacing(partition: PartitionLog) -> int | None:
    """The largest interval that the entries agree with; None if Kafka's default does as well, or nothing can be told.

    Between two entries lie more bytes than the interval, and the last batch between them begins within it. Entries
    of appends of many batches, as up to 3.9, tell no more than that it is less than their distance.
    """
    distances = [end - start for segment in partition.segments for start, end in _gaps(segment)]
    if not distances:
        return None
    largest = min(distances) - 1
    if largest < INDEX_INTERVAL_BYTES:
        return max(largest, 0)
    if _agrees(partition, INDEX_INTERVAL_BYTES) or not _agrees(partition, largest):
        return None
    return largest


def _gaps(segment: SegmentFiles) -> Iterator[tuple[int, int]]:
    """Positions of entries that follow one another, from the log's beginning on; none where they don't rise."""
    if segment.offset_index is None:
        return
    try:
        with OffsetIndex(segment.offset_index.path, segment.base_offset) as index:
            positions = [0, *(entry.position for entry in index.entries())]
    except OpenError:
        return
    if all(start < end <= segment.size for start, end in pairwise(positions)):
        yield from pairwise(positions)


def _agrees(partition: PartitionLog, interval: int) -> bool:
    """Whether no batch between entries, of those that are looked at, would have got one."""
    for segment in partition.segments:
        gaps = list(islice(_gaps(segment), _SAMPLED_GAPS))
        if not gaps:
            continue
        with segment.open_log() as log_file:
            if any(start - gap[0] > interval for gap in gaps for start in _starts(log_file, gap)):
                return False
    return True


def _starts(log_file: LogFile, gap: tuple[int, int]) -> Iterator[int]:
    """Where batches begin between two entries."""
    items = takewhile(lambda item: not isinstance(item, Damage), walk_headers(log_file, gap[0]))
    return takewhile(lambda position: position < gap[1], (item.position for item in items))
