"""`kseg compact`: cleans a partition like the log cleaner."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import limit_to_contents
from kseg.cluster.metadata_copy import AdjacentMetadata, TopicIds
from kseg.cluster.now import settle_now
from kseg.cluster.partition_settings import SettingSources, as_the_topic_sets, is_never_compacted
from kseg.cluster.taken import taken_of
from kseg.commands.options.command import command, is_given
from kseg.errors import UsageError
from kseg.log.cleaner import CompactSettings
from kseg.log.compaction_plan import RemovalReason
from kseg.log.selection import PartitionChoice
from kseg.output.forms import form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.rewrite.compact import compact_partition
from kseg.store.target import check_absent, check_outside, new_directory
from kseg.text.compaction import compaction_notes, write_compacted
from kseg.times import parse_zone, time_or_none


class CleanerOptions(NamedTuple):
    """Settings of a broker's cleaner, the offset where it begins, and the time used as now."""

    first_dirty_offset: int | None
    now: str | None
    zone: str
    delete_retention_ms: int
    min_compaction_lag_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    log_cleaner_dedupe_buffer_size: int
    producer_id_expiration_ms: int

    def settings(self, now_ms: int) -> CompactSettings:
        """Return the settings that the options give, with the time used as now."""
        return CompactSettings(
            now_ms=now_ms,
            delete_retention_ms=self.delete_retention_ms,
            min_compaction_lag_ms=self.min_compaction_lag_ms,
            first_dirty_offset=self.first_dirty_offset,
            segment_bytes=self.segment_bytes,
            segment_index_bytes=self.segment_index_bytes,
            index_interval_bytes=self.index_interval_bytes,
            dedupe_buffer_size=self.log_cleaner_dedupe_buffer_size,
            producer_expiration_ms=self.producer_id_expiration_ms,
        )


class CompactOptions(NamedTuple):
    """The place of the cleaned partition, and the printed messages."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    cleaner: CleanerOptions
    directory: Path | None
    dry_run: bool
    output: str
    talk: Talk
    verbose: bool
    cluster_metadata: Path | None
    server_properties: Mapping[str, str]


@command(CompactOptions)
def compact(options: CompactOptions) -> None:
    """Compact a partition as a broker would.

    Use `compact` to preview a cleaning, or to clean a copy of a partition. The last record of each key stays, at its
    offset. PATHS never change.

    \b
    Examples:
      kseg compact orders-0/ --dry-run
      kseg compact orders-0/ --to cleaned/orders-0
      kseg compact orders-0/ --delete-retention-ms 0 --now 2026-12-01T00:00 -o json --to cleaned/orders-0

    PATHS contain one partition; with --dry-run, they may contain several. Tombstones, transaction markers and empty
    batches stay as long as the cleaner keeps them. The active segment stays unchanged, and so does everything after the
    start of an open transaction. v0 and v1 entries keep their format, as with cleaners before 4.0.

    Settings come from the given options, then from the topic and its broker if a __cluster_metadata is in PATHS or next
    to them, then from --server-properties. Unless --topic or its own path names it, --dry-run omits a partition whose
    cleanup.policy is delete.

    The exit status is 1 if records have no key. Kafka refuses such records on compacted topics, and its cleaner drops
    them.
    """
    paths, choice, directory = options.paths, options.choice, options.directory
    if options.dry_run == (directory is not None):
        raise UsageError("specify either --to DIR or --dry-run")
    talk, read = options.talk, (*paths, options.cluster_metadata)
    given_ms = time_or_none(options.cleaner.now, parse_zone(options.cleaner.zone))
    cluster = Cluster(paths, talk.refuse if directory is None else limit_to_contents(talk.refuse))
    if directory is None:
        found = [*cluster.partitions(choice)]
    else:
        found = [cluster.only_partition(choice)]
        check_absent(directory)
        check_outside(directory, read)
    beside = AdjacentMetadata(
        log_dirs=cluster.metadata_dirs(), static=options.server_properties, given=options.cluster_metadata
    )
    now = settle_now(given_ms, cluster)
    asked = options.cleaner.settings(now.ms)
    given = [name for name in CleanerOptions._fields if is_given(name)]
    without_key, topic_ids = 0, TopicIds(cluster, options.cluster_metadata)
    form, sources = form_named(options.output), SettingSources(beside, given)
    talk.note(*taken_of(found).sentences(verbose=options.verbose))
    for partition in (each.best for each in found if each.copies):
        is_named = directory is not None or choice.topics or cluster.was_given(partition)
        if not is_named and is_never_compacted(partition, beside):
            talk.note(
                f"omitted: {partition.path}: Kafka doesn't compact it, since its cleanup.policy is delete; specify"
                f" --topic {partition.topic} to compact it anyway"
            )
            continue
        new = nullcontext() if directory is None else new_directory(directory, read)
        with new as unfinished:
            topic_id = None if unfinished is None else topic_ids.lost_by(partition)
            sources.take(partition, ("delete.retention.ms", "min.compaction.lag.ms"))
            settings = as_the_topic_sets(beside.topic_settings(partition), asked, given)
            done = compact_partition(partition, settings, unfinished, topic_id=topic_id)
        for note in compaction_notes(partition, done):
            talk.warn(note)
        without_key += done.gone[RemovalReason.NO_KEY]
        write_compacted(partition, done, now, form, quiet=talk.is_quiet)
    flush_stdout()
    talk.note(*now.sentences())
    told = sources.as_note() if form.is_for_people else None
    if told is not None:
        talk.note(told)
    talk.end_with(without_key > 0)
