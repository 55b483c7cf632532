"""`kseg ls`: topics, partitions and segments."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from kseg.commands.options import (
    color_option,
    csv_safe_option,
    gentle_options,
    output_option,
    paths_argument,
    progress_option,
    quiet_option,
    raw_option,
    reads_archives,
    selection_of,
    selection_options,
)
from kseg.commands.parameters import int_number, is_given, long_number
from kseg.log.partition.listing import ListingSettings, PartitionListing, list_partition, select_segments
from kseg.log.partition.log_dir import find_partitions
from kseg.log.partition.roll import (
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
    SEGMENT_MS,
    UNLIMITED,
    RetentionSettings,
    RollSettings,
)
from kseg.output.csv import CsvWriter, check_csv_safe
from kseg.output.listing import (
    SegmentRow,
    Totals,
    partition_line,
    partition_object,
    segment_columns,
    segment_object,
    segment_style,
    segment_values,
    shown_columns,
)
from kseg.output.progress import ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.table import TableColumn, aligned_lines, write_rich_table
from kseg.output.talk import talk
from kseg.system.gentle import give_way
from kseg.system.page_cache import tells_cache
from kseg.times import parse_zone
from kseg.views.remote_tiers import find_tier
from kseg.views.topic_retention import CHEAP_METADATA, TopicRetention

Columns = Sequence[TableColumn[SegmentRow]]

SORT_KEYS = {
    "name": lambda listing: (listing.topic, listing.partition.partition or 0, str(listing.partition.path)),
    "size": lambda listing: -listing.size,
    "segments": lambda listing: -len(listing.segments),
    "time": lambda listing: -listing.largest_timestamp,
    "offset": lambda listing: -listing.log_end_offset,
}
"""Orders of partitions; all but the name's put the largest first."""


