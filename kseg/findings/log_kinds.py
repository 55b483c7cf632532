"""Kinds of findings in logs: bytes, offsets, timestamps, leader epochs, producers."""

from kseg.findings.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

_SALVAGE = (
    "Use an intact replica if there is one. Otherwise, run `kseg salvage PATH --to DIR` to keep the intact batches."
)
_CUT_AT_RECOVERY = (
    "If the broker recovers the log, it truncates the log at this point and deletes all later segments."
    " Otherwise, every read at this point fails."
)
_UNREADABLE_RECORDS = (
    "The broker still serves the batch because the CRC is correct, but consumers fail every time they read it."
)
_DROP = (
    "Use an intact replica if there is one. Otherwise, move consumers past the batch with"
    " `kafka-consumer-groups.sh --reset-offsets`; the batch stays in the log. If you can't move them, or if the"
    " log cleaner fails at the batch, drop it with `kseg salvage PATH --drop-unreadable --to DIR`."
)
_REINDEX_EPOCHS = (
    "Run `kseg reindex PATH --to DIR` to rebuild the file from the log, and replace it while the broker is down."
    " Don't just delete the file, because brokers don't write it again after a clean shutdown."
)
_REPLICA_OR_NOTHING = (
    "Use an intact replica if there is one. Nothing else can repair the log, so without a replica the finding remains."
)
_RECOVER = (
    "First, compare the log end offset with the offsets of the other replicas. Then remove `.kafka_cleanshutdown`"
    " from the log directory, so the broker recovers its logs at startup and truncates the incomplete end."
)

