"""`kseg verify` as its user sees it."""

import json
from pathlib import Path

import pytest

from kseg.log.findings import FINDINGS
from tests.log import edits
from tests.run import kseg


def test_healthy_partition_is_ok(restored: Path) -> None:
    ran = kseg(["verify", "logs/3.6.2/plain-1"], restored)
    assert (ran.status, ran.stdout, ran.stderr) == (0, b"ok\n", b"")


def test_current_directory_is_the_default(restored: Path) -> None:
    assert kseg(["verify"], restored / "logs" / "3.6.2" / "plain-1").stdout == b"ok\n"


def test_notes_are_ok_too(restored: Path) -> None:
    ran = kseg(["verify", "logs/2.0.1/compacted-0"], restored)
    first, last = ran.stdout.decode().splitlines()
    assert (ran.status, last) == (0, "ok")
    assert " note offsets-compacted: " in first


def test_finding_says_where_and_what(restored: Path) -> None:
    ran = kseg(["verify", "damaged/054-magic-3"], restored)
    (line,) = [line for line in ran.stdout.decode().splitlines() if "bad-magic" in line]
    log = next((restored / "damaged" / "054-magic-3").glob("*.log")).relative_to(restored)
    assert line.startswith(f"{log}: at position ")
    assert "error bad-magic: magic is 3" in line
    assert ran.status == 1
    assert b"error" in ran.stderr


def test_quiet_says_nothing_more(restored: Path) -> None:
    ran = kseg(["verify", "-q", "damaged/054-magic-3"], restored)
    assert (ran.status, ran.stderr) == (1, b"")


def test_json_has_an_object_per_finding_and_a_summary(restored: Path) -> None:
    ran = kseg(["verify", "-o", "json", "damaged/210-wiped-batch"], restored)
    *findings, summary = map(json.loads, ran.stdout.splitlines())
    (damage,) = [finding for finding in findings if finding["id"] == "bad-length"]
    assert list(damage) == ["type", "id", "severity", "file", "position", "firstOffset", "lastOffset", "sentence"]
    assert (damage["position"], damage["firstOffset"], damage["lastOffset"]) == (237, 21938, 21938)
    assert summary == {
        "type": "summary",
        "result": "findings",
        "partitions": 1,
        "bytes": 1143,
        "errors": 1,
        "warnings": 0,
        "notes": 0,
    }


def test_json_of_a_healthy_log_directory_is_ok(restored: Path) -> None:
    ran = kseg(["verify", "-o", "json", "logs/2.3.1"], restored)
    assert json.loads(ran.stdout.splitlines()[-1])["result"] == "ok"
    assert ran.status == 0


@pytest.mark.parametrize("finding_id", FINDINGS)
def test_explain_says_risk_and_next_step(finding_id: str, tmp_path: Path) -> None:
    ran = kseg(["verify", "--explain", finding_id], tmp_path)
    text = ran.stdout.decode()
    assert ran.status == 0
    assert text.startswith(f"{finding_id} (")
    assert "\nRisk: " in text
    assert "\nNext step: " in text


def test_explain_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    ran = kseg(["verify", "--explain", "bad-luck"], tmp_path)
    assert ran.status == 2
    assert b"no finding is called 'bad-luck'" in ran.stderr


def test_path_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    ran = kseg(["verify", "nowhere"], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"no such file or directory" in ran.stderr


def test_directory_without_partitions_is_not_ok(tmp_path: Path) -> None:
    ran = kseg(["verify", "."], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"no partition is here" in ran.stderr


def test_keep_cache_finds_the_same(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    assert kseg(["verify", "--keep-cache", str(partition)], tmp_path).stdout == b"ok\n"


def test_help_has_examples(tmp_path: Path) -> None:
    assert b"Examples:\n    kseg verify" in kseg(["verify", "--help"], tmp_path).stdout


@pytest.mark.parametrize(
    ("name", "content", "status", "finding"),
    [
        ("00000000000000000100.index", bytes(8), 0, "note orphan-index: 8 bytes, and no .log"),
        ("00000000000000000100.snapshot", b"xx", 1, "warning snapshot-unreadable: 2 bytes, a producer snapshot has at"),
    ],
)
def test_file_alone_is_checked_whatever_its_directory_is_called(
    name: str, content: bytes, status: int, finding: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    ran = kseg(["verify", name], tmp_path)
    assert ran.status == status
    assert ran.stdout.startswith(f"{name}: {finding}".encode())
