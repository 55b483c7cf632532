"""Plans of exports: the wanted records, the destination's state, and the remaining work. Planning changes nothing."""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kseg.cluster.copies import PartitionCopy, copies_of, find_replicas, require_replicas
from kseg.cluster.replicas import PartitionReplicas
from kseg.cluster.taken import taken_of
from kseg.errors import KsegError, OpenError, UnreadableError, UsageError
from kseg.export.cdc.commits import RowCommits
from kseg.export.commit.manifest import Manifest
from kseg.export.commit.protocol import NO_TABLE, Commits, ExportPlan, TableName
from kseg.export.commit.sources import (
    drop_deleted_logs,
    find_exported,
    find_unchanged,
    is_outdated,
    keep_complete,
    split_by_presence,
    with_known_ids,
)
from kseg.export.destination import open_destination
from kseg.export.plan import Splitting, plan_orders
from kseg.export.results import Result
from kseg.export.settings import FileOptions, LogSelection, ReadOptions
from kseg.export.topic_runs import RunStart
from kseg.export.undecoded import NONE_ACCEPTED, UndecodedLimit
from kseg.export.write import parquet
from kseg.export.write.file_sizes import measure_log_per_file
from kseg.export.write.folders import folder_columns
from kseg.export.write.sort_order import check_sort
from kseg.export.write.typed_plan import with_typed_columns, without_writers
from kseg.log.selection import PartitionChoice, numbers_by_topic
from kseg.system.new_directory import HERE
from kseg.system.placed_path import StrPath

LOG_PER_FILE = 16
"""The most bytes of log per order, in sizes of files: Parquet takes a tenth of an uncompressed log, or as much."""


class Listing(NamedTuple):
    """The partitions at an export's sources. refused: errors of sources and partitions that can't be listed."""

    replicas: tuple[PartitionReplicas[PartitionCopy], ...]
    refused: tuple[OpenError, ...]


def list_sources(sources: Iterable[StrPath]) -> Listing:
    """Return the partitions at the given paths, globs or URLs.

    Raises OpenError if there is nothing to read.
    """
    refused: list[OpenError] = []
    replicas = find_replicas(sources, refused.append)
    copies = copies_of(replicas)
    if not copies and refused:
        raise refused[0]
    require_replicas(copies, sources)
    return Listing(tuple(replicas), tuple(refused))


@dataclass(frozen=True, slots=True)
class Export:
    """An export: its sources, its destination and its options.

    overwrite: replaces an existing export. table: the table and its catalog, for formats that have them. merge_files:
    joins small files, including those of earlier runs. adds_milliseconds: whether a new table gets the column
    `timestampMs`; an existing table stays unchanged. reads_back: reads all rows of the table before the export is
    reported as done. listing: an earlier listing of the sources, which several exports share. order_size: the most
    bytes of log per order; None: enough for files of the target size. keeps_file_size: cuts a large partition into
    orders that fill files of the target size, even if processors are idle. undecoded_limit: the most keys, and values,
    of a topic that may not decode in a run; the report's status depends on it. dead_letters: the path or URL of copies
    of records that don't decode. start: of the run, if its numbers by topic are wanted. runs_table: the path or URL of
    the table of runs.
    """

    sources: tuple[StrPath, ...]
    destination: str
    selection: LogSelection = field(default_factory=LogSelection)
    read: ReadOptions = field(default_factory=ReadOptions)
    files: FileOptions = field(default_factory=FileOptions)
    parallelism: int = 1
    overwrite: bool = False
    table: TableName = NO_TABLE
    merge_files: bool = False
    reads_back: bool = False
    adds_milliseconds: bool = True
    listing: Listing | None = None
    order_size: int | None = None
    keeps_file_size: bool = False
    undecoded_limit: UndecodedLimit = NONE_ACCEPTED
    dead_letters: str | None = None
    start: RunStart | None = None
    runs_table: str | None = None

    def splitting(self) -> Splitting:
        """Return the sizes of its orders."""
        most = LOG_PER_FILE * self.files.target_size if self.order_size is None else self.order_size
        return Splitting(most, self.parallelism, self.read.latest_per_key is not None)

    def commits(self) -> Commits:
        """Return the commits of its destination.

        Raises UsageError if the format's library is missing, or lacks a feature.
        """
        place, form = open_destination(self.destination), self.files.format
        module = form.load()
        form.require_address(place.url)
        commits: Commits = module.open_commits(place, self.files, self.table, HERE)
        return commits if self.read.unwrap is None else RowCommits.of(commits)


