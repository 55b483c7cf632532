"""A plan to free disk space: the lower retention of topics with which a broker deletes enough segments."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.formats.codes import UNLIMITED
from kseg.log.listing import ListingSettings, list_partition
from kseg.log.partition import PartitionLog
from kseg.log.segment_listing import retained_segments
from kseg.log.segments import RetainedSegment, RetentionSettings, retention_of

_ROUND_MS = (86_400_000, 3_600_000, 60_000, 1000, 1)
"""Ages are rounded to complete days, hours, minutes or seconds, if that deletes nothing more."""


class FreeablePartition(NamedTuple):
    """A partition with the segments that retention deletes now, and could delete.

    size_now, segments_now: deleted with the present settings. setting: the topic's setting that may be lowered, None
    if it must stay. own_value: the topic's own value of it, None without one; is_known: the topic's settings are
    known.
    """

    topic: str
    directory: str
    base_offsets: tuple[int, ...]
    segments: tuple[RetainedSegment, ...]
    settings: RetentionSettings
    log_start_offset: int
    high_watermark: int | None
    size_now: int
    segments_now: int
    setting: str | None = None
    own_value: str | None = None
    is_known: bool = False
    problems: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return sum(each.size for each in self.segments)

    def going(self, retention_ms: int) -> list[RetainedSegment]:
        """Return the segments deleted with this retention by time or, if shorter, the present one."""
        present = self.settings.retention_ms
        lowered = retention_ms if present == UNLIMITED else min(present, retention_ms)
        return self._find_deleted(replace(self.settings, retention_ms=lowered))

    def _find_deleted(self, settings: RetentionSettings) -> list[RetainedSegment]:
        decisions = retention_of(self.segments, settings, self.log_start_offset, self.high_watermark)
        return [each for each, decision in zip(self.segments, decisions, strict=True) if decision.is_deletion]

    def ages(self) -> Iterator[int]:
        """Yield each closed segment's age from which it is deleted.

        That is its own age or, if smaller, the age of a segment before it.
        """
        age = self.settings.now_ms
        for each in self.segments[:-1]:
            age = min(age, self.settings.now_ms - each.largest_timestamp)
            yield age


class ShareOf(StrEnum):
    """The total of a share: the size of the file systems, as in `df`, or the bytes of the logs."""

    DISK = "disk"
    LOGS = "logs"


class Share(NamedTuple):
    """A share in percent; `of` is None for the disk that a broker uses, if that is known, otherwise the logs."""

    percent: int
    of: ShareOf | None


class SpaceTarget(NamedTuple):
    """The bytes to free, and their share of a total, or None if a size was given.

    whole: the bytes of that total.
    """

    size: int
    percent: int | None = None
    of: ShareOf | None = None
    whole: int = 0


class LoweredTopic(NamedTuple):
    """A topic with its lower retention.

    before: its present limit, -1 for none. own_value, is_known: as in FreeablePartition. segments, size: the
    additional deletions.
    """

    topic: str
    setting: str
    before: int
    after: int
    own_value: str | None
    is_known: bool
    segments: int
    size: int


class PinnedSegment(NamedTuple):
    """A segment with its largest timestamp in the future: it and later segments stay at any age.

    is_dated_by_file: as in RetainedSegment. size: bytes of it and of later segments that are old enough.
    retention_bytes: the value of retention.bytes that deletes them.
    """

    topic: str
    directory: str
    base_offset: int
    largest_timestamp: int
    is_dated_by_file: bool
    size: int
    retention_bytes: int


@dataclass(frozen=True, slots=True)
class FreeingPlan:
    """A plan to free a number of bytes.

    size_now, segments_now: deleted without lowering anything. lowered: the topics to lower, the largest gain first;
    empty if it isn't possible. most_size: the most bytes that can be freed. age_ms: the lowered retention, None if it
    stays.
    """

    wanted: int
    size_now: int
    segments_now: int
    most_size: int
    lowered: list[LoweredTopic] = field(default_factory=list)
    pinned: list[PinnedSegment] = field(default_factory=list)
    age_ms: int | None = None

    @property
    def size(self) -> int:
        """The total of freed bytes."""
        return self.size_now + sum(each.size for each in self.lowered)

    @property
    def is_enough(self) -> bool:
        """True if the plan frees the wanted number of bytes."""
        return self.size >= self.wanted


def freeable_partition(
    partition: PartitionLog,
    settings: RetentionSettings,
    setting: str | None,
    own_value: str | None = None,
    *,
    is_known: bool = False,
) -> FreeablePartition:
    """Return a partition as `plan_freeing` needs it; its problems name segments that can't be read and are omitted."""
    listing = list_partition(partition, ListingSettings(settings))
    return FreeablePartition(
        topic=listing.topic,
        directory=str(partition.path),
        base_offsets=tuple(each.base_offset for each in listing.segments),
        segments=tuple(retained_segments(listing.segments, listing.log_end_offset)),
        settings=settings,
        log_start_offset=partition.log_start_offset(),
        high_watermark=partition.checkpoints().high_watermark,
        size_now=sum(each.size for each in listing.segments_to_delete),
        segments_now=len(listing.segments_to_delete),
        setting=setting,
        own_value=own_value,
        is_known=is_known,
        problems=listing.problems,
    )


