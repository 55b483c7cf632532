"""Which paths lead to remote tiers: URLs, and directories whose files have a tier's names. Opens no file."""

import os
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice

from kseg.formats.names import parse_partition_directory
from kseg.tiered.layouts import MANIFEST, PINTEREST_MARK, TierLayout, parse_object_name
from kseg.tiered.s3_store import SCHEMES, is_s3

MOST_FOLDERS = 200
"""Directories that are looked into before one counts as an ordinary one."""
DEEPEST = 8
"""Levels of directories: a key's prefix may have several."""
_ORDINARY_LEVELS = 2
"""A log directory, or a parent of some, has partitions so near."""


def url_of(path: str) -> str:
    """A path as it was given: pathlib leaves one slash of a URL's two."""
    for scheme in SCHEMES:
        short = scheme.removesuffix("/")
        if path.startswith(short) and not path.startswith(scheme):
            return scheme + path.removeprefix(short)
        if path == short.removesuffix("/"):
            return scheme
    return path


def tier_at(path: str) -> tuple[str, str] | None:
    """The root of the tier that a path leads to, and the path below it as kseg shows it; None if it leads to none.

    A root is a URL of S3, or a directory. What is below is a partition as a broker would name it, or a file of it.
    """
    path = url_of(path)
    if is_s3(path):
        return path, ""
    if os.path.isdir(path):  # noqa: PTH112
        return (path, "") if is_tier(path) else None
    if os.path.lexists(path):
        return _of_file(path)
    parts = path.rstrip("/").split("/")
    for count in (1, 2):
        root = "/".join(parts[:-count])
        if root and os.path.isdir(root):  # noqa: PTH112
            return (root, "/".join(parts[-count:])) if is_tier(root) else None
    return None


def _of_file(path: str) -> tuple[str, str] | None:
    """A log of Aiven's plugin stands for the file that it was: its manifest lies beside it."""
    name = parse_object_name(os.path.abspath(path))  # noqa: PTH100
    if name is None or name.layout is not TierLayout.AIVEN or name.suffix != "log":
        return None
    if not os.path.isfile(f"{path.removesuffix('.log')}.{MANIFEST}"):  # noqa: PTH113
        return None
    return os.path.dirname(path) or ".", f"{name.base_offset:020}.log"  # noqa: PTH120


def is_tier(directory: str) -> bool:
    """Whether a directory holds a remote tier, and no partitions as a broker has them near its top."""
    root = os.path.abspath(directory)  # noqa: PTH100
    near, deep = _folders(root, _ORDINARY_LEVELS), _folders(root, DEEPEST)
    for folder, names in chain(islice(near, MOST_FOLDERS), islice(deep, MOST_FOLDERS)):
        depth = folder.removeprefix(root).count("/")
        for name in names:
            found = parse_object_name(f"{folder}/{name}")
            if found is not None:
                if found.layout is not TierLayout.PLAIN:
                    return True
                if depth <= _ORDINARY_LEVELS:
                    return False
                if name == PINTEREST_MARK:
                    return True
    return False


def _folders(root: str, deepest: int) -> Iterator[tuple[str, list[str]]]:
    """Paths and files of the directories at a root, each before those below it; of many partitions only one.

    Up to two levels the nearest come first: a broker's directories are found there. Deeper ones are looked into one
    after another, since a tier has many topics before the first of its objects.
    """
    waiting = deque([(0, root)])
    while waiting:
        depth, folder = waiting.popleft()
        files: list[str] = []
        below: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    (below if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
        except OSError:
            continue
        yield folder, sorted(files)
        if depth < deepest:
            found = [(depth + 1, f"{folder.rstrip('/')}/{name}") for name in _one_of_partitions(sorted(below))]
            if deepest <= _ORDINARY_LEVELS:
                waiting.extend(found)
            else:
                waiting.extendleft(reversed(found))


def _one_of_partitions(names: list[str]) -> Iterator[str]:
    has_partition = False
    for name in names:
        is_partition = parse_partition_directory(name) is not None
        if not (is_partition and has_partition):
            yield name
        has_partition = has_partition or is_partition
