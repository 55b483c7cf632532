"""What `kseg doctor` can find: `verify`'s findings and its own, in the order of urgency, each with its next command."""

from kseg.findings.finding_kinds import FINDINGS, FindingKind, Severity
from kseg.findings.tier_finding_kinds import TIER_FINDINGS
from kseg.views.doctor import next_steps
from kseg.views.doctor.next_steps import NextStep
from kseg.views.doctor.suspect_times import FUTURE, MICROSECONDS, NANOSECONDS, SECONDS

_PINS = (
    "Retention by time keeps the segment, and all after it, until that time has passed: the disk fills up. Lookups by"
    " time find the wrong records."
)
_WHOSE = (
    "The command shows the first such records: find the application that writes them, and correct it. The topic's"
    " `message.timestamp.type=LogAppendTime`, or from 3.6 on `message.timestamp.after.max.ms`, keeps new ones out. What"
    " is pinned goes by `retention.bytes`, or by `kafka-delete-records.sh`, once nobody needs it."
)

OWN: dict[str, FindingKind] = {
    # the disk and its directories
    "disk-full": FindingKind(
        Severity.ERROR,
        "Nothing is free on the file system of a log directory.",
        "A broker takes the log directory offline, or ends, at the next write.",
        "The command shows which topics' retention to lower for a tenth of the disk to be free. A broker that has"
        " stopped needs some space to start: make it outside the log directories. Never delete files of a partition"
        " beside a broker.",
    ),
    "foreign-directory": FindingKind(
        Severity.ERROR,
        "A directory in a log directory isn't named after a partition.",
        "The broker refuses to start. One that runs isn't disturbed.",
        "Move it out of the log directory before the broker starts again.",
    ),
    "disk-nearly-full": FindingKind(
        Severity.WARNING,
        "Less than a twentieth of the file system of a log directory is free.",
        "When nothing is left, a broker takes the log directory offline, or ends.",
        "The command shows which topics' retention to lower for a tenth of the disk to be free. Or add space.",
    ),
    "empty-directory": FindingKind(
        Severity.NOTE,
        "A partition's directory has nothing of a log in it.",
        "A broker starts an empty log there; if there was one, its records are lost here.",
        "If the partition had records, take an intact replica.",
    ),
    "retention-due": FindingKind(
        Severity.NOTE,
        "Retention by time, by size or by log start offset would delete segments now.",
        "None: a running broker deletes them at its next check (`log.retention.check.interval.ms`). If the records"
        " are still needed, they go as soon as a broker starts here.",
        "The command shows which segments, and why.",
    ),
    # clocks
    NANOSECONDS: FindingKind(
        Severity.WARNING, "Times of records look like nanoseconds; Kafka takes them for milliseconds.", _PINS, _WHOSE
    ),
    MICROSECONDS: FindingKind(
        Severity.WARNING, "Times of records look like microseconds; Kafka takes them for milliseconds.", _PINS, _WHOSE
    ),
    FUTURE: FindingKind(Severity.WARNING, "Times of records lie more than an hour in the future.", _PINS, _WHOSE),
    SECONDS: FindingKind(
        Severity.WARNING,
        "Times of records look like seconds; Kafka takes them for milliseconds, in January 1970.",
        "Retention by time deletes a segment in which all times are such as soon as it looks at it. Lookups by time"
        " miss the records.",
        "The command shows the first such records: find the application that writes them, and correct it. Until then,"
        " the topic's `message.timestamp.type=LogAppendTime` gives new records the broker's time, and"
        " `retention.ms=-1` keeps those that are there.",
    ),
    "clock-behind": FindingKind(
        Severity.NOTE,
        "Files here were written later than this machine's clock says it is.",
        "None: times are judged by the files' time instead.",
        "Set this machine's clock, or give the time to judge by: `--now`.",
    ),
}
"""By id: those that `verify` doesn't have."""

KINDS: dict[str, FindingKind] = FINDINGS | TIER_FINDINGS | OWN
"""By id."""

