"""Statements of kseg about damaged disks agree with recorded starts of brokers on them. No broker runs."""

import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kseg.doctor.kinds import KINDS
from kseg.findings.at_start import AT_START
from kseg.findings.finding_kind import Severity
from kseg.findings.kinds import ALL_FINDINGS
from tests import golden, run
from tests.log import edits
from tests.loops import TAKES_ALL, for_each, some

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
from start.cells import topics
from start.classes import EMPTY, HIDES, LOSES, REFUSES, WRONG
from start.rows import Row
from start.verdicts import Answer, answer, contradicts, faulty_disk, rows, sound_disk, verdict

EVERY = 75
"""Rows of which `make test` takes one."""

TAIL = "a kill, or a failure of the machine, leaves the same, and nothing on the disk says what was acknowledged"
READER = "the row's reader asked for few offsets and times, and a lookup goes wrong for some"
FITS = "another partition's bytes that fit: no file of the partition has its name"
UNTOLD = "no other file on the disk has it"
ROLE = "nothing on the disk says whether the node is a controller"
TIMING = "the broker tells the controller where its partitions are, and the reader may come before that"

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("last .log", "cut in header"): TAIL,
    ("last .log", "cut in body"): TAIL,
    ("last .log", "empty"): TAIL,
    ("last segment", "renamed to .swap, cut"): TAIL,
    ("middle segment", "renamed to .swap, cut"): TAIL,
    ("first segment", "renamed to .deleted"): "retention leaves the same",
    ("first .index", "another's"): READER,
    ("middle .index", "another's"): READER,
    ("first .timeindex", "another's"): READER,
    ("first .log", "another's"): FITS,
    ("last .log", "another's"): FITS,
    ("first .log", "one bit of a base offset changed"): "no CRC covers it, and a compacted log may lack any offsets",
    ("last metadata .log", "one bit of a base offset changed"): "no CRC covers it; of five starts one was refused",
    ("last metadata .checkpoint", "another's"): "a controller alone has no partitions to lose",
    ("last metadata .checkpoint", "cut in body"): "a controller alone has no partitions to lose",
    ("__cluster_metadata-0", "absent"): ROLE,
    ("__cluster_metadata-0", "empty"): ROLE,
    ("meta.properties", "another cluster's"): UNTOLD,
    ("meta.properties", "another node's"): UNTOLD,
    ("meta.properties", "another directory's"): TIMING,
    ("meta.properties", "one bit changed"): TIMING,
    ("quorum-state", "a later epoch"): UNTOLD,
    ("log directory", "with a second log directory of another node"): "disks of two nodes may be looked at together",
    ("cleaner-offset-checkpoint", "one bit changed"): "the cleaner went over a log once more, as it may at any time",
}
"""Faults of which some rows contradict the verdict, and why kseg can't know better."""
MOST_CONTRADICTED = 70
"""Rows of all that are exceptions, at most."""

ENDS = {
    REFUSES: ("refuses", "empty"),
    EMPTY: ("empty", "refuses"),
    HIDES: ("hides", "loses"),
    LOSES: ("loses", "unserved", "serves-wrong", "leaderless"),
    WRONG: ("serves-wrong", "loses", "unserved"),
}
"""Ends of a start, each with the verbs that a sentence may use for it."""
OWN_WORDS = (
    r"; (?:\d+ more findings? would stop|when it does|(?:up to .*|records) of .* were lost|the cluster abandoned)"
)
"""Words that the sentence adds to those of a broker."""
OTHERWISE = {
    ("log directory", "with an unformatted second log directory"): "kseg refuses that directory: it has no partition",
    ("last metadata .log", "another's"): "the log is in order, but for what the broker writes next",
    ("middle .log", "another's"): "a recovery refuses some of these offsets",
    ("last .log", "another's"): "2.8.2 has other words",
    ("bootstrap.checkpoint", "text-mangled"): "which words a broker has depends on the bytes",
    ("metadata leader-epoch-checkpoint", "one bit changed"): "the same",
    ("__cluster_metadata-0", "absent"): "a controller's disk looks like a new one then",
    ("__cluster_metadata-0", "empty"): "the same",
}
"""Faults at which some starts end otherwise than the sentence says, though they do harm."""

