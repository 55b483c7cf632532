"""Messages of `__cluster_metadata` as 3.0 and 3.1 had them, in the same versions as later but with other fields.

Written by tools/read_schemas.py from Kafka 3.1.2.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

DELEGATION_TOKEN_RECORD = MessageSchema(
    "DelegationTokenRecord",
    "metadata",
    10,
    "0",
    "0+",
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
    "0+",
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
    "0+",
    (
        Field("name", "string", "0+"),
        Field("minFeatureLevel", "int16", "0+"),
        Field("maxFeatureLevel", "int16", "0+"),
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
        Field("producerIdsEnd", "int64", "0+"),
    ),
)

REMOVE_FEATURE_LEVEL_RECORD = MessageSchema(
    "RemoveFeatureLevelRecord", "metadata", 16, "0", "0+", (Field("name", "string", "0+"),)
)

RECORDS: dict[int, MessageSchema] = {
    10: DELEGATION_TOKEN_RECORD,
    11: USER_SCRAM_CREDENTIAL_RECORD,
    12: FEATURE_LEVEL_RECORD,
    15: PRODUCER_IDS_RECORD,
    16: REMOVE_FEATURE_LEVEL_RECORD,
}
