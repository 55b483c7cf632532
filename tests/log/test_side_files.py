"""The files next to segments, rebuilt if missing or broken, by all commands that write partitions."""

import shutil
from itertools import product
from pathlib import Path

import pytest

from kseg.index.producers import ProducerStates, build_producer_snapshot
from kseg.log.partition import PartitionLog
from kseg.log.side_files import Reason, rebuilt_side_files, states_at
from tests import golden, run
from tests.log import edits
from tests.loops import for_each

LOGS = golden.ROOT / "logs" / "4.3.1"
NAME = "compacted-txn-0"
EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"
COMMANDS = [
    ["reindex", NAME, "--to", "new"],
    ["salvage", NAME, "--to", "new"],
    ["slice", NAME, "--to", "new"],
    ["compact", NAME, "--to", "new", "--producer-id-expiration-ms", "1000000000000"],
]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A log directory with a partition, and the cluster metadata."""
    return copied_disk(tmp_path)


def copied_disk(tmp_path: Path) -> Path:
    shutil.copytree(LOGS / NAME, tmp_path / NAME)
    shutil.copytree(LOGS / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    return tmp_path


def make_files(disk: Path, command: list[str]) -> dict[str, bytes]:
    ran = run.kseg(command, disk)
    assert ran.status == 0, ran.stderr
    place = disk / "new" / NAME if command[0] == "salvage" else disk / "new"
    return {path.name: path.read_bytes() for path in place.iterdir()}


@for_each("content, command", list(product([None, b"", b"\0" * 43, b"version: 0\ntopic_i"], COMMANDS)))
def test_the_topics_id_is_found_in_the_metadata_log(command: list[str], content: bytes | None, tmp_path: Path) -> None:
    disk = copied_disk(tmp_path)
    file = disk / NAME / METADATA
    before = file.read_bytes()
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    assert make_files(disk, command)[METADATA] == before


@for_each("content, command", list(product([None, b"", b"0\n0\n", b"0\n7\n0 0\n", b"\0" * 20], COMMANDS)))
def test_leader_epochs_are_those_of_the_batches(command: list[str], content: bytes | None, tmp_path: Path) -> None:
    disk = copied_disk(tmp_path)
    file = disk / NAME / EPOCHS
    before = file.read_bytes()
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    assert make_files(disk, command)[EPOCHS] == before


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_producers_are_those_of_the_batches(command: list[str], is_cut: bool, disk: Path) -> None:
    end = PartitionLog(disk / NAME).read_log_end_offset()
    for path in (disk / NAME).glob("*.snapshot"):
        if is_cut:
            path.write_bytes(path.read_bytes()[:-1])
        else:
            path.unlink()
    wanted = states_at(PartitionLog(disk / NAME), end)
    make_files(disk, command)
    place = disk / "new" / NAME if command[0] == "salvage" else disk / "new"
    for path in (disk / NAME).glob("*.log"):
        if not (place / path.name).exists():
            shutil.copy(path, place)
    states = PartitionLog(place).read_producer_states(end)
    assert states is not None
    assert wanted.producers
    assert states.producers == wanted.producers


def test_what_is_there_and_whole_is_left_out(disk: Path) -> None:
    assert list(rebuilt_side_files(PartitionLog(disk / NAME), "AAAAAAAAAAAAAAAAAAAAAg")) == []


def test_reindex_tells_what_was_missing_or_broken(disk: Path) -> None:
    (disk / NAME / METADATA).unlink()
    (disk / NAME / EPOCHS).write_bytes(b"\0")
    lines = run.kseg(["reindex", NAME, "--dry-run"], disk).stdout.decode().splitlines()
    assert f"{NAME}/{METADATA}: missing; will be rebuilt" in lines
    broken = next(line for line in lines if line.startswith(f"{NAME}/{EPOCHS}: broken ("))
    assert broken.endswith("; will be rebuilt")


def test_reindex_writes_wrong_epochs_from_the_log(disk: Path) -> None:
    before = (disk / NAME / EPOCHS).read_bytes()
    (disk / NAME / EPOCHS).write_bytes(b"0\n1\n99 0\n")
    assert make_files(disk, ["reindex", NAME, "--to", "new"])[EPOCHS] == before
    lines = run.kseg(["reindex", NAME, "--dry-run"], disk).stdout.decode().splitlines()
    assert f"{NAME}/{EPOCHS}: wrong (offset 234 has epoch 99, but its batch has epoch 2); will be rebuilt" in lines


IDEMPOTENT = "2.8.2/idem-0"


def test_reindex_writes_wrong_snapshots_from_the_log(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, IDEMPOTENT)
    snapshot = sorted(partition.glob("*.snapshot"))[-1]
    before = PartitionLog(partition).read_producer_states(int(snapshot.stem))
    edits.edit_snapshot(snapshot, 20, (3).to_bytes(4, "big"))
    (found,) = rebuilt_side_files(PartitionLog(partition))
    assert (found.name, found.reason) == (snapshot.name, Reason.WRONG)
    assert found.content is not None
    snapshot.write_bytes(found.content)
    states = PartitionLog(partition).read_producer_states(int(snapshot.stem))
    assert before is not None
    assert states is not None
    assert states.producers == before.producers


def test_snapshot_without_an_open_transaction_is_wrong(tmp_path: Path) -> None:
    """A broker writes it if it starts after a clean stop and finds no snapshot."""
    partition = edits.copy_partition(tmp_path, "2.3.1/txn-1")
    snapshot = sorted(partition.glob("*.snapshot"))[-1]
    snapshot.write_bytes(build_producer_snapshot(ProducerStates()))
    wrong = {file.name: file.detail for file in rebuilt_side_files(PartitionLog(partition))}
    assert wrong == {snapshot.name: "producer 9: is missing, but its transaction is open since offset 98"}


def test_reindex_empties_a_transaction_index_that_names_what_is_not_there(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, IDEMPOTENT)
    index = edits.logs(partition)[0].with_suffix(".txnindex")
    index.write_bytes(edits.ABORTED_TRANSACTION.pack(0, 4711, 1, 2, 3))
    assert run.kseg(["reindex", str(partition), "--to", "new"], tmp_path).status == 0
    assert (tmp_path / "new" / index.name).read_bytes() == b""


def test_metadata_may_lie_elsewhere(disk: Path) -> None:
    before = (disk / NAME / METADATA).read_bytes()
    (disk / NAME / METADATA).unlink()
    (disk / "elsewhere").mkdir()
    (disk / "__cluster_metadata-0").rename(disk / "elsewhere" / "__cluster_metadata-0")
    assert METADATA not in make_files(disk, ["slice", NAME, "--to", "new"])
    shutil.rmtree(disk / "new")
    given = ["--cluster-metadata", "elsewhere"]
    assert make_files(disk, ["slice", NAME, "--to", "new", *given])[METADATA] == before
    ran = run.kseg(["slice", NAME, "--to", "newer", "--cluster-metadata", "nowhere"], disk)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)


def test_a_broken_file_that_nothing_tells_of_is_named(disk: Path) -> None:
    shutil.rmtree(disk / "__cluster_metadata-0")
    (disk / NAME / METADATA).write_bytes(b"\0")
    (found,) = rebuilt_side_files(PartitionLog(disk / NAME))
    assert (found.name, found.reason, found.content) == (METADATA, Reason.BROKEN, None)
    assert b"--cluster-metadata may have its contents" in run.kseg(["reindex", NAME, "--dry-run"], disk).stdout


def test_the_metadata_topic_has_an_id_that_is_always_the_same(disk: Path) -> None:
    before = (disk / "__cluster_metadata-0" / METADATA).read_bytes()
    (disk / "__cluster_metadata-0" / METADATA).unlink()
    assert run.kseg(["slice", "__cluster_metadata-0", "--to", "new"], disk).status == 0
    assert (disk / "new" / METADATA).read_bytes() == before
