"""A log directory that grows to copies of other partitions: their logs, cut at batch boundaries, get longer.

The logs are appended to in place, as by a broker. A segment gets its indexes once it is whole.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import kseg
from tests.export.every_partition import Key, Row, rows_of
from tests.log_files import NewBatch, NewRecord, write_segment

HOUR_MS = 3_600_000
COUNTRIES = ("DE", "São Tomé", "a/b=c%20'#?", None)
UNDECODABLE = (b"\xff{", b"{", b'"text"', b'{"id": "x"}', b"")
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "country": {"type": ["null", "string"]},
        "amount": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}
FIELD_NAMES = ("id", "country", "amount", "tags")


class GrowingPartition:
    """A partition directory that grows to a copy of another one."""

    def __init__(self, source: Path, path: Path) -> None:
        self.source, self.path = source, path
        self._logs = sorted(log for log in source.glob("*.log") if log.stat().st_size)
        self._cuts = [(number, size) for number, log in enumerate(self._logs) for size in _batch_ends(log)]
        self._done = 0

    @property
    def left(self) -> int:
        """The number of batches that aren't copied yet."""
        return len(self._cuts) - self._done

    def grow(self, count: int) -> None:
        """Append up to `count` batches."""
        if count and not self._done:
            self.path.mkdir(parents=True)
            for file in self.source.iterdir():
                if file.suffix in ("", ".metadata", ".snapshot"):  # the first segment's doesn't count alone
                    shutil.copy(file, self.path)
        for number, end in self._cuts[self._done : self._done + count]:
            log = self._logs[number]
            with (self.path / log.name).open("ab") as copy:
                copy.write(log.read_bytes()[copy.tell() : end])
            if end == log.stat().st_size:
                for index in log.parent.glob(f"{log.stem}.*index"):
                    shutil.copy(index, self.path)
            self._done += 1


def _batch_ends(log: Path) -> list[int]:
    """Return the positions after each batch; the last is the end of the file."""
    with kseg.open_segment(log) as segment:
        ends = [batch.position + batch.size for batch in segment.batches()]
    return [*ends[:-1], log.stat().st_size]


class GrowingLogs:
    """A log directory of such partitions."""

    def __init__(self, directory: Path, sources: Mapping[Key, Path], chance: Random) -> None:
        self.directory = directory
        self._chance = chance
        directory.mkdir()
        self.sources = dict(sources)
        self.partitions = [
            GrowingPartition(source, directory / (topic if number is None else f"{topic}-{number}"))
            for (topic, number), source in self.sources.items()
        ]

    def grow(self, runs: int) -> None:
        """Append some batches to most of the partitions, so that all end with the last of `runs` runs."""
        for partition in self.partitions:
            if runs <= 1:
                partition.grow(partition.left)
            elif self._chance.random() < 0.8:
                partition.grow(self._chance.randint(0, max(1, 2 * partition.left // runs)))

    def rows(self, isolation: str, topic: str | None = None) -> Iterator[tuple[Key, list[Row]]]:
        """Yield the rows of the whole partitions, or of one topic's, by an independent reader."""
        for key, source in self.sources.items():
            if topic in (None, key[0]):
                is_made = key[0] == ORDERS
                yield key, rows_of(source, "read_uncommitted" if is_made else isolation)


ORDERS = "orders"


def write_orders(directory: Path, chance: Random) -> dict[Key, Path]:
    """Write the partitions of a topic whose values mostly have SCHEMA, over three days; return their places."""
    places: dict[Key, Path] = {}
    for number in range(2):
        offset, batches = 0, []
        for _ in range(40):
            records = [_new_order(offset + place, chance) for place in range(chance.randint(1, 12))]
            batches.append(NewBatch(records, offset))
            offset += len(records) + chance.choice((0, 0, 0, 5))
        half = len(batches) // 2
        path = directory / f"{ORDERS}-{number}"
        write_segment(path, batches[:half])
        write_segment(path, batches[half:], batches[half].base_offset)
        places[ORDERS, number] = path
    return places


def _new_order(number: int, chance: Random) -> NewRecord:
    order = {"id": number, "country": chance.choice(COUNTRIES), "amount": number / 4, "tags": ["a"] * (number % 3)}
    value = json.dumps(order).encode()
    if chance.random() < 0.1:
        value = chance.choice(UNDECODABLE)
    key = None if chance.random() < 0.1 else b"k%d" % chance.randrange(20)
    time = -1 if chance.random() < 0.05 else 1_790_000_000_000 + chance.randrange(72) * HOUR_MS
    return NewRecord(key, None if chance.random() < 0.05 else value, time, headers=[("h", b"%d" % number)])
