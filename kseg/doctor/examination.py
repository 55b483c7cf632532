"""The examination of partitions and directories for a check-up."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from kseg.cluster.directories import NoPartitionError, Refuse, is_of_partition
from kseg.cluster.metadata_copy import CHEAP_METADATA, OnUnread
from kseg.cluster.now import Now, NowSource
from kseg.cluster.partition_settings import TopicCleaning, TopicRetention, as_the_topic_sets
from kseg.cluster.remote_tier import find_tier
from kseg.cluster.settings import SettingSource
from kseg.doctor.kinds import KINDS, URGENCY, SuspectTimes, TimesWatch, suspect_segments, unit_of
from kseg.errors import OpenError, UnreadableError
from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.findings import Finding
from kseg.formats.codes import DamageKind
from kseg.formats.file_names import KINDS_BESIDE, parse_file_name
from kseg.log.cleaner import CleaningSettings
from kseg.log.listing import ListingSettings, PartitionListing, list_partition
from kseg.log.partition import PartitionLog, RemoteTier
from kseg.log.segments import RetentionSettings, RollSettings, SegmentFiles, read_tail
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.reading.bodies import Slice
from kseg.system.shared_work import SMALLEST_COST, OnRead, shared_work
from kseg.times import now_ms
from kseg.verify.start_effects import StartForecast
from kseg.verify.verify import (
    NothingToVerifyError,
    OnSlice,
    Order,
    VerificationPlan,
    Verified,
    plan_verification,
    verify_partition,
    verify_quickly,
)

_TORN = str(DamageKind.TORN_TAIL)
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class ExaminationSettings:
    """The depth of an examination.

    now: the current time; the clock's continues, and a later file's replaces it. is_quick: read only names, small
    files and ends of logs. keep_cache: leave the read data in the page cache. tells_cleaning: report the cleaner's
    next step. counts_records: count records and batches from all headers. static: settings in the broker's
    server.properties.
    """

    now: Now
    is_quick: bool = False
    keep_cache: bool = False
    tells_cleaning: bool = False
    counts_records: bool = False
    static: Mapping[str, str] = field(default_factory=dict)


class Examined(NamedTuple):
    """The results for a partition.

    listing: None if it can't be listed. suspects: impossible timestamps. retention: its settings; time_source: the
    source of retention by time. is_in_use: a broker uses the directory. newest_ms: the time of its newest log's last
    write, 0 if it has none; began_ms: the clock's time at the beginning; judged_ms: the time for all judgements.
    """

    verified: Verified
    listing: PartitionListing | None
    suspects: tuple[SuspectTimes, ...]
    retention: RetentionSettings
    time_source: SettingSource
    is_in_use: bool
    newest_ms: int
    began_ms: int
    judged_ms: int


def plan_examination(
    paths: Iterable[Path], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> VerificationPlan:
    """Return the plan of `plan_verification`, with directories that have single files of a partition.

    `refuse`, `choice` and errors are as there.
    """
    paths, refused = tuple(paths), list[OpenError]()
    plan = plan_verification(paths, refused.append, choice)
    single = []
    by_name = {str(path): path for path in paths}
    for error in refused:
        is_empty = isinstance(error, NoPartitionError | NothingToVerifyError)
        path = by_name.get(error.path or "") if is_empty else None
        if path is not None and _has_single_files(path):
            directory = path if path.is_dir() else path.parent
            single.append(Order(directory, None, PartitionLog(directory).size))
        elif refuse is None:
            raise error
        else:
            refuse(error)
    return replace(plan, orders=(*plan.orders, *single))


def _has_single_files(path: Path) -> bool:
    """Return True if there are files that can be judged without a log next to them."""
    directory = path if path.is_dir() else path.parent
    return any(_tells_something(name) for name in os.listdir(directory))  # noqa: PTH208  names are enough


def _tells_something(name: str) -> bool:
    """Return True if a file can be judged without a log next to it: any file of a partition except leftovers."""
    found = parse_file_name(name)
    return found.suffix is None and (is_of_partition(name) or found.kind in KINDS_BESIDE)


class ExaminationOrder(NamedTuple):
    """A partition to examine, by its topic settings.

    time_source: the source of retention by time. is_in_use: a broker uses the directory. cleaning: None unless it is
    requested and the cleaner cleans the topic. own: the topic's own settings by name. tier: None if it has none.
    """

    order: Order
    retention: RetentionSettings
    time_source: SettingSource
    is_in_use: bool = True
    cleaning: CleaningSettings | None = None
    own: dict[str, str] = {}  # noqa: RUF012  a default that nobody changes
    tier: RemoteTier | None = None


def examine(
    plan: VerificationPlan,
    settings: ExaminationSettings,
    *,
    processes: int | None = None,
    on_read: OnRead | None = None,
    on_unread: OnUnread | None = None,
) -> Iterator[Examined]:
    """Yield the examination of each partition of a plan, in order.

    Args:
        plan: the partitions to examine.
        settings: the depth of the examination.
        processes: the number of worker processes, as in `shared_work`.
        on_read: takes the bytes of logs read since the last call.
        on_unread: takes metadata that are too large for a quick look, or can't be read: retention is unknown then.
    """
    cost = _quick_cost if settings.is_quick else reading_cost
    orders = examination_orders(plan, settings, on_unread=on_unread)
    work = partial(_examine_order, settings)
    return share_orders(work, orders, cost, processes=processes, on_read=on_read, is_far=plan.cluster.is_far)


def share_orders(
    work: Callable[[ExaminationOrder, OnRead], Iterator[Found]],
    orders: Iterable[ExaminationOrder],
    cost: Callable[[ExaminationOrder], int],
    *,
    processes: int | None = None,
    on_read: OnRead | None = None,
    is_far: bool = False,
) -> Iterator[Found]:
    """Yield the results of work on some partitions, in their order; arguments as for `shared_work`."""
    with shared_work(work, orders, cost, processes=processes, on_read=on_read, is_far=is_far) as results:
        for _, found in results:
            yield found


def reading_cost(each: ExaminationOrder) -> int:
    """Return the cost of reading all of a partition's logs, or their headers."""
    return each.order.size + SMALLEST_COST


