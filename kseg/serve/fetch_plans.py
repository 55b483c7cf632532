"""Plans of fetches from a partition: cached plans, and new ones that begin where an earlier answer ended."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

from kseg.errors import KsegError, OpenError
from kseg.kernel.contract import MOST
from kseg.log.partition import PartitionLog
from kseg.log.segment_search import SegmentStep, seek_offset
from kseg.log.segments import SegmentFiles
from kseg.reading.log_file import LogFile
from kseg.serve.fetch_batches import (
    FetchBounds,
    FetchPlan,
    Mend,
    Missed,
    mends_in,
    plan_fetches,
    readable_batches,
    without_strays,
)
from kseg.serve.missed_reports import MissedReports
from kseg.serve.stored_records import StoredLog, stored_log
from kseg.serve.values import AHEAD, READ_AT_ONCE, ServeSettings

MOST_PLANS = 16_384
"""The most plans of all partitions together: 16 GiB at 1 MiB per fetch, and at most some 16 MiB of memory."""

MOST_PLACES = 1024
"""The most cached ends of answers, where the next fetches of the same clients begin."""


class Planned(NamedTuple):
    """A plan for a fetch from a segment, and its log at that time."""

    segment: SegmentFiles
    log: StoredLog
    plan: FetchPlan


class KnownPlans:
    """The plans that were made or used last; safe for several threads."""

    def __init__(self, most: int = MOST_PLANS) -> None:
        """Initialize an empty cache with at most `most` plans."""
        self._most = most
        self._lock = Lock()
        self._plans: OrderedDict[tuple[str, FetchBounds], Planned] = OrderedDict()

    def find(self, partition: str, bounds: FetchBounds) -> Planned | None:
        """Return the plan for fetching from a partition if its log hasn't changed."""
        key = partition, bounds
        with self._lock:
            planned = self._plans.get(key)
            if planned is None:
                return None
            self._plans.move_to_end(key)
        if stored_log(planned.log.path) == planned.log:
            return planned
        with self._lock:
            self._plans.pop(key, None)
        return None

    def forget(self, partition: str) -> None:
        """Forget the plans for fetching from a partition."""
        with self._lock:
            for key in [key for key in self._plans if key[0] == partition]:
                del self._plans[key]

    def keep(self, partition: str, bounds: FetchBounds, planned: Planned) -> None:
        """Store a plan, replacing the least recently used plan."""
        with self._lock:
            self._plans[partition, bounds] = planned
            while len(self._plans) > self._most:
                self._plans.popitem(last=False)


class _Place(NamedTuple):
    """The place of the first batch at or after some offset: the base offset of a segment, and a position in its log."""

    base_offset: int
    position: int
    is_after_an_answer: bool = False
    """True if an earlier answer ended here, so the client reads sequentially."""


