"""`kseg slice`: copies a piece of a partition, batch by batch."""

from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import limit_to_contents
from kseg.cluster.metadata_copy import TopicIds
from kseg.commands.options.command import command
from kseg.errors import UsageError
from kseg.log.selection import PartitionChoice, Selection, parse_bytes
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_line
from kseg.rewrite.slice import SliceSettings, slice_partition
from kseg.store.target import check_absent, check_outside, new_directory
from kseg.text.salvage import holes_line, left_open_line, missed_options, sliced_lines
from kseg.text.selected import asked_text
from kseg.times import parse_zone, time_or_none


class SliceOptions(NamedTuple):
    """The copied piece, and its new directory."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    directory: Path
    from_offset: int | None
    to_offset: int | None
    from_time: str | None
    to_time: str | None
    zone: str
    drop_offset: tuple[int, ...]
    drop_key: tuple[str, ...]
    talk: Talk
    cluster_metadata: Path | None


@command(SliceOptions)
def slice(options: SliceOptions) -> None:  # noqa: A001  the command's name
    """Copy part of a partition.

    Use `slice` to copy a range of offsets or times, or to omit single records. Batches are copied unchanged, and
    indexes are rebuilt. PATHS never change.

    \b
    Examples:
      kseg slice orders-0/ --from-offset 203000 --to-offset 204000 --to piece/orders-0
      kseg slice orders-0/ --from-time 2026-11-01T00:00 --to-time 2026-11-02T00:00 --to day/orders-0
      kseg slice orders-0/ --drop-offset 203500 --to fixed/orders-0

    PATHS are a partition directory, or log directories with --topic and --partition. Offsets stay; a broker accepts the
    new directory. --drop-offset and --drop-key omit records: only their batches are rewritten. If no record
    matches one of these, the rest is written, and the exit status is 1.
    """
    cluster = Cluster(options.paths, limit_to_contents(Talk().refuse))
    partition = cluster.only_partition(options.choice).best
    read = (*options.paths, options.cluster_metadata)
    check_absent(options.directory)
    check_outside(options.directory, read)
    zone = parse_zone(options.zone)
    dropped_keys = {parse_bytes(key): key for key in options.drop_key}
    settings = SliceSettings(
        options.from_offset,
        options.to_offset,
        time_or_none(options.from_time, zone),
        time_or_none(options.to_time, zone),
        frozenset(options.drop_offset),
        frozenset(dropped_keys),
    )
    with new_directory(options.directory, read) as unfinished:
        topic_id = TopicIds(cluster, options.cluster_metadata).lost_by(partition)
        sliced = slice_partition(partition, unfinished, settings, topic_id)
        if not sliced.segments:
            asked = Selection(options.from_offset, options.to_offset, settings.from_ms, settings.to_ms)
            raise UsageError(f"none of its records matches {asked_text(asked, zone)}", partition.path)
    for line in () if options.talk.is_quiet else sliced_lines(sliced, options.directory):
        write_line(line)
    flush_stdout()
    if (holes := holes_line(sliced)) is not None:
        options.talk.note(f"{options.directory}: {holes}")
    if (left_open := left_open_line(sliced)) is not None:
        options.talk.note(f"{options.directory}: {left_open}")
    for option in missed_options(sliced, dropped_keys):
        options.talk.warn(f"{partition.path}: {option}: no requested record matches it, so it left nothing out")
    options.talk.end_with(sliced.has_missed)
