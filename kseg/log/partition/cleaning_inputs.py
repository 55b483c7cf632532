"""What the log cleaner's rules need to know of a partition, from its listing and its small files."""

from collections.abc import Sequence

from kseg.formats.codes import NO_TIMESTAMP
from kseg.log.partition.cleaning import DirtySegment, LogOffsets, OldestTransaction
from kseg.log.partition.partition_log import CHECKPOINT_OF_FIELD, PartitionLog
from kseg.log.partition.segment_listing import SegmentListing
from kseg.reading.header import BatchHeader


def dirty_segment(row: SegmentListing, first: BatchHeader | None) -> DirtySegment:
    """A segment of a listing, with its first batch's header."""
    return DirtySegment(
        row.base_offset,
        row.size,
        row.age_timestamp,
        NO_TIMESTAMP if first is None else first.max_timestamp,
        None if row.damage is None else row.damage.position,
        row.records,
    )


def cleaning_offsets(partition: PartitionLog, rows: Sequence[SegmentListing], end: int) -> LogOffsets:
    """The offsets that bound cleaning; `end`: where the log ends."""
    known = partition.checkpoints()
    open_transaction = _open_transaction(partition, rows, end)
    return LogOffsets(partition.log_start_offset(), end, known.clean_offset, known.high_watermark, open_transaction)


def _open_transaction(partition: PartitionLog, rows: Sequence[SegmentListing], end: int) -> OldestTransaction | None:
    """The oldest open transaction, as all headers tell or, if they weren't read, the newest producer snapshot.

    If a snapshot tells of none, there is none before the active segment, where the cleaner stops anyhow. Of one in it
    nothing tells whether it has ended since, unless the log ends there.
    """
    if len(rows) < 2 or all(max(row.magics, default=0) < 2 for row in rows):
        return None
    if rows[-1].open_transactions is not None:
        first = rows[-1].first_open_offset
        return None if first is None else OldestTransaction(first)
    newest = max((offset for offset in partition.snapshots if offset <= end), default=-1)
    states = partition.read_producer_states(newest) if newest >= rows[-1].base_offset else None
    if states is None:
        return OldestTransaction(partition.log_start_offset(), is_certain=False)
    first = min(states.open_transactions.values(), default=None)
    return None if first is None else OldestTransaction(first, is_certain=newest == end)


def cleaned_by_ms(partition: PartitionLog) -> int | None:
    """When the cleaner's checkpoint was written; None if the partition isn't in it."""
    if partition.checkpoints().clean_offset is None:
        return None
    try:
        return (partition.log_dir / CHECKPOINT_OF_FIELD["clean_offset"]).stat().st_mtime_ns // 1_000_000
    except OSError:  # it has gone meanwhile
        return None
