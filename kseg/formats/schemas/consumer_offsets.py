"""Messages of `__consumer_offsets`.

Written by tools/read_schemas.py from Kafka 4.4.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

LEGACY_OFFSET_COMMIT_KEY = MessageSchema(
    "LegacyOffsetCommitKey",
    "coordinator-key",
    0,
    "0",
    "none",
    (
        Field("group", "string", "0"),
        Field("topic", "string", "0"),
        Field("partition", "int32", "0"),
    ),
)

LEGACY_OFFSET_COMMIT_VALUE = MessageSchema(
    "LegacyOffsetCommitValue",
    "coordinator-value",
    0,
    "0",
    "none",
    (
        Field("offset", "int64", "0"),
        Field("metadata", "string", "0"),
        Field("commitTimestamp", "int64", "0"),
    ),
)

OFFSET_COMMIT_KEY = MessageSchema(
    "OffsetCommitKey",
    "coordinator-key",
    1,
    "0",
    "none",
    (
        Field("group", "string", "0"),
        Field("topic", "string", "0"),
        Field("partition", "int32", "0"),
    ),
)

OFFSET_COMMIT_VALUE = MessageSchema(
    "OffsetCommitValue",
    "coordinator-value",
    1,
    "0-4",
    "4+",
    (
        Field("offset", "int64", "0+"),
        Field("leaderEpoch", "int32", "3+", default=-1),
        Field("metadata", "string", "0+"),
        Field("commitTimestamp", "int64", "0+"),
        Field("expireTimestamp", "int64", "1", default=-1),
        Field("topicId", "uuid", "4+", tag=0, tagged="4+"),
    ),
)

GROUP_METADATA_KEY = MessageSchema(
    "GroupMetadataKey", "coordinator-key", 2, "0", "none", (Field("group", "string", "0"),)
)

GROUP_METADATA_VALUE = MessageSchema(
    "GroupMetadataValue",
    "coordinator-value",
    2,
    "0-4",
    "4+",
    (
        Field("protocolType", "string", "0+"),
        Field("generation", "int32", "0+"),
        Field("protocol", "string", "0+", nullable="0+"),
        Field("leader", "string", "0+", nullable="0+"),
        Field("currentStateTimestamp", "int64", "2+", default=-1),
        Field(
            "members",
            "[]MemberMetadata",
            "0+",
            fields=(
                Field("memberId", "string", "0+"),
                Field("groupInstanceId", "string", "3+", nullable="3+", default="null"),
                Field("clientId", "string", "0+"),
                Field("clientHost", "string", "0+"),
                Field("rebalanceTimeout", "int32", "1+", default=-1),
                Field("sessionTimeout", "int32", "0+"),
                Field("subscription", "bytes", "0+"),
                Field("assignment", "bytes", "0+"),
            ),
        ),
    ),
)

CONSUMER_GROUP_METADATA_KEY = MessageSchema(
    "ConsumerGroupMetadataKey", "coordinator-key", 3, "0", "none", (Field("groupId", "string", "0"),)
)

CONSUMER_GROUP_METADATA_VALUE = MessageSchema(
    "ConsumerGroupMetadataValue",
    "coordinator-value",
    3,
    "0",
    "0+",
    (
        Field("epoch", "int32", "0+"),
        Field("metadataHash", "int64", "0+", tag=0, tagged="0+"),
    ),
)

CONSUMER_GROUP_PARTITION_METADATA_KEY = MessageSchema(
    "ConsumerGroupPartitionMetadataKey", "coordinator-key", 4, "0", "none", (Field("groupId", "string", "0"),)
)

CONSUMER_GROUP_PARTITION_METADATA_VALUE = MessageSchema(
    "ConsumerGroupPartitionMetadataValue",
    "coordinator-value",
    4,
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

CONSUMER_GROUP_MEMBER_METADATA_KEY = MessageSchema(
    "ConsumerGroupMemberMetadataKey",
    "coordinator-key",
    5,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

CONSUMER_GROUP_MEMBER_METADATA_VALUE = MessageSchema(
    "ConsumerGroupMemberMetadataValue",
    "coordinator-value",
    5,
    "0",
    "0+",
    (
        Field("instanceId", "string", "0+", nullable="0+"),
        Field("rackId", "string", "0+", nullable="0+"),
        Field("clientId", "string", "0+"),
        Field("clientHost", "string", "0+"),
        Field("subscribedTopicNames", "[]string", "0+"),
        Field("subscribedTopicRegex", "string", "0+", nullable="0+"),
        Field("rebalanceTimeoutMs", "int32", "0+", default=-1),
        Field("serverAssignor", "string", "0+", nullable="0+"),
        Field(
            "classicMemberMetadata",
            "ClassicMemberMetadata",
            "0+",
            nullable="0+",
            tag=0,
            tagged="0+",
            fields=(
                Field("sessionTimeoutMs", "int32", "0+"),
                Field(
                    "supportedProtocols",
                    "[]ClassicProtocol",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("metadata", "bytes", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = MessageSchema(
    "ConsumerGroupTargetAssignmentMetadataKey", "coordinator-key", 6, "0", "none", (Field("groupId", "string", "0"),)
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = MessageSchema(
    "ConsumerGroupTargetAssignmentMetadataValue",
    "coordinator-value",
    6,
    "0",
    "0+",
    (
        Field("assignmentEpoch", "int32", "0+"),
        Field("assignmentTimestamp", "int64", "0+", tag=0, tagged="0+"),
    ),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = MessageSchema(
    "ConsumerGroupTargetAssignmentMemberKey",
    "coordinator-key",
    7,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = MessageSchema(
    "ConsumerGroupTargetAssignmentMemberValue",
    "coordinator-value",
    7,
    "0",
    "0+",
    (
        Field(
            "topicPartitions",
            "[]TopicPartition",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
    ),
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = MessageSchema(
    "ConsumerGroupCurrentMemberAssignmentKey",
    "coordinator-key",
    8,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = MessageSchema(
    "ConsumerGroupCurrentMemberAssignmentValue",
    "coordinator-value",
    8,
    "0",
    "0+",
    (
        Field("memberEpoch", "int32", "0+"),
        Field("previousMemberEpoch", "int32", "0+"),
        Field("state", "int8", "0+"),
        Field(
            "assignedPartitions",
            "[]TopicPartitions",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("partitions", "[]int32", "0+"),
                Field("assignmentEpochs", "[]int32", "0+", nullable="0+", tag=0, tagged="0+"),
            ),
        ),
        Field(
            "partitionsPendingRevocation",
            "[]TopicPartitions",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("partitions", "[]int32", "0+"),
                Field("assignmentEpochs", "[]int32", "0+", nullable="0+", tag=0, tagged="0+"),
            ),
        ),
    ),
)

SHARE_GROUP_MEMBER_METADATA_KEY = MessageSchema(
    "ShareGroupMemberMetadataKey",
    "coordinator-key",
    10,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

SHARE_GROUP_MEMBER_METADATA_VALUE = MessageSchema(
    "ShareGroupMemberMetadataValue",
    "coordinator-value",
    10,
    "0",
    "0+",
    (
        Field("rackId", "string", "0+", nullable="0+"),
        Field("clientId", "string", "0+"),
        Field("clientHost", "string", "0+"),
        Field("subscribedTopicNames", "[]string", "0+"),
    ),
)

SHARE_GROUP_METADATA_KEY = MessageSchema(
    "ShareGroupMetadataKey", "coordinator-key", 11, "0", "none", (Field("groupId", "string", "0"),)
)

SHARE_GROUP_METADATA_VALUE = MessageSchema(
    "ShareGroupMetadataValue",
    "coordinator-value",
    11,
    "0",
    "0+",
    (
        Field("epoch", "int32", "0+"),
        Field("metadataHash", "int64", "0+"),
    ),
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = MessageSchema(
    "ShareGroupTargetAssignmentMetadataKey", "coordinator-key", 12, "0", "none", (Field("groupId", "string", "0"),)
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = MessageSchema(
    "ShareGroupTargetAssignmentMetadataValue",
    "coordinator-value",
    12,
    "0",
    "0+",
    (
        Field("assignmentEpoch", "int32", "0+"),
        Field("assignmentTimestamp", "int64", "0+", tag=0, tagged="0+"),
    ),
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = MessageSchema(
    "ShareGroupTargetAssignmentMemberKey",
    "coordinator-key",
    13,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = MessageSchema(
    "ShareGroupTargetAssignmentMemberValue",
    "coordinator-value",
    13,
    "0",
    "0+",
    (
        Field(
            "topicPartitions",
            "[]TopicPartition",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
    ),
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = MessageSchema(
    "ShareGroupCurrentMemberAssignmentKey",
    "coordinator-key",
    14,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = MessageSchema(
    "ShareGroupCurrentMemberAssignmentValue",
    "coordinator-value",
    14,
    "0",
    "0+",
    (
        Field("memberEpoch", "int32", "0+"),
        Field("previousMemberEpoch", "int32", "0+"),
        Field("state", "int8", "0+"),
        Field(
            "assignedPartitions",
            "[]TopicPartitions",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
    ),
)

SHARE_GROUP_STATE_PARTITION_METADATA_KEY = MessageSchema(
    "ShareGroupStatePartitionMetadataKey", "coordinator-key", 15, "0", "none", (Field("groupId", "string", "0"),)
)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = MessageSchema(
    "ShareGroupStatePartitionMetadataValue",
    "coordinator-value",
    15,
    "0",
    "0+",
    (
        Field(
            "initializingTopics",
            "[]TopicPartitionsInfo",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("topicName", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
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

CONSUMER_GROUP_REGULAR_EXPRESSION_KEY = MessageSchema(
    "ConsumerGroupRegularExpressionKey",
    "coordinator-key",
    16,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("regularExpression", "string", "0"),
    ),
)

CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE = MessageSchema(
    "ConsumerGroupRegularExpressionValue",
    "coordinator-value",
    16,
    "0",
    "0+",
    (
        Field("topics", "[]string", "0+"),
        Field("version", "int64", "0+"),
        Field("timestamp", "int64", "0+"),
    ),
)

STREAMS_GROUP_METADATA_KEY = MessageSchema(
    "StreamsGroupMetadataKey", "coordinator-key", 17, "0", "none", (Field("groupId", "string", "0"),)
)

STREAMS_GROUP_METADATA_VALUE = MessageSchema(
    "StreamsGroupMetadataValue",
    "coordinator-value",
    17,
    "0",
    "0+",
    (
        Field("epoch", "int32", "0+"),
        Field("metadataHash", "int64", "0+"),
        Field("validatedTopologyEpoch", "int32", "0+", tag=0, tagged="0+", default=-1),
        Field(
            "lastAssignmentConfigs",
            "[]LastAssignmentConfig",
            "0+",
            nullable="0+",
            tag=1,
            tagged="0+",
            fields=(
                Field("key", "string", "0+"),
                Field("value", "string", "0+"),
            ),
        ),
        Field("storedDescriptionTopologyEpoch", "int32", "0+", tag=2, tagged="0+", default=-1),
        Field("failedDescriptionTopologyEpoch", "int32", "0+", tag=3, tagged="0+", default=-1),
    ),
)

STREAMS_GROUP_MEMBER_METADATA_KEY = MessageSchema(
    "StreamsGroupMemberMetadataKey",
    "coordinator-key",
    19,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

STREAMS_GROUP_MEMBER_METADATA_VALUE = MessageSchema(
    "StreamsGroupMemberMetadataValue",
    "coordinator-value",
    19,
    "0",
    "0+",
    (
        Field("instanceId", "string", "0+", nullable="0+"),
        Field("rackId", "string", "0+", nullable="0+"),
        Field("clientId", "string", "0+"),
        Field("clientHost", "string", "0+"),
        Field("rebalanceTimeoutMs", "int32", "0+", default=-1),
        Field("topologyEpoch", "int32", "0+"),
        Field("processId", "string", "0+"),
        Field(
            "userEndpoint",
            "Endpoint",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("host", "string", "0+"),
                Field("port", "uint16", "0+"),
            ),
        ),
        Field(
            "clientTags",
            "[]KeyValue",
            "0+",
            fields=(
                Field("key", "string", "0+"),
                Field("value", "string", "0+"),
            ),
        ),
    ),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = MessageSchema(
    "StreamsGroupTargetAssignmentMetadataKey", "coordinator-key", 20, "0", "none", (Field("groupId", "string", "0"),)
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = MessageSchema(
    "StreamsGroupTargetAssignmentMetadataValue",
    "coordinator-value",
    20,
    "0",
    "0+",
    (
        Field("assignmentEpoch", "int32", "0+"),
        Field("assignmentTimestamp", "int64", "0+", tag=0, tagged="0+"),
    ),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = MessageSchema(
    "StreamsGroupTargetAssignmentMemberKey",
    "coordinator-key",
    21,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = MessageSchema(
    "StreamsGroupTargetAssignmentMemberValue",
    "coordinator-value",
    21,
    "0",
    "0+",
    (
        Field(
            "activeTasks",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field(
            "standbyTasks",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field(
            "warmupTasks",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
    ),
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = MessageSchema(
    "StreamsGroupCurrentMemberAssignmentKey",
    "coordinator-key",
    22,
    "0",
    "none",
    (
        Field("groupId", "string", "0"),
        Field("memberId", "string", "0"),
    ),
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = MessageSchema(
    "StreamsGroupCurrentMemberAssignmentValue",
    "coordinator-value",
    22,
    "0",
    "0+",
    (
        Field("memberEpoch", "int32", "0+"),
        Field("previousMemberEpoch", "int32", "0+"),
        Field("state", "int8", "0+"),
        Field(
            "activeTasks",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
                Field("assignmentEpochs", "[]int32", "0+", nullable="0+", tag=0, tagged="0+"),
            ),
        ),
        Field(
            "standbyTasks",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
                Field("assignmentEpochs", "[]int32", "0+", nullable="0+", tag=0, tagged="0+"),
            ),
        ),
        Field(
            "warmupTasks",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
                Field("assignmentEpochs", "[]int32", "0+", nullable="0+", tag=0, tagged="0+"),
            ),
        ),
        Field(
            "activeTasksPendingRevocation",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
                Field("assignmentEpochs", "[]int32", "0+", nullable="0+", tag=0, tagged="0+"),
            ),
        ),
        Field(
            "standbyTasksPendingRevocation",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
                Field("assignmentEpochs", "[]int32", "0+", nullable="0+", tag=0, tagged="0+"),
            ),
        ),
        Field(
            "warmupTasksPendingRevocation",
            "[]TaskIds",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
                Field("assignmentEpochs", "[]int32", "0+", nullable="0+", tag=0, tagged="0+"),
            ),
        ),
    ),
)

STREAMS_GROUP_TOPOLOGY_KEY = MessageSchema(
    "StreamsGroupTopologyKey", "coordinator-key", 23, "0", "none", (Field("groupId", "string", "0"),)
)

STREAMS_GROUP_TOPOLOGY_VALUE = MessageSchema(
    "StreamsGroupTopologyValue",
    "coordinator-value",
    23,
    "0",
    "0+",
    (
        Field("epoch", "int32", "0+"),
        Field(
            "subtopologies",
            "[]Subtopology",
            "0+",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("sourceTopics", "[]string", "0+"),
                Field("sourceTopicRegex", "[]string", "0+"),
                Field(
                    "stateChangelogTopics",
                    "[]TopicInfo",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("partitions", "int32", "0+"),
                        Field("replicationFactor", "int16", "0+"),
                        Field(
                            "topicConfigs",
                            "[]TopicConfig",
                            "0+",
                            fields=(
                                Field("key", "string", "0+"),
                                Field("value", "string", "0+"),
                            ),
                        ),
                    ),
                ),
                Field("repartitionSinkTopics", "[]string", "0+"),
                Field(
                    "repartitionSourceTopics",
                    "[]TopicInfo",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("partitions", "int32", "0+"),
                        Field("replicationFactor", "int16", "0+"),
                        Field(
                            "topicConfigs",
                            "[]TopicConfig",
                            "0+",
                            fields=(
                                Field("key", "string", "0+"),
                                Field("value", "string", "0+"),
                            ),
                        ),
                    ),
                ),
                Field(
                    "copartitionGroups",
                    "[]CopartitionGroup",
                    "0+",
                    fields=(
                        Field("sourceTopics", "[]int16", "0+"),
                        Field("sourceTopicRegex", "[]int16", "0+"),
                        Field("repartitionSourceTopics", "[]int16", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

KEYS: dict[int, MessageSchema] = {
    0: LEGACY_OFFSET_COMMIT_KEY,
    1: OFFSET_COMMIT_KEY,
    2: GROUP_METADATA_KEY,
    3: CONSUMER_GROUP_METADATA_KEY,
    4: CONSUMER_GROUP_PARTITION_METADATA_KEY,
    5: CONSUMER_GROUP_MEMBER_METADATA_KEY,
    6: CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
    7: CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
    8: CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
    10: SHARE_GROUP_MEMBER_METADATA_KEY,
    11: SHARE_GROUP_METADATA_KEY,
    12: SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
    13: SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
    14: SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
    15: SHARE_GROUP_STATE_PARTITION_METADATA_KEY,
    16: CONSUMER_GROUP_REGULAR_EXPRESSION_KEY,
    17: STREAMS_GROUP_METADATA_KEY,
    19: STREAMS_GROUP_MEMBER_METADATA_KEY,
    20: STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
    21: STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
    22: STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
    23: STREAMS_GROUP_TOPOLOGY_KEY,
}

VALUES: dict[int, MessageSchema] = {
    0: LEGACY_OFFSET_COMMIT_VALUE,
    1: OFFSET_COMMIT_VALUE,
    2: GROUP_METADATA_VALUE,
    3: CONSUMER_GROUP_METADATA_VALUE,
    4: CONSUMER_GROUP_PARTITION_METADATA_VALUE,
    5: CONSUMER_GROUP_MEMBER_METADATA_VALUE,
    6: CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    7: CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    8: CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    10: SHARE_GROUP_MEMBER_METADATA_VALUE,
    11: SHARE_GROUP_METADATA_VALUE,
    12: SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    13: SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    14: SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    15: SHARE_GROUP_STATE_PARTITION_METADATA_VALUE,
    16: CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE,
    17: STREAMS_GROUP_METADATA_VALUE,
    19: STREAMS_GROUP_MEMBER_METADATA_VALUE,
    20: STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    21: STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    22: STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    23: STREAMS_GROUP_TOPOLOGY_VALUE,
}
