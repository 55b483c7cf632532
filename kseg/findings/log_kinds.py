"""Kinds of findings in logs: bytes, offsets, timestamps, leader epochs, producers."""

from kseg.findings.finding_kind import FindingKind, Severity

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
_REINDEX_EPOCHS = (
    "`kseg reindex PATH --to DIR` makes a new one from the log: put it in its place while the broker is down. Don't"
    " just delete the file: after a clean stop no broker writes it again."
)
_REPLICA_OR_NOTHING = "Take an intact replica if there is one. Nothing else repairs it: the finding stays."
_RECOVER = (
    "Remove `.kafka_cleanshutdown` from the log directory: the broker then recovers its logs, and cuts the end off."
    " Compare the log end offset with the other replicas' before that."
)

LOG_FINDINGS: dict[str, FindingKind] = {
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
    "changed-as-text": FindingKind(
        _ERROR,
        "A program took the log for text and changed it while it was copied: line ends, or the encoding of characters.",
        _CUT_AT_RECOVERY,
        "Copy the file again, as binary (FTP: `binary`; git: `-text` in .gitattributes). If there is no original any"
        " more, `kseg salvage PATH --to DIR` undoes CRLF, base64, hex digits, and text in UTF-8 or UTF-16, batch by"
        " batch where the CRC confirms it.",
    ),
    "foreign-content": FindingKind(
        _ERROR,
        "The file isn't a log, but something else: a pointer of Git LFS, an archive, text, a log of Redpanda's.",
        _CUT_AT_RECOVERY,
        "Put the log in its place: `git lfs pull`, unpack the archive, or copy the file again. Otherwise take an intact"
        " replica.",
    ),
    "emptied-files": FindingKind(
        _ERROR,
        "Files have no bytes that a broker never leaves so, the log among them: a copy failed, or the disk was full.",
        "What was in the log is lost here: a broker starts an empty one.",
        "Copy the directory again, and compare the sizes. If the original is gone, take an intact replica.",
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
        "The last segment ends in the middle of a batch, though the broker was stopped cleanly.",
        "A broker that trusts the clean stop doesn't cut that off: it appends after it, and later reads fail there.",
        _RECOVER,
    ),
    "unclean-zeros": FindingKind(
        _ERROR,
        "The last segment ends in zeros, though the broker was stopped cleanly.",
        "The first start fails at them. The second one works, since the first has removed the sign of a clean stop.",
        _RECOVER,
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
    "group-unloadable": FindingKind(
        _ERROR,
        "A tombstone in `__consumer_offsets` comes without its companion, which the cleaner has removed.",
        "Coordinators up to 4.4 fail at it and don't load the partition: none of its groups works (KAFKA-21102).",
        "Use a replica that still has both, if there is one. Otherwise keep the commits with"
        " `kseg groups PATH -o reset-csv`, move the partition's directories away on all replicas while they are down,"
        " and reset the groups by the CSV (`kafka-consumer-groups.sh --reset-offsets --from-file`).",
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
        "Run `kseg txns PATH --open` with the log directories of all brokers, or"
        " `kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging --broker-id ID`, to see whether it hangs. If"
        " it does, the first one prints the command that aborts it.",
    ),
    "hanging-transaction": FindingKind(
        _WARNING,
        "A transaction has no end marker, and `__transaction_state` on the same disks shows that none will come.",
        "Consumers with read_committed wait at its first offset forever, and compaction stops there.",
        "`kseg txns PATH --open` prints the command that aborts it (`kafka-transactions.sh abort`).",
    ),
}
"""Kinds by id."""
