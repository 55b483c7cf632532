"""Metadata next to partitions, read once per log directory; and the ids of topics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kseg.cluster.cluster import Cluster, dirs_of_cluster, furthest_metadata
from kseg.cluster.directories import DirectoryIdentity, Refuse, identity_of
from kseg.cluster.replicas import STATUS_OF_STATE, LeftOut, topic_id_of
from kseg.cluster.schemas_topic import find_topic
from kseg.cluster.settings import (
    NO_SETTINGS,
    BrokerSettings,
    DynamicSettings,
    SettingSource,
    set_for_topics,
    source_of,
)
from kseg.errors import FileError, UsageError, plural
from kseg.log.partition import METADATA_TOPIC, PARTITION_METADATA, PartitionLog, cleaned_topics
from kseg.system.placed_path import as_given

if TYPE_CHECKING:
    from kseg.cluster.metadata import Until
    from kseg.cluster.model import ClusterMetadata


METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The id of `__cluster_metadata` itself, which no record has. Source: Uuid.METADATA_TOPIC_ID."""


def read_cluster_metadata(
    paths: Path | Sequence[Path], until: "Until | None" = None, refuse: Refuse | None = None
) -> "ClusterMetadata":
    """Read a cluster's metadata from a partition directory of `__cluster_metadata`, or from log directories.

    An uncommitted end of the log counts as committed: the files alone don't show the difference.

    Args:
        paths: a directory, or several; parents of log directories too. Of several replicas the furthest is used.
        until: the limit; None: the end.
        refuse: takes the errors of paths that can't be listed while others can; None raises them.

    Raises:
        OpenError: there is no such directory, or no metadata in it.
    """
    from kseg.cluster.metadata import Until, cluster_metadata_of  # slow to import
    from kseg.cluster.model import static_voters

    places = find_topic(paths, METADATA_TOPIC, refuse)
    partition = places.partitions[0]
    found = replace(cluster_metadata_of(partition, until or Until()), log_dirs=places.log_dirs)
    is_known = found.kraft_version > 0 or found.voters or until not in (None, Until())
    return found if is_known else replace(found, voters=static_voters(partition))


class TopicIdSource(StrEnum):
    """The evidence for a topic id."""

    FILE = PARTITION_METADATA
    """The partition's own file."""
    METADATA = "metadata"
    """The metadata of the cluster."""
    COPIES = "copies"
    """Other directories of the topic."""


class TopicIds:
    """Topic ids, from the metadata at a path or, without one, from a cluster's metadata and other copies."""

    def __init__(self, cluster: Cluster, metadata: Path | None = None) -> None:
        self._cluster, self._metadata = cluster, metadata
        self._known: dict[tuple[str, str | None], str | None] = {}

    def of(self, partition: PartitionLog) -> str | None:
        """Return the id of a partition's topic, or None if unknown. Raises the same errors as `lost_by`."""
        return topic_id_of(partition) or self._of_others(partition)

    def find_evidence(self, partition: PartitionLog) -> tuple[str, TopicIdSource] | None:
        """Return the id of a partition's topic with its evidence, or None if unknown.

        Raises the same errors as `lost_by`.
        """
        own = topic_id_of(partition)
        if own is not None:
            return own, TopicIdSource.FILE
        lost = self._of_others(partition)
        if lost is None:
            return None
        is_told = self._metadata is not None or partition.topic == METADATA_TOPIC
        by_metadata = is_told or self._is_in_metadata(partition, lost)
        return lost, TopicIdSource.METADATA if by_metadata else TopicIdSource.COPIES

    def _is_in_metadata(self, partition: PartitionLog, topic_id: str) -> bool:
        metadata = self._cluster.metadata(self._cluster.cluster_of(partition.log_dir))
        return metadata is not None and any(topic.topic_id == topic_id for topic in metadata.topics)

    def lost_by(self, partition: PartitionLog) -> str | None:
        """Return the id of a partition's topic, if its own file doesn't have it.

        None if the file has it, no metadata are available, or they don't know the topic. Raises OpenError if there are
        no metadata at the given path.
        """
        return None if topic_id_of(partition) is not None else self._of_others(partition)

    def _of_others(self, partition: PartitionLog) -> str | None:
        if partition.topic is None:
            return None
        if partition.topic == METADATA_TOPIC:
            return METADATA_TOPIC_ID
        if self._metadata is not None:
            return self._given.get(partition.topic)
        key = partition.topic, self._cluster.cluster_of(partition.log_dir)
        if key not in self._known:
            self._known[key] = self._cluster.topic_id(*key)
        return self._known[key]

    @cached_property
    def _given(self) -> dict[str, str]:
        topics = () if self._metadata is None else read_cluster_metadata(self._metadata).topics
        return {topic.name: topic.topic_id for topic in topics}


