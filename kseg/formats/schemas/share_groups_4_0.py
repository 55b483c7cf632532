"""Messages of share groups as 4.0 had them, in the same versions as later but with other fields.

Written by tools/read_schemas.py from Kafka 4.0.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

SHARE_GROUP_METADATA_VALUE = MessageSchema(
    "ShareGroupMetadataValue", "data", None, "0", "0+", (Field("epoch", "int32", "0+"),)
)

SHARE_GROUP_PARTITION_METADATA_KEY = MessageSchema(
    "ShareGroupPartitionMetadataKey", "data", None, "9", "none", (Field("groupId", "string", "9"),)
)

SHARE_GROUP_PARTITION_METADATA_VALUE = MessageSchema(
    "ShareGroupPartitionMetadataValue",
    "data",
    None,
    "0",
    "0+",
    (
        Field(
            "topics",
            "[]TopicMetadata",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("topicName", "string", "0+"),
                Field("numPartitions", "int32", "0+"),
                Field(
                    "partitionMetadata",
                    "[]PartitionMetadata",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("racks", "[]string", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = MessageSchema(
    "ShareGroupStatePartitionMetadataValue",
    "data",
    None,
    "0",
    "0+",
    (
        Field(
            "initializedTopics",
            "[]TopicPartitionsInfo",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("topicName", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field(
            "deletingTopics",
            "[]TopicInfo",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("topicName", "string", "0+"),
            ),
        ),
    ),
)

SHARE_SNAPSHOT_VALUE = MessageSchema(
    "ShareSnapshotValue",
    "data",
    None,
    "0",
    "0+",
    (
        Field("snapshotEpoch", "uint16", "0"),
        Field("stateEpoch", "int32", "0+"),
        Field("leaderEpoch", "int32", "0+"),
        Field("startOffset", "int64", "0"),
        Field(
            "stateBatches",
            "[]StateBatch",
            "0",
            fields=(
                Field("firstOffset", "int64", "0"),
                Field("lastOffset", "int64", "0"),
                Field("deliveryState", "int8", "0"),
                Field("deliveryCount", "int16", "0"),
            ),
        ),
    ),
)

SHARE_UPDATE_VALUE = MessageSchema(
    "ShareUpdateValue",
    "data",
    None,
    "0",
    "0+",
    (
        Field("snapshotEpoch", "uint16", "0"),
        Field("leaderEpoch", "int32", "0+"),
        Field("startOffset", "int64", "0"),
        Field(
            "stateBatches",
            "[]StateBatch",
            "0",
            fields=(
                Field("firstOffset", "int64", "0"),
                Field("lastOffset", "int64", "0"),
                Field("deliveryState", "int8", "0"),
                Field("deliveryCount", "int16", "0"),
            ),
        ),
    ),
)
