"""Messages of what consumers put into their groups' subscriptions and assignments.

Written by tools/read_schemas.py from Kafka 4.4.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

CONSUMER_PROTOCOL_ASSIGNMENT = MessageSchema(
    "ConsumerProtocolAssignment",
    "data",
    None,
    "0-3",
    "none",
    (
        Field(
            "assignedPartitions",
            "[]TopicPartition",
            "0+",
            fields=(
                Field("topic", "string", "0+"),
                Field("partitions", "[]int32", "0+"),
            ),
        ),
        Field("userData", "bytes", "0+", nullable="0+", default="null"),
    ),
)

CONSUMER_PROTOCOL_SUBSCRIPTION = MessageSchema(
    "ConsumerProtocolSubscription",
    "data",
    None,
    "0-3",
    "none",
    (
        Field("topics", "[]string", "0+"),
        Field("userData", "bytes", "0+", nullable="0+", default="null"),
        Field(
            "ownedPartitions",
            "[]TopicPartition",
            "1+",
            fields=(
                Field("topic", "string", "1+"),
                Field("partitions", "[]int32", "1+"),
            ),
        ),
        Field("generationId", "int32", "2+", default=-1),
        Field("rackId", "string", "3+", nullable="3+", default="null"),
    ),
)
