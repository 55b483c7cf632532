"""Kinds of findings in a remote tier."""

from kseg.findings.finding_kind import FindingKind, Severity

_LOST = "The records of the segment can't be read from the tier, neither by a broker nor by kseg."
_COPY = (
    "If the broker's disk or a replica still has the records, run `kseg salvage BUCKET DISK --to DIR` to combine"
    " them. Otherwise, if versioning is enabled for the bucket, look for an older version of the object."
)

TIER_FINDINGS: dict[str, FindingKind] = {
    "remote-manifest": FindingKind(
        Severity.ERROR, "The manifest of a segment can't be read, or it belongs to another segment.", _LOST, _COPY
    ),
    "remote-missing": FindingKind(
        Severity.ERROR,
        "One of the objects of a segment is missing from the tier, but the others are there.",
        _LOST,
        _COPY,
    ),
    "remote-size": FindingKind(
        Severity.ERROR,
        "The size of an object differs from the total size of its chunks in the manifest.",
        "The missing bytes can't be read, and neither can the rest of the chunk in which they start.",
        _COPY,
    ),
    "remote-gap": FindingKind(
        Severity.ERROR,
        "There is a gap in the offsets between two segments in the tier.",
        "The records are lost, unless they are still on the broker's disk.",
        _COPY,
    ),
    "remote-lost": FindingKind(
        Severity.ERROR,
        "According to `__remote_log_metadata`, a segment has been copied, but none of its objects is in the tier.",
        "A broker returns an error when a consumer requests these offsets.",
        _COPY,
    ),
    "remote-unfinished": FindingKind(
        Severity.WARNING,
        "Some objects have no manifest, because their upload was interrupted or is still in progress.",
        "The log isn't affected, because the broker uploads the segment again. The objects stay in the tier and"
        " incur storage costs.",
        "If no broker is uploading, you can delete the objects from the tier.",
    ),
    "remote-deleted": FindingKind(
        Severity.WARNING,
        "The tier still contains objects of a segment that has been deleted according to `__remote_log_metadata`.",
        "The log isn't affected, because brokers don't read these objects. They stay in the tier and incur"
        " storage costs.",
        "When nobody needs the records any more, you can delete the objects from the tier.",
    ),
    "remote-started": FindingKind(
        Severity.WARNING,
        "According to `__remote_log_metadata`, copying or deleting a segment started more than an hour ago and"
        " hasn't finished.",
        "The broker copies the segment again under a different id. The objects of the first attempt stay in the"
        " tier and incur storage costs.",
        "If the tier contains objects of the segment and no broker is uploading, you can delete them from the tier.",
    ),
    "remote-unknown": FindingKind(
        Severity.WARNING,
        "The tier contains a segment that isn't listed in `__remote_log_metadata`.",
        "The log isn't affected, because brokers don't read the segment. Its objects stay in the tier and incur"
        " storage costs.",
        "Make sure that the command includes all partitions of `__remote_log_metadata`. If it does, you can"
        " delete the objects of the segment.",
    ),
    "remote-overlap": FindingKind(
        Severity.NOTE,
        "Several segments in the tier contain the same offsets, which can happen after a leader change.",
        "This is harmless: like a broker, kseg uses the segment whose leader epochs belong to the current log.",
        "No action is needed. To see the segments in use, run `kseg ls --by segment`.",
    ),
    "remote-end": FindingKind(
        Severity.NOTE,
        "A segment contains batches after the end offset in its manifest.",
        "The records aren't affected, because neither brokers nor kseg use the end offset in the manifest to read"
        " a segment.",
        "No action is needed.",
    ),
}
"""Kinds by id."""
