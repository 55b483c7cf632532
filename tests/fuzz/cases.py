"""Cases by seed and number: files that are the same on every machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests import golden
from tests.fuzz import seeds
from tests.fuzz.definitions import COLUMNS, column_files, definition_files
from tests.fuzz.disks import disk_files, named_files
from tests.fuzz.mutations import havoc, mutated_file, mutated_log

EVERY = 12
"""The share of cases that complete commands read; the others are logs for the kernels."""
LOG_SIZES = (500, 8_000, 40_000, 120_000)
"""Approximate sizes of logs for the kernels."""
MADE_SHARE = 0.3
LOG_NAME = f"{0:020}.log"


@dataclass(frozen=True, slots=True)
class Case:
    """Files by their paths; `is_partition`: complete commands read them as a partition."""

    files: dict[str, bytes]
    is_partition: bool

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return sum(map(len, self.files.values()))

    def write(self, directory: Path) -> None:
        """Write the files into an empty directory."""
        for path, content in self.files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    @classmethod
    def read(cls, directory: Path) -> "Case":
        """Read a written case."""
        paths = [path for path in sorted(directory.rglob("*")) if path.is_file()]
        files = {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}
        are_columns = any(path.startswith(COLUMNS) for path in files)
        return cls(files, is_partition=set(files) != {LOG_NAME} and not are_columns)


class Series(NamedTuple):
    """The cases of a seed by number, of all kinds or of one."""

    seed: int
    kind: str | None = None

    def case(self, number: int) -> tuple[Random, Case]:
        """Return a case, and its random generator, which also draws the checks."""
        random = Random(f"{self.seed}/{number}")
        return random, KINDS[self.kind or kind_of(number)](random)

    def arguments(self) -> list[str]:
        """Return the series as arguments of the fuzzer."""
        return [*(() if self.kind is None else ("--kind", self.kind)), str(self.seed)]


def kind_of(number: int) -> str:
    """Return the kind of a case in a series of all kinds."""
    if number % EVERY == 1:
        return "columns"
    return "log" if number % EVERY else _TURNS[number // EVERY % len(_TURNS)]


_TURNS = ("capture", "partition", "definitions", "partition", "disks", "partition", "names", "partition")


def _log(random: Random) -> Sequence[bytes]:
    """Return a stretch of a seed's pieces, repeated or extended by other logs' pieces until it is large enough."""
    wanted, found, size = random.choice(LOG_SIZES), list[bytes](), 0
    while size < wanted:
        log = random.choice(seeds.make_logs() if random.random() < MADE_SHARE else seeds.logs())
        first = random.randrange(len(log))
        for piece in islice(log, first, None):
            found.append(piece)
            size += len(piece)
            if size >= wanted:
                break
    return found


def _partition(random: Random) -> Case:
    """Return a golden partition with some changed files, more often logs than others."""
    partition = random.choice(seeds.partitions())
    files = dict(partition.files)
    for _ in range(random.choice((1, 1, 2, 4))):
        paths = partition.logs if partition.logs and random.random() < 0.5 else list(files)
        path = random.choice(paths)
        if path in files:
            files[path] = mutated_file(random, path, files[path], seeds.pieces())
        if random.random() < 0.05 and len(files) > 1:
            files.pop(path, None)
    return Case(files, is_partition=True)


def _capture(random: Random) -> Case:
    content = (golden.ROOT / "protocol/4.3.1/clients.pcap").read_bytes()
    for _ in range(random.choice((1, 3, 9))):
        at = random.randrange(24, len(content))
        content = content[:at] + havoc(random, content[at : at + 400]) + content[at + 400 :]
    return Case({"clients.pcap": content}, is_partition=True)


KINDS: dict[str, Callable[[Random], Case]] = {
    "log": lambda random: Case({LOG_NAME: mutated_log(random, _log(random), seeds.pieces())}, is_partition=False),
    "partition": _partition,
    "capture": _capture,
    "columns": lambda random: Case(column_files(random), is_partition=False),
    "definitions": lambda random: Case(definition_files(random), is_partition=True),
    "disks": lambda random: Case(disk_files(random, seeds.pieces()), is_partition=True),
    "names": lambda random: Case(named_files(random), is_partition=True),
}
"""The makers of cases by kind."""
