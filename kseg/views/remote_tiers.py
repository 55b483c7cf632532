"""Remote tiers of partitions, as the topics' settings and `__remote_log_metadata` beside them tell."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.errors import KsegError
from kseg.log.partition.log_dir import LogDir
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.remote_tier import RemoteTier, remote_tier_of
from kseg.views.metadata_beside import CHEAP_METADATA, MetadataBeside

if TYPE_CHECKING:
    from kseg.formats.messages import Fields
    from kseg.log.lookup.lookup import SpecialTime

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
        self._highest: dict[Path, dict[_Owner, int]] = {}

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


class _Owner(NamedTuple):
    """The partition that a remote segment belongs to."""

    topic: str
    topic_id: str
    partition: int


def _highest_offsets(log_dir: Path) -> dict[_Owner, int]:
    try:
        places = [each for each in LogDir(log_dir).partitions(lambda _: None) if each.topic == REMOTE_LOG_TOPIC]
    except KsegError:
        return {}
    ends: dict[tuple[_Owner, str], int] = {}
    copied: set[tuple[_Owner, str]] = set()
    for place in places:
        try:
            segments = _segments(place) if place.state is None else []
        except KsegError:  # it has gone meanwhile
            continue
        for owner, fields in segments:
            segment = (owner, fields["remoteLogSegmentId"]["id"])
            if "endOffset" in fields:
                ends[segment] = fields["endOffset"]
            (copied.add if fields["remoteLogSegmentState"] == COPIED else copied.discard)(segment)
    highest: dict[_Owner, int] = {}
    for segment in copied & ends.keys():
        highest[segment[0]] = max(highest.get(segment[0], -1), ends[segment])
    return highest


def _segments(place: PartitionLog) -> "list[tuple[_Owner, Fields]]":
    """The records of remote segments that can be read, in their order, and whose they are. Raises OpenError."""
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
            owner = fields.get("remoteLogSegmentId", {}).get("topicIdPartition")
            if owner is not None:
                found.append((_Owner(owner["name"], owner["id"], owner["partition"]), fields))
    return found
