"""Opened partitions, segments and log directories, and the results of commands about them."""

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from kseg.api.tables import SHOWN_ROWS, Logs, ShortTable, asked_selection, warn
from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import pass_over
from kseg.cluster.joined_log import joined_logs, whole_log
from kseg.cluster.metadata_copy import CHEAP_METADATA, AdjacentMetadata, TopicIds
from kseg.cluster.replicas import PartitionReplicas, alone, topic_id_of
from kseg.errors import KsegError, UsageError, plural
from kseg.findings.findings import Finding
from kseg.formats.file_names import DirectoryState
from kseg.log.lookup import Lookup, SpecialTime, parse_target_time
from kseg.log.partition import PartitionLog, RemoteTier
from kseg.log.selected_records import SelectedLog, selected_logs
from kseg.log.selection import EVERY_PARTITION, PartitionChoice, Selection, SelectionOptions, Time
from kseg.log.selector import Selector
from kseg.reading.batch import Batch, scan_log
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.times import milliseconds_of, parse_zone
from kseg.verify.verify import PassedOver, plan_verification

if TYPE_CHECKING:
    from kseg.cluster.change_log import MetadataChanges
    from kseg.cluster.model import ClusterMetadata
    from kseg.cluster.replicas import Copy
    from kseg.coordinators.groups import GroupsView
    from kseg.diff.copies import ClusterCopies
    from kseg.diff.differences import PartitionDiff
    from kseg.rewrite.salvage import Salvaged
    from kseg.text.transactions import CoordinatorRow, TransactionRow, TransactionRows


class Segment(Logs):
    """A log file, a metadata snapshot, or another file that contains batches."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file. Raises OpenError if it can't be opened."""
        super().__init__()
        self._file = LogFile(path)
        self._at_close.callback(self._file.close)

    @property
    def path(self) -> Path:
        """The file path."""
        return self._file.path

    @property
    def base_offset(self) -> int | None:
        """Return the offset in the file name, or None if the name doesn't contain one."""
        return self._file.base_offset

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._file.size

    def scan(self, start: int = 0) -> Iterator[Batch | Damage]:
        """Yield batches and damages in file order, starting at the position of a batch.

        Sizes add up to the file's size.

        Damage is a value and never raised. A batch with a wrong CRC has `is_valid` False. Records aren't parsed;
        `Batch.problem` says whether they can be read.
        """
        yield from scan_log(self._file, start)

    def _select_logs(self, selection: Selection) -> Iterator[SelectedLog]:
        selector = Selector(selection, self.path.parent, warn)
        yield from selected_logs(selector, [self.path], lambda _: nullcontext(self._file), selection.limit)

    def _table(self) -> ShortTable:
        return ShortTable(f"Segment {self.path}: {self.size:,} bytes")


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """The result of verifying partitions and log directories.

    findings: in the order of partitions. problems: files that couldn't be opened and weren't checked. notes: remarks
    about the selection. passed_over: names that aren't Kafka's, by directory.
    """

    findings: tuple[Finding, ...]
    problems: tuple[KsegError, ...]
    notes: tuple[str, ...]
    passed_over: tuple[PassedOver, ...]

    @property
    def is_well(self) -> bool:
        """Return True if all files could be read and all findings are notes."""
        return not self.problems and not any(finding.counts for finding in self.findings)

    def __repr__(self) -> str:
        """Return a short table."""
        return self._table().text()

    def _repr_html_(self) -> str:
        """Return the same, for notebooks."""
        return self._table().html()

    def _table(self) -> ShortTable:
        state = "ok" if self.is_well else "not ok"
        return ShortTable(
            f"Verification: {state}, {plural(len(self.findings), 'finding')},"
            f" {plural(len(self.problems), 'file')} that can't be read",
            ("severity", "id", "file", "position", "what"),
            [
                (str(each.severity), each.id, str(each.file), each.position, each.sentence)
                for each in sorted(self.findings, key=lambda each: each.severity.rank)[:SHOWN_ROWS]
            ],
            len(self.findings),
        )


def verification(
    paths: Sequence[Path], choice: PartitionChoice, selection: Selection, processes: int | None
) -> Verification:
    """Verify the chosen partitions below some paths. Raises OpenError if there is nothing to verify."""
    from kseg.coordinators.transactions import judged_findings

    problems: list[KsegError] = []
    plan = plan_verification(paths, problems.append, choice)
    if problems and not plan.orders:
        raise problems[0]
    findings: list[Finding] = []
    notes: list[str] = []
    for verified in judged_findings(plan, selection, processes=processes):
        findings += verified.findings
        problems += verified.problems
        notes += verified.notes
    return Verification(tuple(findings), tuple(problems), tuple(notes), plan.passed_over)


