"""Case number N of a seed: files that are the same on every machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from tests import golden
from tests.fuzz import seeds
from tests.fuzz.mutations import havoc, mutated_file, mutated_log
from tests.fuzz.schemas import schema_case

EVERY = 12
"""One case of so many is a partition that whole commands read; the others are logs for the kernels."""
LOG_SIZES = (500, 8_000, 40_000, 120_000)
"""About how many bytes a log for the kernels has."""
MADE_SHARE = 0.3
LOG_NAME = f"{0:020}.log"
HARMFUL = "<kseg&\"'>"
"""Text that isn't to stand so on a page."""
NAMES = (HARMFUL, "\x1b[31mred", "two\nlines", "=1+1", "\u202edcba", "\udcff\udcfe", "%s{0}", "a" * 180, ".", "ä b")
"""Of topics, as no broker allows them but a disk may have them."""


@dataclass(frozen=True, slots=True)
class Case:
    """Files by their paths; `is_partition`: whole commands are to read them."""

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
        return cls(files, is_partition=set(files) != {LOG_NAME})


def random_of(seed: int, number: int) -> Random:
    """What the case is drawn from, and then what is asked of it."""
    return Random(f"{seed}/{number}")


def make_case(random: Random, number: int) -> Case:
    """The case of this number."""
    if number % EVERY:
        return Case({LOG_NAME: mutated_log(random, _log(random), seeds.pieces())}, is_partition=False)
    if number % (4 * EVERY) == 2 * EVERY:
        return Case(schema_case(random), is_partition=True)
    if number % (8 * EVERY) == 0:
        return Case({"clients.pcap": _capture(random)}, is_partition=True)
    return _partition(random)


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
    return Case(dict(_placed(random, partition.name, files)), is_partition=True)


def _placed(random: Random, name: str, files: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The files, now and then with a name of the topic that does harm, or as copies of two brokers, one changed."""
    topic = random.choice(NAMES) if random.random() < 0.2 else None
    if topic is not None:
        files = {path.replace(f"{name}/", f"{topic}-{name.rpartition('-')[2]}/"): each for path, each in files.items()}
    if random.random() < 0.8:
        yield from files.items()
        return
    for number in (1, 2):
        for path, content in files.items():
            is_changed = number == 2 and random.random() < 0.3
            yield f"b{number}/{path}", mutated_file(random, path, content, seeds.pieces()) if is_changed else content
        yield f"b{number}/meta.properties", b"version=1\nnode.id=%d\ncluster.id=kQdd7jZGT3CMrgGgk1nVcQ\n" % number


def _capture(random: Random) -> bytes:
    content = (golden.ROOT / "protocol/4.3.1/clients.pcap").read_bytes()
    for _ in range(random.choice((1, 3, 9))):
        at = random.randrange(24, len(content))
        content = content[:at] + havoc(random, content[at : at + 400]) + content[at + 400 :]
    return content
