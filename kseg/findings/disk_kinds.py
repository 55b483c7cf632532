"""Kinds of findings in directories, on a node's disks, and on a cluster's disks taken together."""

from kseg.findings.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

DISK_FINDINGS: dict[str, FindingKind] = {
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
    "unpadded-name": FindingKind(
        _ERROR,
        "The name of a log doesn't have exactly 20 digits.",
        "The broker starts an empty log of the right name and the same offset next to it, and never reads this one.",
        "While the broker is down, rename the segment's files: pad their names with zeros to 20 digits.",
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
        " one (`logDirs`): after a start with a new id, partitions may have no leader until the next start.",
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
        "A broker's log directories hold a partition twice, both in use.",
        "The broker refuses to start.",
        "Keep the one with the larger log end offset, or combine both with `kseg salvage`.",
    ),
    "copies-diverged": FindingKind(
        _WARNING,
        "A copy of a partition has offsets that the cluster went on without: they were written before an unclean"
        " election, or by a leader that was already replaced.",
        "No consumer gets these records, and a broker that starts with the copy deletes them as it follows the leader.",
        "The command compares the copies. If the records are still wanted, save them before the broker starts:"
        " `kseg salvage` with all log directories, and `--keep-diverged`.",
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
        "Don't format the directory: that gives it a new id, with which its partitions may have no leader until another"
        " start. Write the file anew: `version`, `node.id` and `cluster.id` as in another log directory of the node,"
        " and the `directory.id` that `kseg metadata -o json` lists for this one (`logDirs`).",
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
        "The metadata have the partitions in a directory that is gone. A broker tells the controller the new id when it"
        " starts, and leads them. A node that is broker and controller may elect before that: a partition without"
        " another in-sync replica then has no leader until the next start.",
        "If meta.properties was changed or written anew, put back the id that `kseg metadata -o json` has (`logDirs`)."
        " If partitions have no leader after a start, start the node once more. If the directory is new, nothing.",
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
    "another-topics-id": FindingKind(
        _ERROR,
        "A partition's directory has the id of another topic that the cluster has: it was renamed, or its"
        " partition.metadata is another partition's.",
        "The broker starts, and fails at this partition. It leads none of the partitions that it comes to after this"
        " one, often all of them: their clients and groups wait.",
        "Rename the directory to what its topic's id says, or restore its own partition.metadata, while the broker is"
        " down.",
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
"""Kinds by id: problems of a partition's directory, a log directory, or all disks of a node."""


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
        " copy has most, and `kafka-leader-election.sh --bootstrap-server HOST:9092"
        " --election-type unclean --topic TOPIC --partition N` lets a broker that has it lead.",
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
"""Kinds by id: problems of a cluster's disks taken together."""
