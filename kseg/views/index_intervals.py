"""A partition's `index.interval.bytes`: given, of the metadata at hand, as its entries lie, or Kafka's default."""

import re
from pathlib import Path
from typing import NamedTuple

from kseg.kafka_defaults import INDEX_INTERVAL_BYTES
from kseg.log.partition.index_spacing import interval_by_spacing
from kseg.log.partition.partition_log import PartitionLog
from kseg.views.metadata_beside import MetadataBeside

_SETTING = "index.interval.bytes"


class IndexInterval(NamedTuple):
    """An interval in bytes, and what tells it in words; None for one that was given, or is the default."""

    size: int
    source: str | None = None


class IndexIntervals:
    """Looks intervals up, partition by partition.

    Args:
        given: holds for all; None: look.
        metadata: a path of metadata in the place of those beside each partition.
    """

    def __init__(self, given: int | None, metadata: Path | None = None) -> None:
        self._given = given
        self._metadata = metadata
        self._beside = MetadataBeside()
        self._of_topics: dict[str, str] | None = None

    def told_of(self, partition: PartitionLog) -> IndexInterval | None:
        """The one that was given for a partition, or that its topic has; None if neither tells it.

        Raises OpenError if there are no metadata at the path that was given.
        """
        if self._given is not None:
            return IndexInterval(self._given)
        setting = self._setting(partition)
        if re.fullmatch("[0-9]{1,10}", setting):
            return IndexInterval(int(setting), "the cluster's metadata")
        return None

    def _setting(self, partition: PartitionLog) -> str:
        if partition.topic is None:
            return ""
        if self._metadata is None:
            return self._beside.topic_settings(partition, partition.topic).get(_SETTING, "")
        if self._of_topics is None:
            self._of_topics = _settings_at(self._metadata)
        return self._of_topics.get(partition.topic, "")


def interval_as_it_lies(partition: PartitionLog) -> IndexInterval:
    """The interval that a partition's entries have; Kafka's default if they don't tell."""
    spacing = interval_by_spacing(partition)
    return IndexInterval(INDEX_INTERVAL_BYTES) if spacing is None else IndexInterval(spacing, "its entries' places")


def _settings_at(path: Path) -> dict[str, str]:
    from kseg.views.metadata import read_cluster_metadata

    configs = read_cluster_metadata(path).configs
    return {each.resource: each.value for each in configs if (each.resource_type, each.name) == ("topic", _SETTING)}
