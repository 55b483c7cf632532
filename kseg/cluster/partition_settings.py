"""Settings of a topic: from the cluster metadata, from the files themselves, or Kafka's defaults."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from kseg.cluster.cluster import Cluster
from kseg.cluster.metadata_copy import AdjacentMetadata, DirectoryUse, OnUnread
from kseg.cluster.remote_tier import RemoteCopies
from kseg.cluster.settings import (
    CLEANUP_POLICY,
    COMPACT,
    NO_SETTINGS,
    TOPIC_SETTINGS,
    SettingSource,
    is_compacted_at_least,
    policies_in,
    whole_number,
)
from kseg.errors import plural
from kseg.formats.codes import INDEX_INTERVAL_BYTES, UNLIMITED
from kseg.log.cleaner import CleaningSettings, CompactSettings
from kseg.log.freeing import FreeablePartition, freeable_partition
from kseg.log.index_spacing import interval_by_spacing
from kseg.log.partition import COMPACTED_TOPICS, PartitionLog
from kseg.log.segments import RetentionSettings, RollSettings

_DEFAULT_POLICY = next(setting.default for setting in TOPIC_SETTINGS if setting.name == CLEANUP_POLICY)
_SHARE = re.compile(r"[0-9]{1,3}(\.[0-9]{0,20})?|\.[0-9]{1,20}")
"""The text of a setting that may be a fraction."""


def policies_of(partition: PartitionLog, beside: AdjacentMetadata) -> list[str] | None:
    """Return the cleanup policies of a partition's topic: `delete`, `compact` or both, or None if unknown.

    If metadata know the topic, they decide, also if the policy is the default. Otherwise a broker's own topics are
    compacted, as it creates them, whatever it sets for others.
    """
    policy = beside.topic_settings(partition).get(CLEANUP_POLICY)
    if beside.partition_count(partition, partition.topic or "") is not None:
        return policies_in(policy or _DEFAULT_POLICY)
    if partition.topic in COMPACTED_TOPICS:
        return [COMPACT]
    if policy is None or is_compacted_at_least(policy, partial(beside.was_cleaned, partition)):
        return None
    return policies_in(policy)


def is_never_compacted(partition: PartitionLog, beside: AdjacentMetadata) -> bool:
    """Return whether the cleanup policy of a partition's topic is known, and isn't `compact`."""
    policies = policies_of(partition, beside)
    return policies is not None and COMPACT not in policies


class TopicCleaning:
    """Settings for the cleaner, partition by partition."""

    def __init__(
        self, settings: CleaningSettings, given: Collection[str], beside: AdjacentMetadata, use: DirectoryUse
    ) -> None:
        """Read nothing yet.

        Args:
            settings: used where the topic's are unknown.
            given: fields of them that override a topic's settings.
            beside: the metadata that have these.
            use: the directories in use; the cleaner ignores the others.
        """
        self._use = use
        self._settings = settings
        self._given = given
        self._beside = beside
        self._default_settings = replace(settings, is_policy_unknown=True)

    def of(self, partition: PartitionLog) -> CleaningSettings | None:
        """Return the settings for a partition, or None if the cleaner doesn't clean it.

        A topic in the cleaner's checkpoint was once compacted; without its settings it is unknown whether it still is.
        """
        if partition.topic is None or partition.state is not None:
            return None
        policies = policies_of(partition, self._beside)
        if policies is None:
            return self._default_settings if self._beside.was_cleaned(partition) and self._use.has(partition) else None
        if COMPACT not in policies or not self._use.has(partition):
            return None
        return as_the_topic_sets(self._beside.topic_settings(partition), self._settings, self._given)


Settings = TypeVar("Settings", RollSettings, CompactSettings, CleaningSettings)


def as_the_topic_sets(found: Mapping[str, str], otherwise: Settings, given: Collection[str] = ()) -> Settings:
    """Return settings with the numbers that a topic, or its broker, sets under Kafka's names for the fields.

    otherwise: used for unset fields; given: fields of it that override the topic's.
    """
    if not found:
        return otherwise
    own: dict[str, Any] = {}
    for name in (each.name for each in fields(otherwise) if each.name not in given):
        value = _number(type(getattr(otherwise, name)), found.get(name.replace("_", "."), ""))
        if value is not None:
            own[name] = value
    return replace(otherwise, **own) if own else otherwise


def _number(kind: type, text: str) -> float | None:
    if kind is float:
        return float(text) if _SHARE.fullmatch(text) else None
    return whole_number(text, least=0) if kind is int else None


class IndexInterval(NamedTuple):
    """An interval in bytes, and its source in words, or None for one that was given, or is the default."""

    size: int
    source: str | None = None


class IndexIntervals:
    """Index intervals, partition by partition.

    Args:
        given: for all partitions; None: look it up.
        beside: the metadata that have it.
    """

    def __init__(self, given: int | None, beside: AdjacentMetadata) -> None:
        self._given, self._beside = given, beside

    def find(self, partition: PartitionLog) -> IndexInterval | None:
        """Return the interval that was given for a partition, or that its topic has, or None without either.

        Raises OpenError if there are no metadata at the path that was given.
        """
        if self._given is not None:
            return IndexInterval(self._given)
        size = whole_number(self._beside.topic_settings(partition).get("index.interval.bytes", ""), least=0)
        return None if size is None else IndexInterval(size, "the cluster's metadata")


def interval_as_it_lies(partition: PartitionLog) -> IndexInterval:
    """Return the index interval of a partition, or Kafka's default if it can't be determined."""
    spacing = interval_by_spacing(partition)
    return (
        IndexInterval(INDEX_INTERVAL_BYTES)
        if spacing is None
        else IndexInterval(spacing, "the positions of its entries")
    )


class SettingSources:
    """Sources of the settings of the given topics, which a verdict's reader sees once."""

    def __init__(self, beside: AdjacentMetadata, given: Collection[str] = ()) -> None:
        """Take the metadata that have them, and the fields that options give for all topics."""
        self._beside, self._given = beside, given
        self._seen_values: set[tuple[object, ...]] = set()
        self._counts: dict[str, Counter[str]] = {}
        self._ends: set[int | None] = set()

    def take(self, partition: PartitionLog, names: Iterable[str]) -> None:
        """Add settings of a partition's topic, by Kafka's names."""
        key = (partition.log_dir, partition.topic)
        if key in self._seen_values:
            return
        self._seen_values.add(key)
        self._ends.add(self._beside.metadata_end(partition))
        for name in names:
            is_given = name.replace(".", "_") in self._given
            source = (
                f"--{name.replace('.', '-')}" if is_given else _source_text(self._beside.source_of(partition, name))
            )
            self._counts.setdefault(name, Counter())[source] += 1

    def as_note(self) -> str | None:
        """Return each setting with its source, and the metadata that have it, or None if none was added."""
        if not self._counts:
            return None
        names: dict[str, list[str]] = {}
        for name, found in self._counts.items():
            names.setdefault(_sources_text(found), []).append(name)
        parts = [f"{' and '.join(same)} from {source}" for source, same in names.items()]
        ends = sorted(end for end in self._ends if end is not None)
        known = f"metadata up to offset {', '.join(map(str, ends))}" if ends else "no metadata of the cluster read"
        return f"settings: {'; '.join(parts)}; {known}"


