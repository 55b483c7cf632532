"""Listings as columns: of segments, of partitions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from operator import attrgetter
from typing import NamedTuple

from kseg.formats.codes import codec_name
from kseg.log.partition.listing import PartitionListing, SegmentListing
from kseg.log.partition.roll import Rolled
from kseg.output.json_lines import write_json
from kseg.output.row_writer import RowWriter, Section
from kseg.output.stdout import write_line
from kseg.output.table import TableColumn, bar
from kseg.times import time_text

OK = "ok"
_CACHE_BAR = 5


class SegmentRow(NamedTuple):
    """A segment's line with its partition's; `largest_size` is that of the segments shown, for the bar."""

    partition: PartitionListing
    segment: SegmentListing
    largest_size: int = 0


def _in_zone(column: TableColumn[SegmentRow], zone: tzinfo) -> TableColumn[SegmentRow]:
    """The column, its times as people read them in a zone, if it has such."""
    if not column.name.endswith("Timestamp"):
        return column

    def show(row: SegmentRow) -> str:
        timestamp = column.value(row)
        return time_text(timestamp, zone) if isinstance(timestamp, int) else ""

    return column._replace(show=show)


def _codec_text(codec: int) -> str:
    return codec_name(codec) or str(codec)


def _ratio(row: SegmentRow) -> float | None:
    return None if row.segment.ratio is None else round(row.segment.ratio, 2)


def _of_segment(name: str) -> Callable[[SegmentRow], object]:
    return attrgetter(f"segment.{name}")


_NAME_COLUMNS: tuple[TableColumn[SegmentRow], ...] = (
    TableColumn("topic", "TOPIC", -1, lambda row: row.partition.topic),
    TableColumn("partition", "PART", 1, lambda row: row.partition.partition.partition),
    TableColumn("directory", "DIRECTORY", -1, lambda row: str(row.partition.partition.path)),
)
_GLANCE_COLUMNS: tuple[TableColumn[SegmentRow], ...] = (
    TableColumn("baseOffset", "BASE", 1, _of_segment("base_offset")),
    TableColumn("lastOffset", "LAST", 1, _of_segment("last_offset")),
    TableColumn("bytes", "BYTES", 1, _of_segment("size")),
)
_BAR_COLUMN: TableColumn[SegmentRow] = TableColumn(
    "", "", -1, lambda _: None, lambda row: bar(row.segment.size, row.largest_size)
)
_TIME_COLUMNS: tuple[TableColumn[SegmentRow], ...] = (
    TableColumn("firstTimestamp", "FIRST TIME", -1, _of_segment("first_timestamp")),
    TableColumn("largestTimestamp", "LARGEST TIME", -1, _of_segment("largest_timestamp")),
    TableColumn(
        "codecs",
        "CODECS",
        -1,
        lambda row: [_codec_text(codec) for codec in row.segment.codecs],
        lambda row: ",".join(map(_codec_text, row.segment.codecs)),
    ),
    TableColumn(
        "magics",
        "MAGIC",
        1,
        lambda row: list(row.segment.magics),
        lambda row: ",".join(map(str, row.segment.magics)),
    ),
)
_DEEP_COLUMNS: tuple[TableColumn[SegmentRow], ...] = (
    TableColumn("records", "RECORDS", 1, _of_segment("records")),
    TableColumn("batches", "BATCHES", 1, _of_segment("batches")),
    TableColumn("compressionRatio", "RATIO", 1, _ratio),
    TableColumn(
        "producerIds",
        "PRODUCERS",
        1,
        lambda row: None if row.segment.producer_ids is None else list(row.segment.producer_ids),
        lambda row: "" if row.segment.producer_ids is None else str(len(row.segment.producer_ids)),
    ),
    TableColumn("openTransactions", "OPEN TXN", 1, _of_segment("open_transactions")),
)
_STATE_COLUMNS: tuple[TableColumn[SegmentRow], ...] = (
    TableColumn("abortedTransactions", "ABORTED", 1, _of_segment("aborted_transactions")),
    TableColumn("indexEntries", "INDEX", 1, _of_segment("index_entries")),
    TableColumn("timeIndexEntries", "TIMES", 1, _of_segment("time_index_entries")),
    TableColumn("indexHealth", "HEALTH", -1, _of_segment("index_health")),
    TableColumn("rolled", "ROLLED", -1, lambda row: str(row.segment.rolled)),
    TableColumn(
        "retention",
        "RETENTION",
        -1,
        lambda row: None if row.segment.retention is None else str(row.segment.retention),
    ),
)


def _of_selected(name: str) -> Callable[[SegmentRow], object]:
    return lambda row: getattr(row.segment.selected, name, None)


_SELECTED_COLUMNS: tuple[TableColumn[SegmentRow], ...] = (
    TableColumn("selectedRecords", "SEL RECORDS", 1, _of_selected("records")),
    TableColumn("selectedBatches", "SEL BATCHES", 1, _of_selected("batches")),
    TableColumn("selectedBytes", "SEL BYTES", 1, _of_selected("size")),
    TableColumn("selectedFirstOffset", "SEL FIRST", 1, _of_selected("first_offset")),
    TableColumn("selectedLastOffset", "SEL LAST", 1, _of_selected("last_offset")),
    TableColumn("selectedFirstTimestamp", "SEL FIRST TIME", -1, _of_selected("first_timestamp")),
    TableColumn("selectedLargestTimestamp", "SEL LARGEST TIME", -1, _of_selected("largest_timestamp")),
)
_CACHE_COLUMNS: tuple[TableColumn[SegmentRow], ...] = (
    TableColumn("cachedBytes", "CACHED", 1, _of_segment("cached_size"), lambda row: _cached_share(row.segment)),
    TableColumn(
        "", "", -1, lambda _: None, lambda row: bar(row.segment.cached_size or 0, row.segment.size, _CACHE_BAR)
    ),
)
SEGMENT_COLUMNS = (*_NAME_COLUMNS, *_GLANCE_COLUMNS, *_TIME_COLUMNS, *_DEEP_COLUMNS, *_STATE_COLUMNS)
"""Of JSON and CSV, without a selection."""


def _cached_share(segment: SegmentListing) -> str:
    if segment.cached_size is None:
        return "?"
    return f"{100 * segment.cached_size // segment.size}%" if segment.size else ""


@dataclass(frozen=True, slots=True)
class ListingColumns:
    """Which columns of segments are wanted, and the zone of their times.

    deep: for people, those that only reading every header fills. selected: those of what is selected; for people in
    place of the whole segment's times and state. cache: how much lies in the page cache.
    """

    deep: bool = False
    selected: bool = False
    cache: bool = False
    zone: tzinfo = UTC

    def section(self, *, names: bool) -> Section[SegmentRow]:
        """The segments' rows; `names`: for people with the topic's name and the partition's number."""
        return Section("segment", None, self._columns(), segment_style, self._shown(names=names))

    def _columns(self) -> tuple[TableColumn[SegmentRow], ...]:
        """The columns of JSON and CSV."""
        columns = (*SEGMENT_COLUMNS, *_SELECTED_COLUMNS) if self.selected else SEGMENT_COLUMNS
        return (*columns, _CACHE_COLUMNS[0]) if self.cache else columns

    def _shown(self, *, names: bool) -> list[TableColumn[SegmentRow]]:
        """The columns for people."""
        columns = [*_NAME_COLUMNS[:2]] if names else []
        columns += [*_GLANCE_COLUMNS, _BAR_COLUMN, *(_CACHE_COLUMNS if self.cache else ())]
        if self.selected:
            columns += [*(_DEEP_COLUMNS if self.deep else ()), *_SELECTED_COLUMNS]
        else:
            columns += [*_TIME_COLUMNS, *(_DEEP_COLUMNS if self.deep else ()), *_STATE_COLUMNS]
        return [_in_zone(column, self.zone) for column in columns]


