"""A comparison of copies of partitions side by side: each with all others, and with Kafka's truncation."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg.diff.cursor import BatchCursor
from kseg.diff.differences import (
    BatchAt,
    ComparedCopy,
    Copies,
    DiffVerdict,
    Divergence,
    PartitionDiff,
    RecordsByEpoch,
    Truncation,
)
from kseg.diff.heads import (
    CopyHead,
    RecordContent,
    Superseded,
    Supersession,
)
from kseg.errors import OpenError, UnreadableError
from kseg.formats.file_names import parse_partition_directory
from kseg.index.header_scan import header_of
from kseg.kernel.contract import ROW, SIZE
from kseg.log.lineage import TruncationEnd, latest_epoch, read_lineage, truncation
from kseg.log.partition import PartitionEnd
from kseg.reading.batch import BatchHeader
from kseg.reading.log_file import Run
from kseg.system.shared_work import SMALLEST_COST, OnRead, shared_work


class HeldRecords(NamedTuple):
    """Records of a batch that not every copy has: those from one offset to another.

    log, run: the place of the batch, the only one of a run. copies: the copies that have them. is_lost: followers
    truncate them, and the leader lacks them; None without a leader.
    """

    log: Path
    run: Run
    first_offset: int
    last_offset: int
    copies: tuple[int, ...]
    is_lost: bool | None


class Holding(NamedTuple):
    """A number of records that are identical in some copies."""

    heads: tuple[CopyHead, ...]
    header: BatchHeader
    first_offset: int
    last_offset: int
    record_count: int


class Follower:
    """A copy under a leader: its truncation offset, and its losses.

    kept: its records before that offset that the leader lacks.
    """

    def __init__(self, to_offset: int | None) -> None:
        self.to_offset = to_offset
        self.lost, self.kept = RecordsByEpoch(), RecordsByEpoch()

    def cuts_off(self, header: BatchHeader) -> bool:
        """Return True if a batch is truncated: completely, if any of it is at or above the offset.

        Source: LogSegment.truncateTo.
        """
        return self.to_offset is not None and header.last_offset >= self.to_offset


class CopyTally:
    """The results of one copy."""

    def __init__(self) -> None:
        self.only_here = RecordsByEpoch()
        self.missing = self.superseded = self.unjudged = 0


class CopyComparison:
    """A comparison of copies from an offset on.

    tallies: of each copy. has_holes: one lacks records before its end. is_short: one ends before another's last
    record. divergence, first_difference, epochs_differ_from, lost_records: as in PartitionDiff.
    """

    def __init__(
        self,
        cursors: Sequence[BatchCursor],
        start: int,
        superseded: Superseded,
        *,
        leader: int | None = None,
        followers: dict[int, Follower] | None = None,
        gives_held: bool = False,
    ) -> None:
        """Take cursors at the first batches that don't end below `start`.

        Args:
            cursors: of the copies.
            start: records below aren't compared.
            superseded: knows the records that compaction removes.
            leader: the number of the leader's copy.
            followers: the others, by their number, if there is a leader.
            gives_held: `run` yields records.
        """
        self.tallies = [CopyTally() for _ in cursors]
        self.has_holes = self.is_short = False
        self.divergence: Divergence | None = None
        self.first_difference: int | None = None
        self.epochs_differ_from: int | None = None
        self.lost_records = 0
        self._cursors = cursors
        self._start = start
        self._supersession = superseded
        self._leader = leader
        self._followers = followers or {}
        self._gives_held = gives_held
        self._held: dict[tuple[tuple[int, ...], bool | None], HeldRecords] = {}
        self._ready_records: list[HeldRecords] = []
        self._heads: list[CopyHead] = []
        self._batch_count = 1

    def run(self) -> Iterator[HeldRecords]:
        """Compare all; yield the records that not every copy has, batch by batch.

        A record that several copies have comes once.
        """
        self._heads = [CopyHead(number, cursor, self._start) for number, cursor in enumerate(self._cursors)]
        while any(head.header is not None for head in self._heads):
            if not self._pass_same_bytes():
                yield from self._compare_records()

    # --- batches that are the same ------------------------------------------------------------------------------------

    def _pass_same_bytes(self) -> bool:
        """Pass batches that are the same in all copies, byte for byte. Returns False if there is none."""
        last: BatchHeader | None = None
        if len(self._cursors) == 1:
            return False
        while not any(cursor.is_at_end for cursor in self._cursors):
            count = min(self._batch_count, *(cursor.rows_left for cursor in self._cursors))
            if not self._are_same(count):
                if count == 1:
                    break
                self._batch_count = 1
                continue
            self._batch_count *= 2
            cursor = self._cursors[0]
            last = header_of(cursor.run, cursor.row + count - 1)
            for each in self._cursors:
                each.advance(count)
        self._batch_count = 1
        if last is None:
            return False
        for head in self._heads:
            head.begin_after(last.last_offset)
        return True

    def _are_same(self, count: int) -> bool:
        """Return True if the next batches are the same bytes."""
        views = [
            cursor.run.buffer[cursor.start_of(cursor.row) : cursor.end_of(cursor.row + count - 1)]
            for cursor in self._cursors
        ]
        if any(len(view) != len(views[0]) for view in views):
            return False
        first = bytes(views[0])
        return all(first.startswith(view) for view in views[1:])

    # --- records ------------------------------------------------------------------------------------------------------

    def _compare_records(self) -> Iterator[HeldRecords]:
        """Compare records until all copies are between batches again."""
        while heads := [head for head in self._heads if head.header is not None]:
            self._compare_lowest(heads)
            yield from self._ready_records
            self._ready_records.clear()
            if all(head.is_between_batches for head in self._heads):
                break
        yield from self._held.values()
        self._held.clear()

    def _compare_lowest(self, heads: list[CopyHead]) -> None:
        lowest = min(head.offset for head in heads)
        at = [head for head in heads if head.offset == lowest]
        others = [head.offset for head in heads if head.offset > lowest]
        if self._take_batch(at, min(others, default=None)) or self._pass_same_loaded(at):
            return
        unread = [head for head in at if not head.is_loaded]
        for head in unread:
            head.load()
        if unread:
            return  # the offsets may be others now
        self._take_record(lowest, at)
        for head in at:
            head.pass_records(1)

    def _take_batch(self, at: list[CopyHead], bound: int | None) -> bool:
        """Pass a batch that the given copies have the same, and the others lack completely.

        Returns False if it has to be read.
        """
        first, *others = at
        if any(head.is_loaded for head in at) or not all(map(first.has_same_records, others)):
            return False
        header = first.header
        assert header is not None
        if 1 < len(at) == len(self._heads):
            self._note_epochs(first.offset, at)
        elif bound is not None and self._supersession.is_compacted:
            return False
        elif first.is_whole_below(bound) and header.records_count is not None:
            self._note_epochs(first.offset, at)
            self._lack(Holding(tuple(at), header, header.first_offset, header.last_offset, header.records_count), at)
        else:
            return False
        for head in at:
            head.pass_batch()
        return True

    def _pass_same_loaded(self, at: list[CopyHead]) -> bool:
        """Pass loaded records that all copies have the same. Returns False if there is none."""
        first, *others = at
        if not others or len(at) < len(self._heads):
            return False
        count = min(map(first.same_count, others))
        if count:
            self._note_epochs(first.offset, at)
            for head in at:
                head.pass_records(count)
        return count > 0

    def _take_record(self, offset: int, at: list[CopyHead]) -> None:
        groups: list[tuple[RecordContent, list[CopyHead]]] = []
        for head in at:
            content = head.content()
            same = next((group for known, group in groups if known.is_as(content)), None)
            if same is None:
                groups.append((content, [head]))
            else:
                same.append(head)
        for _, group in groups:
            self._note_epochs(offset, group)
        if len(groups) > 1:
            self._note_divergence(offset, at)
        elif 1 < len(at) == len(self._heads):
            return
        for _, group in groups:
            header = group[0].header
            assert header is not None
            self._lack(Holding(tuple(group), header, offset, offset, 1), at)

    def _note_epochs(self, offset: int, heads: list[CopyHead]) -> None:
        """Note the same record of two leaders: their lineages have parted. Formats without epochs show nothing."""
        epochs = {head.header.partition_leader_epoch for head in heads if head.header is not None} - {-1}
        if len(epochs) > 1:
            self._note_divergence(offset, heads)
            self.epochs_differ_from = offset if self.epochs_differ_from is None else self.epochs_differ_from

    def _note_divergence(self, offset: int, at: list[CopyHead]) -> None:
        if self.divergence is not None:
            return
        batches = tuple(
            BatchAt(head.cursor.partition.path, head.cursor.path, head.header) for head in at if head.header is not None
        )
        self.divergence = Divergence(offset, max(batch.header.partition_leader_epoch for batch in batches), batches)

    # --- missing records ----------------------------------------------------------------------------------------------

    def _lack(self, holding: Holding, at: list[CopyHead]) -> None:
        """Note that the given copies lack records; those in `at` have others at that offset."""
        has = {head.number for head in holding.heads}
        in_conflict = {head.number for head in at} - has
        lacking = []
        for head in self._heads:
            if head.number in has:
                continue
            if head.number in in_conflict:
                lacking.append(head.number)
            elif head.header is None:
                self.is_short = True
                lacking.append(head.number)
            elif not self._is_explained(head.number, holding):
                self.has_holes = True
                lacking.append(head.number)
        if lacking or len(self._heads) == 1:
            self._count(holding, sorted(has), lacking)

    def _is_explained(self, number: int, holding: Holding) -> bool:
        """Return True if compaction explains that a copy lacks a record; count the record accordingly."""
        head, tally = holding.heads[0], self.tallies[number]
        match self._supersession.judge(head):
            case Supersession.NONE:
                return False
            case Supersession.UNKNOWN:
                tally.unjudged += 1
            case Supersession.SUPERSEDED:
                tally.superseded += 1
        return True

    def _count(self, holding: Holding, has: list[int], lacking: list[int]) -> None:
        header, first, last, count = holding.header, holding.first_offset, holding.last_offset, holding.record_count
        if lacking and self.first_difference is None:
            self.first_difference = first
        epoch, is_control = header.partition_leader_epoch, header.is_control
        for number in lacking:
            self.tallies[number].missing += 0 if is_control else count
        if len(has) == 1:
            self.tallies[has[0]].only_here.add(epoch, first, last, count, is_control=is_control)
        is_lost = self._leader in lacking and self._count_lost(holding)
        if self._gives_held:
            self._hold(holding, tuple(has), None if self._leader is None else is_lost)

    def _count_lost(self, holding: Holding) -> bool:
        """Count the records that followers truncate or keep, and the leader lacks; return whether they truncate any."""
        first, last, count = holding.first_offset, holding.last_offset, holding.record_count
        is_lost, is_control = False, holding.header.is_control
        for head in holding.heads:
            follower = self._followers[head.number]
            if head.header is None or follower.to_offset is None:
                continue
            cuts_off = follower.cuts_off(head.header)
            is_lost |= cuts_off
            counted = follower.lost if cuts_off else follower.kept
            counted.add(head.header.partition_leader_epoch, first, last, count, is_control=is_control)
        self.lost_records += count if is_lost and not is_control else 0
        return is_lost

    def _hold(self, holding: Holding, has: tuple[int, ...], is_lost: bool | None) -> None:
        """Yield records that not every copy has, those of a batch together: others may come between them."""
        cursor, first, last = holding.heads[0].cursor, holding.first_offset, holding.last_offset
        latest = self._held.get((has, is_lost))
        place = (cursor.path, holding.header.position, first - 1)
        if latest is not None and (latest.log, latest.run.position, latest.last_offset) == place:
            self._held[has, is_lost] = latest._replace(last_offset=last)
            return
        self._ready_records += () if latest is None else (latest,)
        self._held[has, is_lost] = HeldRecords(cursor.path, _copy_batch(cursor), first, last, has, is_lost)


def _copy_batch(cursor: BatchCursor) -> Run:
    """Return the next batch as a run of its own, which stays valid."""
    run, row = cursor.run, cursor.row
    raw = bytes(run.buffer[cursor.start_of(row) : cursor.end_of(row)])
    return Run(
        memoryview(raw),
        run.position + cursor.start_of(row),
        array("q", (0, run.rows[row * ROW + SIZE], 1)),
        1,
        run.codecs,
    )


def diff_partition(
    copies: Copies,
    *,
    keep_cache: bool = False,
    on_read: Callable[[int], None] | None = None,
    gives_records: bool = False,
) -> Iterator[HeldRecords | PartitionDiff]:
    """Compare the copies of a partition; the result comes last.

    Args:
        copies: the copies to compare.
        keep_cache: leave the read data in the page cache.
        on_read: takes the size of each log that was read.
        gives_records: first yield the records that not every copy has.

    Raises:
        OpenError: a directory's files were deleted.
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
        _compared_copy(copies, end, comparison, number, cursors[number]) for number, end in enumerate(ends)
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
    """Return how the other copies would be truncated by the leader, or an empty mapping without a leader."""
    if copies.leader is None:
        return {}
    lineages = [read_lineage(partition, end.offset) for partition, end in zip(copies.partitions, ends, strict=True)]
    leading = lineages[copies.leader]
    return {number: truncation(each, leading) for number, each in enumerate(lineages) if number != copies.leader}


