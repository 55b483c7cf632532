"""Columns and lines of `kseg ls`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import groupby
from typing import Any, TypeVar

from kseg.cluster.metadata_copy import TopicIdSource
from kseg.cluster.now import Now
from kseg.errors import plural
from kseg.formats.codes import codec_name
from kseg.log.cleaner import CleanerStop, Cleaning
from kseg.log.listing import PartitionListing
from kseg.log.listing_rows import (
    ListingSum,
    PartitionSummary,
    Row,
    Rows,
    SegmentRow,
    counted_directories,
    differs_on_disk,
)
from kseg.log.partition import PARTITION_METADATA
from kseg.log.segment_listing import OK, SegmentListing, SelectedRow
from kseg.output.chart import bar
from kseg.output.columns import FOR_PEOPLE, NOT_SHOWN, Column, Unit, listed_column, zoned_title
from kseg.output.fitting import Fitting
from kseg.output.forms import RowWriter, TextForm
from kseg.output.pager import paged_lines
from kseg.output.progress import talk
from kseg.output.streams import write_line
from kseg.output.table import GrowingLines, Section, piece_lines
from kseg.sizes import exact_size, human_size
from kseg.text import fields
from kseg.text.retention import cleaning_text, keys_text, now_fields
from kseg.times import time_text

_Sums = PartitionSummary | ListingSum
_Row = TypeVar("_Row")
_CACHE_BAR = 5
_NONE_IF_ZERO = ("DELETABLE", "CLEANABLE")
"""Titles of columns of sizes that people see only if a size isn't zero."""


def _codec_text(codec: int) -> str:
    return codec_name(codec) or str(codec)


def _ratio(row: SegmentRow) -> float | None:
    return None if row.segment.ratio is None else round(row.segment.ratio, 2)


def _selected_columns(selected: Callable[[_Row], SelectedRow | None]) -> tuple[Column[_Row], ...]:
    """Return columns of the selected records in a row."""

    def of(row: _Row) -> SelectedRow:
        return selected(row) or SelectedRow()

    return (
        Column(fields.SELECTED_RECORDS, "SEL RECORDS", lambda row: of(row).records),
        Column(fields.SELECTED_BATCHES, "SEL BATCHES", lambda row: of(row).batches),
        Column(fields.SELECTED_BYTES, "SEL SIZE", lambda row: of(row).size),
        Column(fields.SELECTED_FIRST_OFFSET, "SEL FIRST", lambda row: of(row).first_offset),
        Column(fields.SELECTED_LAST_OFFSET, "SEL LAST", lambda row: of(row).last_offset),
        Column(fields.SELECTED_FIRST_TIMESTAMP, "SEL FIRST TIME", lambda row: of(row).first_timestamp),
        Column(fields.SELECTED_LARGEST_TIMESTAMP, "SEL LARGEST TIME", lambda row: of(row).largest_timestamp),
    )


# --- segments ---------------------------------------------------------------------------------------------------------

