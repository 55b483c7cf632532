"""Globs in quotes have the same effect as unquoted ones, for all PATHS."""

import json
import os
import shutil
import subprocess
import tarfile
from contextlib import chdir
from pathlib import Path

import pytest

from tests import golden
from tests.loops import for_each
from tests.run import kseg

SOURCE = golden.ROOT / "logs" / "3.6.2" / "plain-1"
AS_JSON = ("-o", "json", "--now", "now")
COMMANDS = ["dump", "ls", "verify", "retain", "txns", "salvage --dry-run", "reindex --dry-run", "compact --dry-run"]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a directory with orders-0, orders-1 and payments-0 below `logs`."""
    for name in ("orders-0", "orders-1", "payments-0"):
        shutil.copytree(SOURCE, tmp_path / "logs" / name)
    return tmp_path


@for_each("command", COMMANDS)
def test_a_glob_means_the_paths_that_it_matches(command: str, logs: Path) -> None:
    expanded = kseg([*command.split(), "logs/orders-0", "logs/orders-1", "logs/payments-0"], logs)
    ran = kseg([*command.split(), "logs/orders-*", "l*/pay[m]ents-?"], logs)
    assert ran == expanded
    assert ran.stdout or b"no transactions" in ran.stderr


def test_a_glob_that_matches_nothing_is_a_path_that_is_not_there(logs: Path) -> None:
    ran = kseg(["ls", "logs/order-*", "logs/orders-0", *AS_JSON], logs)
    assert (ran.status, ran.stderr) == (2, b"kseg: logs/order-*: no such file or directory\n")
    assert b'"directory":"logs/orders-0"' in ran.stdout


def test_a_path_that_is_there_is_no_glob(logs: Path) -> None:
    """A glob with the name of one directory would match the other topic's directory."""
    (logs / "logs/orders-0").rename(logs / "logs/[op]*")
    ran = kseg(["ls", "logs/[op]*", *AS_JSON], logs)
    assert b'"directory":"logs/[op]*"' in ran.stdout
    assert b"payments" not in ran.stdout


def test_two_stars_go_below_directories(logs: Path) -> None:
    ran = kseg(["dump", "**/*108.log", "--shallow"], logs)
    dumped = [line for line in ran.stdout.decode().splitlines() if line.startswith("Dumping ")]
    names = ("orders-0", "orders-1", "payments-0")
    assert dumped == [f"Dumping logs/{name}/00000000000000000108.log" for name in names]


def test_two_stars_follow_no_links(logs: Path) -> None:
    """Circular links would otherwise match as many paths as there are ways through them."""
    for name in "abc":
        (logs / name).symlink_to(".")
    (logs / "disk").symlink_to("logs")
    ran = kseg(["ls", "**/orders-0", "disk/**/orders-1", *AS_JSON], logs)
    assert (ran.status, ran.stderr) == (0, b"")
    found = [json.loads(line).get("directory") for line in ran.stdout.splitlines()]
    assert [name for name in found if name] == ["logs/orders-0", "disk/orders-1"]


def test_two_stars_go_below_very_many_directories(logs: Path) -> None:
    with chdir(logs):
        for _ in range(1100):
            Path("[").mkdir()
            os.chdir("[")
    ran = kseg(["ls", "**/orders-0", *AS_JSON], logs)
    assert (ran.status, ran.stderr) == (0, b"")
    assert b'"directory":"logs/orders-0"' in ran.stdout
    subprocess.run(["rm", "-r", "["], cwd=logs, check=True)  # pytest's own removal would go too deep


def test_globs_in_archives(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (logs / "unpacked").mkdir()
    monkeypatch.setenv("TMPDIR", str(logs / "unpacked"))
    with tarfile.open(logs / "b.tar", "w") as tar:
        tar.add(logs / "logs", "logs")
    ran = kseg(["ls", "b.tar/logs/ord*", "-o", "json", "--topic", "*"], logs)
    assert (ran.status, ran.stdout.count(b'"type":"partition"')) == (0, 2)
    assert b'"directory":"b.tar/logs/orders-0"' in ran.stdout
    ran = kseg(["ls", "b.tar/logs/x*", "b.tar/logs/pay*", *AS_JSON], logs)
    assert (ran.status, ran.stderr) == (2, b"kseg: b.tar/logs/x*: no member of the archive matches\n")
    assert b'"directory":"b.tar/logs/payments-0"' in ran.stdout


def test_where_one_file_is_wanted_one_must_match(logs: Path) -> None:
    ran = kseg(["explain", "logs/orders-0/*108.log", "--batch", "0"], logs)
    assert ran == kseg(["explain", "logs/orders-0/00000000000000000108.log", "--batch", "0"], logs)
    ran = kseg(["explain", "logs/*/*108.log"], logs)
    assert (ran.status, ran.stderr) == (2, b"kseg: logs/*/*108.log: matches 3 paths; specify one of them\n")


def test_a_directory_that_several_paths_mean_is_read_once(logs: Path) -> None:
    ran = kseg(["ls", "logs/orders-0/*", "logs/orders-0", "logs", "-o", "json"], logs)
    assert (ran.status, ran.stdout.count(b'"type":"partition"')) == (0, 3)