class PartitionPlans:
    """The plans of a partition; safe for several threads."""

    def __init__(self, name: str, known: KnownPlans, reports: MissedReports, settings: ServeSettings) -> None:
        """Take the partition's name, the cache of all partitions, and the receiver of skipped bytes."""
        self._name, self._known, self._reports = name, known, reports
        self._is_strict, self._mends_lz4 = settings.is_strict, settings.mends_lz4
        self._lock = Lock()
        self._places: OrderedDict[int, _Place] = OrderedDict()

    def forget(self) -> None:
        """Forget the plans, and where answers ended, after the log or its list of segments was replaced."""
        self._known.forget(self._name)
        with self._lock:
            self._places.clear()

    def make(self, partition: PartitionLog, bounds: FetchBounds) -> tuple[StoredLog, FetchPlan] | None:
        """Plan the answer to a fetch: a log, and ranges of it. Returns None if no batch is wanted.

        Raises OpenError if a log can't be opened.
        """
        planned = self._known.find(self._name, bounds)
        if planned is not None:
            return self._answer(planned, ())
        place = self._place_of(partition, bounds.first_offset)
        position, ahead = place.position, AHEAD if place.is_after_an_answer else 0
        missed: list[Missed] = []
        first = partition.base_offsets.index(place.base_offset)
        next_bases = [*partition.base_offsets[first + 1 :], MOST]
        for segment, next_base in zip(partition.segments[first:], next_bases, strict=True):
            if segment.base_offset >= bounds.end_offset:
                break
            log = stored_log(segment.path)
            plan, *more = _plan_segment(segment, position, bounds, next_base, ahead)
            position = 0
            if plan.ranges:
                plans = [Planned(segment, log, each) for each in (plan, *more)]
                self._keep(bounds, plans, is_whole=not missed)
                return self._answer(plans[0], missed)
            self._reports.report_skipped(segment, plan.missed)
            missed += plan.missed
            if missed and self._is_strict:
                break
        nothing = FetchPlan((), bounds.first_offset, bounds.first_offset, tuple(missed))
        return (StoredLog(partition.path, None, None), nothing) if missed else None

    def find(self, bounds: FetchBounds) -> tuple[StoredLog, FetchPlan] | None:
        """Return the same as `make` if no log has to be read for it, otherwise None."""
        planned = None if self._mends_lz4 else self._known.find(self._name, bounds)
        return None if planned is None else self._answer(planned, ())

    def _answer(self, planned: Planned, missed: Iterable[Missed]) -> tuple[StoredLog, FetchPlan]:
        """Return the answer of a plan; `missed`: skipped bytes before its segment."""
        segment, log, plan = planned
        self._reports.report_skipped(segment, plan.missed)
        self._remember(plan.next_offset, _Place(segment.base_offset, plan.end, is_after_an_answer=True))
        return log, plan._replace(missed=(*missed, *plan.missed), mends=self._mends(segment, plan))

    def _keep(self, bounds: FetchBounds, planned: Sequence[Planned], *, is_whole: bool) -> None:
        """Keep the plan for a fetch, unless its answer skips segments, and the plans for the following fetches."""
        if is_whole:
            self._known.keep(self._name, bounds, planned[0])
        for before, following in pairwise(planned):
            self._known.keep(self._name, bounds._replace(first_offset=before.plan.next_offset), following)

    def _mends(self, segment: SegmentFiles, plan: FetchPlan) -> tuple[Mend, ...]:
        """Return the changed bytes in an answer from a segment. Raises OpenError if its log can't be opened."""
        if not self._mends_lz4:
            return ()
        with LogFile(segment.path, buffer_size=READ_AT_ONCE) as log_file:
            return tuple(mends_in(log_file, plan.ranges))

    def _place_of(self, partition: PartitionLog, offset: int) -> _Place:
        """Return the place to look for an offset: the end of an answer, or by the index."""
        with self._lock:
            known = self._places.pop(offset, None)
        if known is not None and known.base_offset in partition.base_offsets:
            return known
        segment = partition.segments[partition.floor_slot(offset) or 0]
        step = SegmentStep(segment)
        try:
            with segment.open_log() as log_file:
                seek_offset(log_file, step, offset, [])
        except KsegError:
            return _Place(segment.base_offset, 0)
        return _Place(segment.base_offset, step.scan_position)

    def _remember(self, offset: int, place: _Place) -> None:
        with self._lock:
            self._places[offset] = place
            while len(self._places) > MOST_PLACES:
                self._places.popitem(last=False)


def _plan_segment(
    segment: SegmentFiles, position: int, bounds: FetchBounds, next_base: int, ahead: int
) -> list[FetchPlan]:
    """Plan a fetch, and the following fetches in the segment, up to `ahead` bytes."""
    plans: list[FetchPlan] = []
    try:
        with LogFile(segment.path, buffer_size=READ_AT_ONCE) as log_file:
            items = without_strays(readable_batches(log_file.runs(position)), next_base)
            for plan in plan_fetches(items, bounds):
                plans.append(plan)
                if plan.end >= position + ahead:
                    break
    except OpenError as error:
        missed = Missed(0, f"unreadable: {error.message}", max(bounds.first_offset, segment.base_offset), None)
        return plans or [FetchPlan((), bounds.first_offset, bounds.first_offset, (missed,))]
    return [plans[0], *(plan for plan in plans[1:] if plan.ranges)]
