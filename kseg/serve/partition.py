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
from kseg.log.committed import ReadCommitted, read_committed
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
"""Path, size and modification time in nanoseconds of the active log."""


class IntactEnd:
    """The offset after the last intact batch of a partition.

    A broker's own log end offset may come after batches that no client can get, and then a client would wait for them
    forever. Batches are checked once: if a log has grown, checks continue at its former end.

    tail: damage after the last intact batch, and its segment; a preallocated file's zeros don't count. was_cut:
    whether the former last batch is gone, though its segment still exists: cached facts may be about another log.
    """

    def __init__(self) -> None:
        self._base_offset: int | None = None
        self._position = 0
        self._next_offset = 0
        self._last: tuple[int, bytes] | None = None
        self.tail: tuple[SegmentFiles, Missed] | None = None
        self.was_cut = False

    def read(self, partition: PartitionLog) -> int:
        """Return the end of a partition as listed, at least its log start offset.

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
        """Return the offset after the last intact batch of a segment, or None if it has none."""
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
        """Return whether the last intact batch is still in its place, by its header, which has the CRC of the rest."""
        if self._last is None or self._position > log_file.size:
            return False
        position, header = self._last
        return log_file.read(position, len(header)) == header

    def _follow(self, log_file: LogFile, start: int, segment: SegmentFiles) -> bool:
        """Note the last intact batch from a position on, and damage after it; return whether there is a batch."""
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
    """Return the position of the last index entry, if it matches the log; otherwise 0."""
    last = read_index_end(segment).last
    return 0 if last is None or entry_problem(log_file, last.offset, last.position) is not None else last.position


def state_of(partition: PartitionLog) -> FileState | None:
    """Return the state of the active log, or None if it doesn't exist, or if it has gone."""
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
"""The most segments whose transactions are cached."""


class _Known(NamedTuple):
    """The transactions up to a log end offset, and the time at which they may be read again."""

    log_end: int
    read: ReadCommitted
    stays_until: float


