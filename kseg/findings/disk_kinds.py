"""Kinds of findings in directories, on a node's disks, and on a cluster's disks taken together."""

from kseg.findings.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

DISK_FINDINGS: dict[str, FindingKind] = {
    # the directory and its checkpoints
    "leftover-file": FindingKind(
        _NOTE,
        "The file was left over when a deletion, a log cleaning or a write didn't finish.",
        "This is harmless because a broker completes or removes the file at startup.",
        "No action is needed. If no broker will use the directory again, you can delete `.deleted` and `.cleaned`"
        " files.",
    ),
    "leftover-log": FindingKind(
        _ERROR,
        "A log file that a broker deletes at startup (`.deleted` or `.cleaned`) contains records that aren't in"
        " the log of the partition.",
        "The records are deleted when a broker starts.",
        "Copy the file before you start a broker. If the log wasn't truncated on purpose, remove the suffix from"
        " the names of the segment files while the broker is down.",
    ),
    "unpadded-name": FindingKind(
        _ERROR,
        "The file name of a log doesn't consist of exactly 20 digits.",
        "The broker never reads this file. It creates an empty log with the correct name and the same offset instead.",
        "While the broker is down, rename the segment files so that the numbers are padded with zeros to 20 digits.",
    ),
    "misnamed-file": FindingKind(
        _ERROR,
        "A file in a partition directory has the suffix of a segment file, but its name isn't an offset.",
        "A broker refuses to start when it finds the file.",
        "Move the file out of the directory before you restart the broker.",
    ),
    "leftover-directory": FindingKind(
        _NOTE,
        "The partition is about to be deleted, is being moved between disks, or isn't assigned to the broker.",
        "This is harmless. The broker deletes directories that end in `-delete` and continues to move those that"
        " end in `-future`. It keeps `-stray` directories, which use disk space until you delete them.",
        "No action is needed. You can delete a `-stray` directory while the broker is down if complete replicas"
        " of the partition exist on other brokers or disks, or if its topic has been deleted for good.",
    ),
    "unreadable-text": FindingKind(
        _ERROR,
        "A checkpoint file, partition.metadata or meta.properties can't be read, or isn't in the format that"
        " Kafka writes.",
        "A broker may reject the log directory, or lose the information in the file.",
        "Stop the broker first. Delete a damaged `*-offset-checkpoint`: the broker writes it again. Without"
        " log-start-offset-checkpoint, consumers can read deleted records again until the broker deletes them again."
        " Run `kseg reindex PATH --to DIR` to rebuild leader-epoch-checkpoint and partition.metadata. Copy"
        " meta.properties from another log directory of the broker, but set the `directory.id` that `kseg metadata -o"
        " json` lists for this one (`logDirs`). After a start with a new id, partitions may have no leader until the"
        " next start.",
    ),
    "checkpoint-beyond-end": FindingKind(
        _WARNING,
        "The recovery point or the high watermark is after the end of the log, so the end of the log is lost.",
        "Records that had been flushed or replicated are lost in this copy.",
        "Compare the log end offset with the offsets of the other replicas. If another replica has more records,"
        " don't let this one become the leader until it has fetched them. Otherwise, no action is needed: the"
        " broker lowers both values at the next start.",
    ),
    "checkpoint-stale": FindingKind(
        _NOTE,
        "The log cleaner's checkpoint contains an offset that is outside the log.",
        "This is harmless because the cleaner starts again at the beginning of the log.",
        "No action is needed.",
    ),
    "log-start-beyond-end": FindingKind(
        _ERROR,
        "The log-start-offset-checkpoint file contains an offset after the end of the log.",
        "At startup, the broker deletes all segments and starts an empty log at that offset.",
        "If you still need the records, remove the line of the partition from the file while the broker is down,"
        " and decrease the count in the second line of the file by one.",
    ),
    "partition-twice": FindingKind(
        _ERROR,
        "Two log directories of a broker contain the same partition, and both copies are in use.",
        "A broker refuses to start when it finds both copies.",
        "Keep the copy with the higher log end offset, or combine both copies with `kseg salvage`.",
    ),
    "copies-diverged": FindingKind(
        _WARNING,
        "A copy of a partition contains records that the cluster has dropped. They were written before an unclean"
        " leader election, or by a leader that had already been replaced.",
        "Consumers can't read these records. When a broker starts with this copy and follows the leader, it"
        " deletes them.",
        "Compare the copies with the printed command. If you still need the records, run `kseg salvage` with all"
        " log directories and `--keep-diverged` before you start the broker.",
    ),
    "foreign-directory": FindingKind(
        _ERROR,
        "A log directory contains a directory whose name isn't the name of a partition.",
        "A broker refuses to start when it finds the directory. A running broker isn't affected.",
        "Move the directory out of the log directory before you restart the broker.",
    ),
    # the node and its cluster
    "identity-missing": FindingKind(
        _ERROR,
        "A log directory has no meta.properties file, which contains the ids of the node, the cluster and the"
        " directory.",
        "The node refuses to start without this file.",
        "Don't format the directory: with a new directory id, its partitions may have no leader until the second"
        " start. Re-create the file instead: copy `version`, `node.id` and `cluster.id` from another log"
        " directory of the node, and set `directory.id` to the id that `kseg metadata -o json` lists for this"
        " directory (`logDirs`).",
    ),
    "identity-differs": FindingKind(
        _ERROR,
        "The meta.properties file doesn't match another log directory of the node, or the directory as registered"
        " in the metadata.",
        "The node refuses to start, or the quorum doesn't recognise it as one of its voters.",
        "If the file has been changed, restore the value given in the finding. If the directory doesn't belong to"
        " the node, remove it from `log.dirs`.",
    ),
    "directory-unknown": FindingKind(
        _WARNING,
        "The `directory.id` of a log directory isn't registered for its node in the metadata.",
        "According to the metadata, the partitions are in a directory that no longer exists. At startup, a broker"
        " registers the new id with the controller and then leads the partitions. A combined broker and"
        " controller may elect leaders before that, and a partition without another in-sync replica then has no"
        " leader until the next start.",
        "If meta.properties has been changed or rewritten, restore the id that `kseg metadata -o json` lists"
        " (`logDirs`). If partitions have no leader after a start, restart the node. If the directory is new, no"
        " action is needed.",
    ),
    "bootstrap-checkpoint": FindingKind(
        _ERROR,
        "The bootstrap.checkpoint file is damaged, or doesn't contain the initial `metadata.version` of the cluster.",
        "A controller refuses to start with this file.",
        "If `__cluster_metadata-0` contains the metadata, delete the file while the node is down, because a"
        " controller can start without it. Otherwise, copy the file from another controller.",
    ),
    "metadata-missing": FindingKind(
        _ERROR,
        "None of the log directories of a KRaft node contains `__cluster_metadata-0`.",
        "A controller, including a combined broker and controller, starts with an empty cluster, and every"
        " partition is renamed to `-stray`. A node that is only a broker fetches the metadata from the"
        " controllers again.",
        "If it is in a separate directory (`metadata.log.dir`), add that directory to the command. Otherwise,"
        " restore it before you start the node: copy it from another voter, or rebuild it from the partitions"
        " with `kseg rebuild-metadata`.",
    ),
    "metadata-checkpoint": FindingKind(
        _ERROR,
        "The newest metadata checkpoint is missing, damaged, incomplete or from another cluster.",
        "The node refuses to start, or it starts with the readable part of the checkpoint. If that part contains"
        " no topics, every partition is renamed to `-stray`.",
        "Move a damaged checkpoint away while the node is down. The node then reads the previous checkpoint and the log"
        " after it, if the log still goes back that far. Otherwise, copy `__cluster_metadata-0` from another"
        " voter, or run `kseg rebuild-metadata`.",
    ),
    "metadata-checkpoint-old": FindingKind(
        _WARNING,
        "An older metadata checkpoint is damaged, incomplete or from another cluster.",
        "The node can still start, because it reads the newest checkpoint. If that one is ever damaged, this one"
        " can't be used instead.",
        "Move the checkpoint away while the node is down, or wait until the node deletes it.",
    ),
    "metadata-log": FindingKind(
        _WARNING,
        "The metadata log is damaged, but the newest checkpoint contains all the metadata from before the damage.",
        "As long as the checkpoint is readable, the node truncates the log and continues from there. Without the"
        " checkpoint, everything after the damage would be lost.",
        "Keep a copy of the newest `.checkpoint` file, and start the node.",
    ),
    "other-owner": FindingKind(
        _ERROR,
        "One user owns most of a log directory, but can't open one of the files because of its owner and permissions.",
        "If the broker runs as this user, it refuses to start or takes the log directory offline.",
        "Change the owner and permissions of the file (`chown`, `chmod`) before you start the broker.",
    ),
    "copy-missing": FindingKind(
        _ERROR,
        "According to the metadata, a partition is in this log directory, but its directory is missing and no"
        " other replica is in sync.",
        "The broker creates an empty partition, so all the records are lost.",
        "Restore the partition directory before you start the broker. Use a backup, the copy of an out-of-sync"
        " replica, or a directory with the same name that ends in `-delete` or `-stray`.",
    ),
    "partial-disk": FindingKind(
        _NOTE,
        "Most of the partitions that the metadata assigns to this log directory, or the files of the node itself,"
        " are missing, so kseg assumes that the directory is a partial copy.",
        "This is harmless if the directory is a copy. If you start a broker on it, the broker creates empty"
        " partitions in place of the missing ones.",
        "No action is needed, unless this is the broker's own disk.",
    ),
    "topic-id-missing": FindingKind(
        _ERROR,
        "A partition directory has no partition.metadata file, which contains the topic id.",
        "Kafka 3.7 and later rename the directory to `-stray` and create an empty partition. Earlier versions"
        " refuse to start.",
        "Run `kseg reindex PATH --to DIR` to rebuild the file from the metadata, and put it in place while the"
        " broker is down.",
    ),
    "another-topics-id": FindingKind(
        _ERROR,
        "The topic id in a partition directory belongs to another topic in the cluster. Either the directory has"
        " been renamed, or its partition.metadata was copied from another partition.",
        "The broker starts, but fails when it loads this partition. It doesn't lead the partitions that it would"
        " load afterwards, which may be all of them, so their clients and groups have to wait.",
        "While the broker is down, rename the directory to match the topic id, or restore the original"
        " partition.metadata.",
    ),
    "other-topic-id": FindingKind(
        _WARNING,
        "A partition directory belongs to a deleted topic. The current topic with the same name has a different id.",
        "A broker that finds the directory at startup renames it to `-stray` and creates an empty partition for"
        " the current topic.",
        "If you still need the records, read them in place with `kseg serve` or `kseg export`. Otherwise, delete"
        " the directory.",
    ),
    "not-in-metadata": FindingKind(
        _WARNING,
        "The partition doesn't exist in the cluster metadata. Either its topic has been deleted, or the metadata"
        " is too old.",
        "A broker that starts with this metadata renames the directory to `-stray`, and clients can no longer"
        " read the records.",
        "If other log directories have newer metadata, add them to the command. If the topic has been deleted,"
        " you can delete the directory as well.",
    ),
}
"""Kinds by id: problems of a partition's directory, a log directory, or all disks of a node."""


