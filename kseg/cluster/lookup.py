"""Lookups of an offset or a time in the copies of a partition."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from kseg.cluster.joined_log import first_offset
from kseg.cluster.metadata_copy import CHEAP_METADATA, AdjacentMetadata
from kseg.cluster.remote_tier import RemoteCopies, find_tier, find_whole_tier
from kseg.cluster.replicas import PartitionReplicas, are_gapless
from kseg.log.lookup import Absence, Lookup, SpecialTime, look_up
from kseg.log.partition import PartitionLog, RemoteTier
from kseg.log.selection import EVERYTHING, Selection

_DAMAGED = (Absence.DAMAGED, Absence.DAMAGED_END)
_OF_COPIES = (SpecialTime.LATEST_TIERED, SpecialTime.EARLIEST_PENDING_UPLOAD)
"""Special times that are limits of the offsets copied to a remote tier."""
_OF_THE_BEST = (
    SpecialTime.EARLIEST,
    SpecialTime.EARLIEST_LOCAL,
    SpecialTime.LATEST,
    *_OF_COPIES,
)
"""Special times that are limits of a log."""


class _Tiers(NamedTuple):
    """The remote tiers of partitions, by metadata and checkpoints."""

    metadata: AdjacentMetadata

    def of(self, place: PartitionLog, target: int | SpecialTime) -> RemoteTier | None:
        """Return the tier, with the highest offset only if the target needs it."""
        if target in _OF_COPIES:
            return find_whole_tier(place, self.metadata, RemoteCopies(self.metadata.log_dirs))
        return find_tier(place, self.metadata)


def look_up_in_copies(
    partition: PartitionReplicas[PartitionLog],
    target: int | SpecialTime,
    selection: Selection = EVERYTHING,
    *,
    is_time: bool = False,
    beside: AdjacentMetadata | None = None,
) -> Lookup:
    """Look up a record in the best copy, or in another copy if the best one has lost it.

    An offset is read from the first copy that has it intact. Of times and selections the first record of all copies
    counts, as far as they agree, if the best one lost it; a record that compaction removed doesn't count.

    beside: the cluster's metadata, which know tiers; not read before they are needed. Without it, metadata next to the
    partition are used if they are small. Raises OpenError if a log can't be opened.
    """
    tiers = _Tiers(beside or AdjacentMetadata(CHEAP_METADATA))
    answer = _look_up(partition.best, target, selection, is_time, tiers)
    if selection.is_everything and target in _OF_THE_BEST:
        return answer
    others = _look_up_in_others(partition, target, selection, is_time, tiers)
    if not is_time and selection.is_everything:
        may_be_lost = answer.absence is Absence.GAP and are_gapless(partition.copies)
        return next(others, answer) if may_be_lost or answer.absence in _DAMAGED else answer
    start = answer.log_start_offset
    better = [each for each in others if each.record is not None and each.record.offset >= start]
    if answer.record is not None:
        better = [each for each in better if _rank(target, each) > _rank(target, answer)]
    if not better or are_gapless(partition.copies):
        return max(better, key=partial(_rank, target), default=answer)
    if isinstance(target, SpecialTime):
        better.sort(key=partial(_rank, target), reverse=True)
        return next((each for each in better if _lacks_only_by_damage(partition.best, each)), answer)
    return _first_of_whole(partition, target, selection, answer, better) or answer


def _rank(target: int | SpecialTime, found: Lookup) -> tuple[int, int]:
    """Return the rank of a record as the answer to a search; higher is better."""
    assert found.record is not None
    offset = found.record.offset
    if target is SpecialTime.MAX_TIMESTAMP:
        return found.record.timestamp, -offset
    return (offset, 0) if target is SpecialTime.LATEST else (-offset, 0)


def _look_up_in_others(
    partition: PartitionReplicas[PartitionLog],
    target: int | SpecialTime,
    selection: Selection,
    is_time: bool,
    tiers: _Tiers,
) -> Iterator[Lookup]:
    """Yield the other copies' answers, as far as they agree with the best one."""
    for copy in partition.copies[1:]:
        end = copy.agreed_end
        if is_time or end is None or int(target) < end:
            found = _look_up(copy.place, target, selection, is_time, tiers)
            if found.record is not None and (end is None or found.record.offset < end):
                yield found


def _lacks_only_by_damage(best: PartitionLog, other: Lookup) -> bool:
    """Return True if damage is where another copy has its record; otherwise the cleaner may have removed it."""
    return (
        other.record is not None and look_up(best, other.record.offset, EVERYTHING, is_time=False).absence in _DAMAGED
    )


def _first_of_whole(
    partition: PartitionReplicas[PartitionLog], target: int, selection: Selection, answer: Lookup, better: list[Lookup]
) -> Lookup | None:
    """Return the first record of the log with damaged batches from another copy, or None if the best one has it."""
    first = min(each.record.offset for each in better if each.record is not None)
    wanted = selection._replace(from_offset=max(first, selection.first_offset))
    if answer.is_time:
        wanted = wanted._replace(from_time=max(target, target if selection.from_time is None else selection.from_time))
    offset = first_offset(partition, wanted)
    if offset is None or (answer.record is not None and offset >= answer.record.offset):
        return None
    rest = selection._replace(from_offset=offset)
    found = (look_up(copy.place, target, rest, is_time=answer.is_time) for copy in partition.copies)
    return next((each for each in found if each.record is not None and each.record.offset == offset), None)


def _look_up(
    place: PartitionLog, target: int | SpecialTime, selection: Selection, is_time: bool, tiers: _Tiers
) -> Lookup:
    tier = tiers.of(place, target) if selection.is_everything else None
    return look_up(place, target, selection, is_time=is_time, tier=tier)
