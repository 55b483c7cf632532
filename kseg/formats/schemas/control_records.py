"""Messages of control records.

Written by tools/read_schemas.py from Kafka 4.4.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

CONTROL_RECORD_TYPE_SCHEMA = MessageSchema(
    "ControlRecordTypeSchema", "data", None, "0", "none", (Field("type", "int16", "0+"),)
)

END_TXN_MARKER = MessageSchema("EndTxnMarker", "data", None, "0", "none", (Field("coordinatorEpoch", "int32", "0+"),))

KRAFT_VERSION_RECORD = MessageSchema(
    "KRaftVersionRecord",
    "data",
    None,
    "0",
    "0+",
    (
        Field("version", "int16", "0+"),
        Field("kRaftVersion", "int16", "0+"),
    ),
)

LEADER_CHANGE_MESSAGE = MessageSchema(
    "LeaderChangeMessage",
    "data",
    None,
    "0-1",
    "0+",
    (
        Field("version", "int16", "0+"),
        Field("leaderId", "int32", "0+"),
        Field(
            "voters",
            "[]Voter",
            "0+",
            fields=(
                Field("voterId", "int32", "0+"),
                Field("voterDirectoryId", "uuid", "1+"),
            ),
        ),
        Field(
            "grantingVoters",
            "[]Voter",
            "0+",
            fields=(
                Field("voterId", "int32", "0+"),
                Field("voterDirectoryId", "uuid", "1+"),
            ),
        ),
    ),
)

SNAPSHOT_FOOTER_RECORD = MessageSchema(
    "SnapshotFooterRecord", "data", None, "0", "0+", (Field("version", "int16", "0+"),)
)

SNAPSHOT_HEADER_RECORD = MessageSchema(
    "SnapshotHeaderRecord",
    "data",
    None,
    "0",
    "0+",
    (
        Field("version", "int16", "0+"),
        Field("lastContainedLogTimestamp", "int64", "0+"),
    ),
)

VOTERS_RECORD = MessageSchema(
    "VotersRecord",
    "data",
    None,
    "0",
    "0+",
    (
        Field("version", "int16", "0+"),
        Field(
            "voters",
            "[]Voter",
            "0+",
            fields=(
                Field("voterId", "int32", "0+"),
                Field("voterDirectoryId", "uuid", "0+"),
                Field(
                    "endpoints",
                    "[]Endpoint",
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
        ),
    ),
)
