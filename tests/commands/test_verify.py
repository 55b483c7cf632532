"""`kseg verify` as its user sees it."""

import json
import re
import shutil
from pathlib import Path

import pytest

from kseg.findings.kinds import ALL_FINDINGS
from tests.log import edits
from tests.loops import for_each
from tests.run import kseg


def test_healthy_partition_is_ok(restored: Path) -> None:
    ran = kseg(["verify", "logs/3.6.2/plain-1"], restored)
    assert (ran.status, ran.stdout, ran.stderr) == (0, b"ok\n", b"")


def test_current_directory_is_the_default(restored: Path) -> None:
    assert kseg(["verify"], restored / "logs" / "3.6.2" / "plain-1").stdout == b"ok\n"


def test_notes_are_ok_too_and_counted(restored: Path) -> None:
    ran = kseg(["verify", "logs/2.0.1/compacted-0"], restored)
    assert (ran.status, ran.stdout) == (0, b"ok\n")
    assert ran.stderr == b"kseg: 0 errors, 0 warnings, 1 note in 1 partition; -v lists the notes\n"


def test_verbose_lists_the_notes(restored: Path) -> None:
    ran = kseg(["verify", "-v", "logs/2.0.1/compacted-0"], restored)
    start, assumed, first, last = ran.stdout.decode().splitlines()
    assert (start, assumed.partition(":")[0]) == ("A broker would start without problems.", "assumed")
    assert (ran.status, last) == (0, "ok")
    assert " note offsets-compacted: " in first
    assert b"-v" not in ran.stderr


def severities(lines: bytes) -> list[str]:
    found = [re.search(r" (error|warning|note) [a-z-]+:", line) for line in lines.decode().splitlines()]
    return [match[1] for match in found if match]


def test_errors_come_first_then_warnings(restored: Path) -> None:
    ran = kseg(["verify", "-v", "damaged", "logs/2.0.1"], restored)
    told = severities(ran.stdout)
    assert {"error", "warning", "note"} == set(told)
    assert told == sorted(told, key=["error", "warning", "note"].index)


@pytest.mark.parametrize("options", [[], ["--no-color"]])
def test_pipe_gets_no_colours(options: list[str], restored: Path) -> None:
    assert b"\x1b" not in kseg(["verify", *options, "damaged/054-magic-3"], restored).stdout


def test_errors_have_a_colour(restored: Path) -> None:
    ran = kseg(["verify", "--color", "damaged/054-magic-3"], restored)
    assert b"\x1b[1;31merror bad-magic:\x1b[0m magic is 3" in ran.stdout


# --- read files -------------------------------------------------------------------------------------------------------

NOTHING = b"nothing to verify: found no log, index or snapshot\n"