_SEGMENT_NAMES: tuple[Column[SegmentRow], ...] = (
    Column(fields.TOPIC, "TOPIC", lambda row: row.partition.topic),
    Column(fields.PARTITION, "PART", lambda row: row.partition.partition),
    Column(fields.DIRECTORY, "DIRECTORY", lambda row: row.partition.directory),
)
_SEGMENT_SIZES: tuple[Column[SegmentRow], ...] = (
    Column(fields.BASE_OFFSET, "BASE", lambda row: row.segment.base_offset),
    Column(fields.LAST_OFFSET, "LAST", lambda row: row.segment.last_offset),
    Column(fields.BYTES, "SIZE", lambda row: row.segment.size),
)
_BAR: Column[SegmentRow] = Column(FOR_PEOPLE, "", lambda _: None, lambda row: bar(row.segment.size, row.largest_size))
_SEGMENT_TIMES: tuple[Column[SegmentRow], ...] = (
    Column(fields.FIRST_TIMESTAMP, "FIRST TIME", lambda row: row.segment.first_timestamp, rank=3),
    Column(fields.LARGEST_TIMESTAMP, "LARGEST TIME", lambda row: row.segment.largest_timestamp),
    listed_column(fields.CODECS, "CODECS", lambda row: tuple(map(_codec_text, row.segment.codecs)), rank=4),
    listed_column(fields.MAGICS, "MAGIC", lambda row: row.segment.magics, is_right=True, rank=4),
)
_SEGMENT_HEADERS: tuple[Column[SegmentRow], ...] = (
    Column(fields.RECORDS, "RECORDS", lambda row: row.segment.records),
    Column(fields.BATCHES, "BATCHES", lambda row: row.segment.batches),
    Column(fields.COMPRESSION_RATIO, "RATIO", _ratio),
    Column(
        fields.PRODUCER_IDS,
        "PRODUCERS",
        lambda row: None if row.segment.producer_ids is None else list(row.segment.producer_ids),
        lambda row: "" if row.segment.producer_ids is None else str(len(row.segment.producer_ids)),
        is_right=True,
    ),
    Column(fields.OPEN_TRANSACTIONS, "OPEN TXN", lambda row: row.segment.open_transactions),
)
_SEGMENT_STATE: tuple[Column[SegmentRow], ...] = (
    Column(fields.ABORTED_TRANSACTIONS, "ABORTED", lambda row: row.segment.aborted_transactions, rank=4),
    Column(fields.INDEX_ENTRIES, "INDEX", lambda row: row.segment.index_entries, rank=4),
    Column(fields.TIME_INDEX_ENTRIES, "TIMES", lambda row: row.segment.time_index_entries, rank=4),
    Column(
        fields.INDEX_HEALTH, "HEALTH", lambda row: row.segment.index_health, lambda row: _health(row.segment), rank=0
    ),
    Column(fields.DAMAGE_POSITION, NOT_SHOWN, lambda row: row.segment.damage and row.segment.damage.position),
    Column(fields.ROLLED, "ROLLED", lambda row: str(row.segment.rolled), rank=3),
    Column(
        fields.RETENTION,
        "RETENTION",
        lambda row: None if row.segment.retention is None else str(row.segment.retention),
        rank=0,
    ),
)
_SEGMENT_SELECTED: tuple[Column[SegmentRow], ...] = _selected_columns(lambda row: row.segment.selected)
_SEGMENT_TIER: tuple[Column[SegmentRow], ...] = (
    Column(fields.STORED_BYTES, "STORED", lambda row: row.segment.tier and row.segment.tier.stored_size),
    Column(fields.STANDING, "STANDING", lambda row: row.segment.tier and row.segment.tier.standing),
    Column(fields.KEY_ID, "KEY", lambda row: row.segment.tier and row.segment.tier.key_id),
    Column(fields.SEGMENT_ID, NOT_SHOWN, lambda row: row.segment.tier and row.segment.tier.segment_id),
)
_SEGMENT_CACHE: tuple[Column[SegmentRow], ...] = (
    Column(fields.CACHED_BYTES, "CACHED", lambda row: row.segment.cached_size, lambda row: _share(row.segment)),
    Column(FOR_PEOPLE, "", lambda _: None, lambda row: bar(row.segment.cached_size or 0, row.segment.size, _CACHE_BAR)),
)


def _share(row: SegmentListing | PartitionSummary | ListingSum) -> str:
    """Return the percentage of the logs that is in the page cache."""
    if row.cached_size is None:
        return "?"
    return f"{100 * row.cached_size // row.size}%" if row.size else ""


def _health(segment: SegmentListing) -> str:
    """Return the problems of the indexes and of the log, as far as it was read."""
    if segment.damage is None:
        return segment.index_health
    damage = f"damage at {segment.damage.position}"
    return damage if segment.index_health == OK else f"{damage}; {segment.index_health}"


def segment_style(row: SegmentRow) -> str:
    """Return the style of a segment's line in a table."""
    if row.segment.index_health != OK or row.segment.damage is not None:
        return "red"
    if row.is_to_delete:
        return "yellow"
    return "bold" if row.is_active else ""


# --- partitions -------------------------------------------------------------------------------------------------------


def _dirty_text(row: PartitionSummary) -> str:
    if row.cleaning is None:
        return ""
    return f"{100 * (row.dirty_ratio or 0.0):.0f}%" if row.cleaning.is_stop_certain else "?"


