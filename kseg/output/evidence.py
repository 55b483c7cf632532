"""The header of evidence: when and how kseg ran, and the SHA-256 of each of its inputs."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.errors import plural
from kseg.times import iso_time, now_ms


class Circumstances(NamedTuple):
    """When and how kseg ran: its version, the time in ISO 8601, and the arguments of the command line."""

    version: str
    time: str | None
    arguments: tuple[str, ...]


def current_circumstances(arguments: Iterable[str]) -> Circumstances:
    """Return the circumstances of a run that begins now."""
    from kseg.version import VERSION

    return Circumstances(VERSION, iso_time(now_ms()), tuple(arguments))


class HashedInput(NamedTuple):
    """A file with its size, and its SHA-256 in hex; None if it can't be read or wasn't wanted."""

    path: str
    size: int
    sha256: str | None


def hash_inputs(paths: Iterable[Path]) -> list[HashedInput]:
    """Return the files at some paths, and in directories below them, each once, with the hashes that they have now."""
    return list(map(_hash_file, dict.fromkeys(file for path in paths for file in _files_at(path))))


def _files_at(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for directory, folders, names in os.walk(path):
        folders.sort()
        files = (Path(directory, name) for name in sorted(names))
        yield from (file for file in files if file.is_file())


def _hash_file(path: Path) -> HashedInput:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123  # a pipe would block Path.open
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISBLK(mode):
                return HashedInput(str(path), 0, None)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return HashedInput(str(path), file.tell(), digest)
    except OSError:
        return HashedInput(str(path), 0, None)


def input_object(number: int, found: HashedInput, circumstances: Circumstances) -> dict[str, object]:
    """Return an input as an object of JSON."""
    return {
        "type": "input",
        "input": number,
        "path": found.path,
        "size": found.size,
        "sha256": found.sha256,
        "time": circumstances.time,
        "kseg": circumstances.version,
        "arguments": circumstances.arguments,
    }


def input_lines(inputs: Iterable[HashedInput], circumstances: Circumstances) -> Iterator[str]:
    """Yield the same as text."""
    yield f"evidence: kseg {circumstances.version} at {circumstances.time}: {' '.join(circumstances.arguments)}"
    for found in inputs:
        yield f"evidence: {found.path}: {_hash_text(found)}"


class Compared(NamedTuple):
    """An input after the run. is_unchanged: its bytes are the same as before."""

    found: HashedInput
    is_unchanged: bool


def compare_inputs(before: Iterable[HashedInput], after: Iterable[HashedInput]) -> list[Compared]:
    """Return all inputs after a run; one that has gone has no hash any more, and a new one isn't unchanged."""
    known = {each.path: each for each in before}
    now = {each.path: each for each in after}
    gone = {path: HashedInput(path, 0, None) for path in known if path not in now}
    return [Compared(found, found == known.get(path)) for path, found in (now | gone).items()]


def compared_object(number: int, compared: Compared) -> dict[str, object]:
    """Return an input after the run as an object of JSON."""
    found, is_unchanged = compared
    numbered = {"type": "inputAfter", "input": number, "path": found.path, "size": found.size, "sha256": found.sha256}
    return {**numbered, "isUnchanged": is_unchanged}


def compared_lines(inputs: list[Compared]) -> Iterator[str]:
    """Yield the same as text, and how many have changed."""
    for found, is_unchanged in inputs:
        yield f"evidence: {found.path}: {_hash_text(found)}, {'unchanged' if is_unchanged else 'changed'}"
    changed = sum(not each.is_unchanged for each in inputs)
    yield f"evidence: {changed} of {plural(len(inputs), 'input')} changed during the run"


def _hash_text(found: HashedInput) -> str:
    if found.sha256 is None:
        return "can't be read"
    return f"{plural(found.size, 'byte')}, SHA-256 {found.sha256}"
