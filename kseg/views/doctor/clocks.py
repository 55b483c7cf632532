"""What times that can't be right do to a partition: which segments retention by time keeps, or deletes, for them."""

from datetime import UTC, tzinfo

from kseg.counted import counted
from kseg.log.partition.listing import PartitionListing
from kseg.log.partition.partition_log import COMPACTED_TOPICS, METADATA_TOPIC
from kseg.log.partition.roll import Retention
from kseg.log.partition.segment_listing import SegmentListing
from kseg.times import duration_text, iso_time
from kseg.views.doctor.examination import Examined
from kseg.views.doctor.suspect_times import (
    AHEAD_MS,
    MICROSECONDS,
    NANOSECONDS,
    SECONDS,
    Author,
    SuspectTimes,
    unit_of,
)

_IN_UNIT = {
    SECONDS: ("seconds", 1000, 1),
    MICROSECONDS: ("microseconds", 1, 1000),
    NANOSECONDS: ("nanoseconds", 1, 10**6),
}
_LAST_YEAR_MS = 253_402_300_799_999


def suspect_sentence(suspect: SuspectTimes, zone: tzinfo = UTC) -> str:
    """Who set which times, from which offset on."""
    who = _author(suspect.author)
    first, last = suspect.first_offset, suspect.last_offset
    offsets = f"offset {first}" if first == last else f"offsets {first} to {last}"
    batches = "" if suspect.batches is None else f", {counted(suspect.batches, 'batch', 'batches')}"
    return f"{who}: {offsets}{batches}: times up to {suspect.largest}, {_reading(suspect, zone)}"


def _author(author: Author) -> str:
    if author.is_broker:
        return "the broker's own clock"
    if author.producer_id is None:
        return "producers that aren't known"
    return "a producer without id" if author.producer_id < 0 else f"producer {author.producer_id}"


def _reading(suspect: SuspectTimes, zone: tzinfo) -> str:
    """What the largest time is as Kafka reads it, and as it seems to be meant."""
    taken = time_or_year(suspect.largest, zone)
    unit = _IN_UNIT.get(suspect.id)
    if unit is None:
        return taken
    name, factor, divisor = unit
    return f"taken for {taken}; in {name} {time_or_year(suspect.largest * factor // divisor, zone)}"


def time_or_year(timestamp: int, zone: tzinfo = UTC) -> str:
    """A time; beyond the year 9999 about which year."""
    if timestamp <= _LAST_YEAR_MS:
        return iso_time(timestamp, zone) or "none"
    return f"the year {1970 + timestamp // 31_556_952_000}"


def pinned(found: Examined) -> tuple[SegmentListing, ...]:
    """The segments that retention by time keeps for a time in the future: that with it, and all after it.

    None where retention by time doesn't apply, or where that isn't known.
    """
    if found.listing is None or not _has_age(found):
        return ()
    latest = found.judged_ms + AHEAD_MS
    rows = found.listing.segments
    first = next((place for place, row in enumerate(rows) if row.largest_timestamp > latest), len(rows))
    return rows[first:]


def expired_by_seconds(found: Examined) -> tuple[SegmentListing, ...]:
    """The segments that retention by time would delete now because all their times are seconds."""
    rows = () if found.listing is None else found.listing.segments
    return tuple(
        row
        for row in rows
        if row.retention is Retention.DELETE_TIME and unit_of(row.largest_timestamp, found.judged_ms) == SECONDS
    )


def _has_age(found: Examined) -> bool:
    listing = found.listing
    if listing is None or listing.partition.state is not None or listing.topic in (*COMPACTED_TOPICS, METADATA_TOPIC):
        return False
    return found.retention.retention_ms >= 0 and not found.retention.is_policy_unknown


def effect(found: Examined, suspect: SuspectTimes, zone: tzinfo = UTC) -> tuple[str, int | None]:
    """What these times do, in words, and to how many bytes; None if to none that is known."""
    listing = found.listing
    assert listing is not None
    if suspect.id == SECONDS:
        return _effect_of_seconds(found)
    if found.retention.is_policy_unknown:
        return "whether retention by time applies isn't known: the topic is compacted", None
    if not _has_age(found):
        return "retention by time doesn't apply here; lookups by time go wrong", None
    rows = pinned(found)
    if not rows:
        return "", None
    size = sum(row.size for row in rows)
    until = rows[0].largest_timestamp + found.retention.retention_ms
    return f"retention by time keeps {_segments(rows, listing)} until {time_or_year(until, zone)}, {_rule(found)}", size


def _effect_of_seconds(found: Examined) -> tuple[str, int | None]:
    rows = expired_by_seconds(found)
    if not rows or found.listing is None:
        return "lookups by time miss them", None
    size = sum(row.size for row in rows)
    return f"retention by time deletes {_segments(rows, found.listing)} at once, {_rule(found)}", size


def _segments(rows: tuple[SegmentListing, ...], listing: PartitionListing) -> str:
    count, total = len(rows), len(listing.segments)
    of = f" of {total}" if total > count else ""
    return f"{count}{of} segment{'' if total == 1 else 's'} from {rows[0].base_offset:020} on"


def _rule(found: Examined) -> str:
    """Which retention that is, and how it is known."""
    kept = duration_text(found.retention.retention_ms)
    return f"by the topic's retention of {kept}" if found.has_own_time else f"by Kafka's default of {kept}"
