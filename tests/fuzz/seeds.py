"""Seeds of mutants: golden files, and segments by kseg's own writer in each format and codec."""

from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from kseg.formats.codes import TimestampType
from kseg.reading.batch import NEW_HEADER
from kseg.writer.batches import build_batch
from kseg.writer.messages import attributes_of, encode_entry, encode_wrapper
from tests import golden
from tests.fuzz.pieces import cut
from tests.kernel.made import Record

LARGEST_PARTITION = 200_000
"""The largest golden partition that is used completely."""
LARGEST_PIECE = 20_000


class Partition(NamedTuple):
    """A partition directory with its files and its log directory's: contents by path."""

    name: str
    files: dict[str, bytes]

    @property
    def logs(self) -> list[str]:
        """The paths of its logs."""
        return [path for path in self.files if path.endswith(".log")]


@cache
def partitions() -> list[Partition]:
    """Return golden partitions, healthy and damaged, that are small enough for each command."""
    folders = {path.parent for folder in ("logs", "damaged") for path in (golden.ROOT / folder).rglob("*.log")}
    found = [_partition(folder) for folder in sorted(folders)]
    return [each for each in found if sum(map(len, each.files.values())) <= LARGEST_PARTITION]


def _partition(folder: Path) -> Partition:
    name = folder.name if "-" in folder.name and folder.parent.name != "damaged" else f"orders-{len(folder.name)}"
    files = {f"{name}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    beside = sorted(folder.parent.iterdir()) if folder.parent.parent.name == "logs" else []
    return Partition(name, files | {path.name: path.read_bytes() for path in beside if path.is_file()})


@cache
def logs() -> list[list[bytes]]:
    """Return golden logs as their batches and entries."""
    paths = [path for folder in ("logs", "docs", "damaged") for path in (golden.ROOT / folder).rglob("*.log")]
    return list(filter(None, (cut(path.read_bytes()) for path in sorted(paths))))


@cache
def pieces() -> list[bytes]:
    """Return all batches and entries that aren't large, for splices."""
    return sorted({piece for log in (*logs(), *make_logs()) for piece in log if len(piece) <= LARGEST_PIECE})


@cache
def make_logs() -> list[list[bytes]]:
    """Return logs by kseg's own writer, of each format and codec, also with larger records than golden ones."""
    random = Random("made")
    logs = [[_batch(random, number, codec) for number in range(40)] for codec in (0, 0, 1, 2, 3, 4)]
    for magic in (0, 1):
        logs.append([encode_entry(number, magic, 0, b"k", _text(random), number) for number in range(200)])
        logs += [[_wrapper(random, number, magic, codec) for number in range(40)] for codec in (1, 2, 3)]
    return logs


def _text(random: Random) -> bytes:
    """Return text that compresses like real texts, sometimes large."""
    words = (b"order", b"customer", b"2026", "größe".encode(), b"\0\1\2\xff")
    return b" ".join(random.choices(words, k=random.choice((3, 9, 200, 1200))))


def _batch(random: Random, number: int, codec: int) -> bytes:
    count = random.choice((1, 3, 20))
    headers = [(b"name", b"value"), (b"", None)][: random.randrange(3)]
    records = [Record(b"k%d" % n, _text(random), headers, n, n) for n in range(count)]
    base = 20 * number
    is_transactional = number % 4 == 1
    header = NEW_HEADER._replace(
        base_offset=base,
        last_offset=base + count - 1,
        attributes=codec | (0x10 if is_transactional else 0) | (0x08 if number % 7 == 0 else 0),
        base_timestamp=1_700_000_000_000 + number,
        max_timestamp=1_700_000_000_000 + number + count - 1,
        records_count=count,
        producer_id=7 if is_transactional else -1,
        producer_epoch=0 if is_transactional else -1,
        base_sequence=base if is_transactional else -1,
    )
    return build_batch(header, b"".join(record.encode() for record in records))


def _wrapper(random: Random, number: int, magic: int, codec: int) -> bytes:
    base, count = 10 * number, 5
    inner = b"".join(
        encode_entry(n if magic else base + n, magic, 0, None, _text(random), number + n) for n in range(count)
    )
    attributes = attributes_of(magic, codec, TimestampType.CREATE_TIME)
    return encode_wrapper(base + count - 1, magic, attributes, inner, timestamp=number + count - 1)
