"""A cluster opened from its brokers' disks: topics, partitions with all their copies, settings and lags."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Unpack

from kseg.api.partition import Directories, Partition
from kseg.api.restore import RestoreOptions, restore_cluster
from kseg.api.tables import SHOWN_ROWS, ShortTable, warn
from kseg.cluster import cluster as model
from kseg.cluster.directories import identity_of, limit_to_contents, report_once
from kseg.cluster.joined_log import joined_logs
from kseg.cluster.metadata_copy import AdjacentMetadata
from kseg.cluster.replicas import PartitionReplicas, answering_topic_id
from kseg.cluster.settings import DynamicSettings, ResolvedSetting, read_server_properties, resolve_all, shown_settings
from kseg.cluster.taken import Taken, taken_of
from kseg.errors import OpenError, plural
from kseg.log.partition import PartitionLog, cleaned_topics
from kseg.log.selected_records import SelectedLog
from kseg.log.selection import EVERY_PARTITION, PartitionChoice, Selection

if TYPE_CHECKING:
    from kseg.cluster.model import ClusterMetadata
    from kseg.restore.run import RestoreReport


class JoinedDirectories(Directories):
    """Partitions of log directories, each read once. The best copy is read; other copies fill its gaps."""

    def __init__(self, paths: Iterable[Path], choice: PartitionChoice = EVERY_PARTITION) -> None:
        """Find the log directories, and issue a warning for each problem below them."""
        super().__init__(tuple(paths), choice)
        self._problems: list[OpenError] = []
        self._cluster = model.Cluster(self._paths, report_once(limit_to_contents(self._take_problem)))

    @cached_property
    def _adjacent_metadata(self) -> AdjacentMetadata:
        """Return the metadata found next to the copies."""
        return AdjacentMetadata(cluster=self._cluster)

    def _take_problem(self, problem: OpenError) -> None:
        self._problems.append(problem)
        warn(str(problem))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The directories that were opened."""
        return self._paths

    @property
    def problems(self) -> tuple[OpenError, ...]:
        """Return the partitions that couldn't be listed. They aren't included in any other result."""
        return tuple(self._problems)

    @property
    def taken(self) -> Taken:
        """The brokers whose copies are read, the metadata that chose them, and the copies omitted."""
        return taken_of(self._replicas)

    def partition(self, topic: str, partition: int) -> Partition:
        """Return a partition that is in use, with all copies read together. Raises OpenError if it doesn't exist."""
        for each in self._replicas:
            if each.copies and (each.topic, each.partition) == (topic, partition):
                return Partition(each.best, self, each)
        raise OpenError(f"there is no partition {partition} of the topic {topic!r} here", self._paths[0])

    @cached_property
    def _replicas(self) -> list[PartitionReplicas[PartitionLog]]:
        return self._cluster.partitions(self._choice)

    def _partition_replicas(self) -> list[PartitionReplicas[PartitionLog]]:
        return self._replicas

    def _select_logs(self, selection: Selection) -> Iterator[SelectedLog]:
        left = selection.limit
        for each in self._replicas:
            if not each.copies:
                continue
            for log in joined_logs(each, selection, warn, left):
                yield log
                left = log.picker.remaining_count
            if left == 0:
                return


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a cluster: its id (None if unknown), its partitions by number, its settings by name."""

    name: str
    topic_id: str | None
    partitions: tuple[Partition, ...]
    settings: Mapping[str, ResolvedSetting]


class Cluster(JoinedDirectories):
    """The disks of a cluster's brokers, in any order.

    Has everything that kseg's commands find out about a cluster's partitions. `docs/reference/copies.md` has the
    rules.
    """

    def __init__(self, paths: Iterable[Path], server_properties: Path | None = None) -> None:
        """Find the log directories. Metadata and logs are read on first use."""
        super().__init__(paths)
        self._static = {} if server_properties is None else dict(read_server_properties(server_properties))

    @property
    def cluster_id(self) -> str | None:
        """Return the cluster id, or None if it isn't in any log directory."""
        return self._cluster.cluster_id

    @property
    def brokers(self) -> tuple[int, ...]:
        """Return the ids of the brokers whose directories have been opened.

        Excludes controllers if the metadata list any of the brokers.
        """
        known = {identity_of(each).broker for each in self._cluster.metadata_dirs()}
        return tuple(sorted(self._dynamic.brokers_among(known)))

    @cached_property
    def topics(self) -> Mapping[str, Topic]:
        """The topics that have a partition here, by name."""
        partitions: dict[str, list[PartitionReplicas[PartitionLog]]] = {}
        for each in self._replicas:
            if each.copies:
                partitions.setdefault(each.topic, []).append(each)
        return MappingProxyType({name: self._topic(name, own) for name, own in sorted(partitions.items())})

    def _topic(self, name: str, replicas: list[PartitionReplicas[PartitionLog]]) -> Topic:
        metadata = self._metadata
        is_known = metadata is not None and metadata.topic(name) is not None
        brokers = self._dynamic.of_the_broker(self.brokers, self._static)
        shown = {} if is_known else shown_settings(name, brokers, lambda: name in self._cleaned_topics)
        own = {**shown, **self._dynamic.of("topic", name)}
        settings = resolve_all(own, brokers)
        partitions = tuple(Partition(each.best, self, each) for each in replicas)
        return Topic(
            name,
            answering_topic_id(replicas) or partitions[0].topic_id(),
            partitions,
            MappingProxyType({each.name: each for each in settings}),
        )

    @cached_property
    def _cleaned_topics(self) -> frozenset[str]:
        return frozenset[str]().union(*map(cleaned_topics, self._cluster.metadata_dirs()))

    @property
    def _metadata(self) -> "ClusterMetadata | None":
        return self._cluster.own_metadata

    @cached_property
    def _dynamic(self) -> DynamicSettings:
        return DynamicSettings(self._metadata)

    def lag(self, group: str) -> Mapping[tuple[str, int], int | None]:
        """Return how far a group's commits are behind the ends of logs, by topic and partition, or None if unknown.

        Empty for a group without commits. Raises OpenError if `__consumer_offsets` isn't here.
        """
        found = (each for each in self.groups().groups if each.group == group)
        return {(commit.topic, commit.partition): commit.lag for each in found for commit in each.commits}

    def restore(self, bootstrap: str, **options: Unpack[RestoreOptions]) -> "RestoreReport":
        """Restore topics and group offsets to a running cluster, as `kseg restore --yes` does.

        A second call with the same arguments continues after an interruption; once everything is restored, it only
        compares.

        Args:
            bootstrap: addresses of the target as HOST:PORT, separated by commas.
            options: the command's options, in the types of `RestoreOptions`.

        Raises:
            UsageError: an option is wrong, or the target has these topics already.
            DamagedError: logs are damaged, and skip_damage isn't given.
            OpenError: a log can't be read.
            ClusterError: the target doesn't answer, or refuses something, or a record that was read back differs.
        """
        return restore_cluster(self._cluster, self._paths, bootstrap, options)

    def _table(self) -> ShortTable:
        topics = list(self.topics.values())
        brokers = ", ".join(map(str, self.brokers)) or "unknown"
        return ShortTable(
            f"Cluster {self.cluster_id or 'without an id'}, brokers {brokers}: {plural(len(topics), 'topic')}",
            ("topic", "partitions", "bytes"),
            [(each.name, len(each.partitions), sum(part.size for part in each.partitions)) for each in topics][
                :SHOWN_ROWS
            ],
            len(topics),
        )
