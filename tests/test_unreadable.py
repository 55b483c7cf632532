"""Blocks that the disk can't read, files that can't be opened: damage is reported there, and nowhere else."""

import hashlib
import json
import random
import shutil
from pathlib import Path

import pytest

from kseg.reading.blocks import Damage, UnreadableRange
from kseg.reading.log_file import LogFile, Run
from tests import golden
from tests.failing_disk import BLOCK, FailingDisk
from tests.log import edits
from tests.loops import for_each
from tests.rewrite.salvaged import intact_batches, is_intact, salvage
from tests.run import kseg

PLAIN = "3.6.2/plain-1"
TRANSACTIONAL = "2.3.1/txn-1"
CASES = [log for log in golden.damaged_files(".log") if log.stat().st_size > BLOCK][::2][:110]


def sizes_of(log: LogFile) -> list[tuple[str, int]]:
    return [
        (str(item.kind), item.size) if isinstance(item, Damage) else ("run", sum(item.rows[1 : item.row_count * 3 : 3]))
        for item in log.runs()
    ]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return edits.copy_partition(tmp_path, PLAIN)


@pytest.fixture
def second_log(partition: Path) -> Path:
    return edits.logs(partition)[1]


@for_each("log", CASES, ids=lambda log: log.parent.name)
def test_salvage_keeps_every_intact_batch_in_readable_blocks(
    log: Path, tmp_path: Path, failing_disk: FailingDisk
) -> None:
    failing_disk.mend()
    draw = random.Random(log.parent.name)
    content = log.read_bytes()
    source = tmp_path / log.parent.name
    shutil.copytree(log.parent, source)
    starts = [draw.randrange(0, -(-len(content) // BLOCK)) * BLOCK for _ in range(draw.randint(1, 5))]
    failing_disk.lose_blocks(source / log.name, *(range(start, start + BLOCK) for start in starts))
    expected = [raw for start, raw in _place_batches(content) if not _touches(start, len(raw), starts)]
    plan = salvage([source], tmp_path / "saved")
    kept = [raw for path in (tmp_path / "saved").rglob("*.log") for raw in intact_batches(path.read_bytes())]
    assert sorted(set(kept)) == sorted(set(expected))
    assert not plan.is_whole


def _place_batches(content: bytes) -> list[tuple[int, bytes]]:
    placed, position = [], 0
    while position + 17 <= len(content):
        size = int.from_bytes(content[position + 8 : position + 12], "big", signed=True) + 12
        raw = content[position : position + size] if size > 0 else b""
        if is_intact(raw, size):
            placed.append((position, raw))
        position += size if is_intact(raw, size) else 1
    return placed


def _touches(start: int, size: int, bad: list[int]) -> bool:
    return any(start < block + BLOCK and start + size > block for block in bad)


def test_reading_goes_on_after_an_unreadable_block(second_log: Path, failing_disk: FailingDisk) -> None:
    failing_disk.lose_blocks(second_log, range(1024, 1536))
    with LogFile(second_log) as log:
        sizes = sizes_of(log)
        assert [kind for kind, _ in sizes] == ["run", "unreadable", "run"]
        assert sum(size for _, size in sizes) == log.size
        damage = next(item for item in log.runs() if isinstance(item, Damage))
    assert damage.detail == "bytes 1024 to 1535 can't be read: Input/output error"
    assert damage.position <= 1024 < damage.position + damage.size
    assert damage.next_offset is not None


def test_batch_whose_unreadable_bytes_would_read_as_the_same_is_not_taken(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"valueBase64": value}) + "\n" for value in ("AAAA", "/" * 4000, "AAAA"))
    )
    made = kseg(["build", "in.jsonl", "--to", "t-0", "--batch-records", "1"], tmp_path)
    assert made.status == 0
    log = edits.logs(tmp_path / "t-0")[0]
    failing_disk.lose_blocks(log, range(1024, 1536))
    with LogFile(log) as opened:
        kinds = [item.row_count if isinstance(item, Run) else str(item.kind) for item in opened.runs()]
    assert kinds == [1, "unreadable", 1]


def test_unreadable_end_is_no_zero_tail(second_log: Path, failing_disk: FailingDisk) -> None:
    size = second_log.stat().st_size
    failing_disk.lose_blocks(second_log, range(size - 100, size))
    with LogFile(second_log) as log:
        assert sizes_of(log)[-1][0] == "unreadable"


