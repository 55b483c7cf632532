"""Kinds of findings in a remote tier."""

from kseg.findings.finding_kind import FindingKind, Severity

_LOST = "The segment's records can't be read out of the tier, by a broker no more than by kseg."
_COPY = (
    "If the broker's disk or a replica still has the offsets, `kseg salvage BUCKET DISK --to DIR` joins them. Otherwise"
    " look for an older version of the object, if the bucket keeps versions."
)

TIER_FINDINGS: dict[str, FindingKind] = {
    "remote-manifest": FindingKind(
        Severity.ERROR, "A segment's manifest can't be read, or is another segment's.", _LOST, _COPY
    ),
    "remote-missing": FindingKind(
        Severity.ERROR, "An object of a segment isn't in the tier, though others of it are.", _LOST, _COPY
    ),
    "remote-size": FindingKind(
        Severity.ERROR,
        "An object has more or fewer bytes than its chunks add up to by the manifest.",
        "What is missing, and the chunk in which it begins, can't be read.",
        _COPY,
    ),
    "remote-gap": FindingKind(
        Severity.ERROR,
        "Between two segments of the tier offsets are missing.",
        "Records are lost here, unless the broker's disk still has them.",
        _COPY,
    ),
    "remote-lost": FindingKind(
        Severity.ERROR,
        "`__remote_log_metadata` has a segment as copied, but the tier has no object of it.",
        "A broker fails when a consumer asks for these offsets.",
        _COPY,
    ),
    "remote-unfinished": FindingKind(
        Severity.WARNING,
        "Objects without a manifest: an upload that never ended, or that is going on right now.",
        "None for the log: the broker uploads the segment again. The objects stay, and cost money.",
        "If no broker is uploading, they can be removed from the tier.",
    ),
    "remote-deleted": FindingKind(
        Severity.WARNING,
        "The tier has objects of a segment that `__remote_log_metadata` has as deleted.",
        "None for the log: no broker reads them. They stay, and cost money.",
        "They can be removed from the tier once nobody needs the records.",
    ),
    "remote-started": FindingKind(
        Severity.WARNING,
        "`__remote_log_metadata` has had a segment as started, for copying or for deletion, for more than an hour.",
        "A copy that was started and not finished is made again under another id; its objects stay, and cost money.",
        "If the tier has objects of it, and no broker is uploading, they can be removed from the tier.",
    ),
    "remote-unknown": FindingKind(
        Severity.WARNING,
        "The tier has a segment that `__remote_log_metadata` doesn't know.",
        "None for the log: no broker reads it. Its objects stay, and cost money.",
        "Look whether all partitions of `__remote_log_metadata` were given. If so, its objects can be removed.",
    ),
    "remote-overlap": FindingKind(
        Severity.NOTE,
        "Several segments of the tier have the same offsets, as after a change of leader.",
        "None: as a broker does, kseg takes the one of the leader epochs that the log went on from.",
        "Nothing. `kseg ls --by segment` shows which ones are used.",
    ),
    "remote-end": FindingKind(
        Severity.NOTE,
        "A segment's batches go beyond the end offset in its manifest.",
        "None for the records: neither brokers nor kseg go by the manifest's end offset to read a segment.",
        "Nothing.",
    ),
}
"""Kinds by id."""