def segment_style(row: SegmentRow) -> str:
    """The style of a segment's line in a table."""
    if row.segment.index_health != OK:
        return "red"
    if row.segment.retention is not None and row.segment.retention.is_deletion:
        return "yellow"
    return "bold" if row.segment.rolled is Rolled.ACTIVE else ""


def partition_object(listing: PartitionListing) -> dict[str, object]:
    """A partition as JSON has it."""
    partition = listing.partition
    checkpoints = partition.checkpoints()
    selected = {} if listing.selected_records is None else {"selectedRecords": listing.selected_records}
    return {
        "type": "partition",
        "topic": listing.topic,
        "partition": partition.partition,
        "directory": str(partition.path),
        "state": None if partition.state is None else str(partition.state),
        "topicId": listing.topic_id,
        "segments": len(listing.segments),
        "bytes": listing.size,
        "records": listing.records,
        "logStartOffset": listing.log_start_offset,
        **({} if listing.tier is None else {"localStartOffset": listing.tier.local_start_offset}),
        "logEndOffset": listing.log_end_offset,
        "highWatermark": checkpoints.high_watermark,
        "recoveryPoint": checkpoints.recovery_point,
        "leaderEpoch": listing.leader_epoch,
        "largestTimestamp": listing.largest_timestamp,
        "leftovers": [file.name for file in partition.leftovers],
        "orphans": [file.name for segment in partition.orphans for file in segment.files],
        "problems": list(listing.problems),
        **selected,
    }


