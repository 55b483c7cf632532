"""Segments as `kseg ls` lists them, local and remote, and the metadata log's retention. Source: KafkaRaftLog."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kseg.formats.codes import NO_TIMESTAMP
from kseg.log.partition import PartitionLog
from kseg.log.segments import RetainedSegment, Retention, RollReason, SegmentFiles
from kseg.reading.blocks import Damage
from kseg.tiered.placed_tiers import Choice, PlacedPartition, Standing, placed_at
from kseg.tiered.places import TierLayout

OK = "ok"
"""The health of indexes without problems."""


class TierFacts(NamedTuple):
    """Facts about a segment in a remote tier that its records don't show.

    standing: its role in the log. stored_size: bytes of its objects. key_id: of the key pair of its encryption, None
    without encryption. segment_id: its uuid, None where names don't have one. is_by_manifest: no record of it was
    read.
    """

    standing: str
    stored_size: int
    key_id: str | None
    segment_id: str | None
    is_by_manifest: bool = False


class SelectedRow(NamedTuple):
    """Sums of the selected records in a segment, or in several.

    size: bytes of the batches. first_timestamp, largest_timestamp: -1 if no record has a timestamp.
    """

    records: int = 0
    batches: int = 0
    size: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int = -1
    largest_timestamp: int = -1


class SegmentListing(NamedTuple):
    """A segment's line.

    last_offset: of its last batch, None if there is none. first_timestamp, largest_timestamp: -1 if there is none.
    codecs, magics: of all batches that were read. modified_ms: time of the log's last write. index_health: OK, or the
    problems. These are None unless every header was read: records, batches, ratio (decompressed bytes by stored bytes,
    of compressed batches), producer_ids, open_transactions, first_open_offset (of the oldest of these).
    aborted_transactions: entries of the transaction index. damage: the first one, except for the normal end of an
    active segment during writes. selected: the selected records, None without a selection. cached_size: bytes of the
    log in the page cache before it was read, None if not requested or if the system doesn't report it. tier: None if
    it isn't in a remote tier.
    """

    base_offset: int
    size: int
    last_offset: int | None = None
    first_timestamp: int = NO_TIMESTAMP
    largest_timestamp: int = NO_TIMESTAMP
    modified_ms: int = NO_TIMESTAMP
    codecs: tuple[int, ...] = ()
    magics: tuple[int, ...] = ()
    index_entries: int = 0
    time_index_entries: int = 0
    index_health: str = OK
    aborted_transactions: int = 0
    records: int | None = None
    batches: int | None = None
    ratio: float | None = None
    producer_ids: tuple[int, ...] | None = None
    open_transactions: int | None = None
    first_open_offset: int | None = None
    damage: Damage | None = None
    rolled: RollReason = RollReason.UNKNOWN
    retention: Retention | None = None
    selected: SelectedRow | None = None
    cached_size: int | None = None
    tier: TierFacts | None = None

    @property
    def is_unhealthy(self) -> bool:
        """True if its indexes have a problem."""
        return self.index_health != OK and not (self.tier is not None and self.tier.is_by_manifest)

    @property
    def age_timestamp(self) -> int:
        """Return the timestamp that determines the age of the segment.

        Source: LogSegment.largestTimestamp.
        """
        return self.largest_timestamp if self.largest_timestamp >= 0 else self.modified_ms


def retained_segments(rows: Sequence[SegmentListing], log_end_offset: int) -> list[RetainedSegment]:
    """Return the segments of a partition, oldest first, with the facts that retention needs."""
    ends = [*(row.base_offset for row in rows[1:]), log_end_offset]
    return [
        RetainedSegment(row.size, row.age_timestamp, end, is_dated_by_file=row.largest_timestamp < 0)
        for row, end in zip(rows, ends, strict=False)
    ]


class TierSums(NamedTuple):
    """Sums over the segments of a partition in a remote tier.

    layout: the tier's layout. stored_size: bytes of all objects. key_ids: of the key pairs of their encryption.
    standings: the number of segments of each, except completely used ones. local_start: the start of the local log
    that was joined with the tier; None without one.
    """

    layout: str
    stored_size: int
    key_ids: tuple[str, ...]
    standings: tuple[tuple[str, int], ...]
    local_start: int | None = None


def tier_sums(partition: PartitionLog) -> TierSums | None:
    """Return the sums of a partition, or None if it isn't in a tier."""
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
    """Return the facts about a segment from a tier, or None for a local segment."""
    placed = placed_at(partition.path)
    choice = None if placed is None else placed.used_at(base_offset)
    return None if choice is None else _facts(choice)


def listing_by_manifest(partition: PartitionLog, segment: SegmentFiles, *, is_deep: bool) -> SegmentListing | None:
    """Return the line of a segment by its manifest, if its key is missing or a look costs complete chunks.

    Else None.
    """
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
    """Return the lines of segments in the tier that the log doesn't use: others replace them, or they are unusable."""
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
