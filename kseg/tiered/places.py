"""Locations of remote tiers: URLs, directories and buckets, and each plugin's layout of objects."""

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import chain, islice

from kseg.errors import FileError
from kseg.formats.file_names import MAXIMUM_OFFSET, MAXIMUM_PARTITION, FileKind, parse_partition_directory
from kseg.named_tuple import NamedTuple
from kseg.store.location import is_remote

MANIFEST, INDEXES = "rsm-manifest", "indexes"
"""Suffixes of objects that only Aiven's plugin writes."""
PINTEREST_MARK = "offset.wm"
"""A file that Pinterest's uploader keeps in each partition's folder."""
SIDE_FILES = ("leader-epoch-checkpoint", "partition.metadata")
"""Files of a partition without an offset in their names; they exist where a broker's own files were copied."""
_BESIDE = "|".join(map(re.escape, (*SIDE_FILES, PINTEREST_MARK)))
_TOPIC = r"(?P<topic>[a-zA-Z0-9._-]{1,249})"
_ID = r"[A-Za-z0-9_-]{22}"
_KAFKAS_SUFFIXES = {
    "log": FileKind.LOG,
    "index": FileKind.OFFSET_INDEX,
    "timeindex": FileKind.TIME_INDEX,
    "txnindex": FileKind.TRANSACTION_INDEX,
    "snapshot": FileKind.PRODUCER_SNAPSHOT,
    "leader_epoch_checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,
}


class TierLayout(StrEnum):
    """A plugin's names and formats of objects."""

    LOCAL = "LocalTieredStorage"
    AIVEN = "Aiven"
    CONFLUENT = "Confluent"
    PINTEREST = "Pinterest"
    PLAIN = "files of a broker"


class NamePattern(NamedTuple):
    """Names of a layout's objects: a pattern for the end of their keys, and the suffix of each file."""

    layout: TierLayout
    pattern: str
    kinds: Mapping[str, FileKind]


PATTERNS = (
    NamePattern(
        TierLayout.AIVEN,
        (
            rf"{_TOPIC}-(?P<topic_id>{_ID})/(?P<partition>\d{{1,10}})/(?P<base>\d{{20}})-(?P<segment>{_ID})"
            rf"\.(?P<suffix>log|{INDEXES}|{MANIFEST})"
        ),
        {"log": FileKind.LOG},
    ),
    NamePattern(
        TierLayout.LOCAL,
        (
            rf"{_TOPIC}-(?P<partition>\d{{1,10}})-(?P<topic_id>{_ID})/(?:(?P<base>\d{{20}})-)?(?P<segment>{_ID})"
            r"\.(?P<suffix>[a-z_]+)"
        ),
        _KAFKAS_SUFFIXES,
    ),
    NamePattern(
        TierLayout.CONFLUENT,
        (
            rf"(?P<segment>{_ID})/(?P<topic>(?P<topic_id>{_ID}))/(?P<partition>\d{{1,10}})"
            r"/(?P<base>\d{20})_(?P<epoch>\d{1,10})_v\d+\.(?P<suffix>[a-z-]+)"
        ),
        {
            "segment": FileKind.LOG,
            "offset-index": FileKind.OFFSET_INDEX,
            "timestamp-index": FileKind.TIME_INDEX,
            "producer-state": FileKind.PRODUCER_SNAPSHOT,
            "transaction-index": FileKind.TRANSACTION_INDEX,
        },
    ),
    NamePattern(
        TierLayout.PLAIN,
        (
            rf"{_TOPIC}-(?P<partition>\d{{1,10}})/(?:(?P<base>\d{{20}})"
            rf"\.(?P<suffix>log|index|timeindex|txnindex|snapshot)|(?P<beside>{_BESIDE}))"
        ),
        _KAFKAS_SUFFIXES,
    ),
)
"""Patterns of names, the most specific first.

Sources: ObjectKeyFactory of Aiven's plugin; RemoteLogSegmentFileset of Kafka's tests; listings of Confluent's buckets,
whose code isn't public; SegmentUtils of Pinterest's uploader.
"""


