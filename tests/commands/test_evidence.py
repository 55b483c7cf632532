"""`--evidence`: the hashes of all inputs, before and after a run."""

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kseg.output.evidence import compare_inputs, compared_lines, hash_inputs
from tests.carve.made_images import make_log
from tests.carve.test_names import write_copy
from tests.run import kseg

LOG = make_log("orders", [(2, 900)] * 30, 1)
NAME = f"orders-0/{0:020}.log"
SHA256 = hashlib.sha256(LOG.content).hexdigest()
RUNS = {
    "dump": ["dump", "orders-0"],
    "ls": ["ls", "orders-0"],
    "verify": ["verify", "orders-0"],
    "export": ["export", "orders-0", "exported"],
}


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    write_copy(tmp_path, LOG)
    return tmp_path


def objects_of(directory: Path, *arguments: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in kseg([*arguments, "--evidence", "-o", "json"], directory).stdout.splitlines()]
    return [each for each in found if each.get("type") in ("input", "inputAfter")]


@pytest.mark.parametrize("name", RUNS)
def test_text_has_the_hash_of_each_input_before_and_after(name: str, disk: Path) -> None:
    lines = kseg([*RUNS[name], "--evidence"], disk).stdout.decode().splitlines()
    evidence = [line for line in lines if line.startswith("evidence: ")]
    assert lines[0].endswith(f": {' '.join(RUNS[name])} --evidence")
    hashed = f"evidence: {NAME}: {len(LOG.content)} bytes, SHA-256 {SHA256}"
    assert evidence[1:] == [hashed, f"{hashed}, unchanged", "evidence: 0 of 1 input changed during the run"]
    assert lines[-1] == evidence[-1]


@pytest.mark.parametrize("name", RUNS)
def test_json_has_the_hash_of_each_input_before_and_after(name: str, disk: Path) -> None:
    before, after = objects_of(disk, *RUNS[name])
    assert (before["path"], before["size"], before["sha256"]) == (NAME, len(LOG.content), SHA256)
    assert before["arguments"] == [*RUNS[name], "--evidence", "-o", "json"]
    assert after["sha256"] == SHA256
    assert after["isUnchanged"] is True


def test_output_without_the_evidence_is_the_same(disk: Path) -> None:
    plain = kseg(["dump", "orders-0", "--print-data-log"], disk)
    ran = kseg(["dump", "orders-0", "--print-data-log", "--evidence"], disk)
    kept = [line for line in ran.stdout.splitlines(keepends=True) if not line.startswith(b"evidence: ")]
    assert (b"".join(kept), ran.status, ran.stderr) == (plain.stdout, plain.status, plain.stderr)


def test_an_archive_is_the_input_itself(disk: Path) -> None:
    with tarfile.open(disk / "disk.tar", "w") as archive:
        archive.add(disk / "orders-0", "orders-0")
    before, _ = objects_of(disk, "ls", "disk.tar/orders-0")
    assert before["path"] == "disk.tar"
    assert before["sha256"] == hashlib.sha256((disk / "disk.tar").read_bytes()).hexdigest()


def test_changed_new_and_missing_files_are_told_apart_from_unchanged_ones(disk: Path) -> None:
    for name in ("changed", "removed", "same"):
        (disk / "orders-0" / name).write_bytes(b"1")
    before = hash_inputs([disk / "orders-0"])
    (disk / "orders-0/changed").write_bytes(b"2")
    (disk / "orders-0/new").write_bytes(b"1")
    (disk / "orders-0/removed").unlink()
    compared = compare_inputs(before, hash_inputs([disk / "orders-0"]))
    changed = {Path(each.found.path).name for each in compared if not each.is_unchanged}
    assert changed == {"changed", "new", "removed"}
    assert list(compared_lines(compared))[-1] == "evidence: 3 of 5 inputs changed during the run"


def test_a_key_of_redaction_is_not_shown(disk: Path) -> None:
    ran = kseg(["dump", "orders-0", "--evidence", "--redact", "keys", "--redact-key", "secret-of-mine"], disk)
    assert ran.status == 0
    assert b"secret-of-mine" not in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls", "orders-0", "-o", "csv"], b"--evidence excludes -o csv; specify -o text or -o json"),
        (["dump", "-"], b"--evidence: - isn't a file; copy it to a disk first"),
        (["ls", "s3://bucket/orders-0"], b"--evidence: s3://bucket/orders-0 isn't a file; copy it to a disk first"),
    ],
)
def test_inputs_and_forms_without_evidence_are_refused(arguments: list[str], message: bytes, disk: Path) -> None:
    ran = kseg([*arguments, "--evidence"], disk)
    assert ran.status == 2
    assert message in ran.stderr
    assert ran.stdout == b""
