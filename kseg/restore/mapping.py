"""The map from a source's offsets to the target's, range by range."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from kseg.coordinators.offset_map import OffsetRange
from kseg.reading.blocks import Damage
from kseg.reading.bodies import with_bodies
from kseg.restore.plan import Plan, PlannedPartition
from kseg.restore.source import Walk, columns_of


class _Run(NamedTuple):
    """Offsets without a gap, from `first` to before `end`."""

    first: int
    end: int


def offset_ranges(plan: Plan) -> Iterator[OffsetRange]:
    """Yield the ranges of all partitions; the logs are read again. Raises OpenError."""
    for planned in plan.partitions:
        source, (topic, _) = planned.source, planned.place
        target = planned.base
        for run in _join_runs(_runs(planned)):
            yield OffsetRange(source.topic, source.partition, run.first, run.end, topic, target)
            target += run.end - run.first
        end = planned.survey.end_offset
        yield OffsetRange(source.topic, source.partition, end, end, topic, target)


def _join_runs(runs: Iterator[_Run]) -> Iterator[_Run]:
    """Join runs that follow each other without a gap."""
    last: _Run | None = None
    for run in runs:
        if last is None or run.first != last.end:
            if last is not None:
                yield last
            last = run
        else:
            last = _Run(last.first, run.end)
    if last is not None:
        yield last


def _runs(planned: PlannedPartition) -> Iterator[_Run]:
    """Yield the runs of restored records, those of each piece of the log by themselves."""
    source = planned.source
    for _, log_file, items in Walk(source).logs():
        for piece in with_bodies(items, log_file.stored_size):
            if isinstance(piece, Damage):
                continue
            offsets = memoryview(columns_of(piece, source.filter_of(piece)).offsets).cast("B").cast("q")
            first = 0
            while first < len(offsets):
                # Offsets grow, so their distance from their numbers never shrinks: it says where a run ends.
                distance = offsets[first] - first
                last = bisect_right(range(len(offsets)), distance, first, key=lambda at: offsets[at] - at)
                yield _Run(offsets[first], offsets[last - 1] + 1)
                first = last
