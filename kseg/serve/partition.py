"""A served partition: its log end, its committed view, and its batches."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from time import monotonic, time
from typing import Literal, NamedTuple

from kseg.errors import KsegError, OpenError
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.index.header_scan import header_of
from kseg.index.producers import ProducerState
from kseg.kernel.contract import MOST, VALID
from kseg.log.committed import ReadCommitted, read_committed, read_last_stable_offset
from kseg.log.lineage import UNKNOWN, EpochStarts, all_epochs, latest_epoch, noted_epochs
from kseg.log.lookup import SpecialTime, lookup_time
from kseg.log.partition import PartitionEnd, PartitionLog
from kseg.log.segment_search import SegmentStep, seek_offset
from kseg.log.segments import SegmentFiles, entry_problem, read_index_end
from kseg.log.side_files import states_at
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.serve.fetch_batches import (
    FetchBounds,
    FetchPlan,
    Mend,
    Missed,
    StoredRange,
    damage_of,
    mends_in,
    pieces_of,
    plan_fetches,
    readable_batches,
    without_strays,
)
from kseg.serve.values import AHEAD, GROWTH_SECONDS, READ_AT_ONCE, REST, KnownPlans, Planned, StoredLog, stored_log

FileState = tuple[str, int, int]
"""Path, size and time of the last modification in nanoseconds of the active log."""


class IntactEnd:
    """The offset after the last intact batch of a partition.

    A broker's own log end offset may be after batches that no client will get, and then a client would wait in front of
    it for ever. Batches are checked once: where a log has grown, reading goes on at its former end.

    tail: damage after the last intact batch, and the segment that it is in; a preallocated file's zeros aren't any.
    was_cut: whether the batch that was the last one before is gone, though its segment is still there: what was known
    of the log may be of another one.
    """

    def __init__(self) -> None:
        self._base_offset: int | None = None
        self._position = 0
        self._next_offset = 0
        self._last: tuple[int, bytes] | None = None
        self.tail: tuple[SegmentFiles, Missed] | None = None
        self.was_cut = False

    def read(self, partition: PartitionLog) -> int:
        """The end of a partition as it is listed, not below its log start offset.

        Raises OpenError if a log can't be opened.
        """
        self.tail, self.was_cut = None, False
        for segment in reversed(partition.segments):
            found = self._end_of(segment)
            if found is not None or segment.size == 0 or segment is partition.segments[0]:
                end = segment.base_offset if found is None else found
                return max(end, partition.log_start_offset())
        return partition.log_start_offset()

    def _end_of(self, segment: SegmentFiles) -> int | None:
        """The offset after the last intact batch of a segment; None if it has none."""
        with LogFile(segment.path, buffer_size=READ_AT_ONCE) as log_file:
            if segment.base_offset == self._base_offset:
                self.was_cut = not self._has_last(log_file)
                if not self.was_cut:
                    self._follow(log_file, self._position, segment)
                    return self._next_offset
            for start in dict.fromkeys((_last_indexed(segment, log_file), 0)):
                if self._follow(log_file, start, segment):
                    self._base_offset = segment.base_offset
                    return self._next_offset
        return None

    def _has_last(self, log_file: LogFile) -> bool:
        """Whether the last intact batch so far is still where it was, by its header, which has the CRC of the rest."""
        if self._last is None or self._position > log_file.size:
            return False
        position, header = self._last
        return log_file.read(position, len(header)) == header

    def _follow(self, log_file: LogFile, start: int, segment: SegmentFiles) -> bool:
        """Notes the last intact batch from a position on, and damage after it; whether there is a batch."""
        found, tail = False, None
        for item in readable_batches(log_file.runs(start)):
            if not isinstance(item, Damage) and item.rows[VALID]:
                last = header_of(item, item.row_count - 1)
                self._position, self._next_offset = last.end, last.last_offset + 1
                start = last.position - item.position
                self._last = last.position, bytes(item.buffer[start : start + min(last.size, BATCH_HEADER_SIZE)])
                found, tail = True, None
            elif tail is None:
                tail = damage_of(item)
        if tail is not None:
            first = self._next_offset if found or start else segment.base_offset
            self.tail = segment, Missed(tail.position, tail.detail, first, None)
        return found


def _last_indexed(segment: SegmentFiles, log_file: LogFile) -> int:
    """The position of the last index entry, if it matches the log; otherwise 0."""
    last = read_index_end(segment).last
    return 0 if last is None or entry_problem(log_file, last.offset, last.position) is not None else last.position


def state_of(partition: PartitionLog) -> FileState | None:
    """The state of the active log; None if there is none, or if it has gone."""
    active = partition.active_segment
    if active is None:
        return None
    try:
        status = os.stat(active.path)  # noqa: PTH116  quicker
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror}", active.path) from error
    return str(active.path), status.st_size, status.st_mtime_ns


MOST_SEGMENTS = 64
"""Segments whose transactions are remembered."""


class _Known(NamedTuple):
    """What was read of transactions when the log ended at an offset, and when that may be read again."""

    log_end: int
    value: ReadCommitted | int | None
    stays_until: float


class CommittedView:
    """The transactions of a partition, read where they are asked for, and kept while the log stays as it is."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stable: _Known | None = None
        self._by_base: OrderedDict[int, _Known] = OrderedDict()

    def last_stable_offset(self, partition: PartitionLog, log_end: int) -> int:
        """The first offset that isn't decided yet: of the oldest open transaction, or the log's end.

        Raises OpenError if a log can't be opened.
        """
        with self._lock:
            known = self._stable
            if known is None or _is_stale(known, log_end):
                started = monotonic()
                known = self._stable = _known(log_end, read_last_stable_offset(partition), started)
        open_from = known.value if isinstance(known.value, int) else log_end
        return min(open_from, known.log_end, log_end)

    def aborted(
        self, partition: PartitionLog, log_end: int, first_offset: int, end_offset: int
    ) -> list[tuple[int, int]]:
        """Aborted transactions that reach into some offsets, as (producer id, first offset), by first offset.

        Raises OpenError if a log can't be opened.
        """
        slot = partition.floor_slot(first_offset) or 0
        base = partition.base_offsets[slot]
        following = partition.base_offsets[slot + 1 : slot + 2]
        with self._lock:
            known = self._by_base.pop(base, None)
            if known is None or (not following and known.log_end < end_offset):
                started, end = monotonic(), following[0] if following else MOST
                known = _known(log_end, read_committed(partition.segments, partition, base, end), started)
            self._by_base[base] = known
            while len(self._by_base) > MOST_SEGMENTS:
                self._by_base.popitem(last=False)
        found = _reaching(known.value, first_offset, end_offset) if isinstance(known.value, ReadCommitted) else ()
        return sorted(found, key=lambda each: each[1])


