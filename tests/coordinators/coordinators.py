"""Records of coordinators' topics: commits, share groups, and their share-partitions' states."""

from kseg.formats.messages import build_message
from kseg.formats.schemas import OFFSETS_KEYS, OFFSETS_VALUES, SHARE_STATE_KEYS, SHARE_STATE_VALUES, message_schema
from tests.log_files import NewRecord

TOPIC_ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAABQ", "AAAAAAAAAAAAAAAAAAAABg"
NEWEST_COMMIT = 4
"""The version of OffsetCommitValue that may have a topic's id."""


def commit(
    topic: str,
    offset: int,
    *,
    group: str = "g",
    partition: int = 0,
    topic_id: str | None = None,
    metadata: str = "",
    leader_epoch: int = -1,
    commit_timestamp: int = 0,
) -> NewRecord:
    """Return a commit of a group."""
    key = build_message(message_schema("OffsetCommitKey"), 0, {"group": group, "topic": topic, "partition": partition})
    fields: dict[str, object] = {"offset": offset, "metadata": metadata, "leaderEpoch": leader_epoch}
    fields["commitTimestamp"] = commit_timestamp
    if topic_id is not None:
        fields["topicId"] = topic_id
    value = build_message(message_schema("OffsetCommitValue"), NEWEST_COMMIT, fields)
    return NewRecord(b"\0\1" + key, NEWEST_COMMIT.to_bytes(2, "big") + value)


def classic_group(group: str, client: str | None = None, host: str = "", changed_at: int = 0) -> NewRecord:
    """Return a classic group with one member, or without any."""
    key = build_message(message_schema("GroupMetadataKey"), 0, {"group": group})
    member = {"memberId": "m", "clientId": client, "clientHost": host, "subscription": b"", "assignment": b""}
    fields = {
        "protocolType": "consumer",
        "generation": 1,
        "protocol": None,
        "leader": None,
        "currentStateTimestamp": changed_at,
        "members": [] if client is None else [member],
    }
    return NewRecord(b"\0\2" + key, b"\0\3" + build_message(message_schema("GroupMetadataValue"), 3, fields))


def new_group(group: str) -> NewRecord:
    """Return a group of the consumer protocol."""
    return _of_group(group, 3, {"epoch": 1})


def new_member(
    group: str, member: str, client: str | None, host: str = "", timestamp: int = 1_700_000_000_000
) -> NewRecord:
    """Return a member of a group of the consumer protocol, or its tombstone."""
    key = (5).to_bytes(2, "big") + build_message(OFFSETS_KEYS[5], 0, {"groupId": group, "memberId": member})
    value = None
    if client is not None:
        value = b"\0\0" + build_message(OFFSETS_VALUES[5], 0, {"clientId": client, "clientHost": host})
    return NewRecord(key, value, timestamp)


def share_group(group: str, *partitions: int) -> list[NewRecord]:
    """Return a share group that has initialized some partitions of the topic `t`."""
    topics = [{"topicId": TOPIC_ID, "topicName": "t", "partitions": list(partitions)}]
    return [_of_group(group, 11, {"epoch": 1}), _of_group(group, 15, {"initializedTopics": topics})]


def _of_group(group: str, number: int, fields: dict[str, object]) -> NewRecord:
    key = number.to_bytes(2, "big") + build_message(OFFSETS_KEYS[number], 0, {"groupId": group})
    return NewRecord(key, b"\0\0" + build_message(OFFSETS_VALUES[number], 0, fields))


SNAPSHOT, UPDATE = 0, 1


def share_state(
    number: int,
    partition: int,
    start_offset: int = -1,
    complete: int = -1,
    *batches: tuple[int, int, int, int],
    group: str = "g",
    timestamp: int = 1000,
) -> NewRecord:
    """Return a snapshot or an update of a share-partition of the topic `t`.

    batches: first and last offset, state and number of deliveries of each.
    """
    names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
    stored = [dict(zip(names, batch, strict=True)) for batch in batches]
    fields = {"startOffset": start_offset, "deliveryCompleteCount": complete, "leaderEpoch": 3, "stateBatches": stored}
    value = b"\0\0" + build_message(SHARE_STATE_VALUES[number], 0, fields)
    return NewRecord(_share_key(number, partition, group), value, timestamp)


def share_tombstone(partition: int, *, group: str = "g") -> NewRecord:
    """Return the tombstone of a share-partition's state."""
    return NewRecord(_share_key(SNAPSHOT, partition, group), None, 1000)


def _share_key(number: int, partition: int, group: str) -> bytes:
    own = {"groupId": group, "topicId": TOPIC_ID, "partition": partition}
    return number.to_bytes(2, "big") + build_message(SHARE_STATE_KEYS[number], 0, own)
