"""Kinds of findings: severity, meaning, risk and what to do, in one table."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.formats.codes import TAIL_KINDS, DamageKind


class Severity(StrEnum):
    """How bad a finding is; notes don't change the exit status."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """What to sort by, the worst first."""
        return list(Severity).index(self)


class FindingKind(NamedTuple):
    """One kind of finding: what it means, what may happen, and what to do."""

    severity: Severity
    meaning: str
    risk: str
    next_step: str


_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_SALVAGE = "Take an intact replica if there is one; otherwise `kseg salvage PATH --to DIR` keeps what is intact."
_CUT_AT_RECOVERY = (
    "Recovery cuts the log there and deletes all later segments; without recovery, every read there fails."
)
_UNREADABLE_RECORDS = "The broker serves the batch, since its CRC is right, and consumers fail there again and again."
_DROP = (
    "Take an intact replica if there is one. Otherwise move consumers past the batch (`kafka-consumer-groups.sh"
    " --reset-offsets`), which keeps its bytes. If you can't move them, or if the cleaner fails at the batch,"
    " `kseg salvage PATH --drop-unreadable --to DIR` leaves it out."
)
_REINDEX = (
    "`kseg reindex PATH --to DIR` rebuilds it: put the new one in its place while the broker is down. Or delete the"
    " segment's `.index`: at start a broker rebuilds all indexes of a segment that has no `.index`, but never only"
    " another one."
)
_REINDEX_EPOCHS = (
    "`kseg reindex PATH --to DIR` makes a new one from the log: put it in its place while the broker is down. Don't"
    " just delete the file: after a clean stop no broker writes it again."
)
_REPLICA_OR_BACKUP = (
    "Take an intact replica if there is one, or the file from a backup; do so before a broker starts on the directory."
)
_REPLICA_OR_NOTHING = "Take an intact replica if there is one. Nothing else repairs it: the finding stays."