@click.command()
@paths_argument
@click.option("--topic", metavar="GLOB", help="Only topics that match, 'ord*' for example.")
@click.option("--sort", type=click.Choice(list(SORT_KEYS)), help="Order of the partitions; the directories' by itself.")
@click.option("--deep", is_flag=True, help="Read every header: records, batches, ratios, producers, transactions.")
@click.option("--now", type=long_number(), metavar="MS", help="Time to judge retention by; the clock's by itself.")
@click.option(
    "--retention-ms", type=long_number(-1), default=RETENTION_MS, show_default=True, help="As retention.ms; -1 none."
)
@click.option(
    "--retention-bytes", type=long_number(-1), default=UNLIMITED, show_default=True, help="As retention.bytes; -1 none."
)
@click.option("--segment-bytes", type=int_number(1), default=SEGMENT_BYTES, show_default=True, help="As segment.bytes.")
@click.option("--segment-ms", type=long_number(1), default=SEGMENT_MS, show_default=True, help="As segment.ms.")
@click.option(
    "--segment-index-bytes",
    type=int_number(4),
    default=SEGMENT_INDEX_BYTES,
    show_default=True,
    help="As segment.index.bytes.",
)
@click.option("--cache", is_flag=True, help="How much of each log lies in the page cache; Linux alone tells.")
@selection_options("is_followed")
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@gentle_options
@progress_option
@reads_archives("paths")
@click.pass_context
def ls(
    command: click.Context,
    /,
    paths: tuple[Path, ...],
    topic: str | None,
    sort: str | None,
    deep: bool,
    now: int | None,
    retention_ms: int,
    retention_bytes: int,
    segment_bytes: int,
    segment_ms: int,
    segment_index_bytes: int,
    cache: bool,
    output: str,
    csv_safe: bool,
    quiet: bool,
    color: bool | None,
    keep_cache: bool,
    gentle: bool,
    progress: bool | None,
    **options: Any,
) -> None:
    """List topics, partitions and segments: offsets, sizes, times, codecs, indexes, why rolled, what retention does.

    \b
    Examples:
      kseg ls support.tar.gz
      kseg ls orders-0/
      kseg ls kafka-logs/ --from-time -1h --key customer-7
      kseg ls disk1 disk2 --topic 'ord*' --sort size
      kseg ls orders-0/ --cache
      kseg ls orders-0/ --deep -o json | jq 'select(.type == "segment") | .records'

    PATHS are partition directories, log directories (several of one broker: its disks), or parents of these; none means
    the current directory. Names, sizes, indexes, the first and the last batches are read; --deep reads all headers.

    With a selection, as `kseg dump` takes it, only segments are listed that hold such records, with how many these are,
    in how many batches and bytes, and their offsets and times.

    CACHED, with --cache, is how much of the log lay in the page cache before it was read.

    ABORTED counts aborted transactions, INDEX and TIMES the entries of .index and .timeindex, and HEALTH tells what is
    wrong with these; ROLLED is why the next segment was begun, RETENTION what retention
    makes of this one: by the options that are given, else by the topics' settings, cleanup.policy too, where a small
    __cluster_metadata lies in the same log directory, else by Kafka's defaults.
    """
    check_csv_safe(csv_safe, output)
    settings = ListingSettings(
        RetentionSettings(int(time.time() * 1000) if now is None else now, retention_ms, retention_bytes),
        RollSettings(segment_bytes, segment_ms, segment_index_bytes),
        deep,
        cache and tells_cache(),
        keep_cache,
    )
    given = [name for name in ("retention_ms", "retention_bytes") if is_given(command, name)]
    if gentle:
        give_way()
    if cache and not tells_cache():
        talk("kseg: --cache: this system doesn't tell what lies in the page cache, Linux alone does")
    zone = parse_zone(options["zone"])
    selection = selection_of(options)
    has_selection = not selection.is_everything
    left = selection.limit
    found_problems, refuse = False, Refusals()
    totals = Totals(has_selection=has_selection)

    def say(line: str) -> None:
        if not quiet:
            talk(f"kseg: {line}")

    def say_unread(path: Path, reason: str) -> None:
        by_hand = "retention goes by options and Kafka's defaults; `kseg retain` reads metadata of any size"
        say(f"{path}: not read: {reason}: {by_hand}")

    topics = TopicRetention(settings.retention, given, CHEAP_METADATA, say_unread)

    def listings() -> Iterator[PartitionListing]:
        nonlocal found_problems, left
        with ProgressBar(progress) as progress_bar:
            for place in find_partitions(paths, refuse):
                if topic is not None and not fnmatchcase(place.topic or place.path.name, topic):
                    continue
                own = replace(settings, retention=topics.of(place))
                listing = list_partition(place, own, progress_bar.counting(place.path.name, place.size))
                tier = find_tier(place, topics.beside)
                if tier is not None:
                    listing = replace(listing, log_start_offset=tier.log_start_offset, tier=tier)
                if has_selection:
                    listing = select_segments(listing, selection, say, left)
                    left = None if left is None else left - (listing.selected_records or 0)
                found_problems |= bool(listing.problems)
                for problem in listing.problems:
                    say(problem)
                if has_selection and not listing.segments:
                    continue
                totals.add(listing)
                yield listing

    ordered: Iterable[PartitionListing] = listings() if sort is None else sorted(listings(), key=SORT_KEYS[sort])
    is_table = output == "table"
    columns = shown_columns(deep=deep, names=is_table, selected=has_selection, cache=settings.cache, zone=zone)
    if output == "json":
        _write_json(ordered, totals, cache=settings.cache)
    elif output == "csv":
        _write_csv(ordered, selected=has_selection, cache=settings.cache, is_safe=csv_safe)
    elif is_table:
        _write_table(ordered, totals, columns, color=color)
    else:
        _write_text(ordered, totals, columns)
    flush_stdout()
    command.exit(max(refuse.status, int(found_problems)))


def _rows(listing: PartitionListing) -> list[SegmentRow]:
    largest = max((segment.size for segment in listing.segments), default=0)
    return [SegmentRow(listing, segment, largest) for segment in listing.segments]


def _write_json(listings: Iterable[PartitionListing], totals: Totals, *, cache: bool) -> None:
    from kseg.output.json_lines import write_json

    for listing in listings:
        write_json(partition_object(listing))
        for row in _rows(listing):
            write_json(segment_object(row, cache=cache))
    write_json(totals.as_object())


def _write_csv(listings: Iterable[PartitionListing], *, selected: bool, cache: bool, is_safe: bool) -> None:
    names = (column.name for column in segment_columns(selected=selected, cache=cache))
    writer = CsvWriter(names, is_safe=is_safe)
    for listing in listings:
        for row in _rows(listing):
            writer.write(segment_values(row, cache=cache))


def _write_table(listings: Iterable[PartitionListing], totals: Totals, columns: Columns, *, color: bool | None) -> None:
    rows = [row for listing in listings for row in _rows(listing)]
    largest = max((row.segment.size for row in rows), default=0)
    write_rich_table(
        columns,
        (row._replace(largest_size=largest) for row in rows),
        color=color,
        style=segment_style,
    )
    write_line(totals.line())


def _write_text(listings: Iterable[PartitionListing], totals: Totals, columns: Columns) -> None:
    for listing in listings:
        write_line(partition_line(listing))
        rows = _rows(listing)
        for line in aligned_lines(columns, rows) if rows else ():
            write_line(f"  {line}")
    write_line(totals.line())
