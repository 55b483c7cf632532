"""Messages of `__share_group_state`.

Written by tools/read_schemas.py from Kafka 4.4.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

SHARE_SNAPSHOT_KEY = MessageSchema(
    "ShareSnapshotKey",
    "coordinator-key",
    0,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("topicId", "uuid", "0"),
        Field("partition", "int32", "0"),
    ),
)

SHARE_SNAPSHOT_VALUE = MessageSchema(
    "ShareSnapshotValue",
    "coordinator-value",
    0,
    "0",
    "0+",
    (
        Field("snapshotEpoch", "int32", "0+"),
        Field("stateEpoch", "int32", "0+"),
        Field("leaderEpoch", "int32", "0+"),
        Field("startOffset", "int64", "0+"),
        Field("deliveryCompleteCount", "int32", "0+", tag=0, tagged="0+", default=-1),
        Field("createTimestamp", "int64", "0+"),
        Field("writeTimestamp", "int64", "0+"),
        Field(
            "stateBatches",
            "[]StateBatch",
            "0+",
            fields=(
                Field("firstOffset", "int64", "0+"),
                Field("lastOffset", "int64", "0+"),
                Field("deliveryState", "int8", "0+"),
                Field("deliveryCount", "int16", "0+"),
            ),
        ),
    ),
)

SHARE_UPDATE_KEY = MessageSchema(
    "ShareUpdateKey",
    "coordinator-key",
    1,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("topicId", "uuid", "0"),
        Field("partition", "int32", "0"),
    ),
)

SHARE_UPDATE_VALUE = MessageSchema(
    "ShareUpdateValue",
    "coordinator-value",
    1,
    "0",
    "0+",
    (
        Field("snapshotEpoch", "int32", "0+"),
        Field("leaderEpoch", "int32", "0+"),
        Field("startOffset", "int64", "0+"),
        Field("deliveryCompleteCount", "int32", "0+", tag=0, tagged="0+", default=-1),
        Field(
            "stateBatches",
            "[]StateBatch",
            "0+",
            fields=(
                Field("firstOffset", "int64", "0+"),
                Field("lastOffset", "int64", "0+"),
                Field("deliveryState", "int8", "0+"),
                Field("deliveryCount", "int16", "0+"),
            ),
        ),
    ),
)

KEYS: dict[int, MessageSchema] = {
    0: SHARE_SNAPSHOT_KEY,
    1: SHARE_UPDATE_KEY,
}

VALUES: dict[int, MessageSchema] = {
    0: SHARE_SNAPSHOT_VALUE,
    1: SHARE_UPDATE_VALUE,
}
