"""A partition as clients see it: its offsets, its records, the times in it."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from time import monotonic, time
from typing import Literal, NamedTuple

from kseg.errors import KsegError, OpenError
from kseg.index.producer_state import ProducerState
from kseg.kernel.contract import MOST
from kseg.log.lookup.lookup import SpecialTime, lookup_time
from kseg.log.partition.leader_epochs import EpochStarts, all_epochs, last_epoch, noted_epochs
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.partition.segment_search import SegmentStep, seek_offset
from kseg.log.partition.side_files import states_at
from kseg.reading.log_file import LogFile
from kseg.serve.committed_view import CommittedView
from kseg.serve.fetch_plan import FetchBounds, FetchPlan, Mend, Missed, StoredRange, plan_fetches
from kseg.serve.known_plans import KnownPlans, Planned
from kseg.serve.limits import AHEAD, GROWTH_SECONDS, READ_AT_ONCE
from kseg.serve.log_end import FileState, IntactEnd, state_of
from kseg.serve.mended_lz4 import mends_in, pieces_of
from kseg.serve.readable_batches import readable_batches
from kseg.serve.stored_log import StoredLog, stored_log
from kseg.serve.stray_batches import without_strays

HighWatermark = Literal["log-end", "checkpoint"]
MOST_PLACES = 1024
"""Ends of answers that are remembered: where the next fetch of the same client goes on."""
SETTLED_SECONDS = 10.0
"""A log that has changed since may just be being written: its end isn't called damaged."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How partitions are served.

    high_watermark: where it is taken from. is_strict: whether damage is an error to clients, and not passed over.
    has_internal: whether Kafka's own topics are served too. mends_lz4: whether lz4 of format 0 is sent with the
    checksum that its frames should have.
    """

    high_watermark: HighWatermark = "log-end"
    is_strict: bool = False
    has_internal: bool = True
    mends_lz4: bool = False


class ServedOffsets(NamedTuple):
    """A partition's offsets at one time: the first one that is readable, and the first ones that aren't any more.

    For clients with read_committed that is `last_stable_offset`, for others `high_watermark`.
    """

    log_start: int
    high_watermark: int
    log_end: int


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """Records of an answer, as they lie in a log: which one, and ranges of it. Their length is that of all ranges.

    mends: what is changed in them, by position.
    """

    log: StoredLog
    ranges: tuple[StoredRange, ...]
    mends: tuple[Mend, ...] = ()

    def __len__(self) -> int:
        return sum(each.size for each in self.ranges)

    def pieces(self) -> Iterator[StoredRange | bytes]:
        """What is sent, in order: stretches of the log, and the changed bytes between them."""
        return pieces_of(self.ranges, self.mends)


_WHOLE = ("", 0)
"""Stands in what was told for the partition as a whole."""


class _Place(NamedTuple):
    """Where a batch is that begins at or after some offset: a segment's base offset, and a position in its log."""

    base_offset: int
    position: int
    is_after_an_answer: bool = False
    "Whoever asks there goes on, and will go on after that."


