"""`kseg doctor --broker-log`: findings that lines of a broker's log indicate."""

import gzip
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kseg.doctor.kinds import KINDS
from kseg.findings.broker_log import KNOWN_LINES, LONGEST_LINE, MOST_CAUSES, NamedCause, named_causes, read_broker_log
from kseg.findings.finding_kind import Severity
from tests import golden
from tests.run import kseg

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
from start.classes import REFUSES
from start.rows import Row
from start.verdicts import answer, faulty_disk, rows, sound_disk

SAYS_NOTHING = "no end, and no open port"
FOREIGN = "Found directory {}, '{}' is not in the form of topic-partition or topic-partition.uniqueId-delete (if marked"
START = """\
[2026-11-01 03:00:00,001] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jController)
[2026-11-01 03:00:01,101] INFO Loading logs from log dirs ArraySeq(/data/kafka) (kafka.log.LogManager)
[2026-11-01 03:00:01,201] ERROR Error while reading checkpoint file /data/kafka/orders-0/leader-epoch-checkpoint (LOG.\
LogDirFailureChannel)
java.io.IOException: Malformed line in checkpoint file [/data/kafka/orders-0/leader-epoch-checkpoint]: 3
\tat org.apache.kafka.server.common.CheckpointFile$CheckpointReadBuffer.exception(CheckpointFile.java:171)
\tat java.base/java.lang.Thread.run(Thread.java:840)
[2026-11-01 03:00:01,301] ERROR There was an error in one of the threads during logs loading: \
org.apache.kafka.common.errors.KafkaStorageException: The log dir /data/kafka is already offline due to a previous IO \
exception. (kafka.log.LogManager)
[2026-11-01 03:00:01,401] WARN [LogLoader partition=plain-3, dir=/data/kafka] Corruption found in segment 4096, \
truncating to offset 4100 (LOG.LogLoader)
[2026-11-01 03:00:02,001] ERROR Encountered fatal fault: Error starting LogManager (kafka.server.BrokerServer)
org.apache.kafka.common.KafkaException: Found directory /data/kafka/lost+found, 'lost+found' is not in the form of \
topic-partition or topic-partition.uniqueId-delete (if marked for deletion).
\tat org.apache.kafka.storage.internals.log.UnifiedLog.exception(UnifiedLog.java:2280)
[2026-11-01 03:00:02,101] INFO Shutdown completed (kafka.server.BrokerServer)
""".replace("LOG.", "org.apache.kafka.storage.internals.log.")
"""Two causes that end a start, and one that the broker repairs."""


def causes(lines: Iterable[str], directory: Path) -> list[NamedCause]:
    """Return the causes in a log of these lines."""
    log = directory / "server.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    return named_causes(read_broker_log(log))


def objects(arguments: list[str], directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kseg(["doctor", "-o", "json", *arguments], directory).stdout.splitlines()]


@pytest.fixture
def server_log(tmp_path: Path) -> Path:
    log = tmp_path / "server.log"
    log.write_text(START * 3)
    return log


# --- measured starts --------------------------------------------------------------------------------------------------


def words(row: Row) -> list[str]:
    """Return the lines that a broker logged, without other tools' lines."""
    return [line for line in row["log"] if not line.startswith(SAYS_NOTHING)]


def test_each_refused_start_that_was_logged_names_a_finding(tmp_path: Path) -> None:
    refused = [row for row in rows() if row["class"] == REFUSES and words(row)]
    assert [(row["file"], row["fault"], row["log"]) for row in refused if not causes(words(row), tmp_path)] == []


def test_a_start_without_harm_names_no_finding_that_counts(tmp_path: Path) -> None:
    well = [row for row in rows() if row["class"] == "well"]
    named = [(row["log"], cause) for row in well for cause in causes(row["log"], tmp_path)]
    assert [each for each in named if KINDS[each[1].ids[0]].severity is not Severity.NOTE] == []


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        ("last .log", "another's"),
        ("bootstrap.checkpoint", "padded with zeros"),
    ],
)
def test_log_of_a_refused_start_names_what_verify_finds_on_its_disk(file: str, fault: str, tmp_path: Path) -> None:
    row = next(each for each in rows() if (each["file"], each["fault"], each["class"]) == (file, fault, REFUSES))
    named = {finding for cause in causes(words(row), tmp_path) for finding in cause.ids}
    with faulty_disk(row, sound_disk(row, tmp_path)) as disk:
        assert named & {finding for _, finding, _ in answer("verify", disk).findings}


