"""Kinds of findings in indexes and producer snapshots."""

from kseg.findings.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_REINDEX = (
    "Run `kseg reindex PATH --to DIR` to rebuild the index, and replace it while the broker is down."
    " Alternatively, delete the `.index` of the segment: if it is missing at startup, the broker rebuilds all"
    " indexes of the segment. Brokers don't rebuild other missing indexes."
)
_REPLICA_OR_BACKUP = (
    "Before you start a broker on this directory, use an intact replica if there is one, or restore the file from"
    " a backup."
)

INDEX_FINDINGS: dict[str, FindingKind] = {
    # indexes
    "index-missing": FindingKind(
        _WARNING,
        "A segment has no .index file, or it has no .timeindex file although other segments do.",
        "The data is safe. If the .index is missing, a broker rebuilds the indexes of the segment at startup. If"
        " only the .timeindex is missing, the broker creates an empty one, and then lookups by timestamp and"
        " time-based retention give wrong results.",
        "Run `kseg reindex PATH --to DIR` to rebuild the indexes, and put them in place while the broker is down.",
    ),
    "index-unreadable": FindingKind(
        _ERROR,
        "An index can't be opened, or can't be read from the disk.",
        "When the broker reads the index, it fails and takes the log directory offline.",
        _REINDEX,
    ),
    "index-cut": FindingKind(
        _WARNING,
        "The size of an index file isn't a multiple of the entry size.",
        "Brokers ignore the extra bytes at the end of the file. Some versions reject the file and rebuild it at"
        " startup.",
        _REINDEX,
    ),
    "index-unsorted": FindingKind(
        _ERROR,
        "The entries of an .index or .timeindex file aren't in ascending order.",
        "Because lookups use binary search, they miss records or fail.",
        _REINDEX,
    ),
    "index-entry": FindingKind(
        _ERROR,
        "An entry of an .index file doesn't point to a batch, or it points to a batch after the one that contains"
        " its offset.",
        "Lookups that use the entry miss records, or the broker fails when it reads at the wrong position.",
        _REINDEX,
    ),
    "index-sparse": FindingKind(
        _WARNING,
        "A section of the log has no entry in the .index file, although it is much longer than"
        " index.interval.bytes plus one append.",
        "Lookups are slow because the broker has to scan the whole section.",
        _REINDEX,
    ),
    "index-preallocated": FindingKind(
        _NOTE,
        "An index of a closed segment ends in zeros, because the broker was killed before it could truncate the file.",
        "This is harmless because readers stop at the zeros. The file just takes up space.",
        "No action is needed. To free the space, run `kseg reindex PATH --to DIR`.",
    ),
    "index-old-entries": FindingKind(
        _NOTE,
        "The preallocated .index or .timeindex of the active segment contains entries that don't match the log."
        " When a broker recovers or truncates a log, it rewrites the index from the start, and old entries remain"
        " after the valid ones.",
        "This is harmless because the broker knows where its own entries end. If the broker is killed, it"
        " rebuilds the index.",
        "No action is needed. The broker removes the old entries when it rolls the segment or shuts down.",
    ),
    "time-index-entry": FindingKind(
        _WARNING,
        "An entry of a .timeindex file doesn't contain the largest timestamp up to its offset.",
        "Lookups by timestamp miss records or take too long, and time-based retention deletes segments too early"
        " or too late.",
        _REINDEX,
    ),
    "time-index-ends-early": FindingKind(
        _WARNING,
        "The .timeindex of a closed segment doesn't end with the largest timestamp of the segment.",
        "The broker assumes that the last entry is the largest timestamp of the segment. Lookups by timestamp"
        " miss the segment, and time-based retention deletes it too early.",
        _REINDEX,
    ),
    "transaction-unindexed": FindingKind(
        _ERROR,
        "The log contains an aborted transaction that is missing from the .txnindex file.",
        "Consumers that use read_committed receive the aborted records as if they had been committed.",
        _REINDEX,
    ),
    "transaction-unfounded": FindingKind(
        _ERROR,
        "A .txnindex file lists an aborted transaction that isn't in the log, or that starts later in the log.",
        "Consumers that use read_committed may miss committed records from that producer.",
        _REINDEX,
    ),
    "orphan-index": FindingKind(
        _ERROR,
        "An index file has no matching .log file, so the log of the segment is lost.",
        "The broker deletes the index at startup and continues without the records of the segment.",
        _REPLICA_OR_BACKUP,
    ),
    "index-inexact": FindingKind(
        _WARNING,
        "Some entries of an .index file are wrong, but offset lookups still return the right records.",
        "There is no immediate risk: lookups start reading too early, or at a different batch that works as well.",
        _REINDEX,
    ),
    "index-rebuilt": FindingKind(
        _NOTE,
        "An index is wrong, but a broker detects the problem at startup when it checks the index or recovers the"
        " log after a crash.",
        "This is harmless because the broker rebuilds the index.",
        "No action is needed.",
    ),
    "unclean-index": FindingKind(
        _ERROR,
        "An index of the last segment ends in zeros, even though the broker was stopped cleanly and should have"
        " removed them.",
        "The first start of the broker fails. The second start succeeds, because the first one has removed"
        " `.kafka_cleanshutdown`.",
        "Delete the `.index` and `.timeindex` of the segment while the broker is down. The broker rebuilds both"
        " at startup.",
    ),
    "time-index-zeros": FindingKind(
        _ERROR,
        "The .timeindex of the first segment ends in zeros, which a broker reads as the largest timestamp of the"
        " segment (KAFKA-10207).",
        "Time-based retention deletes the segment as soon as the broker is running. Lookups by timestamp miss the"
        " segment.",
        _REINDEX,
    ),
    # producer snapshots
    "snapshot-unreadable": FindingKind(
        _WARNING,
        "A producer snapshot is incomplete, has an unknown version, or has a wrong CRC.",
        "The data is safe. If a broker needs the snapshot at startup, it deletes the file and reads the log"
        " instead. It keeps the other snapshots.",
        "Run `kseg reindex PATH --to DIR` to rebuild the snapshot from the log, and replace it while the broker"
        " is down.",
    ),
    "snapshot-content": FindingKind(
        _WARNING,
        "An entry of a producer snapshot doesn't match the log up to the snapshot offset.",
        "The broker may reject the next batch of the producer, accept a duplicate, or wait for a transaction that"
        " has already ended.",
        "Run `kseg reindex PATH --to DIR` to rebuild the snapshot from the log, and replace it while the broker"
        " is down. Don't delete the only snapshot of a partition: after a clean shutdown, the broker would forget"
        " all producers and open transactions.",
    ),
    "producer-state-wrong": FindingKind(
        _ERROR,
        "The newest producer snapshot, from which a broker restores its producer state at startup, doesn't match"
        " the log.",
        "Consumers that use read_committed may receive uncommitted records, or wait for a transaction that has"
        " already ended. The broker may reject the next batch of a producer, or accept a duplicate.",
        "Run `kseg reindex PATH --to DIR` to rebuild the snapshot from the log, and replace it while the broker"
        " is down.",
    ),
    "producer-state-missing": FindingKind(
        _ERROR,
        "A transaction is open, but the directory has no producer snapshot, even though the broker was stopped"
        " cleanly.",
        "After a restart, the broker doesn't know about the transaction. Consumers that use read_committed"
        " receive its records although they aren't committed.",
        "Run `kseg reindex PATH --to DIR` to create a snapshot from the log, and put it in place while the broker"
        " is down. Alternatively, remove `.kafka_cleanshutdown`, so the broker reads its logs at startup.",
    ),
    "snapshot-beyond-end": FindingKind(
        _WARNING,
        "The offset of a producer snapshot is after the end of the log, so the end of the log is lost.",
        "Acknowledged records may be lost in this copy. A broker deletes the snapshot at startup.",
        "Compare the log end offset with the offsets of the other replicas. If no replica has more records, no"
        " action is needed: the broker deletes the snapshot at the next start.",
    ),
}
"""Kinds by id."""