LOG_FINDINGS: dict[str, FindingKind] = {
    # bytes of the log
    "unreadable": FindingKind(
        _ERROR,
        "Some bytes of a log can't be read from the disk, or the log can't be opened at all.",
        "When the broker reads these bytes, it fails and takes the log directory offline. The contents of the"
        " unreadable blocks are lost in this copy.",
        "If the disk is failing, copy it first (for example, with `ddrescue`). Then use an intact replica, or run"
        " `kseg salvage PATH --to DIR`.",
    ),
    "bad-length": FindingKind(
        _ERROR,
        "A length field is too small for the format, or points past the end of the file.",
        _CUT_AT_RECOVERY,
        _SALVAGE,
    ),
    "bad-magic": FindingKind(
        _ERROR,
        "The bytes aren't a batch in any known format, because the magic byte isn't 0, 1 or 2.",
        _CUT_AT_RECOVERY,
        _SALVAGE,
    ),
    "bad-crc": FindingKind(
        _ERROR,
        "The CRC of a batch doesn't match its contents, so some bytes have changed since the batch was written.",
        _CUT_AT_RECOVERY,
        _SALVAGE,
    ),
    "changed-as-text": FindingKind(
        _ERROR,
        "The log was copied as a text file, which changed its line endings or its character encoding.",
        _CUT_AT_RECOVERY,
        "Copy the file again in binary mode (`binary` in FTP, `-text` in .gitattributes for git). If the original"
        " is gone, run `kseg salvage PATH --to DIR`. It reverses CRLF, base64, hex, UTF-8 and UTF-16 conversions"
        " for every batch whose CRC confirms the result.",
    ),
    "foreign-content": FindingKind(
        _ERROR,
        "The file isn't a Kafka log but something else, such as a Git LFS pointer, an archive, a text file or a"
        " Redpanda log.",
        _CUT_AT_RECOVERY,
        "Run `git lfs pull`, unpack the archive, or copy the file again to restore the log. Otherwise, use an"
        " intact replica.",
    ),
    "emptied-files": FindingKind(
        _ERROR,
        "The log and other files that are never empty on a broker are empty here. Usually a copy has failed, or"
        " the disk was full.",
        "The contents of the log are lost in this copy, and a broker would start with an empty log.",
        "Copy the directory again and compare the file sizes. If the original is gone, use an intact replica.",
    ),
    "bad-codec": FindingKind(
        _ERROR,
        "The attributes of a batch specify a compression codec that doesn't exist in its format.",
        _UNREADABLE_RECORDS,
        _DROP,
    ),
    "bad-body": FindingKind(
        _ERROR, "The CRC of a batch is correct, but its records can't be decompressed.", _UNREADABLE_RECORDS, _DROP
    ),
    "bad-record": FindingKind(
        _ERROR,
        "The CRC of a batch is correct, but at least one of its records can't be read.",
        _UNREADABLE_RECORDS,
        _DROP,
    ),
    "bad-count": FindingKind(
        _ERROR, "A batch contains more or fewer records than its header indicates.", _UNREADABLE_RECORDS, _DROP
    ),
    "torn-tail": FindingKind(
        _WARNING,
        "The last segment ends in the middle of a batch, because the broker was killed or is still writing to it.",
        "All complete batches are safe. When a broker recovers the log, it removes the incomplete batch.",
        "If the broker is running, run the command again. If it was killed, start it. If it was stopped cleanly,"
        " run `kseg salvage PATH --to DIR` before you start it; otherwise, it appends after the incomplete batch.",
    ),
    "zero-tail": FindingKind(
        _NOTE,
        "The last segment ends in zeros. Either the file is preallocated, or the machine crashed before the data"
        " reached the disk.",
        "The zeros are harmless if the file is preallocated. Otherwise, the data that belongs there is lost."
        " Recovery removes the zeros.",
        "Compare the log end offset with the offsets of the other replicas. If the file isn't preallocated and"
        " the broker was stopped cleanly, run `kseg salvage PATH --to DIR` before you start the broker, because"
        " it would fail at the zeros.",
    ),
    "unclean-tail": FindingKind(
        _ERROR,
        "The last segment ends in the middle of a batch, even though the broker was stopped cleanly.",
        "Because of the clean shutdown, the broker doesn't check the log. It appends after the incomplete batch,"
        " and later reads fail at that point.",
        _RECOVER,
    ),
    "unclean-zeros": FindingKind(
        _ERROR,
        "The last segment ends in zeros, even though the broker was stopped cleanly.",
        "The first start of the broker fails at the zeros. The second start succeeds, because the first one has"
        " removed `.kafka_cleanshutdown`.",
        _RECOVER,
    ),
    "log-end-lost": FindingKind(
        _ERROR,
        "The log used to be longer: the checkpoints in the log directory and the producer snapshots contain"
        " offsets after its end.",
        "Records that had been flushed or replicated are missing from this copy. The broker continues from the"
        " current end.",
        "Compare the log end offset with the offsets of the other replicas. If another replica has more records,"
        " don't let this one become the leader until it has fetched them. If no replica has more, the records are"
        " lost.",
    ),
    "cut-segment": FindingKind(
        _ERROR,
        "A segment other than the last one ends in zeros or in the middle of a batch.",
        "The data in this range is lost. Consumers can't read past it, and recovery deletes all later segments.",
        _SALVAGE,
    ),
    # offsets
    "offsets-fall": FindingKind(
        _ERROR,
        "A batch starts at or before the last offset of an earlier batch. Either the batches are out of order, or"
        " an offset has been changed.",
        "Offset lookups can miss records. A broker may fail when it recovers the log.",
        _SALVAGE,
    ),
    "duplicate-batch": FindingKind(
        _ERROR,
        "The log contains the same batch twice, with identical offsets and CRCs.",
        "Consumers may receive the records twice. A broker may fail when it recovers the log.",
        "Run `kseg salvage PATH --to DIR` to keep only one of the two batches.",
    ),
    "offsets-lost": FindingKind(
        _ERROR,
        "Some offsets are missing. Compaction can't have removed them, because the surrounding records have no keys.",
        "The records are lost in this copy, and consumers skip them silently.",
        "Run `kseg salvage` with several replicas to fill the gaps in one from the others. If no replica has the"
        " records, they are lost and the finding remains.",
    ),
    "offsets-missing": FindingKind(
        _WARNING,
        "Some offsets are missing. The records have keys, so compaction may have removed them, but kseg can't"
        " confirm that.",
        "Unless the topic is or was compacted, records are lost in this copy.",
        "Check the cleanup.policy of the topic. If the topic isn't compacted, run `kseg salvage` with several"
        " replicas to fill the gap.",
    ),
    "offsets-compacted": FindingKind(
        _NOTE,
        "Some offsets are missing because compaction has removed their records.",
        "This is normal for a compacted topic.",
        "No action is needed.",
    ),
    "segment-overlap": FindingKind(
        _ERROR,
        "A segment contains offsets that belong to the next segment.",
        "The overlapping offsets exist twice. Which of the two records a consumer receives depends on where it"
        " starts reading.",
        _SALVAGE,
    ),
    "offset-below-base": FindingKind(
        _ERROR,
        "A segment contains an offset that is lower than the base offset in its file name.",
        "The broker can't index the segment, and lookups miss the record. The file may have been renamed by mistake.",
        ("If the segment's files were renamed, name them after its first offset. Otherwise ")
        + _SALVAGE[0].lower()
        + _SALVAGE[1:],
    ),
    "offset-too-far": FindingKind(
        _ERROR,
        "A segment contains an offset that is more than 2³¹ - 1 higher than its base offset.",
        "The offset can't be stored in the indexes of the segment. Kafka 1.1.1 and later split such a segment at"
        " startup, but earlier versions fail.",
        "Delete the `.index` of the segment while the broker is down. Kafka 2.0 and later then split the segment"
        " at startup.",
    ),
    "record-offsets": FindingKind(
        _ERROR,
        "The record offsets within a batch don't increase, or they are outside the range given in the batch header.",
        "Consumers may skip records or get stuck at the batch.",
        _DROP,
    ),
    # times
    "max-timestamp": FindingKind(
        _WARNING,
        "The maximum timestamp in a batch header doesn't match the timestamps of the records.",
        "Lookups by timestamp return wrong offsets, and time-based retention deletes the segment too early or too"
        " late.",
        "Use an intact replica if there is one. Nothing else can repair the batch, so look up records by offset"
        " instead.",
    ),
    # leader epochs
    "leader-epoch-falls": FindingKind(
        _WARNING,
        "The leader epoch of a batch is lower than that of an earlier batch. The CRC doesn't cover this field.",
        "After a leader change, replicas may truncate their logs at the wrong offset.",
        _REPLICA_OR_NOTHING,
    ),
    "leader-epoch-checkpoint": FindingKind(
        _WARNING,
        "The leader-epoch-checkpoint file and the batches disagree about the leader epoch of some offsets.",
        "After a leader change, replicas may truncate their logs at the wrong offset.",
        _REINDEX_EPOCHS,
    ),
    "leader-epoch-unsorted": FindingKind(
        _WARNING,
        "The epochs or start offsets in leader-epoch-checkpoint aren't in ascending order.",
        "After a leader change, replicas may truncate their logs at the wrong offset.",
        _REINDEX_EPOCHS,
    ),
    "leader-epochs-missing": FindingKind(
        _WARNING,
        "The leader-epoch-checkpoint file is missing or empty, although the last batches have leader epochs.",
        "After a leader change, a replica truncates its log to the high watermark, as Kafka did before KIP-101."
        " Acknowledged records may be lost, and replicas may diverge. Lookups by leader epoch return nothing.",
        "Run `kseg reindex PATH --to DIR` to rebuild the file from the log, and put it in place while the broker"
        " is down. After a clean shutdown, brokers don't write the file again. If you have just lowered"
        " `message.format.version` of the topic below 0.11, no action is needed: the broker removes the file on"
        " purpose.",
    ),
    "leader-epochs-cleared": FindingKind(
        _NOTE,
        "The epochs of the first batches are missing from leader-epoch-checkpoint. A broker removes epochs below"
        " the log start offset (DeleteRecords), and removes all epochs when the message format of the topic is"
        " lowered.",
        "This is harmless: when a replica requests a missing epoch, the broker returns the first epoch it knows.",
        "No action is needed. To restore the epochs anyway, move the file away and run `kseg reindex PATH --to DIR`.",
    ),
    "leader-epoch-beyond-end": FindingKind(
        _NOTE,
        "The leader-epoch-checkpoint file contains an epoch that starts after the end of the log, so the end of"
        " the log may be lost.",
        "The epoch itself is harmless, because a broker removes such epochs at startup.",
        "Compare the log end offset with the offsets of the other replicas.",
    ),
    # producers
    "sequence-gap": FindingKind(
        _WARNING,
        "There is a gap in the sequence numbers of a producer, so some of its batches are missing.",
        "The records are lost in this copy, unless the producer id had expired on the broker"
        " (`producer.id.expiration.ms`).",
        _REPLICA_OR_NOTHING,
    ),
    "sequence-repeated": FindingKind(
        _WARNING,
        "The sequence numbers of a producer are repeated or out of order.",
        "The log may contain duplicate records, unless the producer id had expired on the broker"
        " (`producer.id.expiration.ms`).",
        "Compare the records of the batches with `kseg dump -o json`. Use an intact replica if there is one;"
        " otherwise, the finding remains.",
    ),
    "producer-epoch-falls": FindingKind(
        _WARNING,
        "The producer epoch of a batch is lower than that of an earlier batch from the same producer.",
        "A producer kept writing after it was fenced, so its transactions may be incomplete.",
        "Check the batches of the producer with `kseg dump -o json --only batches`. Use an intact replica if"
        " there is one; otherwise, the finding remains.",
    ),
    "group-unloadable": FindingKind(
        _ERROR,
        "A partition of `__consumer_offsets` contains a tombstone whose companion record has been removed by the"
        " log cleaner.",
        "Group coordinators up to Kafka 4.4 fail at the tombstone and can't load the partition, so none of its"
        " groups work (KAFKA-21102).",
        "If a replica still has both records, use it. Otherwise, save the committed offsets with `kseg groups"
        " PATH -o reset-csv`. Stop the brokers and move the partition directories away on all replicas. Then"
        " reset the groups from the CSV file (`kafka-consumer-groups.sh --reset-offsets --from-file`).",
    ),
    "open-transaction": FindingKind(
        _NOTE,
        "A transaction has no end marker yet. Either its coordinator will still end it, or the state of its"
        " coordinator isn't available here.",
        "This is normal while the producer is active. Until the transaction ends, read_committed consumers wait"
        " at its first offset.",
        "No action is needed at first. If the transaction stays open, run `kseg txns PATH --open` with the log"
        " directories of all brokers.",
    ),
    "long-transaction": FindingKind(
        _WARNING,
        "According to the broker's clock, a transaction has been open longer than the default limit"
        " (`transaction.max.timeout.ms`). The state of its coordinator isn't available here.",
        "If the transaction is hanging, read_committed consumers wait at its first offset indefinitely, and"
        " compaction can't proceed past it.",
        "To find out, run `kseg txns PATH --open` with the log directories of all brokers. If the transaction is"
        " hanging, kseg prints the command that aborts it. Alternatively, ask a broker: `kafka-transactions.sh"
        " --bootstrap-server HOST:9092 find-hanging --broker-id ID`.",
    ),
    "hanging-transaction": FindingKind(
        _WARNING,
        "A transaction has no end marker, and according to `__transaction_state` on the same disks it will never"
        " get one.",
        "Consumers that use read_committed wait at its first offset indefinitely, and compaction can't proceed"
        " past it.",
        "Run `kseg txns PATH --open` to print the command that aborts the transaction (`kafka-transactions.sh abort`).",
    ),
}
"""Kinds by id."""
