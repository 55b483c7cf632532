"""Segments over time: when they were written, why they were rolled, what keeps them."""

from collections import Counter

from kseg.counted import counted
from kseg.log.partition.roll import Retention, Rolled
from kseg.log.retain import Retained
from kseg.output.sizes import human_size
from kseg.report.block import Block, CellColumn, CellKind, Figure, Sentence, Table, Weight
from kseg.report.charts.strips import Lane, Span, timeline
from kseg.report.commands import line_of, partition_line
from kseg.report.gathered import Gathered, PartitionFacts
from kseg.report.numbers import moment_text
from kseg.report.survey import FIRST_TIME
from kseg.views.doctor.suspect_times import AHEAD_MS

KEPT, DUE, COMPACTED, ACTIVE, PINNED = range(5)
_NAMES = ("kept", "due", "compacted", "active", "pinned")
_MOST_LANES, _MOST_SPANS = 24, 120
_COLUMNS = (
    CellColumn("directory", "Partition"),
    CellColumn("baseOffset", "Base offset", CellKind.COUNT),
    CellColumn("bytes", "Log", CellKind.SIZE),
    CellColumn("firstTime", "First time", CellKind.TIME),
    CellColumn("largestTime", "Largest time", CellKind.TIME),
    CellColumn("rolled", "Next one started by"),
    CellColumn("retention", "Retention"),
    CellColumn("expires", "Expires", CellKind.TIME),
)
_ROLL_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("segments", "Segments", CellKind.COUNT),
    CellColumn("bySize", "By size", CellKind.COUNT),
    CellColumn("byTime", "By time", CellKind.COUNT),
    CellColumn("byFullIndex", "By full index", CellKind.COUNT),
    CellColumn("byOffsets", "By offsets", CellKind.COUNT),
    CellColumn("byOther", "By other things", CellKind.COUNT),
    CellColumn("median", "Median closed segment", CellKind.SIZE),
)
_REASONS = ("size", "time", "index-full", "offset-range", "unknown")


def timelines_block(known: Gathered) -> Block:
    """The segments of the largest partitions, and why they were rolled."""
    partitions = sorted(known.in_use, key=lambda each: (-each.size, each.name))
    rows = tuple(_row(each, retained) for each in partitions for retained in each.retained)
    lanes = [lane for each in partitions[:_MOST_LANES] if (lane := _lane(known, each)) is not None]
    figures: tuple[Figure, ...] = ()
    if lanes:
        title = "Segments of the largest partitions over time"
        now, zone = known.choices.now_ms, known.choices.zone
        figures = (Figure(title, timeline(title, lanes, now, _NAMES, zone)),)
    tables = (
        Table("rolls", "Why segments were rolled", _ROLL_COLUMNS, _roll_rows(known)),
        Table("segments", "Segments", _COLUMNS, rows),
    )
    notes = (
        "A bar reaches from a segment's first to its largest time; the dashed line is now. Pinned: old enough to be "
        "deleted, but an earlier segment with a later time keeps it, or its own time is in the future.",
        "Why a segment was rolled follows from its size, times and indexes, by the topic's settings where they are "
        "known, else by Kafka's defaults. Other things: a new leader, a restart, an administrator, or compaction.",
    )
    return Block("timelines", "Segments over time", tuple(_verdicts(known)), figures, tables if rows else (), notes)


def kind_of(known: Gathered, partition: PartitionFacts, retained: Retained) -> int:
    """What becomes of a segment."""
    segment, now = retained.segment, known.choices.now_ms
    if segment.base_offset == partition.retained[-1].segment.base_offset:
        return ACTIVE
    if not retained.is_kept:
        return DUE
    if segment.retention is Retention.COMPACTED or partition.cleaning is not None:
        return COMPACTED
    is_old = partition.retention.retention_ms >= 0 and segment.age_timestamp + partition.retention.retention_ms < now
    return PINNED if is_old or segment.largest_timestamp > now + AHEAD_MS else KEPT


def _lane(known: Gathered, partition: PartitionFacts) -> Lane | None:
    spans = []
    now = known.choices.now_ms
    for retained in partition.retained:
        segment = retained.segment
        first = segment.first_timestamp if segment.first_timestamp >= FIRST_TIME else segment.largest_timestamp
        if not segment.size or first < FIRST_TIME:
            continue
        last = min(max(segment.largest_timestamp, first), now)
        title = f"{partition.name} from offset {segment.base_offset}: {human_size(segment.size)}, {segment.rolled}"
        spans.append(Span(min(first, now), last, kind_of(known, partition, retained), title))
    return Lane(partition.name, tuple(spans[-_MOST_SPANS:])) if spans else None


def _row(partition: PartitionFacts, retained: Retained) -> tuple[str | int | float | None, ...]:
    segment = retained.segment
    return (
        partition.name,
        segment.base_offset,
        segment.size,
        _time(segment.first_timestamp),
        _time(segment.largest_timestamp),
        "something else" if segment.rolled is Rolled.UNKNOWN else str(segment.rolled),
        None if segment.retention is None else str(segment.retention),
        retained.expires_ms,
    )


def _time(timestamp: int) -> int | None:
    return timestamp if timestamp >= 0 else None


def _roll_rows(known: Gathered) -> tuple[tuple[str | int | float | None, ...], ...]:
    rows = []
    for topic in known.by_size:
        segments = [segment for each in topic.partitions for segment in each.segments]
        reasons = Counter(str(segment.rolled) for segment in segments)
        closed = sorted(segment.size for segment in segments if str(segment.rolled) != "active")
        median = closed[len(closed) // 2] if closed else None
        rows.append((topic.name, len(segments), *(reasons[reason] for reason in _REASONS), median))
    return tuple(rows)


def _verdicts(known: Gathered) -> list[Sentence]:
    verdicts = []
    for each in known.in_use:
        pinned = [one for one in each.retained if kind_of(known, each, one) == PINNED]
        if pinned:
            size = sum(one.segment.size for one in pinned)
            latest = max(one.segment.largest_timestamp for one in pinned)
            until = moment_text(max(one.expires_ms or latest for one in pinned), known.choices.zone)
            sentence = (
                f"{each.name}: {counted(len(pinned), 'segment')}, {human_size(size)}, can't go before {until}: "
                f"a record of {moment_text(latest, known.choices.zone)} keeps them."
            )
            verdicts.append((size, Sentence(sentence, partition_line(each, "retain"), Weight.WATCH)))
    verdicts.sort(key=lambda pair: -pair[0])
    due = [one.segment.size for each in known.in_use for one in each.retained if not one.is_kept]
    shown = [verdict for _, verdict in verdicts[:3]]
    if due:
        verb = "is" if len(due) == 1 else "are"
        sentence = f"{counted(len(due), 'segment')}, {human_size(sum(due))}, {verb} due for deletion now."
        shown.append(Sentence(sentence, line_of(known, "retain")))
    return shown