def _quick_cost(_: ExaminationOrder) -> int:
    return SMALLEST_COST


def examination_orders(
    plan: VerificationPlan, settings: ExaminationSettings, *, on_unread: OnUnread | None = None
) -> Iterator[ExaminationOrder]:
    """Yield the partitions of a plan, each with its topic settings; arguments as for `examine`."""
    at = settings.now.ms
    largest = CHEAP_METADATA if settings.is_quick else None
    topics = TopicRetention(
        plan.cluster, RetentionSettings(at), largest_metadata=largest, on_unread=on_unread, static=settings.static
    )
    cleaning = TopicCleaning(CleaningSettings(at), (), topics.beside, topics.use) if settings.tells_cleaning else None
    for order in plan.orders:
        try:
            partition = PartitionLog(order.path, order.checkpoints)
            own = topics.beside.topic_settings(partition)
            cleaned = None if cleaning is None else cleaning.of(partition)
            yield ExaminationOrder(
                order,
                topics.of(partition),
                topics.time_source(partition),
                is_in_use=topics.use.has(partition),
                cleaning=cleaned,
                own=own,
                tier=find_tier(partition, topics.beside),
            )
        except OpenError:  # its readers report it
            yield ExaminationOrder(order, RetentionSettings(at), SettingSource.DEFAULT)


def _examine_order(settings: ExaminationSettings, each: ExaminationOrder, on_read: OnRead) -> Iterator[Examined]:
    try:
        partition = PartitionLog(each.order.path, each.order.checkpoints)
        yield examine_partition(partition, settings, each, on_read=on_read)
    except OpenError as error:
        if each.order.path.exists():  # otherwise a broker deleted it meanwhile
            yield unreadable_partition(each, error)


def unreadable_partition(each: ExaminationOrder, error: OpenError) -> Examined:
    """Return the result for a partition that can't be opened."""
    at = each.retention.now_ms
    return Examined(
        verified=Verified(each.order.path, (), (UnreadableError(error.message, error.path),)),
        listing=None,
        suspects=(),
        retention=each.retention,
        time_source=each.time_source,
        is_in_use=each.is_in_use,
        newest_ms=0,
        began_ms=at,
        judged_ms=at,
    )


def _judged_at(now: Now, newest_ms: int) -> int:
    """Return the current time: a broker may have written after the beginning, or by a clock ahead of this one."""
    return max(now_ms(), newest_ms) if now.source is NowSource.CLOCK else now.ms


