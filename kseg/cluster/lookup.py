"""Finds an offset or a time in the copies of a partition."""

from kseg.cluster.metadata_copy import CHEAP_METADATA, MetadataBeside
from kseg.cluster.remote_tier import RemoteCopies, find_tier
from kseg.cluster.replicas import PartitionReplicas, are_gapless
from kseg.log.lookup import Absence, Lookup, SpecialTime, look_up
from kseg.log.partition import PartitionLog, RemoteTier
from kseg.log.selection import EVERYTHING, Selection

_DAMAGED = (Absence.DAMAGED, Absence.DAMAGED_END)


def look_up_in_copies(
    partition: PartitionReplicas[PartitionLog],
    target: int | SpecialTime,
    selection: Selection = EVERYTHING,
    *,
    is_time: bool = False,
) -> Lookup:
    """Where a target lies in the best copy; an offset that was lost there, in the first copy that has it intact.

    Raises OpenError if a log can't be opened.
    """
    answer = _look_up(partition.best, target, selection, is_time=is_time)
    is_lost = answer.absence in _DAMAGED or (answer.absence is Absence.GAP and are_gapless(partition.copies))
    if is_time or not is_lost:
        return answer
    for copy in partition.copies[1:]:
        if copy.agreed_end is None or int(target) < copy.agreed_end:
            other = _look_up(copy.place, target, selection, is_time=False)
            if other.absence is None:
                return other
    return answer


def _look_up(place: PartitionLog, target: int | SpecialTime, selection: Selection, *, is_time: bool) -> Lookup:
    tier = _tier_for(place, target) if selection.is_everything else None
    return look_up(place, target, selection, is_time=is_time, tier=tier)


def _tier_for(place: PartitionLog, target: int | SpecialTime) -> RemoteTier | None:
    """The tier: with the highest offset only if that is looked for. Large metadata aren't read."""
    tier = find_tier(place, MetadataBeside(CHEAP_METADATA))
    if tier is None or target is not SpecialTime.LATEST_TIERED:
        return tier
    return tier._replace(highest_offset=RemoteCopies().highest_offset(place))
