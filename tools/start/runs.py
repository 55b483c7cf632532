"""Starts of a node on base disks or faulty ones: watched, and ended by a kill."""

import hashlib
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from start import base
from start.nodes import START_SECONDS, Node, directories, give_away
from start.served import Answers

SETTLE_SECONDS = 1.0
"""Seconds in which retention has checked all partitions once."""
SERIOUS = re.compile(r"^\[.*?\] (WARN|ERROR|FATAL) (.*)")
PASSING = re.compile(r"CONTROLLER_REGISTRATION|NotControllerException")
"""Pattern of transient errors: at some starts a node registers before it knows that it is the controller itself."""
CAUSE = re.compile(r"^(?:Caused by: )?((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error|Fault)\b.*)")


class Seen(NamedTuple):
    """Observations of a start.

    is_up: whether it served until the end. said: serious lines, and the causes of errors, without paths. disk: digests
    of all files afterwards, by path. made: new directories.
    """

    is_up: bool
    said: tuple[str, ...]
    disk: Mapping[str, str]
    made: frozenset[str]
    answers: Answers


def make_base(node: Node, archives: Mapping[str, Mapping[str, Path]]) -> None:
    """Write both base disks of all processes: the killed one had begun to write again after the clean stop.

    archives: by stop and by role.
    """
    node.format()
    with node.running("base-1"):
        base.make_topics(node.port, node.release)
        base.write_records(node.port, range(8))
    with node.running("base-2"):
        base.write_records(node.port, range(8, 18))
        base.leave_open(node.port, 18)
        base.commit(node.port)
        time.sleep(SETTLE_SECONDS)
    pack(node, archives["clean"])
    with node.running("base-3", is_killed=True):
        base.write_records(node.port, range(19, 24))
        base.commit(node.port)
        time.sleep(SETTLE_SECONDS)
    pack(node, archives["killed"])


def share_classes(node: Node, archives: Mapping[str, Path]) -> None:
    """Run all processes until they are up, and stop them cleanly: later processes of their kind start faster."""
    unpack(node, archives)
    with node.running("classes"):
        pass


def pack(node: Node, archives: Mapping[str, Path]) -> None:
    """Write the disks of all processes."""
    for process in node.processes:
        base.pack(process.disk, archives[process.role])


def unpack(node: Node, archives: Mapping[str, Path]) -> None:
    """Unpack base disks for the processes, and remove everything that faults have left."""
    for process in node.processes:
        for path in directories(process.disk):
            shutil.rmtree(path, ignore_errors=True)
        base.unpack(archives[process.role], process.disk)
        give_away(process.disk)


def start(node: Node, offsets: Mapping[str, Iterable[int]]) -> Seen:
    """Start a node on its log directories, and observe it. offsets: to read from, by topic."""
    is_up, answers = False, Answers(frozenset(), {}, {})
    before = folders(node.disk)
    deadline = time.monotonic() + START_SECONDS
    try:
        with node.running("start", is_killed=True):
            time.sleep(SETTLE_SECONDS)
            answers = node.reader.read_all(node.port, offsets)
            disk = digests(node.disk)
            is_up = node.is_listening()
    except SystemExit:
        disk = digests(node.disk)
    lines = list(said_lines(node))
    if not is_up and time.monotonic() > deadline:
        lines.append(f"no end, and no open port, after {START_SECONDS} seconds")
    return Seen(is_up, tuple(lines), disk, frozenset(folders(node.disk) - before), answers)


def folders(disk: Path) -> set[str]:
    """Return the names of a log directory's folders."""
    return {path.name for path in disk.iterdir() if path.is_dir()}


def said_lines(node: Node) -> Iterator[str]:
    """Yield serious lines of all processes at the last start.

    Of other processes without warnings, and with their role.
    """
    for process in node.processes:
        text = node.output("start", process).read_text(errors="replace")
        for line in serious_lines(text, process.disk):
            if process.role == node.role:
                yield line
            elif not line.startswith("WARN"):
                yield f"{process.role}: {line}"


def digests(disk: Path) -> dict[str, str]:
    """Return a digest of each file below a directory; of links, of their destinations."""
    return {path.relative_to(disk).as_posix(): digest(path) for path in sorted(disk.rglob("*")) if path.is_file()}


def digest(path: Path) -> str:
    """Return a digest of the bytes of a file, without zeros at its end, and of whether it is a link."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return "gone"
    return hashlib.sha256(content).hexdigest()[:16] + "-link" * path.is_symlink()


def serious_lines(text: str, disk: Path) -> list[str]:
    """Return warnings and errors, and the exceptions after them."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        cleaned = line.replace(f"{disk}/", "").replace(str(disk), "DISK")
        if PASSING.search(cleaned):
            continue
        if serious := SERIOUS.match(cleaned):
            found[f"{serious[1]} {serious[2]}"] = None
        elif cause := CAUSE.match(cleaned):
            found[cause[1]] = None
    return list(found)
