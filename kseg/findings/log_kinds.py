"""Kinds of findings in logs: bytes, offsets, timestamps, leader epochs, producers."""

from kseg.findings.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_SALVAGE = (
    "Take an intact replica if there is one. Otherwise run `kseg salvage PATH --to DIR` to keep the intact batches."
)
_CUT_AT_RECOVERY = (
    "If the broker recovers the log, it cuts the log there and deletes all later segments. Otherwise every read there"
    " fails."
)
_UNREADABLE_RECORDS = (
    "The broker serves the batch because its CRC is right. Consumers fail at the batch each time they read it."
)
_DROP = (
    "Take an intact replica if there is one. Otherwise move consumers past the batch (`kafka-consumer-groups.sh"
    " --reset-offsets`), which keeps its bytes. If you can't move them, or if the cleaner fails at the batch, drop"
    " it: `kseg salvage PATH --drop-unreadable --to DIR`."
)
_REINDEX_EPOCHS = (
    "Run `kseg reindex PATH --to DIR` to rebuild the file from the log, and replace it while the broker is down."
    " Don't just delete the file: after a clean stop no broker writes it again."
)
_REPLICA_OR_NOTHING = (
    "Take an intact replica if there is one. Nothing else repairs the log: otherwise the finding remains."
)
_RECOVER = (
    "First compare the log end offset with the other replicas'. Then remove `.kafka_cleanshutdown` from the log"
    " directory: at startup the broker recovers its logs and cuts the end off."
)

