"""What the words of the report mean, each once."""

from kseg.report.block import Term

GLOSSARY = (
    Term(
        "Partition, log, segment",
        "A topic's partition is a directory. Its log is cut into segments: files that are "
        "named by the offset of their first record. The last one is active: it is appended to. Segments go whole.",
    ),
    Term("Offset", "The number of a record in its partition."),
    Term(
        "Batch",
        "What a producer writes and the broker stores at once: a header of 61 bytes, then records, compressed "
        "together. Up to 0.10 there were single messages, and wrappers of compressed ones.",
    ),
    Term(
        "Batch fill",
        "How many records share a batch. linger.ms lets a producer wait for more of them, up to batch.size.",
    ),
    Term(
        "Rolling",
        "Starting the next segment: by segment.bytes, segment.ms, a full index, offsets that are too far apart, "
        "or a restart.",
    ),
    Term(
        "Retention",
        "retention.ms and retention.bytes of the topic: which segments are deleted. By time, a segment's "
        "largest time counts; one that isn't old enough keeps all after it.",
    ),
    Term(
        "Pinned",
        "Kept although its own records are old enough, since a segment before it isn't, or since a record's time "
        "is in the future.",
    ),
    Term("Compaction", "cleanup.policy=compact: the log cleaner keeps the last record of each key."),
    Term(
        "Dirty ratio",
        "Bytes that weren't compacted yet, by all that may be. The cleaner comes from "
        "min.cleanable.dirty.ratio on, 0.5 by default.",
    ),
    Term("Superseded", "A record whose key came again later: compaction takes it."),
    Term(
        "Tombstone",
        "A record with a key and no value: it deletes the key, and goes itself delete.retention.ms after it was "
        "cleaned first.",
    ),
    Term("CreateTime, LogAppendTime", "Who sets a record's time: the producer, or the broker."),
    Term("Late", "A record whose time lies before the largest time so far in its partition."),
    Term(
        "Producer id, epoch",
        "What an idempotent or transactional producer gets from the broker; others have none. A "
        "higher epoch fences the one before.",
    ),
    Term("Last stable offset", "No transaction is open below it: read_committed consumers get no further."),
    Term("Lag", "The log's end offset minus what a group has committed."),
    Term("Skew", "The largest partition of a topic by its median one."),
    Term("Set aside on disk", "Blocks of the file system; less than the size where a file has holes."),
    Term(
        "Share, 50 %, 99 %",
        "Half of the values, or 99 in 100 of them, are no larger. Such values are at most 3 % too large; "
        "counts, sums, least and most are exact.",
    ),
)
