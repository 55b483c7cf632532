"""A served partition: its offsets, its leader epochs and producers, and the plans of fetches from it."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.index.producers import ProducerState
from kseg.log.lineage import UNKNOWN, EpochStarts, all_epochs, latest_epoch, noted_epochs
from kseg.log.lookup import SpecialTime, lookup_time
from kseg.log.partition import PartitionEnd, PartitionLog
from kseg.log.side_files import states_at
from kseg.serve.committed_view import CommittedView
from kseg.serve.fetch_batches import FetchBounds, FetchPlan
from kseg.serve.fetch_plans import KnownPlans, PartitionPlans
from kseg.serve.intact_end import IntactEnd, state_of
from kseg.serve.missed_reports import MissedReports
from kseg.serve.stored_records import StoredLog
from kseg.serve.values import GROWTH_SECONDS, ServeSettings


class ServedOffsets(NamedTuple):
    """A partition's offsets at one time: the first readable one, and the ends of the readable ones.

    The end is `last_stable_offset` for clients with read_committed, `high_watermark` for others.
    """

    log_start: int
    high_watermark: int
    log_end: int


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
        self.is_strict = settings.is_strict
        self._lock = Lock()
        self._end = IntactEnd()
        self._offsets: ServedOffsets | None = None
        self._looked_at = 0.0
        self._committed = CommittedView()
        self._reports = MissedReports(str(self), say, is_strict=settings.is_strict)
        self._plans = PartitionPlans(str(self), plans, self._reports, settings)
        self._epochs: tuple[int, EpochStarts] | None = None
        self._producers: tuple[int, tuple[ProducerState, ...]] | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"

    @property
    def has_missed(self) -> bool:
        """True if damaged bytes were skipped."""
        return bool(self._reports)

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
        """Read the offsets; report an error once."""
        try:
            return self._look(known)
        except KsegError as error:
            self._reports.report_unreadable(error)
            raise

    def _look(self, known: ServedOffsets | None) -> ServedOffsets:
        if self.listed is None:
            return ServedOffsets(0, 0, 0)
        bases = self.listed.base_offsets
        self.listed = self.listed.relist()
        if self.listed.base_offsets[: len(bases)] != bases:
            self._plans.forget()
        state = state_of(self.listed)
        if known is not None and state == self._reports.active:
            return known
        self._reports.active = state
        end = self._end.read(self.listed)
        if self._end.was_cut:
            self._forget()
        if self._end.tail is not None:
            self._reports.report_tail(*self._end.tail)
        start = min(self.listed.log_start_offset(), end)
        watermark = self.listed.checkpoints().high_watermark if self._high_watermark == "checkpoint" else None
        return ServedOffsets(start, end if watermark is None else min(max(watermark, start), end), end)

    def _forget(self) -> None:
        """Forget cached facts after the log was replaced."""
        self._plans.forget()
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
        return None if self.listed is None or not self.listed.segments else self._plans.make(self.listed, bounds)

    def known_plan(self, bounds: FetchBounds) -> tuple[StoredLog, FetchPlan] | None:
        """Return the same as `plan` if no log has to be read for it, otherwise None."""
        return self._plans.find(bounds)


def _within(stable: int, offsets: ServedOffsets) -> int:
    """Return a last stable offset within the readable offsets."""
    return min(max(stable, offsets.log_start), offsets.high_watermark)