def _source_text(source: SettingSource) -> str:
    return "the topic" if source is SettingSource.TOPIC else source.text()


def _sources_text(found: Counter[str]) -> str:
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{source} ({plural(count, 'topic')})" for source, count in found.most_common())


_SAME_AS_TOTAL = -2
"""A value of `local.retention.ms` and `local.retention.bytes`: the limit of the whole log applies."""


class TopicRetention:
    """Settings for retention, partition by partition; beside: the metadata that have them; sources: of those used."""

    def __init__(
        self,
        cluster: Cluster,
        settings: RetentionSettings,
        given: Collection[str] = (),
        largest_metadata: int | None = None,
        on_unread: OnUnread | None = None,
        static: Mapping[str, str] = NO_SETTINGS,
    ) -> None:
        """Read nothing yet.

        Args:
            cluster: the place of metadata that aren't next to a partition, if they are of the same cluster.
            settings: used where the topic's are unknown.
            given: fields of them that override a topic's settings.
            largest_metadata: larger metadata, in bytes, aren't read; None: all are.
            on_unread: takes the metadata that aren't read, and the reason.
            static: settings in the brokers' server.properties.
        """
        self._settings = settings
        self._given = given
        self.beside = AdjacentMetadata(largest_metadata, on_unread, cluster.metadata_dirs(), static)
        self.use = DirectoryUse(cluster, self.beside)
        self.sources = SettingSources(self.beside, given)
        self._copies = RemoteCopies(cluster.metadata_dirs())
        # The settings of an unknown topic.
        self._default_settings = replace(settings, is_policy_unknown=False, highest_remote_offset=None)
        self._compacted_settings = replace(self._default_settings, is_policy_unknown=True)

    def of(self, partition: PartitionLog) -> RetentionSettings:
        """Return the settings for a partition; nothing expires by age or size where the topic is only compacted.

        A topic that a cleaner has cleaned is compacted, even if nothing else is known of it. For a topic that is
        copied to a remote tier, the local limits apply, and only copied segments are deleted. Source:
        UnifiedLog.deleteOldSegments, localRetentionMs, LogCleanerManager.
        """
        policies = policies_of(partition, self.beside)
        if policies is not None and "delete" not in policies:
            return replace(self._settings, retention_ms=UNLIMITED, retention_bytes=UNLIMITED)
        self.sources.take(partition, (self._time_name(partition), "retention.bytes"))
        is_policy_unknown = policies is None and self.beside.was_cleaned(partition)
        found = self.beside.topic_settings(partition)
        if not found:
            return self._compacted_settings if is_policy_unknown else self._default_settings
        is_copied = _is_copied(found)
        limit = self._local_limit if is_copied else self._limit
        return RetentionSettings(
            self._settings.now_ms,
            limit("retention_ms", self._settings.retention_ms, found),
            limit("retention_bytes", self._settings.retention_bytes, found),
            is_policy_unknown=is_policy_unknown,
            highest_remote_offset=self._copies.highest_offset(partition) if is_copied else None,
        )

    def time_source(self, partition: PartitionLog) -> SettingSource:
        """Return the source of a partition's retention by time."""
        return self.beside.source_of(partition, self._time_name(partition))

    def _time_name(self, partition: PartitionLog) -> str:
        """Return the setting that controls time-based retention."""
        found = self.beside.topic_settings(partition)
        is_local = _is_copied(found) and self._limit("local_retention_ms", _SAME_AS_TOTAL, found) != _SAME_AS_TOTAL
        return "local.retention.ms" if is_local and "retention_ms" not in self._given else "retention.ms"

    def freeable(self, partition: PartitionLog) -> FreeablePartition:
        """Return the partition, whose directory is in use, with the setting that may be lowered to keep less of it.

        Internal topics stay unchanged, and topics that are or may be only compacted. If deleted segments are in a
        remote tier too, the local limit is lowered.
        """
        settings, topic = self.of(partition), partition.topic
        if topic is None or topic.startswith("__") or settings.is_policy_unknown:
            return freeable_partition(partition, settings, None)
        found = self.beside.topic_settings(partition)
        policies = policies_of(partition, self.beside)
        if policies is not None and "delete" not in policies:
            return freeable_partition(partition, settings, None)
        setting = "local.retention.ms" if _is_copied(found) else "retention.ms"
        is_known = self.beside.partition_count(partition, topic) is not None
        own_value = self.beside.own_settings(partition).get(setting)
        return freeable_partition(partition, settings, setting, own_value, is_known=is_known)

    def _local_limit(self, field: str, otherwise: int, found: dict[str, str]) -> int:
        total = self._limit(field, otherwise, found)
        local = self._limit(f"local_{field}", _SAME_AS_TOTAL, found)
        return total if local == _SAME_AS_TOTAL or field in self._given else local

    def _limit(self, field: str, otherwise: int, found: dict[str, str]) -> int:
        value = whole_number(found.get(field.replace("_", "."), ""))
        return otherwise if field in self._given or value is None else value


def _is_copied(settings: dict[str, str]) -> bool:
    """Return True if segments of a topic are copied to a remote tier."""
    return settings.get("remote.storage.enable") == "true" and settings.get("remote.log.copy.disable") != "true"