FINDINGS: dict[str, FindingKind] = {
    # bytes of the log
    "unreadable": FindingKind(
        _ERROR,
        "The disk can't read some bytes of a log, or the log can't be opened.",
        "The broker fails there and takes the log directory offline. The contents of these blocks are lost here.",
        "If the disk is failing, copy it first (`ddrescue`). Take an intact replica, or `kseg salvage PATH --to DIR`.",
    ),
    "bad-length": FindingKind(
        _ERROR,
        "A length field is too small for its format, or goes beyond the file.",
        _CUT_AT_RECOVERY,
        _SALVAGE,
    ),
    "bad-magic": FindingKind(
        _ERROR, "These bytes aren't a batch of any format: the magic isn't 0, 1 or 2.", _CUT_AT_RECOVERY, _SALVAGE
    ),
    "bad-crc": FindingKind(
        _ERROR, "A batch's CRC doesn't match its bytes: something changed them.", _CUT_AT_RECOVERY, _SALVAGE
    ),
    "bad-codec": FindingKind(
        _ERROR, "A batch's attributes name a codec that its format doesn't have.", _UNREADABLE_RECORDS, _DROP
    ),
    "bad-body": FindingKind(
        _ERROR, "A batch's CRC is right, but its records can't be decompressed.", _UNREADABLE_RECORDS, _DROP
    ),
    "bad-record": FindingKind(
        _ERROR, "A batch's CRC is right, but a record in it can't be read.", _UNREADABLE_RECORDS, _DROP
    ),
    "bad-count": FindingKind(
        _ERROR, "A batch holds more or fewer records than its header counts.", _UNREADABLE_RECORDS, _DROP
    ),
    "torn-tail": FindingKind(
        _WARNING,
        "The last segment ends in the middle of a batch: the writer was stopped, or is writing right now.",
        "None for whole batches: a broker cuts off the incomplete one when it recovers the log.",
        "If a broker is running, run the command again. If the broker was killed, start it. If it was stopped cleanly,"
        " it would cut nothing off and append after the incomplete batch: use `kseg salvage PATH --to DIR` first.",
    ),
    "zero-tail": FindingKind(
        _NOTE,
        "The last segment ends in zeros: it is preallocated, or the machine failed before its data reached the disk.",
        "None if it is preallocated; otherwise the data there is lost. Recovery cuts the zeros off.",
        "Compare the log end offset with the other replicas'. If the file isn't preallocated and the broker was stopped"
        " cleanly, it would fail there: use `kseg salvage PATH --to DIR` first.",
    ),
    "unclean-tail": FindingKind(
        _ERROR,
        "The last segment ends in zeros or in the middle of a batch, though the broker was stopped cleanly.",
        "A broker that trusts the clean stop doesn't cut that off: it refuses to start once because of zeros, and"
        " appends after half a batch, so that all later reads fail there.",
        "Remove `.kafka_cleanshutdown` from the log directory: the broker then recovers its logs, and cuts the end off."
        " Compare the log end offset with the other replicas' before that.",
    ),
    "log-end-lost": FindingKind(
        _ERROR,
        "Several files tell that the log went on beyond its end: checkpoints of the log directory, snapshots of"
        " producers.",
        "Records that had been flushed or replicated are lost here; the broker goes on from the end that is left.",
        "Compare the log end offset with the other replicas'. If one has more, don't let this one become leader before"
        " it has fetched the rest. If none has more, the records are lost.",
    ),
    "cut-segment": FindingKind(
        _ERROR,
        "A segment that isn't the last one ends in zeros or in the middle of a batch.",
        "The data there is lost. Consumers stop there, and recovery deletes all later segments.",
        _SALVAGE,
    ),
    # offsets
    "offsets-fall": FindingKind(
        _ERROR,
        "A batch begins at or below the last offset before it: batches are out of order, or an offset was changed.",
        "Lookups miss records, and a broker that recovers the log may fail.",
        _SALVAGE,
    ),
    "duplicate-batch": FindingKind(
        _ERROR,
        "The same batch, with the same offsets and the same CRC, is in the log twice.",
        "Consumers may get its records twice; a broker that recovers the log may fail.",
        "`kseg salvage PATH --to DIR` keeps one of them.",
    ),
    "offsets-lost": FindingKind(
        _ERROR,
        "Offsets are missing that compaction can't have removed, since the records next to them have no key.",
        "Their records are lost here; consumers skip them without notice.",
        "`kseg salvage` takes several replicas and fills holes in one from the others. If no replica has them, nothing"
        " brings them back: the finding stays.",
    ),
    "offsets-missing": FindingKind(
        _WARNING,
        "Offsets are missing. Nothing shows that the topic was compacted, but its records have keys, so it may be.",
        "Records are lost here, unless the topic is or was compacted.",
        "Look at the topic's cleanup.policy. If it isn't compacted, `kseg salvage` of several replicas fills the hole.",
    ),
    "offsets-compacted": FindingKind(
        _NOTE, "Offsets are missing because compaction removed their records.", "None.", "Nothing."
    ),
    "segment-overlap": FindingKind(
        _ERROR,
        "A segment holds offsets that belong to the next one.",
        "Offsets exist twice; which record a consumer gets depends on where it starts to read.",
        _SALVAGE,
    ),
    "offset-below-base": FindingKind(
        _ERROR,
        "A segment holds an offset below the base offset that names its file.",
        "The segment can't be indexed, and lookups miss the record. The file may have been renamed.",
        "If its files were renamed, name them after its first offset; otherwise " + _SALVAGE[0].lower() + _SALVAGE[1:],
    ),
    "offset-too-far": FindingKind(
        _ERROR,
        "A segment holds an offset more than 2³¹ - 1 above its base offset.",
        "Its indexes can't hold the offset. Brokers from 1.1.1 on split such a segment at start, older ones fail.",
        "Delete the segment's `.index` while the broker is down: at start a broker from 2.0 on splits the segment.",
    ),
    "record-offsets": FindingKind(
        _ERROR,
        "Offsets of records within a batch don't increase, or lie outside the range in its header.",
        "Consumers skip records or get stuck.",
        _DROP,
    ),
    # times
    "max-timestamp": FindingKind(
        _WARNING,
        "The largest time in a batch's header isn't that of its records.",
        "Lookups by time give wrong results, and retention keeps the segment too long or not long enough.",
        "Take an intact replica if there is one. Nothing else repairs it: look up records by offset.",
    ),
    # leader epochs
    "leader-epoch-falls": FindingKind(
        _WARNING,
        "A batch has a lower leader epoch than one before it; the CRC doesn't cover this field.",
        "Replicas may be cut at a wrong offset when leadership changes.",
        _REPLICA_OR_NOTHING,
    ),
    "leader-epoch-checkpoint": FindingKind(
        _WARNING,
        "leader-epoch-checkpoint has a different leader epoch for an offset than the batches there.",
        "Replicas may be cut at a wrong offset when leadership changes.",
        _REINDEX_EPOCHS,
    ),
    "leader-epoch-unsorted": FindingKind(
        _WARNING,
        "Epochs or start offsets in leader-epoch-checkpoint don't increase.",
        "Replicas may be cut at a wrong offset when leadership changes.",
        _REINDEX_EPOCHS,
    ),
    "leader-epochs-missing": FindingKind(
        _WARNING,
        "leader-epoch-checkpoint is missing or empty, although the last batches have leader epochs.",
        "A replica truncates to its high watermark when leadership changes, as before KIP-101: acknowledged records may"
        " be lost, and replicas may differ. Lookups by leader epoch find nothing.",
        "`kseg reindex PATH --to DIR` makes one from the log: put it in its place while the broker is down; after a"
        " clean stop no broker writes it again. If the topic's `message.format.version` was just lowered below 0.11, do"
        " nothing: a broker removes the file then.",
    ),
    "leader-epochs-cleared": FindingKind(
        _NOTE,
        "The epochs of the first batches aren't in leader-epoch-checkpoint. A broker clears those below the log start"
        " offset (DeleteRecords), and all of them when the topic's message format is lowered.",
        "None: if asked for such an epoch, a broker answers with the first one that it knows.",
        "Nothing; or move the file away and let `kseg reindex PATH --to DIR` make a new one from the log.",
    ),
    "leader-epoch-beyond-end": FindingKind(
        _NOTE,
        "leader-epoch-checkpoint names an epoch that begins after the log's end.",
        "None: a broker cuts such epochs off at start. The log may have lost its end.",
        "Compare the log end offset with the other replicas'.",
    ),
    # producers
    "sequence-gap": FindingKind(
        _WARNING,
        "A producer's sequence numbers jump ahead: some of its batches are missing in between.",
        "Its records are lost here, unless the broker had forgotten the producer (`producer.id.expiration.ms`).",
        _REPLICA_OR_NOTHING,
    ),
    "sequence-repeated": FindingKind(
        _WARNING,
        "A producer's sequence numbers are repeated or out of order.",
        "Records may be there twice, unless the broker had forgotten the producer (`producer.id.expiration.ms`).",
        "Compare the batches' records: `kseg dump -o json`. Take an intact replica if there is one; otherwise the"
        " finding stays.",
    ),
    "producer-epoch-falls": FindingKind(
        _WARNING,
        "A batch has a lower producer epoch than one of that producer before it.",
        "A producer that had been fenced off went on writing: its transactions may be incomplete.",
        "Look at the producer's batches: `kseg dump -o json --only batches`. Take an intact replica if there is one;"
        " otherwise the finding stays.",
    ),
    "open-transaction": FindingKind(
        _NOTE,
        "A transaction has no end marker yet. Its coordinator will end it, or isn't known here.",
        "None while its producer is alive: consumers with read_committed wait at its first offset.",
        "Nothing, unless it stays open: then run `kseg txns PATH --open` with the log directories of all brokers.",
    ),
    "long-transaction": FindingKind(
        _WARNING,
        "By the broker's clock a transaction has been open for longer than brokers allow by default"
        " (`transaction.max.timeout.ms`), and its coordinator isn't known here.",
        "If it hangs, consumers with read_committed wait at its first offset forever, and compaction stops there.",
        "Run `kseg txns PATH --open` with the log directories of all brokers, or `kafka-transactions.sh find-hanging`,"
        " to see whether it hangs. If it does, the first one prints the command that aborts it.",
    ),
    "hanging-transaction": FindingKind(
        _WARNING,
        "A transaction has no end marker, and `__transaction_state` on the same disks shows that none will come.",
        "Consumers with read_committed wait at its first offset forever, and compaction stops there.",
        "`kseg txns PATH --open` prints the command that aborts it (`kafka-transactions.sh abort`).",
    ),
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
    # the directory and its checkpoints
    "leftover-file": FindingKind(
        _NOTE,
        "This file is left from a deletion, cleaning or write that was not finished.",
        "None: a broker completes or removes it at start.",
        "Nothing. If no broker will use the directory, you can delete `.deleted` and `.cleaned` files.",
    ),
    "leftover-log": FindingKind(
        _ERROR,
        "A log that a broker deletes at start (`.deleted`, `.cleaned`) has records that the partition's log lacks.",
        "They are gone after the next start.",
        "Copy the file before a broker starts. If the log wasn't cut on purpose, give the segment's files their names"
        " without the ending while the broker is down.",
    ),
    "misnamed-file": FindingKind(
        _ERROR,
        "A file in a partition's directory ends as a segment's files do, but isn't named after an offset.",
        "The broker refuses to start.",
        "Move it out of the directory before the broker starts again.",
    ),
    "leftover-directory": FindingKind(
        _NOTE,
        "This partition is about to be deleted, is being moved between disks, or isn't assigned to the broker.",
        "None: the broker deletes what ends in `-delete`, and goes on moving what ends in `-future`. It keeps what ends"
        " in `-stray`, which takes its space until somebody deletes it.",
        "Nothing. A `-stray` one you can delete while the broker is down, if the partition's replicas are complete on"
        " other brokers or disks, or if its topic is gone for good.",
    ),
    "unreadable-text": FindingKind(
        _ERROR,
        "A checkpoint, partition.metadata or meta.properties can't be read, or isn't in the form that Kafka writes.",
        "A broker may refuse its log directory, or forget what was in the file.",
        "While the broker is down: delete a `*-offset-checkpoint` (it is written again; without"
        " log-start-offset-checkpoint, deleted records can be read again until they are deleted again);"
        " `kseg reindex PATH --to DIR` makes leader-epoch-checkpoint and partition.metadata; copy meta.properties from"
        " another log directory of the broker, but with the `directory.id` that `kseg metadata -o json` lists for this"
        " one (`logDirs`): a new id takes the partitions offline.",
    ),
    "checkpoint-beyond-end": FindingKind(
        _WARNING,
        "The recovery point or the high watermark lies after the log's end: the log has lost its end.",
        "Records that had been flushed or replicated are lost here.",
        "Compare the log end offset with the other replicas'. If one has more, don't let this one become leader before"
        " it has fetched the rest; otherwise do nothing: the next start lowers both.",
    ),
    "checkpoint-stale": FindingKind(
        _NOTE,
        "The cleaner's checkpoint lies outside the log.",
        "None: the cleaner starts at the beginning of the log.",
        "Nothing.",
    ),
    "log-start-beyond-end": FindingKind(
        _ERROR,
        "log-start-offset-checkpoint lies after the log's end.",
        "At start the broker deletes all segments and starts an empty log at that offset.",
        "If you still need the records: remove the partition's line from the file while the broker is down (the file's"
        " second line counts the lines after it).",
    ),
    "partition-twice": FindingKind(
        _ERROR,
        "Two log directories of one broker hold the same partition, both in use.",
        "The broker refuses to start.",
        "Keep the one with the larger log end offset, or combine both with `kseg salvage`.",
    ),
    "foreign-directory": FindingKind(
        _ERROR,
        "A directory in a log directory isn't named after a partition.",
        "The broker refuses to start. One that runs isn't disturbed.",
        "Move it out of the log directory before the broker starts again.",
    ),
    # the node and its cluster
    "identity-missing": FindingKind(
        _ERROR,
        "A log directory has no meta.properties, which names its node, its cluster and itself.",
        "The node refuses to start.",
        "Don't format the directory: that gives it a new id, and the broker starts without the partitions in it. Write"
        " the file anew: `version`, `node.id` and `cluster.id` as in another log directory of the node, and the"
        " `directory.id` that `kseg metadata -o json` lists for this one (`logDirs`).",
    ),
    "identity-differs": FindingKind(
        _ERROR,
        "meta.properties contradicts another log directory of the node, or what the metadata have of the directory.",
        "The node refuses to start, or isn't taken for the voter that it was.",
        "If the file was changed, put back what the finding names. If the directory isn't the node's, take it out of"
        " `log.dirs`.",
    ),
    "directory-unknown": FindingKind(
        _WARNING,
        "A log directory's `directory.id` is one that the metadata don't have for its node.",
        "The metadata have the partitions in a directory that is gone: they are offline until the broker has told the"
        " controller where they are now.",
        "If meta.properties was changed or written anew, put back the id that `kseg metadata -o json` has (`logDirs`)."
        " If the directory is new, nothing.",
    ),
    "bootstrap-checkpoint": FindingKind(
        _ERROR,
        "bootstrap.checkpoint is damaged, or doesn't say which `metadata.version` the cluster began with.",
        "A controller refuses to start.",
        "Delete it while the node is down, if `__cluster_metadata-0` has the metadata: a controller starts without it."
        " Or copy another controller's.",
    ),
    "metadata-missing": FindingKind(
        _ERROR,
        "A node's log directories have no `__cluster_metadata-0`, though it is a KRaft node's.",
        "A controller, or a broker that is one, starts as an empty cluster, and each partition becomes a `-stray`. A"
        " broker that is no controller gets the metadata from the controllers again.",
        "If it is in another directory (`metadata.log.dir`), give that one too. Otherwise don't start the node before"
        " it has another voter's copy, or one that `kseg rebuild-metadata` made from the partitions.",
    ),
    "metadata-checkpoint": FindingKind(
        _ERROR,
        "The newest checkpoint of the metadata is damaged, incomplete or another's.",
        "The node refuses to start, or starts with what the checkpoint still has: as an empty cluster, in which each"
        " partition becomes a `-stray`.",
        "Move it away while the node is down: the node then reads the one before it and the log from there on, if"
        " the log reaches back so far. Otherwise take another voter's `__cluster_metadata-0`, or"
        " `kseg rebuild-metadata`.",
    ),
    "metadata-checkpoint-old": FindingKind(
        _WARNING,
        "A checkpoint of the metadata that isn't the newest is damaged, incomplete or another's.",
        "None for a start, which reads the newest one. It doesn't help if that one is damaged.",
        "Move it away while the node is down, or wait: the node deletes it as it gets old.",
    ),
    "metadata-log": FindingKind(
        _WARNING,
        "The metadata's log is damaged where the newest checkpoint has all that was in it.",
        "None if that checkpoint stays readable: the node cuts the log, and goes on from there. Without it, what"
        " follows the damage is lost.",
        "Keep a copy of the newest `.checkpoint`, and let the node start.",
    ),
    "other-owner": FindingKind(
        _ERROR,
        "The user that most of a log directory belongs to can't open a file in it, by the file's owner and mode.",
        "A broker that runs as this user refuses to start, or takes the log directory offline.",
        "Give the file to the broker's user (`chown`, `chmod`) before the broker starts.",
    ),
    "copy-missing": FindingKind(
        _ERROR,
        "The metadata have a partition in this log directory, but there is no directory of it, and no other replica is"
        " in sync.",
        "The broker begins it as an empty one: all its records are gone.",
        "Don't start the broker before the partition's directory is here again: from a backup, the copy of a replica"
        " that isn't in sync, or a directory of its name that ends in `-delete` or `-stray`.",
    ),
    "partial-disk": FindingKind(
        _NOTE,
        "Partitions that the metadata have in a log directory aren't here, and it is taken for a copy of some of them:"
        " most are missing, or a node's own files are.",
        "None for a copy. A broker that starts on it begins the others as empty ones.",
        "Nothing, unless this is the broker's own disk.",
    ),
    "topic-id-missing": FindingKind(
        _ERROR,
        "A partition's directory has no partition.metadata, which names its topic's id.",
        "From 3.7 on the broker renames the directory to `-stray`, and the partition starts as an empty one; before,"
        " it refuses to start.",
        "`kseg reindex PATH --to DIR` makes it from the metadata: put it in its place while the broker is down.",
    ),
    "other-topic-id": FindingKind(
        _WARNING,
        "A partition's directory belongs to a topic of another id: one that was deleted, and then created again.",
        "A broker that finds it at start renames it to `-stray`, and begins the new topic's partition as an empty one.",
        "If its records are still wanted, `kseg serve` and `kseg export` read it where it is; else delete it.",
    ),
    "not-in-metadata": FindingKind(
        _WARNING,
        "A partition is here that the cluster doesn't have: its topic was deleted, or these metadata are too old.",
        "A broker that starts with these metadata renames it to `-stray`: no client gets its records.",
        "Add the log directories that have newer metadata, if there are any. If the topic was deleted, so can this be.",
    ),
}
"""By id: what is wrong in a partition or a log directory."""


