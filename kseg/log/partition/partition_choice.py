"""Which partitions are meant: those of some topics, those with some numbers, as their directories are named."""

import os
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.formats.names import parse_partition_directory, plain_text

_SHOWN_TOPICS = 8
"""The most topics that an error lists."""


class PartitionChoice(NamedTuple):
    """Partitions of topics with one of some names or globs, and with one of some numbers; empty asks nothing."""

    topics: tuple[str, ...] = ()
    numbers: tuple[range, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether all partitions are meant."""
        return not self.topics and not self.numbers

    def takes(self, topic: str, partition: int | None) -> bool:
        """Whether a partition is meant; one whose number isn't known isn't if numbers are asked for."""
        return self.takes_topic(topic) and self.takes_number(partition)

    def takes_topic(self, topic: str) -> bool:
        """Whether a topic's partitions may be meant."""
        return not self.topics or any(topic == name or fnmatchcase(topic, name) for name in self.topics)

    def takes_number(self, partition: int | None) -> bool:
        """Whether a partition of this number may be meant."""
        return not self.numbers or (partition is not None and any(partition in numbers for numbers in self.numbers))

    def takes_directory(self, path: str | os.PathLike[str]) -> bool:
        """Whether the partition in a directory is meant; a name that isn't a partition's counts as a topic's."""
        if self.is_everything:
            return True
        own = _own_name(path)
        name = parse_partition_directory(own)
        return self.takes(own, None) if name is None else self.takes(name.topic, name.partition)

    def arguments(self) -> list[str]:
        """The options that ask for it, as a command line has them."""
        topics = [argument for topic in self.topics for argument in ("--topic", topic)]
        return [*topics, "--partition", ",".join(map(_range_text, self.numbers))] if self.numbers else topics

    def __str__(self) -> str:
        """The same as one text."""
        return " ".join(self.arguments())


EVERY_PARTITION = PartitionChoice()


class NoSuchPartitionError(UsageError):
    """There are partitions, but none of those that are meant."""

    def __init__(self, choice: PartitionChoice, directories: Iterable[str | os.PathLike[str]]) -> None:
        """Takes what was asked for, and the directories of the partitions that there are."""
        super().__init__(f"{choice}: no such partition here; there are {_listed(directories)}")


def _listed(directories: Iterable[str | os.PathLike[str]]) -> str:
    """Topics with the numbers of their partitions; those of many topics that come first, and how many more."""
    found: dict[str, set[int]] = defaultdict(set)
    for own in map(_own_name, directories):
        name = parse_partition_directory(own)
        if name is None:
            found[own].update()  # a directory of segments
        elif name.state is None:
            found[name.topic].add(name.partition)
    texts = [f"{plain_text(topic)}{_numbers_text(found[topic])}" for topic in islice(sorted(found), _SHOWN_TOPICS)]
    more = len(found) - len(texts)
    return ", ".join([*texts, f"{more} more topics"] if more else texts) or "only some that brokers put aside"


def _own_name(path: str | os.PathLike[str]) -> str:
    """A directory's name, also if it was given as `.`."""
    name = Path(path).name
    return name if name not in ("", "..") else Path(path).resolve().name


def _numbers_text(numbers: set[int]) -> str:
    """` (0-3,7)`; nothing without numbers."""
    ranges: list[range] = []
    for number in sorted(numbers):
        if ranges and ranges[-1].stop == number:
            ranges[-1] = range(ranges[-1].start, number + 1)
        else:
            ranges.append(range(number, number + 1))
    return f" ({','.join(map(_range_text, ranges))})" if ranges else ""


def _range_text(numbers: range) -> str:
    return str(numbers.start) if len(numbers) == 1 else f"{numbers.start}-{numbers.stop - 1}"