def _known(log_end: int, value: ReadCommitted | int | None, started: float) -> _Known:
    now = monotonic()
    return _Known(log_end, value, now + REST * (now - started))


def _is_stale(known: _Known, log_end: int) -> bool:
    return known.log_end != log_end and monotonic() >= known.stays_until


def _reaching(read: ReadCommitted, first_offset: int, end_offset: int) -> Iterator[tuple[int, int]]:
    for producer_id, spans in read.aborted.items():
        for begun, marker in spans:
            if begun < end_offset and marker >= first_offset:
                yield producer_id, begun


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
    checksum that its frames should have. is_verbose: says at the start of each partition which copy is served.
    is_quiet: says at the start nothing of copies.
    """

    high_watermark: HighWatermark = "log-end"
    is_strict: bool = False
    has_internal: bool = True
    mends_lz4: bool = False
    is_verbose: bool = False
    is_quiet: bool = False


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

    first_offset: that of the first batch. next_offset: the one after the last batch. mends: what is changed in them, by
    position.
    """

    log: StoredLog
    ranges: tuple[StoredRange, ...]
    first_offset: int
    next_offset: int
    mends: tuple[Mend, ...] = ()

    def __len__(self) -> int:
        return sum(each.size for each in self.ranges)

    def pieces(self) -> Iterator[StoredRange | bytes]:
        """What is sent, in order: stretches of the log, and the changed bytes between them."""
        return pieces_of(self.ranges, self.mends)

    def are_there(self) -> bool:
        """Whether the same batches are still there, by their places and offsets, and intact. Raises OpenError."""
        bounds = FetchBounds(self.first_offset, self.next_offset, len(self), takes_any_first=True)
        with LogFile(self.log.path, buffer_size=READ_AT_ONCE) as log_file:
            plan = next(plan_fetches(readable_batches(log_file.runs(self.ranges[0].position)), bounds))
        return (plan.ranges, plan.first_offset, plan.next_offset) == (self.ranges, self.first_offset, self.next_offset)


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
        self.listed = self.listed.relist()
        state = state_of(self.listed)
        if known is not None and state == self._state:
            return known
        self._state = state
        end = self._end.read(self.listed)
        if self._end.was_cut:
            self._forget()
        if self._end.tail is not None:
            segment, missed = self._end.tail
            self._tell(segment, missed, is_active=True)
        start = min(self.listed.log_start_offset(), end)
        watermark = self.listed.checkpoints().high_watermark if self._high_watermark == "checkpoint" else None
        return ServedOffsets(start, end if watermark is None else min(max(watermark, start), end), end)

    def _forget(self) -> None:
        """Forgets what was known of a log that is another one now."""
        self._places.clear()
        self._committed, self._epochs, self._producers = CommittedView(), None, None
        self._say(f"{self}: its log was cut and written again: clients that are beyond its end get an error")

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
        end = PartitionEnd(self.offsets().log_end, None)
        return UNKNOWN if self.listed is None else latest_epoch(self.listed, end)

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
        """Its producers, by the newest snapshot and what follows it.

        Raises OpenError if a log can't be opened.
        """
        end = self.offsets().log_end
        if self.listed is None:
            return ()
        known = self._producers
        if known is None or known[0] != end:
            known = self._producers = end, tuple(states_at(self.listed, end).producers.values())
        return known[1]

    def disk_start(self, offsets: ServedOffsets) -> int:
        """The first offset that the broker has on its own disk, of a partition that is served with its tier."""
        return offsets.log_start if self.listed is None else min(self.listed.disk_start_offset, offsets.log_end)

    def find_time(self, timestamp: int | SpecialTime, end_offset: int) -> tuple[int, int, int] | None:
        """Offset, time and leader epoch of the first record with a time or a later one, if it is below an end.

        None without any.

        Raises OpenError if a log can't be opened.
        """
        if self.listed is None:
            return None
        found = lookup_time(self.listed, timestamp)
        record, batch = found.record, found.batch
        if record is None or batch is None or record.offset >= end_offset:
            return None
        return record.offset, record.timestamp, batch.partition_leader_epoch

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
        return (StoredLog(partition.path, None, None), nothing) if missed else None

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
