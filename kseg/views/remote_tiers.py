"""Remote tiers of partitions, as the topics' settings and `__remote_log_metadata` beside them tell."""

from pathlib import Path
from typing import TYPE_CHECKING

from kseg.errors import KsegError
from kseg.log.lookup.lookup import SpecialTime
from kseg.log.partition.log_dir import LogDir
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.remote_tier import RemoteTier, remote_tier_of
from kseg.views.metadata_beside import MetadataBeside, partition_count
from kseg.views.topic_retention import CHEAP_METADATA

if TYPE_CHECKING:
    from kseg.formats.messages import Fields

REMOTE_LOG_TOPIC = "__remote_log_metadata"
COPIED = 1
"""State of a segment that can be read from the tier. Source: RemoteLogSegmentState.COPY_SEGMENT_FINISHED."""


def find_tier(partition: PartitionLog, beside: MetadataBeside) -> RemoteTier | None:
    """The tier of a partition; None if it has none, or its small files can't be read."""
    try:
        return remote_tier_of(partition, _is_tiered(partition, beside))
    except KsegError:
        return None


def _is_tiered(partition: PartitionLog, beside: MetadataBeside) -> bool | None:
    topic = partition.topic
    if topic is None or partition_count(beside.of(partition), topic) is None:
        return None
    return beside.topic_settings(partition, topic).get("remote.storage.enable") == "true"


def tier_for_lookup(partition: PartitionLog, target: int | SpecialTime) -> RemoteTier | None:
    """The tier as a lookup needs it: with the highest offset only if that is looked for. Large metadata aren't read."""
    tier = find_tier(partition, MetadataBeside(CHEAP_METADATA))
    if tier is None or target is not SpecialTime.LATEST_TIERED:
        return tier
    return with_highest_offset(partition, tier)


def with_highest_offset(partition: PartitionLog, tier: RemoteTier) -> RemoteTier:
    """The same with the highest offset that was copied, if `__remote_log_metadata` beside the partition tells it."""
    return tier._replace(highest_offset=_highest_offset(partition))


def _highest_offset(partition: PartitionLog) -> int | None:
    try:
        topic_id = partition.read_topic_id()
        places = list(LogDir(_log_dir(partition)).partitions(lambda _: None))
    except KsegError:
        return None
    ends: dict[str, int] = {}
    copied: set[str] = set()
    for place in places:
        if place.topic != REMOTE_LOG_TOPIC or place.state is not None:
            continue
        try:
            segments = _segments(place, partition, topic_id)
        except KsegError:  # it has gone meanwhile
            continue
        for fields in segments:
            segment_id = fields["remoteLogSegmentId"]["id"]
            if "endOffset" in fields:
                ends[segment_id] = fields["endOffset"]
            (copied.add if fields["remoteLogSegmentState"] == COPIED else copied.discard)(segment_id)
    return max((ends[segment_id] for segment_id in copied if segment_id in ends), default=None)


def _log_dir(partition: PartitionLog) -> Path:
    return partition.path.absolute().parent


def _segments(place: PartitionLog, partition: PartitionLog, topic_id: str | None) -> "list[Fields]":
    """The records of a partition's remote segments that can be read, in their order. Raises OpenError."""
    from kseg.decode.framed import parse_framed
    from kseg.formats.messages import MessageError
    from kseg.formats.schemas import remote_log_metadata
    from kseg.views.replay import Unreadable, partition_batches

    found = []
    for item in partition_batches(place):
        if isinstance(item, Unreadable) or item.is_control:
            continue
        for record in item.records(on_damage="skip"):
            try:
                fields = parse_framed(remote_log_metadata.RECORDS, record.value).fields
            except MessageError:
                continue
            own = fields.get("remoteLogSegmentId", {}).get("topicIdPartition", {})
            is_topic = own.get("name") == partition.topic and topic_id in (None, own.get("id"))
            if is_topic and own.get("partition") == partition.partition:
                found.append(fields)
    return found