def _compared_copy(
    copies: Copies, end: PartitionEnd, comparison: CopyComparison, number: int, cursor: BatchCursor
) -> ComparedCopy:
    partition, tier, tally = copies.partitions[number], copies.tiers[number], comparison.tallies[number]
    return ComparedCopy(
        path=partition.path,
        log_start_offset=partition.log_start_offset(tier),
        log_end_offset=end.offset,
        high_watermark=partition.checkpoints().high_watermark,
        last_epoch=latest_epoch(partition, end),
        tier=tier,
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
"""Returns the text of records that not every copy has; a function of a module, or partial."""


def diff_partitions(
    found: Sequence[Copies],
    *,
    keep_cache: bool = False,
    show: Show | None = None,
    processes: int | None = None,
    on_read: OnRead | None = None,
    is_far: bool = False,
) -> Iterator[PartitionDiff | UnreadableError | bytes]:
    """Yield the result for the copies of each partition, in order; an error for deleted ones.

    Args:
        found: the partitions.
        keep_cache: leave the read data in the page cache.
        show: its text of the records that not every copy has comes before their partition.
        processes: the number of worker processes; None: one per processor if there is enough to read.
        on_read: called with the bytes of logs read since the last call.
        is_far: copies are in stores.
    """
    work = partial(_diff, keep_cache, show)
    with shared_work(work, found, _cost_of, processes=processes, on_read=on_read, is_far=is_far) as results:
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