class ServedPartition:
    """One partition; may be used by several threads.

    topic, number: as clients name it. listed: its directory as it was listed; None for a partition that isn't here, and
    is served as an empty one.
    """

    def __init__(
        self,
        topic: str,
        number: int,
        listed: PartitionLog | None,
        say: Callable[[str], None],
        settings: ServeSettings,
        plans: KnownPlans,
    ) -> None:
        """Takes the partition's name and directory.

        Args:
            topic: the topic that clients ask for.
            number: the partition's number.
            listed: its directory.
            say: called with what was passed over, once.
            settings: how it is served.
            plans: those that are known, of all partitions.
        """
        self.topic, self.number, self.listed = topic, number, listed
        self._say = say
        self._high_watermark = settings.high_watermark
        self.is_strict, self._mends_lz4 = settings.is_strict, settings.mends_lz4
        self._lock = Lock()
        self._end = IntactEnd()
        self._state: FileState | None = None
        self._offsets: ServedOffsets | None = None
        self._looked = 0.0
        self._committed = CommittedView()
        self._places: OrderedDict[int, _Place] = OrderedDict()
        self._plans = plans
        self._told: set[tuple[str, int]] = set()
        self._epochs: tuple[int, EpochStarts] | None = None
        self._producers: tuple[int, tuple[ProducerState, ...]] | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"

    @property
    def has_missed(self) -> bool:
        """Whether anything was passed over since it is damaged."""
        return bool(self._told)

    def offsets(self) -> ServedOffsets:
        """Its offsets now; looks at its files at most every GROWTH_SECONDS. Raises OpenError if they can't be read."""
        with self._lock:
            now = monotonic()
            if self._offsets is None or now - self._looked >= GROWTH_SECONDS:
                self._offsets = self._look_and_tell(self._offsets)
                self._looked = monotonic()
            return self._offsets

    def _look_and_tell(self, known: ServedOffsets | None) -> ServedOffsets:
        """Clients only see an error that they try again after: why is said here, once."""
        try:
            return self._look(known)
        except KsegError as error:
            if _WHOLE not in self._told:
                self._told.add(_WHOLE)
                self._say(f"{self}: can't be read any more, clients get an error: {error}")
            raise

    def _look(self, known: ServedOffsets | None) -> ServedOffsets:
        if self.listed is None:
            return ServedOffsets(0, 0, 0)
        self.listed = self.listed.as_it_is()
        state = state_of(self.listed)
        if known is not None and state == self._state:
            return known
        self._state = state
        end = self._end.read(self.listed)
        if self._end.tail is not None:
            segment, missed = self._end.tail
            self._tell(segment, missed, is_active=True)
        start = min(self.listed.log_start_offset(), end)
        watermark = self.listed.checkpoints().high_watermark if self._high_watermark == "checkpoint" else None
        return ServedOffsets(start, end if watermark is None else min(max(watermark, start), end), end)

    def last_stable_offset(self, offsets: ServedOffsets) -> int:
        """The end for clients with read_committed. Raises OpenError if a log can't be opened.

        Not below the log start offset, though a transaction may be open since before it. Source:
        UnifiedLog.maybeIncrementFirstUnstableOffset.
        """
        if self.listed is None:
            return offsets.high_watermark
        stable = self._committed.last_stable_offset(self.listed, offsets.log_end)
        return min(max(stable, offsets.log_start), offsets.high_watermark)

    def aborted(self, plan: FetchPlan, offsets: ServedOffsets) -> list[tuple[int, int]]:
        """Aborted transactions in what is sent, as (producer id, first offset)."""
        if self.listed is None or not plan.ranges:
            return []
        return self._committed.aborted(self.listed, offsets.log_end, plan.first_offset, plan.next_offset)

    def size(self) -> int:
        """Bytes of its logs now. Raises OpenError if its directory can't be listed."""
        return 0 if self.listed is None else PartitionLog(self.listed.path).size

    def noted_epochs(self) -> EpochStarts:
        """The leader epochs that the broker's checkpoint has. Raises OpenError if a log can't be opened."""
        end = self.offsets().log_end
        return EpochStarts() if self.listed is None else noted_epochs(self.listed, end)

    def latest_epoch(self) -> int:
        """The last leader epoch, -1 if it isn't known. Raises OpenError if a log can't be opened."""
        noted = self.noted_epochs().latest
        return noted if self.listed is None else max(noted, last_epoch(self.listed))

    def leader_epochs(self) -> EpochStarts:
        """All leader epochs that are known. Raises OpenError if a log can't be opened."""
        end = self.offsets().log_end
        if self.listed is None:
            return EpochStarts()
        known = self._epochs
        if known is None or known[0] != end:
            known = self._epochs = end, all_epochs(self.listed, end)
        return known[1]

    def producers(self) -> tuple[ProducerState, ...]:
        """Its producers, by the newest snapshot and what follows it. Raises OpenError if a log can't be opened."""
        end = self.offsets().log_end
        if self.listed is None:
            return ()
        known = self._producers
        if known is None or known[0] != end:
            known = self._producers = end, tuple(states_at(self.listed, end).producers.values())
        return known[1]

    def find_time(self, timestamp: int | SpecialTime, end_offset: int) -> tuple[int, int] | None:
        """Offset and time of the first record with a time or a later one, if it is below an end; None without any.

        Raises OpenError if a log can't be opened.
        """
        if self.listed is None:
            return None
        record = lookup_time(self.listed, timestamp).record
        return None if record is None or record.offset >= end_offset else (record.offset, record.timestamp)

    def plan(self, bounds: FetchBounds) -> tuple[StoredLog, FetchPlan] | None:
        """What answers a fetch: a log, and the ranges of it. None if nothing is wanted of any.

        Raises OpenError if a log can't be opened.
        """
        if self.listed is None or not self.listed.segments:
            return None
        planned = self._plans.find(str(self), bounds)
        if planned is not None:
            return self._answer(planned, ())
        partition = self.listed
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
            self._tell_all(segment, plan.missed)
            missed += plan.missed
            if missed and self.is_strict:
                break
        nothing = FetchPlan((), bounds.first_offset, bounds.first_offset, tuple(missed))
        return (StoredLog(str(partition.path), None, None), nothing) if missed else None

    def _answer(self, planned: Planned, missed: Iterable[Missed]) -> tuple[StoredLog, FetchPlan]:
        """What goes out by a plan; `missed` is what was passed over before its segment."""
        segment, log, plan = planned
        self._tell_all(segment, plan.missed)
        self._remember(plan.next_offset, _Place(segment.base_offset, plan.end, is_after_an_answer=True))
        return log, plan._replace(missed=(*missed, *plan.missed), mends=self._mends(segment, plan))

    def _keep(self, bounds: FetchBounds, planned: Sequence[Planned], *, is_whole: bool) -> None:
        """Keeps the plan for a fetch, unless segments before it belong to the answer, and those for what follows it."""
        if is_whole:
            self._plans.keep(str(self), bounds, planned[0])
        for before, following in pairwise(planned):
            self._plans.keep(str(self), bounds._replace(first_offset=before.plan.next_offset), following)

    def _mends(self, segment: SegmentFiles, plan: FetchPlan) -> tuple[Mend, ...]:
        """What is changed in what is sent of a segment. Raises OpenError if its log can't be opened."""
        if not self._mends_lz4:
            return ()
        with LogFile(segment.path, buffer_size=READ_AT_ONCE) as log_file:
            return tuple(mends_in(log_file, plan.ranges))

    def _place_of(self, partition: PartitionLog, offset: int) -> _Place:
        """Where to look for an offset: where an answer has ended, or by the index."""
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

    def _tell_all(self, segment: SegmentFiles, missed: Iterable[Missed]) -> None:
        is_active = self.listed is not None and segment.path == self.listed.segments[-1].path
        for each in missed:
            self._tell(segment, each, is_active=is_active)

    def _tell(self, segment: SegmentFiles, missed: Missed, *, is_active: bool) -> None:
        """Says what was passed over in a segment, once."""
        key = (segment.path.name, missed.position)
        is_tail = missed.next_offset is None
        if key in self._told or (is_active and is_tail and self._may_be_written()):
            return
        self._told.add(key)
        done = "clients get an error there" if self.is_strict and not is_tail else "passed over"
        self._say(f"{segment.path}: position {missed.position}: {missed.detail}: {_lost(missed)}; {done}")

    def _may_be_written(self) -> bool:
        return self._state is not None and time() - self._state[2] / 1e9 < SETTLED_SECONDS


def _plan_segment(
    segment: SegmentFiles, position: int, bounds: FetchBounds, next_base: int, ahead: int
) -> list[FetchPlan]:
    """The plan for a fetch, and those for what follows it in the segment, up to so many bytes ahead."""
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


def _lost(missed: Missed) -> str:
    """Which offsets can't be had."""
    if missed.next_offset is None:
        return f"offsets from {missed.first_offset} on"
    last = missed.next_offset - 1
    if last < missed.first_offset:
        return "no offset is missing"
    return f"offset {last}" if last == missed.first_offset else f"offsets {missed.first_offset} to {last}"