def test_each_known_line_names_findings_that_there_are() -> None:
    assert [known.words for known in KNOWN_LINES if not known.ids or not set(known.ids) <= set(KINDS)] == []
    assert [known.words for known in KNOWN_LINES if len(set(known.ids)) < len(known.ids)] == []


def test_words_of_one_release_alone_are_in_no_row_of_another(tmp_path: Path) -> None:
    for row in rows():
        for cause in causes(words(row), tmp_path):
            only = [known.release for known in KNOWN_LINES if known.release and known.words.split("{")[0] in cause.text]
            assert all(row["release"] == each or ("later" in each and row["release"] >= each[:5]) for each in only), row


# --- a log as brokers write it ----------------------------------------------------------------------------------------


def test_each_cause_is_named_once_with_its_first_line_and_its_place(server_log: Path) -> None:
    found = [(each.line, each.count, each.ids[0], each.place) for each in named_causes(read_broker_log(server_log))]
    assert found == [
        (4, 3, "unreadable-text", "/data/kafka/orders-0/leader-epoch-checkpoint"),
        (8, 3, "bad-crc", "/data/kafka/plain-3/00000000000000004096.log"),
        (10, 3, "foreign-directory", "/data/kafka/lost+found"),
    ]


def test_exception_below_a_line_says_which_of_its_findings_it_is(tmp_path: Path) -> None:
    line = "[2026-11-01 03:00:01,201] ERROR Error while reading checkpoint file /d/x-0/leader-epoch-checkpoint (a.B)"
    denied = "java.nio.file.AccessDeniedException: /d/x-0/leader-epoch-checkpoint"
    assert [each.ids[0] for each in causes([line], tmp_path)] == ["unreadable-text"]
    assert [each.ids for each in causes([line, denied], tmp_path)] == [("other-owner",)]


def test_words_alone_are_known_without_level_and_time(tmp_path: Path) -> None:
    line = FOREIGN.format("/d/lost+found", "lost+found")
    assert [each.ids for each in causes(["", line], tmp_path)] == [("foreign-directory",)]


def test_ordinary_words_of_a_broker_name_nothing(tmp_path: Path) -> None:
    lines = [
        "[2026-11-01 03:00:00,001] INFO Error while reading checkpoint is not what happened (a.B)",
        "[2026-11-01 03:00:00,001] WARN [Producer clientId=x] Got error produce response, retrying (o.a.k.Sender)",
        "[2026-11-01 03:00:00,001] ERROR Failed to parse a request (a.B)",
        'java.lang.NumberFormatException: For input string: "x"',
        "[2026-11-01 03:00:00,001] INFO Found directory names only (a.B)",
        "[2026-11-01 03:00:00,001] WARN Connection to node 2 could not be established. (o.a.k.NetworkClient)",
    ]
    assert causes(lines, tmp_path) == []


def test_compressed_log_and_standard_input_are_read(server_log: Path) -> None:
    plain = objects(["--broker-log", "server.log"], server_log.parent)
    (server_log.parent / "server.log.gz").write_bytes(gzip.compress(server_log.read_bytes()))
    for each in (packed := objects(["--broker-log", "server.log.gz"], server_log.parent)):
        each["log"] = "server.log"
    assert packed == plain != []


def test_cut_archive_says_what_to_give(server_log: Path) -> None:
    (server_log.parent / "cut.gz").write_bytes(gzip.compress(server_log.read_bytes())[:200])
    ran = kseg(["doctor", "--broker-log", "cut.gz"], server_log.parent)
    assert (ran.status, ran.stdout) == (1, b"")
    assert ran.stderr.startswith(b"kseg: cut.gz: can't be decompressed: ")
    assert ran.stderr.endswith(b"; specify a complete file\n")


def test_bytes_that_are_no_text_and_endless_lines_do_no_harm(tmp_path: Path) -> None:
    line = b"ERROR " + FOREIGN.format("/d/lost+found", "lost+found").encode()
    (tmp_path / "server.log").write_bytes(
        b"\x00\xff ERROR \xfe\n" + b"ERROR " + b"x" * (5 * LONGEST_LINE) + b"\n" + line + b"\xff\n" + line
    )
    assert [(each.line, each.count) for each in named_causes(read_broker_log(tmp_path / "server.log"))] == [(3, 2)]