def _warn_of_unread(path: Path, reason: str) -> None:
    warn(
        f"{path}: not read, so only checkpoints tell about the remote tier: {reason};"
        " open the log directory by `kseg.open`, which reads metadata of any size"
    )


Row = TypeVar("Row")


class Directories(Logs):
    """Directories of partitions, with the commands' results as values."""

    def __init__(self, paths: tuple[Path, ...], choice: PartitionChoice = EVERY_PARTITION) -> None:
        super().__init__()
        self._paths = paths
        self._choice = choice

    @cached_property
    def _cluster(self) -> Cluster:
        return Cluster(self._paths)

    @cached_property
    def _adjacent_metadata(self) -> AdjacentMetadata:
        """The metadata found here that describe topics; large ones aren't read, with a warning."""
        return AdjacentMetadata(CHEAP_METADATA, _warn_of_unread, self._log_dirs())

    def _log_dirs(self) -> Iterator[Path]:
        """Yield log directories that may have metadata, searched on each call."""
        yield from Cluster(self._paths, pass_over).metadata_dirs()

    @abstractmethod
    def _partition_replicas(self) -> "list[PartitionReplicas[PartitionLog]]":
        """Yield the partitions and the copies that are read for them."""

    def verify(
        self, selection: Selection | None = None, *, processes: int | None = 1, **options: Unpack[SelectionOptions]
    ) -> "Verification":
        """Check logs, indexes, snapshots and checkpoints, as `kseg verify` does.

        `processes`: the number of processes that share the work; None for one per processor if there is enough work.
        With a selection, only its records are checked. Raises OpenError if there is nothing to verify.
        """
        asked = asked_selection(selection, options, has_control=True)
        return verification(self._paths, self._choice, asked, processes)

    def salvage(self, to: str | os.PathLike[str] | None, *, drop_unreadable: bool = False) -> "tuple[Salvaged, ...]":
        """Copy all intact batches to a new directory, like `kseg salvage`, and return one result per partition.

        Args:
            to: the new directory, which must not exist yet, or be empty; with None nothing is written.
            drop_unreadable: omit batches whose CRC is right but whose records can't be read.

        Raises:
            UsageError: the directory exists and isn't empty, or lies inside of an input.
            OpenError: a file can't be opened. WriteError: a file can't be written. In both cases the directory is
                removed.
        """
        from kseg.rewrite.salvage import salvage_into

        directory = None if to is None else Path(to)
        return salvage_into(self._paths, directory, choice=self._choice, drop_unreadable=drop_unreadable)

    def diff(
        self,
        *others: str | os.PathLike[str],
        leader: str | os.PathLike[str] | None = None,
        processes: int | None = 1,
    ) -> "tuple[PartitionDiff, ...]":
        """Compare copies of partitions, as `kseg diff` does; return a result per partition.

        Args:
            others: the other sides; each of them, and each path that was opened, is a side.
            leader: the side under which the others would truncate their logs.
            processes: the number of processes that share the work; None for one per processor if there is enough work.

        Raises:
            UsageError: there is nothing to compare with, or the leader isn't a side.
            OpenError: a side, or a partition on it, can't be opened.
        """
        from kseg.diff.copies import all_diffs

        sides = [*self._paths, *map(Path, others)]
        leading = None if leader is None else Path(leader)
        return all_diffs(sides, warn, self._choice, leader=leading, processes=processes)

    def cluster_copies(self) -> "ClusterCopies":
        """Return the cluster's partitions with their copies here, as `kseg verify --cluster` finds them.

        Raises OpenError if the cluster's metadata aren't here, and UsageError if the metadata of several clusters are.
        """
        from kseg.diff.copies import find_cluster_copies

        return find_cluster_copies(Cluster(self._paths), self._choice)

    def groups(self, *, at: Time | None = None) -> "GroupsView":
        """Return the groups, members and commits in `__consumer_offsets`, at a given time or at the end of the log.

        If topics or partitions were chosen, has only commits for these and the groups that made them. Raises OpenError
        if `__consumer_offsets` isn't here.
        """
        from kseg.coordinators.groups import groups_with_commits_for, read_groups

        view = read_groups(self._paths, None if at is None else milliseconds_of(at))
        return replace(view, groups=tuple(groups_with_commits_for(self._choice, view.groups)))

    def metadata(self, *, at: Time | None = None) -> "ClusterMetadata":
        """Return the cluster metadata, replayed from `__cluster_metadata` up to `at` or to the end.

        `at`: a datetime, or as in `kseg metadata --at` an offset or a time. Raises OpenError if that topic isn't here.
        """
        from kseg.cluster.metadata import Until
        from kseg.cluster.metadata_copy import read_cluster_metadata

        if isinstance(at, datetime):
            return read_cluster_metadata(self._paths, Until(timestamp_ms=milliseconds_of(at)))
        return read_cluster_metadata(self._paths, Until.parse(None if at is None else str(at)))

    def metadata_changes(self, *, from_time: Time | None = None, to_time: Time | None = None) -> "MetadataChanges":
        """Yield the changes to the cluster metadata in log order, like `kseg metadata --changes`.

        If topics or partitions were chosen, only their changes. After the last change, `reach` and `base` say what was
        looked through, and before which snapshot nothing is known. Raises OpenError if `__cluster_metadata` isn't here.

        Args:
            from_time: omit earlier changes.
            to_time: omit changes at this time or later.
        """
        from kseg.cluster.change_log import ChangeChoice, read_changes

        times = (None if each is None else milliseconds_of(each) for each in (from_time, to_time))
        return read_changes(self._paths, ChangeChoice(self._choice, None, *times))

    def transactions(self, *, only_open: bool = False, now: Time | None = None) -> "Iterator[TransactionRow]":
        """Yield the transactions of the partitions in turn, and whether each open one hangs.

        The coordinators are those in the same log directories. Transactions that couldn't be read or judged are a
        warning at the end.

        Args:
            only_open: omit transactions that have ended.
            now: the time to judge by; None for the newest that brokers wrote.
        """
        rows = self._transaction_rows(now, only_open=only_open)
        return self._with_notes(rows, rows.rows(rows.split(self._choice)[1]))

    def transactional_ids(self, *, only_open: bool = False, now: Time | None = None) -> "Iterator[CoordinatorRow]":
        """Yield the coordinators' state of each transactional id, from `__transaction_state`; arguments as above."""
        rows = self._transaction_rows(now, only_open=only_open)
        return self._with_notes(rows, rows.coordinator_rows(rows.split(self._choice)[0]))

    def _transaction_rows(self, now: Time | None, *, only_open: bool) -> "TransactionRows":
        from kseg.formats.codes import BOOTSTRAP_SERVER, MAXIMUM_TRANSACTION_MS
        from kseg.text.transactions import TransactionRows

        now_ms = None if now is None else milliseconds_of(now)
        return TransactionRows(
            self._partition_replicas(),
            now_ms,
            MAXIMUM_TRANSACTION_MS,
            BOOTSTRAP_SERVER,
            only_open=only_open,
            log_dirs=self._log_dirs(),
        )

    def _with_notes(self, rows: "TransactionRows", found: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows, and finally warn about transactions that couldn't be read."""
        yield from found
        for note in rows.notes(is_partial=False):
            warn(note)


class Partition(Directories):
    """A partition directory. Records are read from the files that existed when it was opened.

    In an opened cluster it covers all of the partition's copies, and other results come from the cluster.
    """

    def __init__(
        self,
        log: PartitionLog,
        owner: Directories | None = None,
        replicas: "PartitionReplicas[PartitionLog] | None" = None,
    ) -> None:
        """Initialize the partition from a directory listing. Use `kseg.open` to create an instance.

        replicas: the copies that are read, if there are several.
        """
        if owner is None or replicas is None:
            super().__init__((log.path,))
        else:
            number = log.partition
            numbers = () if number is None else (range(number, number + 1),)
            super().__init__(owner._paths, PartitionChoice((replicas.topic,), numbers))
        self._log = log
        self._owner = owner
        self._replicas = replicas or alone(log)

    def _log_dirs(self) -> Iterator[Path]:
        return super()._log_dirs() if self._owner is None else self._owner._log_dirs()

    @property
    def path(self) -> Path:
        """Return the partition directory. If there are several copies, this is the directory of the best copy."""
        return self._log.path

    @property
    def topic(self) -> str | None:
        """The topic, or None if the directory name has none."""
        return self._log.topic

    @property
    def partition(self) -> int | None:
        """The partition number."""
        return self._log.partition

    @property
    def state(self) -> DirectoryState | None:
        """Return whether the directory is being deleted, being moved or a stray, or None if it is in use."""
        return self._log.state

    @property
    def size(self) -> int:
        """The size of its logs in bytes."""
        return self._log.size

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """The base offsets of its segments."""
        return tuple(self._log.base_offsets)

    @property
    def replicas(self) -> "tuple[Copy[PartitionLog], ...]":
        """The copies that are read, best first.

        Each has its path, broker, status, and the offset up to which it agrees with the best one.
        """
        return self._replicas.copies

    def segments(self) -> Iterator[Segment]:
        """Yield the segments. Each one is closed when the next is requested."""
        for files in self._log.segments:
            with Segment(files.path) as segment:
                yield segment

    def log_start_offset(self) -> int:
        """Return the first readable offset, including offsets in the remote tier."""
        return self._log.log_start_offset(self._tier)

    def local_start_offset(self) -> int:
        """Return the first offset on this disk."""
        return self._log.log_start_offset() if self._tier is None else self._tier.local_start_offset

    @cached_property
    def _tier(self) -> RemoteTier | None:
        from kseg.cluster.remote_tier import find_tier

        return find_tier(self._log, (self._owner or self)._adjacent_metadata)

    def log_end_offset(self) -> int:
        """Return the offset after the last readable batch. Raises OpenError if a log can't be opened."""
        return self._log.read_log_end_offset()

    def topic_id(self) -> str | None:
        """Return the topic id from the partition's own file, the metadata or other copies, or None if it is unknown."""
        return (
            topic_id_of(self._log) or self._replicas.topic_id or TopicIds((self._owner or self)._cluster).of(self._log)
        )

    def groups(self, *, at: Time | None = None) -> "GroupsView":
        """Return groups, their members and commits, from this partition of `__consumer_offsets`.

        For another topic's partition in an opened cluster, return its commits and the groups that made them. Raises
        OpenError if `__consumer_offsets` isn't here.
        """
        from kseg.cluster.schemas_topic import TopicPlaces
        from kseg.coordinators.groups import TOPIC, read_groups_in

        if self._owner is None or self.topic != TOPIC:
            return super().groups(at=at)
        own = TopicPlaces((whole_log(self._replicas),), tuple(self._log_dirs()), is_all=False)
        return read_groups_in(own, None if at is None else milliseconds_of(at))

    def leader_epochs(self) -> tuple[tuple[int, int], ...]:
        """Return leader epochs and their start offsets from the checkpoint. Raises KsegError if it can't be read."""
        return self._log.read_leader_epochs() or ()

    def lookup(
        self,
        *,
        offset: int | None = None,
        time: Time | None = None,
        selection: Selection | None = None,
        **options: Unpack[SelectionOptions],
    ) -> Lookup:
        """Find the record at an offset, or the first one at or after a time.

        `time` may also be "earliest", "latest", "max-timestamp", "earliest-local", "latest-tiered" or
        "earliest-pending-upload". With a selection, find the first selected record from there on. If there is none,
        the result's `record` is None, and `absence` says why.

        Raises:
            UsageError: neither or both are given, or the time is invalid.
            OpenError: a log can't be opened.
        """
        from kseg.cluster.lookup import look_up_in_copies

        if (offset is None) == (time is None):
            raise UsageError("lookup: specify either offset or time")
        asked = asked_selection(selection, options, has_control=True)
        target = _target(time, options.get("tz", "UTC")) if time is not None else offset
        assert target is not None
        beside = (self._owner or self)._adjacent_metadata
        return look_up_in_copies(self._replicas, target, asked, is_time=time is not None, beside=beside)

    def _select_logs(self, selection: Selection) -> Iterator[SelectedLog]:
        yield from joined_logs(self._replicas, selection, warn)

    def _partition_replicas(self) -> "list[PartitionReplicas[PartitionLog]]":
        return [self._replicas]

    def _table(self) -> ShortTable:
        segments = self._log.segments
        last = segments[-SHOWN_ROWS:]
        return ShortTable(
            f"Partition {self.path}: {plural(len(segments), 'segment')}, {self.size:,} bytes",
            ("segment", "base offset", "bytes"),
            [(segment.path.name, segment.base_offset, segment.size) for segment in last],
            len(segments),
        )


def _target(time: Time, zone: str) -> int | SpecialTime:
    return (
        parse_target_time(time, parse_zone(zone)) if isinstance(time, str) else milliseconds_of(time, parse_zone(zone))
    )
