"""Kafka's releases: as users name them, and as tables use them."""

import re
from functools import cache
from typing import TypeVar

from kseg.errors import UsageError
from kseg.named_tuple import NamedTuple

T = TypeVar("T")


_UNNAMED_PATCH = 99
"""Patch number for `2.0`, which means the last patch release of 2.0."""


class Release(NamedTuple):
    """A release of Kafka; 0.x has four numbers (0.10.2.2), later ones three."""

    numbers: tuple[int, ...]

    def __str__(self) -> str:
        """Return the release in Kafka's spelling."""
        return ".".join(str(number) for number in self.numbers if number != _UNNAMED_PATCH)


_NAMES = (
    "0.8.0 0.8.1 0.8.1.1 0.8.2.0 0.8.2.1 0.8.2.2 0.9.0.0 0.9.0.1 0.10.0.0 0.10.0.1 0.10.1.0 0.10.1.1 0.10.2.0 0.10.2.1"
    " 0.10.2.2 0.11.0.0 0.11.0.1 0.11.0.2 0.11.0.3 1.0.0 1.0.1 1.0.2 1.1.0 1.1.1 2.0.0 2.0.1 2.1.0 2.1.1 2.2.0 2.2.1"
    " 2.2.2 2.3.0 2.3.1 2.4.0 2.4.1 2.5.0 2.5.1 2.6.0 2.6.1 2.6.2 2.6.3 2.7.0 2.7.1 2.7.2 2.8.0 2.8.1 2.8.2 3.0.0 3.0.1"
    " 3.0.2 3.1.0 3.1.1 3.1.2 3.2.0 3.2.1 3.2.2 3.2.3 3.3.0 3.3.1 3.3.2 3.4.0 3.4.1 3.5.0 3.5.1 3.5.2 3.6.0 3.6.1 3.6.2"
    " 3.7.0 3.7.1 3.7.2 3.8.0 3.8.1 3.9.0 3.9.1 3.9.2 4.0.0 4.0.1 4.0.2 4.1.0 4.1.1 4.1.2 4.2.0 4.2.1 4.2.2 4.3.0 4.3.1"
    " 4.4.0"
)
OLDEST = Release((0, 8, 2))
NEWEST = Release(tuple(map(int, _NAMES.rpartition(" ")[2].split("."))))
"""The latest release, whose files and tool are known."""


@cache
def all_releases() -> tuple[tuple[int, ...], ...]:
    """Return all releases, ascending, as in Maven Central and Kafka's archive."""
    return tuple(tuple(map(int, name.split("."))) for name in _NAMES.split())


def parse_release(text: str) -> Release:
    """Return the release for `0.8` … `4.4`, `2.0.1` or `latest`; without a patch number the last one of its line.

    Raises UsageError for anything else, and for releases that never existed, with the nearest existing ones.
    """
    if text == "latest":
        return NEWEST
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}){1,3}", text):
        raise UsageError(f"--like {text}: this isn't a release; specify one such as 2.8, 0.10.2.2 or latest")
    numbers = tuple(map(int, text.split(".")))
    if not any(release[: len(numbers)] == numbers for release in all_releases()):
        raise UsageError(f"--like {text}: kseg doesn't know this release; {_nearest(numbers)}")
    whole = 4 if numbers[0] == 0 else 3
    return max(Release((numbers + (_UNNAMED_PATCH,) * whole)[:whole]), OLDEST)


def _nearest(numbers: tuple[int, ...]) -> str:
    before = [release for release in all_releases() if release < numbers]
    after = [release for release in all_releases() if release > numbers]
    names = [".".join(map(str, release)) for release in (*before[-1:], *after[:1])]
    return f"the nearest {'is' if len(names) == 1 else 'are'} {' and '.join(names)}"


Since = tuple[tuple[tuple[int, ...], T], ...]
"""A table of changes: (first release that has it, value), in ascending order."""


def value_in(release: Release, table: Since[T]) -> T:
    """Return the value for a release: the last row's that isn't after it; before all rows, the first value."""
    value = table[0][1]
    for first, later in table:
        if first <= release.numbers:
            value = later
    return value
