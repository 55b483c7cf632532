"""Which fields, versions and record types Kafka's messages had in earlier releases: what an old tool knew.

An old tool reads an unknown version as the newest one that it knows. A tagged field that was added later without a
new version is an unknown one for it. Taken from the schemas of the releases 2.8.0 to 4.4.0.
"""

from functools import lru_cache

from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES,
    OFFSETS_VALUES_TO_4_0,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    Field,
    MessageSchema,
    MessageTable,
)
from kseg.releases import Release, Since, value_in

Messages = dict[int, tuple[MessageSchema, MessageSchema]]
"""Type of a coordinator's record to the messages of its key and value."""

TAGGED_FIELDS_SINCE: dict[tuple[str, str], tuple[int, int]] = {
    ("ConsumerGroupCurrentMemberAssignmentValue", "assignmentEpochs"): (4, 3),
    ("ConsumerGroupMetadataValue", "metadataHash"): (4, 1),
    ("ConsumerGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): (4, 3),
    ("OffsetCommitValue", "topicId"): (4, 1),
    ("PartitionChangeRecord", "leaderRecoveryState"): (3, 2),
    ("PartitionRecord", "leaderRecoveryState"): (3, 2),
    ("RemoteLogSegmentMetadataRecord", "txnIndexEmpty"): (4, 0),
    ("RemoteLogSegmentMetadataSnapshotRecord", "txnIndexEmpty"): (4, 0),
    ("ShareGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): (4, 3),
    ("ShareSnapshotValue", "deliveryCompleteCount"): (4, 2),
    ("ShareUpdateValue", "deliveryCompleteCount"): (4, 2),
    ("StreamsGroupCurrentMemberAssignmentValue", "assignmentEpochs"): (4, 2),
    ("StreamsGroupMetadataValue", "failedDescriptionTopologyEpoch"): (4, 4),
    ("StreamsGroupMetadataValue", "lastAssignmentConfigs"): (4, 2),
    ("StreamsGroupMetadataValue", "storedDescriptionTopologyEpoch"): (4, 4),
    ("StreamsGroupMetadataValue", "validatedTopologyEpoch"): (4, 2),
    ("StreamsGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): (4, 3),
}
"""Tagged fields that were added to an existing version."""

NEWEST_VERSION: dict[str, Since[int]] = {
    "BrokerRegistrationChangeRecord": (((3, 0), 0), ((3, 3), 1), ((3, 7), 2), ((4, 3), 3)),
    "GroupMetadataValue": (((0, 9), 0), ((0, 10, 1), 1), ((2, 1), 2), ((2, 3), 3), ((3, 4, 1), 4)),
    "OffsetCommitValue": (((0, 9), 1), ((2, 1), 3), ((3, 4, 1), 4)),
    "PartitionChangeRecord": (((3, 0), 0), ((3, 7), 2)),
    "PartitionRecord": (((3, 0), 0), ((3, 7), 2)),
    "RegisterBrokerRecord": (((3, 0), 0), ((3, 3), 1), ((3, 4), 2), ((3, 7), 3), ((4, 3), 4)),
    "TransactionLogValue": (((0, 11), 0), ((3, 4, 1), 1)),
}
"""The newest version of a message that a release knew, if a later release added one."""

METADATA_RECORD_SINCE: dict[int, tuple[int, int]] = {
    18: (3, 2),
    19: (3, 2),
    20: (3, 3),
    21: (3, 4),
    22: (3, 5),
    23: (3, 6),
    24: (3, 6),
    25: (3, 6),
    26: (3, 6),
    27: (3, 7),
    28: (4, 0),
    29: (4, 4),
}
"""Types of `__cluster_metadata` records that were added after 3.0."""

OTHER_FIELDS_BEFORE: dict[tuple[int, int], tuple[int, ...]] = {
    (3, 2): (15,),  # ProducerIdsRecord
    (3, 3): (12, 16),  # FeatureLevelRecord, RemoveFeatureLevelRecord
    (3, 5): (11,),  # UserScramCredentialRecord
    (3, 6): (10,),  # DelegationTokenRecord
}
"""Types of `__cluster_metadata` records that had other fields, or existed only, before a release."""
EARLY_METADATA_RECORDS = MessageTable("cluster_metadata_3_1", "metadata")
"""These records in 3.0 and 3.1."""

EARLY_SHARE_GROUP_KEYS = MessageTable("share_groups_4_0", "data", {9: "ShareGroupPartitionMetadataKey"})
EARLY_SHARE_GROUP_VALUES = MessageTable(
    "share_groups_4_0",
    "data",
    {
        9: "ShareGroupPartitionMetadataValue",
        11: "ShareGroupMetadataValue",
        15: "ShareGroupStatePartitionMetadataValue",
    },
)
EARLY_SHARE_STATE_VALUES = MessageTable("share_groups_4_0", "data", {0: "ShareSnapshotValue", 1: "ShareUpdateValue"})
"""Share groups' records in 4.0: the values have other fields than later in the same versions."""

OFFSETS_NEWEST_TYPE: Since[int] = (((3, 8), 8), ((4, 0), 16), ((4, 1), 23))
"""The last type of `__consumer_offsets` records that a release knew, from when schemas define them."""


@lru_cache(maxsize=512)
def message_as_of(message: MessageSchema, release: Release) -> MessageSchema:
    """A message as a release knew it."""
    fields = known_fields(message.name, message.fields, release)
    if message.name in NEWEST_VERSION:
        message = message._replace(versions=f"0-{value_in(release, NEWEST_VERSION[message.name])}")
    return message._replace(fields=fields)


def known_fields(message: str, fields: tuple[Field, ...], release: Release) -> tuple[Field, ...]:
    """The fields of a message, or of a structure in it, that a release knew."""
    return tuple(
        field._replace(fields=known_fields(message, field.fields, release))
        for field in fields
        if release.numbers >= TAGGED_FIELDS_SINCE.get((message, field.name), ())
    )


def metadata_records(release: Release) -> dict[int, MessageSchema]:
    """The `__cluster_metadata` records that a release (3.0 or later) knew, by type."""
    records = {
        number: message_as_of(message, release)
        for number, message in METADATA_RECORDS.items()
        if release.numbers >= METADATA_RECORD_SINCE.get(number, ())
    }
    for before, numbers in OTHER_FIELDS_BEFORE.items():
        if release.numbers < before:
            records |= {number: EARLY_METADATA_RECORDS[number] for number in numbers}
    return records


def offsets_messages(release: Release) -> Messages:
    """The `__consumer_offsets` messages that a release (3.8 or later) knew."""
    keys, values = dict(OFFSETS_KEYS), dict(OFFSETS_VALUES)
    if release.numbers < (4, 1):
        keys |= EARLY_SHARE_GROUP_KEYS
        values = {**OFFSETS_VALUES_TO_4_0, **EARLY_SHARE_GROUP_VALUES}
    newest = value_in(release, OFFSETS_NEWEST_TYPE)
    return {number: (key, message_as_of(values[number], release)) for number, key in keys.items() if number <= newest}


def share_state_messages(release: Release) -> Messages:
    """The `__share_group_state` messages that a release (4.0 or later) knew."""
    values = SHARE_STATE_VALUES if release.numbers >= (4, 1) else EARLY_SHARE_STATE_VALUES
    return {number: (key, message_as_of(values[number], release)) for number, key in SHARE_STATE_KEYS.items()}


def transaction_messages(release: Release) -> Messages:
    """The `__transaction_state` messages that a release (4.1 or later) knew."""
    return {
        number: (key, message_as_of(TRANSACTION_VALUES[number], release)) for number, key in TRANSACTION_KEYS.items()
    }
