"""The index interval of a log, by the distances between the entries of its indexes."""

from collections.abc import Iterator
from itertools import islice, pairwise

from kseg import kernel
from kseg.errors import OpenError
from kseg.formats.codes import INDEX_INTERVAL_BYTES
from kseg.index.entries import OffsetIndex
from kseg.index.header_scan import events, header_runs
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile

_SAMPLED_GAPS = 64
"""The number of gaps between entries, per segment, whose batches are read."""


def interval_by_spacing(partition: PartitionLog) -> int | None:
    """Return the largest interval that fits the entries, or None if Kafka's default fits too, or with too few entries.

    Two entries are further apart than the interval, and the last batch between them begins within it. Entries after
    appends of many batches, as up to 3.9, only show that the interval is less than their distance.
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
    """Yield positions of consecutive entries, from the log's beginning on; none where they don't increase."""
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
    """Return True if none of the examined batches between entries should have got an entry."""
    for segment in partition.segments:
        gaps = list(islice(_gaps(segment), _SAMPLED_GAPS))
        if not gaps:
            continue
        with segment.open_log() as log_file:
            if any(_has_late_batch(log_file, gap, interval) for gap in gaps):
                return False
    return True


def _has_late_batch(log_file: LogFile, gap: tuple[int, int], interval: int) -> bool:
    """Return True if a batch between two index entries starts more than one interval after the first."""
    fold = kernel.load().HeaderFold(0)
    fold.passes_legacy = True
    fold.position_bound = gap[0] + interval
    for item in header_runs(log_file, gap[0]):
        if isinstance(item, Damage) or fold.end >= gap[1]:
            return False
        for header, _ in events(fold, item):
            if header.position >= gap[1] or header.position > fold.position_bound:
                return header.position < gap[1]
    return False