class CommittedView:
    """The transactions of a partition, read on first use, and cached while the log is unchanged."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stable: _Known | None = None
        self._by_base: OrderedDict[int, _Known] = OrderedDict()

    def known_last_stable_offset(self, log_end: int) -> int | None:
        """Return the same as `last_stable_offset` if nothing has to be read for it, otherwise None."""
        known = self._stable
        return None if known is None or _is_stale(known, log_end) else _stable_of(known, log_end)

    def last_stable_offset(self, partition: PartitionLog, log_end: int) -> int:
        """Return the first undecided offset: the oldest open transaction's, or the end of the log.

        Raises OpenError if a log can't be opened.
        """
        if not partition.segments:
            return log_end
        with self._lock:
            known = self._stable
            if known is None or _is_stale(known, log_end):
                known = self._stable = self._read(partition, log_end, len(partition.segments) - 1)
        return _stable_of(known, log_end)

    def known_aborted(self, partition: PartitionLog, offsets: range) -> list[tuple[int, int]] | None:
        """Return the same as `find_aborted` if nothing has to be read for it, otherwise None."""
        known = self._by_base.get(partition.base_offsets[partition.floor_slot(offsets.start) or 0])
        return None if known is None or known.log_end < offsets.stop else _aborted_within(known, offsets)

    def find_aborted(self, partition: PartitionLog, log_end: int, offsets: range) -> list[tuple[int, int]]:
        """Return aborted transactions that overlap some offsets, as (producer id, first offset), by first offset.

        Raises OpenError if a log can't be opened.
        """
        slot = partition.floor_slot(offsets.start) or 0
        base = partition.base_offsets[slot]
        with self._lock:
            known = self._by_base.get(base)
            if known is None or known.log_end < offsets.stop:  # a closed segment may have grown before
                known = self._read(partition, log_end, slot)
            self._by_base.move_to_end(base)
        return _aborted_within(known, offsets)

    def _read(self, partition: PartitionLog, log_end: int, slot: int) -> _Known:
        """Read the transactions of a segment, and keep them. The caller holds the lock."""
        started, (base, end, *_) = monotonic(), [*partition.base_offsets[slot : slot + 2], MOST]
        read = read_committed(partition.segments, partition, base, end)
        now = monotonic()
        known = self._by_base[base] = _Known(log_end, read, now + REST * (now - started))
        while len(self._by_base) > MOST_SEGMENTS:
            self._by_base.popitem(last=False)
        return known


def _stable_of(known: _Known, log_end: int) -> int:
    open_from = known.read.last_stable_offset
    return min(log_end if open_from is None else open_from, known.log_end, log_end)


def _aborted_within(known: _Known, offsets: range) -> list[tuple[int, int]]:
    return sorted(_reaching(known.read, offsets), key=lambda each: each[1])


def _is_stale(known: _Known, log_end: int) -> bool:
    return known.log_end != log_end and monotonic() >= known.stays_until


def _reaching(read: ReadCommitted, offsets: range) -> Iterator[tuple[int, int]]:
    for producer_id, spans in read.aborted.items():
        for begun, marker in spans:
            if begun < offsets.stop and marker >= offsets.start:
                yield producer_id, begun


HighWatermark = Literal["log-end", "checkpoint"]
MOST_PLACES = 1024
"""The most cached ends of answers, where the next fetches of the same clients begin."""
SETTLED_SECONDS = 10.0
"""The age of a log's last change before its end counts as damaged: it may be in the middle of a write."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The options for serving partitions.

    high_watermark: its source. is_strict: whether damage is an error for clients instead of being skipped.
    has_internal: whether Kafka's own topics are served too. mends_lz4: whether lz4 frames of format 0 are sent with
    corrected checksums. is_verbose: reports at the start which copy of each partition is served. is_quiet: reports
    nothing about copies at the start.
    """

    high_watermark: HighWatermark = "log-end"
    is_strict: bool = False
    has_internal: bool = True
    mends_lz4: bool = False
    is_verbose: bool = False
    is_quiet: bool = False


class ServedOffsets(NamedTuple):
    """A partition's offsets at one time: the first readable one, and the ends of the readable ones.

    The end is `last_stable_offset` for clients with read_committed, `high_watermark` for others.
    """

    log_start: int
    high_watermark: int
    log_end: int


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """Records of an answer as stored in a log: the log, and ranges of it, with their total size as length.

    first_offset: the first batch's. next_offset: the one after the last batch. mends: changed bytes in them, by
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
        """Yield the contents in order: stretches of the log, and the changed bytes between them."""
        return pieces_of(self.ranges, self.mends)

    def are_there(self) -> bool:
        """Return True if the same batches are still there and intact, by position and offset. Raises OpenError."""
        bounds = FetchBounds(self.first_offset, self.next_offset, len(self), takes_any_first=True)
        with LogFile(self.log.path, buffer_size=READ_AT_ONCE) as log_file:
            plan = next(plan_fetches(readable_batches(log_file.runs(self.ranges[0].position)), bounds))
        return (plan.ranges, plan.first_offset, plan.next_offset) == (self.ranges, self.first_offset, self.next_offset)


_WHOLE = ("", 0)
"""The key of reports about the whole partition."""


class _Place(NamedTuple):
    """The place of the first batch at or after some offset: the base offset of a segment, and a position in its log."""

    base_offset: int
    position: int
    is_after_an_answer: bool = False
    """True if an earlier answer ended here, so the client reads sequentially."""


