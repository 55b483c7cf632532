"""Rows of listings: segments, partitions, and sums by topic, by log directory, and of all; sorted and cut."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, NamedTuple, TypeAlias

from kseg.errors import UsageError, plural
from kseg.log.cleaner import Cleaning
from kseg.log.listing import PartitionListing
from kseg.log.partition import RemoteTier
from kseg.log.segment_listing import SegmentListing, SelectedRow, TierSums
from kseg.log.segments import RollReason

_MEBIBYTE = 1024 * 1024


class PartitionSummary(NamedTuple):
    """A partition's line: the rest of its listing without the segments and files.

    segments, unhealthy_segments: the number of segments, and of those with an index problem. size: bytes of its logs;
    allocated: disk space of all its files. last_offset: None if there is none. leftovers, orphans: names of files.
    selected, cached_size: None if they weren't requested.
    """

    topic: str
    partition: int | None
    directory: str
    log_dir: str
    state: str | None
    topic_id: str | None
    topic_id_source: str | None
    cluster_id: str | None
    segments: int
    unhealthy_segments: int
    size: int
    allocated: int
    records: int | None
    log_start_offset: int
    last_offset: int | None
    log_end_offset: int
    high_watermark: int | None
    recovery_point: int | None
    leader_epoch: int | None
    largest_timestamp: int
    segments_to_delete: int
    size_to_delete: int
    cleaning: Cleaning | None
    cleaned_by_ms: int | None
    tier: RemoteTier | None
    tier_sums: TierSums | None
    leftovers: tuple[str, ...]
    orphans: tuple[str, ...]
    problems: tuple[str, ...]
    selected: SelectedRow | None
    cached_size: int | None

    @property
    def name(self) -> tuple[str, int, str]:
        """The sort key of partitions."""
        return self.topic, self.partition or 0, self.directory

    @property
    def dirty_ratio(self) -> float | None:
        """The cleaner's dirty ratio, or None if the cleaner doesn't clean the topic, or if it isn't known."""
        return None if self.cleaning is None else self.cleaning.dirty_ratio

    @property
    def badness(self) -> int:
        """The number of segments with unhealthy indexes plus the number of unreadable files."""
        return self.unhealthy_segments + len(self.problems)


class SegmentRow(NamedTuple):
    """A segment's line with its partition's; `largest_size`: of the printed segments, for the bar."""

    partition: PartitionSummary
    segment: SegmentListing
    largest_size: int = 0

    @property
    def name(self) -> tuple[str, int, str, int]:
        """The sort key of segments."""
        return *self.partition.name, self.segment.base_offset

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return self.segment.size

    @property
    def last_offset(self) -> int | None:
        """The last offset of the last batch."""
        return self.segment.last_offset

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of its records."""
        return self.segment.largest_timestamp

    @property
    def size_to_delete(self) -> int:
        """The segment's bytes, if retention would delete it."""
        return self.segment.size if self.is_to_delete else 0

    @property
    def badness(self) -> int:
        """2 if the log is damaged, 1 if only an index is unhealthy, otherwise 0."""
        return 2 if self.segment.damage is not None else int(self.segment.is_unhealthy)

    @property
    def is_to_delete(self) -> bool:
        """True if retention would delete the segment."""
        return self.segment.retention is not None and self.segment.retention.is_deletion

    @property
    def is_active(self) -> bool:
        """True if records are appended to the segment."""
        return self.segment.rolled is RollReason.ACTIVE


