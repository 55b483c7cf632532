"""Text of `kseg compact` and `kseg retain`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path

from kseg.cluster.now import Now
from kseg.errors import plural
from kseg.log.compaction_plan import RemovalReason
from kseg.log.partition import PartitionLog
from kseg.output.columns import Column, zoned_title
from kseg.output.fitting import Fitting, room_on_terminal
from kseg.output.forms import Form
from kseg.output.streams import write_line, write_lines
from kseg.output.table import aligned_lines, piece_lines
from kseg.rewrite.compact import Compacted, Retained, RetainedCopy
from kseg.sizes import human_size
from kseg.text import fields
from kseg.text.retention import now_fields
from kseg.times import time_text

_WORDS = {
    RemovalReason.SUPERSEDED: "superseded by a later record of the same key",
    RemovalReason.TOMBSTONE: "tombstones past delete.retention.ms",
    RemovalReason.ABORTED: "in aborted transactions",
    RemovalReason.MARKER: "markers of transactions without records",
    RemovalReason.NO_KEY: "without a key",
}


def compacted_lines(partition: PartitionLog, done: Compacted) -> Iterator[str]:
    """Yield the report on a partition."""
    plan = done.plan
    if not done.passes:
        reached = f"from offset {plan.first_dirty} on the log is clean or not cleanable: {plan.why_ends}"
        yield f"{partition.path}: nothing to clean: {reached}"
        return
    yield (
        f"{partition.path}: cleaned offsets below {plan.end_offset}, dirty from {plan.first_dirty} on;"
        f" {human_size(done.bytes_left_alone)} after that unchanged: {plan.why_ends}"
    )
    stay = plural(done.record_count, "record", "records")
    yield f"  kept {done.kept} of {stay}, {human_size(done.bytes_after)} of {human_size(done.bytes_before)}"
    for reason, words in _WORDS.items():
        if done.gone[reason]:
            yield f"  removed {done.gone[reason]}: {words}"
    if done.emptied:
        yield (
            f"  kept {plural(done.emptied, 'batch', 'batches')} without records, for the producer's state or the"
            " last offset"
        )
    passes = plural(done.passes, "pass", "passes")
    segments = plural(_join(done), "segment becomes", "segments become")
    yield f"  {segments} {len(done.segments)}, in {passes}"


def _join(done: Compacted) -> int:
    return len({base for segment in done.segments for base in segment.sources})


def compacted_object(partition: PartitionLog, done: Compacted, now: Now) -> dict[str, object]:
    """Return the report on a partition for JSON."""
    return {
        "type": "compaction",
        "directory": str(partition.path),
        "firstDirtyOffset": done.plan.first_dirty,
        "endOffset": done.plan.end_offset,
        "endsFor": done.plan.why_ends,
        "passes": done.passes,
        "records": done.record_count,
        "kept": done.kept,
        "gone": {str(reason): done.gone[reason] for reason in RemovalReason},
        "emptyBatches": done.emptied,
        "bytes": done.bytes_before,
        "bytesKept": done.bytes_after,
        "bytesLeftAlone": done.bytes_left_alone,
        "newSegments": [
            {"baseOffset": segment.base_offset, "size": segment.size, "madeOf": list(segment.sources)}
            for segment in done.segments
        ],
        **now_fields(now),
    }


def compaction_notes(partition: PartitionLog, done: Compacted) -> Iterator[str]:
    """Yield notes about a partition that every form of the report prints."""
    yield from done.notes
    if done.gone[RemovalReason.NO_KEY]:
        yield (
            f"{partition.path}: {plural(done.gone[RemovalReason.NO_KEY], 'record has', 'records have')} no key: dropped"
        )


def write_compacted(partition: PartitionLog, done: Compacted, now: Now, form: Form, *, quiet: bool) -> None:
    """Write the report on a partition to standard output; `quiet` omits the text."""
    if form.has_objects:
        form.write_object(compacted_object(partition, done, now))
    elif not quiet:
        write_lines(compacted_lines(partition, done))


TIMELINE_WIDTH = 40


def _decision(each: Retained) -> str:
    return "" if each.segment.retention is None else str(each.segment.retention)


def _columns(zone: tzinfo) -> tuple[Column[Retained], ...]:
    return (
        Column(fields.BASE_OFFSET, "base", lambda each: each.segment.base_offset),
        Column(fields.BYTES, "size", lambda each: each.segment.size),
        Column(
            fields.LARGEST_TIMESTAMP,
            zoned_title("largest timestamp", zone),
            lambda each: each.segment.largest_timestamp,
            lambda each: time_text(each.segment.largest_timestamp, zone),
            rank=2,
        ),
        Column(fields.RETENTION, "retention", _decision),
        Column(
            fields.EXPIRES,
            zoned_title("expires", zone),
            lambda each: each.expires_ms,
            lambda each: time_text(each.expires_ms, zone),
        ),
    )


def retained_object(partition: PartitionLog, each: Retained) -> dict[str, object]:
    """Return a segment for JSON."""
    place: dict[str, object] = {"type": "segment", "directory": str(partition.path)}
    return place | {column.name: column.value(each) for column in _columns(UTC)}


@dataclass(slots=True)
class RetainedSum:
    """Sum of the segments that retention deletes in a topic, in a log directory, or in total.

    partitions: directories of partitions. copies: directories whose partition was counted before.
    """

    name: str
    partitions: int = 0
    copies: int = 0
    segments: int = 0
    size: int = 0
    to_delete: int = 0
    size_to_delete: int = 0
    _seen: set[tuple[str | None, int | None]] = field(default_factory=set)

    def add(self, partition: PartitionLog, retained: list[Retained]) -> None:
        """Add a partition directory."""
        going = [each.segment.size for each in retained if not each.is_kept]
        self.partitions += 1
        if partition.name is not None:
            self.copies += (partition.topic, partition.partition) in self._seen
            self._seen.add((partition.topic, partition.partition))
        self.segments += len(retained)
        self.size += sum(each.segment.size for each in retained)
        self.to_delete += len(going)
        self.size_to_delete += sum(going)


SUM_COLUMNS: tuple[Column[RetainedSum], ...] = (
    Column(fields.NAME, "total of", lambda row: row.name),
    Column(fields.PARTITIONS, "partitions", lambda row: row.partitions),
    Column(fields.COPY_COUNT, "copies", lambda row: row.copies),
    Column(fields.SEGMENTS, "segments", lambda row: row.segments),
    Column(fields.BYTES, "size", lambda row: row.size),
    Column(fields.SEGMENTS_TO_DELETE, "deleted", lambda row: row.to_delete),
    Column(fields.BYTES_TO_DELETE, "frees", lambda row: row.size_to_delete),
)
_TOPIC, _LOG_DIR, _TOTAL = "topic", "directory", "total"


class RetainedTotals:
    """Totals by topic, by log directory and for all partitions."""

    def __init__(self) -> None:
        self._topics: dict[str, RetainedSum] = {}
        self._log_dirs: dict[str, RetainedSum] = {}
        self._all = RetainedSum("all")

    def add(self, partition: PartitionLog, retained: list[Retained]) -> None:
        """Add a partition."""
        topic = partition.topic or partition.directory_name
        log_dir = str(partition.path.parent)
        self._topics.setdefault(topic, RetainedSum(topic)).add(partition, retained)
        self._log_dirs.setdefault(log_dir, RetainedSum(log_dir)).add(partition, retained)
        self._all.add(partition, retained)

    def lines(self) -> list[str]:
        """Return the sums for people, largest deletion first; no lines for a single partition."""
        if self._all.partitions < 2:
            return []
        topics = sorted(self._topics.values(), key=lambda each: (-each.size_to_delete, each.name))
        return list(aligned_lines(SUM_COLUMNS, [*topics, *self._log_dirs.values(), self._all]))

    def objects(self, of_all: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """Yield the sums for JSON: one per topic, one per log directory, and the total with the facts of `of_all`."""
        for name in sorted(self._topics):
            yield _sum_object(_TOPIC, self._topics[name])
        for each in self._log_dirs.values():
            yield _sum_object(_LOG_DIR, each)
        yield {**_sum_object(_TOTAL, self._all), **of_all}


def _sum_object(kind: str, sums: RetainedSum) -> dict[str, object]:
    columns = {column.name: column.value(sums) for column in SUM_COLUMNS[1:]}
    return {"type": kind, **({} if kind == _TOTAL else {kind: sums.name}), **columns}


class RetentionReport:
    """Write the effect of retention to standard output, as text, a timeline, or objects.

    has_deletions: whether a segment is deleted now.
    """

    def __init__(self, form: Form, now: Now, zone: tzinfo, *, draws_timeline: bool) -> None:
        """Take the form, the time used as now, and the time zone of printed times."""
        self._draws_timeline = draws_timeline
        self._zone = zone
        self._form = form
        self._now = now
        self._totals = RetainedTotals()
        self.has_deletions = False
        self._hides_columns = False

    def take(self, partition: PartitionLog, retained: list[Retained]) -> None:
        """Write the segments of a partition."""
        self.has_deletions |= not all(each.is_kept for each in retained)
        self._totals.add(partition, retained)
        if self._form.has_objects:
            for each in retained:
                self._form.write_object(retained_object(partition, each))
            return
        if self._draws_timeline:
            lines: Iterable[str] = timeline(retained, self._now.ms, self._zone)
        else:
            columns, room = _columns(self._zone), room_on_terminal()
            fitting = Fitting([each.head for each in columns], room and room - 2, has_choice=False)
            lines = piece_lines(columns, retained, fitting)
            self._hides_columns |= bool(fitting.below)
        write_lines([str(partition.path), *(f"  {line}" for line in lines)])

    def finish(self, directory: Path | None, copied: RetainedCopy | None) -> None:
        """Write the sums, and the files copied into a directory."""
        if self._form.has_objects:
            for sums in self._totals.objects(now_fields(self._now, self._zone)):
                self._form.write_object(sums)
        else:
            write_lines(["Hidden column: largest timestamp (-o json has it)"] if self._hides_columns else [])
            write_lines(self._totals.lines())
        if directory is None or copied is None:
            return
        if self._form.has_objects:
            self._form.write_object(copy_object(directory, copied))
        else:
            write_line(copy_line(directory, copied))


def copy_object(directory: Path, copied: RetainedCopy) -> dict[str, object]:
    """Return a copy for JSON; `newBaseOffset` is null unless a new, empty segment replaces all others."""
    base_offsets = list(copied.base_offsets)
    return {"type": "copy", "directory": str(directory), "baseOffsets": base_offsets, "newBaseOffset": copied.rolled}


def copy_line(directory: Path, copied: RetainedCopy) -> str:
    """Return one line about a copy."""
    if copied.rolled is not None:
        return f"{directory}: no segment is left; wrote an empty segment at the log end offset {copied.rolled}"
    return f"{directory}: {plural(len(copied.base_offsets), 'segment')} copied"


def timeline(retained: list[Retained], now_ms: int, zone: tzinfo) -> list[str]:
    """Return one line per segment over time.

    The first line explains the signs.
    """
    starts = [each.segment.first_timestamp for each in retained if each.segment.first_timestamp >= 0]
    ends = [each.expires_ms for each in retained if each.expires_ms is not None]
    if not starts:
        return []
    first, last = min(starts), max([*ends, now_ms])
    scale = max(last - first, 1)

    def column(ms: int) -> int:
        return min(max((ms - first) * (TIMELINE_WIDTH - 1) // scale, 0), TIMELINE_WIDTH - 1)

    signs = "█ first to last record, · until deletion by age, | now"
    lines = [f"{time_text(first, zone)} to {time_text(last, zone)}: {signs}"]
    for each in retained:
        cells = [" "] * TIMELINE_WIDTH
        if each.segment.first_timestamp >= 0:
            end = each.expires_ms if each.expires_ms is not None else last
            for place in range(column(each.segment.first_timestamp), column(end) + 1):
                cells[place] = "·"
            largest = max(each.segment.largest_timestamp, each.segment.first_timestamp)
            for place in range(column(each.segment.first_timestamp), column(largest) + 1):
                cells[place] = "█"
        cells[column(now_ms)] = "|"
        lines.append(f"{''.join(cells).rstrip():<{TIMELINE_WIDTH}}  {each.segment.base_offset:020} {_decision(each)}")
    return lines
