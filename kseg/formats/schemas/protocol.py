"""Messages of requests, responses and their headers.

Written by tools/read_schemas.py from Kafka 4.4.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

REQUEST_HEADER = MessageSchema(
    "RequestHeader",
    "header",
    None,
    "1-2",
    "2+",
    (
        Field("requestApiKey", "int16", "0+"),
        Field("requestApiVersion", "int16", "0+"),
        Field("correlationId", "int32", "0+"),
        Field("clientId", "string", "1+", nullable="1+", flexible="none"),
    ),
)

RESPONSE_HEADER = MessageSchema("ResponseHeader", "header", None, "0-1", "1+", (Field("correlationId", "int32", "0+"),))

PRODUCE_REQUEST = MessageSchema(
    "ProduceRequest",
    "request",
    0,
    "3-13",
    "9+",
    (
        Field("transactionalId", "string", "3+", nullable="3+", default="null"),
        Field("acks", "int16", "0+"),
        Field("timeoutMs", "int32", "0+"),
        Field(
            "topicData",
            "[]TopicProduceData",
            "0+",
            fields=(
                Field("name", "string", "0-12"),
                Field("topicId", "uuid", "13+"),
                Field(
                    "partitionData",
                    "[]PartitionProduceData",
                    "0+",
                    fields=(
                        Field("index", "int32", "0+"),
                        Field("records", "records", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
    ),
)

PRODUCE_RESPONSE = MessageSchema(
    "ProduceResponse",
    "response",
    0,
    "3-13",
    "9+",
    (
        Field(
            "responses",
            "[]TopicProduceResponse",
            "0+",
            fields=(
                Field("name", "string", "0-12"),
                Field("topicId", "uuid", "13+"),
                Field(
                    "partitionResponses",
                    "[]PartitionProduceResponse",
                    "0+",
                    fields=(
                        Field("index", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("baseOffset", "int64", "0+"),
                        Field("logAppendTimeMs", "int64", "2+", default=-1),
                        Field("logStartOffset", "int64", "5+", default=-1),
                        Field(
                            "recordErrors",
                            "[]BatchIndexAndErrorMessage",
                            "8+",
                            fields=(
                                Field("batchIndex", "int32", "8+"),
                                Field("batchIndexErrorMessage", "string", "8+", nullable="8+", default="null"),
                            ),
                        ),
                        Field("errorMessage", "string", "8+", nullable="8+", default="null"),
                        Field(
                            "currentLeader",
                            "LeaderIdAndEpoch",
                            "10+",
                            tag=0,
                            tagged="10+",
                            fields=(
                                Field("leaderId", "int32", "10+", default=-1),
                                Field("leaderEpoch", "int32", "10+", default=-1),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Field("throttleTimeMs", "int32", "1+"),
        Field(
            "nodeEndpoints",
            "[]NodeEndpoint",
            "10+",
            tag=0,
            tagged="10+",
            fields=(
                Field("nodeId", "int32", "10+"),
                Field("host", "string", "10+"),
                Field("port", "int32", "10+"),
                Field("rack", "string", "10+", nullable="10+", default="null"),
            ),
        ),
    ),
)

FETCH_REQUEST = MessageSchema(
    "FetchRequest",
    "request",
    1,
    "4-18",
    "12+",
    (
        Field("clusterId", "string", "12+", nullable="12+", tag=0, tagged="12+", default="null"),
        Field("replicaId", "int32", "0-14", default=-1),
        Field(
            "replicaState",
            "ReplicaState",
            "15+",
            tag=1,
            tagged="15+",
            fields=(
                Field("replicaId", "int32", "15+", default=-1),
                Field("replicaEpoch", "int64", "15+", default=-1),
            ),
        ),
        Field("maxWaitMs", "int32", "0+"),
        Field("minBytes", "int32", "0+"),
        Field("maxBytes", "int32", "3+", default=2147483647),
        Field("isolationLevel", "int8", "4+"),
        Field("sessionId", "int32", "7+"),
        Field("sessionEpoch", "int32", "7+", default=-1),
        Field(
            "topics",
            "[]FetchTopic",
            "0+",
            fields=(
                Field("topic", "string", "0-12"),
                Field("topicId", "uuid", "13+"),
                Field(
                    "partitions",
                    "[]FetchPartition",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("currentLeaderEpoch", "int32", "9+", default=-1),
                        Field("fetchOffset", "int64", "0+"),
                        Field("lastFetchedEpoch", "int32", "12+", default=-1),
                        Field("logStartOffset", "int64", "5+", default=-1),
                        Field("partitionMaxBytes", "int32", "0+"),
                        Field("replicaDirectoryId", "uuid", "17+", tag=0, tagged="17+"),
                        Field("highWatermark", "int64", "18+", tag=1, tagged="18+", default=9223372036854775807),
                    ),
                ),
            ),
        ),
        Field(
            "forgottenTopicsData",
            "[]ForgottenTopic",
            "7+",
            fields=(
                Field("topic", "string", "7-12"),
                Field("topicId", "uuid", "13+"),
                Field("partitions", "[]int32", "7+"),
            ),
        ),
        Field("rackId", "string", "11+"),
    ),
)

FETCH_RESPONSE = MessageSchema(
    "FetchResponse",
    "response",
    1,
    "4-18",
    "12+",
    (
        Field("throttleTimeMs", "int32", "1+"),
        Field("errorCode", "int16", "7+"),
        Field("sessionId", "int32", "7+"),
        Field(
            "responses",
            "[]FetchableTopicResponse",
            "0+",
            fields=(
                Field("topic", "string", "0-12"),
                Field("topicId", "uuid", "13+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("highWatermark", "int64", "0+"),
                        Field("lastStableOffset", "int64", "4+", default=-1),
                        Field("logStartOffset", "int64", "5+", default=-1),
                        Field(
                            "divergingEpoch",
                            "EpochEndOffset",
                            "12+",
                            tag=0,
                            tagged="12+",
                            fields=(
                                Field("epoch", "int32", "12+", default=-1),
                                Field("endOffset", "int64", "12+", default=-1),
                            ),
                        ),
                        Field(
                            "currentLeader",
                            "LeaderIdAndEpoch",
                            "12+",
                            tag=1,
                            tagged="12+",
                            fields=(
                                Field("leaderId", "int32", "12+", default=-1),
                                Field("leaderEpoch", "int32", "12+", default=-1),
                            ),
                        ),
                        Field(
                            "snapshotId",
                            "SnapshotId",
                            "12+",
                            tag=2,
                            tagged="12+",
                            fields=(
                                Field("endOffset", "int64", "0+", default=-1),
                                Field("epoch", "int32", "0+", default=-1),
                            ),
                        ),
                        Field(
                            "abortedTransactions",
                            "[]AbortedTransaction",
                            "4+",
                            nullable="4+",
                            fields=(
                                Field("producerId", "int64", "4+"),
                                Field("firstOffset", "int64", "4+"),
                            ),
                        ),
                        Field("preferredReadReplica", "int32", "11+", default=-1),
                        Field("records", "records", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
        Field(
            "nodeEndpoints",
            "[]NodeEndpoint",
            "16+",
            tag=0,
            tagged="16+",
            fields=(
                Field("nodeId", "int32", "16+"),
                Field("host", "string", "16+"),
                Field("port", "int32", "16+"),
                Field("rack", "string", "16+", nullable="16+", default="null"),
            ),
        ),
    ),
)

LIST_OFFSETS_REQUEST = MessageSchema(
    "ListOffsetsRequest",
    "request",
    2,
    "1-11",
    "6+",
    (
        Field("replicaId", "int32", "0+"),
        Field("isolationLevel", "int8", "2+"),
        Field(
            "topics",
            "[]ListOffsetsTopic",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]ListOffsetsPartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("currentLeaderEpoch", "int32", "4+", default=-1),
                        Field("timestamp", "int64", "0+"),
                    ),
                ),
            ),
        ),
        Field("timeoutMs", "int32", "10+"),
    ),
)

LIST_OFFSETS_RESPONSE = MessageSchema(
    "ListOffsetsResponse",
    "response",
    2,
    "1-11",
    "6+",
    (
        Field("throttleTimeMs", "int32", "2+"),
        Field(
            "topics",
            "[]ListOffsetsTopicResponse",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]ListOffsetsPartitionResponse",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("timestamp", "int64", "1+", default=-1),
                        Field("offset", "int64", "1+", default=-1),
                        Field("leaderEpoch", "int32", "4+", default=-1),
                    ),
                ),
            ),
        ),
    ),
)

METADATA_REQUEST = MessageSchema(
    "MetadataRequest",
    "request",
    3,
    "0-13",
    "9+",
    (
        Field(
            "topics",
            "[]MetadataRequestTopic",
            "0+",
            nullable="1+",
            fields=(
                Field("topicId", "uuid", "10+"),
                Field("name", "string", "0+", nullable="10+"),
            ),
        ),
        Field("allowAutoTopicCreation", "bool", "4+", default=True),
        Field("includeClusterAuthorizedOperations", "bool", "8-10"),
        Field("includeTopicAuthorizedOperations", "bool", "8+"),
    ),
)

METADATA_RESPONSE = MessageSchema(
    "MetadataResponse",
    "response",
    3,
    "0-13",
    "9+",
    (
        Field("throttleTimeMs", "int32", "3+"),
        Field(
            "brokers",
            "[]MetadataResponseBroker",
            "0+",
            fields=(
                Field("nodeId", "int32", "0+"),
                Field("host", "string", "0+"),
                Field("port", "int32", "0+"),
                Field("rack", "string", "1+", nullable="1+", default="null"),
            ),
        ),
        Field("clusterId", "string", "2+", nullable="2+", default="null"),
        Field("controllerId", "int32", "1+", default=-1),
        Field(
            "topics",
            "[]MetadataResponseTopic",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("name", "string", "0+", nullable="12+"),
                Field("topicId", "uuid", "10+"),
                Field("isInternal", "bool", "1+"),
                Field(
                    "partitions",
                    "[]MetadataResponsePartition",
                    "0+",
                    fields=(
                        Field("errorCode", "int16", "0+"),
                        Field("partitionIndex", "int32", "0+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "7+", default=-1),
                        Field("replicaNodes", "[]int32", "0+"),
                        Field("isrNodes", "[]int32", "0+"),
                        Field("offlineReplicas", "[]int32", "5+"),
                    ),
                ),
                Field("topicAuthorizedOperations", "int32", "8+", default=-2147483648),
            ),
        ),
        Field("clusterAuthorizedOperations", "int32", "8-10", default=-2147483648),
        Field("errorCode", "int16", "13+"),
    ),
)

LEADER_AND_ISR_REQUEST = MessageSchema("LeaderAndIsrRequest", "request", 4, "none", "none", ())

LEADER_AND_ISR_RESPONSE = MessageSchema("LeaderAndIsrResponse", "response", 4, "none", "none", ())

STOP_REPLICA_REQUEST = MessageSchema("StopReplicaRequest", "request", 5, "none", "none", ())

STOP_REPLICA_RESPONSE = MessageSchema("StopReplicaResponse", "response", 5, "none", "none", ())

UPDATE_METADATA_REQUEST = MessageSchema("UpdateMetadataRequest", "request", 6, "none", "none", ())

UPDATE_METADATA_RESPONSE = MessageSchema("UpdateMetadataResponse", "response", 6, "none", "none", ())

CONTROLLED_SHUTDOWN_REQUEST = MessageSchema("ControlledShutdownRequest", "request", 7, "none", "none", ())

CONTROLLED_SHUTDOWN_RESPONSE = MessageSchema("ControlledShutdownResponse", "response", 7, "none", "none", ())

OFFSET_COMMIT_REQUEST = MessageSchema(
    "OffsetCommitRequest",
    "request",
    8,
    "2-10",
    "8+",
    (
        Field("groupId", "string", "0+"),
        Field("generationIdOrMemberEpoch", "int32", "1+", default=-1),
        Field("memberId", "string", "1+"),
        Field("groupInstanceId", "string", "7+", nullable="7+", default="null"),
        Field("retentionTimeMs", "int64", "2-4", default=-1),
        Field(
            "topics",
            "[]OffsetCommitRequestTopic",
            "0+",
            fields=(
                Field("name", "string", "0-9"),
                Field("topicId", "uuid", "10+"),
                Field(
                    "partitions",
                    "[]OffsetCommitRequestPartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("committedOffset", "int64", "0+"),
                        Field("committedLeaderEpoch", "int32", "6+", default=-1),
                        Field("committedMetadata", "string", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
    ),
)

OFFSET_COMMIT_RESPONSE = MessageSchema(
    "OffsetCommitResponse",
    "response",
    8,
    "2-10",
    "8+",
    (
        Field("throttleTimeMs", "int32", "3+"),
        Field(
            "topics",
            "[]OffsetCommitResponseTopic",
            "0+",
            fields=(
                Field("name", "string", "0-9"),
                Field("topicId", "uuid", "10+"),
                Field(
                    "partitions",
                    "[]OffsetCommitResponsePartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

OFFSET_FETCH_REQUEST = MessageSchema(
    "OffsetFetchRequest",
    "request",
    9,
    "1-10",
    "6+",
    (
        Field("groupId", "string", "0-7"),
        Field(
            "topics",
            "[]OffsetFetchRequestTopic",
            "0-7",
            nullable="2-7",
            fields=(
                Field("name", "string", "0-7"),
                Field("partitionIndexes", "[]int32", "0-7"),
            ),
        ),
        Field(
            "groups",
            "[]OffsetFetchRequestGroup",
            "8+",
            fields=(
                Field("groupId", "string", "8+"),
                Field("memberId", "string", "9+", nullable="9+", default="null"),
                Field("memberEpoch", "int32", "9+", default=-1),
                Field(
                    "topics",
                    "[]OffsetFetchRequestTopics",
                    "8+",
                    nullable="8+",
                    fields=(
                        Field("name", "string", "8-9"),
                        Field("topicId", "uuid", "10+"),
                        Field("partitionIndexes", "[]int32", "8+"),
                    ),
                ),
            ),
        ),
        Field("requireStable", "bool", "7+"),
    ),
)

OFFSET_FETCH_RESPONSE = MessageSchema(
    "OffsetFetchResponse",
    "response",
    9,
    "1-10",
    "6+",
    (
        Field("throttleTimeMs", "int32", "3+"),
        Field(
            "topics",
            "[]OffsetFetchResponseTopic",
            "0-7",
            fields=(
                Field("name", "string", "0-7"),
                Field(
                    "partitions",
                    "[]OffsetFetchResponsePartition",
                    "0-7",
                    fields=(
                        Field("partitionIndex", "int32", "0-7"),
                        Field("committedOffset", "int64", "0-7"),
                        Field("committedLeaderEpoch", "int32", "5-7", default=-1),
                        Field("metadata", "string", "0-7", nullable="0-7"),
                        Field("errorCode", "int16", "0-7"),
                    ),
                ),
            ),
        ),
        Field("errorCode", "int16", "2-7"),
        Field(
            "groups",
            "[]OffsetFetchResponseGroup",
            "8+",
            fields=(
                Field("groupId", "string", "8+"),
                Field(
                    "topics",
                    "[]OffsetFetchResponseTopics",
                    "8+",
                    fields=(
                        Field("name", "string", "8-9"),
                        Field("topicId", "uuid", "10+"),
                        Field(
                            "partitions",
                            "[]OffsetFetchResponsePartitions",
                            "8+",
                            fields=(
                                Field("partitionIndex", "int32", "8+"),
                                Field("committedOffset", "int64", "8+"),
                                Field("committedLeaderEpoch", "int32", "8+", default=-1),
                                Field("metadata", "string", "8+", nullable="8+"),
                                Field("errorCode", "int16", "8+"),
                            ),
                        ),
                    ),
                ),
                Field("errorCode", "int16", "8+"),
            ),
        ),
    ),
)

FIND_COORDINATOR_REQUEST = MessageSchema(
    "FindCoordinatorRequest",
    "request",
    10,
    "0-6",
    "3+",
    (
        Field("key", "string", "0-3"),
        Field("keyType", "int8", "1+"),
        Field("coordinatorKeys", "[]string", "4+"),
    ),
)

FIND_COORDINATOR_RESPONSE = MessageSchema(
    "FindCoordinatorResponse",
    "response",
    10,
    "0-6",
    "3+",
    (
        Field("throttleTimeMs", "int32", "1+"),
        Field("errorCode", "int16", "0-3"),
        Field("errorMessage", "string", "1-3", nullable="1-3"),
        Field("nodeId", "int32", "0-3"),
        Field("host", "string", "0-3"),
        Field("port", "int32", "0-3"),
        Field(
            "coordinators",
            "[]Coordinator",
            "4+",
            fields=(
                Field("key", "string", "4+"),
                Field("nodeId", "int32", "4+"),
                Field("host", "string", "4+"),
                Field("port", "int32", "4+"),
                Field("errorCode", "int16", "4+"),
                Field("errorMessage", "string", "4+", nullable="4+"),
            ),
        ),
    ),
)

JOIN_GROUP_REQUEST = MessageSchema(
    "JoinGroupRequest",
    "request",
    11,
    "0-9",
    "6+",
    (
        Field("groupId", "string", "0+"),
        Field("sessionTimeoutMs", "int32", "0+"),
        Field("rebalanceTimeoutMs", "int32", "1+", default=-1),
        Field("memberId", "string", "0+"),
        Field("groupInstanceId", "string", "5+", nullable="5+", default="null"),
        Field("protocolType", "string", "0+"),
        Field(
            "protocols",
            "[]JoinGroupRequestProtocol",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("metadata", "bytes", "0+"),
            ),
        ),
        Field("reason", "string", "8+", nullable="8+", default="null"),
    ),
)

JOIN_GROUP_RESPONSE = MessageSchema(
    "JoinGroupResponse",
    "response",
    11,
    "0-9",
    "6+",
    (
        Field("throttleTimeMs", "int32", "2+"),
        Field("errorCode", "int16", "0+"),
        Field("generationId", "int32", "0+", default=-1),
        Field("protocolType", "string", "7+", nullable="7+", default="null"),
        Field("protocolName", "string", "0+", nullable="7+"),
        Field("leader", "string", "0+"),
        Field("skipAssignment", "bool", "9+"),
        Field("memberId", "string", "0+"),
        Field(
            "members",
            "[]JoinGroupResponseMember",
            "0+",
            fields=(
                Field("memberId", "string", "0+"),
                Field("groupInstanceId", "string", "5+", nullable="5+", default="null"),
                Field("metadata", "bytes", "0+"),
            ),
        ),
    ),
)

HEARTBEAT_REQUEST = MessageSchema(
    "HeartbeatRequest",
    "request",
    12,
    "0-4",
    "4+",
    (
        Field("groupId", "string", "0+"),
        Field("generationId", "int32", "0+"),
        Field("memberId", "string", "0+"),
        Field("groupInstanceId", "string", "3+", nullable="3+", default="null"),
    ),
)

HEARTBEAT_RESPONSE = MessageSchema(
    "HeartbeatResponse",
    "response",
    12,
    "0-4",
    "4+",
    (
        Field("throttleTimeMs", "int32", "1+"),
        Field("errorCode", "int16", "0+"),
    ),
)

LEAVE_GROUP_REQUEST = MessageSchema(
    "LeaveGroupRequest",
    "request",
    13,
    "0-5",
    "4+",
    (
        Field("groupId", "string", "0+"),
        Field("memberId", "string", "0-2"),
        Field(
            "members",
            "[]MemberIdentity",
            "3+",
            fields=(
                Field("memberId", "string", "3+"),
                Field("groupInstanceId", "string", "3+", nullable="3+", default="null"),
                Field("reason", "string", "5+", nullable="5+", default="null"),
            ),
        ),
    ),
)

LEAVE_GROUP_RESPONSE = MessageSchema(
    "LeaveGroupResponse",
    "response",
    13,
    "0-5",
    "4+",
    (
        Field("throttleTimeMs", "int32", "1+"),
        Field("errorCode", "int16", "0+"),
        Field(
            "members",
            "[]MemberResponse",
            "3+",
            fields=(
                Field("memberId", "string", "3+"),
                Field("groupInstanceId", "string", "3+", nullable="3+"),
                Field("errorCode", "int16", "3+"),
            ),
        ),
    ),
)

SYNC_GROUP_REQUEST = MessageSchema(
    "SyncGroupRequest",
    "request",
    14,
    "0-5",
    "4+",
    (
        Field("groupId", "string", "0+"),
        Field("generationId", "int32", "0+"),
        Field("memberId", "string", "0+"),
        Field("groupInstanceId", "string", "3+", nullable="3+", default="null"),
        Field("protocolType", "string", "5+", nullable="5+", default="null"),
        Field("protocolName", "string", "5+", nullable="5+", default="null"),
        Field(
            "assignments",
            "[]SyncGroupRequestAssignment",
            "0+",
            fields=(
                Field("memberId", "string", "0+"),
                Field("assignment", "bytes", "0+"),
            ),
        ),
    ),
)

SYNC_GROUP_RESPONSE = MessageSchema(
    "SyncGroupResponse",
    "response",
    14,
    "0-5",
    "4+",
    (
        Field("throttleTimeMs", "int32", "1+"),
        Field("errorCode", "int16", "0+"),
        Field("protocolType", "string", "5+", nullable="5+", default="null"),
        Field("protocolName", "string", "5+", nullable="5+", default="null"),
        Field("assignment", "bytes", "0+"),
    ),
)

DESCRIBE_GROUPS_REQUEST = MessageSchema(
    "DescribeGroupsRequest",
    "request",
    15,
    "0-6",
    "5+",
    (
        Field("groups", "[]string", "0+"),
        Field("includeAuthorizedOperations", "bool", "3+"),
    ),
)

DESCRIBE_GROUPS_RESPONSE = MessageSchema(
    "DescribeGroupsResponse",
    "response",
    15,
    "0-6",
    "5+",
    (
        Field("throttleTimeMs", "int32", "1+"),
        Field(
            "groups",
            "[]DescribedGroup",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "6+", nullable="6+", default="null"),
                Field("groupId", "string", "0+"),
                Field("groupState", "string", "0+"),
                Field("protocolType", "string", "0+"),
                Field("protocolData", "string", "0+"),
                Field(
                    "members",
                    "[]DescribedGroupMember",
                    "0+",
                    fields=(
                        Field("memberId", "string", "0+"),
                        Field("groupInstanceId", "string", "4+", nullable="4+", default="null"),
                        Field("clientId", "string", "0+"),
                        Field("clientHost", "string", "0+"),
                        Field("memberMetadata", "bytes", "0+"),
                        Field("memberAssignment", "bytes", "0+"),
                    ),
                ),
                Field("authorizedOperations", "int32", "3+", default=-2147483648),
            ),
        ),
    ),
)

LIST_GROUPS_REQUEST = MessageSchema(
    "ListGroupsRequest",
    "request",
    16,
    "0-5",
    "3+",
    (
        Field("statesFilter", "[]string", "4+"),
        Field("typesFilter", "[]string", "5+"),
    ),
)

LIST_GROUPS_RESPONSE = MessageSchema(
    "ListGroupsResponse",
    "response",
    16,
    "0-5",
    "3+",
    (
        Field("throttleTimeMs", "int32", "1+"),
        Field("errorCode", "int16", "0+"),
        Field(
            "groups",
            "[]ListedGroup",
            "0+",
            fields=(
                Field("groupId", "string", "0+"),
                Field("protocolType", "string", "0+"),
                Field("groupState", "string", "4+"),
                Field("groupType", "string", "5+"),
            ),
        ),
    ),
)

SASL_HANDSHAKE_REQUEST = MessageSchema(
    "SaslHandshakeRequest", "request", 17, "0-1", "none", (Field("mechanism", "string", "0+"),)
)

SASL_HANDSHAKE_RESPONSE = MessageSchema(
    "SaslHandshakeResponse",
    "response",
    17,
    "0-1",
    "none",
    (
        Field("errorCode", "int16", "0+"),
        Field("mechanisms", "[]string", "0+"),
    ),
)

API_VERSIONS_REQUEST = MessageSchema(
    "ApiVersionsRequest",
    "request",
    18,
    "0-5",
    "3+",
    (
        Field("clientSoftwareName", "string", "3+"),
        Field("clientSoftwareVersion", "string", "3+"),
        Field("clusterId", "string", "5+", nullable="5+", default="null"),
        Field("nodeId", "int32", "5+", default=-1),
    ),
)

API_VERSIONS_RESPONSE = MessageSchema(
    "ApiVersionsResponse",
    "response",
    18,
    "0-5",
    "3+",
    (
        Field("errorCode", "int16", "0+"),
        Field(
            "apiKeys",
            "[]ApiVersion",
            "0+",
            fields=(
                Field("apiKey", "int16", "0+"),
                Field("minVersion", "int16", "0+"),
                Field("maxVersion", "int16", "0+"),
            ),
        ),
        Field("throttleTimeMs", "int32", "1+"),
        Field(
            "supportedFeatures",
            "[]SupportedFeatureKey",
            "3+",
            tag=0,
            tagged="3+",
            fields=(
                Field("name", "string", "3+"),
                Field("minVersion", "int16", "3+"),
                Field("maxVersion", "int16", "3+"),
            ),
        ),
        Field("finalizedFeaturesEpoch", "int64", "3+", tag=1, tagged="3+", default=-1),
        Field(
            "finalizedFeatures",
            "[]FinalizedFeatureKey",
            "3+",
            tag=2,
            tagged="3+",
            fields=(
                Field("name", "string", "3+"),
                Field("maxVersionLevel", "int16", "3+"),
                Field("minVersionLevel", "int16", "3+"),
            ),
        ),
        Field("zkMigrationReady", "bool", "3+", tag=3, tagged="3+"),
    ),
)

CREATE_TOPICS_REQUEST = MessageSchema(
    "CreateTopicsRequest",
    "request",
    19,
    "2-7",
    "5+",
    (
        Field(
            "topics",
            "[]CreatableTopic",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("numPartitions", "int32", "0+"),
                Field("replicationFactor", "int16", "0+"),
                Field(
                    "assignments",
                    "[]CreatableReplicaAssignment",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("brokerIds", "[]int32", "0+"),
                    ),
                ),
                Field(
                    "configs",
                    "[]CreatableTopicConfig",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("value", "string", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
        Field("timeoutMs", "int32", "0+", default=60000),
        Field("validateOnly", "bool", "1+"),
    ),
)

CREATE_TOPICS_RESPONSE = MessageSchema(
    "CreateTopicsResponse",
    "response",
    19,
    "2-7",
    "5+",
    (
        Field("throttleTimeMs", "int32", "2+"),
        Field(
            "topics",
            "[]CreatableTopicResult",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("topicId", "uuid", "7+"),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "1+", nullable="0+"),
                Field("topicConfigErrorCode", "int16", "5+", tag=0, tagged="5+"),
                Field("numPartitions", "int32", "5+", default=-1),
                Field("replicationFactor", "int16", "5+", default=-1),
                Field(
                    "configs",
                    "[]CreatableTopicConfigs",
                    "5+",
                    nullable="5+",
                    fields=(
                        Field("name", "string", "5+"),
                        Field("value", "string", "5+", nullable="5+"),
                        Field("readOnly", "bool", "5+"),
                        Field("configSource", "int8", "5+", default=-1),
                        Field("isSensitive", "bool", "5+"),
                    ),
                ),
            ),
        ),
    ),
)

DELETE_TOPICS_REQUEST = MessageSchema(
    "DeleteTopicsRequest",
    "request",
    20,
    "1-6",
    "4+",
    (
        Field(
            "topics",
            "[]DeleteTopicState",
            "6+",
            fields=(
                Field("name", "string", "6+", nullable="6+", default="null"),
                Field("topicId", "uuid", "6+"),
            ),
        ),
        Field("topicNames", "[]string", "0-5"),
        Field("timeoutMs", "int32", "0+"),
    ),
)

DELETE_TOPICS_RESPONSE = MessageSchema(
    "DeleteTopicsResponse",
    "response",
    20,
    "1-6",
    "4+",
    (
        Field("throttleTimeMs", "int32", "1+"),
        Field(
            "responses",
            "[]DeletableTopicResult",
            "0+",
            fields=(
                Field("name", "string", "0+", nullable="6+"),
                Field("topicId", "uuid", "6+"),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "5+", nullable="5+", default="null"),
            ),
        ),
    ),
)

DELETE_RECORDS_REQUEST = MessageSchema(
    "DeleteRecordsRequest",
    "request",
    21,
    "0-2",
    "2+",
    (
        Field(
            "topics",
            "[]DeleteRecordsTopic",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]DeleteRecordsPartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("offset", "int64", "0+"),
                    ),
                ),
            ),
        ),
        Field("timeoutMs", "int32", "0+"),
    ),
)

DELETE_RECORDS_RESPONSE = MessageSchema(
    "DeleteRecordsResponse",
    "response",
    21,
    "0-2",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "topics",
            "[]DeleteRecordsTopicResult",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]DeleteRecordsPartitionResult",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("lowWatermark", "int64", "0+"),
                        Field("errorCode", "int16", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

INIT_PRODUCER_ID_REQUEST = MessageSchema(
    "InitProducerIdRequest",
    "request",
    22,
    "0-6",
    "2+",
    (
        Field("transactionalId", "string", "0+", nullable="0+"),
        Field("transactionTimeoutMs", "int32", "0+"),
        Field("producerId", "int64", "3+", default=-1),
        Field("producerEpoch", "int16", "3+", default=-1),
        Field("enable2Pc", "bool", "6+"),
        Field("keepPreparedTxn", "bool", "6+"),
    ),
)

INIT_PRODUCER_ID_RESPONSE = MessageSchema(
    "InitProducerIdResponse",
    "response",
    22,
    "0-6",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("producerId", "int64", "0+", default=-1),
        Field("producerEpoch", "int16", "0+"),
        Field("ongoingTxnProducerId", "int64", "6+", default=-1),
        Field("ongoingTxnProducerEpoch", "int16", "6+", default=-1),
    ),
)

OFFSET_FOR_LEADER_EPOCH_REQUEST = MessageSchema(
    "OffsetForLeaderEpochRequest",
    "request",
    23,
    "2-4",
    "4+",
    (
        Field("replicaId", "int32", "3+", default=-2),
        Field(
            "topics",
            "[]OffsetForLeaderTopic",
            "0+",
            fields=(
                Field("topic", "string", "0+"),
                Field(
                    "partitions",
                    "[]OffsetForLeaderPartition",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("currentLeaderEpoch", "int32", "2+", default=-1),
                        Field("leaderEpoch", "int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

OFFSET_FOR_LEADER_EPOCH_RESPONSE = MessageSchema(
    "OffsetForLeaderEpochResponse",
    "response",
    23,
    "2-4",
    "4+",
    (
        Field("throttleTimeMs", "int32", "2+"),
        Field(
            "topics",
            "[]OffsetForLeaderTopicResult",
            "0+",
            fields=(
                Field("topic", "string", "0+"),
                Field(
                    "partitions",
                    "[]EpochEndOffset",
                    "0+",
                    fields=(
                        Field("errorCode", "int16", "0+"),
                        Field("partition", "int32", "0+"),
                        Field("leaderEpoch", "int32", "1+", default=-1),
                        Field("endOffset", "int64", "0+", default=-1),
                    ),
                ),
            ),
        ),
    ),
)

ADD_PARTITIONS_TO_TXN_REQUEST = MessageSchema(
    "AddPartitionsToTxnRequest",
    "request",
    24,
    "0-5",
    "3+",
    (
        Field(
            "transactions",
            "[]AddPartitionsToTxnTransaction",
            "4+",
            fields=(
                Field("transactionalId", "string", "4+"),
                Field("producerId", "int64", "4+"),
                Field("producerEpoch", "int16", "4+"),
                Field("verifyOnly", "bool", "4+"),
                Field(
                    "topics",
                    "[]AddPartitionsToTxnTopic",
                    "4+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    ),
                ),
            ),
        ),
        Field("v3AndBelowTransactionalId", "string", "0-3"),
        Field("v3AndBelowProducerId", "int64", "0-3"),
        Field("v3AndBelowProducerEpoch", "int16", "0-3"),
        Field(
            "v3AndBelowTopics",
            "[]AddPartitionsToTxnTopic",
            "0-3",
            fields=(
                Field("name", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
    ),
)

ADD_PARTITIONS_TO_TXN_RESPONSE = MessageSchema(
    "AddPartitionsToTxnResponse",
    "response",
    24,
    "0-5",
    "3+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "4+"),
        Field(
            "resultsByTransaction",
            "[]AddPartitionsToTxnResult",
            "4+",
            fields=(
                Field("transactionalId", "string", "4+"),
                Field(
                    "topicResults",
                    "[]AddPartitionsToTxnTopicResult",
                    "4+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field(
                            "resultsByPartition",
                            "[]AddPartitionsToTxnPartitionResult",
                            "0+",
                            fields=(
                                Field("partitionIndex", "int32", "0+"),
                                Field("partitionErrorCode", "int16", "0+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Field(
            "resultsByTopicV3AndBelow",
            "[]AddPartitionsToTxnTopicResult",
            "0-3",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "resultsByPartition",
                    "[]AddPartitionsToTxnPartitionResult",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("partitionErrorCode", "int16", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

ADD_OFFSETS_TO_TXN_REQUEST = MessageSchema(
    "AddOffsetsToTxnRequest",
    "request",
    25,
    "0-4",
    "3+",
    (
        Field("transactionalId", "string", "0+"),
        Field("producerId", "int64", "0+"),
        Field("producerEpoch", "int16", "0+"),
        Field("groupId", "string", "0+"),
    ),
)

ADD_OFFSETS_TO_TXN_RESPONSE = MessageSchema(
    "AddOffsetsToTxnResponse",
    "response",
    25,
    "0-4",
    "3+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
    ),
)

END_TXN_REQUEST = MessageSchema(
    "EndTxnRequest",
    "request",
    26,
    "0-5",
    "3+",
    (
        Field("transactionalId", "string", "0+"),
        Field("producerId", "int64", "0+"),
        Field("producerEpoch", "int16", "0+"),
        Field("committed", "bool", "0+"),
    ),
)

END_TXN_RESPONSE = MessageSchema(
    "EndTxnResponse",
    "response",
    26,
    "0-5",
    "3+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("producerId", "int64", "5+", default=-1),
        Field("producerEpoch", "int16", "5+", default=-1),
    ),
)

WRITE_TXN_MARKERS_REQUEST = MessageSchema(
    "WriteTxnMarkersRequest",
    "request",
    27,
    "1-2",
    "1+",
    (
        Field(
            "markers",
            "[]WritableTxnMarker",
            "0+",
            fields=(
                Field("producerId", "int64", "0+"),
                Field("producerEpoch", "int16", "0+"),
                Field("transactionResult", "bool", "0+"),
                Field(
                    "topics",
                    "[]WritableTxnMarkerTopic",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("partitionIndexes", "[]int32", "0+"),
                    ),
                ),
                Field("coordinatorEpoch", "int32", "0+"),
                Field("transactionVersion", "int8", "2+"),
            ),
        ),
    ),
)

WRITE_TXN_MARKERS_RESPONSE = MessageSchema(
    "WriteTxnMarkersResponse",
    "response",
    27,
    "1-2",
    "1+",
    (
        Field(
            "markers",
            "[]WritableTxnMarkerResult",
            "0+",
            fields=(
                Field("producerId", "int64", "0+"),
                Field(
                    "topics",
                    "[]WritableTxnMarkerTopicResult",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field(
                            "partitions",
                            "[]WritableTxnMarkerPartitionResult",
                            "0+",
                            fields=(
                                Field("partitionIndex", "int32", "0+"),
                                Field("errorCode", "int16", "0+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)

TXN_OFFSET_COMMIT_REQUEST = MessageSchema(
    "TxnOffsetCommitRequest",
    "request",
    28,
    "0-6",
    "3+",
    (
        Field("transactionalId", "string", "0+"),
        Field("groupId", "string", "0+"),
        Field("producerId", "int64", "0+"),
        Field("producerEpoch", "int16", "0+"),
        Field("generationIdOrMemberEpoch", "int32", "3+", default=-1),
        Field("memberId", "string", "3+"),
        Field("groupInstanceId", "string", "3+", nullable="3+", default="null"),
        Field(
            "topics",
            "[]TxnOffsetCommitRequestTopic",
            "0+",
            fields=(
                Field("name", "string", "0-5"),
                Field("topicId", "uuid", "6+"),
                Field(
                    "partitions",
                    "[]TxnOffsetCommitRequestPartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("committedOffset", "int64", "0+"),
                        Field("committedLeaderEpoch", "int32", "2+", default=-1),
                        Field("committedMetadata", "string", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
    ),
)

TXN_OFFSET_COMMIT_RESPONSE = MessageSchema(
    "TxnOffsetCommitResponse",
    "response",
    28,
    "0-6",
    "3+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "topics",
            "[]TxnOffsetCommitResponseTopic",
            "0+",
            fields=(
                Field("name", "string", "0-5"),
                Field("topicId", "uuid", "6+"),
                Field(
                    "partitions",
                    "[]TxnOffsetCommitResponsePartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_ACLS_REQUEST = MessageSchema(
    "DescribeAclsRequest",
    "request",
    29,
    "1-3",
    "2+",
    (
        Field("resourceTypeFilter", "int8", "0+"),
        Field("resourceNameFilter", "string", "0+", nullable="0+"),
        Field("patternTypeFilter", "int8", "1+", default=3),
        Field("principalFilter", "string", "0+", nullable="0+"),
        Field("hostFilter", "string", "0+", nullable="0+"),
        Field("operation", "int8", "0+"),
        Field("permissionType", "int8", "0+"),
    ),
)

DESCRIBE_ACLS_RESPONSE = MessageSchema(
    "DescribeAclsResponse",
    "response",
    29,
    "1-3",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
        Field(
            "resources",
            "[]DescribeAclsResource",
            "0+",
            fields=(
                Field("resourceType", "int8", "0+"),
                Field("resourceName", "string", "0+"),
                Field("patternType", "int8", "1+", default=3),
                Field(
                    "acls",
                    "[]AclDescription",
                    "0+",
                    fields=(
                        Field("principal", "string", "0+"),
                        Field("host", "string", "0+"),
                        Field("operation", "int8", "0+"),
                        Field("permissionType", "int8", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

CREATE_ACLS_REQUEST = MessageSchema(
    "CreateAclsRequest",
    "request",
    30,
    "1-3",
    "2+",
    (
        Field(
            "creations",
            "[]AclCreation",
            "0+",
            fields=(
                Field("resourceType", "int8", "0+"),
                Field("resourceName", "string", "0+"),
                Field("resourcePatternType", "int8", "1+", default=3),
                Field("principal", "string", "0+"),
                Field("host", "string", "0+"),
                Field("operation", "int8", "0+"),
                Field("permissionType", "int8", "0+"),
            ),
        ),
    ),
)

CREATE_ACLS_RESPONSE = MessageSchema(
    "CreateAclsResponse",
    "response",
    30,
    "1-3",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "results",
            "[]AclCreationResult",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
            ),
        ),
    ),
)

DELETE_ACLS_REQUEST = MessageSchema(
    "DeleteAclsRequest",
    "request",
    31,
    "1-3",
    "2+",
    (
        Field(
            "filters",
            "[]DeleteAclsFilter",
            "0+",
            fields=(
                Field("resourceTypeFilter", "int8", "0+"),
                Field("resourceNameFilter", "string", "0+", nullable="0+"),
                Field("patternTypeFilter", "int8", "1+", default=3),
                Field("principalFilter", "string", "0+", nullable="0+"),
                Field("hostFilter", "string", "0+", nullable="0+"),
                Field("operation", "int8", "0+"),
                Field("permissionType", "int8", "0+"),
            ),
        ),
    ),
)

DELETE_ACLS_RESPONSE = MessageSchema(
    "DeleteAclsResponse",
    "response",
    31,
    "1-3",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "filterResults",
            "[]DeleteAclsFilterResult",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
                Field(
                    "matchingAcls",
                    "[]DeleteAclsMatchingAcl",
                    "0+",
                    fields=(
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+"),
                        Field("resourceType", "int8", "0+"),
                        Field("resourceName", "string", "0+"),
                        Field("patternType", "int8", "1+", default=3),
                        Field("principal", "string", "0+"),
                        Field("host", "string", "0+"),
                        Field("operation", "int8", "0+"),
                        Field("permissionType", "int8", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_CONFIGS_REQUEST = MessageSchema(
    "DescribeConfigsRequest",
    "request",
    32,
    "1-4",
    "4+",
    (
        Field(
            "resources",
            "[]DescribeConfigsResource",
            "0+",
            fields=(
                Field("resourceType", "int8", "0+"),
                Field("resourceName", "string", "0+"),
                Field("configurationKeys", "[]string", "0+", nullable="0+"),
            ),
        ),
        Field("includeSynonyms", "bool", "1+"),
        Field("includeDocumentation", "bool", "3+"),
    ),
)

DESCRIBE_CONFIGS_RESPONSE = MessageSchema(
    "DescribeConfigsResponse",
    "response",
    32,
    "1-4",
    "4+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "results",
            "[]DescribeConfigsResult",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
                Field("resourceType", "int8", "0+"),
                Field("resourceName", "string", "0+"),
                Field(
                    "configs",
                    "[]DescribeConfigsResourceResult",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("value", "string", "0+", nullable="0+"),
                        Field("readOnly", "bool", "0+"),
                        Field("configSource", "int8", "1+", default=-1),
                        Field("isSensitive", "bool", "0+"),
                        Field(
                            "synonyms",
                            "[]DescribeConfigsSynonym",
                            "1+",
                            fields=(
                                Field("name", "string", "1+"),
                                Field("value", "string", "1+", nullable="0+"),
                                Field("source", "int8", "1+"),
                            ),
                        ),
                        Field("configType", "int8", "3+"),
                        Field("documentation", "string", "3+", nullable="0+"),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_CONFIGS_REQUEST = MessageSchema(
    "AlterConfigsRequest",
    "request",
    33,
    "0-2",
    "2+",
    (
        Field(
            "resources",
            "[]AlterConfigsResource",
            "0+",
            fields=(
                Field("resourceType", "int8", "0+"),
                Field("resourceName", "string", "0+"),
                Field(
                    "configs",
                    "[]AlterableConfig",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("value", "string", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
        Field("validateOnly", "bool", "0+"),
    ),
)

ALTER_CONFIGS_RESPONSE = MessageSchema(
    "AlterConfigsResponse",
    "response",
    33,
    "0-2",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "responses",
            "[]AlterConfigsResourceResponse",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
                Field("resourceType", "int8", "0+"),
                Field("resourceName", "string", "0+"),
            ),
        ),
    ),
)

ALTER_REPLICA_LOG_DIRS_REQUEST = MessageSchema(
    "AlterReplicaLogDirsRequest",
    "request",
    34,
    "1-2",
    "2+",
    (
        Field(
            "dirs",
            "[]AlterReplicaLogDir",
            "0+",
            fields=(
                Field("path", "string", "0+"),
                Field(
                    "topics",
                    "[]AlterReplicaLogDirTopic",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_REPLICA_LOG_DIRS_RESPONSE = MessageSchema(
    "AlterReplicaLogDirsResponse",
    "response",
    34,
    "1-2",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "results",
            "[]AlterReplicaLogDirTopicResult",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]AlterReplicaLogDirPartitionResult",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_LOG_DIRS_REQUEST = MessageSchema(
    "DescribeLogDirsRequest",
    "request",
    35,
    "1-5",
    "2+",
    (
        Field(
            "topics",
            "[]DescribableLogDirTopic",
            "0+",
            nullable="0+",
            fields=(
                Field("topic", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
    ),
)

DESCRIBE_LOG_DIRS_RESPONSE = MessageSchema(
    "DescribeLogDirsResponse",
    "response",
    35,
    "1-5",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "3+"),
        Field(
            "results",
            "[]DescribeLogDirsResult",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("logDir", "string", "0+"),
                Field(
                    "topics",
                    "[]DescribeLogDirsTopic",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field(
                            "partitions",
                            "[]DescribeLogDirsPartition",
                            "0+",
                            fields=(
                                Field("partitionIndex", "int32", "0+"),
                                Field("partitionSize", "int64", "0+"),
                                Field("offsetLag", "int64", "0+"),
                                Field("isFutureKey", "bool", "0+"),
                            ),
                        ),
                    ),
                ),
                Field("totalBytes", "int64", "4+", default=-1),
                Field("usableBytes", "int64", "4+", default=-1),
                Field("isCordoned", "bool", "5+"),
            ),
        ),
    ),
)

SASL_AUTHENTICATE_REQUEST = MessageSchema(
    "SaslAuthenticateRequest", "request", 36, "0-2", "2+", (Field("authBytes", "bytes", "0+"),)
)

SASL_AUTHENTICATE_RESPONSE = MessageSchema(
    "SaslAuthenticateResponse",
    "response",
    36,
    "0-2",
    "2+",
    (
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
        Field("authBytes", "bytes", "0+"),
        Field("sessionLifetimeMs", "int64", "1+"),
    ),
)

CREATE_PARTITIONS_REQUEST = MessageSchema(
    "CreatePartitionsRequest",
    "request",
    37,
    "0-3",
    "2+",
    (
        Field(
            "topics",
            "[]CreatePartitionsTopic",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("count", "int32", "0+"),
                Field(
                    "assignments",
                    "[]CreatePartitionsAssignment",
                    "0+",
                    nullable="0+",
                    fields=(Field("brokerIds", "[]int32", "0+"),),
                ),
            ),
        ),
        Field("timeoutMs", "int32", "0+"),
        Field("validateOnly", "bool", "0+"),
    ),
)

CREATE_PARTITIONS_RESPONSE = MessageSchema(
    "CreatePartitionsResponse",
    "response",
    37,
    "0-3",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "results",
            "[]CreatePartitionsTopicResult",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+", default="null"),
            ),
        ),
    ),
)

CREATE_DELEGATION_TOKEN_REQUEST = MessageSchema(
    "CreateDelegationTokenRequest",
    "request",
    38,
    "1-3",
    "2+",
    (
        Field("ownerPrincipalType", "string", "3+", nullable="3+"),
        Field("ownerPrincipalName", "string", "3+", nullable="3+"),
        Field(
            "renewers",
            "[]CreatableRenewers",
            "0+",
            fields=(
                Field("principalType", "string", "0+"),
                Field("principalName", "string", "0+"),
            ),
        ),
        Field("maxLifetimeMs", "int64", "0+"),
    ),
)

CREATE_DELEGATION_TOKEN_RESPONSE = MessageSchema(
    "CreateDelegationTokenResponse",
    "response",
    38,
    "1-3",
    "2+",
    (
        Field("errorCode", "int16", "0+"),
        Field("principalType", "string", "0+"),
        Field("principalName", "string", "0+"),
        Field("tokenRequesterPrincipalType", "string", "3+"),
        Field("tokenRequesterPrincipalName", "string", "3+"),
        Field("issueTimestampMs", "int64", "0+"),
        Field("expiryTimestampMs", "int64", "0+"),
        Field("maxTimestampMs", "int64", "0+"),
        Field("tokenId", "string", "0+"),
        Field("hmac", "bytes", "0+"),
        Field("throttleTimeMs", "int32", "0+"),
    ),
)

RENEW_DELEGATION_TOKEN_REQUEST = MessageSchema(
    "RenewDelegationTokenRequest",
    "request",
    39,
    "1-2",
    "2+",
    (
        Field("hmac", "bytes", "0+"),
        Field("renewPeriodMs", "int64", "0+"),
    ),
)

RENEW_DELEGATION_TOKEN_RESPONSE = MessageSchema(
    "RenewDelegationTokenResponse",
    "response",
    39,
    "1-2",
    "2+",
    (
        Field("errorCode", "int16", "0+"),
        Field("expiryTimestampMs", "int64", "0+"),
        Field("throttleTimeMs", "int32", "0+"),
    ),
)

EXPIRE_DELEGATION_TOKEN_REQUEST = MessageSchema(
    "ExpireDelegationTokenRequest",
    "request",
    40,
    "1-2",
    "2+",
    (
        Field("hmac", "bytes", "0+"),
        Field("expiryTimePeriodMs", "int64", "0+"),
    ),
)

EXPIRE_DELEGATION_TOKEN_RESPONSE = MessageSchema(
    "ExpireDelegationTokenResponse",
    "response",
    40,
    "1-2",
    "2+",
    (
        Field("errorCode", "int16", "0+"),
        Field("expiryTimestampMs", "int64", "0+"),
        Field("throttleTimeMs", "int32", "0+"),
    ),
)

DESCRIBE_DELEGATION_TOKEN_REQUEST = MessageSchema(
    "DescribeDelegationTokenRequest",
    "request",
    41,
    "1-3",
    "2+",
    (
        Field(
            "owners",
            "[]DescribeDelegationTokenOwner",
            "0+",
            nullable="0+",
            fields=(
                Field("principalType", "string", "0+"),
                Field("principalName", "string", "0+"),
            ),
        ),
    ),
)

DESCRIBE_DELEGATION_TOKEN_RESPONSE = MessageSchema(
    "DescribeDelegationTokenResponse",
    "response",
    41,
    "1-3",
    "2+",
    (
        Field("errorCode", "int16", "0+"),
        Field(
            "tokens",
            "[]DescribedDelegationToken",
            "0+",
            fields=(
                Field("principalType", "string", "0+"),
                Field("principalName", "string", "0+"),
                Field("tokenRequesterPrincipalType", "string", "3+"),
                Field("tokenRequesterPrincipalName", "string", "3+"),
                Field("issueTimestamp", "int64", "0+"),
                Field("expiryTimestamp", "int64", "0+"),
                Field("maxTimestamp", "int64", "0+"),
                Field("tokenId", "string", "0+"),
                Field("hmac", "bytes", "0+"),
                Field(
                    "renewers",
                    "[]DescribedDelegationTokenRenewer",
                    "0+",
                    fields=(
                        Field("principalType", "string", "0+"),
                        Field("principalName", "string", "0+"),
                    ),
                ),
            ),
        ),
        Field("throttleTimeMs", "int32", "0+"),
    ),
)

DELETE_GROUPS_REQUEST = MessageSchema(
    "DeleteGroupsRequest", "request", 42, "0-3", "2+", (Field("groupsNames", "[]string", "0+"),)
)

DELETE_GROUPS_RESPONSE = MessageSchema(
    "DeleteGroupsResponse",
    "response",
    42,
    "0-3",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "results",
            "[]DeletableGroupResult",
            "0+",
            fields=(
                Field("groupId", "string", "0+"),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "3+", nullable="3+", default="null"),
            ),
        ),
    ),
)

ELECT_LEADERS_REQUEST = MessageSchema(
    "ElectLeadersRequest",
    "request",
    43,
    "0-2",
    "2+",
    (
        Field("electionType", "int8", "1+"),
        Field(
            "topicPartitions",
            "[]TopicPartitions",
            "0+",
            nullable="0+",
            fields=(
                Field("topic", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field("timeoutMs", "int32", "0+", default=60000),
    ),
)

ELECT_LEADERS_RESPONSE = MessageSchema(
    "ElectLeadersResponse",
    "response",
    43,
    "0-2",
    "2+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "1+"),
        Field(
            "replicaElectionResults",
            "[]ReplicaElectionResult",
            "0+",
            fields=(
                Field("topic", "string", "0+"),
                Field(
                    "partitionResult",
                    "[]PartitionResult",
                    "0+",
                    fields=(
                        Field("partitionId", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
    ),
)

INCREMENTAL_ALTER_CONFIGS_REQUEST = MessageSchema(
    "IncrementalAlterConfigsRequest",
    "request",
    44,
    "0-1",
    "1+",
    (
        Field(
            "resources",
            "[]AlterConfigsResource",
            "0+",
            fields=(
                Field("resourceType", "int8", "0+"),
                Field("resourceName", "string", "0+"),
                Field(
                    "configs",
                    "[]AlterableConfig",
                    "0+",
                    fields=(
                        Field("name", "string", "0+"),
                        Field("configOperation", "int8", "0+"),
                        Field("value", "string", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
        Field("validateOnly", "bool", "0+"),
    ),
)

INCREMENTAL_ALTER_CONFIGS_RESPONSE = MessageSchema(
    "IncrementalAlterConfigsResponse",
    "response",
    44,
    "0-1",
    "1+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "responses",
            "[]AlterConfigsResourceResponse",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
                Field("resourceType", "int8", "0+"),
                Field("resourceName", "string", "0+"),
            ),
        ),
    ),
)

ALTER_PARTITION_REASSIGNMENTS_REQUEST = MessageSchema(
    "AlterPartitionReassignmentsRequest",
    "request",
    45,
    "0-1",
    "0+",
    (
        Field("timeoutMs", "int32", "0+", default=60000),
        Field("allowReplicationFactorChange", "bool", "1+", default=True),
        Field(
            "topics",
            "[]ReassignableTopic",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]ReassignablePartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("replicas", "[]int32", "0+", nullable="0+", default="null"),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_PARTITION_REASSIGNMENTS_RESPONSE = MessageSchema(
    "AlterPartitionReassignmentsResponse",
    "response",
    45,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("allowReplicationFactorChange", "bool", "1+", default=True),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
        Field(
            "responses",
            "[]ReassignableTopicResponse",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]ReassignablePartitionResponse",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
    ),
)

LIST_PARTITION_REASSIGNMENTS_REQUEST = MessageSchema(
    "ListPartitionReassignmentsRequest",
    "request",
    46,
    "0",
    "0+",
    (
        Field("timeoutMs", "int32", "0+", default=60000),
        Field(
            "topics",
            "[]ListPartitionReassignmentsTopics",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("name", "string", "0+"),
                Field("partitionIndexes", "[]int32", "0+"),
            ),
        ),
    ),
)

LIST_PARTITION_REASSIGNMENTS_RESPONSE = MessageSchema(
    "ListPartitionReassignmentsResponse",
    "response",
    46,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
        Field(
            "topics",
            "[]OngoingTopicReassignment",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]OngoingPartitionReassignment",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("replicas", "[]int32", "0+"),
                        Field("addingReplicas", "[]int32", "0+"),
                        Field("removingReplicas", "[]int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

OFFSET_DELETE_REQUEST = MessageSchema(
    "OffsetDeleteRequest",
    "request",
    47,
    "0",
    "none",
    (
        Field("groupId", "string", "0+"),
        Field(
            "topics",
            "[]OffsetDeleteRequestTopic",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]OffsetDeleteRequestPartition",
                    "0+",
                    fields=(Field("partitionIndex", "int32", "0+"),),
                ),
            ),
        ),
    ),
)

OFFSET_DELETE_RESPONSE = MessageSchema(
    "OffsetDeleteResponse",
    "response",
    47,
    "0",
    "none",
    (
        Field("errorCode", "int16", "0+"),
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "topics",
            "[]OffsetDeleteResponseTopic",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]OffsetDeleteResponsePartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_CLIENT_QUOTAS_REQUEST = MessageSchema(
    "DescribeClientQuotasRequest",
    "request",
    48,
    "0-1",
    "1+",
    (
        Field(
            "components",
            "[]ComponentData",
            "0+",
            fields=(
                Field("entityType", "string", "0+"),
                Field("matchType", "int8", "0+"),
                Field("match", "string", "0+", nullable="0+"),
            ),
        ),
        Field("strict", "bool", "0+"),
    ),
)

DESCRIBE_CLIENT_QUOTAS_RESPONSE = MessageSchema(
    "DescribeClientQuotasResponse",
    "response",
    48,
    "0-1",
    "1+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
        Field(
            "entries",
            "[]EntryData",
            "0+",
            nullable="0+",
            fields=(
                Field(
                    "entity",
                    "[]EntityData",
                    "0+",
                    fields=(
                        Field("entityType", "string", "0+"),
                        Field("entityName", "string", "0+", nullable="0+"),
                    ),
                ),
                Field(
                    "values",
                    "[]ValueData",
                    "0+",
                    fields=(
                        Field("key", "string", "0+"),
                        Field("value", "float64", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_CLIENT_QUOTAS_REQUEST = MessageSchema(
    "AlterClientQuotasRequest",
    "request",
    49,
    "0-1",
    "1+",
    (
        Field(
            "entries",
            "[]EntryData",
            "0+",
            fields=(
                Field(
                    "entity",
                    "[]EntityData",
                    "0+",
                    fields=(
                        Field("entityType", "string", "0+"),
                        Field("entityName", "string", "0+", nullable="0+"),
                    ),
                ),
                Field(
                    "ops",
                    "[]OpData",
                    "0+",
                    fields=(
                        Field("key", "string", "0+"),
                        Field("value", "float64", "0+"),
                        Field("remove", "bool", "0+"),
                    ),
                ),
            ),
        ),
        Field("validateOnly", "bool", "0+"),
    ),
)

ALTER_CLIENT_QUOTAS_RESPONSE = MessageSchema(
    "AlterClientQuotasResponse",
    "response",
    49,
    "0-1",
    "1+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "entries",
            "[]EntryData",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
                Field(
                    "entity",
                    "[]EntityData",
                    "0+",
                    fields=(
                        Field("entityType", "string", "0+"),
                        Field("entityName", "string", "0+", nullable="0+"),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST = MessageSchema(
    "DescribeUserScramCredentialsRequest",
    "request",
    50,
    "0",
    "0+",
    (Field("users", "[]UserName", "0+", nullable="0+", fields=(Field("name", "string", "0+"),)),),
)

DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE = MessageSchema(
    "DescribeUserScramCredentialsResponse",
    "response",
    50,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
        Field(
            "results",
            "[]DescribeUserScramCredentialsResult",
            "0+",
            fields=(
                Field("user", "string", "0+"),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
                Field(
                    "credentialInfos",
                    "[]CredentialInfo",
                    "0+",
                    fields=(
                        Field("mechanism", "int8", "0+"),
                        Field("iterations", "int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_USER_SCRAM_CREDENTIALS_REQUEST = MessageSchema(
    "AlterUserScramCredentialsRequest",
    "request",
    51,
    "0",
    "0+",
    (
        Field(
            "deletions",
            "[]ScramCredentialDeletion",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("mechanism", "int8", "0+"),
            ),
        ),
        Field(
            "upsertions",
            "[]ScramCredentialUpsertion",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("mechanism", "int8", "0+"),
                Field("iterations", "int32", "0+"),
                Field("salt", "bytes", "0+"),
                Field("saltedPassword", "bytes", "0+"),
            ),
        ),
    ),
)

ALTER_USER_SCRAM_CREDENTIALS_RESPONSE = MessageSchema(
    "AlterUserScramCredentialsResponse",
    "response",
    51,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "results",
            "[]AlterUserScramCredentialsResult",
            "0+",
            fields=(
                Field("user", "string", "0+"),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
            ),
        ),
    ),
)

VOTE_REQUEST = MessageSchema(
    "VoteRequest",
    "request",
    52,
    "0-2",
    "0+",
    (
        Field("clusterId", "string", "0+", nullable="0+", default="null"),
        Field("voterId", "int32", "1+", default=-1),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("replicaEpoch", "int32", "0+"),
                        Field("replicaId", "int32", "0+"),
                        Field("replicaDirectoryId", "uuid", "1+"),
                        Field("voterDirectoryId", "uuid", "1+"),
                        Field("lastOffsetEpoch", "int32", "0+"),
                        Field("lastOffset", "int64", "0+"),
                        Field("preVote", "bool", "2+"),
                    ),
                ),
            ),
        ),
    ),
)

VOTE_RESPONSE = MessageSchema(
    "VoteResponse",
    "response",
    52,
    "0-2",
    "0+",
    (
        Field("errorCode", "int16", "0+"),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                        Field("voteGranted", "bool", "0+"),
                    ),
                ),
            ),
        ),
        Field(
            "nodeEndpoints",
            "[]NodeEndpoint",
            "1+",
            tag=0,
            tagged="1+",
            fields=(
                Field("nodeId", "int32", "1+"),
                Field("host", "string", "1+"),
                Field("port", "uint16", "1+"),
            ),
        ),
    ),
)

BEGIN_QUORUM_EPOCH_REQUEST = MessageSchema(
    "BeginQuorumEpochRequest",
    "request",
    53,
    "0-1",
    "1+",
    (
        Field("clusterId", "string", "0+", nullable="0+", default="null"),
        Field("voterId", "int32", "1+", default=-1),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("voterDirectoryId", "uuid", "1+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                    ),
                ),
            ),
        ),
        Field(
            "leaderEndpoints",
            "[]LeaderEndpoint",
            "1+",
            fields=(
                Field("name", "string", "1+"),
                Field("host", "string", "1+"),
                Field("port", "uint16", "1+"),
            ),
        ),
    ),
)

BEGIN_QUORUM_EPOCH_RESPONSE = MessageSchema(
    "BeginQuorumEpochResponse",
    "response",
    53,
    "0-1",
    "1+",
    (
        Field("errorCode", "int16", "0+"),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                    ),
                ),
            ),
        ),
        Field(
            "nodeEndpoints",
            "[]NodeEndpoint",
            "1+",
            tag=0,
            tagged="1+",
            fields=(
                Field("nodeId", "int32", "1+"),
                Field("host", "string", "1+"),
                Field("port", "uint16", "1+"),
            ),
        ),
    ),
)

END_QUORUM_EPOCH_REQUEST = MessageSchema(
    "EndQuorumEpochRequest",
    "request",
    54,
    "0-1",
    "1+",
    (
        Field("clusterId", "string", "0+", nullable="0+", default="null"),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                        Field("preferredSuccessors", "[]int32", "0"),
                        Field(
                            "preferredCandidates",
                            "[]ReplicaInfo",
                            "1+",
                            fields=(
                                Field("candidateId", "int32", "1+"),
                                Field("candidateDirectoryId", "uuid", "1+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Field(
            "leaderEndpoints",
            "[]LeaderEndpoint",
            "1+",
            fields=(
                Field("name", "string", "1+"),
                Field("host", "string", "1+"),
                Field("port", "uint16", "1+"),
            ),
        ),
    ),
)

END_QUORUM_EPOCH_RESPONSE = MessageSchema(
    "EndQuorumEpochResponse",
    "response",
    54,
    "0-1",
    "1+",
    (
        Field("errorCode", "int16", "0+"),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                    ),
                ),
            ),
        ),
        Field(
            "nodeEndpoints",
            "[]NodeEndpoint",
            "1+",
            tag=0,
            tagged="1+",
            fields=(
                Field("nodeId", "int32", "1+"),
                Field("host", "string", "1+"),
                Field("port", "uint16", "1+"),
            ),
        ),
    ),
)

DESCRIBE_QUORUM_REQUEST = MessageSchema(
    "DescribeQuorumRequest",
    "request",
    55,
    "0-2",
    "0+",
    (
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field("partitions", "[]PartitionData", "0+", fields=(Field("partitionIndex", "int32", "0+"),)),
            ),
        ),
    ),
)

DESCRIBE_QUORUM_RESPONSE = MessageSchema(
    "DescribeQuorumResponse",
    "response",
    55,
    "0-2",
    "0+",
    (
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "2+", nullable="2+"),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "2+", nullable="2+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                        Field("highWatermark", "int64", "0+"),
                        Field(
                            "currentVoters",
                            "[]ReplicaState",
                            "0+",
                            fields=(
                                Field("replicaId", "int32", "0+"),
                                Field("replicaDirectoryId", "uuid", "2+"),
                                Field("logEndOffset", "int64", "0+"),
                                Field("lastFetchTimestamp", "int64", "1+", default=-1),
                                Field("lastCaughtUpTimestamp", "int64", "1+", default=-1),
                            ),
                        ),
                        Field(
                            "observers",
                            "[]ReplicaState",
                            "0+",
                            fields=(
                                Field("replicaId", "int32", "0+"),
                                Field("replicaDirectoryId", "uuid", "2+"),
                                Field("logEndOffset", "int64", "0+"),
                                Field("lastFetchTimestamp", "int64", "1+", default=-1),
                                Field("lastCaughtUpTimestamp", "int64", "1+", default=-1),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Field(
            "nodes",
            "[]Node",
            "2+",
            fields=(
                Field("nodeId", "int32", "2+"),
                Field(
                    "listeners",
                    "[]Listener",
                    "2+",
                    fields=(
                        Field("name", "string", "2+"),
                        Field("host", "string", "2+"),
                        Field("port", "uint16", "2+"),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_PARTITION_REQUEST = MessageSchema(
    "AlterPartitionRequest",
    "request",
    56,
    "2-3",
    "0+",
    (
        Field("brokerId", "int32", "0+"),
        Field("brokerEpoch", "int64", "0+", default=-1),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicId", "uuid", "2+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                        Field("newIsr", "[]int32", "0-2"),
                        Field(
                            "newIsrWithEpochs",
                            "[]BrokerState",
                            "3+",
                            fields=(
                                Field("brokerId", "int32", "3+"),
                                Field("brokerEpoch", "int64", "3+", default=-1),
                            ),
                        ),
                        Field("leaderRecoveryState", "int8", "1+"),
                        Field("partitionEpoch", "int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_PARTITION_RESPONSE = MessageSchema(
    "AlterPartitionResponse",
    "response",
    56,
    "2-3",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field(
            "topics",
            "[]TopicData",
            "0+",
            fields=(
                Field("topicId", "uuid", "2+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                        Field("isr", "[]int32", "0+"),
                        Field("leaderRecoveryState", "int8", "1+"),
                        Field("partitionEpoch", "int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

UPDATE_FEATURES_REQUEST = MessageSchema(
    "UpdateFeaturesRequest",
    "request",
    57,
    "0-2",
    "0+",
    (
        Field("timeoutMs", "int32", "0+", default=60000),
        Field(
            "featureUpdates",
            "[]FeatureUpdateKey",
            "0+",
            fields=(
                Field("feature", "string", "0+"),
                Field("maxVersionLevel", "int16", "0+"),
                Field("allowDowngrade", "bool", "0"),
                Field("upgradeType", "int8", "1+", default=1),
            ),
        ),
        Field("validateOnly", "bool", "1+"),
    ),
)

UPDATE_FEATURES_RESPONSE = MessageSchema(
    "UpdateFeaturesResponse",
    "response",
    57,
    "0-2",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
        Field(
            "results",
            "[]UpdatableFeatureResult",
            "0-1",
            fields=(
                Field("feature", "string", "0+"),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+"),
            ),
        ),
    ),
)

ENVELOPE_REQUEST = MessageSchema(
    "EnvelopeRequest",
    "request",
    58,
    "0",
    "0+",
    (
        Field("requestData", "bytes", "0+"),
        Field("requestPrincipal", "bytes", "0+", nullable="0+"),
        Field("clientHostAddress", "bytes", "0+"),
    ),
)

ENVELOPE_RESPONSE = MessageSchema(
    "EnvelopeResponse",
    "response",
    58,
    "0",
    "0+",
    (
        Field("responseData", "bytes", "0+", nullable="0+", default="null"),
        Field("errorCode", "int16", "0+"),
    ),
)

FETCH_SNAPSHOT_REQUEST = MessageSchema(
    "FetchSnapshotRequest",
    "request",
    59,
    "0-1",
    "0+",
    (
        Field("clusterId", "string", "0+", nullable="0+", tag=0, tagged="0+", default="null"),
        Field("replicaId", "int32", "0+", default=-1),
        Field("maxBytes", "int32", "0+", default=2147483647),
        Field(
            "topics",
            "[]TopicSnapshot",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionSnapshot",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("currentLeaderEpoch", "int32", "0+"),
                        Field(
                            "snapshotId",
                            "SnapshotId",
                            "0+",
                            fields=(
                                Field("endOffset", "int64", "0+"),
                                Field("epoch", "int32", "0+"),
                            ),
                        ),
                        Field("position", "int64", "0+"),
                        Field("replicaDirectoryId", "uuid", "1+", tag=0, tagged="1+"),
                    ),
                ),
            ),
        ),
    ),
)

FETCH_SNAPSHOT_RESPONSE = MessageSchema(
    "FetchSnapshotResponse",
    "response",
    59,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field(
            "topics",
            "[]TopicSnapshot",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionSnapshot",
                    "0+",
                    fields=(
                        Field("index", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field(
                            "snapshotId",
                            "SnapshotId",
                            "0+",
                            fields=(
                                Field("endOffset", "int64", "0+"),
                                Field("epoch", "int32", "0+"),
                            ),
                        ),
                        Field(
                            "currentLeader",
                            "LeaderIdAndEpoch",
                            "0+",
                            tag=0,
                            tagged="0+",
                            fields=(
                                Field("leaderId", "int32", "0+"),
                                Field("leaderEpoch", "int32", "0+"),
                            ),
                        ),
                        Field("size", "int64", "0+"),
                        Field("position", "int64", "0+"),
                        Field("unalignedRecords", "records", "0+"),
                    ),
                ),
            ),
        ),
        Field(
            "nodeEndpoints",
            "[]NodeEndpoint",
            "1+",
            tag=0,
            tagged="1+",
            fields=(
                Field("nodeId", "int32", "1+"),
                Field("host", "string", "1+"),
                Field("port", "uint16", "1+"),
            ),
        ),
    ),
)

DESCRIBE_CLUSTER_REQUEST = MessageSchema(
    "DescribeClusterRequest",
    "request",
    60,
    "0-2",
    "0+",
    (
        Field("includeClusterAuthorizedOperations", "bool", "0+"),
        Field("endpointType", "int8", "1+", default=1),
        Field("includeFencedBrokers", "bool", "2+"),
    ),
)

DESCRIBE_CLUSTER_RESPONSE = MessageSchema(
    "DescribeClusterResponse",
    "response",
    60,
    "0-2",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
        Field("endpointType", "int8", "1+", default=1),
        Field("clusterId", "string", "0+"),
        Field("controllerId", "int32", "0+", default=-1),
        Field(
            "brokers",
            "[]DescribeClusterBroker",
            "0+",
            fields=(
                Field("brokerId", "int32", "0+"),
                Field("host", "string", "0+"),
                Field("port", "int32", "0+"),
                Field("rack", "string", "0+", nullable="0+", default="null"),
                Field("isFenced", "bool", "2+"),
            ),
        ),
        Field("clusterAuthorizedOperations", "int32", "0+", default=-2147483648),
    ),
)

DESCRIBE_PRODUCERS_REQUEST = MessageSchema(
    "DescribeProducersRequest",
    "request",
    61,
    "0",
    "0+",
    (
        Field(
            "topics",
            "[]TopicRequest",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("partitionIndexes", "[]int32", "0+"),
            ),
        ),
    ),
)

DESCRIBE_PRODUCERS_RESPONSE = MessageSchema(
    "DescribeProducersResponse",
    "response",
    61,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "topics",
            "[]TopicResponse",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field(
                    "partitions",
                    "[]PartitionResponse",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                        Field(
                            "activeProducers",
                            "[]ProducerState",
                            "0+",
                            fields=(
                                Field("producerId", "int64", "0+"),
                                Field("producerEpoch", "int32", "0+"),
                                Field("lastSequence", "int32", "0+", default=-1),
                                Field("lastTimestamp", "int64", "0+", default=-1),
                                Field("coordinatorEpoch", "int32", "0+"),
                                Field("currentTxnStartOffset", "int64", "0+", default=-1),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)

BROKER_REGISTRATION_REQUEST = MessageSchema(
    "BrokerRegistrationRequest",
    "request",
    62,
    "0-4",
    "0+",
    (
        Field("brokerId", "int32", "0+"),
        Field("clusterId", "string", "0+"),
        Field("incarnationId", "uuid", "0+"),
        Field(
            "listeners",
            "[]Listener",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("host", "string", "0+"),
                Field("port", "uint16", "0+"),
                Field("securityProtocol", "int16", "0+"),
            ),
        ),
        Field(
            "features",
            "[]Feature",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("minSupportedVersion", "int16", "0+"),
                Field("maxSupportedVersion", "int16", "0+"),
            ),
        ),
        Field("rack", "string", "0+", nullable="0+"),
        Field("isMigratingZkBroker", "bool", "1+"),
        Field("logDirs", "[]uuid", "2+"),
        Field("previousBrokerEpoch", "int64", "3+", default=-1),
    ),
)

BROKER_REGISTRATION_RESPONSE = MessageSchema(
    "BrokerRegistrationResponse",
    "response",
    62,
    "0-4",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("brokerEpoch", "int64", "0+", default=-1),
    ),
)

BROKER_HEARTBEAT_REQUEST = MessageSchema(
    "BrokerHeartbeatRequest",
    "request",
    63,
    "0-2",
    "0+",
    (
        Field("brokerId", "int32", "0+"),
        Field("brokerEpoch", "int64", "0+", default=-1),
        Field("currentMetadataOffset", "int64", "0+"),
        Field("wantFence", "bool", "0+"),
        Field("wantShutDown", "bool", "0+"),
        Field("offlineLogDirs", "[]uuid", "1+", tag=0, tagged="1+"),
        Field("cordonedLogDirs", "[]uuid", "2+", nullable="2+", tag=1, tagged="2+", default="null"),
    ),
)

BROKER_HEARTBEAT_RESPONSE = MessageSchema(
    "BrokerHeartbeatResponse",
    "response",
    63,
    "0-2",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("isCaughtUp", "bool", "0+"),
        Field("isFenced", "bool", "0+", default=True),
        Field("shouldShutDown", "bool", "0+"),
    ),
)

UNREGISTER_BROKER_REQUEST = MessageSchema(
    "UnregisterBrokerRequest", "request", 64, "0", "0+", (Field("brokerId", "int32", "0+"),)
)

UNREGISTER_BROKER_RESPONSE = MessageSchema(
    "UnregisterBrokerResponse",
    "response",
    64,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
    ),
)

DESCRIBE_TRANSACTIONS_REQUEST = MessageSchema(
    "DescribeTransactionsRequest", "request", 65, "0", "0+", (Field("transactionalIds", "[]string", "0+"),)
)

DESCRIBE_TRANSACTIONS_RESPONSE = MessageSchema(
    "DescribeTransactionsResponse",
    "response",
    65,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "transactionStates",
            "[]TransactionState",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("transactionalId", "string", "0+"),
                Field("transactionState", "string", "0+"),
                Field("transactionTimeoutMs", "int32", "0+"),
                Field("transactionStartTimeMs", "int64", "0+"),
                Field("producerId", "int64", "0+"),
                Field("producerEpoch", "int16", "0+"),
                Field(
                    "topics",
                    "[]TopicData",
                    "0+",
                    fields=(
                        Field("topic", "string", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

LIST_TRANSACTIONS_REQUEST = MessageSchema(
    "ListTransactionsRequest",
    "request",
    66,
    "0-2",
    "0+",
    (
        Field("stateFilters", "[]string", "0+"),
        Field("producerIdFilters", "[]int64", "0+"),
        Field("durationFilter", "int64", "1+", default=-1),
        Field("transactionalIdPattern", "string", "2+", nullable="2+", default="null"),
    ),
)

LIST_TRANSACTIONS_RESPONSE = MessageSchema(
    "ListTransactionsResponse",
    "response",
    66,
    "0-2",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("unknownStateFilters", "[]string", "0+"),
        Field(
            "transactionStates",
            "[]TransactionState",
            "0+",
            fields=(
                Field("transactionalId", "string", "0+"),
                Field("producerId", "int64", "0+"),
                Field("transactionState", "string", "0+"),
            ),
        ),
    ),
)

ALLOCATE_PRODUCER_IDS_REQUEST = MessageSchema(
    "AllocateProducerIdsRequest",
    "request",
    67,
    "0",
    "0+",
    (
        Field("brokerId", "int32", "0+"),
        Field("brokerEpoch", "int64", "0+", default=-1),
    ),
)

ALLOCATE_PRODUCER_IDS_RESPONSE = MessageSchema(
    "AllocateProducerIdsResponse",
    "response",
    67,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("producerIdStart", "int64", "0+"),
        Field("producerIdLen", "int32", "0+"),
    ),
)

CONSUMER_GROUP_HEARTBEAT_REQUEST = MessageSchema(
    "ConsumerGroupHeartbeatRequest",
    "request",
    68,
    "0-1",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field("memberId", "string", "0+"),
        Field("memberEpoch", "int32", "0+"),
        Field("instanceId", "string", "0+", nullable="0+", default="null"),
        Field("rackId", "string", "0+", nullable="0+", default="null"),
        Field("rebalanceTimeoutMs", "int32", "0+", default=-1),
        Field("subscribedTopicNames", "[]string", "0+", nullable="0+", default="null"),
        Field("subscribedTopicRegex", "string", "1+", nullable="1+", default="null"),
        Field("serverAssignor", "string", "0+", nullable="0+", default="null"),
        Field(
            "topicPartitions",
            "[]TopicPartitions",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
    ),
)

CONSUMER_GROUP_HEARTBEAT_RESPONSE = MessageSchema(
    "ConsumerGroupHeartbeatResponse",
    "response",
    68,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
        Field("memberId", "string", "0+", nullable="0+", default="null"),
        Field("memberEpoch", "int32", "0+"),
        Field("heartbeatIntervalMs", "int32", "0+"),
        Field(
            "assignment",
            "Assignment",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field(
                    "topicPartitions",
                    "[]TopicPartitions",
                    "0+",
                    fields=(
                        Field("topicId", "uuid", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

CONSUMER_GROUP_DESCRIBE_REQUEST = MessageSchema(
    "ConsumerGroupDescribeRequest",
    "request",
    69,
    "0-1",
    "0+",
    (
        Field("groupIds", "[]string", "0+"),
        Field("includeAuthorizedOperations", "bool", "0+"),
    ),
)

CONSUMER_GROUP_DESCRIBE_RESPONSE = MessageSchema(
    "ConsumerGroupDescribeResponse",
    "response",
    69,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "groups",
            "[]DescribedGroup",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                Field("groupId", "string", "0+"),
                Field("groupState", "string", "0+"),
                Field("groupEpoch", "int32", "0+"),
                Field("assignmentEpoch", "int32", "0+"),
                Field("assignorName", "string", "0+"),
                Field(
                    "members",
                    "[]Member",
                    "0+",
                    fields=(
                        Field("memberId", "string", "0+"),
                        Field("instanceId", "string", "0+", nullable="0+", default="null"),
                        Field("rackId", "string", "0+", nullable="0+", default="null"),
                        Field("memberEpoch", "int32", "0+"),
                        Field("clientId", "string", "0+"),
                        Field("clientHost", "string", "0+"),
                        Field("subscribedTopicNames", "[]string", "0+"),
                        Field("subscribedTopicRegex", "string", "0+", nullable="0+", default="null"),
                        Field(
                            "assignment",
                            "Assignment",
                            "0+",
                            fields=(
                                Field(
                                    "topicPartitions",
                                    "[]TopicPartitions",
                                    "0+",
                                    fields=(
                                        Field("topicId", "uuid", "0+"),
                                        Field("topicName", "string", "0+"),
                                        Field("partitions", "[]int32", "0+"),
                                    ),
                                ),
                            ),
                        ),
                        Field(
                            "targetAssignment",
                            "Assignment",
                            "0+",
                            fields=(
                                Field(
                                    "topicPartitions",
                                    "[]TopicPartitions",
                                    "0+",
                                    fields=(
                                        Field("topicId", "uuid", "0+"),
                                        Field("topicName", "string", "0+"),
                                        Field("partitions", "[]int32", "0+"),
                                    ),
                                ),
                            ),
                        ),
                        Field("memberType", "int8", "1+", default=-1),
                    ),
                ),
                Field("authorizedOperations", "int32", "0+", default=-2147483648),
            ),
        ),
    ),
)

CONTROLLER_REGISTRATION_REQUEST = MessageSchema(
    "ControllerRegistrationRequest",
    "request",
    70,
    "0",
    "0+",
    (
        Field("controllerId", "int32", "0+"),
        Field("incarnationId", "uuid", "0+"),
        Field("zkMigrationReady", "bool", "0+"),
        Field(
            "listeners",
            "[]Listener",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("host", "string", "0+"),
                Field("port", "uint16", "0+"),
                Field("securityProtocol", "int16", "0+"),
            ),
        ),
        Field(
            "features",
            "[]Feature",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("minSupportedVersion", "int16", "0+"),
                Field("maxSupportedVersion", "int16", "0+"),
            ),
        ),
    ),
)

CONTROLLER_REGISTRATION_RESPONSE = MessageSchema(
    "ControllerRegistrationResponse",
    "response",
    70,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
    ),
)

GET_TELEMETRY_SUBSCRIPTIONS_REQUEST = MessageSchema(
    "GetTelemetrySubscriptionsRequest", "request", 71, "0", "0+", (Field("clientInstanceId", "uuid", "0+"),)
)

GET_TELEMETRY_SUBSCRIPTIONS_RESPONSE = MessageSchema(
    "GetTelemetrySubscriptionsResponse",
    "response",
    71,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("clientInstanceId", "uuid", "0+"),
        Field("subscriptionId", "int32", "0+"),
        Field("acceptedCompressionTypes", "[]int8", "0+"),
        Field("pushIntervalMs", "int32", "0+"),
        Field("telemetryMaxBytes", "int32", "0+"),
        Field("deltaTemporality", "bool", "0+"),
        Field("requestedMetrics", "[]string", "0+"),
    ),
)

PUSH_TELEMETRY_REQUEST = MessageSchema(
    "PushTelemetryRequest",
    "request",
    72,
    "0",
    "0+",
    (
        Field("clientInstanceId", "uuid", "0+"),
        Field("subscriptionId", "int32", "0+"),
        Field("terminating", "bool", "0+"),
        Field("compressionType", "int8", "0+"),
        Field("metrics", "bytes", "0+"),
    ),
)

PUSH_TELEMETRY_RESPONSE = MessageSchema(
    "PushTelemetryResponse",
    "response",
    72,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
    ),
)

ASSIGN_REPLICAS_TO_DIRS_REQUEST = MessageSchema(
    "AssignReplicasToDirsRequest",
    "request",
    73,
    "0",
    "0+",
    (
        Field("brokerId", "int32", "0+"),
        Field("brokerEpoch", "int64", "0+", default=-1),
        Field(
            "directories",
            "[]DirectoryData",
            "0+",
            fields=(
                Field("id", "uuid", "0+"),
                Field(
                    "topics",
                    "[]TopicData",
                    "0+",
                    fields=(
                        Field("topicId", "uuid", "0+"),
                        Field("partitions", "[]PartitionData", "0+", fields=(Field("partitionIndex", "int32", "0+"),)),
                    ),
                ),
            ),
        ),
    ),
)

ASSIGN_REPLICAS_TO_DIRS_RESPONSE = MessageSchema(
    "AssignReplicasToDirsResponse",
    "response",
    73,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field(
            "directories",
            "[]DirectoryData",
            "0+",
            fields=(
                Field("id", "uuid", "0+"),
                Field(
                    "topics",
                    "[]TopicData",
                    "0+",
                    fields=(
                        Field("topicId", "uuid", "0+"),
                        Field(
                            "partitions",
                            "[]PartitionData",
                            "0+",
                            fields=(
                                Field("partitionIndex", "int32", "0+"),
                                Field("errorCode", "int16", "0+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)

LIST_CONFIG_RESOURCES_REQUEST = MessageSchema(
    "ListConfigResourcesRequest", "request", 74, "0-1", "0+", (Field("resourceTypes", "[]int8", "1+"),)
)

LIST_CONFIG_RESOURCES_RESPONSE = MessageSchema(
    "ListConfigResourcesResponse",
    "response",
    74,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field(
            "configResources",
            "[]ConfigResource",
            "0+",
            fields=(
                Field("resourceName", "string", "0+"),
                Field("resourceType", "int8", "1+", default=16),
            ),
        ),
    ),
)

DESCRIBE_TOPIC_PARTITIONS_REQUEST = MessageSchema(
    "DescribeTopicPartitionsRequest",
    "request",
    75,
    "0",
    "0+",
    (
        Field("topics", "[]TopicRequest", "0+", fields=(Field("name", "string", "0+"),)),
        Field("responsePartitionLimit", "int32", "0+", default=2000),
        Field(
            "cursor",
            "Cursor",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("topicName", "string", "0+"),
                Field("partitionIndex", "int32", "0+"),
            ),
        ),
    ),
)

DESCRIBE_TOPIC_PARTITIONS_RESPONSE = MessageSchema(
    "DescribeTopicPartitionsResponse",
    "response",
    75,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "topics",
            "[]DescribeTopicPartitionsResponseTopic",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("name", "string", "0+", nullable="0+"),
                Field("topicId", "uuid", "0+"),
                Field("isInternal", "bool", "0+"),
                Field(
                    "partitions",
                    "[]DescribeTopicPartitionsResponsePartition",
                    "0+",
                    fields=(
                        Field("errorCode", "int16", "0+"),
                        Field("partitionIndex", "int32", "0+"),
                        Field("leaderId", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+", default=-1),
                        Field("replicaNodes", "[]int32", "0+"),
                        Field("isrNodes", "[]int32", "0+"),
                        Field("eligibleLeaderReplicas", "[]int32", "0+", nullable="0+", default="null"),
                        Field("lastKnownElr", "[]int32", "0+", nullable="0+", default="null"),
                        Field("offlineReplicas", "[]int32", "0+"),
                    ),
                ),
                Field("topicAuthorizedOperations", "int32", "0+", default=-2147483648),
            ),
        ),
        Field(
            "nextCursor",
            "Cursor",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("topicName", "string", "0+"),
                Field("partitionIndex", "int32", "0+"),
            ),
        ),
    ),
)

SHARE_GROUP_HEARTBEAT_REQUEST = MessageSchema(
    "ShareGroupHeartbeatRequest",
    "request",
    76,
    "1",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field("memberId", "string", "0+"),
        Field("memberEpoch", "int32", "0+"),
        Field("rackId", "string", "0+", nullable="0+", default="null"),
        Field("subscribedTopicNames", "[]string", "0+", nullable="0+", default="null"),
    ),
)

SHARE_GROUP_HEARTBEAT_RESPONSE = MessageSchema(
    "ShareGroupHeartbeatResponse",
    "response",
    76,
    "1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
        Field("memberId", "string", "0+", nullable="0+", default="null"),
        Field("memberEpoch", "int32", "0+"),
        Field("heartbeatIntervalMs", "int32", "0+"),
        Field(
            "assignment",
            "Assignment",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field(
                    "topicPartitions",
                    "[]TopicPartitions",
                    "0+",
                    fields=(
                        Field("topicId", "uuid", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

SHARE_GROUP_DESCRIBE_REQUEST = MessageSchema(
    "ShareGroupDescribeRequest",
    "request",
    77,
    "1",
    "0+",
    (
        Field("groupIds", "[]string", "0+"),
        Field("includeAuthorizedOperations", "bool", "0+"),
    ),
)

SHARE_GROUP_DESCRIBE_RESPONSE = MessageSchema(
    "ShareGroupDescribeResponse",
    "response",
    77,
    "1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "groups",
            "[]DescribedGroup",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                Field("groupId", "string", "0+"),
                Field("groupState", "string", "0+"),
                Field("groupEpoch", "int32", "0+"),
                Field("assignmentEpoch", "int32", "0+"),
                Field("assignorName", "string", "0+"),
                Field(
                    "members",
                    "[]Member",
                    "0+",
                    fields=(
                        Field("memberId", "string", "0+"),
                        Field("rackId", "string", "0+", nullable="0+", default="null"),
                        Field("memberEpoch", "int32", "0+"),
                        Field("clientId", "string", "0+"),
                        Field("clientHost", "string", "0+"),
                        Field("subscribedTopicNames", "[]string", "0+"),
                        Field(
                            "assignment",
                            "Assignment",
                            "0+",
                            fields=(
                                Field(
                                    "topicPartitions",
                                    "[]TopicPartitions",
                                    "0+",
                                    fields=(
                                        Field("topicId", "uuid", "0+"),
                                        Field("topicName", "string", "0+"),
                                        Field("partitions", "[]int32", "0+"),
                                    ),
                                ),
                            ),
                        ),
                    ),
                ),
                Field("authorizedOperations", "int32", "0+", default=-2147483648),
            ),
        ),
    ),
)

SHARE_FETCH_REQUEST = MessageSchema(
    "ShareFetchRequest",
    "request",
    78,
    "1-2",
    "0+",
    (
        Field("groupId", "string", "0+", nullable="0+", default="null"),
        Field("memberId", "string", "0+", nullable="0+"),
        Field("shareSessionEpoch", "int32", "0+"),
        Field("maxWaitMs", "int32", "0+"),
        Field("minBytes", "int32", "0+"),
        Field("maxBytes", "int32", "0+", default=2147483647),
        Field("maxRecords", "int32", "1+"),
        Field("batchSize", "int32", "1+"),
        Field("shareAcquireMode", "int8", "2+"),
        Field("isRenewAck", "bool", "2+"),
        Field(
            "topics",
            "[]FetchTopic",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]FetchPartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("partitionMaxBytes", "int32", "0"),
                        Field(
                            "acknowledgementBatches",
                            "[]AcknowledgementBatch",
                            "0+",
                            fields=(
                                Field("firstOffset", "int64", "0+"),
                                Field("lastOffset", "int64", "0+"),
                                Field("acknowledgeTypes", "[]int8", "0+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Field(
            "forgottenTopicsData",
            "[]ForgottenTopic",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
    ),
)

SHARE_FETCH_RESPONSE = MessageSchema(
    "ShareFetchResponse",
    "response",
    78,
    "1-2",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
        Field("acquisitionLockTimeoutMs", "int32", "1+"),
        Field(
            "responses",
            "[]ShareFetchableTopicResponse",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                        Field("acknowledgeErrorCode", "int16", "0+"),
                        Field("acknowledgeErrorMessage", "string", "0+", nullable="0+", default="null"),
                        Field(
                            "currentLeader",
                            "LeaderIdAndEpoch",
                            "0+",
                            fields=(
                                Field("leaderId", "int32", "0+"),
                                Field("leaderEpoch", "int32", "0+"),
                            ),
                        ),
                        Field("records", "records", "0+", nullable="0"),
                        Field(
                            "acquiredRecords",
                            "[]AcquiredRecords",
                            "0+",
                            fields=(
                                Field("firstOffset", "int64", "0+"),
                                Field("lastOffset", "int64", "0+"),
                                Field("deliveryCount", "int16", "0+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Field(
            "nodeEndpoints",
            "[]NodeEndpoint",
            "0+",
            fields=(
                Field("nodeId", "int32", "0+"),
                Field("host", "string", "0+"),
                Field("port", "int32", "0+"),
                Field("rack", "string", "0+", nullable="0+", default="null"),
            ),
        ),
    ),
)

SHARE_ACKNOWLEDGE_REQUEST = MessageSchema(
    "ShareAcknowledgeRequest",
    "request",
    79,
    "1-2",
    "0+",
    (
        Field("groupId", "string", "0+", nullable="0+", default="null"),
        Field("memberId", "string", "0+", nullable="0+"),
        Field("shareSessionEpoch", "int32", "0+"),
        Field("isRenewAck", "bool", "2+"),
        Field(
            "topics",
            "[]AcknowledgeTopic",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]AcknowledgePartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field(
                            "acknowledgementBatches",
                            "[]AcknowledgementBatch",
                            "0+",
                            fields=(
                                Field("firstOffset", "int64", "0+"),
                                Field("lastOffset", "int64", "0+"),
                                Field("acknowledgeTypes", "[]int8", "0+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)

SHARE_ACKNOWLEDGE_RESPONSE = MessageSchema(
    "ShareAcknowledgeResponse",
    "response",
    79,
    "1-2",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
        Field("acquisitionLockTimeoutMs", "int32", "2+"),
        Field(
            "responses",
            "[]ShareAcknowledgeTopicResponse",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                        Field(
                            "currentLeader",
                            "LeaderIdAndEpoch",
                            "0+",
                            fields=(
                                Field("leaderId", "int32", "0+"),
                                Field("leaderEpoch", "int32", "0+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Field(
            "nodeEndpoints",
            "[]NodeEndpoint",
            "0+",
            fields=(
                Field("nodeId", "int32", "0+"),
                Field("host", "string", "0+"),
                Field("port", "int32", "0+"),
                Field("rack", "string", "0+", nullable="0+", default="null"),
            ),
        ),
    ),
)

ADD_RAFT_VOTER_REQUEST = MessageSchema(
    "AddRaftVoterRequest",
    "request",
    80,
    "0-1",
    "0+",
    (
        Field("clusterId", "string", "0+", nullable="0+"),
        Field("timeoutMs", "int32", "0+"),
        Field("voterId", "int32", "0+"),
        Field("voterDirectoryId", "uuid", "0+"),
        Field(
            "listeners",
            "[]Listener",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("host", "string", "0+"),
                Field("port", "uint16", "0+"),
            ),
        ),
        Field("ackWhenCommitted", "bool", "1+", default=True),
    ),
)

ADD_RAFT_VOTER_RESPONSE = MessageSchema(
    "AddRaftVoterResponse",
    "response",
    80,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
    ),
)

REMOVE_RAFT_VOTER_REQUEST = MessageSchema(
    "RemoveRaftVoterRequest",
    "request",
    81,
    "0",
    "0+",
    (
        Field("clusterId", "string", "0+", nullable="0+"),
        Field("voterId", "int32", "0+"),
        Field("voterDirectoryId", "uuid", "0+"),
    ),
)

REMOVE_RAFT_VOTER_RESPONSE = MessageSchema(
    "RemoveRaftVoterResponse",
    "response",
    81,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
    ),
)

UPDATE_RAFT_VOTER_REQUEST = MessageSchema(
    "UpdateRaftVoterRequest",
    "request",
    82,
    "0",
    "0+",
    (
        Field("clusterId", "string", "0+", nullable="0+"),
        Field("currentLeaderEpoch", "int32", "0+"),
        Field("voterId", "int32", "0+"),
        Field("voterDirectoryId", "uuid", "0+"),
        Field(
            "listeners",
            "[]Listener",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("host", "string", "0+"),
                Field("port", "uint16", "0+"),
            ),
        ),
        Field(
            "kRaftVersionFeature",
            "KRaftVersionFeature",
            "0+",
            fields=(
                Field("minSupportedVersion", "int16", "0+"),
                Field("maxSupportedVersion", "int16", "0+"),
            ),
        ),
    ),
)

UPDATE_RAFT_VOTER_RESPONSE = MessageSchema(
    "UpdateRaftVoterResponse",
    "response",
    82,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field(
            "currentLeader",
            "CurrentLeader",
            "0+",
            tag=0,
            tagged="0+",
            fields=(
                Field("leaderId", "int32", "0+", default=-1),
                Field("leaderEpoch", "int32", "0+", default=-1),
                Field("host", "string", "0+"),
                Field("port", "int32", "0+"),
            ),
        ),
    ),
)

INITIALIZE_SHARE_GROUP_STATE_REQUEST = MessageSchema(
    "InitializeShareGroupStateRequest",
    "request",
    83,
    "0",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field(
            "topics",
            "[]InitializeStateData",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("stateEpoch", "int32", "0+"),
                        Field("startOffset", "int64", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

INITIALIZE_SHARE_GROUP_STATE_RESPONSE = MessageSchema(
    "InitializeShareGroupStateResponse",
    "response",
    83,
    "0",
    "0+",
    (
        Field(
            "results",
            "[]InitializeStateResult",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionResult",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                    ),
                ),
            ),
        ),
    ),
)

READ_SHARE_GROUP_STATE_REQUEST = MessageSchema(
    "ReadShareGroupStateRequest",
    "request",
    84,
    "0",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field(
            "topics",
            "[]ReadStateData",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

READ_SHARE_GROUP_STATE_RESPONSE = MessageSchema(
    "ReadShareGroupStateResponse",
    "response",
    84,
    "0",
    "0+",
    (
        Field(
            "results",
            "[]ReadStateResult",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionResult",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                        Field("stateEpoch", "int32", "0+"),
                        Field("startOffset", "int64", "0+"),
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
                ),
            ),
        ),
    ),
)

WRITE_SHARE_GROUP_STATE_REQUEST = MessageSchema(
    "WriteShareGroupStateRequest",
    "request",
    85,
    "0-1",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field(
            "topics",
            "[]WriteStateData",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("stateEpoch", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                        Field("startOffset", "int64", "0+"),
                        Field("deliveryCompleteCount", "int32", "1+", default=-1),
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
                ),
            ),
        ),
    ),
)

WRITE_SHARE_GROUP_STATE_RESPONSE = MessageSchema(
    "WriteShareGroupStateResponse",
    "response",
    85,
    "0-1",
    "0+",
    (
        Field(
            "results",
            "[]WriteStateResult",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionResult",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                    ),
                ),
            ),
        ),
    ),
)

DELETE_SHARE_GROUP_STATE_REQUEST = MessageSchema(
    "DeleteShareGroupStateRequest",
    "request",
    86,
    "0",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field(
            "topics",
            "[]DeleteStateData",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field("partitions", "[]PartitionData", "0+", fields=(Field("partition", "int32", "0+"),)),
            ),
        ),
    ),
)

DELETE_SHARE_GROUP_STATE_RESPONSE = MessageSchema(
    "DeleteShareGroupStateResponse",
    "response",
    86,
    "0",
    "0+",
    (
        Field(
            "results",
            "[]DeleteStateResult",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionResult",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                    ),
                ),
            ),
        ),
    ),
)

READ_SHARE_GROUP_STATE_SUMMARY_REQUEST = MessageSchema(
    "ReadShareGroupStateSummaryRequest",
    "request",
    87,
    "0-1",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field(
            "topics",
            "[]ReadStateSummaryData",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionData",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE = MessageSchema(
    "ReadShareGroupStateSummaryResponse",
    "response",
    87,
    "0-1",
    "0+",
    (
        Field(
            "results",
            "[]ReadStateSummaryResult",
            "0+",
            fields=(
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]PartitionResult",
                    "0+",
                    fields=(
                        Field("partition", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                        Field("stateEpoch", "int32", "0+"),
                        Field("leaderEpoch", "int32", "0+"),
                        Field("startOffset", "int64", "0+"),
                        Field("deliveryCompleteCount", "int32", "1+", default=-1),
                    ),
                ),
            ),
        ),
    ),
)

STREAMS_GROUP_HEARTBEAT_REQUEST = MessageSchema(
    "StreamsGroupHeartbeatRequest",
    "request",
    88,
    "0-1",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field("memberId", "string", "0+"),
        Field("memberEpoch", "int32", "0+"),
        Field("endpointInformationEpoch", "int32", "0+"),
        Field("instanceId", "string", "0+", nullable="0+", default="null"),
        Field("rackId", "string", "0+", nullable="0+", default="null"),
        Field("rebalanceTimeoutMs", "int32", "0+", default=-1),
        Field(
            "topology",
            "Topology",
            "0+",
            nullable="0+",
            default="null",
            fields=(
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
                                    "[]KeyValue",
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
                                    "[]KeyValue",
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
        ),
        Field(
            "activeTasks",
            "[]TaskIds",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field(
            "standbyTasks",
            "[]TaskIds",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field(
            "warmupTasks",
            "[]TaskIds",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field("processId", "string", "0+", nullable="0+", default="null"),
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
            nullable="0+",
            default="null",
            fields=(
                Field("key", "string", "0+"),
                Field("value", "string", "0+"),
            ),
        ),
        Field(
            "taskOffsets",
            "[]TaskOffset",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partition", "int32", "0+"),
                Field("offset", "int64", "0+"),
            ),
        ),
        Field(
            "taskEndOffsets",
            "[]TaskOffset",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partition", "int32", "0+"),
                Field("offset", "int64", "0+"),
            ),
        ),
        Field("shutdownApplication", "bool", "0+"),
    ),
)

STREAMS_GROUP_HEARTBEAT_RESPONSE = MessageSchema(
    "StreamsGroupHeartbeatResponse",
    "response",
    88,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
        Field("memberId", "string", "0+"),
        Field("memberEpoch", "int32", "0+"),
        Field("heartbeatIntervalMs", "int32", "0+"),
        Field("acceptableRecoveryLagLegacy", "int32", "0"),
        Field("taskOffsetIntervalMs", "int32", "0+"),
        Field("acceptableRecoveryLag", "int64", "1+", default=-1),
        Field(
            "status",
            "[]Status",
            "0+",
            nullable="0+",
            fields=(
                Field("statusCode", "int8", "0+"),
                Field("statusDetail", "string", "0+"),
            ),
        ),
        Field(
            "activeTasks",
            "[]TaskIds",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field(
            "standbyTasks",
            "[]TaskIds",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field(
            "warmupTasks",
            "[]TaskIds",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field("subtopologyId", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field("topologyDescriptionRequired", "bool", "1+"),
        Field("endpointInformationEpoch", "int32", "0+"),
        Field(
            "partitionsByUserEndpoint",
            "[]EndpointToPartitions",
            "0+",
            nullable="0+",
            default="null",
            fields=(
                Field(
                    "userEndpoint",
                    "Endpoint",
                    "0+",
                    fields=(
                        Field("host", "string", "0+"),
                        Field("port", "uint16", "0+"),
                    ),
                ),
                Field(
                    "activePartitions",
                    "[]TopicPartition",
                    "0+",
                    fields=(
                        Field("topic", "string", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    ),
                ),
                Field(
                    "standbyPartitions",
                    "[]TopicPartition",
                    "0+",
                    fields=(
                        Field("topic", "string", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

STREAMS_GROUP_DESCRIBE_REQUEST = MessageSchema(
    "StreamsGroupDescribeRequest",
    "request",
    89,
    "0-1",
    "0+",
    (
        Field("groupIds", "[]string", "0+"),
        Field("includeAuthorizedOperations", "bool", "0+"),
        Field("includeTopologyDescription", "bool", "1+"),
    ),
)

STREAMS_GROUP_DESCRIBE_RESPONSE = MessageSchema(
    "StreamsGroupDescribeResponse",
    "response",
    89,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "groups",
            "[]DescribedGroup",
            "0+",
            fields=(
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                Field("groupId", "string", "0+"),
                Field("groupState", "string", "0+"),
                Field("groupEpoch", "int32", "0+"),
                Field("assignmentEpoch", "int32", "0+"),
                Field(
                    "topology",
                    "Topology",
                    "0+",
                    nullable="0+",
                    default="null",
                    fields=(
                        Field("epoch", "int32", "0+"),
                        Field(
                            "subtopologies",
                            "[]Subtopology",
                            "0+",
                            nullable="0+",
                            default="null",
                            fields=(
                                Field("subtopologyId", "string", "0+"),
                                Field("sourceTopics", "[]string", "0+"),
                                Field("repartitionSinkTopics", "[]string", "0+"),
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
                                            "[]KeyValue",
                                            "0+",
                                            fields=(
                                                Field("key", "string", "0+"),
                                                Field("value", "string", "0+"),
                                            ),
                                        ),
                                    ),
                                ),
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
                                            "[]KeyValue",
                                            "0+",
                                            fields=(
                                                Field("key", "string", "0+"),
                                                Field("value", "string", "0+"),
                                            ),
                                        ),
                                    ),
                                ),
                            ),
                        ),
                    ),
                ),
                Field(
                    "members",
                    "[]Member",
                    "0+",
                    fields=(
                        Field("memberId", "string", "0+"),
                        Field("memberEpoch", "int32", "0+"),
                        Field("instanceId", "string", "0+", nullable="0+", default="null"),
                        Field("rackId", "string", "0+", nullable="0+", default="null"),
                        Field("clientId", "string", "0+"),
                        Field("clientHost", "string", "0+"),
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
                        Field(
                            "taskOffsets",
                            "[]TaskOffset",
                            "0+",
                            fields=(
                                Field("subtopologyId", "string", "0+"),
                                Field("partition", "int32", "0+"),
                                Field("offset", "int64", "0+"),
                            ),
                        ),
                        Field(
                            "taskEndOffsets",
                            "[]TaskOffset",
                            "0+",
                            fields=(
                                Field("subtopologyId", "string", "0+"),
                                Field("partition", "int32", "0+"),
                                Field("offset", "int64", "0+"),
                            ),
                        ),
                        Field(
                            "assignment",
                            "Assignment",
                            "0+",
                            fields=(
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
                        ),
                        Field(
                            "targetAssignment",
                            "Assignment",
                            "0+",
                            fields=(
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
                        ),
                        Field("isClassic", "bool", "0+"),
                    ),
                ),
                Field("authorizedOperations", "int32", "0+", default=-2147483648),
                Field(
                    "topologyDescription",
                    "TopologyDescription",
                    "1+",
                    nullable="1+",
                    default="null",
                    fields=(
                        Field(
                            "subtopologies",
                            "[]TopologyDescriptionSubtopology",
                            "1+",
                            fields=(
                                Field("subtopologyId", "string", "1+"),
                                Field(
                                    "nodes",
                                    "[]TopologyDescriptionNode",
                                    "1+",
                                    fields=(
                                        Field("name", "string", "1+"),
                                        Field("nodeType", "int8", "1+"),
                                        Field("sourceTopics", "[]string", "1+"),
                                        Field("sinkTopic", "string", "1+", nullable="1+", default="null"),
                                        Field("stores", "[]string", "1+"),
                                        Field("successors", "[]string", "1+"),
                                    ),
                                ),
                            ),
                        ),
                        Field(
                            "globalStores",
                            "[]TopologyDescriptionGlobalStore",
                            "1+",
                            fields=(
                                Field(
                                    "source",
                                    "TopologyDescriptionNode",
                                    "1+",
                                    fields=(
                                        Field("name", "string", "1+"),
                                        Field("nodeType", "int8", "1+"),
                                        Field("sourceTopics", "[]string", "1+"),
                                        Field("sinkTopic", "string", "1+", nullable="1+", default="null"),
                                        Field("stores", "[]string", "1+"),
                                        Field("successors", "[]string", "1+"),
                                    ),
                                ),
                                Field(
                                    "processor",
                                    "TopologyDescriptionNode",
                                    "1+",
                                    fields=(
                                        Field("name", "string", "1+"),
                                        Field("nodeType", "int8", "1+"),
                                        Field("sourceTopics", "[]string", "1+"),
                                        Field("sinkTopic", "string", "1+", nullable="1+", default="null"),
                                        Field("stores", "[]string", "1+"),
                                        Field("successors", "[]string", "1+"),
                                    ),
                                ),
                            ),
                        ),
                    ),
                ),
                Field("topologyDescriptionStatus", "int8", "1+"),
                Field("assignorName", "string", "1+", nullable="1+", default="null"),
            ),
        ),
    ),
)

DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST = MessageSchema(
    "DescribeShareGroupOffsetsRequest",
    "request",
    90,
    "0-1",
    "0+",
    (
        Field(
            "groups",
            "[]DescribeShareGroupOffsetsRequestGroup",
            "0+",
            fields=(
                Field("groupId", "string", "0+"),
                Field(
                    "topics",
                    "[]DescribeShareGroupOffsetsRequestTopic",
                    "0+",
                    nullable="0+",
                    fields=(
                        Field("topicName", "string", "0+"),
                        Field("partitions", "[]int32", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE = MessageSchema(
    "DescribeShareGroupOffsetsResponse",
    "response",
    90,
    "0-1",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field(
            "groups",
            "[]DescribeShareGroupOffsetsResponseGroup",
            "0+",
            fields=(
                Field("groupId", "string", "0+"),
                Field(
                    "topics",
                    "[]DescribeShareGroupOffsetsResponseTopic",
                    "0+",
                    fields=(
                        Field("topicName", "string", "0+"),
                        Field("topicId", "uuid", "0+"),
                        Field(
                            "partitions",
                            "[]DescribeShareGroupOffsetsResponsePartition",
                            "0+",
                            fields=(
                                Field("partitionIndex", "int32", "0+"),
                                Field("startOffset", "int64", "0+"),
                                Field("leaderEpoch", "int32", "0+"),
                                Field("lag", "int64", "1+", default=-1),
                                Field("errorCode", "int16", "0+"),
                                Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                            ),
                        ),
                    ),
                ),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+", default="null"),
            ),
        ),
    ),
)

ALTER_SHARE_GROUP_OFFSETS_REQUEST = MessageSchema(
    "AlterShareGroupOffsetsRequest",
    "request",
    91,
    "0",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field(
            "topics",
            "[]AlterShareGroupOffsetsRequestTopic",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field(
                    "partitions",
                    "[]AlterShareGroupOffsetsRequestPartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("startOffset", "int64", "0+"),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_SHARE_GROUP_OFFSETS_RESPONSE = MessageSchema(
    "AlterShareGroupOffsetsResponse",
    "response",
    91,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
        Field(
            "responses",
            "[]AlterShareGroupOffsetsResponseTopic",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field("topicId", "uuid", "0+"),
                Field(
                    "partitions",
                    "[]AlterShareGroupOffsetsResponsePartition",
                    "0+",
                    fields=(
                        Field("partitionIndex", "int32", "0+"),
                        Field("errorCode", "int16", "0+"),
                        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
                    ),
                ),
            ),
        ),
    ),
)

DELETE_SHARE_GROUP_OFFSETS_REQUEST = MessageSchema(
    "DeleteShareGroupOffsetsRequest",
    "request",
    92,
    "0",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field("topics", "[]DeleteShareGroupOffsetsRequestTopic", "0+", fields=(Field("topicName", "string", "0+"),)),
    ),
)

DELETE_SHARE_GROUP_OFFSETS_RESPONSE = MessageSchema(
    "DeleteShareGroupOffsetsResponse",
    "response",
    92,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
        Field(
            "responses",
            "[]DeleteShareGroupOffsetsResponseTopic",
            "0+",
            fields=(
                Field("topicName", "string", "0+"),
                Field("topicId", "uuid", "0+"),
                Field("errorCode", "int16", "0+"),
                Field("errorMessage", "string", "0+", nullable="0+", default="null"),
            ),
        ),
    ),
)

STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST = MessageSchema(
    "StreamsGroupTopologyDescriptionUpdateRequest",
    "request",
    93,
    "0",
    "0+",
    (
        Field("groupId", "string", "0+"),
        Field("memberId", "string", "0+"),
        Field("topologyEpoch", "int32", "0+"),
        Field(
            "topologyDescription",
            "TopologyDescription",
            "0+",
            fields=(
                Field(
                    "subtopologies",
                    "[]TopologyDescriptionSubtopology",
                    "0+",
                    fields=(
                        Field("subtopologyId", "string", "0+"),
                        Field(
                            "nodes",
                            "[]TopologyDescriptionNode",
                            "0+",
                            fields=(
                                Field("name", "string", "0+"),
                                Field("nodeType", "int8", "0+"),
                                Field("sourceTopics", "[]string", "0+"),
                                Field("sinkTopic", "string", "0+", nullable="0+", default="null"),
                                Field("stores", "[]string", "0+"),
                                Field("successors", "[]string", "0+"),
                            ),
                        ),
                    ),
                ),
                Field(
                    "globalStores",
                    "[]TopologyDescriptionGlobalStore",
                    "0+",
                    fields=(
                        Field(
                            "source",
                            "TopologyDescriptionNode",
                            "0+",
                            fields=(
                                Field("name", "string", "0+"),
                                Field("nodeType", "int8", "0+"),
                                Field("sourceTopics", "[]string", "0+"),
                                Field("sinkTopic", "string", "0+", nullable="0+", default="null"),
                                Field("stores", "[]string", "0+"),
                                Field("successors", "[]string", "0+"),
                            ),
                        ),
                        Field(
                            "processor",
                            "TopologyDescriptionNode",
                            "0+",
                            fields=(
                                Field("name", "string", "0+"),
                                Field("nodeType", "int8", "0+"),
                                Field("sourceTopics", "[]string", "0+"),
                                Field("sinkTopic", "string", "0+", nullable="0+", default="null"),
                                Field("stores", "[]string", "0+"),
                                Field("successors", "[]string", "0+"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)

STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_RESPONSE = MessageSchema(
    "StreamsGroupTopologyDescriptionUpdateResponse",
    "response",
    93,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+", default="null"),
    ),
)

UNREGISTER_CONTROLLER_REQUEST = MessageSchema(
    "UnregisterControllerRequest", "request", 94, "0", "0+", (Field("controllerId", "int32", "0+"),)
)

UNREGISTER_CONTROLLER_RESPONSE = MessageSchema(
    "UnregisterControllerResponse",
    "response",
    94,
    "0",
    "0+",
    (
        Field("throttleTimeMs", "int32", "0+"),
        Field("errorCode", "int16", "0+"),
        Field("errorMessage", "string", "0+", nullable="0+"),
    ),
)

REQUESTS: dict[int, MessageSchema] = {
    0: PRODUCE_REQUEST,
    1: FETCH_REQUEST,
    2: LIST_OFFSETS_REQUEST,
    3: METADATA_REQUEST,
    4: LEADER_AND_ISR_REQUEST,
    5: STOP_REPLICA_REQUEST,
    6: UPDATE_METADATA_REQUEST,
    7: CONTROLLED_SHUTDOWN_REQUEST,
    8: OFFSET_COMMIT_REQUEST,
    9: OFFSET_FETCH_REQUEST,
    10: FIND_COORDINATOR_REQUEST,
    11: JOIN_GROUP_REQUEST,
    12: HEARTBEAT_REQUEST,
    13: LEAVE_GROUP_REQUEST,
    14: SYNC_GROUP_REQUEST,
    15: DESCRIBE_GROUPS_REQUEST,
    16: LIST_GROUPS_REQUEST,
    17: SASL_HANDSHAKE_REQUEST,
    18: API_VERSIONS_REQUEST,
    19: CREATE_TOPICS_REQUEST,
    20: DELETE_TOPICS_REQUEST,
    21: DELETE_RECORDS_REQUEST,
    22: INIT_PRODUCER_ID_REQUEST,
    23: OFFSET_FOR_LEADER_EPOCH_REQUEST,
    24: ADD_PARTITIONS_TO_TXN_REQUEST,
    25: ADD_OFFSETS_TO_TXN_REQUEST,
    26: END_TXN_REQUEST,
    27: WRITE_TXN_MARKERS_REQUEST,
    28: TXN_OFFSET_COMMIT_REQUEST,
    29: DESCRIBE_ACLS_REQUEST,
    30: CREATE_ACLS_REQUEST,
    31: DELETE_ACLS_REQUEST,
    32: DESCRIBE_CONFIGS_REQUEST,
    33: ALTER_CONFIGS_REQUEST,
    34: ALTER_REPLICA_LOG_DIRS_REQUEST,
    35: DESCRIBE_LOG_DIRS_REQUEST,
    36: SASL_AUTHENTICATE_REQUEST,
    37: CREATE_PARTITIONS_REQUEST,
    38: CREATE_DELEGATION_TOKEN_REQUEST,
    39: RENEW_DELEGATION_TOKEN_REQUEST,
    40: EXPIRE_DELEGATION_TOKEN_REQUEST,
    41: DESCRIBE_DELEGATION_TOKEN_REQUEST,
    42: DELETE_GROUPS_REQUEST,
    43: ELECT_LEADERS_REQUEST,
    44: INCREMENTAL_ALTER_CONFIGS_REQUEST,
    45: ALTER_PARTITION_REASSIGNMENTS_REQUEST,
    46: LIST_PARTITION_REASSIGNMENTS_REQUEST,
    47: OFFSET_DELETE_REQUEST,
    48: DESCRIBE_CLIENT_QUOTAS_REQUEST,
    49: ALTER_CLIENT_QUOTAS_REQUEST,
    50: DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST,
    51: ALTER_USER_SCRAM_CREDENTIALS_REQUEST,
    52: VOTE_REQUEST,
    53: BEGIN_QUORUM_EPOCH_REQUEST,
    54: END_QUORUM_EPOCH_REQUEST,
    55: DESCRIBE_QUORUM_REQUEST,
    56: ALTER_PARTITION_REQUEST,
    57: UPDATE_FEATURES_REQUEST,
    58: ENVELOPE_REQUEST,
    59: FETCH_SNAPSHOT_REQUEST,
    60: DESCRIBE_CLUSTER_REQUEST,
    61: DESCRIBE_PRODUCERS_REQUEST,
    62: BROKER_REGISTRATION_REQUEST,
    63: BROKER_HEARTBEAT_REQUEST,
    64: UNREGISTER_BROKER_REQUEST,
    65: DESCRIBE_TRANSACTIONS_REQUEST,
    66: LIST_TRANSACTIONS_REQUEST,
    67: ALLOCATE_PRODUCER_IDS_REQUEST,
    68: CONSUMER_GROUP_HEARTBEAT_REQUEST,
    69: CONSUMER_GROUP_DESCRIBE_REQUEST,
    70: CONTROLLER_REGISTRATION_REQUEST,
    71: GET_TELEMETRY_SUBSCRIPTIONS_REQUEST,
    72: PUSH_TELEMETRY_REQUEST,
    73: ASSIGN_REPLICAS_TO_DIRS_REQUEST,
    74: LIST_CONFIG_RESOURCES_REQUEST,
    75: DESCRIBE_TOPIC_PARTITIONS_REQUEST,
    76: SHARE_GROUP_HEARTBEAT_REQUEST,
    77: SHARE_GROUP_DESCRIBE_REQUEST,
    78: SHARE_FETCH_REQUEST,
    79: SHARE_ACKNOWLEDGE_REQUEST,
    80: ADD_RAFT_VOTER_REQUEST,
    81: REMOVE_RAFT_VOTER_REQUEST,
    82: UPDATE_RAFT_VOTER_REQUEST,
    83: INITIALIZE_SHARE_GROUP_STATE_REQUEST,
    84: READ_SHARE_GROUP_STATE_REQUEST,
    85: WRITE_SHARE_GROUP_STATE_REQUEST,
    86: DELETE_SHARE_GROUP_STATE_REQUEST,
    87: READ_SHARE_GROUP_STATE_SUMMARY_REQUEST,
    88: STREAMS_GROUP_HEARTBEAT_REQUEST,
    89: STREAMS_GROUP_DESCRIBE_REQUEST,
    90: DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST,
    91: ALTER_SHARE_GROUP_OFFSETS_REQUEST,
    92: DELETE_SHARE_GROUP_OFFSETS_REQUEST,
    93: STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST,
    94: UNREGISTER_CONTROLLER_REQUEST,
}

RESPONSES: dict[int, MessageSchema] = {
    0: PRODUCE_RESPONSE,
    1: FETCH_RESPONSE,
    2: LIST_OFFSETS_RESPONSE,
    3: METADATA_RESPONSE,
    4: LEADER_AND_ISR_RESPONSE,
    5: STOP_REPLICA_RESPONSE,
    6: UPDATE_METADATA_RESPONSE,
    7: CONTROLLED_SHUTDOWN_RESPONSE,
    8: OFFSET_COMMIT_RESPONSE,
    9: OFFSET_FETCH_RESPONSE,
    10: FIND_COORDINATOR_RESPONSE,
    11: JOIN_GROUP_RESPONSE,
    12: HEARTBEAT_RESPONSE,
    13: LEAVE_GROUP_RESPONSE,
    14: SYNC_GROUP_RESPONSE,
    15: DESCRIBE_GROUPS_RESPONSE,
    16: LIST_GROUPS_RESPONSE,
    17: SASL_HANDSHAKE_RESPONSE,
    18: API_VERSIONS_RESPONSE,
    19: CREATE_TOPICS_RESPONSE,
    20: DELETE_TOPICS_RESPONSE,
    21: DELETE_RECORDS_RESPONSE,
    22: INIT_PRODUCER_ID_RESPONSE,
    23: OFFSET_FOR_LEADER_EPOCH_RESPONSE,
    24: ADD_PARTITIONS_TO_TXN_RESPONSE,
    25: ADD_OFFSETS_TO_TXN_RESPONSE,
    26: END_TXN_RESPONSE,
    27: WRITE_TXN_MARKERS_RESPONSE,
    28: TXN_OFFSET_COMMIT_RESPONSE,
    29: DESCRIBE_ACLS_RESPONSE,
    30: CREATE_ACLS_RESPONSE,
    31: DELETE_ACLS_RESPONSE,
    32: DESCRIBE_CONFIGS_RESPONSE,
    33: ALTER_CONFIGS_RESPONSE,
    34: ALTER_REPLICA_LOG_DIRS_RESPONSE,
    35: DESCRIBE_LOG_DIRS_RESPONSE,
    36: SASL_AUTHENTICATE_RESPONSE,
    37: CREATE_PARTITIONS_RESPONSE,
    38: CREATE_DELEGATION_TOKEN_RESPONSE,
    39: RENEW_DELEGATION_TOKEN_RESPONSE,
    40: EXPIRE_DELEGATION_TOKEN_RESPONSE,
    41: DESCRIBE_DELEGATION_TOKEN_RESPONSE,
    42: DELETE_GROUPS_RESPONSE,
    43: ELECT_LEADERS_RESPONSE,
    44: INCREMENTAL_ALTER_CONFIGS_RESPONSE,
    45: ALTER_PARTITION_REASSIGNMENTS_RESPONSE,
    46: LIST_PARTITION_REASSIGNMENTS_RESPONSE,
    47: OFFSET_DELETE_RESPONSE,
    48: DESCRIBE_CLIENT_QUOTAS_RESPONSE,
    49: ALTER_CLIENT_QUOTAS_RESPONSE,
    50: DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE,
    51: ALTER_USER_SCRAM_CREDENTIALS_RESPONSE,
    52: VOTE_RESPONSE,
    53: BEGIN_QUORUM_EPOCH_RESPONSE,
    54: END_QUORUM_EPOCH_RESPONSE,
    55: DESCRIBE_QUORUM_RESPONSE,
    56: ALTER_PARTITION_RESPONSE,
    57: UPDATE_FEATURES_RESPONSE,
    58: ENVELOPE_RESPONSE,
    59: FETCH_SNAPSHOT_RESPONSE,
    60: DESCRIBE_CLUSTER_RESPONSE,
    61: DESCRIBE_PRODUCERS_RESPONSE,
    62: BROKER_REGISTRATION_RESPONSE,
    63: BROKER_HEARTBEAT_RESPONSE,
    64: UNREGISTER_BROKER_RESPONSE,
    65: DESCRIBE_TRANSACTIONS_RESPONSE,
    66: LIST_TRANSACTIONS_RESPONSE,
    67: ALLOCATE_PRODUCER_IDS_RESPONSE,
    68: CONSUMER_GROUP_HEARTBEAT_RESPONSE,
    69: CONSUMER_GROUP_DESCRIBE_RESPONSE,
    70: CONTROLLER_REGISTRATION_RESPONSE,
    71: GET_TELEMETRY_SUBSCRIPTIONS_RESPONSE,
    72: PUSH_TELEMETRY_RESPONSE,
    73: ASSIGN_REPLICAS_TO_DIRS_RESPONSE,
    74: LIST_CONFIG_RESOURCES_RESPONSE,
    75: DESCRIBE_TOPIC_PARTITIONS_RESPONSE,
    76: SHARE_GROUP_HEARTBEAT_RESPONSE,
    77: SHARE_GROUP_DESCRIBE_RESPONSE,
    78: SHARE_FETCH_RESPONSE,
    79: SHARE_ACKNOWLEDGE_RESPONSE,
    80: ADD_RAFT_VOTER_RESPONSE,
    81: REMOVE_RAFT_VOTER_RESPONSE,
    82: UPDATE_RAFT_VOTER_RESPONSE,
    83: INITIALIZE_SHARE_GROUP_STATE_RESPONSE,
    84: READ_SHARE_GROUP_STATE_RESPONSE,
    85: WRITE_SHARE_GROUP_STATE_RESPONSE,
    86: DELETE_SHARE_GROUP_STATE_RESPONSE,
    87: READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE,
    88: STREAMS_GROUP_HEARTBEAT_RESPONSE,
    89: STREAMS_GROUP_DESCRIBE_RESPONSE,
    90: DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE,
    91: ALTER_SHARE_GROUP_OFFSETS_RESPONSE,
    92: DELETE_SHARE_GROUP_OFFSETS_RESPONSE,
    93: STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_RESPONSE,
    94: UNREGISTER_CONTROLLER_RESPONSE,
}