def _rounded_ratio(row: PartitionSummary) -> float | None:
    return None if row.dirty_ratio is None else round(row.dirty_ratio, 4)


def _reason(row: PartitionSummary) -> str | None:
    return None if row.cleaning is None else cleaning_text(row.cleaning)


_PARTITION_NAMES: tuple[Column[PartitionSummary], ...] = (
    Column(fields.TOPIC, NOT_SHOWN, lambda row: row.topic),
    Column(fields.PARTITION, NOT_SHOWN, lambda row: row.partition),
    Column(fields.DIRECTORY, "PARTITION", lambda row: row.directory, rank=0),
    Column(fields.STATE, NOT_SHOWN, lambda row: row.state),
    Column(fields.TOPIC_ID, NOT_SHOWN, lambda row: row.topic_id),
    Column(fields.TOPIC_ID_SOURCE, NOT_SHOWN, lambda row: row.topic_id_source),
)
_SUMS: tuple[Column[_Sums], ...] = (
    Column(fields.SEGMENTS, "SEGMENTS", lambda row: row.segments, rank=2),
    Column(fields.BYTES, "SIZE", lambda row: row.size, rank=0),
    Column(fields.ALLOCATED_BYTES, "ON DISK", lambda row: row.allocated),
    Column(fields.RECORDS, "RECORDS", lambda row: row.records),
)
_PARTITION_OFFSETS: tuple[Column[PartitionSummary], ...] = (
    Column(fields.LOG_START_OFFSET, "FIRST", lambda row: row.log_start_offset),
    Column(fields.LAST_OFFSET, "LAST", lambda row: row.last_offset),
    Column(fields.LOG_END_OFFSET, NOT_SHOWN, lambda row: row.log_end_offset),
    Column(fields.LOCAL_START_OFFSET, NOT_SHOWN, lambda row: row.tier and row.tier.local_start_offset),
    Column(fields.HIGH_WATERMARK, NOT_SHOWN, lambda row: row.high_watermark),
    Column(fields.RECOVERY_POINT, NOT_SHOWN, lambda row: row.recovery_point),
    Column(fields.LEADER_EPOCH, NOT_SHOWN, lambda row: row.leader_epoch),
)
_SUMS_OF_STATE: tuple[Column[_Sums], ...] = (
    Column(fields.LARGEST_TIMESTAMP, "LARGEST TIME", lambda row: row.largest_timestamp),
    Column(fields.SEGMENTS_TO_DELETE, NOT_SHOWN, lambda row: row.segments_to_delete),
    Column(fields.BYTES_TO_DELETE, "DELETABLE", lambda row: row.size_to_delete, rank=2),
)
_CLEANING: tuple[Column[PartitionSummary], ...] = (
    Column(fields.DIRTY_RATIO, "DIRTY", _rounded_ratio, _dirty_text, rank=3),
    Column(fields.CLEANABLE, NOT_SHOWN, lambda row: row.cleaning and row.cleaning.is_cleanable),
    Column(fields.CLEANABLE_REASON, NOT_SHOWN, _reason),
    Column(fields.FIRST_DIRTY_OFFSET, NOT_SHOWN, lambda row: row.cleaning and row.cleaning.first_dirty),
    Column(fields.FIRST_UNCLEANABLE_OFFSET, NOT_SHOWN, lambda row: row.cleaning and row.cleaning.end_offset),
    Column(fields.CLEAN_BYTES, NOT_SHOWN, lambda row: row.cleaning and row.cleaning.clean_size),
    Column(fields.CLEANABLE_BYTES, NOT_SHOWN, lambda row: row.cleaning and row.cleaning.cleanable_size),
    Column(fields.CLEANER_STOP, NOT_SHOWN, lambda row: row.cleaning and str(row.cleaning.stop)),
    Column(fields.CLEANER_STOP_OFFSET, NOT_SHOWN, lambda row: row.cleaning and row.cleaning.stop_offset),
    Column(fields.KEYS_TO_CLEAN_AT_MOST, NOT_SHOWN, lambda row: row.cleaning and row.cleaning.most_records),
    Column(fields.KEYS_AT_ONCE, NOT_SHOWN, lambda row: row.cleaning and row.cleaning.most_keys),
    Column(fields.CLEANED_BY_TIMESTAMP, NOT_SHOWN, lambda row: row.cleaned_by_ms),
)
_PARTITION_FILES: tuple[Column[PartitionSummary], ...] = (
    Column(fields.UNHEALTHY_SEGMENTS, NOT_SHOWN, lambda row: row.unhealthy_segments),
    Column(fields.LEFTOVERS, NOT_SHOWN, lambda row: list(row.leftovers)),
    Column(fields.ORPHANS, NOT_SHOWN, lambda row: list(row.orphans)),
    Column(fields.PROBLEMS, NOT_SHOWN, lambda row: list(row.problems)),
)
_TIER: tuple[Column[PartitionSummary], ...] = (
    Column(fields.STORED_BYTES, "STORED", lambda row: row.tier_sums and row.tier_sums.stored_size),
    Column(fields.LAYOUT, NOT_SHOWN, lambda row: row.tier_sums and row.tier_sums.layout),
    Column(fields.KEY_IDS, NOT_SHOWN, lambda row: row.tier_sums and list(row.tier_sums.key_ids)),
    Column(fields.JOINED_FROM_OFFSET, NOT_SHOWN, lambda row: row.tier_sums and row.tier_sums.local_start),
    Column(fields.STANDINGS, NOT_SHOWN, lambda row: row.tier_sums and dict(row.tier_sums.standings)),
)
_NOTES: Column[PartitionSummary] = Column(
    FOR_PEOPLE, "NOTES", lambda _: None, lambda row: "; ".join(notes_on(row)), rank=0
)
_SELECTED: tuple[Column[_Sums], ...] = _selected_columns(lambda row: row.selected)
_CACHE: Column[_Sums] = Column(fields.CACHED_BYTES, "CACHED", lambda row: row.cached_size, _share)


