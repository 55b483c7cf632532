"""Kinds of findings in indexes and producer snapshots."""

from kseg.findings.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_REINDEX = (
    "Run `kseg reindex PATH --to DIR` to rebuild it, and replace it while the broker is down. Or delete the segment's"
    " `.index`: at startup a broker rebuilds all indexes of a segment without an `.index`. A broker never rebuilds"
    " another index alone."
)
_REPLICA_OR_BACKUP = (
    "Before a broker starts on the directory, take an intact replica if there is one, or restore the file from a"
    " backup."
)

INDEX_FINDINGS: dict[str, FindingKind] = {
    # indexes
    "index-missing": FindingKind(
        _WARNING,
        "A segment has no .index, or it has no .timeindex although other segments have one.",
        "The data is safe. If the .index is missing, a broker rebuilds the segment's indexes at startup. If only the"
        " .timeindex is missing, it creates an empty one: lookups by time and retention by time then go wrong.",
        "Run `kseg reindex PATH --to DIR` to rebuild them, and put them in place while the broker is down.",
    ),
    "index-unreadable": FindingKind(
        _ERROR,
        "An index can't be opened, or the disk can't read its bytes.",
        "The broker fails there and takes the log directory offline.",
        _REINDEX,
    ),
    "index-cut": FindingKind(
        _WARNING,
        "An index file's size isn't a multiple of its entry size.",
        "Brokers ignore the bytes at the end. Some releases reject the file and rebuild it at startup.",
        _REINDEX,
    ),
    "index-unsorted": FindingKind(
        _ERROR,
        "Entries of an .index or .timeindex don't increase.",
        "Lookups use binary search, so they miss records or fail.",
        _REINDEX,
    ),
    "index-entry": FindingKind(
        _ERROR,
        "An entry of an .index doesn't point at a batch, or points at a batch that neither holds nor precedes its"
        " offset.",
        "Lookups that use it miss records, or the broker fails to read there.",
        _REINDEX,
    ),
    "index-sparse": FindingKind(
        _WARNING,
        "A stretch of the log without an entry in the .index is far longer than index.interval.bytes and one append.",
        "Lookups have to scan this stretch.",
        _REINDEX,
    ),
    "index-preallocated": FindingKind(
        _NOTE,
        "An index of a segment other than the last one ends in zeros. The broker was killed before it could cut it.",
        "None: readers stop at the zeros. The file only uses space.",
        "Nothing. To free the space, run `kseg reindex PATH --to DIR`.",
    ),
    "index-old-entries": FindingKind(
        _NOTE,
        "Entries of the active segment's preallocated .index or .timeindex don't match the log. When a broker"
        " recovers or truncates a log, it rewrites the index from the start. Old entries remain after the valid"
        " entries.",
        "None: the broker knows where its own entries end. If it is killed, it rebuilds the index.",
        "Nothing: the broker cuts them off when it rolls the segment or stops.",
    ),
    "time-index-entry": FindingKind(
        _WARNING,
        "An entry of a .timeindex doesn't have the largest timestamp up to its offset.",
        "Lookups by time miss records or take too long, and retention by time goes wrong.",
        _REINDEX,
    ),
    "time-index-ends-early": FindingKind(
        _WARNING,
        "A closed segment's .timeindex doesn't end with the segment's largest timestamp.",
        "A broker takes the last entry as the segment's largest timestamp. Lookups by time miss the segment, and"
        " retention by time deletes it early.",
        _REINDEX,
    ),
    "transaction-unindexed": FindingKind(
        _ERROR,
        "The log has an aborted transaction that the .txnindex lacks.",
        "Consumers with read_committed get its records as if they were committed.",
        _REINDEX,
    ),
    "transaction-unfounded": FindingKind(
        _ERROR,
        "A .txnindex has an aborted transaction that the log lacks, or that begins later in the log.",
        "Consumers with read_committed may not get committed records of that producer.",
        _REINDEX,
    ),
    "orphan-index": FindingKind(
        _ERROR,
        "An index has no .log: the segment's log is lost.",
        "The broker deletes the index at startup, and continues without the segment's records.",
        _REPLICA_OR_BACKUP,
    ),
    "index-inexact": FindingKind(
        _WARNING,
        "Entries of an .index are wrong, but no lookup by offset fails because of them.",
        "None for now: lookups start too early, or at another batch that works as well.",
        _REINDEX,
    ),
    "index-rebuilt": FindingKind(
        _NOTE,
        "An index is wrong, and a broker detects that at startup. It checks the index, or it recovers the log after it"
        " was killed.",
        "None: the broker rebuilds the index.",
        "Nothing.",
    ),
    "unclean-index": FindingKind(
        _ERROR,
        "An index of the last segment ends in zeros, though the broker was stopped cleanly. A clean stop cuts the"
        " zeros off.",
        "The first start fails. The second start works, because the first one removes `.kafka_cleanshutdown`.",
        "Delete the segment's `.index` and `.timeindex` while the broker is down. It rebuilds both at startup.",
    ),
    "time-index-zeros": FindingKind(
        _ERROR,
        "The first segment's .timeindex ends in zeros. A broker takes the zeros as the segment's largest timestamp"
        " (KAFKA-10207).",
        "Retention by time deletes the segment as soon as the broker runs. Lookups by time miss it.",
        _REINDEX,
    ),
    # producer snapshots
    "snapshot-unreadable": FindingKind(
        _WARNING,
        "A producer snapshot is incomplete, has an unknown version, or its CRC is wrong.",
        "The data is safe. If a broker needs the snapshot at startup, it deletes it and reads the log instead. Other"
        " snapshots remain.",
        "Run `kseg reindex PATH --to DIR` to rebuild it from the log, and replace it while the broker is down.",
    ),
    "snapshot-content": FindingKind(
        _WARNING,
        "An entry of a producer snapshot contradicts the log up to the snapshot's offset.",
        "The broker may reject the producer's next batch, accept a duplicate, or wait for a transaction that has"
        " ended.",
        "Run `kseg reindex PATH --to DIR` to rebuild it from the log, and replace it while the broker is down. Don't"
        " delete a partition's only snapshot: after a clean stop a broker then knows no producer and no open"
        " transaction.",
    ),
    "producer-state-wrong": FindingKind(
        _ERROR,
        "The newest producer snapshot contradicts the log up to its offset. A broker resumes from this snapshot at"
        " start.",
        "Consumers with read_committed may get uncommitted records, or wait for a transaction that has ended. The"
        " broker may reject a producer's next batch, or accept a duplicate.",
        "Run `kseg reindex PATH --to DIR` to rebuild it from the log, and replace it while the broker is down.",
    ),
    "producer-state-missing": FindingKind(
        _ERROR,
        "A transaction is open and the directory has no producer snapshot, though the broker was stopped cleanly.",
        "After the start the broker doesn't know the transaction. Consumers with read_committed get its records,"
        " though they aren't committed.",
        "Run `kseg reindex PATH --to DIR` to create a snapshot from the log, and put it in place while the broker is"
        " down. Or remove `.kafka_cleanshutdown`: the broker then reads its logs at startup.",
    ),
    "snapshot-beyond-end": FindingKind(
        _WARNING,
        "A producer snapshot has an offset after the end of the log, so the log has lost its end.",
        "This copy may have lost acknowledged records. A broker deletes the snapshot at startup.",
        "Compare the log end offset with the other replicas'. If none has more, do nothing: the next start repairs it.",
    ),
}
"""Kinds by id."""
