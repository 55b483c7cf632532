"""The doctor's check-up of a directory, and its expected first finding for each kind of damage."""

import re
from pathlib import Path

from kseg.cluster.now import Now, NowSource
from kseg.doctor.check_up import CheckUpInWork
from kseg.doctor.examination import CheckUp, ExaminationSettings, examine, plan_examination

LOG_CUT = {"torn-tail", "bad-length", "bad-crc"}
LENGTH = {"bad-length", "bad-crc", "torn-tail"}
"""Findings of a batch with a wrong length: the damage shows at its end, its CRC or the file's end."""
BATCH = {"bad-crc", "bad-magic", "bad-length", "torn-tail"}
RECORDS = {"bad-record", "bad-body", "bad-count", "record-offsets"}
OFFSETS = {"offset-below-base", "offset-too-far", "offsets-fall", "record-offsets", "offsets-lost", "bad-record"}

WORST: dict[str, set[str]] = {
    "torn-(header|records|one-byte|first)": {"torn-tail"},
    "only-.*-bytes": {"torn-tail", "zero-tail"},
    "zero-tail|only-.*-zeros": {"zero-tail"},
    "zeroed-end": {"bad-crc"},
    "garbage-tail|only-random": {"torn-tail", "bad-length", "bad-magic"},
    "flip-records|crc-zero|first-flipped-and-torn": {"bad-crc"},
    "length-.*": LENGTH,
    "magic-other": {"bad-crc"},
    "magic-.*": {"bad-magic"},
    "codec-other": {"bad-body"},
    "codec-.*": {"bad-codec"},
    "flip-(baseOffset|offset)": OFFSETS,
    "flip-.*": BATCH,
    "count-.*": {"bad-count"},
    "last-offset-delta-.*": OFFSETS,
    "record-.*|message-.*|inner-.*|body-.*": RECORDS | OFFSETS | {"max-timestamp", "offsets-missing"},
    "bomb-.*": RECORDS | {"offsets-lost", "max-timestamp"},
    "hole-.*|wiped-.*": BATCH,
    "duplicated": {"duplicate-batch"},
    "reordered": {"offsets-fall"},
    "offset-(lower|negative)": OFFSETS,
    "index-of-corrupt-log|timeindex-of-corrupt-log": {"bad-crc"},
    "timeindex-of-torn-log": {"torn-tail"},
    "(index|timeindex)-alone|txnindex-.*": {"orphan-index"},
    "index-.*": {"index-cut", "index-entry", "index-inexact", "index-unsorted"},
    "time-empty": {"index-missing"},
    "time-.*|timeindex-.*": {"index-cut", "index-unsorted", "time-index-entry"},
    "snapshot-.*": {"snapshot-unreadable"},
    "checkpoint-empty": {"empty-directory"},  # a broker writes such a file too
    "checkpoint-.*": {"unreadable-text"},
}
"""Patterns of damage, and the ids of the findings that must come first."""
UNNAMED = {
    "flip-partitionLeaderEpoch",  # no CRC covers it, and no other file has it
    "record-key-length-minus-2",  # Kafka reads any negative length as null
    "record-value-length-minus-2",
    "record-header-value-minus-2",
    "message-value-length-minus-2",
    "record-header-key-not-utf8",  # Kafka takes any bytes
    "record-time-delta-min",  # a record may have any timestamp
    "body-corrupt",  # some bytes decompress to others, and no record has a CRC
    "inner-torn",  # a wrapper may have any number of messages, or end within one
    "bomb-record",  # a large value is a value
    "only-0-bytes",  # an empty log
    "index-empty",  # an active segment may have no entry
    "index-wrong-offset",  # another offset of the same append
}
"""Damage that leaves a directory like a broker's: only this may stay without a finding."""
BESIDE = {"retention-due", "disk-nearly-full", "disk-full"}
"""Notes about any directory, and about this machine's own disk."""
AFTER_ALL = Now(1_830_000_000_000, NowSource.DISK)
"""December 2027: some topics have records of December 2026, which are in the future until then."""


def check_up(path: Path, *, is_quick: bool = False) -> CheckUp:
    plan = plan_examination([path])
    found = CheckUpInWork(plan, now=AFTER_ALL, is_quick=is_quick)
    for examined in examine(plan, ExaminationSettings(AFTER_ALL, is_quick=is_quick), processes=1):
        assert not examined.verified.problems
        found.take(examined)
    return found.result()


def expected_findings(damage: str) -> set[str]:
    """Return the ids of the first pattern that fits."""
    return next(ids for pattern, ids in WORST.items() if re.fullmatch(pattern, damage))