def plan_export(export: Export, commits: Commits | None = None) -> ExportPlan:
    """Plan a run without changing anything. commits: of an open destination.

    Raises UsageError if there is nothing to read, or if the destination lies within an input or holds other files;
    OpenError; KsegError if the destination's contents are invalid.
    """
    commits = export.commits() if commits is None else commits
    place, choice, form = commits.place, export.selection.partitions, export.files.format
    parquet.check_options(export.files)
    named = (*(os.fspath(each) for each in export.sources), export.read.decode.schema, export.read.decode.registry)
    place.keep_outside(named)
    place.require_plain()
    # This precedes the listing of the logs: later commits of others are noticed, and a listing older than a result
    # would make its log look truncated.
    state = commits.read_state(export.read, export.files, overwrite=export.overwrite)
    previous = state.previous
    replicas, refused = _listing_of(export, previous)
    copies = copies_of(replicas)
    place.keep_outside((*named, *(copy.path for copies_of_one in copies.values() for copy in copies_of_one)))
    choice.require_among(numbers_by_topic([*copies, *((each.topic, each.partition) for each in previous.results)]))
    copies = with_known_ids(copies, previous.results)
    present, absent = split_by_presence(previous.results, copies)
    if form.has_log:
        absent_there = absent
        kept = drop_deleted_logs(find_unchanged(present, previous.read, copies), copies)
    else:
        there = set(place.names())
        absent_there = keep_complete(absent, there)
        kept = find_unchanged(keep_complete(present, there), previous.read, copies)
    splitting, done = export.splitting(), find_exported(kept)
    orders = plan_orders(copies, export.selection, splitting, done)
    topics = {topic for topic, partition in copies if export.selection.range_of(topic, partition) is not None}
    parquet.check_topics(topics, export.files)
    has_columns = bool(kept or absent or (previous.results and form.has_log))
    is_there = previous.number > 0 and not export.overwrite
    has_milliseconds = previous.read.has_milliseconds if is_there else export.adds_milliseconds
    wanted = replace(export.read, has_milliseconds=has_milliseconds)
    written = previous.read if has_columns else None
    if export.read.undecoded_only:  # what doesn't decode depends on the columns of the table that has the records
        written = export.read
    read = with_typed_columns(wanted, written, topics, orders)
    if read.unwrap is None:
        folder_columns(read, export.files)
        check_sort(parquet.schema_of_files(read, export.files), export.files.sort_by)
        read = state.with_field_ids(read)
    else:
        require_one_topic(topics)
        read = replace(read, unwrap=previous.read.unwrap)
    if export.keeps_file_size and _fills_files_evenly(read, export.files):
        sizes = measure_log_per_file(copies, export.selection, orders, (read, export.files), done)
        splitting = replace(splitting, log_per_file=sizes)
        orders = plan_orders(copies, export.selection, splitting, done)
    return ExportPlan(
        tuple(orders),
        tuple(kept),
        tuple(absent_there),
        replace(previous, read=without_writers(read)),
        copies,
        read if read.unwrap is None else read.for_staging(),
        splitting,
        overwrites=export.overwrite,
        refused=tuple(each for each in refused if is_meant(each, choice)),
        taken=taken_of([each for each in replicas if choice.takes(each.topic, each.partition)]),
    )


def require_one_topic(topics: Collection[str]) -> None:
    """Raise UsageError for several topics: keys and positions of one mean nothing in another."""
    if len(topics) > 1:
        names = ", ".join(sorted(topics)[:3])
        raise UsageError(
            f"--unwrap needs a table per topic, but there are {names}; specify {{topic}} in DEST, or --topic"
        )


def _listing_of(export: Export, previous: Manifest) -> Listing:
    """Return the shared listing, unless another run has committed newer records since; or a new one."""
    shared = export.listing
    if shared is None or is_outdated(copies_of(shared.replicas), previous.results):
        return list_sources(export.sources)
    return shared


def is_meant(error: OpenError, choice: PartitionChoice) -> bool:
    """Return True if an error concerns a source, or a partition below one that is to be exported."""
    return not isinstance(error, UnreadableError) or error.path is None or choice.takes_directory(error.path)


def _fills_files_evenly(read: ReadOptions, files: FileOptions) -> bool:
    """Return True if each record of a partition goes to the same files, so that their size follows from the log's."""
    is_all = read.selected.is_everything and not (read.control or read.undecoded_only) and read.latest_per_key is None
    return is_all and read.unwrap is None and all(each.is_of_order for each in folder_columns(read, files))


def resume_plan(plan: ExportPlan, taken: Iterable[Result], export: Export) -> ExportPlan:
    """Return the plan with the finished orders of ended runs removed, and their results kept."""
    taken = list(taken)
    if not taken:
        return plan
    kept = (*plan.kept, *taken)
    orders = plan_orders(plan.copies, export.selection, plan.splitting, find_exported(kept))
    return replace(plan, orders=tuple(orders), kept=kept, taken_up=sum(len(result.files) for result in taken))


def require_same_columns(plan: ExportPlan, other: ExportPlan, files: FileOptions, where: str) -> None:
    """Raise KsegError if the plans' columns or column ids differ: written files can't change."""
    planned, there = (parquet.schema_of_files(each.read, files) for each in (plan, other))
    if not planned.equals(there, check_metadata=True):
        raise KsegError("another export has changed the table's columns; run the command again", where)
