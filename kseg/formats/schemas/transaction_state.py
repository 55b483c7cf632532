"""Messages of `__transaction_state`.

Written by tools/read_schemas.py from Kafka 4.4.0.
"""

from kseg.formats.schemas.schema import Field, MessageSchema

TRANSACTION_LOG_KEY = MessageSchema(
    "TransactionLogKey", "coordinator-key", 0, "0", "none", (Field("transactionalId", "string", "0"),)
)

TRANSACTION_LOG_VALUE = MessageSchema(
    "TransactionLogValue",
    "coordinator-value",
    0,
    "0-1",
    "1+",
    (
        Field("producerId", "int64", "0+"),
        Field("previousProducerId", "int64", "1+", tag=0, tagged="1+", default=-1),
        Field("nextProducerId", "int64", "1+", tag=1, tagged="1+", default=-1),
        Field("producerEpoch", "int16", "0+"),
        Field("nextProducerEpoch", "int16", "1+", tag=3, tagged="1+", default=-1),
        Field("transactionTimeoutMs", "int32", "0+"),
        Field("transactionStatus", "int8", "0+"),
        Field(
            "transactionPartitions",
            "[]PartitionsSchema",
            "0+",
            nullable="0+",
            fields=(
                Field("topic", "string", "0+"),
                Field("partitionIds", "[]int32", "0+"),
            ),
        ),
        Field("transactionLastUpdateTimestampMs", "int64", "0+"),
        Field("transactionStartTimestampMs", "int64", "0+"),
        Field("clientTransactionVersion", "int16", "1+", tag=2, tagged="1+"),
    ),
)

KEYS: dict[int, MessageSchema] = {
    0: TRANSACTION_LOG_KEY,
}

VALUES: dict[int, MessageSchema] = {
    0: TRANSACTION_LOG_VALUE,
}