def plan_freeing(partitions: Iterable[FreeablePartition], wanted: int) -> FreeingPlan:
    """Return the plan that frees at least the wanted bytes and loses the least history.

    It lowers the retention by time of several topics to one age, the greatest sufficient one. No topic is lowered
    further than its closed segments need, and none without need.
    """
    partitions = list(partitions)
    size_now = sum(each.size_now for each in partitions)
    segments_now = sum(each.segments_now for each in partitions)
    open_ones = [each for each in partitions if each.setting is not None]
    ages = sorted({age - 1 for each in open_ones for age in each.ages() if age > 0})
    most_size = size_now + (_gain(open_ones, ages[0]) if ages else 0)
    plan = FreeingPlan(wanted, size_now, segments_now, max(most_size, size_now))
    if wanted <= size_now:
        return plan
    if wanted > most_size:
        return replace(plan, pinned=_find_pinned(open_ones, ages[0] if ages else 0))
    missing = wanted - size_now
    # The greatest sufficient age: the smaller the age, the more is deleted.
    place = bisect_left(ages, 1, key=lambda age: int(_gain(open_ones, age) < missing))
    age_ms = _round_age(open_ones, ages[place - 1])
    lowered = _without_needless(_lower_topics(open_ones, age_ms), missing)
    return replace(plan, lowered=lowered, pinned=_find_pinned(open_ones, age_ms), age_ms=age_ms)


def wanted_of(free: int | Share, partitions: Iterable[FreeablePartition], disk_size: int) -> SpaceTarget:
    """Return the bytes to free for a size or a share.

    disk_size: of the file systems; 0 if nothing shows that these are the broker's. Raises UsageError for a share of a
    disk of unknown size.
    """
    if not isinstance(free, Share):
        return SpaceTarget(free)
    of = free.of or (ShareOf.DISK if disk_size else ShareOf.LOGS)
    whole = disk_size if of is ShareOf.DISK else sum(each.size for each in partitions)
    if of is ShareOf.DISK and not whole:
        raise UsageError("--free disk:N%: the system doesn't report the size of the disk; specify a size in bytes")
    return SpaceTarget(-(-free.percent * whole // 100), free.percent, of, whole)


def _gain(partitions: Sequence[FreeablePartition], retention_ms: int) -> int:
    """Return the additionally deleted bytes."""
    return sum(sum(each.size for each in one.going(retention_ms)) - one.size_now for one in partitions)


def _round_age(partitions: Sequence[FreeablePartition], age_ms: int) -> int:
    """Return the age in complete days, hours, minutes or seconds, the largest unit that deletes nothing more."""
    gain = _gain(partitions, age_ms)
    rounded = (age_ms - age_ms % unit for unit in _ROUND_MS)
    return next(each for each in rounded if each == age_ms or (each > 0 and _gain(partitions, each) == gain))


def _lower_topics(partitions: Sequence[FreeablePartition], age_ms: int) -> list[LoweredTopic]:
    """Return the topics that lose more than now, the largest gain first."""
    by_topic: dict[str, list[FreeablePartition]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic, []).append(each)
    found = []
    for topic, parts in by_topic.items():
        going = [segment for part in parts for segment in part.going(age_ms)]
        size = sum(each.size for each in going) - sum(part.size_now for part in parts)
        first = parts[0]
        if size > 0 and first.setting is not None:
            count = len(going) - sum(part.segments_now for part in parts)
            before = first.settings.retention_ms
            found.append(
                LoweredTopic(
                    topic=topic,
                    setting=first.setting,
                    before=before,
                    after=age_ms,
                    own_value=first.own_value,
                    is_known=first.is_known,
                    segments=count,
                    size=size,
                )
            )
    return sorted(found, key=lambda each: (-each.size, each.topic))


def _without_needless(lowered: list[LoweredTopic], missing: int) -> list[LoweredTopic]:
    """Return the topics without the smallest gains, as long as the others free enough."""
    spare = sum(each.size for each in lowered) - missing
    needed = []
    for each in reversed(lowered):
        if each.size <= spare:
            spare -= each.size
        else:
            needed.append(each)
    return needed[::-1]


def _find_pinned(partitions: Sequence[FreeablePartition], age_ms: int) -> list[PinnedSegment]:
    """Return the segments with future timestamps that keep others from deletion at this age."""
    found = []
    for each in partitions:
        slot = len(each.going(age_ms))
        held_count = _count_held(each, slot, age_ms)
        if held_count:
            sizes = [segment.size for segment in each.segments]
            first, rest = each.segments[slot], slot + held_count
            found.append(
                PinnedSegment(
                    each.topic,
                    each.directory,
                    each.base_offsets[slot],
                    first.largest_timestamp,
                    first.is_dated_by_file,
                    sum(sizes[slot:rest]),
                    sum(sizes[rest:]),
                )
            )
    return found


def _count_held(partition: FreeablePartition, slot: int, age_ms: int) -> int:
    """Count the closed segments that a slot's future timestamp pins: itself, similar ones, and old ones after them."""
    now_ms, count = partition.settings.now_ms, 0
    closed = partition.segments[slot:-1]
    if not closed or closed[0].largest_timestamp <= now_ms:
        return 0
    for each in closed:
        if 0 <= now_ms - each.largest_timestamp <= age_ms:
            break
        count += 1
    return count