@pytest.mark.parametrize("files", [[], ["renamed.log"], ["notes.txt"]])
@pytest.mark.parametrize("output", ["text", "json"])
def test_partition_directory_with_nothing_of_a_log_is_not_ok(files: list[str], output: str, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    for name in files:
        (tmp_path / "orders-0" / name).write_bytes(b"")
    for path in ("orders-0", "."):
        ran = kseg(["verify", path, "-o", output], tmp_path)
        assert (ran.status, re.search(rb"\bok\b", ran.stdout)) == (2, None)
        assert NOTHING in ran.stderr
    assert all(f"skipped: {name}".encode() in ran.stderr for name in files)


def test_tiered_files_are_read_as_the_segments_that_they_are(restored: Path) -> None:
    ran = kseg(["verify", "logs/4.3.1-tiered-remote"], restored)
    assert (ran.status, ran.stdout) == (0, b"ok\n")


def make_disks(root: Path) -> None:
    """Create log directories at both levels, one named like a partition, and another directory."""
    edits.copy_partition(root, "3.6.2/plain-1").parent.rename(root / "disk-1")
    edits.copy_partition(root, "2.3.1/txn-1").parent.rename(root / "b")
    edits.copy_partition(root, "2.8.2/idem-0").rename(root / "idem-0")
    (root / "2.8.2").rename(root / "notes")
    (root / "lost+found").mkdir()


def test_log_directories_at_both_levels_are_found(tmp_path: Path) -> None:
    make_disks(tmp_path)
    ran = kseg(["verify", ".", "-o", "json"], tmp_path)
    assert json.loads(ran.stdout.splitlines()[-1])["partitions"] == 3
    assert ran.status == 0
    assert b"kseg: .: skipped: notes/\n" in ran.stderr
    listed = kseg(["ls", "."], tmp_path).stdout.decode()
    assert {line.split()[0] for line in listed.splitlines()[1:-1]} == {"disk-1/plain-1", "b/txn-1", "idem-0"}


@for_each("command", [f"{name} broker-1 broker-2" for name in ("ls", "verify -o json", "doctor", "retain")])
def test_parent_of_a_log_directory_may_be_named_as_a_partition(command: str, tmp_path: Path, restored: Path) -> None:
    for number, below in ((1, "kafka-logs"), (2, "data/kafka-logs")):
        shutil.copytree(restored / "logs" / "4.3.1" / "zstd-0", tmp_path / f"broker-{number}" / below / "zstd-0")
    ran = kseg(command.split(), tmp_path)
    assert re.search(rb"2 partitions|\"partitions\":2|all +2 ", ran.stdout)
    assert b"skipped" not in ran.stderr


def test_log_directory_named_as_a_partition_is_one(tmp_path: Path) -> None:
    make_disks(tmp_path)
    assert kseg(["verify", "disk-1"], tmp_path).stdout == b"ok\n"


def test_log_start_after_the_end_loses_the_records_that_are_there(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    edits.write_checkpoint(partition, "log-start-offset-checkpoint", 5000)
    summary = json.loads(kseg(["verify", str(partition), "-o", "json"], tmp_path).stdout.splitlines()[-1])
    assert summary["startSentence"] == "A broker starts, but loses up to 160 records of 1 partition."


def test_name_that_stops_a_start_is_in_the_words_of_the_broker(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    (partition / "00000000000000000000 (1).log").write_bytes(b"")
    summary = json.loads(kseg(["verify", str(partition), "-o", "json"], tmp_path).stdout.splitlines()[-1])
    said = 'NumberFormatException: For input string: "00000000000000000000 (1)"'
    assert summary["startSentence"] == f"A broker doesn't start: {said}."


def test_words_of_the_broker_that_go_on_are_not_cut_in_the_middle(tmp_path: Path) -> None:
    for disk in ("one", "two"):
        log_dir = edits.copy_partition(tmp_path, "3.6.2/plain-1").parent.rename(tmp_path / disk)
        (log_dir / "meta.properties").write_text("version=0\nbroker.id=1\n")
    line = kseg(["verify", "one", "two", "-v"], tmp_path).stdout.decode().splitlines()[0]
    words = "Duplicate log directories for plain-1 are found in both two/plain-1 and …"
    assert line == f"A broker doesn't start: {words}"


def test_words_of_the_broker_have_the_partitions_name(tmp_path: Path) -> None:
    log_dir = edits.copy_partition(tmp_path, "3.6.2/plain-1").parent.rename(tmp_path / "disk")
    (log_dir / "meta.properties").write_text("version=0\nbroker.id=1\n")
    shutil.copytree(log_dir / "plain-1", log_dir / f"plain-1.{'0' * 32}-future")
    line = kseg(["verify", "disk", "-v"], tmp_path).stdout.decode().splitlines()[0]
    assert line == "A broker doesn't start: Error while renaming dir for plain-1 in log dir disk."


def test_nodes_that_start_well_are_counted(tmp_path: Path) -> None:
    for node in (1, 2):
        log_dir = edits.copy_partition(tmp_path, "3.6.2/plain-1").parent.rename(tmp_path / f"disk{node}")
        (log_dir / "meta.properties").write_text(f"version=0\nbroker.id={node}\n")
    sentence, _, *_ = kseg(["verify", "disk1", "disk2", "-v"], tmp_path).stdout.decode().splitlines()
    assert sentence == "Both nodes would start without problems."
    edits.write_checkpoint(tmp_path / "disk2" / "plain-1", "log-start-offset-checkpoint", 5000)
    sentence, _, *_ = kseg(["verify", "disk1", "disk2", "-v"], tmp_path).stdout.decode().splitlines()
    bad = "Node {} starts, but loses up to 160 records of 1 partition."
    assert sentence == f"{bad.format(2)} 1 of 2 nodes would start without problems."
    edits.write_checkpoint(tmp_path / "disk1" / "plain-1", "log-start-offset-checkpoint", 5000)
    sentence, _, *_ = kseg(["verify", "disk1", "disk2", "-v"], tmp_path).stdout.decode().splitlines()
    assert sentence == f"{bad.format(1)} {bad.format(2)} 0 of 2 nodes would start without problems."


def test_remote_tier_is_no_log_directory_of_a_node(restored: Path) -> None:
    disk, tier = "logs/4.3.1-tiered", "logs/4.3.1-tiered-remote"
    own, both, alone = (
        kseg(["verify", "-v", *paths], restored).stdout.decode().splitlines()[1]
        for paths in ([disk], [disk, tier], [tier])
    )
    assert both == own
    assert alone == "assumed: the broker knows these partitions, and its other disks have no problems"


def test_log_directory_with_another_programs_file_named_as_a_segment_is_one(tmp_path: Path) -> None:
    make_disks(tmp_path)
    (tmp_path / "b" / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (tmp_path / "b" / "20261128.log").write_text("not Kafka's\n")
    ran = kseg(["verify", "b", "-o", "json"], tmp_path)
    assert (ran.status, json.loads(ran.stdout.splitlines()[-1])["partitions"]) == (0, 1)


def test_quiet_names_nothing_that_was_passed_over(tmp_path: Path) -> None:
    make_disks(tmp_path)
    assert kseg(["verify", "-q", "."], tmp_path).stderr == b""


def test_logs_copied_without_indexes_are_not_wrong(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    for path in [*partition.glob("*.index"), *partition.glob("*.timeindex")]:
        path.unlink()
    assert kseg(["verify", str(partition)], tmp_path).stdout == b"ok\n"


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
        "start": "loses",
        "startSentence": "A broker starts, but loses up to 31 records of 1 partition.",
        "startAssumed": "the broker knows these partitions, and its other disks have no problems",
    }


def test_json_of_a_healthy_log_directory_is_ok(restored: Path) -> None:
    ran = kseg(["verify", "-o", "json", "logs/2.3.1"], restored)
    assert json.loads(ran.stdout.splitlines()[-1])["result"] == "ok"
    assert ran.status == 0


@for_each("finding_id", ALL_FINDINGS)
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
    assert b"unknown finding 'bad-luck'" in ran.stderr


def test_path_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    ran = kseg(["verify", "nowhere"], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"no such file or directory" in ran.stderr


def test_directory_without_partitions_is_not_ok(tmp_path: Path) -> None:
    ran = kseg(["verify", "."], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"no partition here" in ran.stderr


def test_keep_cache_finds_the_same(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    assert kseg(["verify", "--keep-cache", str(partition)], tmp_path).stdout == b"ok\n"


def test_help_has_examples(tmp_path: Path) -> None:
    assert b"Examples:\n    kseg verify" in kseg(["verify", "--help"], tmp_path).stdout


@pytest.mark.parametrize(
    ("name", "content", "status", "finding"),
    [
        ("00000000000000000100.index", bytes(8), 1, "error orphan-index: 8 bytes, but no .log"),
        ("00000000000000000100.snapshot", b"xx", 1, "warning snapshot-unreadable: the size is 2 bytes, but a producer"),
    ],
)
def test_file_alone_is_checked_whatever_its_directory_is_called(
    name: str, content: bytes, status: int, finding: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    ran = kseg(["verify", "-v", name], tmp_path)
    assert ran.status == status
    assert f"\n{name}: {finding}".encode() in ran.stdout


def test_a_body_that_a_library_refuses_without_a_word_has_a_reason(restored: Path) -> None:
    (line,) = kseg(["verify", "075-codec-other"], restored / "damaged").stdout.decode().splitlines()
    assert line.endswith("error bad-body: snappy: these bytes can't be decompressed")
