"""All binary formats: what each is, its grammar, and the kind of file that holds nothing but entries of it."""

from typing import Any, NamedTuple

from kseg.formats import batch, control, index, legacy, snapshot
from kseg.formats.names import FileKind


class BinaryFormat(NamedTuple):
    """A format: its title, a sentence about it, and its grammar.

    kind: of files that hold nothing but entries of this format.
    """

    title: str
    about: str
    grammar: Any
    kind: FileKind | None = None


FORMATS: dict[str, BinaryFormat] = {
    "log-entry": BinaryFormat("Log entry, v0 and v1", "In a .log up to 0.10; its message follows.", legacy.LOG_ENTRY),
    "message-v0": BinaryFormat("Message, v0", "Up to 0.9.", legacy.MESSAGE_V0),
    "message-v1": BinaryFormat("Message, v1", "0.10.0 to 0.10.2.", legacy.MESSAGE_V1),
    "record-batch": BinaryFormat(
        "Record batch, v2", "From 0.11; the records follow, compressed as one.", batch.BATCH_HEADER
    ),
    "record": BinaryFormat("Record, v2", "In a batch, one after another.", batch.RECORD),
    "record-header": BinaryFormat("Header of a record", "In a v2 record.", batch.RECORD_HEADER),
    "offset-index": BinaryFormat(
        "Entry of an .index",
        "8 bytes; a preallocated file ends in zeros.",
        index.OFFSET_INDEX_ENTRY,
        FileKind.OFFSET_INDEX,
    ),
    "time-index": BinaryFormat(
        "Entry of a .timeindex", "12 bytes; from 0.10.1.", index.TIME_INDEX_ENTRY, FileKind.TIME_INDEX
    ),
    "transaction-index": BinaryFormat(
        "Entry of a .txnindex", "34 bytes; from 0.11.", index.ABORTED_TRANSACTION, FileKind.TRANSACTION_INDEX
    ),
    "producer-snapshot": BinaryFormat("Producer snapshot", "A .snapshot; from 0.11.", snapshot.PRODUCER_SNAPSHOT),
    "producer-entry": BinaryFormat("Producer in a snapshot", "46 bytes.", snapshot.PRODUCER_ENTRY),
    "control-record-key": BinaryFormat("Key of a control record", "From 0.11.", control.CONTROL_RECORD_KEY),
    "end-txn-marker": BinaryFormat("Value of ABORT and COMMIT", "From 0.11.", control.END_TXN_MARKER),
    "leader-change": BinaryFormat("Value of LEADER_CHANGE", "KRaft.", control.LEADER_CHANGE),
    "snapshot-header": BinaryFormat("Value of SNAPSHOT_HEADER", "KRaft.", control.SNAPSHOT_HEADER),
    "snapshot-footer": BinaryFormat("Value of SNAPSHOT_FOOTER", "KRaft.", control.SNAPSHOT_FOOTER),
    "kraft-version": BinaryFormat("Value of KRAFT_VERSION", "KRaft, from 3.8.", control.KRAFT_VERSION),
    "kraft-voters": BinaryFormat("Value of KRAFT_VOTERS", "KRaft, from 3.8.", control.VOTERS),
}
"""By the name that `kseg explain --grammar` takes."""
