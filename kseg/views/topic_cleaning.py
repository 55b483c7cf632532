"""The log cleaner's settings as a topic has them, where `__cluster_metadata` beside its partitions tells them."""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from kseg.log.partition.cleaning import CleaningSettings
from kseg.log.partition.partition_log import COMPACTED_TOPICS, PartitionLog
from kseg.views.metadata_beside import MetadataBeside

CLEANUP_POLICY = "cleanup.policy"
_KINDS = {
    "min_cleanable_dirty_ratio": (float, r"[0-9]{1,3}(\.[0-9]{0,20})?|\.[0-9]{1,20}"),
    "min_compaction_lag_ms": (int, "[0-9]{1,19}"),
    "max_compaction_lag_ms": (int, "[0-9]{1,19}"),
}
"""Fields that a topic may set, and which texts are values of them."""


def policies_of(settings: dict[str, str]) -> list[str] | None:
    """The cleanup policies in a topic's settings: of `delete` and `compact`; None if it has none of its own."""
    policy = settings.get(CLEANUP_POLICY)
    return None if policy is None else [each.strip() for each in policy.split(",")]


class TopicCleaning:
    """Settings for the cleaner, partition by partition."""

    def __init__(self, settings: CleaningSettings, given: Collection[str], beside: MetadataBeside) -> None:
        """Reads nothing yet.

        Args:
            settings: what holds where nothing else is known.
            given: fields of them that hold whatever a topic's settings are.
            beside: the metadata that tell these.
        """
        self._settings = settings
        self._given = given
        self._beside = beside
        self._unknown = replace(settings, is_policy_unknown=True)

    def of(self, partition: PartitionLog) -> CleaningSettings | None:
        """The settings for a partition; None if the cleaner has nothing to do with it.

        A partition in the cleaner's checkpoint was compacted once; without its settings nothing tells whether it still
        is.
        """
        if partition.topic is None or partition.state is not None:
            return None
        found = self._beside.topic_settings(partition, partition.topic)
        policies = ["compact"] if partition.topic in COMPACTED_TOPICS else policies_of(found)
        if policies is None:
            return None if partition.checkpoints().clean_offset is None else self._unknown
        if "compact" not in policies:
            return None
        own = {name: value for name in _KINDS if (value := self._own(name, found)) is not None}
        return replace(self._settings, **own) if own else self._settings

    def _own(self, field: str, found: dict[str, str]) -> Any:
        value, (kind, pattern) = found.get(field.replace("_", ".")), _KINDS[field]
        is_usable = field not in self._given and value is not None and re.fullmatch(pattern, value) is not None
        return kind(value) if is_usable else None
