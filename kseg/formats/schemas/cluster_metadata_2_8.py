"""Messages of `__cluster_metadata` as the 2.8 preview wrote it, after frame version 0.

Written by tools/read_schemas.py from Kafka 2.8.2.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

REGISTER_BROKER_RECORD = MessageSchema(
    "RegisterBrokerRecord",
    "metadata",
    0,
    "0",
    "none",
    (
        Field("brokerId", "int32", "0+"),
        Field("incarnationId", "uuid", "0+"),
        Field("brokerEpoch", "int64", "0+"),
        Field(
            "endPoints",
            "[]BrokerEndpoint",
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
            "[]BrokerFeature",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("minSupportedVersion", "int16", "0+"),
                Field("maxSupportedVersion", "int16", "0+"),
            ),
        ),
        Field("rack", "string", "0+", nullable="0+"),
    ),
)

UNREGISTER_BROKER_RECORD = MessageSchema(
    "UnregisterBrokerRecord",
    "metadata",
    1,
    "0",
    "none",
    (
        Field("brokerId", "int32", "0+"),
        Field("brokerEpoch", "int64", "0+"),
    ),
)

TOPIC_RECORD = MessageSchema(
    "TopicRecord",
    "metadata",
    2,
    "0",
    "none",
    (
        Field("name", "string", "0+"),
        Field("topicId", "uuid", "0+"),
    ),
)

PARTITION_RECORD = MessageSchema(
    "PartitionRecord",
    "metadata",
    3,
    "0",
    "none",
    (
        Field("partitionId", "int32", "0+", default=-1),
        Field("topicId", "uuid", "0+"),
        Field("replicas", "[]int32", "0+"),
        Field("isr", "[]int32", "0+"),
        Field("removingReplicas", "[]int32", "0+", nullable="0+"),
        Field("addingReplicas", "[]int32", "0+", nullable="0+"),
        Field("leader", "int32", "0+", default=-1),
        Field("leaderEpoch", "int32", "0+", default=-1),
        Field("partitionEpoch", "int32", "0+", default=-1),
    ),
)

CONFIG_RECORD = MessageSchema(
    "ConfigRecord",
    "metadata",
    4,
    "0",
    "none",
    (
        Field("resourceType", "int8", "0+"),
        Field("resourceName", "string", "0+"),
        Field("name", "string", "0+"),
        Field("value", "string", "0+"),
    ),
)

PARTITION_CHANGE_RECORD = MessageSchema(
    "PartitionChangeRecord",
    "metadata",
    5,
    "0",
    "0+",
    (
        Field("partitionId", "int32", "0+", default=-1),
        Field("topicId", "uuid", "0+"),
        Field("isr", "[]int32", "0+", nullable="0+", tag=0, tagged="0+", default="null"),
        Field("leader", "int32", "0+", tag=1, tagged="0+", default=-2),
    ),
)

ACCESS_CONTROL_RECORD = MessageSchema(
    "AccessControlRecord",
    "metadata",
    6,
    "0",
    "0+",
    (
        Field("resourceType", "int8", "0+"),
        Field("resourceName", "string", "0+", nullable="0+"),
        Field("patternType", "int8", "0+"),
        Field("principal", "string", "0+"),
        Field("host", "string", "0+"),
        Field("operation", "int8", "0+"),
        Field("permissionType", "int8", "0+"),
    ),
)

FENCE_BROKER_RECORD = MessageSchema(
    "FenceBrokerRecord",
    "metadata",
    7,
    "0",
    "none",
    (
        Field("id", "int32", "0+"),
        Field("epoch", "int64", "0+"),
    ),
)

UNFENCE_BROKER_RECORD = MessageSchema(
    "UnfenceBrokerRecord",
    "metadata",
    8,
    "0",
    "none",
    (
        Field("id", "int32", "0+"),
        Field("epoch", "int64", "0+"),
    ),
)

REMOVE_TOPIC_RECORD = MessageSchema("RemoveTopicRecord", "metadata", 9, "0", "none", (Field("topicId", "uuid", "0+"),))

DELEGATION_TOKEN_RECORD = MessageSchema(
    "DelegationTokenRecord",
    "metadata",
    10,
    "0",
    "none",
    (
        Field("owner", "string", "0+"),
        Field("renewers", "[]string", "0+"),
        Field("issueTimestamp", "int64", "0+"),
        Field("maxTimestamp", "int64", "0+"),
        Field("expirationTimestamp", "int64", "0+"),
        Field("tokenId", "string", "0+"),
    ),
)

USER_SCRAM_CREDENTIAL_RECORD = MessageSchema(
    "UserScramCredentialRecord",
    "metadata",
    11,
    "0",
    "none",
    (
        Field("name", "string", "0+"),
        Field(
            "credentialInfos",
            "[]CredentialInfo",
            "0+",
            fields=(
                Field("mechanism", "int8", "0+"),
                Field("salt", "bytes", "0+"),
                Field("saltedPassword", "bytes", "0+"),
                Field("iterations", "int32", "0+"),
            ),
        ),
    ),
)

FEATURE_LEVEL_RECORD = MessageSchema(
    "FeatureLevelRecord",
    "metadata",
    12,
    "0",
    "none",
    (
        Field("name", "string", "0+"),
        Field("minFeatureLevel", "int16", "0+"),
        Field("maxFeatureLevel", "int16", "0+"),
    ),
)

QUOTA_RECORD = MessageSchema(
    "QuotaRecord",
    "metadata",
    14,
    "0",
    "none",
    (
        Field(
            "entity",
            "[]EntityData",
            "0+",
            fields=(
                Field("entityType", "string", "0+"),
                Field("entityName", "string", "0+", nullable="0+"),
            ),
        ),
        Field("key", "string", "0+"),
        Field("value", "float64", "0+"),
        Field("remove", "bool", "0+"),
    ),
)

RECORDS: dict[int, MessageSchema] = {
    0: REGISTER_BROKER_RECORD,
    1: UNREGISTER_BROKER_RECORD,
    2: TOPIC_RECORD,
    3: PARTITION_RECORD,
    4: CONFIG_RECORD,
    5: PARTITION_CHANGE_RECORD,
    6: ACCESS_CONTROL_RECORD,
    7: FENCE_BROKER_RECORD,
    8: UNFENCE_BROKER_RECORD,
    9: REMOVE_TOPIC_RECORD,
    10: DELEGATION_TOKEN_RECORD,
    11: USER_SCRAM_CREDENTIAL_RECORD,
    12: FEATURE_LEVEL_RECORD,
    14: QUOTA_RECORD,
}