CHEAP_METADATA = 4 << 20
"""Bytes of metadata that are read in two seconds."""

OnUnread: TypeAlias = Callable[[Path, str], object]
"""Takes the path of metadata that aren't read, and the reason."""


def partition_count(metadata: "ClusterMetadata | None", topic: str, here: Iterable[int | None]) -> int | None:
    """Return the number of the partitions of a topic according to the metadata, or None if they don't know it.

    here: the numbers of the partitions found; if there are more of them, the metadata are older.
    """
    found = None if metadata is None else metadata.topic(topic)
    count = 0 if found is None else len(found.partitions)
    return max(count, 1 + max((number for number in here if number is not None), default=-1)) if count else None


class _Topics(NamedTuple):
    """The topics and settings in the metadata.

    brokers: settings of a log directory's broker; of_broker: those for topics that don't set them, under the topics'
    names. end: the last offset of the metadata; None without any.
    """

    counts: dict[str, int]
    settings: "DynamicSettings"
    brokers: BrokerSettings
    of_broker: dict[str, str]
    end: int | None


class AdjacentMetadata:
    """The metadata found next to partitions. It is read when it is needed."""

    def __init__(
        self,
        largest_size: int | None = None,
        on_unread: "OnUnread | None" = None,
        log_dirs: Iterable[Path] = (),
        static: Mapping[str, str] = NO_SETTINGS,
        given: Path | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            largest_size: larger metadata, in bytes, aren't read; None: all are.
            on_unread: takes the unread ones, and the reason.
            log_dirs: further places of a topic's metadata: those of the same cluster have the same.
            static: settings in the brokers' server.properties.
            given: a path of metadata that replace all these; OpenError is raised if there are none.
            cluster: one that reads its metadata anyway: these count, whatever their size.
        """
        self._given, self._cluster = given, cluster
        self._largest_size = largest_size
        self._on_unread = on_unread
        self._given_dirs = log_dirs if cluster is None else cluster.metadata_dirs()
        self._static = static
        self._identities: dict[Path, DirectoryIdentity] = {}
        self._known: dict[Path, ClusterMetadata | None] = {}
        self._furthest: dict[tuple[Path, ...], ClusterMetadata | None] = {}
        self._topics: dict[Path, _Topics] = {}
        self._cleaned: dict[tuple[Path, ...], frozenset[str]] = {}

    @cached_property
    def log_dirs(self) -> tuple[Path, ...]:
        """The other log directories with possible metadata."""
        return tuple(dict.fromkeys(each.absolute() for each in self._given_dirs))

    def of_any(self, log_dirs: Iterable[Path]) -> "ClusterMetadata | None":
        """Return the furthest metadata in the given log directories.

        None if there are none, or they aren't or can't be read.
        """
        key = tuple(log_dirs)
        if key not in self._furthest:
            try:
                place = furthest_metadata(key)
            except UsageError as error:
                self._tell(key[0], error.message)
                place = None
            self._furthest[key] = None if place is None else self._read(place)
        return self._furthest[key]

    def partition_count(self, partition: PartitionLog, topic: str) -> int | None:
        """Return the number of a topic's partitions by the metadata next to a partition; None if they don't know it."""
        return self._topics_beside(partition).counts.get(topic)

    def topic_settings(self, partition: PartitionLog) -> dict[str, str]:
        """Return the settings of a partition's topic, its own or its broker's, without Kafka's defaults.

        Empty without one.
        """
        if partition.topic is None:
            return {}
        beside = self._topics_beside(partition)
        return {**beside.of_broker, **beside.settings.of("topic", partition.topic)}

    def own_settings(self, partition: PartitionLog) -> Mapping[str, str]:
        """Return the settings of a partition's topic itself, without its broker's."""
        return self._topics_beside(partition).settings.of("topic", partition.topic or "")

    def source_of(self, partition: PartitionLog, name: str) -> SettingSource:
        """Return the source of a setting of a partition's topic."""
        return source_of(name, self.own_settings(partition).get(name), self._topics_beside(partition).brokers)

    def metadata_end(self, partition: PartitionLog) -> int | None:
        """Return the last offset of the metadata with a partition's topic, or None if there aren't any."""
        return self._topics_beside(partition).end

    def _topics_beside(self, partition: PartitionLog) -> "_Topics":
        log_dir = partition.log_dir
        if log_dir not in self._topics:
            metadata = self.of_cluster(log_dir)
            topics = () if metadata is None else metadata.topics
            counts = {topic.name: len(topic.partitions) for topic in topics if topic.partitions}
            settings = DynamicSettings(metadata)
            brokers = BrokerSettings(())
            if metadata is not None or self._static:  # otherwise the broker isn't needed
                brokers = self._brokers_of(log_dir, settings)
            end = None if metadata is None else metadata.offset
            self._topics[log_dir] = _Topics(counts, settings, brokers, set_for_topics(brokers), end)
        return self._topics[log_dir]

    def _brokers_of(self, log_dir: Path, settings: DynamicSettings) -> BrokerSettings:
        """Return the settings of a log directory's broker: the only one, if the directory names none."""
        owner = self._identity(log_dir).broker
        if owner is not None:
            return settings.of_owner(owner, self._static)
        owners = (self._identity(each).broker for each in self._dirs_of_cluster(log_dir))
        return settings.of_the_broker(owners, self._static)

    def of_cluster(self, log_dir: Path) -> "ClusterMetadata | None":
        """Return the furthest metadata in a log directory and others of its cluster, as far as these name one."""
        if self._given is not None:
            return self._read_given
        if self._cluster is not None:
            return self._cluster.metadata(self._cluster.cluster_of(log_dir))
        return self.of_any(self._dirs_of_cluster(log_dir))

    def was_cleaned(self, partition: PartitionLog) -> bool:
        """Return whether the log cleaner cleaned a partition of the topic, by the checkpoints of its cluster."""
        dirs = self._dirs_of_cluster(partition.log_dir)
        if dirs not in self._cleaned:
            self._cleaned[dirs] = frozenset[str]().union(*map(cleaned_topics, dirs))
        return partition.topic in self._cleaned[dirs]

    def _dirs_of_cluster(self, log_dir: Path) -> tuple[Path, ...]:
        """Return a log directory and others of its cluster."""
        others = {*self.log_dirs} - {log_dir}
        if not others:
            return (log_dir,)
        own = self._identity(log_dir).cluster_id
        return tuple(sorted(dirs_of_cluster((log_dir, *others), own, self._identity)))

    @cached_property
    def _read_given(self) -> "ClusterMetadata | None":
        return None if self._given is None else read_cluster_metadata(self._given)

    def _identity(self, log_dir: Path) -> DirectoryIdentity:
        if log_dir not in self._identities:
            self._identities[log_dir] = identity_of(log_dir)
        return self._identities[log_dir]

    def _read(self, place: PartitionLog) -> "ClusterMetadata | None":
        path = place.path
        if path not in self._known:
            self._known[path] = self._read_once(place)
        return self._known[path]

    def _read_once(self, place: PartitionLog) -> "ClusterMetadata | None":
        from kseg.cluster.metadata import Until, cluster_metadata_of

        size = place.size + sum(each.size for each in place.metadata_snapshots)
        if self._largest_size is not None and size > self._largest_size:
            self._tell(place.path, f"{plural(size, 'byte')}, more than the {self._largest_size} that kseg reads here")
            return None
        try:
            return cluster_metadata_of(place, Until())
        except FileError as error:
            self._tell(place.path, error.message)
            return None

    def _tell(self, path: Path, reason: str) -> None:
        if self._on_unread is not None:
            self._on_unread(path, reason)


class DirectoryUse:
    """The directories that brokers use, as opposed to set-aside ones and those of other topics."""

    def __init__(self, cluster: Cluster, beside: AdjacentMetadata) -> None:
        """Take the cluster of the directories, and the metadata next to them; nothing is read yet."""
        self._cluster, self._beside = cluster, beside
        self._set_aside: dict[tuple[str, str | None], dict[Path, LeftOut]] = {}

    def has(self, partition: PartitionLog) -> bool:
        """Return True if a broker uses a partition directory."""
        return self.left_out(partition) is None

    def left_out(self, partition: PartitionLog) -> LeftOut | None:
        """Return the role of a directory that no broker uses.

        None for one in use, and for one without a topic's name.
        """
        topic, path = partition.topic, partition.path
        if topic is None:
            return None
        if partition.state is not None:
            return LeftOut(topic, partition.partition, as_given(path), None, STATUS_OF_STATE[partition.state])
        key = topic, self._cluster.cluster_of(partition.log_dir)
        if key not in self._set_aside:
            self._set_aside[key] = self._cluster.set_aside(*key, self._beside.of_cluster(partition.log_dir))
        return self._set_aside[key].get(path.absolute())
