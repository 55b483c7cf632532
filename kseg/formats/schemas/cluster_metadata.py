"""Messages of `__cluster_metadata`.

Written by tools/read_schemas.py from Kafka 4.4.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

REGISTER_BROKER_RECORD = MessageSchema(
    "RegisterBrokerRecord",
    "metadata",
    0,
    "0-4",
    "0+",
    (
        Field("brokerId", "int32", "0+"),
        Field("isMigratingZkBroker", "bool", "2+"),
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
        Field("fenced", "bool", "0+", default=True),
        Field("inControlledShutdown", "bool", "1+"),
        Field("logDirs", "[]uuid", "3+", tag=0, tagged="3+"),
        Field("cordonedLogDirs", "[]uuid", "4+", nullable="4+", tag=1, tagged="4+", default="null"),
    ),
)

UNREGISTER_BROKER_RECORD = MessageSchema(
    "UnregisterBrokerRecord",
    "metadata",
    1,
    "0",
    "0+",
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
    "0+",
    (
        Field("name", "string", "0+"),
        Field("topicId", "uuid", "0+"),
    ),
)

PARTITION_RECORD = MessageSchema(
    "PartitionRecord",
    "metadata",
    3,
    "0-2",
    "0+",
    (
        Field("partitionId", "int32", "0+", default=-1),
        Field("topicId", "uuid", "0+"),
        Field("replicas", "[]int32", "0+"),
        Field("isr", "[]int32", "0+"),
        Field("removingReplicas", "[]int32", "0+"),
        Field("addingReplicas", "[]int32", "0+"),
        Field("leader", "int32", "0+", default=-1),
        Field("leaderRecoveryState", "int8", "0+", tag=0, tagged="0+"),
        Field("leaderEpoch", "int32", "0+", default=-1),
        Field("partitionEpoch", "int32", "0+", default=-1),
        Field("directories", "[]uuid", "1+"),
        Field("eligibleLeaderReplicas", "[]int32", "2+", nullable="2+", tag=1, tagged="2+", default="null"),
        Field("lastKnownElr", "[]int32", "2+", nullable="2+", tag=2, tagged="2+", default="null"),
    ),
)

CONFIG_RECORD = MessageSchema(
    "ConfigRecord",
    "metadata",
    4,
    "0",
    "0+",
    (
        Field("resourceType", "int8", "0+"),
        Field("resourceName", "string", "0+"),
        Field("name", "string", "0+"),
        Field("value", "string", "0+", nullable="0+"),
    ),
)

PARTITION_CHANGE_RECORD = MessageSchema(
    "PartitionChangeRecord",
    "metadata",
    5,
    "0-2",
    "0+",
    (
        Field("partitionId", "int32", "0+", default=-1),
        Field("topicId", "uuid", "0+"),
        Field("isr", "[]int32", "0+", nullable="0+", tag=0, tagged="0+", default="null"),
        Field("leader", "int32", "0+", tag=1, tagged="0+", default=-2),
        Field("replicas", "[]int32", "0+", nullable="0+", tag=2, tagged="0+", default="null"),
        Field("removingReplicas", "[]int32", "0+", nullable="0+", tag=3, tagged="0+", default="null"),
        Field("addingReplicas", "[]int32", "0+", nullable="0+", tag=4, tagged="0+", default="null"),
        Field("leaderRecoveryState", "int8", "0+", tag=5, tagged="0+", default=-1),
        Field("directories", "[]uuid", "1+", nullable="1+", tag=8, tagged="1+", default="null"),
        Field("eligibleLeaderReplicas", "[]int32", "2+", nullable="2+", tag=6, tagged="2+", default="null"),
        Field("lastKnownElr", "[]int32", "2+", nullable="2+", tag=7, tagged="2+", default="null"),
    ),
)

FENCE_BROKER_RECORD = MessageSchema(
    "FenceBrokerRecord",
    "metadata",
    7,
    "0",
    "0+",
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
    "0+",
    (
        Field("id", "int32", "0+"),
        Field("epoch", "int64", "0+"),
    ),
)

REMOVE_TOPIC_RECORD = MessageSchema("RemoveTopicRecord", "metadata", 9, "0", "0+", (Field("topicId", "uuid", "0+"),))

DELEGATION_TOKEN_RECORD = MessageSchema(
    "DelegationTokenRecord",
    "metadata",
    10,
    "0",
    "0+",
    (
        Field("owner", "string", "0+"),
        Field("requester", "string", "0+"),
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
    "0+",
    (
        Field("name", "string", "0+"),
        Field("mechanism", "int8", "0+"),
        Field("salt", "bytes", "0+"),
        Field("storedKey", "bytes", "0+"),
        Field("serverKey", "bytes", "0+"),
        Field("iterations", "int32", "0+"),
    ),
)

FEATURE_LEVEL_RECORD = MessageSchema(
    "FeatureLevelRecord",
    "metadata",
    12,
    "0",
    "0+",
    (
        Field("name", "string", "0+"),
        Field("featureLevel", "int16", "0+"),
    ),
)

CLIENT_QUOTA_RECORD = MessageSchema(
    "ClientQuotaRecord",
    "metadata",
    14,
    "0",
    "0+",
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

PRODUCER_IDS_RECORD = MessageSchema(
    "ProducerIdsRecord",
    "metadata",
    15,
    "0",
    "0+",
    (
        Field("brokerId", "int32", "0+"),
        Field("brokerEpoch", "int64", "0+", default=-1),
        Field("nextProducerId", "int64", "0+"),
    ),
)

BROKER_REGISTRATION_CHANGE_RECORD = MessageSchema(
    "BrokerRegistrationChangeRecord",
    "metadata",
    17,
    "0-3",
    "0+",
    (
        Field("brokerId", "int32", "0+"),
        Field("brokerEpoch", "int64", "0+"),
        Field("fenced", "int8", "0+", tag=0, tagged="0+"),
        Field("inControlledShutdown", "int8", "1+", tag=1, tagged="1+"),
        Field("logDirs", "[]uuid", "2+", tag=2, tagged="2+"),
        Field("cordonedLogDirs", "[]uuid", "3+", nullable="3+", tag=3, tagged="3+", default="null"),
    ),
)

ACCESS_CONTROL_ENTRY_RECORD = MessageSchema(
    "AccessControlEntryRecord",
    "metadata",
    18,
    "0",
    "0+",
    (
        Field("id", "uuid", "0+"),
        Field("resourceType", "int8", "0+"),
        Field("resourceName", "string", "0+"),
        Field("patternType", "int8", "0+"),
        Field("principal", "string", "0+"),
        Field("host", "string", "0+"),
        Field("operation", "int8", "0+"),
        Field("permissionType", "int8", "0+"),
    ),
)

REMOVE_ACCESS_CONTROL_ENTRY_RECORD = MessageSchema(
    "RemoveAccessControlEntryRecord", "metadata", 19, "0", "0+", (Field("id", "uuid", "0+"),)
)

NO_OP_RECORD = MessageSchema("NoOpRecord", "metadata", 20, "0", "0+", ())

ZK_MIGRATION_STATE_RECORD = MessageSchema(
    "ZkMigrationStateRecord", "metadata", 21, "0", "0+", (Field("zkMigrationState", "int8", "0+"),)
)

REMOVE_USER_SCRAM_CREDENTIAL_RECORD = MessageSchema(
    "RemoveUserScramCredentialRecord",
    "metadata",
    22,
    "0",
    "0+",
    (
        Field("name", "string", "0+"),
        Field("mechanism", "int8", "0+"),
    ),
)

BEGIN_TRANSACTION_RECORD = MessageSchema(
    "BeginTransactionRecord",
    "metadata",
    23,
    "0",
    "0+",
    (Field("name", "string", "0+", nullable="0+", tag=0, tagged="0+", default="null"),),
)

END_TRANSACTION_RECORD = MessageSchema("EndTransactionRecord", "metadata", 24, "0", "0+", ())

ABORT_TRANSACTION_RECORD = MessageSchema(
    "AbortTransactionRecord",
    "metadata",
    25,
    "0",
    "0+",
    (Field("reason", "string", "0+", nullable="0+", tag=0, tagged="0+", default="null"),),
)

REMOVE_DELEGATION_TOKEN_RECORD = MessageSchema(
    "RemoveDelegationTokenRecord", "metadata", 26, "0", "0+", (Field("tokenId", "string", "0+"),)
)

REGISTER_CONTROLLER_RECORD = MessageSchema(
    "RegisterControllerRecord",
    "metadata",
    27,
    "0",
    "0+",
    (
        Field("controllerId", "int32", "0+"),
        Field("incarnationId", "uuid", "0+"),
        Field("zkMigrationReady", "bool", "0+"),
        Field(
            "endPoints",
            "[]ControllerEndpoint",
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
            "[]ControllerFeature",
            "0+",
            fields=(
                Field("name", "string", "0+"),
                Field("minSupportedVersion", "int16", "0+"),
                Field("maxSupportedVersion", "int16", "0+"),
            ),
        ),
    ),
)

CLEAR_ELR_RECORD = MessageSchema("ClearElrRecord", "metadata", 28, "0", "0+", (Field("topicName", "string", "0+"),))

UNREGISTER_CONTROLLER_RECORD = MessageSchema(
    "UnregisterControllerRecord", "metadata", 29, "0", "0+", (Field("controllerId", "int32", "0+"),)
)

RECORDS: dict[int, MessageSchema] = {
    0: REGISTER_BROKER_RECORD,
    1: UNREGISTER_BROKER_RECORD,
    2: TOPIC_RECORD,
    3: PARTITION_RECORD,
    4: CONFIG_RECORD,
    5: PARTITION_CHANGE_RECORD,
    7: FENCE_BROKER_RECORD,
    8: UNFENCE_BROKER_RECORD,
    9: REMOVE_TOPIC_RECORD,
    10: DELEGATION_TOKEN_RECORD,
    11: USER_SCRAM_CREDENTIAL_RECORD,
    12: FEATURE_LEVEL_RECORD,
    14: CLIENT_QUOTA_RECORD,
    15: PRODUCER_IDS_RECORD,
    17: BROKER_REGISTRATION_CHANGE_RECORD,
    18: ACCESS_CONTROL_ENTRY_RECORD,
    19: REMOVE_ACCESS_CONTROL_ENTRY_RECORD,
    20: NO_OP_RECORD,
    21: ZK_MIGRATION_STATE_RECORD,
    22: REMOVE_USER_SCRAM_CREDENTIAL_RECORD,
    23: BEGIN_TRANSACTION_RECORD,
    24: END_TRANSACTION_RECORD,
    25: ABORT_TRANSACTION_RECORD,
    26: REMOVE_DELEGATION_TOKEN_RECORD,
    27: REGISTER_CONTROLLER_RECORD,
    28: CLEAR_ELR_RECORD,
    29: UNREGISTER_CONTROLLER_RECORD,
}
