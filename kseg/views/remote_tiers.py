"""Remote tiers of partitions, as the topics' settings and `__remote_log_metadata` beside them tell."""

from pathlib import Path
from typing import TYPE_CHECKING

from kseg.errors import KsegError
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.remote_tier import RemoteTier, remote_tier_of
from kseg.views.metadata_beside import CHEAP_METADATA, MetadataBeside
from kseg.views.remote_segments import COPIED, Owner, recorded_segments

if TYPE_CHECKING:
    from kseg.log.lookup.lookup import SpecialTime


def find_tier(partition: PartitionLog, beside: MetadataBeside) -> RemoteTier | None:
    """The tier of a partition; None if it has none, or its small files can't be read."""
    try:
        return remote_tier_of(partition, _is_tiered(partition, beside))
    except KsegError:
        return None


def _is_tiered(partition: PartitionLog, beside: MetadataBeside) -> bool | None:
    topic = partition.topic
    if topic is None or beside.partition_count(partition, topic) is None:
        return None
    return beside.topic_settings(partition, topic).get("remote.storage.enable") == "true"


def tier_for_lookup(partition: PartitionLog, target: "int | SpecialTime") -> RemoteTier | None:
    """The tier as a lookup needs it: with the highest offset only if that is looked for. Large metadata aren't read."""
    from kseg.log.lookup.lookup import SpecialTime

    tier = find_tier(partition, MetadataBeside(CHEAP_METADATA))
    if tier is None or target is not SpecialTime.LATEST_TIERED:
        return tier
    return tier._replace(highest_offset=RemoteCopies().highest_offset(partition))


class RemoteCopies:
    """What was copied to remote tiers, as `__remote_log_metadata` beside partitions tells; each is read once."""

    def __init__(self) -> None:
        self._highest: dict[Path, dict[Owner, int]] = {}

    def highest_offset(self, partition: PartitionLog) -> int | None:
        """The highest offset of a partition that was copied to its tier; None if nothing tells."""
        log_dir = partition.path.absolute().parent
        if log_dir not in self._highest:
            self._highest[log_dir] = _highest_offsets(log_dir)
        try:
            topic_id = partition.read_topic_id()
        except KsegError:
            return None
        return max(
            (
                offset
                for owner, offset in self._highest[log_dir].items()
                if (owner.topic, owner.partition) == (partition.topic, partition.partition)
                and topic_id in (None, owner.topic_id)
            ),
            default=None,
        )


def _highest_offsets(log_dir: Path) -> dict[Owner, int]:
    highest: dict[Owner, int] = {}
    for segment in recorded_segments((log_dir,)).values():
        if segment.state == COPIED and segment.end_offset is not None:
            highest[segment.owner] = max(highest.get(segment.owner, -1), segment.end_offset)
    return highest
