"""Kinds of findings in directories, on a node's disks, and on a cluster's disks taken together."""

from kseg.findings.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

DISK_FINDINGS: dict[str, FindingKind] = {
    # the directory and its checkpoints
    "leftover-file": FindingKind(
        _NOTE,
        "A deletion, a cleaning or a write didn't finish and left this file.",
        "None: a broker completes or removes it at startup.",
        "Nothing. If no broker will use the directory, you can delete `.deleted` and `.cleaned` files.",
    ),
    "leftover-log": FindingKind(
        _ERROR,
        "A log that a broker deletes at startup (`.deleted`, `.cleaned`) has records that the partition's log lacks.",
        "The next start deletes these records.",
        "Copy the file before a broker starts. If the log wasn't cut on purpose, remove the ending from the names of"
        " the segment's files while the broker is down.",
    ),
    "unpadded-name": FindingKind(
        _ERROR,
        "The file name of a log doesn't have exactly 20 digits.",
        "The broker creates an empty log with the correct name and the same offset, and never reads this one.",
        "While the broker is down, rename the segment's files: pad the numbers with zeros to 20 digits.",
    ),
    "misnamed-file": FindingKind(
        _ERROR,
        "A file in a partition's directory has the suffix of a segment's file, but its name isn't an offset.",
        "The broker refuses to start.",
        "Move the file out of the directory before the broker starts again.",
    ),
    "leftover-directory": FindingKind(
        _NOTE,
        "This partition is about to be deleted, is being moved between disks, or isn't assigned to the broker.",
        "None. The broker deletes directories that end in `-delete`, and resumes the move of `-future` ones. It keeps"
        " `-stray` ones, which use space until somebody deletes them.",
        "Nothing. You can delete a `-stray` directory while the broker is down, if the partition's replicas are"
        " complete on other brokers or disks. You can also delete it if its topic is gone for good.",
    ),
    "unreadable-text": FindingKind(
        _ERROR,
        "A checkpoint, partition.metadata or meta.properties can't be read, or doesn't have the form that Kafka"
        " writes.",
        "A broker may reject its log directory, or lose the file's contents.",
        "Stop the broker first. Delete a damaged `*-offset-checkpoint`: the broker writes it again. Without"
        " log-start-offset-checkpoint, consumers can read deleted records again until the broker deletes them again."
        " Run `kseg reindex PATH --to DIR` to rebuild leader-epoch-checkpoint and partition.metadata. Copy"
        " meta.properties from another log directory of the broker, but set the `directory.id` that `kseg metadata -o"
        " json` lists for this one (`logDirs`). After a start with a new id, partitions may have no leader until the"
        " next start.",
    ),
    "checkpoint-beyond-end": FindingKind(
        _WARNING,
        "The recovery point or the high watermark is after the end of the log, so the log has lost its end.",
        "This copy has lost records that were flushed or replicated.",
        "Compare the log end offset with the other replicas'. If another replica has more, don't let this one become"
        " leader before it has fetched the rest. Otherwise do nothing: the next start lowers both values.",
    ),
    "checkpoint-stale": FindingKind(
        _NOTE,
        "The cleaner's checkpoint has an offset outside the log.",
        "None: the cleaner starts at the beginning of the log.",
        "Nothing.",
    ),
    "log-start-beyond-end": FindingKind(
        _ERROR,
        "log-start-offset-checkpoint has an offset after the end of the log.",
        "At start the broker deletes all segments and begins an empty log at that offset.",
        "If you still need the records, remove the partition's line from the file while the broker is down. Lower the"
        " count in the file's second line by one.",
    ),
    "partition-twice": FindingKind(
        _ERROR,
        "Two log directories of a broker hold the same partition, and both copies are in use.",
        "The broker refuses to start.",
        "Keep the copy with the larger log end offset, or combine both with `kseg salvage`.",
    ),
    "copies-diverged": FindingKind(
        _WARNING,
        "A copy of a partition has offsets that the cluster continued without. They were written before an unclean"
        " election, or by a leader that was already replaced.",
        "No consumer gets these records. A broker that starts with the copy deletes them when it follows the leader.",
        "Compare the copies with the command. If you still need the records, save them before the broker starts: run"
        " `kseg salvage` with all log directories and `--keep-diverged`.",
    ),
    "foreign-directory": FindingKind(
        _ERROR,
        "A log directory contains a directory that isn't named after a partition.",
        "The broker refuses to start. A running broker isn't affected.",
        "Move the directory out of the log directory before the broker starts again.",
    ),
    # the node and its cluster
    "identity-missing": FindingKind(
        _ERROR,
        "A log directory has no meta.properties, which holds the ids of its node, its cluster and itself.",
        "The node refuses to start.",
        "Don't format the directory: with a new id, its partitions may have no leader until another start. Write the"
        " file again. Copy `version`, `node.id` and `cluster.id` from another log directory of the node. Set the"
        " `directory.id` that `kseg metadata -o json` lists for this one (`logDirs`).",
    ),
    "identity-differs": FindingKind(
        _ERROR,
        "meta.properties contradicts another log directory of the node, or the metadata's entry for the directory.",
        "The node refuses to start, or the quorum doesn't recognise it as its voter.",
        "If the file was changed, restore the value that the finding names. If the directory isn't the node's, remove"
        " it from `log.dirs`.",
    ),
    "directory-unknown": FindingKind(
        _WARNING,
        "A log directory has a `directory.id` that the metadata don't list for its node.",
        "The metadata assign the partitions to a directory that is gone. At start a broker registers the new id with"
        " the controller, and then leads the partitions. A node that is broker and controller may elect leaders"
        " before that. A partition without another in-sync replica then has no leader until the next start.",
        "If meta.properties was changed or rewritten, restore the id that `kseg metadata -o json` lists (`logDirs`)."
        " If partitions have no leader after a start, start the node once more. If the directory is new, do nothing.",
    ),
    "bootstrap-checkpoint": FindingKind(
        _ERROR,
        "bootstrap.checkpoint is damaged, or lacks the `metadata.version` that the cluster began with.",
        "A controller refuses to start.",
        "If `__cluster_metadata-0` has the metadata, delete the file while the node is down: a controller starts"
        " without it. Otherwise copy another controller's.",
    ),
    "metadata-missing": FindingKind(
        _ERROR,
        "The log directories of a KRaft node have no `__cluster_metadata-0`.",
        "A controller, combined with a broker or not, starts as an empty cluster, and each partition becomes a"
        " `-stray`. A node that is only a broker gets the metadata from the controllers again.",
        "If it is in another directory (`metadata.log.dir`), give that directory too. Otherwise restore it before the"
        " node starts. Copy it from another voter, or run `kseg rebuild-metadata` to rebuild it from the partitions.",
    ),
    "metadata-checkpoint": FindingKind(
        _ERROR,
        "The newest checkpoint of the metadata is damaged, incomplete or from another cluster.",
        "The node refuses to start, or starts with the readable part of the checkpoint. If that is an empty cluster,"
        " each partition becomes a `-stray`.",
        "Move it away while the node is down. The node then reads the previous checkpoint and the log after it, if"
        " the log reaches back that far. Otherwise take another voter's `__cluster_metadata-0`, or run `kseg"
        " rebuild-metadata`.",
    ),
    "metadata-checkpoint-old": FindingKind(
        _WARNING,
        "A checkpoint of the metadata other than the newest is damaged, incomplete or from another cluster.",
        "None for a start, which reads the newest checkpoint. If that one is damaged, this one can't replace it.",
        "Move it away while the node is down, or wait: the node deletes old checkpoints.",
    ),
    "metadata-log": FindingKind(
        _WARNING,
        "The metadata log is damaged, but the newest checkpoint has everything before the damage.",
        "None while that checkpoint is readable: the node cuts the log and continues from there. Without the"
        " checkpoint, everything after the damage is lost.",
        "Keep a copy of the newest `.checkpoint`, and start the node.",
    ),
    "other-owner": FindingKind(
        _ERROR,
        "One user owns most of a log directory, but can't open a file in it because of the file's owner and mode.",
        "A broker that runs as this user refuses to start, or takes the log directory offline.",
        "Give the file to the broker's user (`chown`, `chmod`) before the broker starts.",
    ),
    "copy-missing": FindingKind(
        _ERROR,
        "The metadata assign a partition to this log directory, but its directory is missing. No other replica is in"
        " sync.",
        "The broker creates an empty partition: all its records are gone.",
        "Restore the partition's directory before the broker starts. Use a backup, the copy of an out-of-sync"
        " replica, or a directory of the same name that ends in `-delete` or `-stray`.",
    ),
    "partial-disk": FindingKind(
        _NOTE,
        "The metadata assign partitions to a log directory that aren't here. Most partitions or the node's own files"
        " are missing, so kseg takes the directory for a partial copy.",
        "None for a copy. If a broker starts on it, it creates the missing partitions as empty ones.",
        "Nothing, unless this is the broker's own disk.",
    ),
    "topic-id-missing": FindingKind(
        _ERROR,
        "A partition's directory has no partition.metadata, which holds its topic's id.",
        "From 3.7 on the broker renames the directory to `-stray`, and creates an empty partition. Older brokers"
        " refuse to start.",
        "Run `kseg reindex PATH --to DIR` to rebuild it from the metadata, and put it in place while the broker is"
        " down.",
    ),
    "another-topics-id": FindingKind(
        _ERROR,
        "A partition's directory has the id of another topic in the cluster. The directory was renamed, or its"
        " partition.metadata belongs to another partition.",
        "The broker starts, but fails at this partition. It leads none of the partitions that it reaches later, often"
        " all of them: their clients and groups wait.",
        "While the broker is down, rename the directory to the topic of its id, or restore its own partition.metadata.",
    ),
    "other-topic-id": FindingKind(
        _WARNING,
        "A partition's directory belongs to a deleted topic. The current topic of the same name has another id.",
        "A broker that finds it at startup renames it to `-stray`, and creates the new topic's partition as an empty"
        " one.",
        "If you still need its records, read them in place with `kseg serve` or `kseg export`. Otherwise delete the"
        " directory.",
    ),
    "not-in-metadata": FindingKind(
        _WARNING,
        "The cluster doesn't have this partition. Its topic was deleted, or these metadata are too old.",
        "A broker that starts with these metadata renames it to `-stray`: no client gets its records.",
        "If other log directories have newer metadata, add them. If the topic was deleted, you can delete the"
        " directory too.",
    ),
}
"""Kinds by id: problems of a partition's directory, a log directory, or all disks of a node."""