def test_blocks_are_asked_for_once(second_log: Path, failing_disk: FailingDisk) -> None:
    failing_disk.lose_blocks(second_log, range(1 << 20))
    with LogFile(second_log) as log:
        first = list(log.runs())
        assert log._blocks.unreadable == [UnreadableRange(0, log.size, "can't be read: Input/output error")]
        assert [item.detail for item in first if isinstance(item, Damage)] == [
            "the file can't be read: Input/output error"
        ]


@pytest.mark.parametrize("lose", ["block", "file"])
def test_dump_prints_the_other_files_and_ends_with_1(
    lose: str, partition: Path, second_log: Path, failing_disk: FailingDisk
) -> None:
    _lose(lose, second_log, failing_disk)
    ran = kseg(["dump", "-o", "json", "--only", "batches", partition.name], partition.parent)
    assert ran.status == 1
    assert {json.loads(line)["file"] for line in ran.stdout.splitlines()} >= {
        f"{partition.name}/{log.name}" for log in edits.logs(partition) if log != second_log
    }
    assert second_log.name.encode() in ran.stderr
    assert b"can't be" in ran.stderr


def _lose(what: str, path: Path, failing_disk: FailingDisk) -> None:
    if what == "file":
        failing_disk.lose_file(path)
    else:
        failing_disk.lose_blocks(path, range(512, 1024))


@pytest.mark.parametrize("lose", ["block", "file"])
def test_verify_finds_what_cannot_be_read(
    lose: str, partition: Path, second_log: Path, failing_disk: FailingDisk
) -> None:
    _lose(lose, second_log, failing_disk)
    ran = kseg(["verify", "-o", "json", partition.name], partition.parent)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.status == 1
    assert [each["file"].rpartition("/")[2] for each in found if each.get("id") == "unreadable"] == [second_log.name]


@pytest.mark.parametrize("lose", ["block", "file"])
def test_export_takes_the_rest_and_counts_what_is_lost(lose: str, partition: Path, failing_disk: FailingDisk) -> None:
    _lose(lose, edits.logs(partition)[0], failing_disk)
    ran = kseg(["export", "-o", "json", partition.name, "../out"], partition.parent)
    objects = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.status == 1
    assert [each["kind"] for each in objects if each["type"] == "damage"] == ["unreadable"]
    (accounts,) = (each for each in objects if each["type"] == "partition")
    assert accounts["lost"] > 0
    assert accounts["recordsOut"] > 0
    assert accounts["unexplained"] == 0


@pytest.mark.parametrize("command", ["export", "salvage"])
def test_intact_replica_fills_the_hole(command: str, tmp_path: Path, failing_disk: FailingDisk) -> None:
    for disk in ("disk1", "disk2"):
        shutil.copytree(golden.ROOT / "logs" / PLAIN, tmp_path / disk / "plain-1")
    failing_disk.lose_blocks(edits.logs(tmp_path / "disk1" / "plain-1")[1], range(512, 1024))
    if command == "export":
        ran = kseg(["export", "-o", "json", "disk1", "disk2", "out"], tmp_path)
        accounts = next(json.loads(line) for line in ran.stdout.splitlines())
        assert (ran.status, accounts["lost"]) == (0, 0)
        assert accounts["recovered"] > 0
        return
    kseg(["salvage", "disk1", "disk2", "--to", "saved"], tmp_path)
    saved = {path.name: path.read_bytes() for path in edits.logs(tmp_path / "saved" / "plain-1")}
    assert saved == {path.name: path.read_bytes() for path in edits.logs(tmp_path / "disk2" / "plain-1")}


def test_salvage_of_a_disk_saves_the_other_partitions(tmp_path: Path, failing_disk: FailingDisk) -> None:
    for name in (PLAIN, TRANSACTIONAL):
        shutil.copytree(golden.ROOT / "logs" / name, tmp_path / "disk" / name.partition("/")[2])
    failing_disk.lose_file(edits.logs(tmp_path / "disk" / "plain-1")[0])
    ran = kseg(["salvage", "disk", "--to", "saved"], tmp_path)
    assert ran.status == 1
    assert b"unreadable: the file can't be opened: Permission denied" in ran.stdout
    assert len(edits.logs(tmp_path / "saved" / "txn-1")) == len(edits.logs(tmp_path / "disk" / "txn-1"))
    assert len(edits.logs(tmp_path / "saved" / "plain-1")) == len(edits.logs(tmp_path / "disk" / "plain-1")) - 1


