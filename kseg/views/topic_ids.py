"""Ids of topics, as `__cluster_metadata` tells them: for partitions that have lost theirs."""

from pathlib import Path

from kseg.errors import KsegError
from kseg.log.partition.partition_log import METADATA_TOPIC, PartitionLog

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
    from kseg.views.metadata import read_cluster_metadata

    return {topic.name: topic.topic_id for topic in read_cluster_metadata(path).topics}
