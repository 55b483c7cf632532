"""Versions of installed distributions, from their files of metadata.

`importlib.metadata` finds the same, but its import takes about as long as click's.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

_FILES = {"dist-info": "METADATA", "egg-info": "PKG-INFO"}
"""The metadata file in each kind of directory, such as NAME-VERSION.dist-info.

Source: PyPA's "Recording installed projects".
"""


def installed_versions(name: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of each installed distribution that a distribution or one of its extras requires.

    They are sorted by name. Yields nothing if the metadata isn't in a directory of sys.path.
    """
    required = {re.split(r"[^\w.-]", line)[0] for line in _values(name, "Requires-Dist")}
    for each in sorted(required):
        for version in _values(each, "Version"):
            yield each, version


def _values(name: str, field: str) -> Iterator[str]:
    """Yield the values of a field in the metadata of a distribution; none if it isn't installed."""
    path = _metadata_files().get(_normal_name(name))
    if path is None or not os.path.isfile(path):  # noqa: PTH113  pathlib isn't imported yet
        return
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as metadata:  # noqa: PTH123
        for line in metadata:
            if not line.strip():  # the description follows
                return
            key, _, value = line.partition(": ")
            if key == field:
                yield value.strip()


@cache
def _metadata_files() -> dict[str, str]:
    """Return the file of each distribution's metadata, from the first directory in sys.path that has it."""
    found: dict[str, str] = {}
    for folder in sys.path:
        with suppress(OSError):  # it is missing, a file, or can't be read
            for entry in os.listdir(folder or "."):  # noqa: PTH208
                stem, _, kind = entry.rpartition(".")
                if kind in _FILES:
                    found.setdefault(_normal_name(stem.partition("-")[0]), f"{folder}/{entry}/{_FILES[kind]}")
    return found


def _normal_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
