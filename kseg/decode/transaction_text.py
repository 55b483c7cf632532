"""`__transaction_state` as 0.11 to 4.0 printed it: `producerId:…,state=…,partitions=…`.

Source: TransactionLogMessageParser of DumpLogSegments up to 2.4.0, TransactionLog.formatRecordKeyAndValue after it.
"""

from typing import NamedTuple

from kseg.decode.group_text import read
from kseg.decode.parts import DecodeError, Decoder, Parts, key_version, parts
from kseg.formats.messages import Fields
from kseg.formats.schemas import message_schema
from kseg.releases import Release, Since, value_in

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


class TransactionTexts(NamedTuple):
    """The texts of a line of releases."""

    key: str
    partitions: str
    shows_tombstones: bool
    """`<DELETE>`; earlier releases die at a record without value."""
    names_unknown_keys: bool


TEXTS: Since[TransactionTexts] = (
    ((0, 11), TransactionTexts("transactionalId={}", "Set({})", False, False)),
    ((2, 4, 1), TransactionTexts("transaction_metadata::transactionalId={}", "Set({})", True, False)),
    ((2, 5), TransactionTexts("transaction_metadata::transactionalId={}", "[{}]", True, False)),
    ((3, 4, 1), TransactionTexts("transaction_metadata::transactionalId={}", "[{}]", True, True)),
)


def transaction_text_decoder(release: Release) -> Decoder:
    """The decoder of a release before 4.1."""
    texts = value_in(release, TEXTS)

    def decode(key: bytes | None, value: bytes | None, offset: int) -> Parts:
        version = key_version(key)
        if version != 0 and texts.names_unknown_keys:
            return parts(f"unknown::version={version}", None)
        if version != 0:
            raise DecodeError(f"offset {offset}: unknown key version {version}: the real tool stops here")
        key_text = texts.key.format(read(message_schema("TransactionLogKey"), release, key or b"")["transactionalId"])
        if value is not None:
            return parts(key_text, transaction_text(texts, read(message_schema("TransactionLogValue"), release, value)))
        if texts.shows_tombstones:
            return parts(key_text, "<DELETE>")
        raise DecodeError(f"offset {offset}: the record has no value: the real tool stops here")

    return decode


def transaction_text(texts: TransactionTexts, fields: Fields) -> str:
    """The printed text of a transaction's state."""
    status = fields["transactionStatus"]
    if not 0 <= status < len(STATES):
        raise DecodeError(f"unknown transaction status {status}: the real tool stops here")
    return (
        f"producerId:{fields['producerId']},producerEpoch:{fields['producerEpoch']},state={STATES[status]},"
        f"partitions={partitions_text(texts, fields)},"
        f"txnLastUpdateTimestamp={fields['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={fields['transactionTimeoutMs']}"
    )


def partitions_text(texts: TransactionTexts, fields: Fields) -> str:
    """A transaction's partitions, each once and in the file's order; the real tool has a hash table's order.

    An empty transaction has none, whatever is written. A set's text separates them with `, `, a list's with `,`.
    """
    topics = fields["transactionPartitions"]
    if fields["transactionStatus"] == 0:
        topics = []
    if topics is None:
        raise DecodeError("the transaction's partitions are null: the real tool stops here")
    names = dict.fromkeys(f"{topic['topic']}-{partition}" for topic in topics for partition in topic["partitionIds"])
    return texts.partitions.format((", " if texts.partitions.startswith("Set") else ",").join(names))
