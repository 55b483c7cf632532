"""`diff`: copies of partitions compared, each with all others, and with what Kafka would make of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial

from kseg.errors import OpenError, UnreadableError
from kseg.formats.names import parse_partition_directory
from kseg.log.diff.batch_cursor import BatchCursor
from kseg.log.diff.comparison import CopyComparison, Follower, HeldRecords
from kseg.log.diff.differences import ComparedCopy, DiffVerdict, PartitionDiff, Truncation
from kseg.log.diff.sides import Copies
from kseg.log.diff.superseded import Superseded
from kseg.log.diff.truncation import TruncationEnd, latest_epoch, read_lineage, truncation
from kseg.log.partition.partition_log import PartitionEnd, PartitionLog
from kseg.system.shared_work import SMALLEST_COST, OnRead, shared_work


def diff_partition(
    copies: Copies,
    *,
    keep_cache: bool = False,
    on_read: Callable[[int], None] | None = None,
    gives_records: bool = False,
) -> Iterator[HeldRecords | PartitionDiff]:
    """Compares the copies of a partition: what they are to each other comes last.

    Args:
        copies: which ones.
        keep_cache: leave what was read in the page cache.
        on_read: takes the size of each log that was read.
        gives_records: whether the records that not every copy has come before it.

    Raises:
        OpenError: a directory's files have gone.
    """
    partitions = copies.partitions
    if not partitions:
        yield _missing(copies)
        return
    ends = [partition.read_end() for partition in partitions]
    start = max(partition.log_start_offset() for partition in partitions)
    truncated = _truncations(copies, ends)
    followers = {number: Follower(end.to_offset) for number, end in truncated.items()}
    with ExitStack() as stack:
        cursors = [
            stack.enter_context(closing(BatchCursor(each, start, keep_cache=keep_cache, on_read=on_read)))
            for each in partitions
        ]
        superseded = Superseded(partitions)
        comparison = CopyComparison(
            cursors, start, superseded, leader=copies.leader, followers=followers, gives_held=gives_records
        )
        yield from comparison.run()
    compared = tuple(
        _compared(partition, end, comparison, number, cursors[number])
        for number, (partition, end) in enumerate(zip(partitions, ends, strict=True))
    )
    named = next((each for each in partitions if each.topic is not None), partitions[0])
    yield PartitionDiff(
        name=copies.name,
        topic=named.topic,
        partition=named.partition,
        topic_id=copies.topic_id,
        verdict=_verdict(copies, comparison, compared, start),
        copies=compared,
        absent_from=copies.absent_from,
        compared_from=start,
        first_difference=comparison.first_difference,
        divergence=comparison.divergence,
        epochs_differ_from=comparison.epochs_differ_from,
        truncations=tuple(
            Truncation(
                partitions[number].path,
                truncated[number].to_offset,
                truncated[number].rule,
                follower.lost.by_epoch(),
                follower.kept.by_epoch(),
            )
            for number, follower in followers.items()
        ),
        lost_records=comparison.lost_records,
        leader=None if copies.leader is None else partitions[copies.leader].path,
        lacks_leader=copies.lacks_leader,
    )


def _missing(copies: Copies) -> PartitionDiff:
    name = parse_partition_directory(copies.name)
    return PartitionDiff(
        name=copies.name,
        topic=None if name is None else name.topic,
        partition=None if name is None else name.partition,
        topic_id=copies.topic_id,
        verdict=DiffVerdict.MISSING,
        copies=(),
        absent_from=copies.absent_from,
        compared_from=0,
        first_difference=None,
        divergence=None,
        epochs_differ_from=None,
    )


def _truncations(copies: Copies, ends: Sequence[PartitionEnd]) -> dict[int, TruncationEnd]:
    """Where the others truncate under the leader, by their numbers; nothing without one."""
    if copies.leader is None:
        return {}
    lineages = [read_lineage(partition, end.offset) for partition, end in zip(copies.partitions, ends, strict=True)]
    leading = lineages[copies.leader]
    return {number: truncation(each, leading) for number, each in enumerate(lineages) if number != copies.leader}


def _compared(
    partition: PartitionLog, end: PartitionEnd, comparison: CopyComparison, number: int, cursor: BatchCursor
) -> ComparedCopy:
    tally = comparison.tallies[number]
    return ComparedCopy(
        path=partition.path,
        log_start_offset=partition.log_start_offset(),
        log_end_offset=end.offset,
        high_watermark=partition.checkpoints().high_watermark,
        last_epoch=latest_epoch(partition, end),
        only_here=tally.only_here.by_epoch(),
        missing=tally.missing,
        superseded=tally.superseded,
        unjudged=tally.unjudged,
        damages=tuple(cursor.damages),
        damage_count=cursor.damage_count,
    )


def _verdict(copies: Copies, comparison: CopyComparison, compared: Sequence[ComparedCopy], start: int) -> DiffVerdict:
    if comparison.divergence is not None:
        return DiffVerdict.DIVERGED
    if comparison.has_holes or any(copy.damage_count for copy in compared):
        return DiffVerdict.HOLES
    if comparison.is_short or any(copy.log_end_offset < start for copy in compared):
        return DiffVerdict.AHEAD
    return DiffVerdict.ONLY_HERE if copies.absent_from else DiffVerdict.IDENTICAL


Show = Callable[[Copies, HeldRecords], bytes]
"""Gives the text of records that not every copy has; a function of a module, or partial."""


def diff_partitions(
    found: Sequence[Copies],
    *,
    keep_cache: bool = False,
    show: Show | None = None,
    processes: int | None = None,
    on_read: OnRead | None = None,
) -> Iterator[PartitionDiff | UnreadableError | bytes]:
    """What the copies of each partition are to each other, in order; an error instead of those that have gone.

    Args:
        found: the partitions.
        keep_cache: leave what was read in the page cache.
        show: what it makes of the records that not every copy has comes before their partition.
        processes: how many work at once; None takes as many as there are processors where there is enough to read.
        on_read: called with how many bytes of logs were read since the last call.
    """
    work = partial(_diff, keep_cache, show)
    with shared_work(work, found, _cost_of, processes=processes, on_read=on_read) as results:
        for _, result in results:
            yield result


def _cost_of(copies: Copies) -> int:
    return copies.size + SMALLEST_COST


def _diff(
    keep_cache: bool, show: Show | None, copies: Copies, on_read: OnRead
) -> Iterator[PartitionDiff | UnreadableError | bytes]:
    try:
        for item in diff_partition(copies, keep_cache=keep_cache, on_read=on_read, gives_records=show is not None):
            if isinstance(item, PartitionDiff):
                yield item
            elif show is not None:
                yield show(copies, item)
    except OpenError as error:
        yield UnreadableError(error.message, error.path, error.position)