class ObjectName(NamedTuple):
    """The parts of an object key.

    folder: the prefix that all objects of a partition share. base_offset, epoch: None if the key has none. suffix: of a
    segment's file, or the name of a file next to the segments.
    """

    layout: TierLayout
    folder: str
    topic: str
    topic_id: str | None
    partition: int
    base_offset: int | None
    segment_id: str | None
    suffix: str
    kind: FileKind
    epoch: int | None = None


def parse_object_name(key: str) -> ObjectName | None:
    """Parse the end of a key; return None if the object isn't one of a tier."""
    parts = key.split("/")
    for layout, pattern, kinds in PATTERNS:
        depth = pattern.count("/") + 1
        match = re.fullmatch(pattern, "/".join(parts[-depth:]))
        if match is not None and (name := _object_name(layout, "/".join(parts[:-1]), match, kinds)) is not None:
            return name
    return None


def _object_name(
    layout: TierLayout, folder: str, match: re.Match[str], kinds: Mapping[str, FileKind]
) -> ObjectName | None:
    found = match.groupdict()
    base = None if found["base"] is None else int(found["base"])
    if int(found["partition"]) > MAXIMUM_PARTITION or (base or 0) > MAXIMUM_OFFSET:
        return None
    suffix = found["suffix"] or found.get("beside") or ""
    if layout is TierLayout.CONFLUENT:  # each segment has its own folder, above the topic's
        above = folder.split("/")[:-3]
        folder = "/".join((*above, found["topic_id"], found["partition"]))
    return ObjectName(
        layout,
        folder,
        found["topic"],
        found.get("topic_id"),
        int(found["partition"]),
        base,
        found.get("segment"),
        suffix,
        kinds.get(suffix, FileKind.UNKNOWN),
        None if found.get("epoch") is None else int(found["epoch"]),
    )


_FIRST_OBJECTS = 1000
"""The number of objects in one answer."""


def begins_as_tier(url: str) -> bool:
    """Return True if the first objects at a URL have names of a remote tier, rather than of a broker's own files.

    Makes one request. Returns False, too, if the objects can't be listed.
    """
    from kseg.store.remote_files import open_store

    try:
        store = open_store(url)
        for stored in islice(store.objects(), _FIRST_OBJECTS):
            name = parse_object_name(f"{store.address}/{stored.key}")
            if name is not None:
                return name.layout is not TierLayout.PLAIN
    except FileError:
        return False
    return False


MOST_FOLDERS = 200
"""The number of directories to search before a directory counts as an ordinary one."""
DEEPEST = 8
"""The deepest level to search: a key's prefix may have several levels."""
_ORDINARY_LEVELS = 2
"""The deepest level of partitions in a log directory, or in a parent of log directories."""


def url_of(path: str) -> str:
    """Return a path as given, with a URL's two slashes, of which pathlib keeps one, and its scheme in lower case."""
    scheme, _, rest = path.partition(":/")
    is_scheme = scheme.isascii() and scheme.isalnum() and scheme[0].isalpha()
    if scheme == path or not is_scheme or os.path.lexists(path):
        return path
    scheme, rest = scheme.lower(), rest.removeprefix("/")
    return f"file:///{rest.lstrip('/')}" if scheme == "file" else f"{scheme}://{rest}"


def tier_at(path: str) -> tuple[str, str] | None:
    """Return the root of the tier that a path leads to, and the path below it, or None if it leads to no tier.

    A root is a URL or a directory. The path below it names a partition as a broker would, or one of its files.
    """
    path = url_of(path)
    if is_remote(path):
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
    """Return the root and name of the log that an object of Aiven's plugin represents; its manifest must exist."""
    if not os.path.isfile(f"{path.removesuffix('.log')}.{MANIFEST}"):  # noqa: PTH113
        return None
    name = parse_object_name(os.path.abspath(path))  # noqa: PTH100
    if name is None or name.layout is not TierLayout.AIVEN or name.suffix != "log":
        return None
    return os.path.dirname(path) or ".", f"{name.base_offset:020}.log"  # noqa: PTH120


def is_tier(directory: str) -> bool:
    """Return True if a directory holds a remote tier, and no broker's partitions near its top."""
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
    """Yield directories and their files, each before its subdirectories; of many partitions only one.

    The search is breadth-first down to two levels, where a broker's directories are found. It is depth-first below,
    since a tier has many topics before the first of its objects.
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
