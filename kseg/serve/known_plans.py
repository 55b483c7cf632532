"""Plans of fetches that were made before: what was checked once goes out again without being read."""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from kseg.log.partition.segment_files import SegmentFiles
from kseg.serve.fetch_plan import FetchBounds, FetchPlan
from kseg.serve.stored_log import StoredLog, stored_log

MOST_PLANS = 16_384
"""Of all partitions together: 16 GiB for clients that fetch a MiB at a time, and some 16 MiB of memory at most."""


class Planned(NamedTuple):
    """A plan for a fetch from a segment; for its log as it was then."""

    segment: SegmentFiles
    log: StoredLog
    plan: FetchPlan


class KnownPlans:
    """The plans that were made last, or asked for last; may be used by several threads."""

    def __init__(self, most: int = MOST_PLANS) -> None:
        """Knows none; keeps so many."""
        self._most = most
        self._lock = Lock()
        self._plans: OrderedDict[tuple[str, FetchBounds], Planned] = OrderedDict()

    def find(self, partition: str, bounds: FetchBounds) -> Planned | None:
        """The plan for a fetch from a partition, if its log is as it was."""
        key = partition, bounds
        with self._lock:
            planned = self._plans.get(key)
            if planned is None:
                return None
            self._plans.move_to_end(key)
        if stored_log(planned.segment.path) == planned.log:
            return planned
        with self._lock:
            self._plans.pop(key, None)
        return None

    def keep(self, partition: str, bounds: FetchBounds, planned: Planned) -> None:
        """Keeps a plan, instead of the one that was not asked for for the longest time."""
        with self._lock:
            self._plans[partition, bounds] = planned
            while len(self._plans) > self._most:
                self._plans.popitem(last=False)
