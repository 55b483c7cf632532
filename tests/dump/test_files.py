import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import golden
from tests.dump.segments import NAME, offset_index, segment, time_index
from tests.run import Run, kseg


def dump(directory: Path, *arguments: str) -> Run:
    return kseg(["dump", *arguments], directory)


def run_dump(ran: Run) -> list[str]:
    return [line.removeprefix("Dumping ") for line in ran.stdout.decode().splitlines() if line.startswith("Dumping ")]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A log directory with one partition in it."""
    directory = tmp_path / "data" / "orders-0"
    positions = segment(directory)
    offset_index(directory, [(3, positions[1])])
    time_index(directory, [])
    for name in (f"{NAME}.snapshot", f"{NAME}.txnindex", "other.txt", ".lock"):
        (directory / name).touch()
    (directory / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 100\n")
    (directory / f"{NAME}.log.deleted").touch()
    (tmp_path / "data" / "meta.properties").write_bytes(b"broker.id=1\n")
    return directory


def test_log_directory_prints_all_files_of_known_kinds_in_order(partition: Path) -> None:
    ran = dump(partition.parent.parent, "data")
    assert run_dump(ran) == [
        "data/meta.properties",
        *(
            f"data/orders-0/{name}"
            for name in (
                f"{NAME}.index",
                f"{NAME}.log",
                f"{NAME}.log.deleted",
                f"{NAME}.snapshot",
                f"{NAME}.timeindex",
                f"{NAME}.txnindex",
                "leader-epoch-checkpoint",
            )
        ),
    ]


def test_directory_prints_what_other_commands_find_below_it(tmp_path: Path) -> None:
    for place in (
        "elsewhere/linked-0",
        "data/orders-2",
        "data/orders-10",
        "data/lost+found",
        "data/1/2/3/4/5/6/7/8/deep-0",
    ):
        segment(tmp_path / place)
    (tmp_path / "data" / "linked-0").symlink_to("../elsewhere/linked-0")
    (tmp_path / "data" / "again").symlink_to(".")
    printed = [str(Path(each).parent) for each in run_dump(dump(tmp_path, "data"))]
    assert printed == ["data/linked-0", "data/orders-2", "data/orders-10"]
    listed = map(json.loads, kseg(["ls", "-q", "-o", "json", "data"], tmp_path).stdout.splitlines())
    assert [f"data/{each['topic']}-{each['partition']}" for each in listed] == printed


@pytest.mark.parametrize(
    ("like", "kinds"),
    [
        ("0.8", ["index", "log"]),
        ("0.10.1", ["index", "log", "timeindex"]),
        ("0.11", ["index", "log", "snapshot", "timeindex", "txnindex"]),
    ],
)
def test_directory_prints_the_kinds_that_a_release_knows(partition: Path, like: str, kinds: list[str]) -> None:
    ran = dump(partition, "--like", like, ".")
    assert run_dump(ran) == [f"./{NAME}.{kind}" for kind in kinds]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("data//orders-0///{}", "data/orders-0/{}"),
        ("./data/../data/orders-0/{}", "./data/../data/orders-0/{}"),
        ("data/orders-0/{}/", "data/orders-0/{}"),
    ],
)
def test_path_is_shown_as_java_shows_it(partition: Path, given: str, shown: str) -> None:
    name = f"{NAME}.index"
    assert run_dump(dump(partition.parent.parent, given.format(name))) == [shown.format(name)]


def test_reports_name_the_absolute_path_with_its_dots(partition: Path) -> None:
    offset_index(partition, [(2, segment(partition)[1])])
    ran = dump(partition.parent, "--like", "4.3", f"./orders-0/{NAME}.index")
    assert ran.stderr.decode().splitlines()[0] == f"Mismatches in :{partition.parent}/./orders-0/{NAME}.index"


@pytest.mark.parametrize("like", ["0.11", "3.9", "latest"])
def test_other_files_are_named_and_ignored(partition: Path, like: str) -> None:
    ran = dump(partition, "--like", like, "other.txt", f"{NAME}.log.deleted")
    assert run_dump(ran) == ["other.txt", f"{NAME}.log.deleted"]
    assert ran.stderr.decode().splitlines() == [
        "Ignoring unknown file other.txt",
        f"Ignoring unknown file {NAME}.log.deleted",
    ]
    assert ran.status == 0


def test_other_files_were_passed_over_up_to_0_10_2(partition: Path) -> None:
    ran = dump(partition, "--like", "0.10.2", "other.txt", f"{NAME}.snapshot")
    assert (ran.status, ran.stdout, ran.stderr) == (0, b"", b"")


def test_files_that_can_not_be_opened_are_reported_and_the_others_printed(partition: Path) -> None:
    too_long = "a" * 300
    ran = dump(partition, "no.index", "no.snapshot", "no", too_long, f"{NAME}.timeindex")
    assert run_dump(ran)[-1] == f"{NAME}.timeindex"
    assert [line.split(": ")[1] for line in ran.stderr.decode().splitlines()] == [
        "no.index",
        "no.snapshot",
        "no",
        too_long,
    ]
    assert ran.status == 2


def test_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    for name in (f"{NAME}.index", "meta.properties"):
        os.mkfifo(tmp_path / name)
    ran = dump(tmp_path, f"{NAME}.index", "meta.properties")
    assert ran.stderr.count(b"isn't a regular file") == 2
    assert ran.status == 2


def test_directory_without_files_to_print_is_reported(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = dump(tmp_path, "empty")
    assert ran.stderr.startswith(b"kseg: empty: no partition here; ")
    assert ran.status == 2


RELEASES = ("0.8", "0.10.2", "0.11", "2.2", "2.3", "3.9", "4.3")


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(("index", "timeindex", "txnindex", "snapshot", "leader_epoch_checkpoint")),
    like=st.sampled_from([*(("--like", release) for release in RELEASES), ()]),
    content=st.binary(max_size=200),
    damage=st.tuples(st.integers(0, 300), st.integers(0, 255)),
)
def test_any_bytes_end_in_few_lines_and_an_exit_status(
    kind: str, like: tuple[str, ...], content: bytes, damage: tuple[int, int]
) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        segment(directory)
        log = bytearray((directory / f"{NAME}.log").read_bytes())
        log[damage[0]] = damage[1]
        (directory / f"{NAME}.log").write_bytes(log)
        (directory / f"{NAME}.{kind}").write_bytes(content)
        ran = dump(directory, *like, f"{NAME}.{kind}")
    assert ran.status in (0, 1)
    assert sum(line.startswith(b"kseg: ") for line in ran.stderr.splitlines()) <= 6


@pytest.mark.parametrize("name", ["00000000000000000000.log", "00000000000000000000.index", "meta.properties"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_device_is_no_regular_file(name: str, output: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    ran = kseg(["dump", "-o", output, name], tmp_path)
    assert (ran.status, ran.stderr) == (2, f"kseg: {name}: isn't a regular file\n".encode())


@pytest.mark.parametrize(
    ("command", "status"),
    [("ls", 1), ("verify", 1), ("lookup --offset 203000", 0), ("salvage --dry-run", 0), ("reindex --dry-run", 0)],
)
def test_pipe_and_device_beside_a_log_keep_no_command_waiting(command: str, status: int, tmp_path: Path) -> None:
    partition = tmp_path / "test-1-0"
    shutil.copytree(golden.ROOT / "docs" / "test-1-0", partition)
    (partition / "leader-epoch-checkpoint").unlink(missing_ok=True)
    os.mkfifo(partition / "leader-epoch-checkpoint")
    (partition / "00000000000000203000.txnindex").symlink_to("/dev/zero")
    ran = kseg([*command.split(), str(partition)], tmp_path)
    assert ran.status == status
    said = ran.stdout + ran.stderr if command in ("ls", "verify") else b""
    assert said.count(b"isn't a regular file") == {"ls": 1, "verify": 1}.get(command, 0)