OF_ROWS = {
    "foreign-directory": ("log directory", "with an unknown folder", "clean"),
    "identity-missing": ("meta.properties", "absent", "clean"),
    "identity-differs": ("log directory", "with a second log directory of another cluster", "clean"),
    "directory-unknown": ("meta.properties", "another directory's", "clean"),
    "metadata-missing": ("__cluster_metadata-0", "absent", "killed"),
    "metadata-checkpoint": ("last metadata .checkpoint", "cut in body", "clean"),
    "metadata-checkpoint-old": ("first metadata .checkpoint", "empty", "clean"),
    "metadata-log": ("last metadata .log", "one bit changed", "killed"),
    "other-owner": ("quorum-state", "unreadable", "clean"),
    "copy-missing": ("folder", "absent", "killed"),
    "topic-id-missing": ("partition.metadata", "absent", "clean"),
    "another-topics-id": ("partition.metadata", "another's", "clean"),
    "other-topic-id": ("partition.metadata", "one bit changed", "clean"),
    "not-in-metadata": ("log directory", "with a partition of an unknown topic", "clean"),
    "unclean-tail": ("last .log", "cut in body", "clean"),
    "unclean-zeros": ("last .log", "padded with zeros", "clean"),
    "unclean-index": ("last .timeindex", "padded with zeros", "clean"),
    "log-end-lost": ("last .log", "empty", "clean"),
    "index-inexact": ("middle .index", "one bit changed", "clean"),
    "index-rebuilt": ("last .txnindex", "empty", "killed"),
    "time-index-zeros": ("first .timeindex", "padded with zeros", "killed"),
    "producer-state-wrong": ("last .snapshot", "another's", "clean"),
    "leftover-log": ("middle segment", "renamed to .deleted", "clean"),
    "misnamed-file": ("folder", "with a log of another name", "killed"),
    "orphan-index": ("first .log", "absent", "killed"),
    "bootstrap-checkpoint": ("bootstrap.checkpoint", "empty", "clean"),
}
"""Findings about starts, each with the file, the fault and the stop of a row that has it."""


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disks")


def answers(command: str, measured: Iterable[Row], disks: Path) -> Iterator[tuple[Row, Answer, Answer]]:
    """Rows, each with what a command says of the disk with its fault, and of that without."""
    usual = {}
    for row in measured:
        sound = sound_disk(row, disks)
        if sound not in usual:
            usual[sound] = answer(command, sound)
        with faulty_disk(row, sound) as disk:
            yield row, answer(command, disk), usual[sound]