def notes_on(row: PartitionSummary) -> list[str]:
    """Return notes about a partition, in words."""
    notes = [] if row.state is None else [f"-{row.state}"]
    notes += [f"{human_size(row.allocated)} on disk"] if differs_on_disk(row) else []
    if row.tier_sums is None and row.size:
        if row.last_offset is None:
            notes.append("no batch can be read; run `kseg verify` for the reason")
        elif row.largest_timestamp < 0:
            notes.append("no timestamps")
    if row.problems:
        notes.append(plural(len(row.problems), "problem"))
    if row.unhealthy_segments:
        notes.append(f"{plural(row.unhealthy_segments, 'segment')} with index problems")
    notes += _tier_notes(row)
    if row.leftovers:
        notes.append(plural(len(row.leftovers), "leftover"))
    if row.orphans:
        notes.append(f"{plural(len(row.orphans), 'index file')} without a log")
    return notes + cleaning_notes(row.cleaning)


def _tier_notes(row: PartitionSummary) -> list[str]:
    """Return notes about the contents of a remote tier, in words."""
    notes = [row.tier.text()] if row.tier is not None and row.tier.has_remote_part else []
    sums = row.tier_sums
    if sums is None:
        return notes
    keys = [f"encrypted with {', '.join(sums.key_ids)}"] if sums.key_ids else []
    local = [] if sums.local_start is None else [f"local from {sums.local_start}"]
    counts = [f"{count} {standing}" for standing, count in sums.standings]
    return [*notes, f"tier of {sums.layout}", *keys, *local, *counts]


def cleaning_notes(cleaning: Cleaning | None) -> list[str]:
    """Return the actions of the log cleaner, in words; none for a partition without work."""
    if cleaning is None or (cleaning.stop is CleanerStop.ACTIVE_SEGMENT and not cleaning.cleanable_size):
        return []
    keys = keys_text(cleaning)
    return [cleaning_text(cleaning), *(() if keys is None else (keys,))]


def partition_style(row: PartitionSummary) -> str:
    """Return the style of a partition's line in a table."""
    return "red" if row.problems or row.unhealthy_segments else "yellow" if row.size_to_delete else ""


_EVIDENCE: dict[str | None, str] = {TopicIdSource.METADATA: "the metadata", TopicIdSource.COPIES: "other copies"}