CARE: dict[str, NextStep] = {
    # a broker stops, or deletes what is there
    "disk-full": next_steps.free_space,
    "partition-twice": next_steps.list_homes,
    "foreign-directory": next_steps.explain,
    "log-start-beyond-end": next_steps.explain,
    # records are lost, or will be at the next recovery
    "unreadable": next_steps.explain,
    "bad-length": next_steps.salvage,
    "bad-magic": next_steps.salvage,
    "bad-crc": next_steps.salvage,
    "cut-segment": next_steps.salvage,
    "offset-below-base": next_steps.salvage,
    "offset-too-far": next_steps.explain,
    "offsets-fall": next_steps.salvage,
    "duplicate-batch": next_steps.salvage,
    "segment-overlap": next_steps.salvage,
    "remote-lost": next_steps.explain,
    "remote-manifest": next_steps.explain,
    "remote-missing": next_steps.explain,
    "remote-size": next_steps.explain,
    "remote-gap": next_steps.explain,
    # consumers get stuck, or miss records
    "bad-codec": next_steps.salvage_readable,
    "bad-body": next_steps.salvage_readable,
    "bad-record": next_steps.salvage_readable,
    "bad-count": next_steps.salvage_readable,
    "record-offsets": next_steps.salvage_readable,
    "offsets-lost": next_steps.look_up,
    "transaction-unindexed": next_steps.reindex,
    "transaction-unfounded": next_steps.reindex,
    "index-unreadable": next_steps.reindex,
    "index-entry": next_steps.reindex,
    "index-unsorted": next_steps.reindex,
    "unreadable-text": next_steps.mend_text,
    # warnings: what grows worse by itself
    "disk-nearly-full": next_steps.free_space,
    "hanging-transaction": next_steps.open_transactions,
    "checkpoint-beyond-end": next_steps.list_ends,
    "snapshot-beyond-end": next_steps.list_ends,
    "torn-tail": next_steps.mend_tail,
    SECONDS: next_steps.show_records,
    NANOSECONDS: next_steps.show_records,
    MICROSECONDS: next_steps.show_records,
    FUTURE: next_steps.show_records,
    "long-transaction": next_steps.open_transactions,
    "offsets-missing": next_steps.look_up,
    "sequence-gap": next_steps.show_batches,
    "sequence-repeated": next_steps.show_batches,
    "producer-epoch-falls": next_steps.show_batches,
    "max-timestamp": next_steps.show_batches,
    "leader-epoch-falls": next_steps.show_batches,
    "leader-epoch-checkpoint": next_steps.reindex,
    "leader-epoch-unsorted": next_steps.reindex,
    "leader-epochs-missing": next_steps.reindex,
    "time-index-ends-early": next_steps.reindex,
    "time-index-entry": next_steps.reindex,
    "index-cut": next_steps.reindex,
    "index-sparse": next_steps.reindex,
    "index-missing": next_steps.reindex,
    "snapshot-content": next_steps.reindex,
    "snapshot-unreadable": next_steps.reindex,
    "remote-started": next_steps.explain,
    "remote-unfinished": next_steps.explain,
    "remote-deleted": next_steps.explain,
    "remote-unknown": next_steps.explain,
    # notes: what takes space, then what needs nothing
    "retention-due": next_steps.show_retention,
    "leftover-directory": next_steps.list_ends,
    "leftover-file": next_steps.explain,
    "clock-behind": next_steps.explain,
    "zero-tail": next_steps.list_ends,
    "open-transaction": next_steps.open_transactions,
    "empty-directory": next_steps.explain,
    "orphan-index": next_steps.explain,
    "leader-epoch-beyond-end": next_steps.list_ends,
    "leader-epochs-cleared": next_steps.nothing,
    "index-old-entries": next_steps.nothing,
    "index-preallocated": next_steps.nothing,
    "checkpoint-stale": next_steps.nothing,
    "offsets-compacted": next_steps.nothing,
    "remote-overlap": next_steps.nothing,
    "remote-end": next_steps.nothing,
}
"""Of each kind what to run next; those of one severity with the most urgent first."""

_ALIKE = ("bad-length", "bad-magic", "bad-crc")
"""What bytes that aren't a batch look like is chance: the first of them is the worst."""
URGENCY: dict[str, int] = {name: place for place, name in enumerate(CARE)}
URGENCY |= dict.fromkeys(_ALIKE, URGENCY[_ALIKE[0]])
"""The place of each kind among those of its severity."""
