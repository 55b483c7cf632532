"""What opened directories add up to: findings, what can be saved, groups, transactions, the cluster's metadata."""

import os
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from kseg.api.asked import asked_selection
from kseg.api.kseg_warning import warn
from kseg.api.opened_logs import Logs
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.log.partition.partition_log import PartitionLog
from kseg.selection import Selection, SelectionOptions, Time
from kseg.times import milliseconds_of

if TYPE_CHECKING:
    from kseg.api.verification import Verification
    from kseg.log.diff.differences import PartitionDiff
    from kseg.views.cluster import ClusterMetadata
    from kseg.views.cluster_copies import ClusterCopies
    from kseg.views.groups import GroupsView
    from kseg.views.salvaged import Salvaged
    from kseg.views.transaction_rows import CoordinatorRow, TransactionRow, TransactionRows


Row = TypeVar("Row")


class Directories(Logs):
    """Directories of partitions: what the commands find out about them, as values."""

    def __init__(self, paths: tuple[Path, ...], choice: PartitionChoice = EVERY_PARTITION) -> None:
        super().__init__()
        self._paths = paths
        self._choice = choice

    @abstractmethod
    def _partition_logs(self) -> list[PartitionLog]:
        """The partitions, as they were listed."""

    def verify(
        self, selection: Selection | None = None, *, processes: int | None = 1, **options: Unpack[SelectionOptions]
    ) -> "Verification":
        """What is wrong in logs, indexes, snapshots and checkpoints, as `kseg verify` finds it.

        `processes`: how many share the work; None for as many as processors, if there is enough to do. Of a selection,
        what is about its records. Raises OpenError if there is nothing to verify.
        """
        from kseg.api.verification import verification

        asked = asked_selection(selection, options, has_control=True)
        return verification(self._paths, self._choice, asked, processes)

    def salvage(self, to: str | os.PathLike[str] | None, *, drop_unreadable: bool = False) -> "tuple[Salvaged, ...]":
        """Saves every intact batch into a new directory, as `kseg salvage` does; a result per partition.

        Args:
            to: the new directory, which must not exist yet, or be empty; with None nothing is written.
            drop_unreadable: leave out batches whose CRC is right but whose records can't be read.

        Raises:
            UsageError: the directory is there, or inside of what is read.
            OpenError: a file can't be opened; WriteError: one can't be written. Nothing is left of the directory then.
        """
        from kseg.views.salvaged import salvage_into

        directory = None if to is None else Path(to)
        return salvage_into(self._paths, directory, choice=self._choice, drop_unreadable=drop_unreadable)

    def diff(
        self,
        *others: str | os.PathLike[str],
        leader: str | os.PathLike[str] | None = None,
        processes: int | None = 1,
    ) -> "tuple[PartitionDiff, ...]":
        """What copies of partitions are to each other, as `kseg diff` finds it; a result per partition.

        Args:
            others: what to compare with; each, and each path that was opened, is a side.
            leader: the side under which the others would truncate their logs.
            processes: how many share the work; None for as many as processors, if there is enough to do.

        Raises:
            UsageError: there is nothing to compare with, or the leader isn't a side.
            OpenError: a side, or a partition on it, can't be opened.
        """
        from kseg.views.cluster_sides import all_diffs

        sides = [*self._paths, *map(Path, others)]
        leading = None if leader is None else Path(leader)
        return all_diffs(sides, warn, self._choice, leader=leading, processes=processes)

    def cluster_copies(self) -> "ClusterCopies":
        """The cluster's partitions with the copies that are here, as `kseg verify --cluster` finds them.

        Raises OpenError if the cluster's metadata aren't here; UsageError if those of several clusters are.
        """
        from kseg.views.cluster_copies import find_cluster_copies

        return find_cluster_copies(self._paths, choice=self._choice)

    def groups(self, *, at: Time | None = None) -> "GroupsView":
        """Groups, their members and commits, replayed from `__consumer_offsets`, at a time or at the log's end.

        If topics or partitions were chosen, only commits for these, and groups that have some. Raises OpenError if
        `__consumer_offsets` isn't here.
        """
        from kseg.views.chosen_commits import groups_with_commits_for
        from kseg.views.groups import read_groups

        view = read_groups(self._paths, None if at is None else milliseconds_of(at))
        return replace(view, groups=tuple(groups_with_commits_for(self._choice, view.groups)))

    def metadata(self, *, at: Time | None = None) -> "ClusterMetadata":
        """The cluster's metadata, replayed from `__cluster_metadata`: at its end, or as `at` says.

        `at`: a datetime, or as in `kseg metadata --at` an offset or a time. Raises OpenError if that topic isn't here.
        """
        from kseg.views.metadata import Until, read_cluster_metadata

        if isinstance(at, datetime):
            return read_cluster_metadata(self._paths, Until(timestamp_ms=milliseconds_of(at)))
        return read_cluster_metadata(self._paths, Until.parse(None if at is None else str(at)))

    def transactions(self, *, only_open: bool = False, now: Time | None = None) -> "Iterator[TransactionRow]":
        """The transactions of the partitions, one after another, and of each open one whether it hangs.

        The coordinators are those in the same log directories; what couldn't be read or judged is a warning at the end.

        Args:
            only_open: leave out those that have ended.
            now: the time to judge by; None for the newest that brokers wrote.
        """
        rows = self._transaction_rows(now, only_open=only_open)
        return self._with_notes(rows, rows.rows(rows.split(self._choice)[1]))

    def transactional_ids(self, *, only_open: bool = False, now: Time | None = None) -> "Iterator[CoordinatorRow]":
        """What the coordinators knew of each transactional id, from `__transaction_state`; arguments as above."""
        rows = self._transaction_rows(now, only_open=only_open)
        return self._with_notes(rows, rows.coordinator_rows(rows.split(self._choice)[0]))

    def _transaction_rows(self, now: Time | None, *, only_open: bool) -> "TransactionRows":
        from kseg.kafka_defaults import BOOTSTRAP_SERVER, MAXIMUM_TRANSACTION_MS
        from kseg.views.transaction_rows import TransactionRows

        now_ms = None if now is None else milliseconds_of(now)
        found = self._partition_logs()
        return TransactionRows(found, now_ms, MAXIMUM_TRANSACTION_MS, BOOTSTRAP_SERVER, only_open=only_open)

    def _with_notes(self, rows: "TransactionRows", found: Iterator[Row]) -> Iterator[Row]:
        """What was found; at the end warns of what wasn't."""
        yield from found
        for note in rows.notes(is_partial=False):
            warn(note)
