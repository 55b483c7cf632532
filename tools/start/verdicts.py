"""kseg's verdicts on disks with the faults of measured rows."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from start import base
from start.cells import COPIES, Cell, donor, put_fault, topics
from start.classes import HARMLESS
from start.leftovers import second_directory
from start.rows import ROWS, Row, base_path, read_rows

from tests import run

RANKS = ("none", "note", "warning", "error")

Findings = frozenset[tuple[str, str, str]]
"""Severity, id and path."""


class Verdict(NamedTuple):
    """A command's verdict on a fault: the highest severity, and the ids of findings that have it."""

    worst: str
    ids: tuple[str, ...]


def rows() -> list[Row]:
    """Return all rows, of all releases and roles."""
    return [row for path in sorted(ROWS.glob("*.jsonl")) for row in read_rows(path)]


def archive_of(row: Row) -> Path:
    """Return the archive of the disk that a row's fault was put into."""
    return base_path(row["release"], row["role"], row["stop"])


def sound_disk(row: Row, directory: Path) -> Path:
    """Return the disk that a row's fault was put into, unpacked once.

    For partitions' faults, it has few of its topics.
    """
    is_whole = row["file"] in ("folder", "partition.metadata")
    disk = directory / f"{archive_of(row).stem.removesuffix('.tar')}-{'all' if is_whole else 'few'}" / "disk"
    if not disk.exists():
        disk.parent.mkdir()
        base.unpack(archive_of(row), disk)
        for kind in () if is_whole else COPIES:
            for topic in topics(kind)[1:]:
                if topic != donor(kind):
                    shutil.rmtree(disk / f"{topic}-0", ignore_errors=True)  # no controller has it
    return disk


@contextmanager
def faulty_disk(row: Row, sound: Path) -> Iterator[Path]:
    """Yield a copy of a disk, of the same name, with a row's fault; it is removed at the end."""
    parent = sound.parent / "faulty"
    disk = shutil.copytree(sound, parent / sound.name)
    try:
        cell = Cell(row["file"], row["fault"], row["kind"])
        put_fault(cell, disk, topics(cell.kind)[0] if cell.kind else None)
        yield disk
    finally:
        shutil.rmtree(parent)


class Answer(NamedTuple):
    """A command's answer about a disk.

    findings: a refusal counts as an error. start: the end of a start; sentence: the same in words; None if there is no
    summary.
    """

    findings: Findings
    start: str | None
    sentence: str


def answer(command: str, disk: Path) -> Answer:
    """Return the answer of `kseg verify` or `kseg doctor` about a disk."""
    names = [path.name for path in (disk, second_directory(disk)) if path.exists()]
    ran = run.kseg([command, *names, "-o", "json", "-j", "1"], disk.parent)
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    found = {(each["severity"], each["id"], each.get("file", "")) for each in said if "severity" in each}
    refused = ran.stderr.decode().splitlines() if ran.status == 2 else []
    summary = next((each for each in said if each["type"] == "summary"), {})
    whole = frozenset(found | {("error", line, "") for line in refused})
    return Answer(whole, summary.get("start"), summary.get("startSentence", ""))


def verdict(found: Findings, usual: Findings) -> Verdict:
    """Return the verdict on the findings that a disk without faults doesn't have."""
    new = found - usual
    worst = max((severity for severity, _, _ in new), key=RANKS.index, default="none")
    return Verdict(worst, tuple(sorted({name for severity, name, _ in new if severity == worst})))


def contradicts(row: Row, worst: str) -> bool:
    """Return True if a severity contradicts the consequence: an error without harm, or harm without an error."""
    return (row["class"] in HARMLESS) == (worst == "error")
