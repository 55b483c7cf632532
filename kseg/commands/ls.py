"""`kseg ls`: topics, partitions and segments."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.listing_options import broker_settings_options, listing_settings
from kseg.commands.options import (
    color_option,
    csv_safe_option,
    gentle_options,
    output_option,
    paths_argument,
    processes_beside_others,
    processes_option,
    progress_option,
    quiet_option,
    raw_option,
)
from kseg.commands.parameters import is_given
from kseg.commands.partition_options import partition_options
from kseg.commands.selection_options import selection_of, selection_options
from kseg.log.partition.listing import PartitionListing
from kseg.log.partition.log_dir import find_partitions
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.partition.partition_log import PartitionLog
from kseg.output.listing import ListingColumns, Totals, write_listings
from kseg.output.progress import Count, ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.row_writer import RowWriter
from kseg.output.stdout import flush_stdout
from kseg.output.talk import note_unless, talk
from kseg.system.page_cache import tells_cache
from kseg.times import parse_zone
from kseg.views.listings import Lister

SORT_KEYS = {
    "name": lambda listing: (listing.topic, listing.partition.partition or 0, str(listing.partition.path)),
    "size": lambda listing: -listing.size,
    "segments": lambda listing: -len(listing.segments),
    "time": lambda listing: -listing.largest_timestamp,
    "offset": lambda listing: -listing.log_end_offset,
}
"""Orders of partitions; all except the one by name put the largest first."""


@click.command()
@paths_argument
@partition_options
@click.option("--sort", type=click.Choice(list(SORT_KEYS)), help="Order of the partitions; the directories' by itself.")
@click.option("--deep", is_flag=True, help="Read every header: records, batches, ratios, producers, transactions.")
@broker_settings_options
@click.option("--cache", is_flag=True, help="How much of each log lies in the page cache; Linux alone tells.")
@selection_options("is_followed")
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@processes_option
@gentle_options
@progress_option
@reads_archives("paths")
@click.pass_context
def ls(
    command: click.Context,
    /,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    sort: str | None,
    output: str,
    csv_safe: bool,
    quiet: bool,
    color: bool | None,
    processes: int | None,
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

    PATHS are partition directories, log directories (such as all disks of a broker), or parents of these; by default
    the current directory. `ls` reads names, sizes, indexes, and the first and last batches; --deep reads all headers.

    With a selection, as in `kseg dump`, `ls` lists only segments that have selected records: how many, in how many
    batches and bytes, and their offsets and times.

    CACHED, with --cache, is how much of the log was in the page cache before `ls` read it.

    ABORTED counts aborted transactions, INDEX and TIMES count the entries of .index and .timeindex, and HEALTH says
    what is wrong with these. ROLLED is why the next segment was started, RETENTION what retention would do with this
    one. It uses the given options, then the topics' settings, including cleanup.policy, if a small __cluster_metadata
    is in the same log directory, and then Kafka's defaults.
    """
    writer = RowWriter(output, color, csv_safe=csv_safe)
    zone = parse_zone(options["zone"])
    settings = listing_settings(options, zone)
    given = [name for name in ("retention_ms", "retention_bytes") if is_given(command, name)]
    processes = processes_beside_others(processes, gentle=gentle)
    if options["cache"] and not tells_cache():
        talk("kseg: --cache: this system doesn't say what is in the page cache; only Linux does")
    selection = selection_of(options)
    columns = ListingColumns(settings.deep, not selection.is_everything, settings.cache, zone)
    lister = Lister(settings, given, selection, note_unless(quiet=quiet))
    refuse, totals = Refusals(), Totals(has_selection=columns.selected)

    places = find_partitions(paths, lister.in_turn(refuse), choice)

    def listings() -> Iterator[PartitionListing]:
        with ProgressBar(progress) as bar:
            count = bar.counting("ls")
            for listing in lister.listings(_expected(places, count), processes, count):
                totals.add(listing)
                yield listing

    write_listings(listings() if sort is None else sorted(listings(), key=SORT_KEYS[sort]), totals, columns, writer)
    flush_stdout()
    command.exit(max(refuse.status, int(lister.found_problems)))


def _expected(places: Iterable[PartitionLog], count: Count) -> Iterator[PartitionLog]:
    """The partitions, each expected by the count before it comes."""
    for place in places:
        count.expect(place.size)
        yield place
