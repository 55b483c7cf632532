"""Logs to be damaged, and what kseg reads and reports of them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from crc32c import crc32c

import kseg
from tests import golden
from tests.kernel.made import Record
from tests.run import kseg as run_kseg

NAME = f"{1000:020}.log"
SINGLES = ("classes-2.0.1/singles-v0", "classes-3.9.1/singles-v1", "classes-2.0.1/singles-v2")
"""Sixty batches or entries of one record each, in each format; the first offset is 1000."""
COMPRESSED = (
    "classes-2.0.1/v0-gzip",
    "classes-2.0.1/v0-snappy",
    "classes-2.0.1/v0-lz4",
    "classes-2.0.1/v1-gzip-create",
    "classes-2.0.1/v1-snappy-create",
    "classes-2.0.1/v1-lz4-create",
    "classes-4.3.1/v2-gzip-create",
    "classes-4.3.1/v2-snappy-create",
    "classes-4.3.1/v2-lz4-create",
    "classes-4.3.1/v2-zstd-create",
)
"""Three batches or wrappers each."""
MIXED = "classes-3.9.1/mixed"
"""All three formats and five codecs in one file."""
MAGIC_AT = 16
ATTRIBUTES_AT = {0: 17, 1: 17, 2: 22}
BODY_AT = {0: 26, 1: 34, 2: 61}
"""Position of the body in a wrapper or a compressed batch; wrappers have no key."""
LEAST_SIZE_FIELD = {0: 14, 1: 22, 2: 49}


@dataclass(frozen=True)
class Log:
    """A healthy log to be damaged."""

    content: bytes
    name: str = NAME

    @property
    def starts(self) -> list[int]:
        """Positions of its batches, and its end."""
        starts = [0]
        while starts[-1] < len(self.content):
            at = starts[-1] + 8
            starts.append(at + 4 + int.from_bytes(self.content[at : at + 4], "big"))
        return starts

    @property
    def magic(self) -> int:
        return self.content[MAGIC_AT]

    def offset(self, number: int) -> int:
        """Return the value of a batch's first field."""
        at = self.starts[number]
        return int.from_bytes(self.content[at : at + 8], "big")

    def extent(self, number: int) -> tuple[int, int]:
        """Return position and size of a batch."""
        start, end = self.starts[number : number + 2]
        return start, end - start

    def change_bytes(self, number: int, at: int, new: bytes) -> bytes:
        """Return the log with other bytes in a batch, `at` bytes from its start."""
        at += self.starts[number]
        return self.content[:at] + new + self.content[at + len(new) :]

    def replace_batch(self, number: int, new: bytes) -> bytes:
        """Return the log with other bytes instead of a batch."""
        start, end = self.starts[number : number + 2]
        return self.content[:start] + new + self.content[end:]

    def changed_with_right_crc(self, number: int, at: int, new: bytes) -> bytes:
        """Return the same as `change_bytes`, but with a right CRC: only reading the records finds that damage."""
        start, end = self.starts[number : number + 2]
        return self.replace_batch(number, with_right_crc(self.change_bytes(number, at, new)[start:end]))


def with_right_crc(content: bytes) -> bytes:
    if content[MAGIC_AT] == 2:
        return content[:17] + crc32c(content[21:]).to_bytes(4, "big") + content[21:]
    return content[:12] + crc32(content[MAGIC_AT:]).to_bytes(4, "big") + content[MAGIC_AT:]


def log(case: str) -> Log:
    (path,) = (golden.ROOT / "logs" / case).glob("*.log")
    return Log(path.read_bytes(), path.name)


Items = list[kseg.Batch | kseg.Damage]


def scan_items(path: Path) -> Items:
    """Return the items of a scan, which must account for each byte."""
    with kseg.open_segment(path) as segment:
        items = list(segment.scan())
    position = 0
    for item in items:
        assert item.position == position
        position += item.size
    assert position == path.stat().st_size
    return items


def scanned_content(content: bytes, directory: Path, name: str = NAME) -> Items:
    path = directory / name
    path.write_bytes(content)
    return scan_items(path)


def the_damage(items: Items) -> kseg.Damage:
    (damage,) = (item for item in items if isinstance(item, kseg.Damage))
    return damage


def place(damage: kseg.Damage) -> tuple[str, int, int, int | None]:
    return damage.kind, damage.position, damage.size, damage.next_offset


def intact(items: Items) -> set[tuple[int, int]]:
    """Return position and size of each valid batch."""
    return {(item.position, item.size) for item in items if isinstance(item, kseg.Batch) and item.is_valid}


@dataclass(frozen=True)
class Dumped:
    """The content of a JSON dump, and its exit status."""

    status: int
    objects: list[dict[str, Any]]
    stderr: bytes

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.objects if item["type"] == kind]

    @property
    def damage(self) -> dict[str, Any]:
        (found,) = self.of("damage")
        return found


def dump_items(path: Path, *options: str) -> Dumped:
    """Return a log's JSON; the sizes of its batches and damages must add up."""
    ran = run_kseg(["dump", "-o", "json", *options, path.name], path.parent)
    result = Dumped(ran.status, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr)
    assert sum(item["size"] for item in result.of("batch") + result.of("damage")) == path.stat().st_size
    return result


def dumped_content(content: bytes, directory: Path, *options: str) -> Dumped:
    path = directory / NAME
    path.write_bytes(content)
    return dump_items(path, *options)


RECORDS = [Record(value=b"first"), Record(value=b"second", offset_delta=1), Record(value=b"third", offset_delta=2)]
