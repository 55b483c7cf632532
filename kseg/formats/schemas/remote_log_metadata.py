"""Messages of `__remote_log_metadata`.

Written by tools/read_schemas.py from Kafka 4.4.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

REMOTE_LOG_SEGMENT_METADATA_RECORD = MessageSchema(
    "RemoteLogSegmentMetadataRecord",
    "metadata",
    0,
    "0",
    "0+",
    (
        Field(
            "remoteLogSegmentId",
            "RemoteLogSegmentIdEntry",
            "0+",
            fields=(
                Field(
                    "topicIdPartition",
                    "TopicIdPartitionEntry",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("id", "uuid", "0+"),
                        Field("partition", "int32", "0+"),
                    ),
                ),
                Field("id", "uuid", "0+"),
            ),
        ),
        Field("startOffset", "int64", "0+"),
        Field("endOffset", "int64", "0+"),
        Field("brokerId", "int32", "0+"),
        Field("maxTimestampMs", "int64", "0+"),
        Field("eventTimestampMs", "int64", "0+"),
        Field(
            "segmentLeaderEpochs",
            "[]SegmentLeaderEpochEntry",
            "0+",
            fields=(
                Field("leaderEpoch", "int32", "0+"),
                Field("offset", "int64", "0+"),
            ),
        ),
        Field("segmentSizeInBytes", "int32", "0+"),
        Field("customMetadata", "bytes", "0+", nullable="0+", default="null"),
        Field("remoteLogSegmentState", "int8", "0+"),
        Field("txnIndexEmpty", "bool", "0+", tag=0, tagged="0+"),
    ),
)

REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD = MessageSchema(
    "RemoteLogSegmentMetadataUpdateRecord",
    "metadata",
    1,
    "0",
    "0+",
    (
        Field(
            "remoteLogSegmentId",
            "RemoteLogSegmentIdEntry",
            "0+",
            fields=(
                Field(
                    "topicIdPartition",
                    "TopicIdPartitionEntry",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("id", "uuid", "0+"),
                        Field("partition", "int32", "0+"),
                    ),
                ),
                Field("id", "uuid", "0+"),
            ),
        ),
        Field("brokerId", "int32", "0+"),
        Field("eventTimestampMs", "int64", "0+"),
        Field("customMetadata", "bytes", "0+", nullable="0+", default="null"),
        Field("remoteLogSegmentState", "int8", "0+"),
    ),
)

REMOTE_PARTITION_DELETE_METADATA_RECORD = MessageSchema(
    "RemotePartitionDeleteMetadataRecord",
    "metadata",
    2,
    "0",
    "0+",
    (
        Field(
            "topicIdPartition",
            "TopicIdPartitionEntry",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("id", "uuid", "0+"),
                Field("partition", "int32", "0+"),
            ),
        ),
        Field("brokerId", "int32", "0+"),
        Field("eventTimestampMs", "int64", "0+"),
        Field("remotePartitionDeleteState", "int8", "0+"),
    ),
)

REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD = MessageSchema(
    "RemoteLogSegmentMetadataSnapshotRecord",
    "metadata",
    3,
    "0",
    "0+",
    (
        Field("segmentId", "uuid", "0+"),
        Field("startOffset", "int64", "0+"),
        Field("endOffset", "int64", "0+"),
        Field("brokerId", "int32", "0+"),
        Field("maxTimestampMs", "int64", "0+"),
        Field("eventTimestampMs", "int64", "0+"),
        Field(
            "segmentLeaderEpochs",
            "[]SegmentLeaderEpochEntry",
            "0+",
            fields=(
                Field("leaderEpoch", "int32", "0+"),
                Field("offset", "int64", "0+"),
            ),
        ),
        Field("segmentSizeInBytes", "int32", "0+"),
        Field("customMetadata", "bytes", "0+", nullable="0+", default="null"),
        Field("remoteLogSegmentState", "int8", "0+"),
        Field("txnIndexEmpty", "bool", "0+", tag=0, tagged="0+"),
    ),
)

RECORDS: dict[int, MessageSchema] = {
    0: REMOTE_LOG_SEGMENT_METADATA_RECORD,
    1: REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD,
    2: REMOTE_PARTITION_DELETE_METADATA_RECORD,
    3: REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD,
}