def test_log_of_very_many_causes_is_told_with_a_bound(tmp_path: Path) -> None:
    count = MOST_CAUSES + 50
    found = causes([f"ERROR {FOREIGN.format(f'/d/x{number}', f'x{number}')}" for number in range(count)], tmp_path)
    assert (len(found), sum(each.count for each in found)) == (MOST_CAUSES, count)


# --- the command ------------------------------------------------------------------------------------------------------


def test_log_alone_is_read_without_the_current_directory(server_log: Path) -> None:
    shutil.copytree(golden.ROOT / "damaged" / "210-wiped-batch", server_log.parent / "orders-0")
    ran = kseg(["doctor", "--broker-log", "server.log"], server_log.parent)
    assert (ran.status, ran.stderr) == (1, b"")
    lines = ran.stdout.decode().splitlines()
    assert lines[:4] == [
        "server.log: 3 causes in the broker's log",
        "error unreadable-text",
        "  line 4 (3 times): java.io.IOException: Malformed line in checkpoint file"
        " [/data/kafka/orders-0/leader-epoch-checkpoint]: 3",
        "    check: /data/kafka/orders-0/leader-epoch-checkpoint",
    ]
    assert "  next: kseg doctor --explain foreign-directory" in lines
    assert b"bad-length\n" not in ran.stdout
    assert b"given directories" not in ran.stdout


def test_with_directories_each_cause_is_found_in_them_or_not(server_log: Path) -> None:
    partition = server_log.parent / "copy" / "orders-0"
    shutil.copytree(golden.ROOT / "logs" / "3.6.2" / "plain-1", partition)
    (partition / "leader-epoch-checkpoint").write_text("nothing that Kafka writes\n")
    ran = kseg(["doctor", "--broker-log", "server.log", "copy"], server_log.parent)
    lines = ran.stdout.decode().splitlines()
    assert lines[4] == "    found: copy/orders-0/leader-epoch-checkpoint"
    assert lines.count("    not found in the given directories") == 2
    assert "1 error, 0 warnings in 1 partition" in ran.stdout.decode().partition("\n\n")[2]
    found = objects(["--broker-log", "server.log", "copy"], server_log.parent)
    assert [each["found"] for each in found if each["type"] == "broker-log"] == [True, False, False]


def test_causes_of_a_log_do_not_count_where_directories_are_well(server_log: Path, restored: Path) -> None:
    assert kseg(["doctor", "--broker-log", str(server_log), "logs/3.6.2/plain-1"], restored).status == 0


def test_directories_that_are_not_there_are_not_said_to_lack_a_cause(server_log: Path) -> None:
    ran = kseg(["doctor", "--broker-log", "server.log", "none"], server_log.parent)
    assert (ran.status, ran.stderr) == (2, b"kseg: none: no such file or directory\n")
    assert b"3 causes" in ran.stdout
    assert b"not found" not in ran.stdout


def test_log_without_a_known_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("[2026-11-01 03:00:00,001] INFO started (kafka.server.KafkaRaftServer)\n")
    ran = kseg(["doctor", "--broker-log", "server.log"], tmp_path)
    assert (ran.status, ran.stdout) == (0, b"")
    assert ran.stderr.startswith(b"kseg: server.log: no line is known to tell of a finding; specify ")


@pytest.mark.parametrize(("name", "problem"), [("none", b"can't be opened"), (".", b"isn't a regular file")])
def test_log_that_cannot_be_opened_is_refused(name: str, problem: bytes, tmp_path: Path) -> None:
    ran = kseg(["doctor", "--broker-log", name], tmp_path)
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: " + name.encode() + b": " + problem)


def test_causes_of_one_kind_are_listed_up_to_a_few(tmp_path: Path) -> None:
    line = "WARN Log in /d/orders-{0} marked stray and renamed to /d/orders-{0}.0-stray\n"
    (tmp_path / "server.log").write_text("".join(line.format(number) for number in range(9)))
    assert b"\n  and 6 more; -v lists them\n" in kseg(["doctor", "--broker-log", "server.log"], tmp_path).stdout
    assert b"/d/orders-8" in kseg(["doctor", "--broker-log", "server.log", "-v"], tmp_path).stdout


@pytest.mark.parametrize("command", ["doctor", "verify"])
def test_explain_lists_the_words_of_a_broker(command: str, tmp_path: Path) -> None:
    said = kseg([command, "--explain", "foreign-directory"], tmp_path).stdout.decode().splitlines()
    assert said[-1] == "In the broker's log: Found directory DIR, '…' is not in the form of topic-partition"
    assert b"In the broker" not in kseg([command, "--explain", "offsets-lost"], tmp_path).stdout
