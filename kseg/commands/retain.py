"""`kseg retain`: lists the segments that retention would delete, and their times."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.now import LOCK_FILE, settle_now
from kseg.cluster.partition_settings import TopicRetention
from kseg.commands.options.command import command, is_given
from kseg.errors import UsageError, plural
from kseg.log.freeing import Share, ShareOf, plan_freeing, wanted_of
from kseg.log.segments import RetentionSettings
from kseg.log.selection import PartitionChoice
from kseg.output.forms import Form, form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.rewrite.compact import copy_retained, retain_partition
from kseg.store.target import check_absent, check_outside
from kseg.text.compaction import RetentionReport
from kseg.text.retention import write_freeing
from kseg.times import parse_zone, time_or_none

TIMELINE = "timeline"
"""Form of output that shows when each segment is deleted."""


class RetainOptions(NamedTuple):
    """Retention settings, the space to free, and the directory of a copy."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    retention_ms: int
    retention_bytes: int
    now: str | None
    zone: str
    output: str
    free: int | Share | None
    server_properties: Mapping[str, str]
    bootstrap_server: str
    talk: Talk
    directory: Path | None


@command(RetainOptions)
def retain(options: RetainOptions) -> None:
    """Show which segments retention would delete, and when.

    Use `retain` to see the segments that retention deletes by time, by size and by log start offset, or to plan how to
    free space. It deletes nothing.

    \b
    Examples:
      kseg retain orders-0/ --retention-ms 86400000
      kseg retain kafka-logs/ --retention-bytes 50GB -o json
      kseg retain orders-0/ --now 2026-12-01T00:00 -o timeline
      kseg retain kafka-logs/ --free 5KB

    PATHS are partition directories, log directories, or parents of these. The output ends with sums by topic, by log
    directory, and in total.

    Settings come from the given options, then from the topic (including cleanup.policy), its broker and its cluster if
    __cluster_metadata is in the same log directory or in another given one of the same cluster, then from
    --server-properties, then from Kafka's defaults. A partition in cleaner-offset-checkpoint is compacted: if its
    policy is unknown, the output says so, and nothing is deleted by age or size. __cluster_metadata is retained by its
    snapshots, with the defaults of metadata.max.retention.ms and .bytes.

    --free takes a size or a share. 20% is a share of the disk, as `df` shows its size, while a broker uses it. For a
    copy, it is a share of the logs. disk:20% and logs:20% choose.

    --free lowers retention.ms of the topics that free most, to the greatest age that frees enough; segments that are
    deletable now count. The plan names segments that stay because of a time in the future, and omits topics that
    are only compacted, and internal ones. The output has the kafka-configs.sh commands that do it, and those that undo
    it. The exit status is 1 if the space can't be freed.

    --to copies one partition, from the replica that the cluster continued with, without deletable segments. If all are
    deletable, the copy has an empty segment at the log end offset, as a broker rolls it.
    """
    paths, choice, directory, talk = options.paths, options.choice, options.directory, options.talk
    zone, form = parse_zone(options.zone), form_named(options.output)
    draws_timeline = options.output == TIMELINE
    if options.free is not None and (directory is not None or draws_timeline):
        raise UsageError("--free needs -o text or -o json, and no --to")
    given_ms = time_or_none(options.now, zone)
    given = [name for name in ("retention_ms", "retention_bytes") if is_given(name)]
    cluster = Cluster(paths, talk.refuse)
    now = settle_now(given_ms, cluster)
    settings = RetentionSettings(now.ms, options.retention_ms, options.retention_bytes)
    topics = TopicRetention(cluster, settings, given, static=options.server_properties)
    partitions = [cluster.only_partition(choice).best] if directory is not None else []
    for partition in cluster.directories(choice) if directory is None else ():
        left_out = topics.use.left_out(partition)
        if left_out is None or (options.free is None and cluster.was_given(partition)):
            partitions.append(partition)
        else:
            talk.note(f"omitted: {left_out.text()}")
    if options.free is not None:
        freeable = [*map(topics.freeable, partitions)]
        for problem in dict.fromkeys(problem for each in freeable for problem in each.problems):
            talk.note(f"{problem}; the plan may lack what is there")
        wanted = wanted_of(options.free, freeable, _disk_size(cluster, options.free))
        plan = plan_freeing(freeable, wanted.size)
        write_freeing(plan, wanted, form, now, zone, options.bootstrap_server)
        talk.note(*now.sentences())
        _note_sources(topics, form, talk)
        talk.end_with(not plan.is_enough)
        return
    if directory is not None:
        check_absent(directory)
        check_outside(directory, paths)
    copied, report = None, RetentionReport(form, now, zone, draws_timeline=draws_timeline)
    for partition in partitions:
        retained = retain_partition(partition, topics.of(partition))
        copied = None if directory is None else copy_retained(partition, retained, directory, paths)
        report.take(partition, retained)
    if not talk.is_quiet:
        report.finish(directory, copied)
    flush_stdout()
    talk.note(*now.sentences())
    _note_sources(topics, form, talk)
    if partitions and not report.has_deletions:
        talk.note(f"retention deletes nothing of {plural(len(partitions), 'partition')} at this time")


def _disk_size(cluster: Cluster, free: int | Share) -> int:
    """Return bytes of the file systems that a share applies to: the broker's, or any if the disk is named.

    The size of the broker's disk is unknown if the directories are a copy.
    """
    from kseg.doctor.check_up import disks_of
    from kseg.system.file_locks import is_locked

    if not isinstance(free, Share) or free.of is ShareOf.LOGS:
        return 0
    paths = [path.absolute() for path in cluster.metadata_dirs()]
    return sum(disk.size for disk in disks_of(path for path in paths if free.of or is_locked(path / LOCK_FILE)))


def _note_sources(topics: TopicRetention, form: Form, talk: Talk) -> None:
    """Report the sources of the settings."""
    sources = topics.sources.as_note() if form.is_for_people else None
    if sources is not None:
        talk.note(sources)
