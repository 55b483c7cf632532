"""`kseg compact`: what the log cleaner would leave."""

import time
from pathlib import Path

import click

from kseg.archive.untouched import check_outside
from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import cluster_metadata_option
from kseg.commands.parameters import NewDirectory, int_number, long_number
from kseg.errors import UsageError
from kseg.index.rebuild import INDEX_INTERVAL_BYTES
from kseg.log.compact.compact import Compacted, compact_partition
from kseg.log.compact.filter import Gone
from kseg.log.compact.plan import (
    DEDUPE_BUFFER_SIZE,
    DELETE_RETENTION_MS,
    PRODUCER_EXPIRATION_MS,
    CompactSettings,
)
from kseg.log.partition.log_dir import partitions_at
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.roll import SEGMENT_BYTES, SEGMENT_INDEX_BYTES
from kseg.output.compact import compacted_lines, compacted_object
from kseg.output.json_lines import write_json
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.talk import talk
from kseg.system.new_directory import new_directory
from kseg.times import parse_time
from kseg.views.topic_ids import TopicIds


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("-o", "--output", "directory", type=NewDirectory("--format"), help="The new directory.")
@click.option("--dry-run", is_flag=True, help="Only tell how much would go.")
@click.option(
    "--delete-retention-ms",
    type=long_number(),
    default=DELETE_RETENTION_MS,
    show_default=True,
    help="As delete.retention.ms: for how long tombstones and markers stay.",
)
@click.option(
    "--min-compaction-lag-ms",
    type=long_number(),
    default=0,
    show_default=True,
    help="As min.compaction.lag.ms: how old records are at least.",
)
@click.option(
    "--first-dirty-offset", type=long_number(), help="Clean from here on; else as the cleaner's checkpoint says."
)
@click.option("--now", metavar="TIME", help="Time to judge by; the clock's by itself.")
@click.option(
    "--segment-bytes",
    type=int_number(1),
    default=SEGMENT_BYTES,
    show_default=True,
    help="As segment.bytes: up to here small segments are joined.",
)
@click.option(
    "--index-max-bytes",
    type=int_number(12),
    default=SEGMENT_INDEX_BYTES,
    show_default=True,
    help="As segment.index.bytes: likewise for indexes.",
)
@click.option(
    "--index-interval-bytes",
    type=int_number(),
    default=INDEX_INTERVAL_BYTES,
    show_default=True,
    help="Bytes between index entries.",
)
@click.option(
    "--dedupe-buffer-size",
    type=long_number(48),
    default=DEDUPE_BUFFER_SIZE,
    show_default=True,
    help="As log.cleaner.dedupe.buffer.size: memory of the offset map, 24 bytes a key; more keys take more passes.",
)
@click.option(
    "--producer-id-expiration-ms",
    type=long_number(1),
    default=PRODUCER_EXPIRATION_MS,
    show_default=True,
    help="As producer.id.expiration.ms: for how long the last batch of an idle producer is kept.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Of the report."
)
@click.option("-q", "--quiet", is_flag=True, help="Don't tell what was done.")
@cluster_metadata_option
@reads_archives("path")
@click.pass_context
def compact(
    command: click.Context,
    /,
    path: Path,
    directory: Path | None,
    dry_run: bool,
    now: str | None,
    index_max_bytes: int,
    producer_id_expiration_ms: int,
    form: str,
    quiet: bool,
    cluster_metadata: Path | None,
    **options: int | None,
) -> None:
    """Clean a partition as the log cleaner does: what stays is the last record of each key, at its offset.

    \b
    Examples:
      kseg compact orders-0/ --dry-run
      kseg compact orders-0/ -o cleaned/orders-0
      kseg compact orders-0/ --delete-retention-ms 0 --now 2026-12-01T00:00 --format json -o cleaned/orders-0

    PATH is a partition's directory; with --dry-run it may hold several. Tombstones, markers of transactions and empty
    batches stay as long as the cleaner keeps them; the active segment is left alone, and what lies behind an open
    transaction. v0 and v1 entries keep their format, as cleaners before 4.0 left them. The exit status is 1 if records
    have no key: Kafka refuses such on compacted topics, and its cleaner drops them.
    """
    if dry_run == (directory is not None):
        raise UsageError("give either -o for a new directory, or --dry-run")
    partitions = list(partitions_at(path, Refusals()))
    if directory is not None and len(partitions) != 1:
        raise UsageError(f"{len(partitions)} partitions are here: give the directory of one", path)
    if directory is not None:
        check_outside(directory, (path, cluster_metadata))
    settings = CompactSettings(
        now_ms=time.time_ns() // 1_000_000 if now is None else parse_time(now),
        segment_index_bytes=index_max_bytes,
        producer_expiration_ms=producer_id_expiration_ms,
        **options,  # type: ignore[arg-type]  # click has checked them
    )
    without_key = 0
    for partition in partitions:
        done = _compact(partition, settings, directory, cluster_metadata)
        for note in done.notes:
            talk(f"kseg: {note}")
        if done.gone[Gone.NO_KEY]:
            talk(f"kseg: {partition.path}: {done.gone[Gone.NO_KEY]} records have no key, so that they go")
        without_key += done.gone[Gone.NO_KEY]
        if form == "json":
            write_json(compacted_object(partition, done))
        for line in compacted_lines(partition, done) if form == "text" and not quiet else ():
            write_line(line)
    flush_stdout()
    command.exit(int(without_key > 0))


def _compact(
    partition: PartitionLog, settings: CompactSettings, directory: Path | None, cluster_metadata: Path | None
) -> Compacted:
    if directory is None:
        return compact_partition(partition, settings)
    with new_directory(directory) as unfinished:
        topic_id = TopicIds(cluster_metadata).lost_by(partition)
        return compact_partition(partition, settings, unfinished, topic_id=topic_id)
