"""A disk, its archive and its copy in a bucket give the same findings and the same listing."""

import json
import os
import tarfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from tests import golden
from tests.export.object_store import CountingStore, redirect_to, serving
from tests.loops import for_each, some
from tests.run import kseg

DISKS = [path for folder in ("logs", "damaged") for path in sorted((golden.ROOT / folder).iterdir()) if path.is_dir()]
OF_THE_DISK = ("allocatedBytes", "cleanedByTimestamp")
"""Facts that only a disk has, and the times of its files."""
NUMBERS = count()


@pytest.fixture(scope="module", autouse=True)
def store() -> Iterator[None]:
    """Yield while s3:// URLs mean a local store."""
    with serving(CountingStore()) as url, redirect_to(url):
        yield


def in_bucket(disk: Path) -> str:
    """Return the URL of a copy of a disk."""
    bucket = f"disk-{next(NUMBERS)}"
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    backend.create_bucket(bucket, "us-east-1")
    for path in disk.rglob("*"):
        if path.is_file():
            backend.put_object(bucket, path.relative_to(disk.parent).as_posix(), path.read_bytes())
    return f"s3://{bucket}/{disk.name}"


def in_archive(disk: Path, folder: Path) -> str:
    """Return the path of a copy of a disk in an archive."""
    with tarfile.open(folder / "disk.tar", "w") as archive:
        archive.add(disk, disk.name)
    return f"{folder}/disk.tar/{disk.name}"


def run_command(command: str, disk: str, folder: Path, *options: str) -> tuple[int, list[Any]]:
    """Return a command's status and objects for a disk, without the disk's name."""
    ran = kseg([command, disk, "-o", "json", *options], folder)
    told = [json.loads(line) for line in ran.stdout.decode().replace(disk, "DISK").splitlines()]
    return ran.status, [{name: value for name, value in each.items() if name not in OF_THE_DISK} for each in told]


@for_each("disk", some(DISKS, 8), shards=2)
def test_verify_finds_the_same_on_a_disk_in_its_archive_and_in_a_bucket(disk: Path, tmp_path: Path) -> None:
    found = run_command("verify", os.fspath(disk), tmp_path)
    assert run_command("verify", in_archive(disk, tmp_path), tmp_path) == found
    assert run_command("verify", in_bucket(disk), tmp_path) == found


@for_each("disk", some(DISKS, 40))
def test_ls_lists_the_same_of_a_disk_in_its_archive_and_in_a_bucket(disk: Path, tmp_path: Path) -> None:
    now = ("--now", "2026-11-22")  # a store has its own times of files
    listed = run_command("ls", os.fspath(disk), tmp_path, *now)
    assert run_command("ls", in_archive(disk, tmp_path), tmp_path, *now) == listed
    assert run_command("ls", in_bucket(disk), tmp_path, *now) == listed


def test_a_url_may_name_a_file_or_a_partition(tmp_path: Path) -> None:
    disk = golden.ROOT / "logs" / "4.3.1"
    url = in_bucket(disk)
    log = "zstd-0/00000000000000000281.log"
    for command in (f"dump --files @/{log}", "lookup @/zstd-0 --offset 300", "verify -q @/zstd-0"):
        here, there = (kseg(command.replace("@", root).split(), tmp_path) for root in (os.fspath(disk), url))
        assert (there.status, there.stderr) == (here.status, here.stderr) == (0, b"")
        assert there.stdout.replace(url.encode(), os.fsencode(disk)) == here.stdout


def test_an_object_that_cannot_be_a_file_is_named_and_marks_of_folders_are_none(tmp_path: Path) -> None:
    disk = golden.ROOT / "logs" / "4.3.1"
    url = in_bucket(disk)
    backend, bucket = s3_backends[DEFAULT_ACCOUNT_ID]["aws"], url.split("/")[2]
    listed = run_command("ls", os.fspath(disk), tmp_path)
    for mark in ("4.3.1", "4.3.1/", "4.3.1/zstd-0", "4.3.1/zstd-0/", "4.3.1/zstd-0/00000000000000000281.index/"):
        backend.put_object(bucket, mark, b"")
    assert run_command("ls", url, tmp_path) == listed
    backend.put_object(bucket, "4.3.1/zstd-0", b"no mark")
    for command in (["ls", url], ["verify", url], ["export", url, "out"]):
        ran = kseg(command, tmp_path)
        assert ran.status == 2
        assert (
            b"4.3.1/zstd-0: can't be a file here, since a folder of its name has other objects; move it\n" in ran.stderr
        )
        assert ran.stdout


def test_a_key_with_an_empty_part_is_named(tmp_path: Path) -> None:
    url = in_bucket(golden.ROOT / "logs" / "4.3.1")
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(url.split("/")[2], "4.3.1//odd", b"")
    ran = kseg(["ls", url], tmp_path)
    why = "can't be listed: the key '4.3.1//odd' has an empty or invalid part; specify a folder without it"
    assert (ran.status, ran.stdout, ran.stderr.decode()) == (2, b"", f"kseg: {url}: {why}\n")


def test_a_file_url_is_the_path_that_it_names(tmp_path: Path) -> None:
    disk = golden.ROOT / "logs" / "4.3.1"
    by_url, by_path = (kseg(["ls", path], tmp_path) for path in (f"file://{disk}", os.fspath(disk)))
    assert (by_url.status, by_url.stdout) == (0, by_path.stdout)