def test_path_that_cannot_be_opened_ends_with_2_and_the_others_are_done(partition: Path) -> None:
    assert kseg(["verify", "nowhere", partition.name], partition.parent).status == 2
    for command in (["salvage", "--to", "../saved"], ["ls"], ["dump", "--shallow"]):
        ran = kseg([*command, "nowhere", partition.name], partition.parent)
        assert (command, ran.status) == (command, 2)
        assert partition.name.encode() in ran.stdout
        assert ran.stderr.startswith(b"kseg: nowhere: ")
    ran = kseg(["export", "nowhere", partition.name, "../out"], partition.parent)
    assert (ran.status, b"kseg: nowhere: no such file or directory\n" in ran.stderr) == (2, True)
    assert list((partition.parent.parent / "out").rglob("*.parquet"))


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_unreadable_index_is_found_passed_over_and_rebuilt(
    suffix: str, tmp_path: Path, failing_disk: FailingDisk
) -> None:
    partition = edits.copy_partition(tmp_path, TRANSACTIONAL)
    healthy = kseg(["dump", "-o", "json", "--only", "records", "--isolation", "read_committed", "."], partition)
    lost = sorted(partition.glob(f"*{suffix}"))[-1]
    failing_disk.lose_blocks(lost, range(1 << 20))
    found = kseg(["verify", "-o", "json", "."], partition)
    ids = {json.loads(line).get("id") for line in found.stdout.splitlines()}
    assert ids & {"index-unreadable", "snapshot-unreadable"}
    assert found.status == 1
    committed = kseg(["dump", "-o", "json", "--only", "records", "--isolation", "read_committed", "."], partition)
    assert committed.stdout == healthy.stdout
    assert kseg(["lookup", "--offset", "90", "."], partition).status == 0
    assert kseg(["export", "--isolation", "read_committed", ".", str(tmp_path / "out")], partition).status == 0
    rebuilt = kseg(["reindex", "--to", str(tmp_path / "rebuilt"), "."], partition)
    assert (lost.name if suffix == ".snapshot" else f"{suffix} unreadable").encode() in rebuilt.stdout
    assert (tmp_path / "rebuilt" / lost.name).is_file()


def test_salvage_tells_of_each_file_what_a_post_mortem_needs(partition: Path) -> None:
    ran = kseg(["salvage", partition.name, "--to", "../saved", "-o", "json"], partition.parent)
    run, report = (json.loads(line) for line in ran.stdout.splitlines())
    assert run["arguments"] == ["kseg", "salvage", partition.name, "--to", "../saved", "-o", "json"]
    assert run["kseg"]
    saved = partition.parent.parent / "saved"
    written = {path.relative_to(saved).as_posix(): path for path in saved.rglob("*") if path.is_file()}
    assert {file["file"] for file in report["files"]} == written.keys()
    for file in report["files"]:
        content = written[file["file"]].read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        if file["file"].endswith(".log"):
            assert file["sources"] == [f"{partition.name}/{Path(file['file']).name}"]


def test_salvage_plans_again_when_a_block_dies_between_reading_and_writing(
    partition: Path, second_log: Path, failing_disk: FailingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    real_copy, calls = os.copy_file_range, []

    def copy(source: int, *arguments: int, **options: int) -> int:
        if not calls:
            failing_disk.lose_blocks(second_log, range(512, 1024))
        calls.append(source)
        return real_copy(source, *arguments, **options)

    monkeypatch.setattr(os, "copy_file_range", copy)
    ran = kseg(["salvage", partition.name, "--to", "../saved"], partition.parent)
    assert ran.status == 1
    assert b"unreadable" in ran.stdout
    assert kseg(["dump", "--shallow", "../saved"], partition.parent).status == 0


@pytest.mark.parametrize("command", ["slice", "compact"])
def test_what_copies_a_log_names_it_and_the_block(
    command: str, partition: Path, second_log: Path, failing_disk: FailingDisk
) -> None:
    failing_disk.lose_blocks(edits.logs(partition)[-1], range(512, 1024))
    ran = kseg([command, partition.name, "--to", "../new"], partition.parent)
    lost = f"{partition.name}/{edits.logs(partition)[-1].name}"
    assert ran.status == 1
    said = ran.stderr.decode().splitlines()[-1]
    assert said.startswith(f"kseg: {lost}: at position ")
    assert "512" in said
    assert "can't be read: Input/output error" in said
    assert not (partition.parent.parent / "new").exists()