@dataclass(slots=True)
class ListingSum:
    """Sums over partitions' directories: of a topic, of a log directory, or of all.

    partitions: the number of directories. copies: directories of a cluster's partition that was already counted.
    not_in_use: directories that are being deleted or moved here, or strays. incomplete: directories with something
    unreadable that isn't counted. cleanable_partitions: those the log cleaner would take; cleanable_size: the bytes
    to clean in them.
    """

    name: str
    topics: set[str]
    partitions: int = 0
    copies: int = 0
    not_in_use: int = 0
    incomplete: int = 0
    segments: int = 0
    size: int = 0
    allocated: int = 0
    records: int | None = 0
    largest_timestamp: int = -1
    segments_to_delete: int = 0
    size_to_delete: int = 0
    cleanable_partitions: int = 0
    cleanable_size: int = 0
    selected: SelectedRow | None = None
    cached_size: int | None = None
    _seen_partitions: set[tuple[str | None, str, int | None]] = field(default_factory=set)

    def add(self, row: PartitionSummary) -> None:
        """Add a partition directory."""
        self.topics.add(row.topic)
        self.partitions += 1
        if row.state is not None:
            self.not_in_use += 1
        else:
            place = row.cluster_id, row.topic, row.partition
            self.copies += place in self._seen_partitions
            self._seen_partitions.add(place)
        self.incomplete += bool(row.problems)
        self.segments += row.segments
        self.size += row.size
        self.allocated += row.allocated
        self.records = None if self.records is None or row.records is None else self.records + row.records
        self.largest_timestamp = max(self.largest_timestamp, row.largest_timestamp)
        self.segments_to_delete += row.segments_to_delete
        self.size_to_delete += row.size_to_delete
        if row.cleaning is not None and row.cleaning.is_cleanable:
            self.cleanable_partitions += 1
            self.cleanable_size += row.cleaning.cleanable_size
        if row.selected is not None:
            self.selected = _sum_of_selected([each for each in (self.selected, row.selected) if each is not None])
        if row.cached_size is not None:
            self.cached_size = (self.cached_size or 0) + row.cached_size