@pytest.mark.parametrize(("command", "first"), [("verify", 0), ("doctor", EVERY // 2)])
def test_verdict_and_sentence_follow_the_start(command: str, first: int, disks: Path) -> None:
    contradicted, wrong = [], []
    for row, said, usual in answers(command, some(rows()[0 if TAKES_ALL else first :], EVERY), disks):
        if contradicts(row, verdict(said.findings, usual.findings).worst):
            contradicted.append((row["file"], row["fault"]))
        elif not is_forecast(row, said):
            wrong.append((row["file"], row["fault"], said.sentence))
    unexplained = set(contradicted) - set(EXCEPTIONS)
    untold = set(EXCEPTIONS) - set(contradicted) if TAKES_ALL else set()
    assert (unexplained, untold, [each for each in wrong if each[:2] not in OTHERWISE]) == (set(), set(), [])
    assert len(contradicted) <= MOST_CONTRADICTED


def is_forecast(row: Row, said: Answer) -> bool:
    """Return True if the sentence agrees with the start: its end, its words, at least its lost records."""
    if said.start not in ENDS.get(row["class"], ("well",)):
        return False
    match = re.search(r"(?:loses|keeps) up to (\d+) records?", said.sentence)
    if row["class"] == LOSES and match is not None:
        return int(match[1]) >= row["before"]["read_uncommitted"] - row["after"]["read_uncommitted"]
    if row["class"] == REFUSES and said.start == "refuses" and not row["file"].endswith("metadata .checkpoint"):
        return is_logged(said.sentence, row["log"])
    return True


def is_logged(sentence: str, log: Iterable[str]) -> bool:
    """Return True if a line of a log has the words of a sentence, with any names."""
    words = re.split(OWN_WORDS, sentence.partition("doesn't start: ")[2])[0].rstrip(".")
    words = re.sub(r" \d+ of \d+ nodes starts? well$", "", words)
    parts = [part.strip(" :") for part in re.split(r"…|disk(?:-second)?[^\s,\]]*|[a-z]+-\d\d-0", words)]
    return any(all(part in line for part in parts) for line in log)


@for_each("finding_id", OF_ROWS)
def test_fault_of_a_row_has_its_finding(finding_id: str, disks: Path) -> None:
    key = OF_ROWS[finding_id]
    combined = [row for row in rows() if row["role"] == "combined"]
    row = next(row for row in combined if (row["file"], row["fault"], row["stop"]) == key)
    sound = sound_disk(row, disks)
    with faulty_disk(row, sound) as disk:
        new = answer("verify", disk).findings - answer("verify", sound).findings
    assert finding_id in {found for _, found, _ in new}


@for_each(
    "file,fault,words",
    [
        ("meta.properties", "absent", "No readable meta.properties files found."),
        ("partition.metadata", "empty", 'Cannot invoke "java.lang.CharSequence.length()".'),
    ],
)
def test_sentence_ends_as_the_words_of_the_broker_do(file: str, fault: str, words: str, disks: Path) -> None:
    row = next(row for row in rows() if (row["file"], row["fault"], row["class"]) == (file, fault, REFUSES))
    with faulty_disk(row, sound_disk(row, disks)) as disk:
        assert answer("verify", disk).sentence == f"A broker doesn't start: {words}"


@pytest.mark.parametrize(
    ("recovery_point", "sentence"),
    [
        (0, "A broker starts, but loses up to 30 records of 1 partition."),
        (104, "A broker starts, but loses up to 30 records of 1 partition."),
        (105, "A broker starts, but keeps up to 30 records of 1 partition that consumers can't read."),
    ],
)
def test_damage_below_the_recovery_point_is_not_cut_off(recovery_point: int, sentence: str, disks: Path) -> None:
    """As 4.3.1 does: it leaves such a segment alone, and consumers that seek beyond the damage get the rest."""
    killed = next(row for row in rows() if (row["release"], row["stop"], row["kind"]) == ("4.3.1", "killed", "plain"))
    with faulty_disk({**killed, "file": "middle .log", "fault": "one bit changed"}, sound_disk(killed, disks)) as disk:
        edits.write_checkpoint(disk / f"{topics('plain')[0]}-0", "recovery-point-offset-checkpoint", recovery_point)
        assert answer("doctor", disk).sentence == sentence


@pytest.mark.parametrize("case", ["066-codec-5", "184-body-random", "104-count-plus-one"])
def test_a_start_keeps_batches_whose_crc_is_right(case: str, tmp_path: Path) -> None:
    """A recovery checks CRCs, not records: the broker serves such a batch, and consumers fail at it."""
    shutil.copytree(golden.ROOT / "damaged" / case, tmp_path / "plain-1")
    first = run.kseg(["doctor", "."], tmp_path).stdout.decode().splitlines()[0]
    assert re.fullmatch(
        r"A broker starts, but keeps up to \d+ records of 1 partition that consumers can't read\.", first
    )


def test_all_that_stops_a_start_is_counted(disks: Path) -> None:
    row = next(
        row for row in rows() if (row["release"], row["file"], row["stop"]) == ("4.3.1", "log directory", "clean")
    )
    with faulty_disk({**row, "fault": "with an unknown folder"}, sound_disk(row, disks)) as disk:
        (disk / "plain-00-0.bak").mkdir()
        (disk / "cleaner-offset-checkpoint").write_text("?\n")
        assert "; 2 more findings would also stop it." in answer("verify", disk).sentence


def test_records_that_are_lost_already_are_told_of_a_start_that_ends_well(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    edits.write_checkpoint(partition, "replication-offset-checkpoint", 165)
    page = run.kseg(["doctor", "."], partition.parent).stdout.decode()
    assert page.startswith(
        "A broker would start without problems, but up to 5 records of 1 partition were already lost."
    )


def test_every_error_has_its_end() -> None:
    assert set(AT_START) == {name for name, kind in (KINDS | ALL_FINDINGS).items() if kind.severity is Severity.ERROR}


def test_all_records_go_if_the_log_start_lies_beyond_the_end(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    (partition.parent / "log-start-offset-checkpoint").write_text("0\n1\nplain 1 5000\n")
    page = run.kseg(["doctor", "."], partition.parent).stdout.decode()
    assert page.startswith("A broker starts, but loses up to 160 records of 1 partition.")


@pytest.mark.parametrize(("zeros", "finding_id"), [(17, "unclean-tail"), (18, "unclean-zeros")])
def test_few_zeros_at_the_end_are_passed_over_by_a_start(zeros: int, finding_id: str, tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    (partition.parent / ".kafka_cleanshutdown").touch()
    log = edits.logs(partition)[-1]
    log.write_bytes(log.read_bytes() + bytes(zeros))
    found = answer("verify", partition.parent).findings
    assert ("error", finding_id) in {(severity, name) for severity, name, _ in found}