class ServedPartition:
    """A partition that can be read from several threads.

    topic, number: as clients name it. listed: its listed directory; None for a partition that isn't here and is served
    as an empty one.
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
        """Take the partition name and directory.

        Args:
            topic: the topic's name for clients.
            number: the partition's number.
            listed: its directory.
            say: receives a report of skipped bytes, once.
            settings: the serving options.
            plans: the known plans of all partitions.
        """
        self.topic, self.number, self.listed = topic, number, listed
        self._say = say
        self._high_watermark = settings.high_watermark
        self.is_strict, self._mends_lz4 = settings.is_strict, settings.mends_lz4
        self._lock = Lock()
        self._places_lock = Lock()
        self._end = IntactEnd()
        self._state: FileState | None = None
        self._offsets: ServedOffsets | None = None
        self._looked_at = 0.0
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
        """True if damaged bytes were skipped."""
        return bool(self._told)

    def known_offsets(self) -> ServedOffsets | None:
        """Return its offsets if its files were just checked, otherwise None."""
        known = self._offsets
        return known if known is not None and monotonic() - self._looked_at < GROWTH_SECONDS else None

    def offsets(self) -> ServedOffsets:
        """Return its current offsets; checks its files at most every GROWTH_SECONDS.

        Raises OpenError if they can't be read.
        """
        with self._lock:
            known = self.known_offsets()
            if known is None:
                known = self._offsets = self._look_and_report(self._offsets)
                self._looked_at = monotonic()
            return known

    def _look_and_report(self, known: ServedOffsets | None) -> ServedOffsets:
        """Read the offsets; report an error once, since clients only see one that makes them try again."""
        try:
            return self._look(known)
        except KsegError as error:
            if _WHOLE not in self._told:
                self._told.add(_WHOLE)
                self._say(f"{self}: can no longer be read, so clients get an error: {error}")
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
            self._report_missed(segment, missed, is_active=True)
        start = min(self.listed.log_start_offset(), end)
        watermark = self.listed.checkpoints().high_watermark if self._high_watermark == "checkpoint" else None
        return ServedOffsets(start, end if watermark is None else min(max(watermark, start), end), end)

    def _forget(self) -> None:
        """Forget cached facts after the log was replaced."""
        self._places.clear()
        self._committed, self._epochs, self._producers = CommittedView(), None, None
        self._say(f"{self}: its log was truncated and rewritten, so clients beyond its end get an error")

    def last_stable_offset(self, offsets: ServedOffsets) -> int:
        """Return the end for clients with read_committed. Raises OpenError if a log can't be opened.

        At least the log start offset, even if a transaction was opened before it. Source:
        UnifiedLog.maybeIncrementFirstUnstableOffset.
        """
        if self.listed is None:
            return offsets.high_watermark
        return _within(self._committed.last_stable_offset(self.listed, offsets.log_end), offsets)

    def known_last_stable_offset(self, offsets: ServedOffsets) -> int | None:
        """Return the same as `last_stable_offset` if nothing has to be read for it, otherwise None."""
        if self.listed is None:
            return offsets.high_watermark
        stable = self._committed.known_last_stable_offset(offsets.log_end)
        return None if stable is None else _within(stable, offsets)

    def find_aborted(self, plan: FetchPlan, offsets: ServedOffsets) -> list[tuple[int, int]]:
        """Return aborted transactions in a planned answer, as (producer id, first offset)."""
        if self.listed is None or not plan.ranges:
            return []
        return self._committed.find_aborted(self.listed, offsets.log_end, plan.offsets)

    def known_aborted(self, plan: FetchPlan) -> list[tuple[int, int]] | None:
        """Return the same as `find_aborted` if nothing has to be read for it, otherwise None."""
        if self.listed is None or not plan.ranges:
            return []
        return self._committed.known_aborted(self.listed, plan.offsets)

    def size(self) -> int:
        """Return the size of its logs now in bytes. Raises OpenError if its directory can't be listed."""
        return 0 if self.listed is None else PartitionLog(self.listed.path).size

    def noted_epochs(self) -> EpochStarts:
        """Return the leader epochs of the broker's checkpoint. Raises OpenError if a log can't be opened."""
        end = self.offsets().log_end
        return EpochStarts() if self.listed is None else noted_epochs(self.listed, end)

    def latest_epoch(self) -> int:
        """Return the last leader epoch, -1 if unknown. Raises OpenError if a log can't be opened."""
        end = PartitionEnd(self.offsets().log_end, None)
        return UNKNOWN if self.listed is None else latest_epoch(self.listed, end)

    def leader_epochs(self) -> EpochStarts:
        """Return all known leader epochs. Raises OpenError if a log can't be opened."""
        end = self.offsets().log_end
        if self.listed is None:
            return EpochStarts()
        known = self._epochs
        if known is None or known[0] != end:
            known = self._epochs = end, all_epochs(self.listed, end)
        return known[1]

    def producers(self) -> tuple[ProducerState, ...]:
        """Return its producers, from the newest snapshot and the batches after it.

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
        """Return the first offset on the broker's own disk, for a partition served with its tier."""
        return offsets.log_start if self.listed is None else min(self.listed.disk_start_offset, offsets.log_end)

    def find_time(self, timestamp: int | SpecialTime, end_offset: int) -> tuple[int, int, int] | None:
        """Find the first record at or after a time, below an end: its offset, timestamp and leader epoch.

        Returns None if there is none. Raises OpenError if a log can't be opened.
        """
        if self.listed is None:
            return None
        found = lookup_time(self.listed, timestamp)
        record, batch = found.record, found.batch
        if record is None or batch is None or record.offset >= end_offset:
            return None
        return record.offset, record.timestamp, batch.partition_leader_epoch

    def plan(self, bounds: FetchBounds) -> tuple[StoredLog, FetchPlan] | None:
        """Plan the answer to a fetch: a log, and ranges of it. Returns None if no batch is wanted.

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

    def known_plan(self, bounds: FetchBounds) -> tuple[StoredLog, FetchPlan] | None:
        """Return the same as `plan` if no log has to be read for it, otherwise None."""
        planned = None if self._mends_lz4 else self._plans.find(str(self), bounds)
        return None if planned is None else self._answer(planned, ())

    def _answer(self, planned: Planned, missed: Iterable[Missed]) -> tuple[StoredLog, FetchPlan]:
        """Return the answer of a plan; `missed`: skipped bytes before its segment."""
        segment, log, plan = planned
        self._tell_all(segment, plan.missed)
        self._remember(plan.next_offset, _Place(segment.base_offset, plan.end, is_after_an_answer=True))
        return log, plan._replace(missed=(*missed, *plan.missed), mends=self._mends(segment, plan))

    def _keep(self, bounds: FetchBounds, planned: Sequence[Planned], *, is_whole: bool) -> None:
        """Keep the plan for a fetch, unless its answer skips segments, and the plans for the following fetches."""
        if is_whole:
            self._plans.keep(str(self), bounds, planned[0])
        for before, following in pairwise(planned):
            self._plans.keep(str(self), bounds._replace(first_offset=before.plan.next_offset), following)

    def _mends(self, segment: SegmentFiles, plan: FetchPlan) -> tuple[Mend, ...]:
        """Return the changed bytes in an answer from a segment. Raises OpenError if its log can't be opened."""
        if not self._mends_lz4:
            return ()
        with LogFile(segment.path, buffer_size=READ_AT_ONCE) as log_file:
            return tuple(mends_in(log_file, plan.ranges))

    def _place_of(self, partition: PartitionLog, offset: int) -> _Place:
        """Return the place to look for an offset: the end of an answer, or by the index."""
        with self._places_lock:
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
        with self._places_lock:
            self._places[offset] = place
            while len(self._places) > MOST_PLACES:
                self._places.popitem(last=False)

    def _tell_all(self, segment: SegmentFiles, missed: Iterable[Missed]) -> None:
        for each in missed:
            is_active = self.listed is not None and segment.path == self.listed.segments[-1].path
            self._report_missed(segment, each, is_active=is_active)

    def _report_missed(self, segment: SegmentFiles, missed: Missed, *, is_active: bool) -> None:
        """Report skipped bytes of a segment, once."""
        key = (segment.path.name, missed.position)
        is_tail = missed.next_offset is None
        if key in self._told or (is_active and is_tail and self._may_be_written()):
            return
        self._told.add(key)
        done = "clients get an error there" if self.is_strict and not is_tail else "kseg passes over it"
        self._say(f"{segment.path}: position {missed.position}: {missed.detail}: {_lost_text(missed)}; {done}")

    def _may_be_written(self) -> bool:
        return self._state is not None and time() - self._state[2] / 1e9 < SETTLED_SECONDS


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


def _within(stable: int, offsets: ServedOffsets) -> int:
    """Return a last stable offset within the readable offsets."""
    return min(max(stable, offsets.log_start), offsets.high_watermark)


def _lost_text(missed: Missed) -> str:
    """Return the text about unreadable offsets."""
    if missed.next_offset is None:
        return f"offsets from {missed.first_offset} on"
    last = missed.next_offset - 1
    if last < missed.first_offset:
        return "no offset is missing"
    return f"offset {last}" if last == missed.first_offset else f"offsets {missed.first_offset} to {last}"