def partition_line(row: PartitionSummary, size: Callable[[int], str], zone: tzinfo = UTC) -> str:
    """Return a partition's heading for people."""
    parts = [plural(row.segments, "segment"), size_words(row.size, size)]
    has_offsets = row.last_offset is not None
    parts.append(f"offsets {row.log_start_offset} to {row.last_offset}" if has_offsets else "no offsets")
    if row.records is not None:
        parts.append(plural(row.records, "record"))
    if row.selected is not None:
        parts.append(f"{plural(row.selected.records, 'record')} selected")
    if row.topic_id is not None:
        evidence = "" if row.topic_id_source == PARTITION_METADATA else f" (from {_EVIDENCE[row.topic_id_source]})"
        parts.append(f"topic id {row.topic_id}{evidence}")
    if row.leader_epoch is not None:
        parts.append(f"leader epoch {row.leader_epoch}")
    if row.cleaned_by_ms is not None and row.cleaning is not None:
        by = time_text(row.cleaned_by_ms, zone)
        parts.append(f"cleaned before offset {row.cleaning.first_dirty}, not after {by}")
    return f"{row.directory}: {', '.join([*parts, *notes_on(row)])}"


# --- topics and log directories ---------------------------------------------------------------------------------------

_COUNTS: tuple[Column[ListingSum], ...] = (
    Column(fields.PARTITIONS, "PARTITIONS", lambda row: row.partitions),
    Column(fields.COPY_COUNT, NOT_SHOWN, lambda row: row.copies),
    Column(fields.NOT_IN_USE, NOT_SHOWN, lambda row: row.not_in_use),
    Column(fields.INCOMPLETE, NOT_SHOWN, lambda row: row.incomplete),
)
_CLEANABLE: tuple[Column[ListingSum], ...] = (
    Column(fields.CLEANABLE_PARTITIONS, NOT_SHOWN, lambda row: row.cleanable_partitions),
    Column(fields.CLEANABLE_BYTES, "CLEANABLE", lambda row: row.cleanable_size),
)
_NAMES_OF_SUMS: Mapping[str, tuple[Column[ListingSum], ...]] = {
    "topic": (Column(fields.TOPIC, "TOPIC", lambda row: row.name),),
    "directory": (
        Column(fields.DIRECTORY, "DIRECTORY", lambda row: row.name),
        Column(fields.TOPICS, "TOPICS", lambda row: len(row.topics)),
    ),
    "total": (Column(fields.TOPICS, "TOPICS", lambda row: len(row.topics)),),
}


