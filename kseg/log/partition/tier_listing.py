"""What `kseg ls` shows of segments in a remote tier: what their manifests tell, and whether the log has them."""

from collections import Counter
from typing import NamedTuple

from kseg.formats.codes import NO_TIMESTAMP
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.partition.segment_listing import SegmentListing, TierFacts
from kseg.tiered.layouts import TierLayout
from kseg.tiered.lineage import Choice, Standing
from kseg.tiered.placed_tiers import PlacedPartition, placed_at


class TierSums(NamedTuple):
    """A partition's segments in a remote tier, summed up.

    layout: whose they are. stored_size: bytes of all objects. key_ids: of the key pairs that they are encrypted with.
    standings: how many segments there are of each, without those that are used as a whole. local_start: where the
    local log begins that it was joined with; None without one.
    """

    layout: str
    stored_size: int
    key_ids: tuple[str, ...]
    standings: tuple[tuple[str, int], ...]
    local_start: int | None = None


def tier_sums(partition: PartitionLog) -> TierSums | None:
    """The sums of a partition; None if it isn't in a tier."""
    placed = placed_at(partition.path)
    if placed is None:
        return None
    segments = placed.remote.segments
    counts: Counter[Standing] = Counter(
        choice.standing for choice in placed.choices if choice.standing is not Standing.USED
    )
    return TierSums(
        str(placed.remote.layout),
        sum(segment.stored_size for segment in segments),
        tuple(sorted({segment.key_id for segment in segments if segment.key_id is not None})),
        tuple((str(standing), counts[standing]) for standing in Standing if counts[standing]),
        placed.local_start,
    )


def tier_facts(partition: PartitionLog, base_offset: int) -> TierFacts | None:
    """What is known of a segment that the log has from a tier; None if it is a local one."""
    placed = placed_at(partition.path)
    choice = None if placed is None else placed.used_at(base_offset)
    return None if choice is None else _facts(choice)


def listing_by_manifest(partition: PartitionLog, segment: SegmentFiles, *, is_deep: bool) -> SegmentListing | None:
    """The line of a segment by its manifest, if its key wasn't given, or if a look costs whole chunks; else None."""
    placed = placed_at(partition.path)
    choice = None if placed is None else placed.used_at(segment.base_offset)
    if placed is None or choice is None or choice.segment.max_timestamp is None:
        return None
    if _lacks_key(placed, choice):
        row = _listing(choice, f"encrypted with {choice.segment.key_id}")
    elif not is_deep and not placed.store.is_near and placed.remote.layout is TierLayout.AIVEN:
        row = _listing(choice, "not read")
    else:
        return None
    return row._replace(tier=_facts(choice)._replace(is_by_manifest=True))


def unused_listings(partition: PartitionLog) -> tuple[SegmentListing, ...]:
    """The lines of segments in the tier that the log doesn't have: others count, or they can't be used."""
    placed = placed_at(partition.path)
    if placed is None:
        return ()
    return tuple(_listing(choice, str(choice.standing)) for choice in placed.choices if not choice.is_used)


def _lacks_key(placed: PlacedPartition, choice: Choice) -> bool:
    key_id = choice.segment.key_id
    return key_id is not None and not placed.keys.has(key_id)


def _listing(choice: Choice, health: str) -> SegmentListing:
    segment = choice.segment
    return SegmentListing(
        segment.base_offset,
        segment.size,
        last_offset=segment.end_offset,
        largest_timestamp=NO_TIMESTAMP if segment.max_timestamp is None else segment.max_timestamp,
        modified_ms=segment.modified_ms,
        index_health=health,
        tier=_facts(choice),
    )


def _facts(choice: Choice) -> TierFacts:
    segment = choice.segment
    return TierFacts(str(choice.standing), segment.stored_size, segment.key_id, segment.segment_id)
