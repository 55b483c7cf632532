"""Names of carved partitions by old copies of Kafka's offset checkpoints: their offsets are boundaries of batches."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from math import log2
from typing import NamedTuple

from kseg.carve.chains import CarvedPartition, Part, Rows, first_header, last_header
from kseg.carve.images import Images
from kseg.carve.names import Name, NameKind
from kseg.carve.runs import Runs
from kseg.carve.topics import KnownTopics
from kseg.formats.checkpoints import OFFSET_CHECKPOINT_ENTRY, OFFSET_CHECKPOINT_START
from kseg.formats.file_names import MAXIMUM_OFFSET, parse_partition_directory

LEAST_BITS = 24
"""Bits of evidence that a name needs. An offset counts more, the less likely it is a batch's boundary by chance."""
LEAST_LEAD = 16
"""Bits that a name needs more than each other one."""
_BLOCK = 4096
_LONGEST_TEXT = 1 << 20
_LONGEST_ENTRY = 249 + 10 + 19 + 3
_MOST_ENTRIES = 1_000_000
"""Most entries that are read: a disk has some thousands, a hostile image as many as it has room for."""


class CheckpointOffset(NamedTuple):
    """An offset that a checkpoint has for a partition, by the name of its directory."""

    offset: int
    directory: str


def checkpoint_offsets(images: Images, positions: Iterable[int], topics: KnownTopics) -> list[CheckpointOffset]:
    """Return the different offsets of the checkpoints at some positions, in order.

    Partitions that a known topic never had are left out.
    """
    found: set[CheckpointOffset] = set()
    left = _MOST_ENTRIES
    for position in positions:
        for entry in _entries_at(images, position, left):
            left -= 1
            if entry is not None:
                found.add(entry)
    refused = {each.directory for each in found if _is_refused(each.directory, topics)}
    return sorted(each for each in found if each.directory not in refused)


def _is_refused(directory: str, topics: KnownTopics) -> bool:
    name = parse_partition_directory(directory)
    if name is None or name.topic in (".", ".."):
        return True
    count = topics.partition_count(name.topic)
    return count is not None and name.partition >= count


def _entries_at(images: Images, position: int, most: int) -> Iterator[CheckpointOffset | None]:
    """Yield the entries of a checkpoint up to the first line that isn't one; None for each that can't be used.

    A line in two blocks can't: these may be of two files.
    """
    start = OFFSET_CHECKPOINT_START.match(images.read(position, position + _BLOCK))
    if start is None:
        return
    count, at = min(int(start[1]), most), start.end()
    text = images.read(position, position + min(at + count * _LONGEST_ENTRY, _LONGEST_TEXT))
    for _ in range(count):
        entry = OFFSET_CHECKPOINT_ENTRY.match(text, at)
        if entry is None:
            return
        is_in_one = (position + at) // _BLOCK == (position + entry.end() - 1) // _BLOCK
        topic, partition, offset = entry.groups()
        at = entry.end()
        is_valid = is_in_one and int(offset) <= MAXIMUM_OFFSET
        yield CheckpointOffset(int(offset), f"{topic.decode()}-{int(partition)}") if is_valid else None


def names_by_checkpoints(
    runs: Runs, partitions: Iterable[CarvedPartition], offsets: list[CheckpointOffset]
) -> dict[int, Name]:
    """Return names by number of partitions.

    All offsets that checkpoints have for the name, and that are inside the partition, are boundaries of its batches.
    """
    names = {}
    for partition in partitions:
        name = _Boundaries(runs, partition.parts).name_by(offsets)
        if name is not None:
            names[partition.number] = name
    return names


class _Boundaries:
    """The boundaries of a partition's batches: offsets that aren't inside a batch."""

    def __init__(self, runs: Runs, parts: tuple[Part, ...]) -> None:
        self._runs, self._parts = runs, parts
        self._firsts = [first_header(runs, part).first_offset for part in parts]
        self._last = last_header(runs, parts[-1]).last_offset

    def name_by(self, offsets: list[CheckpointOffset]) -> Name | None:
        """Return the name that has enough bits, and enough more than each other one.

        The offsets of other names count even if one of them isn't a boundary: the checkpoint may be of an earlier
        topic.
        """
        start = bisect_right(offsets, self._firsts[0], key=lambda each: each.offset)
        end = bisect_right(offsets, self._last, key=lambda each: each.offset)
        if start == end:
            return None
        fitting: Counter[str] = Counter()
        contradicted: set[str] = set()
        is_boundary = {offset: self._has(offset) for offset in {each.offset for each in offsets[start:end]}}
        for offset, directory in offsets[start:end]:
            if is_boundary[offset]:
                fitting[directory] += 1
            else:
                contradicted.add(directory)
        if not fitting:
            return None
        (best, count), (second, next_count) = [*fitting.most_common(2), ("", 0)][:2]
        bits = -log2(self._share())
        if best in contradicted or count * bits < LEAST_BITS or (count - next_count) * bits < LEAST_LEAD:
            return None
        facts: dict[str, int | float | str | None] = {"offsets": count, "bits": round(count * bits, 1)}
        facts |= {"runnerUp": second or None, "runnerUpBits": round(next_count * bits, 1)}
        return Name(best, NameKind.CHECKPOINTS, facts)

    def _share(self) -> float:
        """Return the share of boundaries among the offsets after the first one."""
        inside = 0
        for part in self._parts:
            if isinstance(part, Rows):
                batches = self._runs.batches
                firsts = batches.column("base_offset", part.first, part.last)
                inside += sum(batches.column("last_offset", part.first, part.last)) - sum(firsts)
            else:
                inside += part.header.last_offset - part.header.first_offset
        return 1 - inside / (self._last - self._firsts[0])

    def _has(self, offset: int) -> bool:
        """Return True if an offset isn't inside a batch."""
        part = self._parts[bisect_right(self._firsts, offset) - 1]
        if not isinstance(part, Rows):
            return part.header.first_offset == offset or part.header.last_offset < offset
        header = self._runs.batches.header
        rows = range(part.first, part.last)
        found = header(rows[bisect_right(rows, offset, key=lambda row: header(row).first_offset) - 1])
        return found.first_offset == offset or found.last_offset < offset