def differs_on_disk(row: PartitionSummary | ListingSum) -> bool:
    """Return True if allocated space and log bytes differ by more than rounding to blocks explains.

    Preallocated files and indexes increase it; holes and compressing file systems decrease it.
    """
    return abs(row.allocated - row.size) > max(_MEBIBYTE, row.size // 10)


def counted_directories(partitions: int, copies: int, not_in_use: int = 0) -> str:
    """Return the number of partition directories, and how many of them are copies or not in use."""
    parts = [f"{copies} further {'copy' if copies == 1 else 'copies'}"] if copies else []
    parts += [f"{not_in_use} not in use"] if not_in_use else []
    return plural(partitions, "partition") + (f" ({', '.join(parts)})" if parts else "")


Row: TypeAlias = PartitionSummary | SegmentRow | ListingSum

KINDS: dict[str, type[Row]] = {
    "topic": ListingSum,
    "partition": PartitionSummary,
    "segment": SegmentRow,
    "directory": ListingSum,
}
"""Kinds of rows, and the class of each."""
SORT_KEYS = {
    "name": "name",
    "size": "size",
    "disk": "allocated",
    "segments": "segments",
    "time": "largest_timestamp",
    "offset": "last_offset",
    "dirty": "dirty_ratio",
    "deletable": "size_to_delete",
    "health": "badness",
}
"""Orders of rows, and the attribute for each; all except the one by name put the largest first."""


def summary_of(listing: PartitionListing) -> PartitionSummary:
    """Return the line of a listed partition."""
    partition = listing.partition
    checkpoints, going = partition.checkpoints(), listing.segments_to_delete
    selected = [each.selected for each in listing.segments if each.selected is not None]
    cached = [each.cached_size for each in listing.segments if each.cached_size is not None]
    return PartitionSummary(
        topic=listing.topic,
        partition=partition.partition,
        directory=str(partition.path),
        log_dir=str(partition.path.parent),
        state=None if partition.state is None else str(partition.state),
        topic_id=listing.topic_id,
        topic_id_source=listing.topic_id_source,
        cluster_id=listing.cluster_id,
        segments=len(listing.segments),
        unhealthy_segments=sum(each.is_unhealthy for each in listing.segments),
        size=listing.size,
        allocated=partition.allocated,
        records=listing.records,
        log_start_offset=listing.log_start_offset,
        last_offset=listing.last_offset,
        log_end_offset=listing.log_end_offset,
        high_watermark=checkpoints.high_watermark,
        recovery_point=checkpoints.recovery_point,
        leader_epoch=listing.leader_epoch,
        largest_timestamp=listing.largest_timestamp,
        segments_to_delete=len(going),
        size_to_delete=sum(each.size for each in going),
        cleaning=listing.cleaning,
        cleaned_by_ms=listing.cleaned_by_ms,
        tier=listing.tier,
        tier_sums=listing.tier_sums,
        leftovers=tuple(file.name for file in partition.leftovers),
        orphans=tuple(file.name for segment in partition.orphans for file in segment.files),
        problems=listing.problems,
        selected=_sum_of_selected(selected) if selected else None,
        cached_size=sum(cached) if cached else None,
    )


def _segment_rows(partition: PartitionSummary, listing: PartitionListing) -> list[SegmentRow]:
    largest = max((segment.size for segment in listing.segments), default=0)
    segments = sorted((*listing.segments, *listing.unused), key=lambda segment: segment.base_offset)
    return [SegmentRow(partition, segment, largest) for segment in segments]


def _sum_of_selected(parts: Sequence[SelectedRow]) -> SelectedRow:
    times = [each.first_timestamp for each in parts if each.first_timestamp >= 0]
    return SelectedRow(
        records=sum(each.records for each in parts),
        batches=sum(each.batches for each in parts),
        size=sum(each.size for each in parts),
        first_offset=min((each.first_offset for each in parts if each.first_offset is not None), default=None),
        last_offset=max((each.last_offset for each in parts if each.last_offset is not None), default=None),
        first_timestamp=min(times, default=-1),
        largest_timestamp=max(each.largest_timestamp for each in parts),
    )


@dataclass(slots=True)
class Cut:
    """The number of omitted rows, and their bytes."""

    rows: int = 0
    size: int = 0


class Rows:
    """The rows of some listings, of one kind, sorted and cut.

    total: sums over all partitions taken so far. cut: the omitted rows, known after the last row.
    """

    def __init__(self, by: str, sort: str | None = None, top: int | None = None) -> None:
        """Take a kind of KINDS, and an order of SORT_KEYS; without one, rows keep their order and are cut by size.

        Raises UsageError if rows of this kind have nothing for the order.
        """
        self.total = ListingSum("all", set())
        self.cut = Cut()
        self._by = by
        self._sort = "size" if sort is None and top is not None else sort
        self._top = top
        if self._sort is not None and not hasattr(KINDS[by], SORT_KEYS[self._sort]):
            orders = ", ".join(name for name, attribute in SORT_KEYS.items() if hasattr(KINDS[by], attribute))
            raise UsageError(f"--sort {sort} can't be used with --by {by}; sort by {orders}")

    @property
    def are_in_listed_order(self) -> bool:
        """True if rows keep the order of the listings."""
        return self._sort is None

    def of(self, listings: Iterable[PartitionListing]) -> Iterator[Row]:
        """Yield the rows, each when it is taken, unless they must be sorted or summed up."""
        rows = self._made(listings)
        if self._sort is None:
            yield from rows
        elif self._top is None:
            yield from sorted(rows, key=self._rank)
        else:
            shown = nsmallest(self._top, self._count_cut(rows), key=self._rank)
            self.cut.rows -= len(shown)
            self.cut.size -= sum(row.size for row in shown)
            yield from shown

    def _made(self, listings: Iterable[PartitionListing]) -> Iterator[Row]:
        sums: dict[str, ListingSum] = {}
        for listing in listings:
            row = summary_of(listing)
            self.total.add(row)
            if self._by == "segment":
                yield from _segment_rows(row, listing)
            elif self._by == "partition":
                yield row
            else:
                name = row.topic if self._by == "topic" else row.log_dir
                sums.setdefault(name, ListingSum(name, set())).add(row)
        yield from (sums[name] for name in sorted(sums))

    def _count_cut(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.cut.rows += 1
            self.cut.size += row.size
            yield row

    def _rank(self, row: Row) -> Any:
        assert self._sort is not None
        value = getattr(row, SORT_KEYS[self._sort])
        if self._sort == "name":
            return value
        return 1.0 if value is None else -value
