"""Metadata next to partitions: read once for a log directory; and the ids of topics."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kseg.cluster.directories import LogDir
from kseg.cluster.schemas_topic import TopicPlaces
from kseg.errors import KsegError
from kseg.log.partition import METADATA_TOPIC, PartitionLog

if TYPE_CHECKING:
    from kseg.cluster.model import ClusterMetadata


METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Of `__cluster_metadata` itself, which no record tells. Source: Uuid.METADATA_TOPIC_ID."""


class TopicIds:
    """Looks ids up in the metadata at a path or, without one, in those beside each partition."""

    def __init__(self, metadata: Path | None = None) -> None:
        self._metadata = metadata
        self._known: dict[Path, dict[str, str]] = {}

    def lost_by(self, partition: PartitionLog) -> str | None:
        """The id of a partition's topic, if its own file doesn't tell it.

        None where it does, no metadata are at hand, or they don't know the topic. Raises OpenError if there are no
        metadata at the path that was given.
        """
        if partition.topic is None or _has_own(partition):
            return None
        if partition.topic == METADATA_TOPIC:
            return METADATA_TOPIC_ID
        path = self._metadata or partition.path.absolute().parent / f"{METADATA_TOPIC}-0"
        if self._metadata is None and not path.is_dir():
            return None
        if path not in self._known:
            self._known[path] = _read_ids(path)
        return self._known[path].get(partition.topic)


def _has_own(partition: PartitionLog) -> bool:
    try:
        return partition.read_topic_id() is not None
    except KsegError:
        return False


def _read_ids(path: Path) -> dict[str, str]:
    from kseg.cluster.metadata import read_cluster_metadata

    return {topic.name: topic.topic_id for topic in read_cluster_metadata(path).topics}


CHEAP_METADATA = 4 << 20
"""Bytes of metadata that are read in a few seconds."""

OnUnread: TypeAlias = Callable[[Path, str], object]
"""Takes the path of metadata that aren't read, and why."""


def partition_count(metadata: "ClusterMetadata | None", topic: str) -> int | None:
    """How many partitions a topic has, as metadata tell; None if they don't know it."""
    counts = [] if metadata is None else [len(each.partitions) for each in metadata.topics if each.name == topic]
    return counts[0] if counts and counts[0] else None


def missing_text(places: TopicPlaces, topic: str, metadata: "ClusterMetadata | None") -> str | None:
    """Says how many of a topic's partitions are here, if some aren't; None of partitions that were named one by one.

    Without metadata that know the topic its partitions' numbers tell.
    """
    highest = max((place.partition or 0 for place in places.partitions), default=-1)
    count = partition_count(metadata, topic) or highest + 1
    if not places.is_all or len(places.partitions) >= count:
        return None
    return f"{len(places.partitions)} of {count} partitions of {topic} are here"


class _Topics(NamedTuple):
    """What metadata tell of topics, by their names: how many partitions they have, and their own settings."""

    counts: dict[str, int]
    settings: dict[str, dict[str, str]]


def _topics_of(metadata: "ClusterMetadata | None") -> _Topics:
    if metadata is None:
        return _Topics({}, {})
    counts = {topic.name: len(topic.partitions) for topic in metadata.topics if topic.partitions}
    settings: dict[str, dict[str, str]] = {}
    for each in metadata.configs:
        if each.resource_type == "topic":
            settings.setdefault(each.resource, {})[each.name] = each.value
    return _Topics(counts, settings)


class MetadataBeside:
    """What the log directories of partitions tell of the cluster; each directory's metadata are read when asked for."""

    def __init__(
        self,
        largest_size: int | None = None,
        on_unread: "OnUnread | None" = None,
        log_dirs: Iterable[Path] = (),
    ) -> None:
        """Reads nothing yet.

        Args:
            largest_size: bytes from which on metadata aren't read; None: all are.
            on_unread: takes which aren't, and why.
            log_dirs: others where to look for the metadata of a topic: those of the same cluster tell the same.
        """
        self._largest_size = largest_size
        self._on_unread = on_unread
        self._log_dirs = tuple(log_dirs)
        self._known: dict[Path, ClusterMetadata | None] = {}
        self._topics: dict[Path, _Topics] = {}

    def of(self, partition: PartitionLog) -> "ClusterMetadata | None":
        """The metadata beside a partition; None if there are none, or they aren't or can't be read."""
        return self.of_log_dir(partition.log_dir)

    def of_log_dir(self, log_dir: Path) -> "ClusterMetadata | None":
        """The metadata in a log directory; None if there are none, or they aren't or can't be read."""
        if log_dir not in self._known:
            self._known[log_dir] = self._read(log_dir / f"{METADATA_TOPIC}-0")
        return self._known[log_dir]

    def of_any(self, log_dirs: Iterable[Path]) -> "ClusterMetadata | None":
        """The metadata in the first of some log directories that has any; a broker keeps them in one of its own."""
        return next((found for found in map(self.of_log_dir, log_dirs) if found is not None), None)

    def partition_count(self, partition: PartitionLog, topic: str) -> int | None:
        """How many partitions a topic has, as the metadata beside a partition tell; None if they don't know it."""
        return self._topics_beside(partition).counts.get(topic)

    def topic_settings(self, partition: PartitionLog, topic: str) -> dict[str, str]:
        """A topic's own settings by name, as the metadata beside a partition tell; none if these don't know it."""
        return self._topics_beside(partition).settings.get(topic, {})

    def _topics_beside(self, partition: PartitionLog) -> "_Topics":
        log_dir = partition.log_dir
        if log_dir not in self._topics:
            self._topics[log_dir] = _topics_of(self._of_cluster(log_dir))
        return self._topics[log_dir]

    def _of_cluster(self, log_dir: Path) -> "ClusterMetadata | None":
        """The metadata in a log directory, or in another one of its cluster: a broker keeps them on one disk alone."""
        own = self.of_log_dir(log_dir)
        cluster_id = None if own is not None or not self._log_dirs else _cluster_id(log_dir)
        if cluster_id is None:
            return own
        return self.of_any(each.absolute() for each in self._log_dirs if _cluster_id(each) == cluster_id)

    def _read(self, path: Path) -> "ClusterMetadata | None":
        if not path.is_dir():
            return None
        from kseg.cluster.metadata import Until, cluster_metadata_of

        try:
            partition = PartitionLog(path)
            size = partition.size + sum(each.size for each in partition.metadata_snapshots)
            if self._largest_size is not None and size > self._largest_size:
                self._tell(path, f"{size} bytes, more than the {self._largest_size} that are read here")
                return None
            return cluster_metadata_of(partition, Until())
        except KsegError as error:
            self._tell(path, error.message)
            return None

    def _tell(self, path: Path, reason: str) -> None:
        if self._on_unread is not None:
            self._on_unread(path, reason)


def _cluster_id(log_dir: Path) -> str | None:
    """The cluster of a log directory; None if it doesn't tell."""
    try:
        return LogDir(log_dir).cluster_id()
    except KsegError:
        return None
