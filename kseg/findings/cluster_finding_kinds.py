"""What `verify --cluster` can find: each finding's id, severity, meaning, risk and next step, in one table."""

from kseg.findings.finding_kinds import FindingKind, Severity

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
    "other-topic-id": FindingKind(
        Severity.WARNING,
        "A partition's directory belongs to a topic of another id: one that was deleted, and then created again.",
        "A broker that finds it at start renames it to `-stray`, and begins the new topic's partition as an empty one.",
        "If its records are still wanted, `kseg serve` and `kseg export` read it where it is; else delete it.",
    ),
    "not-in-metadata": FindingKind(
        Severity.WARNING,
        "A partition is here that the cluster doesn't have: its topic was deleted, or these metadata are too old.",
        "A broker that starts with these metadata renames it to `-stray`: no client gets its records.",
        "Add the log directories that have newer metadata, if there are any. If the topic was deleted, so can this be.",
    ),
    "copy-absent": FindingKind(
        Severity.NOTE,
        "Not all replicas of a partition have a copy here, but one that was in sync has.",
        "None: the others fetch from it.",
        "Nothing.",
    ),
}
"""By id: what the disks of a cluster lack, taken together."""
