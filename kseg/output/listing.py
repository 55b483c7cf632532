"""Writes listings: lines for people, as many at once as need little memory; JSON, CSV, tables."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from kseg.counted import counted
from kseg.log.partition.listing import PartitionListing
from kseg.log.partition.listing_rows import ListingSum, Row, Rows, SegmentRow
from kseg.output.json_lines import write_json
from kseg.output.listing_columns import ListingColumns, partition_line, size_words
from kseg.output.pager import paged_lines
from kseg.output.row_writer import RowWriter
from kseg.output.stdout import write_line
from kseg.output.table import GrowingLines, aligned_lines
from kseg.output.talk import talk


def write_listings(
    listings: Iterable[PartitionListing], rows: Rows, columns: ListingColumns, writer: RowWriter, *, has_sums: bool
) -> None:
    """Writes the rows of partitions as these come, what is cut, and sums at the end, which CSV doesn't have.

    has_sums: whether the end is wanted.
    """
    found = rows.of(listings)
    if writer.form.name == "text":
        with paged_lines() as write:
            _write_lines(found, rows, columns, write)
            for line in _last_lines(rows, columns) if has_sums else ():
                write(line)
        return
    if writer.form.name == "table":
        writer.write(columns.section(), _with_largest(found))
        for line in _last_lines(rows, columns) if has_sums else ():
            write_line(line)
        return
    writer.write(columns.section(), found)
    if not has_sums:
        return
    if writer.form.name == "json":
        if rows.cut.rows:
            write_json({"type": "cut", "rows": rows.cut.rows, "bytes": rows.cut.size})
        write_json(columns.total().as_object(rows.total))
    elif rows.cut.rows:
        talk(f"kseg: {_cut_line(rows, columns)}")


def _write_lines(found: Iterator[Row], rows: Rows, columns: ListingColumns, write: Callable[[str], None]) -> None:
    if columns.by == "segment" and rows.are_in_listed_order:
        _write_by_partition(found, columns, write)
        return
    lines = GrowingLines(columns.section().shown_columns, write)
    for row in found:
        lines.add(row)
    lines.finish()


def _write_by_partition(found: Iterator[Row], columns: ListingColumns, write: Callable[[str], None]) -> None:
    """Segments below a heading for their partition."""
    shown = columns.section(names=False).shown_columns
    segments = (row for row in found if isinstance(row, SegmentRow))
    for partition, group in groupby(segments, key=lambda row: row.partition):
        write(partition_line(partition, columns.size_text, columns.zone))
        for line in aligned_lines(shown, group):
            write(f"  {line}")


def _with_largest(found: Iterator[Row]) -> Iterator[Row]:
    """Segments of several partitions with the size of the largest of all, for their bars."""
    rows = list(found)
    largest = max((row.size for row in rows), default=0)
    for row in rows:
        yield row._replace(largest_size=largest) if isinstance(row, SegmentRow) else row


def _last_lines(rows: Rows, columns: ListingColumns) -> Iterator[str]:
    if rows.cut.rows:
        yield _cut_line(rows, columns)
    yield _total_line(rows.total, columns)


def _cut_line(rows: Rows, columns: ListingColumns) -> str:
    plural = "more directories" if columns.by == "directory" else None
    size = size_words(rows.cut.size, columns.size_text)
    return f"Not shown: {counted(rows.cut.rows, f'more {columns.by}', plural)}, {size}"


def _total_line(total: ListingSum, columns: ListingColumns) -> str:
    """The sums for people."""
    sums = [
        counted(len(total.topics), "topic"),
        counted(total.partitions, "partition"),
        counted(total.segments, "segment"),
        size_words(total.size, columns.size_text),
    ]
    if total.records is not None and columns.deep:
        sums.append(counted(total.records, "record"))
    if columns.selected:
        sums.append(f"{counted(0 if total.selected is None else total.selected.records, 'record')} selected")
    going = size_words(total.size_to_delete, columns.size_text)
    deletes = f"; retention would delete {counted(total.segments_to_delete, 'segment')}, {going}"
    return f"Total: {', '.join(sums)}" + (deletes if total.segments_to_delete else "")
