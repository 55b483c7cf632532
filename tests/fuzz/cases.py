"""Case number N of a seed: files that are the same on every machine."""

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
"""One case of so many is read by whole commands; the others are logs for the kernels."""
LOG_SIZES = (500, 8_000, 40_000, 120_000)
"""About how many bytes a log for the kernels has."""
MADE_SHARE = 0.3
LOG_NAME = f"{0:020}.log"


@dataclass(frozen=True, slots=True)
class Case:
    """Files by their paths; `is_partition`: whole commands are to read them, as they do a partition."""

    files: dict[str, bytes]
    is_partition: bool

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))

    def write(self, directory: Path) -> None:
        """Writes the files into an empty directory."""
        for path, content in self.files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    @classmethod
    def read(cls, directory: Path) -> "Case":
        """The case that was written there."""
        paths = [path for path in sorted(directory.rglob("*")) if path.is_file()]
        files = {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}
        are_columns = any(path.startswith(COLUMNS) for path in files)
        return cls(files, is_partition=set(files) != {LOG_NAME} and not are_columns)


class Series(NamedTuple):
    """Cases by their numbers: those of a seed, of all kinds or of one."""

    seed: int
    kind: str | None = None

    def case(self, number: int) -> tuple[Random, Case]:
        """A case, and what it was drawn from: what is asked of it is drawn next."""
        random = Random(f"{self.seed}/{number}")
        return random, KINDS[self.kind or kind_of(number)](random)

    def arguments(self) -> list[str]:
        """The same for a command line of the fuzzer."""
        return [*(() if self.kind is None else ("--kind", self.kind)), str(self.seed)]


def kind_of(number: int) -> str:
    """The kind of a series' case, where the series has all."""
    if number % EVERY == 1:
        return "columns"
    return "log" if number % EVERY else _TURNS[number // EVERY % len(_TURNS)]


_TURNS = ("capture", "partition", "definitions", "partition", "disks", "partition", "names", "partition")


def _log(random: Random) -> Sequence[bytes]:
    """A stretch of a seed's pieces, repeated or with other logs' after it until it is large enough."""
    wanted, found, size = random.choice(LOG_SIZES), list[bytes](), 0
    while size < wanted:
        log = random.choice(seeds.made() if random.random() < MADE_SHARE else seeds.logs())
        first = random.randrange(len(log))
        for piece in islice(log, first, None):
            found.append(piece)
            size += len(piece)
            if size >= wanted:
                break
    return found


def _partition(random: Random) -> Case:
    """A golden partition of which some files are changed, more often a log than another."""
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
"""What makes a case, by the name of its kind."""
