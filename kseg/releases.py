"""Kafka's releases: as a user names them, and as tables look them up."""

import re
from typing import NamedTuple, TypeVar

from kseg.errors import UsageError

T = TypeVar("T")


_UNNAMED_PATCH = 99
"""`2.0` means the last patch release of 2.0."""


class Release(NamedTuple):
    """A release of Kafka; 0.x has four numbers (0.10.2.2), later ones three."""

    numbers: tuple[int, ...]

    def __str__(self) -> str:
        """As Kafka names it."""
        return ".".join(str(number) for number in self.numbers if number != _UNNAMED_PATCH)


OLDEST = Release((0, 8, 2))
LATEST = Release((4, 3, 1))
KNOWN = ((0, 8), LATEST.numbers[:2])


def parse_release(text: str) -> Release:
    """The release that `0.8` … `4.3`, `2.0.1` or `latest` names; without a patch number the last one of its line.

    Raises UsageError for anything else, and for releases that kseg doesn't know.
    """
    if text == "latest":
        return LATEST
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", text):
        raise UsageError(f"--like {text}: give a release such as 2.8, 0.10.2.2 or latest")
    numbers = tuple(map(int, text.split(".")))
    whole = 4 if numbers[0] == 0 else 3
    release = Release((numbers + (_UNNAMED_PATCH,) * whole)[:whole])
    if not KNOWN[0] <= release.numbers[:2] <= KNOWN[1]:
        raise UsageError(f"--like {text}: kseg knows the releases from 0.8 to {LATEST.numbers[0]}.{LATEST.numbers[1]}")
    return max(release, OLDEST)


Since = tuple[tuple[tuple[int, ...], T], ...]
"""A table of what changed: (first release that has it, value), rising."""


def at(table: Since[T], release: Release) -> T:
    """The value that holds in a release: the one of the last row not after it; before all rows, the first."""
    value = table[0][1]
    for first, later in table:
        if first <= release.numbers:
            value = later
    return value
