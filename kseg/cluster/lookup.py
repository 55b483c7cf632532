"""Finds an offset or a time in the copies of a partition."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.metadata_copy import CHEAP_METADATA, MetadataBeside
from kseg.cluster.remote_tier import RemoteCopies, find_tier
from kseg.cluster.replicas import PartitionReplicas, are_gapless
from kseg.log.lookup import Absence, Lookup, SpecialTime, look_up
from kseg.log.partition import PartitionLog, RemoteTier
from kseg.log.selection import EVERYTHING, Selection

_DAMAGED = (Absence.DAMAGED, Absence.DAMAGED_END)
_OF_THE_BEST = (
    SpecialTime.EARLIEST,
    SpecialTime.EARLIEST_LOCAL,
    SpecialTime.LATEST,
    SpecialTime.LATEST_TIERED,
)
"""Times that are bounds of a log."""


class _Tiers(NamedTuple):
    """The remote tiers of partitions, as metadata and checkpoints tell; large metadata aren't read."""

    beside: MetadataBeside
    log_dirs: tuple[Path, ...]

    def of(self, place: PartitionLog, target: int | SpecialTime) -> RemoteTier | None:
        """Return the tier, with the highest offset only if that is looked for."""
        tier = find_tier(place, self.beside)
        if tier is None or target is not SpecialTime.LATEST_TIERED:
            return tier
        return tier._replace(highest_offset=RemoteCopies(self.log_dirs).highest_offset(place))


def look_up_in_copies(
    partition: PartitionReplicas[PartitionLog],
    target: int | SpecialTime,
    selection: Selection = EVERYTHING,
    *,
    is_time: bool = False,
    log_dirs: Iterable[Path] = (),
    say: Callable[[str], None] | None = None,
) -> Lookup:
    """Where a target lies in the best copy; what was lost there, in a copy that has it.

    An offset is taken from the first copy that has it intact. Of times and selections the first record of all copies
    counts, as far as they agree. log_dirs: where the cluster's metadata may be, which tell of tiers; not read before
    they are needed. say: is called with large metadata, which aren't read. Raises OpenError if a log can't be opened.
    """
    dirs = tuple(log_dirs)
    tiers = _Tiers(MetadataBeside(CHEAP_METADATA, None if say is None else partial(_say_unread, say), dirs), dirs)
    answer = _look_up(partition.best, target, selection, is_time, tiers)
    if selection.is_everything and target in _OF_THE_BEST:
        return answer
    is_search = is_time or not selection.is_everything
    may_be_lost = is_search or answer.absence is Absence.GAP
    is_lost = answer.absence in _DAMAGED or (may_be_lost and are_gapless(partition.copies))
    others = _found_in_others(partition, target, selection, is_time, tiers) if is_lost else iter(())
    if not is_search:
        return next(others, answer)
    start = answer.log_start_offset
    of_others = [each for each in others if each.record is not None and each.record.offset >= start]
    found = of_others if answer.record is None else [answer, *of_others]
    return max(found, key=partial(_rank, target), default=answer)


def _say_unread(say: Callable[[str], None], path: Path, reason: str) -> None:
    say(f"{path}: not read: {reason}: the tier is told by checkpoints alone; `kseg retain` reads metadata of any size")


def _rank(target: int | SpecialTime, found: Lookup) -> tuple[int, int]:
    """The higher, the better a record answers a search."""
    assert found.record is not None
    offset = found.record.offset
    if target is SpecialTime.MAX_TIMESTAMP:
        return found.record.timestamp, -offset
    return (offset, 0) if target is SpecialTime.LATEST else (-offset, 0)


def _found_in_others(
    partition: PartitionReplicas[PartitionLog],
    target: int | SpecialTime,
    selection: Selection,
    is_time: bool,
    tiers: _Tiers,
) -> Iterator[Lookup]:
    """What the other copies have found, as far as they agree with the best one."""
    for copy in partition.copies[1:]:
        end = copy.agreed_end
        if is_time or end is None or int(target) < end:
            found = _look_up(copy.place, target, selection, is_time, tiers)
            if found.record is not None and (end is None or found.record.offset < end):
                yield found


def _look_up(
    place: PartitionLog, target: int | SpecialTime, selection: Selection, is_time: bool, tiers: _Tiers
) -> Lookup:
    tier = tiers.of(place, target) if selection.is_everything else None
    return look_up(place, target, selection, is_time=is_time, tier=tier)
