"""Kinds of findings in indexes and producer snapshots."""

from kseg.findings.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_REINDEX = (
    "`kseg reindex PATH --to DIR` rebuilds it: put the new one in its place while the broker is down. Or delete the"
    " segment's `.index`: at start a broker rebuilds all indexes of a segment that has no `.index`, but never only"
    " another one."
)
_REPLICA_OR_BACKUP = (
    "Take an intact replica if there is one, or the file from a backup; do so before a broker starts on the directory."
)

INDEX_FINDINGS: dict[str, FindingKind] = {
    # indexes
    "index-missing": FindingKind(
        _WARNING,
        "A segment has no .index, or it has no .timeindex although other segments have one.",
        "None for the data. If the .index is missing, a broker rebuilds the segment's indexes at start. If only the"
        " .timeindex is, it makes an empty one: lookups by time and retention by time then go wrong.",
        "`kseg reindex PATH --to DIR` makes them: put them in their place while the broker is down.",
    ),
    "index-unreadable": FindingKind(
        _ERROR,
        "An index can't be opened, or the disk can't read its bytes.",
        "The broker fails there and takes the log directory offline.",
        _REINDEX,
    ),
    "index-cut": FindingKind(
        _WARNING,
        "An index file's size isn't a multiple of its entries' size.",
        "Brokers ignore the bytes at the end; some releases refuse the file and rebuild it at start.",
        _REINDEX,
    ),
    "index-unsorted": FindingKind(
        _ERROR,
        "Entries of an .index or .timeindex don't increase.",
        "Lookups use binary search: they miss records or fail.",
        _REINDEX,
    ),
    "index-entry": FindingKind(
        _ERROR,
        "An entry of an .index doesn't point at a batch, or points at one that neither holds nor precedes its offset.",
        "Lookups that use it miss records, or the broker fails to read there.",
        _REINDEX,
    ),
    "index-sparse": FindingKind(
        _WARNING,
        "A stretch of log without an entry in the .index is far longer than index.interval.bytes and one append.",
        "Lookups have to scan this stretch.",
        _REINDEX,
    ),
    "index-preallocated": FindingKind(
        _NOTE,
        "An index of a segment that isn't the last one ends in zeros: the broker was killed before it could cut it.",
        "None: readers stop at the zeros. The file takes space.",
        "Nothing, or `kseg reindex PATH --to DIR`.",
    ),
    "index-old-entries": FindingKind(
        _NOTE,
        "Entries of the active segment's preallocated .index or .timeindex don't match the log. A broker that recovers"
        " or truncates a log writes its index from the start again, and leaves old entries after those that it uses.",
        "None: the broker knows where its own entries end, and rebuilds the index if it is killed.",
        "Nothing: the broker cuts them off when it rolls the segment or stops.",
    ),
    "time-index-entry": FindingKind(
        _WARNING,
        "The time in an entry of a .timeindex isn't the largest one up to its offset.",
        "Lookups by time miss records or take too long, and retention by time goes wrong.",
        _REINDEX,
    ),
    "time-index-ends-early": FindingKind(
        _WARNING,
        "A closed segment's .timeindex doesn't end with the segment's largest time.",
        "A broker takes the last entry as the largest time: lookups miss the segment, and retention deletes it early.",
        _REINDEX,
    ),
    "transaction-unindexed": FindingKind(
        _ERROR,
        "A transaction was aborted in the log, but the .txnindex doesn't say so.",
        "Consumers with read_committed get its records as if they were committed.",
        _REINDEX,
    ),
    "transaction-unfounded": FindingKind(
        _ERROR,
        "A .txnindex names an aborted transaction that the log doesn't have, or one that begins later in the log.",
        "Consumers with read_committed may lose committed records of that producer.",
        _REINDEX,
    ),
    "orphan-index": FindingKind(
        _ERROR,
        "An index has no .log: the segment's log was lost.",
        "The broker deletes the index at start, and goes on without the segment's records.",
        _REPLICA_OR_BACKUP,
    ),
    "index-inexact": FindingKind(
        _WARNING,
        "Entries of an .index are wrong, but no lookup of an offset goes wrong for them.",
        "None for now: lookups start too early, or at another batch that serves as well.",
        _REINDEX,
    ),
    "index-rebuilt": FindingKind(
        _NOTE,
        "An index is wrong, and a broker finds that out at start: by its own check of the index, or because it recovers"
        " the log after it was killed.",
        "None: it rebuilds the index.",
        "Nothing.",
    ),
    "unclean-index": FindingKind(
        _ERROR,
        "An index of the last segment ends in zeros, though the broker was stopped cleanly and cut it then.",
        "The first start fails. The second one works, since the first has removed the sign of a clean stop.",
        "Delete the segment's `.index` and `.timeindex` while the broker is down: it rebuilds both at start.",
    ),
    "time-index-zeros": FindingKind(
        _ERROR,
        "The first segment's .timeindex ends in zeros, which a broker takes for its largest time (KAFKA-10207).",
        "Retention by time deletes the segment as soon as the broker runs. Lookups by time miss it.",
        _REINDEX,
    ),
    # producer snapshots
    "snapshot-unreadable": FindingKind(
        _WARNING,
        "A producer snapshot is cut, of an unknown version, or its CRC is wrong.",
        "None for the data: if a broker needs it at start, it deletes it and reads the log instead. Others stay.",
        "`kseg reindex PATH --to DIR` makes a new one from the log: put it in its place while the broker is down.",
    ),
    "snapshot-content": FindingKind(
        _WARNING,
        "What a producer snapshot has about a producer contradicts the log up to the snapshot's offset.",
        "The broker may refuse that producer's next batch, accept a duplicate, or wait for a transaction that has"
        " ended.",
        "`kseg reindex PATH --to DIR` makes a new one from the log: put it in its place while the broker is down. Don't"
        " delete a partition's only one: after a clean stop a broker then knows no producer and no open transaction.",
    ),
    "producer-state-wrong": FindingKind(
        _ERROR,
        "The newest producer snapshot, which a broker goes on from at start, contradicts the log up to its offset.",
        "Consumers with read_committed may get what isn't committed, or wait for a transaction that has ended. The"
        " broker may refuse a producer's next batch, or accept a duplicate.",
        "`kseg reindex PATH --to DIR` makes a new one from the log: put it in its place while the broker is down.",
    ),
    "producer-state-missing": FindingKind(
        _ERROR,
        "A transaction is open and the directory has no producer snapshot, though the broker was stopped cleanly.",
        "The broker knows nothing of the transaction after the start: consumers with read_committed get its records,"
        " though they aren't committed.",
        "`kseg reindex PATH --to DIR` makes a snapshot from the log: put it in its place while the broker is down. Or"
        " remove `.kafka_cleanshutdown`: the broker then reads its logs at start.",
    ),
    "snapshot-beyond-end": FindingKind(
        _WARNING,
        "A producer snapshot was taken at an offset after the log's end: the log has lost its end.",
        "Acknowledged records may be lost here. A broker deletes the snapshot at start.",
        "Compare the log end offset with the other replicas'. If none has more, do nothing: the next start repairs it.",
    ),
}
"""Kinds by id."""