LOG_FINDINGS: dict[str, FindingKind] = {
    # bytes of the log
    "unreadable": FindingKind(
        _ERROR,
        "The disk can't read some bytes of a log, or the log can't be opened.",
        "The broker fails there and takes the log directory offline. This copy has lost the contents of the"
        " unreadable blocks.",
        "If the disk is failing, copy it first (`ddrescue`). Then take an intact replica, or run `kseg salvage PATH"
        " --to DIR`.",
    ),
    "bad-length": FindingKind(
        _ERROR,
        "A length field is too small for its format, or points beyond the end of the file.",
        _CUT_AT_RECOVERY,
        _SALVAGE,
    ),
    "bad-magic": FindingKind(
        _ERROR, "These bytes aren't a batch of any format: the magic byte isn't 0, 1 or 2.", _CUT_AT_RECOVERY, _SALVAGE
    ),
    "bad-crc": FindingKind(
        _ERROR, "A batch's CRC doesn't match its bytes, so the bytes have changed.", _CUT_AT_RECOVERY, _SALVAGE
    ),
    "changed-as-text": FindingKind(
        _ERROR,
        "A program copied the log as text and changed its bytes: line ends, or the encoding of characters.",
        _CUT_AT_RECOVERY,
        "Copy the file again, as binary (FTP: `binary`; git: `-text` in .gitattributes). If the original is gone, run"
        " `kseg salvage PATH --to DIR`. It undoes CRLF, base64, hex digits, and text in UTF-8 or UTF-16, batch by"
        " batch where the CRC confirms the result.",
    ),
    "foreign-content": FindingKind(
        _ERROR,
        "The file isn't a Kafka log. It is a Git LFS pointer, an archive, text, or a Redpanda log.",
        _CUT_AT_RECOVERY,
        "Restore the log: run `git lfs pull`, unpack the archive, or copy the file again. Otherwise take an intact"
        " replica.",
    ),
    "emptied-files": FindingKind(
        _ERROR,
        "Files that are never empty on a broker are empty, the log among them. A copy failed, or the disk was full.",
        "This copy has lost the log's contents: a broker starts with an empty log.",
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
        _ERROR, "A batch holds more or fewer records than its header says.", _UNREADABLE_RECORDS, _DROP
    ),
    "torn-tail": FindingKind(
        _WARNING,
        "The last segment ends in the middle of a batch. The broker was killed, or is writing right now.",
        "None for complete batches. When a broker recovers the log, it cuts off the incomplete one.",
        "If a broker is running, run the command again. If the broker was killed, start it. If it was stopped"
        " cleanly, run `kseg salvage PATH --to DIR` before it starts: it would append after the incomplete batch.",
    ),
    "zero-tail": FindingKind(
        _NOTE,
        "The last segment ends in zeros. It is preallocated, or the machine failed before its data reached the disk.",
        "None if the file is preallocated. Otherwise the data there is lost. Recovery cuts the zeros off.",
        "Compare the log end offset with the other replicas'. If the file isn't preallocated and the broker was"
        " stopped cleanly, run `kseg salvage PATH --to DIR` first: the broker would fail at the zeros.",
    ),
    "unclean-tail": FindingKind(
        _ERROR,
        "The last segment ends in the middle of a batch, though the broker was stopped cleanly.",
        "The broker trusts the clean stop and keeps the incomplete batch. It appends after the batch, and later reads"
        " fail there.",
        _RECOVER,
    ),
    "unclean-zeros": FindingKind(
        _ERROR,
        "The last segment ends in zeros, though the broker was stopped cleanly.",
        "The first start fails at the zeros. The second start works, because the first one removes"
        " `.kafka_cleanshutdown`.",
        _RECOVER,
    ),
    "log-end-lost": FindingKind(
        _ERROR,
        "The log once continued beyond its end: checkpoints of the log directory and producer snapshots have later"
        " offsets.",
        "This copy has lost records that were flushed or replicated. The broker continues from the end that is left.",
        "Compare the log end offset with the other replicas'. If another replica has more, don't let this one become"
        " leader before it has fetched the rest. If none has more, the records are lost.",
    ),
    "cut-segment": FindingKind(
        _ERROR,
        "A segment other than the last one ends in zeros or in the middle of a batch.",
        "The data there is lost. Consumers stop there, and recovery deletes all later segments.",
        _SALVAGE,
    ),
    # offsets
    "offsets-fall": FindingKind(
        _ERROR,
        "A batch begins at or below the last offset of an earlier batch. Batches are out of order, or an offset was"
        " changed.",
        "Lookups miss records. If a broker recovers the log, it may fail.",
        _SALVAGE,
    ),
    "duplicate-batch": FindingKind(
        _ERROR,
        "The log has the same batch twice, with the same offsets and the same CRC.",
        "Consumers may get the records twice. If a broker recovers the log, it may fail.",
        "Run `kseg salvage PATH --to DIR` to keep one of them.",
    ),
    "offsets-lost": FindingKind(
        _ERROR,
        "Offsets are missing that compaction can't have removed, because the records around them have no key.",
        "This copy has lost the records. Consumers skip them without notice.",
        "Run `kseg salvage` on several replicas: it fills holes in one from the others. If no replica has the"
        " records, they are lost and the finding remains.",
    ),
    "offsets-missing": FindingKind(
        _WARNING,
        "Offsets are missing. The records have keys, so the topic may be compacted, but nothing confirms it.",
        "This copy has lost records, unless the topic is or was compacted.",
        "Check the topic's cleanup.policy. If the topic isn't compacted, run `kseg salvage` on several replicas to"
        " fill the hole.",
    ),
    "offsets-compacted": FindingKind(
        _NOTE, "Offsets are missing because compaction removed their records.", "None.", "Nothing."
    ),
    "segment-overlap": FindingKind(
        _ERROR,
        "A segment holds offsets that belong to the next segment.",
        "These offsets exist twice. A consumer gets one record or the other, depending on the offset it starts from.",
        _SALVAGE,
    ),
    "offset-below-base": FindingKind(
        _ERROR,
        "A segment holds an offset below the base offset in its file name.",
        "The broker can't index the segment, and lookups miss the record. The file may have been renamed.",
        ("If the segment's files were renamed, name them after its first offset. Otherwise ")
        + _SALVAGE[0].lower()
        + _SALVAGE[1:],
    ),
    "offset-too-far": FindingKind(
        _ERROR,
        "A segment holds an offset more than 2³¹ - 1 above its base offset.",
        "Its indexes can't hold the offset. Brokers from 1.1.1 on split such a segment at startup; older brokers fail.",
        "Delete the segment's `.index` while the broker is down. Brokers from 2.0 on then split it at startup.",
    ),
    "record-offsets": FindingKind(
        _ERROR,
        "Offsets of records within a batch don't increase, or lie outside the range in the batch's header.",
        "Consumers skip records or get stuck.",
        _DROP,
    ),
    # times
    "max-timestamp": FindingKind(
        _WARNING,
        "A batch's header gives a largest timestamp that its records don't have.",
        "Lookups by time give wrong results. Retention by time keeps the segment too long or deletes it early.",
        "Take an intact replica if there is one. Nothing else repairs the batch: look up records by offset.",
    ),
    # leader epochs
    "leader-epoch-falls": FindingKind(
        _WARNING,
        "A batch has a lower leader epoch than an earlier batch. The CRC doesn't cover this field.",
        "When leadership changes, replicas may truncate their logs at a wrong offset.",
        _REPLICA_OR_NOTHING,
    ),
    "leader-epoch-checkpoint": FindingKind(
        _WARNING,
        "For some offset, leader-epoch-checkpoint has a different leader epoch than the batches.",
        "When leadership changes, replicas may truncate their logs at a wrong offset.",
        _REINDEX_EPOCHS,
    ),
    "leader-epoch-unsorted": FindingKind(
        _WARNING,
        "Epochs or start offsets in leader-epoch-checkpoint don't increase.",
        "When leadership changes, replicas may truncate their logs at a wrong offset.",
        _REINDEX_EPOCHS,
    ),
    "leader-epochs-missing": FindingKind(
        _WARNING,
        "leader-epoch-checkpoint is missing or empty, although the last batches have leader epochs.",
        "When leadership changes, a replica truncates to its high watermark, as before KIP-101. Acknowledged records"
        " may be lost, and replicas may differ. Lookups by leader epoch find nothing.",
        "Run `kseg reindex PATH --to DIR` to rebuild the file from the log, and put it in place while the broker is"
        " down. After a clean stop no broker writes it again. If you just lowered the topic's"
        " `message.format.version` below 0.11, do nothing: the broker then removes the file on purpose.",
    ),
    "leader-epochs-cleared": FindingKind(
        _NOTE,
        "leader-epoch-checkpoint lacks the epochs of the first batches. A broker clears epochs below the log start"
        " offset (DeleteRecords). It clears all epochs when the topic's message format is lowered.",
        "None: if asked for such an epoch, a broker answers with the first epoch that it knows.",
        "Nothing. To restore the epochs, move the file away and run `kseg reindex PATH --to DIR`.",
    ),
    "leader-epoch-beyond-end": FindingKind(
        _NOTE,
        "leader-epoch-checkpoint has an epoch that begins after the end of the log. The log may have lost its end.",
        "None: a broker removes such epochs at startup.",
        "Compare the log end offset with the other replicas'.",
    ),
    # producers
    "sequence-gap": FindingKind(
        _WARNING,
        "A producer's sequence numbers jump ahead, so some of its batches are missing in between.",
        "This copy has lost the records, unless the broker had forgotten the producer (`producer.id.expiration.ms`).",
        _REPLICA_OR_NOTHING,
    ),
    "sequence-repeated": FindingKind(
        _WARNING,
        "A producer's sequence numbers repeat or are out of order.",
        "The log may have records twice, unless the broker had forgotten the producer (`producer.id.expiration.ms`).",
        "Compare the batches' records: `kseg dump -o json`. Take an intact replica if there is one; otherwise the"
        " finding remains.",
    ),
    "producer-epoch-falls": FindingKind(
        _WARNING,
        "A batch has a lower producer epoch than an earlier batch of the same producer.",
        "A fenced producer continued to write, so its transactions may be incomplete.",
        "Check the producer's batches: `kseg dump -o json --only batches`. Take an intact replica if there is one;"
        " otherwise the finding remains.",
    ),
    "group-unloadable": FindingKind(
        _ERROR,
        "`__consumer_offsets` has a tombstone without its companion record, which the cleaner has removed.",
        "Coordinators up to 4.4 fail at the tombstone and don't load the partition. None of its groups work"
        " (KAFKA-21102).",
        "Use a replica that still has both records, if there is one. Otherwise keep the commits: `kseg groups PATH -o"
        " reset-csv`. Stop the brokers, and move the partition's directories away on all replicas. Then reset the"
        " groups from the CSV (`kafka-consumer-groups.sh --reset-offsets --from-file`).",
    ),
    "open-transaction": FindingKind(
        _NOTE,
        "A transaction has no end marker yet. Its coordinator will end it, or isn't known here.",
        "None while its producer is alive: consumers with read_committed wait at its first offset.",
        "Nothing at first. If the transaction stays open, run `kseg txns PATH --open` with the log directories of all"
        " brokers.",
    ),
    "long-transaction": FindingKind(
        _WARNING,
        "A transaction has been open for longer than brokers allow by default (`transaction.max.timeout.ms`), by the"
        " broker's clock. Its coordinator isn't known here.",
        "If it hangs, consumers with read_committed wait at its first offset forever, and compaction stops there.",
        "To see whether it hangs, run `kseg txns PATH --open` with the log directories of all brokers. If it hangs,"
        " kseg prints the command that aborts it. Or ask a broker: `kafka-transactions.sh --bootstrap-server"
        " HOST:9092 find-hanging --broker-id ID`.",
    ),
    "hanging-transaction": FindingKind(
        _WARNING,
        "A transaction has no end marker, and `__transaction_state` on the same disks shows that none will follow.",
        "Consumers with read_committed wait at its first offset forever, and compaction stops there.",
        "Run `kseg txns PATH --open`: it prints the command that aborts the transaction (`kafka-transactions.sh"
        " abort`).",
    ),
}
"""Kinds by id."""
