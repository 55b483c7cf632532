"""A topic whose logs change while a stream reads them: appends, rolls, retention, compaction, deletion, re-creation."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.export.exports import write_indexes
from tests.log_files import NewBatch, NewRecord, batch_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

Place = tuple[int, int, int]
"""A record: the topic's life, the partition, the offset."""
PARTITIONS = 3


@dataclass
class Segment:
    """A segment's batches."""

    base_offset: int
    batches: list[NewBatch] = field(default_factory=list)

    @property
    def next_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.base_offset


class GrowingTopic:
    """The expected state of the topic `orders`, and the same on disk.

    appended: every record so far. went: records removed by retention or a deletion; compacted: records removed by
    compaction.
    """

    def __init__(self, root: Path, random: Random) -> None:
        self.root = root
        self.life = 0
        self.segments: dict[int, list[Segment]] = {}
        self.appended: set[Place] = set()
        self.went: set[Place] = set()
        self.compacted: set[Place] = set()
        self._random = random
        root.mkdir()
        self.recreate()

    def change(self) -> str:
        """Make a random change as a broker does, and return its name."""
        kinds: list[tuple[Callable[[int], None], int]] = [
            (self._append, 12),
            (self._roll, 5),
            (self._retain, 3),
            (self._compact, 3),
            (lambda _: self.recreate(), 1),
            (self._delete, 1),
        ]
        (kind,) = self._random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
        if self.segments:
            kind(self._random.choice(sorted(self.segments)))
        else:
            self.recreate()
        return getattr(kind, "__name__", "recreate")

    def held_records(self) -> set[Place]:
        """Return the records that are in the logs now."""
        return self.appended - self.went - self.compacted

    def recreate(self) -> None:
        """Delete the topic and create it again, with another id."""
        for partition in list(self.segments):
            self._delete(partition)
        self.life += 1
        for partition in range(PARTITIONS):
            self.segments[partition] = [Segment(0)]
            self._path(partition).mkdir()
            metadata = f"version: 0\ntopic_id: {self.life:022}\n"
            (self._path(partition) / "partition.metadata").write_text(metadata)
            self._write(partition, self.segments[partition][0])

    def _delete(self, partition: int) -> None:
        for segment in self.segments.pop(partition):
            self._take(partition, segment)
        shutil.rmtree(self._path(partition))

    def _append(self, partition: int) -> None:
        for _ in range(self._random.randrange(1, 12)):
            segment = self.segments[partition][-1]
            first, count = segment.next_offset, self._random.choice((1, 1, 3, 8))
            places = [(self.life, partition, offset) for offset in range(first, first + count)]
            self.appended.update(places)
            records = [NewRecord(b"key", "/".join(map(str, place)).encode()) for place in places]
            segment.batches.append(NewBatch(records, first))
            self._write(partition, segment)

    def _roll(self, partition: int) -> None:
        last = self.segments[partition][-1]
        if last.batches:
            self.segments[partition].append(Segment(last.next_offset))
            self._write(partition, self.segments[partition][-1])
            self._append(partition)

    def _retain(self, partition: int) -> None:
        """Delete the oldest segment, unless it is the active one."""
        if len(self.segments[partition]) > 1:
            segment = self.segments[partition].pop(0)
            self._take(partition, segment)
            for path in self._path(partition).glob(f"{segment.base_offset:020}.*"):
                path.unlink()

    def _compact(self, partition: int) -> None:
        """Remove some batches of inactive segments."""
        for segment in self.segments[partition][:-1]:
            taken = [batch for batch in segment.batches if self._random.random() < 0.2]
            segment.batches = [batch for batch in segment.batches if batch not in taken]
            self.compacted.update(place for batch in taken for place in self._places(partition, batch))
            self._write(partition, segment)

    def _take(self, partition: int, segment: Segment) -> None:
        self.went.update(place for batch in segment.batches for place in self._places(partition, batch))

    def _places(self, partition: int, batch: NewBatch) -> list[Place]:
        return [(self.life, partition, offset) for offset in range(batch.base_offset, batch.next_offset)]

    def _path(self, partition: int) -> Path:
        return self.root / f"orders-{partition}"

    def _write(self, partition: int, segment: Segment) -> None:
        path = self._path(partition) / f"{segment.base_offset:020}.log"
        path.write_bytes(b"".join(map(batch_bytes, segment.batches)))
        write_indexes(path)
