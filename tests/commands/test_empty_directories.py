"""Directories without partitions: all commands report the same, with the same exit status."""

from itertools import product
from pathlib import Path

from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.run import kseg

EMPTY = "kseg: here: no partition here; specify a partition's directory, a log directory, or a parent of it; {}\n"
HELD = {
    "": "it is empty",
    "notes": "it holds 1 file (notes), no meta.properties",
    "notes/more": "it holds 1 directory (notes), no meta.properties",
    "meta.properties": "it holds 1 file (meta.properties)",
}
"""Message about a directory, by its contents."""
STEP = "specify a partition or log directory"


@for_each(
    "inside, command",
    list(
        product(
            ["", "notes", "notes/more"],
            [
                "dump here",
                "dump here -o csv",
                "ls here -o csv -q",
                "verify here",
                "lookup here --offset 1",
                "lookup here --offset 1 --topic orders --partition 0",
                "salvage here --dry-run",
                "salvage here --to new",
                "reindex here --to new",
                "explain here",
                "slice here --to new",
                "retain here",
                "txns here",
                "groups here",
                "metadata here",
                "where --group billing here",
                "export here new",
            ],
        )
    ),
)
def test_directory_without_partitions_is_reported_in_the_same_words(command: str, inside: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    if inside:
        path = tmp_path / "here" / inside
        path.parent.mkdir(exist_ok=True)
        path.write_text("nothing of Kafka's")
    ran = kseg(command.split(), tmp_path)
    assert (ran.status, ran.stderr.decode()) == (2, EMPTY.format(HELD[inside]))
    assert not (tmp_path / "new").exists()


def test_current_directory_without_partitions_is_reported_too(tmp_path: Path) -> None:
    told = {kseg([name], tmp_path).stderr.decode().replace(".", "here", 1) for name in ("dump", "ls", "txns")}
    assert told == {EMPTY.format(HELD[""])}


@for_each(
    "command, name",
    list(
        product(
            [
                "ls {}",
                "verify {}",
                "salvage {} --to new",
                "reindex {} --to new",
                "compact {} --dry-run",
                "slice {} --to new",
                "retain {}",
                "lookup {} --offset 1",
                "where --group billing {}",
            ],
            ["README.md", "server.log"],
        )
    ),
)
def test_a_file_that_is_none_of_kafkas_does_not_stand_for_its_directory(
    command: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    path = f"orders-0/{name}"
    (tmp_path / path).write_text("nothing of Kafka's")
    ran = kseg(command.format(path).split(), tmp_path)
    told = f"kseg: {path}: can't be used here: it is not a file that kseg knows by name or content; {STEP}\n"
    assert (ran.status, ran.stderr.decode()) == (2, told)
    assert not (tmp_path / "new").exists()


@for_each(
    "command",
    [f"{name} disk-1 disk-2" for name in ("ls", "verify", "doctor", "retain", "dump", "txns", "report -o json")],
)
def test_a_new_disk_without_partitions_is_one_of_its_brokers(command: str, tmp_path: Path) -> None:
    write_segment(tmp_path / "disk-1" / "orders-0", [NewBatch([NewRecord(b"k", b"v")])])
    for name in ("disk-1", "disk-2"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "meta.properties").write_text("version=0\nbroker.id=1\n")
    ran = kseg(command.split(), tmp_path)
    assert (ran.status, b"no partition here" in ran.stderr) == (0, False)


def test_new_disks_alone_have_no_partition(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "meta.properties").write_text("version=1\nnode.id=1\n")
    for command in ("ls", "verify", "txns", "retain", "metadata"):
        ran = kseg([command, "here"], tmp_path)
        assert (ran.status, ran.stderr.decode()) == (2, EMPTY.format(HELD["meta.properties"]))