def partition_line(listing: PartitionListing) -> str:
    """A partition's heading for people."""
    partition = listing.partition
    parts = [
        _counted(len(listing.segments), "segment"),
        _counted(listing.size, "byte"),
        f"offsets {listing.log_start_offset} to {listing.log_end_offset}",
    ]
    if listing.tier is not None and listing.tier.has_remote_part:
        parts.append(listing.tier.text())
    if listing.records is not None:
        parts.append(_counted(listing.records, "record"))
    if listing.selected_records is not None:
        parts.append(f"{_counted(listing.selected_records, 'record')} selected")
    if partition.state is not None:
        parts.append(f"-{partition.state}")
    if listing.topic_id is not None:
        parts.append(f"topic id {listing.topic_id}")
    if listing.leader_epoch is not None:
        parts.append(f"leader epoch {listing.leader_epoch}")
    if partition.leftovers:
        parts.append(_counted(len(partition.leftovers), "leftover"))
    if partition.orphans:
        parts.append(f"{_counted(len(partition.orphans), 'segment')} with indexes but no log")
    return f"{partition.path}: {', '.join(parts)}"


class Totals:
    """Sums over what was listed; `selected` counts selected records, None without a selection."""

    def __init__(self, *, has_selection: bool = False) -> None:
        self.topics: set[str] = set()
        self.partitions = self.segments = self.size = self.to_delete = self.size_to_delete = 0
        self.records: int | None = 0
        self.selected: int | None = 0 if has_selection else None

    def add(self, listing: PartitionListing) -> None:
        """Takes a partition."""
        self.topics.add(listing.topic)
        self.partitions += 1
        self.segments += len(listing.segments)
        self.size += listing.size
        self.records = None if self.records is None or listing.records is None else self.records + listing.records
        if self.selected is not None:
            self.selected += listing.selected_records or 0
        going = [each for each in listing.segments if each.retention is not None and each.retention.is_deletion]
        self.to_delete += len(going)
        self.size_to_delete += sum(segment.size for segment in going)

    def as_object(self) -> dict[str, object]:
        """The sums as JSON has them."""
        return {
            "type": "total",
            "topics": len(self.topics),
            "partitions": self.partitions,
            "segments": self.segments,
            "bytes": self.size,
            "records": self.records,
            "segmentsToDelete": self.to_delete,
            "bytesToDelete": self.size_to_delete,
            **({} if self.selected is None else {"selectedRecords": self.selected}),
        }

    def line(self) -> str:
        """The sums for people."""
        sums = [
            _counted(len(self.topics), "topic"),
            _counted(self.partitions, "partition"),
            _counted(self.segments, "segment"),
            _counted(self.size, "byte"),
        ]
        if self.records is not None:
            sums.append(_counted(self.records, "record"))
        if self.selected is not None:
            sums.append(f"{_counted(self.selected, 'record')} selected")
        going = f"{_counted(self.to_delete, 'segment')}, {_counted(self.size_to_delete, 'byte')}"
        return f"Total: {', '.join(sums)}" + (f"; retention would delete {going}" if self.to_delete else "")


def write_listings(
    listings: Iterable[PartitionListing], totals: Totals, columns: ListingColumns, writer: RowWriter
) -> None:
    """Writes partitions as they come, and sums at the end; in a table and in CSV there are segments alone."""
    section = columns.section(names=writer.form == "table")
    if writer.form == "csv":
        writer.write(section, (row for listing in listings for row in _rows(listing)))
        return
    if writer.form == "table":
        rows = [row for listing in listings for row in _rows(listing)]
        largest = max((row.segment.size for row in rows), default=0)
        writer.write(section, (row._replace(largest_size=largest) for row in rows))
    else:
        for listing in listings:
            _write_partition(listing, section, writer)
    if writer.form == "json":
        write_json(totals.as_object())
    else:
        write_line(totals.line())


def _write_partition(listing: PartitionListing, section: Section[SegmentRow], writer: RowWriter) -> None:
    if writer.form == "json":
        write_json(partition_object(listing))
    else:
        write_line(partition_line(listing))
    if listing.segments:
        writer.write(section, _rows(listing))


def _rows(listing: PartitionListing) -> list[SegmentRow]:
    largest = max((segment.size for segment in listing.segments), default=0)
    return [SegmentRow(listing, segment, largest) for segment in listing.segments]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