CLUSTER_FINDINGS: dict[str, FindingKind] = {
    "no-copy": FindingKind(
        Severity.ERROR,
        "The cluster has a partition without a copy in the given directories.",
        "Brokers that start on these disks create an empty partition: all its records are gone.",
        "Add the log directories of one of its replicas: the finding lists the brokers. If no replica is left, look"
        " for the records in the remote tier, a backup or another cluster (MirrorMaker).",
    ),
    "no-in-sync-copy": FindingKind(
        Severity.WARNING,
        "The given directories have copies of a partition, but none from an in-sync replica.",
        "These copies may lack acknowledged records. Brokers don't elect a leader among them without a command: the"
        " partition stays offline.",
        "Add the log directories of an in-sync replica: the finding lists the brokers. Otherwise run `kseg diff` to"
        " see which copy has most. Then let a broker with this copy lead: `kafka-leader-election.sh"
        " --bootstrap-server HOST:9092 --election-type unclean --topic TOPIC --partition N`.",
    ),
    "offsets-in-no-copy": FindingKind(
        Severity.WARNING,
        "All copies of a partition lack the same segments in the middle of the log.",
        "The records in the gap are lost. Consumers continue after it.",
        "Add the log directories of the other replicas. Or get the segments from the remote tier or a backup, and"
        " combine all with `kseg salvage`.",
    ),
    "copy-absent": FindingKind(
        Severity.NOTE,
        "Some replicas of a partition have no copy here, but an in-sync replica has one.",
        "None: the other replicas fetch from it.",
        "Nothing.",
    ),
}
"""Kinds by id: problems of a cluster's disks taken together."""
