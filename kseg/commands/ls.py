"""`kseg ls`: lists topics, partitions and segments."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.listing import Lister, Turns
from kseg.cluster.now import settle_now
from kseg.commands.options.command import GivenSelection, RowOptions, WorkOptions, command, is_given
from kseg.errors import UsageError
from kseg.log.cleaner import CleaningSettings
from kseg.log.listing import ListingSettings
from kseg.log.listing_rows import Rows
from kseg.log.segments import RetentionSettings, RollSettings
from kseg.log.selection import PartitionChoice
from kseg.output.chart import CHART, canvas_of_stdout
from kseg.output.forms import RowWriter
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.system.page_cache import tells_cache
from kseg.text.listing import ListingColumns, write_listings
from kseg.text.segment_charts import write_charts
from kseg.text.selected import no_match_line
from kseg.tiered.placed_tiers import are_of_tiers
from kseg.times import parse_zone, time_or_none

OF_TOPICS = (
    "retention_ms",
    "retention_bytes",
    "segment_bytes",
    "segment_ms",
    "segment_index_bytes",
    "min_cleanable_dirty_ratio",
    "min_compaction_lag_ms",
    "max_compaction_lag_ms",
)
"""Options that apply to all topics if given; otherwise, a topic's own setting takes precedence."""


class BrokerSettings(NamedTuple):
    """A broker's defaults for topic settings, and the time used as now."""

    now: str | None
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    log_cleaner_dedupe_buffer_size: int

    def listing_settings(self, now_ms: int, *, deep: bool, cache: bool, keep_cache: bool) -> ListingSettings:
        """Return the settings of a listing; `now_ms`: the time used as now."""
        return ListingSettings(
            RetentionSettings(now_ms, self.retention_ms, self.retention_bytes),
            RollSettings(self.segment_bytes, self.segment_ms, self.segment_index_bytes),
            deep,
            cache and tells_cache(),
            keep_cache,
            CleaningSettings(
                now_ms,
                self.min_cleanable_dirty_ratio,
                self.min_compaction_lag_ms,
                self.max_compaction_lag_ms,
                self.log_cleaner_dedupe_buffer_size,
            ),
        )


class LsOptions(NamedTuple):
    """The unit of a line, the listed lines, and the files that are read."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    broker: BrokerSettings
    selected: GivenSelection
    by: str
    sort: str | None
    top: int | None
    has_exact_sizes: bool
    deep: bool
    cache: bool
    server_properties: Mapping[str, str]
    rows: RowOptions
    work: WorkOptions
    talk: Talk


@command(LsOptions)
def ls(options: LsOptions) -> None:
    """List topics, partitions and segments.

    Use `ls` for an overview of a disk: sizes, offsets, times, and the plans of retention and of the log cleaner. It
    reads names, sizes, indexes, and the first and last batches; --deep reads all headers of batches.

    \b
    Examples:
      kseg ls support.tar.gz
      kseg ls kafka-logs/ --sort size --top 20
      kseg ls disk1 disk2 --topic 'ord*' --by topic
      kseg ls orders-0/ --by segment --cache
      kseg ls kafka-logs/ --topic orders -o chart
      kseg ls bucket/ --by segment
      kseg ls kafka-logs/ --from-time -1h --key customer-7
      kseg ls orders-0/ --by segment --deep -o json | jq 'select(.type == "segment") | .records'

    PATHS are partition directories, log directories (such as all disks of a broker), parents of these, or remote tiers,
    also s3://BUCKET/PREFIX; by default the current directory.

    SIZE is the size of the logs. ON DISK is the allocated space of all files, as in `du`. It appears with --sort disk,
    and if preallocated files or holes make a large difference. FIRST and LAST are the first and last offset. DELETABLE
    is the size that retention would delete now.

    DIRTY is the dirty ratio of a compacted topic: cleanable bytes, as a share of these and the clean ones. NOTES say
    whether the log cleaner would clean now and, if not, why: it stops at open transactions, for example. These come
    from producer snapshots, or with --deep from all headers. Kafka doesn't store the time of a cleaning; --by segment
    shows the offset it reached, and since when nothing was cleaned in the log directory.

    With --by segment, ABORTED, INDEX and TIMES count the entries of .txnindex, .index and .timeindex; HEALTH has the
    problems of the latter two. ROLLED is the cause of the next segment, RETENTION the plan of retention for this one.
    CACHED, with --cache, is the part that was in the page cache before `ls` read it.

    Settings come from the given options, then from the topics (including cleanup.policy), the broker and the cluster if
    a small __cluster_metadata is in PATHS, then from --server-properties, then from Kafka's defaults.

    -o chart draws each segment as a bar from its first to its largest time, or over its offsets if the log has no
    times. ! marks a segment that begins earlier than a preceding one ends: retention by time may keep its records
    longer, and a lookup by time finds the preceding segment.

    With record filters (--key, …), `ls` lists only partitions and segments with selected records: how many
    records, batches and bytes, and their offsets and times. --limit counts records; --top limits the lines.
    """
    work, selected, talk = options.work, options.selected, options.talk
    zone, by = parse_zone(selected.zone), options.by
    writer = RowWriter(options.rows.form(zone))
    is_chart = options.rows.output == CHART
    if is_chart:
        if is_given("by") and by != "segment":
            raise UsageError("-o chart draws segments; omit --by")
        by = "segment"
    turns = Turns(talk.note)
    cluster = Cluster(options.paths, turns.in_turn(talk.refuse))
    now = settle_now(time_or_none(options.broker.now, zone), cluster)
    settings = options.broker.listing_settings(
        now.ms, deep=options.deep, cache=options.cache, keep_cache=work.keep_cache
    )
    given = [name for name in OF_TOPICS if is_given(name)]
    processes = work.begin()
    if options.cache and not tells_cache():
        talk.warn("--cache: only Linux tells the contents of the page cache")
    selection = selected.selection()
    columns = ListingColumns(
        by=by,
        deep=settings.deep,
        selected=not selection.is_everything,
        cache=settings.cache,
        has_disk=options.sort == "disk",
        has_exact_sizes=options.has_exact_sizes,
        has_tiers=are_of_tiers(options.paths),
        zone=zone,
    )
    rows = Rows(by, options.sort, options.top)
    lister = Lister(settings, given, selection, turns, cluster, options.server_properties)
    places = cluster.directories(options.choice)
    with talk.bar() as bar:
        count = bar.counting("ls")
        listings = lister.listings(places, processes, count, count.expect)
        if is_chart:
            write_charts(listings, rows, columns, canvas_of_stdout(), has_sums=not talk.is_quiet)
        else:
            write_listings(listings, rows, columns, writer, None if talk.is_quiet else now)
    flush_stdout()
    talk.note(*now.sentences())
    if selected.limit is not None and options.top is None:
        talk.note("--limit selects records; use --top N to limit the lines")
    searched = [] if selection.is_everything else [place.path for place in cluster.directories(options.choice)]
    if searched and not rows.total.partitions:
        talk.note(no_match_line(selection, searched, zone))
    sources = lister.retention_sources() if writer.form.is_for_people and rows.total.segments_to_delete else None
    if sources is not None:
        talk.note(sources)
    talk.end_with(lister.found_problems)
