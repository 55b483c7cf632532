"""Retention as a topic's own settings have it, where `__cluster_metadata` beside its partitions tells them."""

import re
from collections.abc import Collection
from dataclasses import replace

from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.roll import UNLIMITED, RetentionSettings
from kseg.views.metadata_beside import MetadataBeside, OnUnread

CHEAP_METADATA = 4 << 20
"""Bytes of metadata that are read in a few seconds."""
_CLEANUP_POLICY = "cleanup.policy"


class TopicRetention:
    """Settings for retention, partition by partition; beside: the metadata that tell them."""

    def __init__(
        self,
        settings: RetentionSettings,
        given: Collection[str] = (),
        largest_metadata: int | None = None,
        on_unread: OnUnread | None = None,
    ) -> None:
        """Reads nothing yet.

        Args:
            settings: what holds where nothing else is known.
            given: fields of them that hold whatever a topic's settings are.
            largest_metadata: metadata of more bytes aren't read; None: all are.
            on_unread: takes the metadata that aren't read, and why.
        """
        self._settings = settings
        self._given = given
        self.beside = MetadataBeside(largest_metadata, on_unread)

    def of(self, partition: PartitionLog) -> RetentionSettings:
        """The settings for a partition; nothing expires by age or size where the topic is compacted alone.

        A partition that a cleaner has been over is compacted, whatever isn't known of its topic.
        Source: UnifiedLog.deleteOldSegments, LogCleanerManager.
        """
        found = {} if partition.topic is None else self.beside.topic_settings(partition, partition.topic)
        policy = found.get(_CLEANUP_POLICY)
        if policy is not None and "delete" not in [each.strip() for each in policy.split(",")]:
            return replace(self._settings, retention_ms=UNLIMITED, retention_bytes=UNLIMITED)
        return RetentionSettings(
            self._settings.now_ms,
            self._limit("retention_ms", self._settings.retention_ms, found),
            self._limit("retention_bytes", self._settings.retention_bytes, found),
            is_policy_unknown=policy is None and partition.checkpoints().clean_offset is not None,
        )

    def _limit(self, field: str, otherwise: int, found: dict[str, str]) -> int:
        value = found.get(field.replace("_", "."), "").removeprefix("+")
        is_number = re.fullmatch("-?[0-9]{1,19}", value) is not None
        return otherwise if field in self._given or not is_number else int(value)
