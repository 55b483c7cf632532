"""Directories of a disk are listed once, for any number of joined disks."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests import golden
from tests.run import process

# Prints at its end the directories that a command has listed, from Python's own audit events.
COUNTING = """
import atexit, json, os, sys
def watch(event, arguments):
    if event in ("os.scandir", "os.listdir"):
        listed.append(str(arguments[0]))
listed = []
atexit.register(lambda: print(json.dumps(listed), file=sys.stderr))
sys.addaudithook(watch)
from kseg.cli import main
"""


@pytest.mark.parametrize("command", [["ls"], ["dump", "-o", "json"], ["dump", "--shallow"], ["dump", "--tail", "1"]])
def test_each_directory_is_listed_once(command: list[str], tmp_path: Path) -> None:
    disks = ["disk1", "disk2"]
    partitions = ["gzip-0", "zstd-0", "__consumer_offsets-1"]
    for disk in disks:
        for name in partitions:
            shutil.copytree(golden.ROOT / "logs" / "2.4.1" / name, tmp_path / disk / name)
    ran = process([], tmp_path, program=f"{COUNTING}main({[*command, *disks]})")
    counts = Counter(json.loads(ran.stderr.splitlines()[-1]))
    directories = [*disks, *(f"{disk}/{name}" for disk in disks for name in partitions)]
    assert {each: counts[each] for each in directories} == dict.fromkeys(directories, 1)
