"""The doctor on golden's directories: what was damaged comes first; what brokers left, killed or not, is well."""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from kseg.findings.finding_kinds import Severity
from kseg.views.doctor.check_up import CheckUpInWork
from kseg.views.doctor.examination import ExaminationSettings, examine, plan_examination
from kseg.views.doctor.trouble import CheckUp
from tests import golden

LOG_CUT = {"torn-tail", "bad-length", "bad-crc"}
LENGTH = {"bad-length", "bad-crc", "torn-tail"}
"""A batch whose length is wrong isn't where it seems to be: its end, its CRC or the file's end tells."""
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
    "index-.*": {"index-cut", "index-entry", "index-unsorted"},
    "time-empty": {"index-missing"},
    "time-.*|timeindex-.*": {"index-cut", "index-unsorted", "time-index-entry"},
    "snapshot-.*": {"snapshot-unreadable"},
    "checkpoint-empty": {"empty-directory"},  # a broker writes such a file too
    "checkpoint-.*": {"unreadable-text"},
}
"""By what was done to the files, a pattern: ids of the finding that must come first."""
UNSEEN = {
    "flip-partitionLeaderEpoch",  # no CRC covers it, and nothing else has it
    "record-key-length-minus-2",  # Kafka reads any negative length as null
    "record-value-length-minus-2",
    "record-header-value-minus-2",
    "message-value-length-minus-2",
    "record-header-key-not-utf8",  # Kafka takes any bytes
    "record-time-delta-min",  # a record may have any time
    "body-corrupt",  # some bytes decompress to others, and no record has a CRC
    "inner-torn",  # a wrapper may have any number of messages, or end within one
    "bomb-record",  # a large value is a value
    "only-0-bytes",  # an empty log
    "index-empty",  # an active segment may have no entry
    "index-wrong-offset",  # another offset of the same append
}
"""What leaves a directory that a broker may have written: only these may stay unnamed."""
BESIDE = {"retention-due", "disk-nearly-full", "disk-full"}
"""Notes about any directory, and what this machine's own disk has."""
AFTER_ALL = 1_830_000_000_000
"""December 2027: some topics have records of December 2026, which until then lie in the future indeed."""


class Damaged(NamedTuple):
    """A directory of golden/damaged."""

    id: str
    damage: str
    file: str

    def __str__(self) -> str:
        return self.id


DAMAGED = [
    Damaged(row["id"], row["damage"], row["file"])
    for row in json.loads((golden.ROOT / "damaged" / "damage.json").read_text(encoding="utf-8"))
]
BROKERS = sorted(
    path.name
    for path in (golden.ROOT / "logs").iterdir()
    if not path.name.startswith("classes-") and not path.name.endswith("-remote")
)


def check_up(path: Path, *, is_quick: bool = False) -> CheckUp:
    plan = plan_examination([path])
    found = CheckUpInWork(plan, is_quick=is_quick)
    for examined in examine(plan, ExaminationSettings(AFTER_ALL, is_quick=is_quick), processes=1):
        assert not examined.verified.problems
        found.take(examined)
    return found.result()


def expected(damage: str) -> set[str]:
    """The ids of the first pattern that fits."""
    return next(ids for pattern, ids in WORST.items() if re.fullmatch(pattern, damage))


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("case", DAMAGED, ids=str)
def test_what_was_damaged_is_named_first(case: Damaged, restored: Path) -> None:
    found = check_up(restored / "damaged" / case.id)
    troubles = [each for each in found.troubles if each.id not in BESIDE]
    if not troubles:
        assert case.damage in UNSEEN
        return
    worst = troubles[0]
    assert worst.id in expected(case.damage), worst
    of_log = {"bad-crc", "torn-tail", "index-missing", "empty-directory"}  # of what is or should be beside it
    assert worst.file == restored / "damaged" / case.file or worst.id in of_log
    assert worst.command is not None


def test_half_a_batch_that_is_finished_meanwhile_is_no_trouble(tmp_path: Path) -> None:
    """Beside a running broker a log may be read while a batch is written."""
    source = golden.ROOT / "logs" / "3.6.2" / "plain-1"
    log = sorted(shutil.copytree(source, tmp_path / "plain-1").glob("*.log"))[-1]
    whole = log.read_bytes()
    log.write_bytes(whole[:-5])
    plan = plan_examination([tmp_path / "plain-1"])

    def finish(_: int) -> None:
        log.write_bytes(whole)

    for is_torn, on_read in ((True, None), (False, finish)):
        (examined,) = examine(plan, ExaminationSettings(AFTER_ALL), processes=1, on_read=on_read)
        assert ("torn-tail" in {finding.id for finding in examined.verified.findings}) is is_torn


@pytest.mark.parametrize("name", [name for name in BROKERS if name.endswith("-killed")])
def test_nothing_is_wrong_with_what_killed_brokers_left(name: str, restored: Path) -> None:
    """Their own recovery lost nothing: see golden/README.md."""
    found = check_up(restored / "logs" / name)
    assert [each for each in found.troubles if each.severity is not Severity.NOTE and each.id not in BESIDE] == []


@pytest.mark.parametrize("is_quick", [False, True])
@pytest.mark.parametrize("name", [name for name in BROKERS if not name.endswith("-killed")])
def test_nothing_is_wrong_with_what_brokers_left(name: str, is_quick: bool, restored: Path) -> None:
    found = check_up(restored / "logs" / name, is_quick=is_quick)
    assert [each for each in found.troubles if each.severity is not Severity.NOTE and each.id not in BESIDE] == []