CLUSTER_FINDINGS: dict[str, FindingKind] = {
    "no-copy": FindingKind(
        Severity.ERROR,
        "The given directories contain no copy of a partition that exists in the cluster.",
        "Brokers that start on these disks create an empty partition, so all the records are lost.",
        "Add the log directories of one of its replicas; the finding lists the brokers. If no replica is left,"
        " look for the records in the remote tier, in a backup, or in another cluster (MirrorMaker).",
    ),
    "no-in-sync-copy": FindingKind(
        Severity.WARNING,
        "The given directories contain copies of a partition, but none of them is from an in-sync replica.",
        "Acknowledged records may be missing from these copies. The controller doesn't elect a leader among them"
        " automatically, so the partition stays offline.",
        "Add the log directories of an in-sync replica; the finding lists the brokers. If there is none, run"
        " `kseg diff` to see which copy has the most records. Then elect a broker with this copy as the leader:"
        " `kafka-leader-election.sh --bootstrap-server HOST:9092 --election-type unclean --topic TOPIC"
        " --partition N`.",
    ),
    "offsets-in-no-copy": FindingKind(
        Severity.WARNING,
        "The same segments in the middle of the log are missing from all copies of a partition.",
        "The records in the gap are lost, and consumers continue with the first record after it.",
        "Add the log directories of the other replicas. Alternatively, get the segments from the remote tier or a"
        " backup, and combine everything with `kseg salvage`.",
    ),
    "copy-absent": FindingKind(
        Severity.NOTE,
        "Some replicas of a partition aren't in the given directories, but there is a copy from an in-sync replica.",
        "This is harmless because the other replicas fetch the records from the in-sync replica.",
        "No action is needed.",
    ),
}
"""Kinds by id: problems of a cluster's disks taken together."""