def status_of(finding_id: str) -> int:
    """The exit status for a finding, or a damage of that kind: 0 for a note, 1 for all others."""
    return int(FINDINGS[finding_id].severity is not Severity.NOTE)


def id_of_damage(kind: DamageKind, *, is_last: bool) -> str:
    """The finding for a damage: a tail where no broker can have been writing is a cut segment."""
    return str(kind) if is_last or kind not in TAIL_KINDS else "cut-segment"


def explanation(name: str, kinds: Mapping[str, FindingKind]) -> str:
    """What `--explain` prints of one of some kinds, or of `all`: meaning, risk, next step, and the words of a broker.

    Raises UsageError if there is no such kind.
    """
    if name != "all" and name not in kinds:
        raise UsageError(f"--explain: there is no finding {name!r}, only {', '.join(kinds)}")
    from kseg.findings.broker_log import lines_about

    return "\n".join(
        f"{each} ({kind.severity})\n{kind.meaning}\nRisk: {kind.risk}\nNext step: {kind.next_step}\n"
        + "".join(f"In the broker's log: {line}\n" for line in lines_about(each))
        for each, kind in kinds.items()
        if name in ("all", each)
    )


CLUSTER_FINDINGS: dict[str, FindingKind] = {
    "no-copy": FindingKind(
        Severity.ERROR,
        "The cluster has a partition of which no copy is in the given directories.",
        "Brokers that start on these disks begin it as an empty one: all its records are gone.",
        "Add the log directories of one of its replicas: the finding names the brokers. If there are none any more, the"
        " remote tier, a backup or another cluster (MirrorMaker) may have its records.",
    ),
    "no-in-sync-copy": FindingKind(
        Severity.WARNING,
        "No copy of a replica that was in sync is in the given directories.",
        "The copies that are here may lack records that were acknowledged. Brokers don't elect a leader among them by"
        " themselves: the partition stays offline.",
        "Add the log directories of an in-sync replica: the finding names the brokers. Otherwise `kseg diff` says which"
        " copy has most, and `kafka-leader-election.sh --election-type unclean` lets it lead.",
    ),
    "offsets-in-no-copy": FindingKind(
        Severity.WARNING,
        "Segments are missing, in all copies of a partition, in the middle of the log.",
        "Consumers go on after the gap; what was there is lost.",
        "Add the log directories of the other replicas, or take the segments out of the remote tier or a backup and"
        " combine all with `kseg salvage`.",
    ),
    "copy-absent": FindingKind(
        Severity.NOTE,
        "Not all replicas of a partition have a copy here, but one that was in sync has.",
        "None: the others fetch from it.",
        "Nothing.",
    ),
}
"""By id: what the disks of a cluster lack, taken together."""


