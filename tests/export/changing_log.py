"""A partition directory that changes as on a broker: appends, rolls, cleaning, retention, deletion, re-creation."""

import shutil
from base64 import urlsafe_b64encode
from pathlib import Path
from random import Random

import kseg
from kseg.log.cleaner import CompactSettings
from kseg.log.partition import PartitionLog
from kseg.rewrite.compact import compact_partition
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment

NOW = 1_800_000_000_000
Row = tuple[str | None, int, bytes | None]
"""A record in a table: the topic's id, the offset, the value."""


class ChangingLog:
    """A partition of one topic after another, with a number of keys and unique values."""

    def __init__(self, path: Path, random: Random, keys: int = 6) -> None:
        self.path, self._random, self._keys = path, random, keys
        self.topic_id = ""
        self.make()

    def make(self) -> None:
        """Make a new topic of the same name, and move the previous directory away, as a broker does."""
        if self.path.exists():
            self.path.rename(self.path.with_name(f"{self.path.name}.{self._random.getrandbits(128):032x}-delete"))
        self.topic_id = urlsafe_b64encode(self._random.randbytes(16)).decode().rstrip("=")
        self.epoch, self._next, self._base = 0, 0, 0
        self._active: list[NewBatch] = []
        self._write()
        (self.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {self.topic_id}\n", encoding="utf-8")

    def append(self, count: int) -> None:
        """Append batches of one to four records with few keys."""
        for _ in range(count):
            size = self._random.randint(1, 4)
            records = [
                NewRecord(
                    b"key-%d" % self._random.randrange(self._keys),
                    b"%s %d" % (self.topic_id.encode(), self._next + place),
                )
                for place in range(size)
            ]
            self._active.append(NewBatch(records, self._next, partition_leader_epoch=self.epoch))
            self._next += size
        self._write()

    def roll(self) -> None:
        """Begin a new segment."""
        if self._active:
            self._active, self._base = [], self._next
            self._write()

    def clean(self) -> None:
        """Compact, and join small segments."""
        self.roll()
        cleaned = self.path.with_name("cleaned")
        shutil.rmtree(cleaned, ignore_errors=True)
        cleaned.mkdir()
        segment_bytes = self._random.choice((2000, 1 << 20))
        settings = CompactSettings(NOW, first_dirty_offset=0, segment_bytes=segment_bytes)
        compact_partition(PartitionLog(self.path), settings, cleaned)
        shutil.rmtree(self.path)
        cleaned.rename(self.path)
        (self.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {self.topic_id}\n", encoding="utf-8")

    def retain(self) -> None:
        """Delete the first segments; the active one stays."""
        bases = self.bases()
        for base in bases[: self._random.randrange(len(bases))]:
            for path in self.path.glob(f"{base:020}.*"):
                path.unlink()

    def bases(self) -> list[int]:
        """Return the base offsets of its segments."""
        return sorted(int(path.stem) for path in self.path.glob("*.log"))

    def rows(self) -> set[Row]:
        """Return its records as rows."""
        found = set()
        for path in sorted(self.path.glob("*.log")):
            with kseg.open_segment(path) as segment:
                for each in segment.batches():
                    found |= {(self.topic_id, record.offset, record.value) for record in each.records()}
        return found

    def _write(self) -> None:
        exports.write_indexes(write_segment(self.path, self._active, self._base))