# --- which columns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListingColumns:
    """The requested columns, and their form for people.

    by: unit of a row. deep: columns that need every header read. selected: columns of selected records, which people
    see instead of times and state. cache: bytes in the page cache. has_disk: people see the allocated space.
    has_exact_sizes: people see bytes, too. has_tiers: known facts about segments in a remote tier. zone: time zone of
    times.
    """

    by: str = "partition"
    deep: bool = False
    selected: bool = False
    cache: bool = False
    has_disk: bool = False
    has_exact_sizes: bool = False
    has_tiers: bool = False
    zone: tzinfo = UTC

    @property
    def size_text(self) -> Callable[[int], str]:
        """Function that formats sizes for people."""
        return exact_size if self.has_exact_sizes else human_size

    def section(self, *, names: bool = True) -> Section[Any]:
        """Return the section of the rows; `names`: segments have the names of their partition."""
        if self.by == "segment":
            return self._section(self._segment_columns(), self._shown_of_segments(names=names), segment_style)
        if self.by == "partition":
            return self._section(self._partition_columns(), self._shown_of_partitions(), partition_style)
        return self._section(self._sum_columns(self.by), self._shown_of_sums(), None)

    def total(self) -> Section[ListingSum]:
        """Return the section of the sums over all rows."""
        return Section("total", None, self._sum_columns("total"))

    def _section(
        self, columns: list[Column[_Row]], shown: list[Column[_Row]], style: Callable[[_Row], str] | None
    ) -> Section[_Row]:
        people = [self._for_people(each) for each in shown if _is_shown(each)]
        return Section(self.by, None, [self._for_people(each) for each in columns], style, people)

    def _segment_columns(self) -> list[Column[SegmentRow]]:
        columns = [*_SEGMENT_NAMES, *_SEGMENT_SIZES, *_SEGMENT_TIMES, *_SEGMENT_HEADERS, *_SEGMENT_STATE]
        columns += _SEGMENT_TIER if self.has_tiers else ()
        return [*columns, *(_SEGMENT_SELECTED if self.selected else ()), *(_SEGMENT_CACHE[:1] if self.cache else ())]

    def _shown_of_segments(self, *, names: bool) -> list[Column[SegmentRow]]:
        columns = [_SEGMENT_NAMES[-1]] if names else []
        columns += [*_SEGMENT_SIZES, _BAR, *(_SEGMENT_CACHE if self.cache else ())]
        columns += _SEGMENT_TIER if self.has_tiers else ()
        headers = _SEGMENT_HEADERS if self.deep else ()
        if self.selected:
            return [*columns, *headers, *_SEGMENT_SELECTED]
        return [*columns, *_SEGMENT_TIMES, *headers, *_SEGMENT_STATE]

    def _partition_columns(self) -> list[Column[PartitionSummary]]:
        columns = [*_PARTITION_NAMES, *_SUMS, *_PARTITION_OFFSETS, *_SUMS_OF_STATE, *_CLEANING, *_PARTITION_FILES]
        columns += _TIER if self.has_tiers else ()
        return [*columns, *(_SELECTED if self.selected else ()), *((_CACHE,) if self.cache else ())]

    def _shown_of_partitions(self) -> list[Column[PartitionSummary]]:
        ends = [*_SELECTED] if self.selected else [*_SUMS_OF_STATE, *_CLEANING]
        cache = ((_CACHE,) if self.cache else ()) + (_TIER if self.has_tiers else ())
        return [*_PARTITION_NAMES, *self._shown_sums(), *cache, *_PARTITION_OFFSETS, *ends, _NOTES]

    def _sum_columns(self, kind: str) -> list[Column[ListingSum]]:
        columns = [*_NAMES_OF_SUMS[kind], *_COUNTS, *_SUMS, *_SUMS_OF_STATE, *_CLEANABLE]
        return [*columns, *(_SELECTED if self.selected else ()), *((_CACHE,) if self.cache else ())]

    def _shown_of_sums(self) -> list[Column[ListingSum]]:
        ends = [*_SELECTED] if self.selected else [*_SUMS_OF_STATE, *_CLEANABLE]
        cache = (_CACHE,) if self.cache else ()
        return [*_NAMES_OF_SUMS[self.by], *_COUNTS, *self._shown_sums(), *cache, *ends]

    def _shown_sums(self) -> tuple[Column[_Sums], ...]:
        hidden = (() if self.has_disk else (fields.ALLOCATED_BYTES,)) + (() if self.deep else (fields.RECORDS,))
        return tuple(column for column in _SUMS if column.field not in hidden)

    def _for_people(self, column: Column[_Row]) -> Column[_Row]:
        """Return the column with times for people in the zone, and sizes in the requested units."""
        if column.show is not None:
            return column
        if column.field.unit is Unit.TIMESTAMP:
            title = zoned_title(column.title, self.zone)
            return column._replace(title=title, show=lambda row: _time_text(column.value(row), self.zone))
        if column.field.unit is not Unit.BYTES:
            return column
        is_always_shown = column.title not in _NONE_IF_ZERO

        def show(row: _Row) -> str:
            size = column.value(row)
            return self.size_text(size) if isinstance(size, int) and (size or is_always_shown) else ""

        return column._replace(show=show)


def _time_text(timestamp: object, zone: tzinfo) -> str:
    return time_text(timestamp, zone) if isinstance(timestamp, int) else ""


def _is_shown(column: Column[Any]) -> bool:
    """Return True if people see a column; a bar has no title, since it belongs to the preceding column."""
    return column.title != NOT_SHOWN or not column.name


def size_words(size: int, text: Callable[[int], str]) -> str:
    """Return a size in a sentence; exact sizes have their unit."""
    return plural(size, "byte") if text is exact_size else text(size)