_LOST = "The segment's records can't be read out of the tier, by a broker no more than by kseg."
_COPY = (
    "If the broker's disk or a replica still has the offsets, `kseg salvage BUCKET DISK --to DIR` joins them. Otherwise"
    " look for an older version of the object, if the bucket keeps versions."
)

TIER_FINDINGS: dict[str, FindingKind] = {
    "remote-manifest": FindingKind(
        Severity.ERROR, "A segment's manifest can't be read, or is another segment's.", _LOST, _COPY
    ),
    "remote-missing": FindingKind(
        Severity.ERROR, "An object of a segment isn't in the tier, though others of it are.", _LOST, _COPY
    ),
    "remote-size": FindingKind(
        Severity.ERROR,
        "An object has more or fewer bytes than its chunks add up to by the manifest.",
        "What is missing, and the chunk in which it begins, can't be read.",
        _COPY,
    ),
    "remote-gap": FindingKind(
        Severity.ERROR,
        "Between two segments of the tier offsets are missing.",
        "Records are lost here, unless the broker's disk still has them.",
        _COPY,
    ),
    "remote-lost": FindingKind(
        Severity.ERROR,
        "`__remote_log_metadata` has a segment as copied, but the tier has no object of it.",
        "A broker fails when a consumer asks for these offsets.",
        _COPY,
    ),
    "remote-unfinished": FindingKind(
        Severity.WARNING,
        "Objects without a manifest: an upload that never ended, or that is going on right now.",
        "None for the log: the broker uploads the segment again. The objects stay, and cost money.",
        "If no broker is uploading, they can be removed from the tier.",
    ),
    "remote-deleted": FindingKind(
        Severity.WARNING,
        "The tier has objects of a segment that `__remote_log_metadata` has as deleted.",
        "None for the log: no broker reads them. They stay, and cost money.",
        "They can be removed from the tier once nobody needs the records.",
    ),
    "remote-started": FindingKind(
        Severity.WARNING,
        "`__remote_log_metadata` has had a segment as started, for copying or for deletion, for more than an hour.",
        "A copy that was started and not finished is made again under another id; its objects stay, and cost money.",
        "If the tier has objects of it, and no broker is uploading, they can be removed from the tier.",
    ),
    "remote-unknown": FindingKind(
        Severity.WARNING,
        "The tier has a segment that `__remote_log_metadata` doesn't know.",
        "None for the log: no broker reads it. Its objects stay, and cost money.",
        "Look whether all partitions of `__remote_log_metadata` were given. If so, its objects can be removed.",
    ),
    "remote-overlap": FindingKind(
        Severity.NOTE,
        "Several segments of the tier have the same offsets, as after a change of leader.",
        "None: as a broker does, kseg takes the one of the leader epochs that the log went on from.",
        "Nothing. `kseg ls --by segment` shows which ones are used.",
    ),
    "remote-end": FindingKind(
        Severity.NOTE,
        "A segment's batches go beyond the end offset in its manifest.",
        "None for the records: neither brokers nor kseg go by the manifest's end offset to read a segment.",
        "Nothing.",
    ),
}
"""By id."""


ALL_FINDINGS: dict[str, FindingKind] = FINDINGS | TIER_FINDINGS | CLUSTER_FINDINGS
"""By id."""
