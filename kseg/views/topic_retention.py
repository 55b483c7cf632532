"""Retention as a topic's own settings have it, where `__cluster_metadata` beside its partitions tells them."""

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from kseg.kafka_defaults import UNLIMITED
from kseg.log.freeing import FreeablePartition, freeable_partition
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.roll import RetentionSettings
from kseg.views.metadata_beside import MetadataBeside, OnUnread
from kseg.views.remote_tiers import RemoteCopies
from kseg.views.topic_cleaning import policies_of

_SAME_AS_TOTAL = -2
"""Of `local.retention.ms` and `local.retention.bytes`: the limit for local and remote segments together."""


class TopicRetention:
    """Settings for retention, partition by partition; beside: the metadata that tell them."""

    def __init__(
        self,
        settings: RetentionSettings,
        given: Collection[str] = (),
        largest_metadata: int | None = None,
        on_unread: OnUnread | None = None,
        log_dirs: Iterable[Path] = (),
    ) -> None:
        """Reads nothing yet.

        Args:
            settings: what holds where nothing else is known.
            given: fields of them that hold whatever a topic's settings are.
            largest_metadata: metadata of more bytes aren't read; None: all are.
            on_unread: takes the metadata that aren't read, and why.
            log_dirs: where to look for metadata that aren't beside a partition, if they are of the same cluster.
        """
        self._settings = settings
        self._given = given
        self.beside = MetadataBeside(largest_metadata, on_unread, log_dirs)
        self._copies = RemoteCopies()
        # What holds for a topic of which nothing is known.
        self._unknown = replace(settings, is_policy_unknown=False, highest_remote_offset=None)
        self._compacted = replace(self._unknown, is_policy_unknown=True)

    def of(self, partition: PartitionLog) -> RetentionSettings:
        """The settings for a partition; nothing expires by age or size where the topic is compacted alone.

        A partition that a cleaner has been over is compacted, whatever isn't known of its topic. Of a topic that is
        copied to a remote tier, the local limits hold, and only what was copied goes.
        Source: UnifiedLog.deleteOldSegments, localRetentionMs, LogCleanerManager.
        """
        found = {} if partition.topic is None else self.beside.topic_settings(partition, partition.topic)
        if not found:
            return self._unknown if partition.checkpoints().clean_offset is None else self._compacted
        policies = policies_of(found)
        if policies is not None and "delete" not in policies:
            return replace(self._settings, retention_ms=UNLIMITED, retention_bytes=UNLIMITED)
        is_copied = _is_copied(found)
        limit = self._local_limit if is_copied else self._limit
        return RetentionSettings(
            self._settings.now_ms,
            limit("retention_ms", self._settings.retention_ms, found),
            limit("retention_bytes", self._settings.retention_bytes, found),
            is_policy_unknown=policies is None and partition.checkpoints().clean_offset is not None,
            highest_remote_offset=self._copies.highest_offset(partition) if is_copied else None,
        )

    def freeable(self, partition: PartitionLog) -> FreeablePartition:
        """The partition with what may be lowered for less of it to be kept.

        Left alone are directories that aren't in use, internal topics, and those that are compacted alone, or maybe.
        Where what goes is in a remote tier too, the local limit is to be lowered.
        """
        settings, topic = self.of(partition), partition.topic
        if topic is None or partition.state is not None or topic.startswith("__") or settings.is_policy_unknown:
            return freeable_partition(partition, settings, None)
        found = self.beside.topic_settings(partition, topic)
        policies = policies_of(found)
        if policies is not None and "delete" not in policies:
            return freeable_partition(partition, settings, None)
        setting = "local.retention.ms" if _is_copied(found) else "retention.ms"
        is_known = self.beside.partition_count(partition, topic) is not None
        return freeable_partition(partition, settings, setting, found.get(setting), is_known=is_known)

    def _local_limit(self, field: str, otherwise: int, found: dict[str, str]) -> int:
        total = self._limit(field, otherwise, found)
        local = self._limit(f"local_{field}", _SAME_AS_TOTAL, found)
        return total if local == _SAME_AS_TOTAL or field in self._given else local

    def _limit(self, field: str, otherwise: int, found: dict[str, str]) -> int:
        value = found.get(field.replace("_", "."), "").removeprefix("+")
        is_number = re.fullmatch("-?[0-9]{1,19}", value) is not None
        return otherwise if field in self._given or not is_number else int(value)


def _is_copied(settings: dict[str, str]) -> bool:
    """Whether segments of a topic are copied to a remote tier."""
    return settings.get("remote.storage.enable") == "true" and settings.get("remote.log.copy.disable") != "true"