def examine_partition(
    partition: PartitionLog,
    settings: ExaminationSettings,
    each: ExaminationOrder,
    *,
    on_read: OnRead | None = None,
    on_slice: OnSlice | None = None,
) -> Examined:
    """Return the result for a partition after one reading of its logs, unless it is quick.

    Args:
        partition: the partition.
        settings: the depth of the examination.
        each: the settings of its topic.
        on_read: takes the bytes of logs read since the last call.
        on_slice: takes the batches while they are read, for other uses.
    """
    newest_ms = max((segment.log.modified_ms for segment in partition.segments if segment.log), default=0)
    began_ms = _judged_at(settings.now, 0)
    at = _judged_at(settings.now, newest_ms)
    retention = replace(each.retention, now_ms=at)
    watch = TimesWatch(at)
    if settings.is_quick:
        verified = verify_quickly(partition, keep_cache=settings.keep_cache)
    else:
        see = watch.take if on_slice is None else partial(_tell_both, watch.take, on_slice)
        verified = verify_partition(partition, keep_cache=settings.keep_cache, on_read=on_read, on_slice=see)
    verified = _without_finished_tail(verified)
    listing_settings = ListingSettings(
        retention,
        as_the_topic_sets(each.own, RollSettings()),
        deep=settings.counts_records,
        keep_cache=settings.keep_cache,
        cleaning=each.cleaning,
    )
    listing = replace(list_partition(partition, listing_settings), tier=each.tier)
    # Records written during the reading aren't in the future.
    found = suspect_segments(partition, listing.segments, at) if settings.is_quick else watch.finish()
    suspects = [each for each in found if unit_of(each.largest, _judged_at(settings.now, at)) is not None]
    return Examined(
        verified=verified,
        listing=listing,
        suspects=tuple(suspects),
        retention=retention,
        time_source=each.time_source,
        is_in_use=each.is_in_use,
        newest_ms=newest_ms,
        began_ms=began_ms,
        judged_ms=at,
    )


def _tell_both(one: OnSlice, other: OnSlice, segment: SegmentFiles, piece: Slice) -> None:
    one(segment, piece)
    other(segment, piece)


def _without_finished_tail(verified: Verified) -> Verified:
    """Return the result without an incomplete last batch that is complete by now: a broker was writing it."""
    torn = [finding for finding in verified.findings if finding.id == _TORN]
    if not torn:
        return verified
    again = PartitionLog(verified.path)
    still = [finding for finding in torn if _is_torn_still(again, finding)]
    return replace(verified, findings=tuple(each for each in verified.findings if each.id != _TORN or each in still))


def _is_torn_still(again: PartitionLog, finding: Finding) -> bool:
    """Return True if the log still ends within the same batch; False for a deleted log."""
    segment = again.active_segment
    if segment is None or segment.path != finding.file:
        return any(each.path == finding.file for each in again.segments)
    damage = read_tail(segment).damage
    return damage is not None and damage.position == finding.position


@dataclass(frozen=True, slots=True)
class Trouble:
    """One problem or fact worth knowing.

    `file` and `position` (bytes in it), `first_offset` and `last_offset`: its place; `sentence`: its description, with
    numbers. size: bytes concerned. held_back: offsets that read_committed consumers can't reach. variant: the ending
    of a leftover's name. records: the most records of an abandoned lineage. command: the next line to run, words: its
    words; None if nothing is needed. directory: of the partition.
    """

    id: str
    file: Path
    sentence: str
    position: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    topic: str | None = None
    partition: int | None = None
    producer_id: int | None = None
    size: int | None = None
    held_back: int | None = None
    variant: str | None = None
    records: int | None = None
    command: str | None = None
    words: tuple[str, ...] | None = None
    directory: Path | None = None

    @property
    def kind(self) -> FindingKind:
        """The meaning of its id."""
        return KINDS[self.id]

    @property
    def severity(self) -> Severity:
        """Its severity."""
        return KINDS[self.id].severity


def badness(trouble: Trouble) -> tuple[int, int, int, str, int]:
    """Return the sort key of troubles, most severe first: severity, urgency, size; then place."""
    amount = trouble.size or trouble.held_back or 0
    place = -1 if trouble.position is None else trouble.position
    return trouble.severity.rank, URGENCY[trouble.id], -amount, str(trouble.file), place


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system with log directories: its bytes, and the bytes that an ordinary process may still write."""

    log_dirs: tuple[Path, ...]
    size: int
    available: int


@dataclass(slots=True)
class TopicUse:
    """A topic's directories: bytes of all logs, of logs not in use, and of segments that retention would delete now.

    partitions: the number of directories. copies: directories in use of a partition that was already counted.
    set_aside: directories not in use.
    """

    topic: str
    partitions: int = 0
    copies: int = 0
    set_aside: int = 0
    segments: int = 0
    size: int = 0
    not_in_use: int = 0
    due: int = 0


@dataclass(frozen=True, slots=True)
class CheckUp:
    """All results, the most severe and largest first.

    size: bytes of all logs; read: of completely read ones. is_quick: only names, small files and ends of logs were
    read. now: the current time. forecast: the result of a start; None before anything was examined.
    """

    troubles: tuple[Trouble, ...]
    disks: tuple[Disk, ...]
    topics: tuple[TopicUse, ...]
    partitions: int
    size: int
    read: int
    is_quick: bool
    now: Now
    forecast: StartForecast | None = None

    def count(self, severity: Severity) -> int:
        """Count the troubles of a severity."""
        return sum(trouble.severity is severity for trouble in self.troubles)

    @property
    def is_well(self) -> bool:
        """True without errors and warnings."""
        return all(trouble.severity is Severity.NOTE for trouble in self.troubles)
