"""Kinds of findings in a remote tier."""

from kseg.findings.finding_kind import FindingKind, Severity

_LOST = "Neither a broker nor kseg can read the segment's records from the tier."
_COPY = (
    "If the broker's disk or a replica still has the offsets, run `kseg salvage BUCKET DISK --to DIR` to join them."
    " Otherwise look for an older version of the object, if the bucket keeps versions."
)

TIER_FINDINGS: dict[str, FindingKind] = {
    "remote-manifest": FindingKind(
        Severity.ERROR, "A segment's manifest can't be read, or belongs to another segment.", _LOST, _COPY
    ),
    "remote-missing": FindingKind(
        Severity.ERROR, "The tier lacks one of a segment's objects, but has others.", _LOST, _COPY
    ),
    "remote-size": FindingKind(
        Severity.ERROR,
        "An object has more or fewer bytes than its chunks in the manifest add up to.",
        "The missing bytes, and the chunk in which they begin, can't be read.",
        _COPY,
    ),
    "remote-gap": FindingKind(
        Severity.ERROR,
        "Offsets are missing between two segments of the tier.",
        "The records are lost, unless the broker's disk still has them.",
        _COPY,
    ),
    "remote-lost": FindingKind(
        Severity.ERROR,
        "`__remote_log_metadata` lists a segment as copied, but the tier has none of its objects.",
        "A broker fails when a consumer asks for these offsets.",
        _COPY,
    ),
    "remote-unfinished": FindingKind(
        Severity.WARNING,
        "Objects have no manifest: their upload didn't finish, or is running right now.",
        "None for the log: the broker uploads the segment again. The objects remain and cost money.",
        "If no broker is uploading, you can remove them from the tier.",
    ),
    "remote-deleted": FindingKind(
        Severity.WARNING,
        "The tier has objects of a segment that `__remote_log_metadata` lists as deleted.",
        "None for the log: no broker reads the objects. They remain and cost money.",
        "Once nobody needs the records, you can remove the objects from the tier.",
    ),
    "remote-started": FindingKind(
        Severity.WARNING,
        "For more than an hour, `__remote_log_metadata` has listed a copy or deletion of a segment as started.",
        "The broker repeats an unfinished copy under another id. The objects of the first one remain and cost money.",
        "If the tier has objects of the segment, and no broker is uploading, you can remove them from the tier.",
    ),
    "remote-unknown": FindingKind(
        Severity.WARNING,
        "The tier has a segment that `__remote_log_metadata` doesn't list.",
        "None for the log: no broker reads the segment. Its objects remain and cost money.",
        "Check that you gave all partitions of `__remote_log_metadata`. If so, you can remove the segment's objects.",
    ),
    "remote-overlap": FindingKind(
        Severity.NOTE,
        "Several segments of the tier have the same offsets, as after a change of leader.",
        "None: like a broker, kseg uses the segment of the leader epochs that the log continued from.",
        "Nothing. `kseg ls --by segment` shows the segments in use.",
    ),
    "remote-end": FindingKind(
        Severity.NOTE,
        "A segment has batches after the end offset in its manifest.",
        "None for the records: neither brokers nor kseg use the manifest's end offset to read a segment.",
        "Nothing.",
    ),
}
"""Kinds by id."""
