"""Starts of a broker on a disk: made as another user than root, watched, and ended by a kill."""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from start import base
from start.served import Answers, compile_reader, read_all

from tests.log.real_broker import Broker, new_broker

USER, GROUP_ID = 65534, 65534
"""nobody's, who may read no file of root's."""
START_SECONDS = 15
SETTLE_SECONDS = 1.0
"""In which retention has had its first look at all partitions."""
SERIOUS = re.compile(r"^\[.*?\] (WARN|ERROR|FATAL) (.*)")
CAUSE = re.compile(r"^(?:Caused by: )?((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error|Fault)\b.*)")


class Mktemp:
    """The one thing that `new_broker` needs of pytest."""

    def __init__(self, work: Path) -> None:
        self._work = work

    def mktemp(self, name: str) -> Path:
        """Make a directory that another user may walk through."""
        path = self._work / name
        path.mkdir(mode=0o755)
        return path


class AsNobody(NamedTuple):
    """Kafka's classes, run by nobody."""

    kafka: Any

    def command(self, main_class: str, *arguments: str, options: Iterable[str] = ()) -> list[str]:
        """The command line that runs one of the classes."""
        user = ["setpriv", f"--reuid={USER}", f"--regid={GROUP_ID}", "--clear-groups"] if is_root() else []
        return [*user, *self.kafka.command(main_class, *arguments, options=options)]


class Seen(NamedTuple):
    """What a start showed.

    is_up: whether it served until the end. said: serious lines, and the causes of errors, without paths. disk: digests
    of all files afterwards, by path.
    """

    is_up: bool
    said: tuple[str, ...]
    disk: Mapping[str, str]
    answers: Answers


def is_root() -> bool:
    """Whether brokers can be run by another user than the files' owner."""
    return os.geteuid() == 0


def broker_for(release: str, work: Path) -> Broker:
    """A combined node of a release, without anything on its disk but what formatting leaves."""
    work.chmod(0o755)
    broker = new_broker(Mktemp(work), base.SETTINGS, release)  # type: ignore[arg-type]  # all that it calls
    give_to_broker(broker.logs)
    compile_reader(broker.work)
    return broker._replace(kafka=AsNobody(broker.kafka), patience=START_SECONDS)


def give_to_broker(disk: Path) -> None:
    """Make nobody the owner of a disk, if that is possible."""
    if is_root():
        for path in (disk, *disk.rglob("*")):
            os.chown(path, USER, GROUP_ID, follow_symlinks=False)


def make_base(broker: Broker, release: str, archives: Mapping[str, Path]) -> None:
    """Write both base disks: the killed broker had begun to write again after the clean stop."""
    with broker.running("base-1"):
        base.make_topics(broker.port, release)
        base.write_records(broker.port, range(8))
    with broker.running("base-2"):
        base.write_records(broker.port, range(8, 18))
        base.leave_open(broker.port, 18)
        base.commit(broker.port)
        time.sleep(SETTLE_SECONDS)
    base.pack(broker.logs, archives["clean"])
    with broker.running("base-3", is_killed=True):
        base.write_records(broker.port, range(19, 24))
        base.commit(broker.port)
        time.sleep(SETTLE_SECONDS)
    base.pack(broker.logs, archives["killed"])


def start(broker: Broker, offsets: Mapping[str, Iterable[int]]) -> Seen:
    """Start the broker on what is in its log directory, and see what it does. offsets: to read from, by topic."""
    said = broker.work / "start.txt"
    is_up, answers = False, Answers(frozenset(), {}, {})
    try:
        with broker.running("start", is_killed=True):
            time.sleep(SETTLE_SECONDS)
            answers = read_all(broker.kafka, broker.port, broker.tools.QUIET, offsets)
            disk = digests(broker.logs)
            is_up = bool(broker.tools.is_listening(broker.port))
    except SystemExit:
        disk = digests(broker.logs)
    lines = serious_lines(said.read_text(errors="replace"), broker.logs)
    return Seen(is_up, tuple(lines), disk, answers)


def digests(disk: Path) -> dict[str, str]:
    """A digest of each file below a directory; of links, of what they lead to."""
    return {path.relative_to(disk).as_posix(): digest(path) for path in sorted(disk.rglob("*")) if path.is_file()}


def digest(path: Path) -> str:
    """A digest of a file's bytes, without zeros at its end, and of whether it is a link."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return "gone"
    return hashlib.sha256(content).hexdigest()[:16] + "-link" * path.is_symlink()


def serious_lines(text: str, disk: Path) -> list[str]:
    """Warnings and errors, and the exceptions after them."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        cleaned = line.replace(f"{disk}/", "").replace(str(disk), "DISK")
        if serious := SERIOUS.match(cleaned):
            found[f"{serious[1]} {serious[2]}"] = None
        elif cause := CAUSE.match(cleaned):
            found[cause[1]] = None
    return list(found)


def clear(disk: Path) -> None:
    """Remove a disk, and what its links led to."""
    for path in (disk, disk.parent / f"{disk.name}-elsewhere"):
        shutil.rmtree(path, ignore_errors=True)
