"""A segment's line of `kseg ls`."""

from collections.abc import Sequence
from typing import NamedTuple

from kseg.formats.codes import NO_TIMESTAMP
from kseg.log.partition.roll import RetainedSegment, Retention, Rolled
from kseg.reading.damage import Damage

OK = "ok"
"""The health of indexes that have nothing wrong."""


class TierFacts(NamedTuple):
    """What is known of a segment in a remote tier, beside what its records tell.

    standing: what it counts for. stored_size: bytes of its objects. key_id: of the key pair that it is encrypted with,
    None if it isn't. segment_id: its uuid, None where names don't have one. is_by_manifest: nothing of it was read.
    """

    standing: str
    stored_size: int
    key_id: str | None
    segment_id: str | None
    is_by_manifest: bool = False


class SelectedRow(NamedTuple):
    """Sums of what is selected in a segment, or in several.

    size: bytes of the batches. first_timestamp, largest_timestamp: -1 if no record has a time.
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
    codecs, magics: of all batches that were read. modified_ms: when the log was written last. index_health: OK, or
    what is wrong. These are None unless every header was read: records, batches, ratio (decompressed bytes by stored
    ones, for compressed batches), producer_ids, open_transactions, first_open_offset (of the oldest of these).
    aborted_transactions: entries of the transaction index. damage: the first that was met, except for how an active
    segment may end while it is written. selected: what is selected in the segment, None without a selection.
    cached_size: bytes of the log in the page cache before it was read, None if not asked for or if the system doesn't
    say. tier: None if it isn't in a remote tier.
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
    rolled: Rolled = Rolled.UNKNOWN
    retention: Retention | None = None
    selected: SelectedRow | None = None
    cached_size: int | None = None
    tier: TierFacts | None = None

    @property
    def is_unhealthy(self) -> bool:
        """Whether something is wrong with its indexes."""
        return self.index_health != OK and not (self.tier is not None and self.tier.is_by_manifest)

    @property
    def age_timestamp(self) -> int:
        """What a broker reckons its age from: the largest time or, if no record has one, when its log was written.

        Source: LogSegment.largestTimestamp.
        """
        return self.largest_timestamp if self.largest_timestamp >= 0 else self.modified_ms


def retained_segments(rows: Sequence[SegmentListing], log_end_offset: int) -> list[RetainedSegment]:
    """The segments of a partition, oldest first, as retention looks at them."""
    ends = [*(row.base_offset for row in rows[1:]), log_end_offset]
    return [RetainedSegment(row.size, row.age_timestamp, end) for row, end in zip(rows, ends, strict=False)]
