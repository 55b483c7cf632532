"""The current time of judgements: all commands use the same one for a disk."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kseg.cluster.cluster import Cluster
from kseg.cluster.now import Now, NowSource, newest_written, settle_now
from kseg.times import iso_time, now_ms
from tests import golden, run

COPY = golden.ROOT / "logs" / "2.3.1"
BROKER_WROTE = "2026-11-21T10:04:48.539Z"
SUMMARIES = {
    ("ls",): "total",
    ("retain",): "total",
    ("retain", "--free", "5KB"): "plan",
    ("compact", "--topic", "txn", "--dry-run"): "compaction",
    ("doctor", "--quick"): "summary",
    ("groups",): "total",
    ("txns",): "total",
    ("report", "--quick"): "report",
}
"""Commands that use a current time, and their object with it."""
LOCKING = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a copy that was just made: its files' times are meaningless."""
    return shutil.copytree(COPY, tmp_path / "disk", copy_function=shutil.copyfile)


@pytest.fixture
def running(disk: Path) -> Iterator[Path]:
    """Yield the disk, locked by a broker."""
    arguments = [sys.executable, "-c", LOCKING, str(disk / ".lock")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        yield disk
        broker.communicate()


def objects(disk: Path, *arguments: str) -> list[dict[str, Any]]:
    command, *options = arguments
    ran = run.kseg([command, disk.name, *options, "-o", "json"], disk.parent)
    assert ran.status in (0, 1), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def read_times(disk: Path, *options: str) -> set[tuple[str, str]]:
    """Return the current times of the commands, each with its source."""
    found = {}
    for arguments, kind in SUMMARIES.items():
        (summary,) = [each for each in objects(disk, *arguments, *options) if each["type"] == kind]
        found[arguments] = summary["now"], summary["nowSource"]
    return set(found.values())


def test_copy_is_judged_by_when_a_broker_wrote(disk: Path) -> None:
    assert read_times(disk) == {(BROKER_WROTE, "disk")}


def test_given_time_wins(running: Path) -> None:
    assert read_times(running, "--now", "2026-12-24") == {("2026-12-24T00:00:00.000Z", "given")}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
def test_running_brokers_disk_is_judged_by_the_clock(running: Path) -> None:
    began = iso_time(now_ms()) or ""
    found = read_times(running)
    assert {source for _, source in found} == {"clock"}
    assert all(began <= time <= (iso_time(now_ms()) or "") for time, _ in found)


def test_commands_agree_about_what_goes(disk: Path) -> None:
    listed = {each["directory"]: each["bytesToDelete"] for each in objects(disk, "ls") if each["type"] == "partition"}
    retained = dict.fromkeys(listed, 0)
    for each in objects(disk, "retain"):
        if each["type"] == "segment" and each["retention"].startswith("delete"):
            retained[each["directory"]] += each["bytes"]
    topics = {each["topic"]: each["bytesToDelete"] for each in objects(disk, "doctor") if each["type"] == "topic"}
    due = [each["due"] for each in objects(disk, "report") if each["type"] == "row" and "due" in each]
    assert listed == retained
    assert 0 < sum(listed.values()) == sum(topics.values()) == sum(due)


def test_partition_is_judged_by_its_disks_time(disk: Path) -> None:
    ran = run.kseg(["retain", "disk/txn-1", "-o", "json"], disk.parent)
    assert json.loads(ran.stdout.splitlines()[-1])["now"] == BROKER_WROTE


@pytest.mark.parametrize("arguments", [("ls",), ("retain",), ("report", "-o", "text"), ("doctor",)])
def test_people_are_told_once(disk: Path, arguments: tuple[str, ...]) -> None:
    line = f'kseg: no broker is using this disk, so "now" is {BROKER_WROTE}, the newest'.encode()
    assert run.kseg([*arguments, "disk"], disk.parent).stderr.count(line) == 1
    assert run.kseg([*arguments, "disk", "--now", "now"], disk.parent).stderr.count(b'"now" is') == 0
    assert run.kseg([*arguments, "disk", "-q"], disk.parent).stderr.count(b'"now" is') == 0


def test_times_of_files_count_where_no_broker_wrote_one(disk: Path) -> None:
    plain = shutil.copytree(disk / "v1-plain-0", disk.parent / "elsewhere" / "v1-plain-0")
    for path in plain.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    cluster = Cluster([plain])
    assert settle_now(None, cluster) == newest_written(cluster) == Now(1_700_000_000_000, NowSource.FILES)
    said = run.kseg(["retain", str(plain)], disk.parent).stderr.decode()
    assert (
        'no broker is using this disk, so "now" is 2023-11-14T22:13:20.000Z, the newest modification time of a log'
        " file; copying may have set it"
    ) in said


def test_page_says_by_what_it_was_judged(disk: Path) -> None:
    run.kseg(["report", "disk", "--quick", "--to", "page.html"], disk.parent)
    page = (disk.parent / "page.html").read_text(encoding="utf-8")
    assert f"<dd>{BROKER_WROTE}, the latest time that a broker wrote</dd>" in page
