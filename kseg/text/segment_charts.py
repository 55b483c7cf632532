"""Charts of `kseg ls`: segments along time or offsets."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from itertools import groupby
from typing import NamedTuple

from kseg.errors import plural
from kseg.log.listing import PartitionListing
from kseg.log.listing_rows import Row, Rows, SegmentRow
from kseg.output.chart import BAR_GAP, LEAST_BAR, Canvas, Span, span_bar
from kseg.output.columns import FOR_PEOPLE, Column, zoned_title
from kseg.output.pager import paged_lines
from kseg.output.table import aligned_lines
from kseg.text import fields
from kseg.text.listing import ListingColumns, last_lines, partition_line, size_words
from kseg.times import duration_text, time_text

_WIDE = 120
"""Width of lines in characters that have room for the largest time next to the first."""
_MARK = "!"


class _Disorder(NamedTuple):
    """A segment whose first time is before the largest time of preceding segments, and the difference."""

    base_offset: int
    by_ms: int


def write_charts(
    listings: Iterable[PartitionListing], rows: Rows, columns: ListingColumns, canvas: Canvas, *, has_sums: bool
) -> None:
    """Write a chart of each partition's segments as they come, the number of omitted rows, and the sums at the end."""
    found = rows.of(listings)
    ordered = found if rows.are_in_listed_order else _by_partition(found)
    segments = (row for row in ordered if isinstance(row, SegmentRow))
    with paged_lines() as write:
        for _, group in groupby(segments, key=lambda row: row.partition.directory):
            for line in segment_chart(list(group), canvas, columns.size_text, columns.zone):
                write(line)
        for line in last_lines(rows, columns) if has_sums else ():
            write(line)


def _by_partition(found: Iterator[Row]) -> Iterator[Row]:
    """Yield sorted rows grouped by partition, in the order of first appearance; within a partition by offset."""
    partitions: dict[str, list[SegmentRow]] = {}
    for row in found:
        if isinstance(row, SegmentRow):
            partitions.setdefault(row.partition.directory, []).append(row)
    for rows in partitions.values():
        yield from sorted(rows, key=lambda row: row.segment.base_offset)


def segment_chart(
    rows: Sequence[SegmentRow], canvas: Canvas, size: Callable[[int], str], zone: tzinfo = UTC
) -> Iterator[str]:
    """Draw the segments of a partition as bars along time, or along offsets if a segment with records has no time."""
    yield partition_line(rows[0].partition, size, zone)
    spans = _times(rows)
    is_of_time = spans is not None
    drawn = _offsets(rows) if spans is None else spans
    known = [span for span in drawn if span is not None]
    if not known:
        return
    axis = Span(min(span.first for span in known), max(span.last for span in known))
    disorders = {each.base_offset: each for each in _disorders(rows)}
    yield _axis_line(axis, zone, is_of_time=is_of_time)
    columns = _label_columns(set(disorders), size, zone)
    shown = columns[: None if is_of_time and canvas.width >= _WIDE else -1 if is_of_time else -2]
    labels = aligned_lines(shown, rows)
    widest = max(map(len, labels))
    room = max(canvas.width - widest - 2 * BAR_GAP, LEAST_BAR)
    bars = [
        "TIME" if is_of_time else "OFFSETS",
        *("" if span is None else span_bar(span, axis, room, has_blocks=canvas.has_blocks) for span in drawn),
    ]
    for label, drawing in zip(labels, bars, strict=True):
        yield f"  {label:<{widest}}  {drawing}".rstrip()
    yield from _disorder_lines(list(disorders.values()))


def _times(rows: Sequence[SegmentRow]) -> list[Span | None] | None:
    """Return the span of times of each segment, or None if a segment with records has no time."""
    spans: list[Span | None] = []
    for row in rows:
        first, largest = row.segment.first_timestamp, row.segment.largest_timestamp
        if row.segment.last_offset is None:
            spans.append(None)
        elif first < 0 or largest < 0:
            return None
        else:
            spans.append(Span(min(first, largest), largest))
    return spans


def _offsets(rows: Sequence[SegmentRow]) -> list[Span | None]:
    """Return the offsets of each segment."""
    return [
        None if row.segment.last_offset is None else Span(row.segment.base_offset, row.segment.last_offset)
        for row in rows
    ]


def _disorders(rows: Sequence[SegmentRow]) -> Iterator[_Disorder]:
    largest = -1
    for row in rows:
        first = row.segment.first_timestamp
        if 0 <= first < largest:
            yield _Disorder(row.segment.base_offset, largest - first)
        largest = max(largest, row.segment.largest_timestamp)


def _disorder_lines(found: Sequence[_Disorder]) -> Iterator[str]:
    if not found:
        return
    most = max(found, key=lambda each: each.by_ms)
    where = f"in {plural(len(found), 'segment')}, marked {_MARK}"
    yield f"  {_MARK} timestamps go back {where}: by {duration_text(most.by_ms)} at offset {most.base_offset}"


def _axis_line(axis: Span, zone: tzinfo, *, is_of_time: bool) -> str:
    if not is_of_time:
        return f"  offsets {axis.first} to {axis.last}"
    lasting = duration_text(axis.last - axis.first)
    return f"  time {time_text(axis.first, zone)} to {time_text(axis.last, zone)}, {lasting}"


def _label_columns(marked: set[int], size: Callable[[int], str], zone: tzinfo) -> list[Column[SegmentRow]]:
    """Return columns next to the bars, the times last."""
    columns: list[Column[SegmentRow]] = [
        Column(fields.BASE_OFFSET, "BASE", lambda row: row.segment.base_offset),
        Column(fields.LAST_OFFSET, "LAST", lambda row: row.segment.last_offset),
        Column(fields.BYTES, "SIZE", lambda row: row.segment.size, lambda row: size_words(row.segment.size, size)),
        Column(FOR_PEOPLE, zoned_title("FIRST TIME", zone), lambda row: time_text(row.segment.first_timestamp, zone)),
        Column(
            FOR_PEOPLE, zoned_title("LARGEST TIME", zone), lambda row: time_text(row.segment.largest_timestamp, zone)
        ),
    ]
    mark: Column[SegmentRow] = Column(FOR_PEOPLE, "", lambda row: _MARK if row.segment.base_offset in marked else "")
    return [*((mark,) if marked else ()), *columns]