def write_listings(
    listings: Iterable[PartitionListing], rows: Rows, columns: ListingColumns, writer: RowWriter, now: Now | None
) -> None:
    """Write the rows of partitions as they come, the number of omitted rows, and the sums, except in CSV.

    now: the time used as now; None omits the end.
    """
    found = rows.of(listings)
    if writer.form.is_for_people and columns.by in _NAMES_OF_SUMS:
        sums = list(found)
        columns = replace(columns, has_disk=columns.has_disk or any(map(_differs, sums)))
        found = iter(sums)
    if isinstance(writer.form, TextForm):
        with paged_lines() as write:
            _write_lines(found, rows, columns, writer, write)
            for line in last_lines(rows, columns) if now else ():
                write(line)
        return
    if writer.form.is_for_people:
        writer.write(columns.section(), _with_largest(found))
        for line in last_lines(rows, columns) if now else ():
            write_line(line)
        return
    writer.write(columns.section(), found)
    if now is None:
        return
    if writer.form.has_objects:
        if rows.cut.rows:
            writer.form.write_object({"type": "cut", "rows": rows.cut.rows, "bytes": rows.cut.size})
        writer.form.write_object(columns.total().as_object(rows.total) | now_fields(now, columns.zone))
    elif rows.cut.rows:
        talk(f"kseg: {_cut_line(rows, columns)}")


def _write_lines(
    found: Iterator[Row], rows: Rows, columns: ListingColumns, writer: RowWriter, write: Callable[[str], None]
) -> None:
    if columns.by == "segment" and rows.are_in_listed_order:
        _write_by_partition(found, columns, writer, write)
        return
    lines = GrowingLines(writer.prepare(columns.section()).shown_columns, write, writer.form.room)
    for row in found:
        lines.add(row)
    lines.finish()


def _write_by_partition(
    found: Iterator[Row], columns: ListingColumns, writer: RowWriter, write: Callable[[str], None]
) -> None:
    """Write segments below a heading for their partition."""
    shown = writer.prepare(columns.section(names=False)).shown_columns
    fitting = Fitting([column.head for column in shown], writer.form.room and writer.form.room - 2)
    segments = (row for row in found if isinstance(row, SegmentRow))
    for partition, group in groupby(segments, key=lambda row: row.partition):
        write(partition_line(partition, columns.size_text, columns.zone))
        for line in piece_lines(shown, group, fitting):
            write(f"  {line}")
    for line in fitting.below:
        write(line)


def _differs(row: Row) -> bool:
    return isinstance(row, ListingSum) and differs_on_disk(row)


def _with_largest(found: Iterator[Row]) -> Iterator[Row]:
    """Yield segments of several partitions with the size of the largest segment of all, for their bars."""
    rows = list(found)
    largest = max((row.size for row in rows), default=0)
    for row in rows:
        yield row._replace(largest_size=largest) if isinstance(row, SegmentRow) else row


def last_lines(rows: Rows, columns: ListingColumns) -> Iterator[str]:
    """Yield the number of omitted rows, and the sums."""
    if rows.cut.rows:
        yield _cut_line(rows, columns)
    yield _total_line(rows.total, columns)


def _cut_line(rows: Rows, columns: ListingColumns) -> str:
    others = "more directories" if columns.by == "directory" else None
    size = size_words(rows.cut.size, columns.size_text)
    return f"Not shown: {plural(rows.cut.rows, f'more {columns.by}', others)}, {size}"


def _total_line(total: ListingSum, columns: ListingColumns) -> str:
    """Return the sums for people."""
    sums = [
        plural(len(total.topics), "topic"),
        counted_directories(total.partitions, total.copies, total.not_in_use),
        plural(total.segments, "segment"),
        size_words(total.size, columns.size_text),
    ]
    if columns.has_disk or differs_on_disk(total):
        sums.append(f"{size_words(total.allocated, columns.size_text)} on disk")
    if total.records is not None and columns.deep:
        sums.append(plural(total.records, "record"))
    if columns.selected:
        sums.append(f"{plural(0 if total.selected is None else total.selected.records, 'record')} selected")
    going = size_words(total.size_to_delete, columns.size_text)
    deletes = f"; retention would delete {plural(total.segments_to_delete, 'segment')}, {going}"
    lacks = f"; {plural(total.incomplete, 'partition')} with problems may add more"
    return (
        f"Total: {', '.join(sums)}"
        + (deletes if total.segments_to_delete else "")
        + (lacks if total.incomplete else "")
    )
