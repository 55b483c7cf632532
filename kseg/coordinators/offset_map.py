"""Maps from offsets of a cluster to those of a restored one: a CSV file of ranges, for groups and other stores."""

import csv
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kseg.coordinators.members import Group, OffsetCommit
from kseg.errors import OpenError, UsageError

COLUMNS = ("topic", "partition", "firstOffset", "endOffset", "targetTopic", "targetOffset")


class OffsetRange(NamedTuple):
    """Offsets from `first` to before `end` that have become offsets from `target` on. Fields in the order of COLUMNS.

    Offsets between two ranges have no record: they become the next range's target. A partition's last range is empty:
    it stands for the end of the log.
    """

    topic: str
    partition: int
    first: int
    end: int
    target_topic: str
    target: int


class OffsetMap:
    """The ranges of partitions. Memory: some bytes per range."""

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        """Take ranges in the order of their partitions' offsets."""
        self._ranges: dict[tuple[str, int], list[OffsetRange]] = {}
        for each in ranges:
            self._ranges.setdefault((each.topic, each.partition), []).append(each)

    def translate(self, commit: OffsetCommit) -> OffsetCommit | None:
        """Return a commit with its topic and offset in the restored cluster; None if that lacks the partition."""
        own = self._ranges.get((commit.topic, commit.partition))
        if own is None:
            return None
        at = min(bisect_right(own, commit.offset, key=_end_of), len(own) - 1)
        found = own[at]
        target = found.target + min(max(commit.offset - found.first, 0), found.end - found.first)
        return commit._replace(topic=found.target_topic, offset=target)

    def translate_groups(self, groups: Iterable[Group]) -> list[Group]:
        """Return groups with the commits that have a place in the restored cluster."""
        return [
            replace(
                group, commits=tuple(found for each in group.commits if (found := self.translate(each)) is not None)
            )
            for group in groups
        ]


def _end_of(found: OffsetRange) -> int:
    return found.end


def read_offset_map(path: Path) -> OffsetMap:
    """Read a map's CSV file. Raises OpenError if it can't be opened, UsageError for other contents."""
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            return OffsetMap(_ranges_in(lines, path))
    except OSError as error:
        raise OpenError(f"can't be opened: {error.strerror}", path) from error
    except UnicodeDecodeError as error:
        raise UsageError("isn't UTF-8; specify the file that `kseg restore --mapping` wrote", path) from error


def _ranges_in(lines: Iterable[str], path: Path) -> Iterator[OffsetRange]:
    rows = csv.reader(lines)
    if tuple(next(rows, ())) != COLUMNS:
        raise UsageError(f"doesn't begin with {','.join(COLUMNS)}; specify a file of `kseg restore --mapping`", path)
    for number, row in enumerate(rows, 2):
        try:
            topic, partition, first, end, target_topic, target = row
            yield OffsetRange(topic, int(partition), int(first), int(end), target_topic, int(target))
        except ValueError as error:
            raise UsageError(f"line {number} isn't {','.join(COLUMNS)}", path) from error
