"""File names and partition directories' names in Kafka, and their meanings."""

import re
from enum import StrEnum
from functools import lru_cache
from os import PathLike, fspath
from pathlib import PurePath

from kseg.named_tuple import NamedTuple

MAXIMUM_OFFSET = 2**63 - 1
MAXIMUM_PARTITION = 2**31 - 1
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"


class FileKind(StrEnum):
    """Kinds of files by their names."""

    LOG = "log"
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TRANSACTION_INDEX = "txnindex"
    PRODUCER_SNAPSHOT = "snapshot"
    METADATA_SNAPSHOT = "checkpoint"
    OFFSET_CHECKPOINT = "offset-checkpoint"
    LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    PARTITION_METADATA = "partition.metadata"
    META_PROPERTIES = "meta.properties"
    QUORUM_STATE = "quorum-state"
    CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
    LOCK = ".lock"
    UNKNOWN = "unknown"


LOG_KINDS = (FileKind.LOG, FileKind.METADATA_SNAPSHOT)
"""Files of batches, including metadata snapshots."""

KIND_OF_NAME = {
    "recovery-point-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "replication-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "log-start-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "cleaner-offset-checkpoint": FileKind.OFFSET_CHECKPOINT,
    "leader-epoch-checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,
    "partition.metadata": FileKind.PARTITION_METADATA,
    "meta.properties": FileKind.META_PROPERTIES,
    "quorum-state": FileKind.QUORUM_STATE,
    ".kafka_cleanshutdown": FileKind.CLEAN_SHUTDOWN,
    ".lock": FileKind.LOCK,
}
"""Files with a fixed name."""

KIND_OF_EXTENSION = {
    ".log": FileKind.LOG,
    ".index": FileKind.OFFSET_INDEX,
    ".timeindex": FileKind.TIME_INDEX,
    ".txnindex": FileKind.TRANSACTION_INDEX,
    ".snapshot": FileKind.PRODUCER_SNAPSHOT,
    ".checkpoint": FileKind.METADATA_SNAPSHOT,
    ".leader_epoch_checkpoint": FileKind.LEADER_EPOCH_CHECKPOINT,  # local tiered storage
}
"""Files whose names begin with an offset, and `bootstrap.checkpoint`."""

KINDS_BESIDE = (FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA, FileKind.QUORUM_STATE)
"""Files of a partition without an offset in their names."""

KINDS_WITH_OFFSET = tuple(
    kind for kind in KIND_OF_EXTENSION.values() if kind not in (FileKind.METADATA_SNAPSHOT, *KINDS_BESIDE)
)
"""Files of a partition whose names begin with an offset: `server.log` isn't one."""

KINDS_OF_LOG_DIR = tuple(kind for kind in dict.fromkeys(KIND_OF_NAME.values()) if kind not in KINDS_BESIDE)
"""Files of a log directory itself."""

SUFFIXES = {
    ".deleted": "will be deleted",
    ".swap": "complete, about to replace others",
    ".cleaned": "left by a compaction or a split",
    ".tmp": "left by an interrupted write",
    ".part": "unfinished metadata snapshot",
}
"""Suffixes that Kafka appends to names, with their meanings."""

_ALL_SUFFIXES = tuple(SUFFIXES)
_DIGITS = 20
"""The number of digits in a name that Kafka writes, and the most that its tool reads."""
_KIND_AFTER_OFFSET = {
    extension: kind for extension, kind in KIND_OF_EXTENSION.items() if kind is not FileKind.METADATA_SNAPSHOT
}
# Patterns that few runs need are compiled on first use: `re` caches them.
_REMOTE_STEM = r"([0-9]{20})-([A-Za-z0-9_-]{22})"
_METADATA_SNAPSHOT_STEM = r"([0-9]{20})-([0-9]{10})(?:-.*)?"


class FileName(NamedTuple):
    """The parts of a file name, or None for missing ones.

    `base_offset` is a segment's base offset, the end offset of a producer or metadata snapshot; `epoch` a metadata
    snapshot's; `suffix` one of SUFFIXES; `remote_id` the uuid of a segment in remote storage.
    """

    kind: FileKind
    base_offset: int | None = None
    epoch: int | None = None
    suffix: str | None = None
    remote_id: str | None = None


def parse_file_name(path: str | PathLike[str]) -> FileName:
    """Parse the last part of `path`; opens nothing, and accepts any name."""
    if isinstance(path, str) and path[_DIGITS:] in _KIND_AFTER_OFFSET and path[:_DIGITS].isdecimal() and path.isascii():
        # Most of a broker's files end here.
        return FileName(_KIND_AFTER_OFFSET[path[_DIGITS:]], _offset(path[:_DIGITS]))
    name = _last_part(path)
    suffix = None
    if name.endswith(_ALL_SUFFIXES):
        suffix = next(suffix for suffix in SUFFIXES if name.endswith(suffix))
        name = name.removesuffix(suffix)
    if name in KIND_OF_NAME:
        return FileName(KIND_OF_NAME[name], suffix=suffix)
    stem, dot, extension = name.rpartition(".")
    kind = KIND_OF_EXTENSION.get(dot + extension, FileKind.UNKNOWN)
    if kind is FileKind.UNKNOWN:
        return FileName(kind, suffix=suffix)
    if kind is FileKind.METADATA_SNAPSHOT:
        return _metadata_snapshot_name(stem, suffix)
    return _segment_name(kind, stem, suffix)


def _last_part(path: str | PathLike[str]) -> str:
    """Return the same as PurePath's name, but many times faster."""
    name = fspath(path).rpartition("/")[2]
    return PurePath(path).name if name in ("", ".") else name


def _metadata_snapshot_name(stem: str, suffix: str | None) -> FileName:
    # While a snapshot is written, random characters are between the epoch and `.checkpoint.part`.
    match = re.fullmatch(_METADATA_SNAPSHOT_STEM, stem)
    if match is None:
        return FileName(FileKind.METADATA_SNAPSHOT, suffix=suffix)
    return FileName(FileKind.METADATA_SNAPSHOT, _offset(match[1]), int(match[2]), suffix)


def _segment_name(kind: FileKind, stem: str, suffix: str | None) -> FileName:
    if stem.isdecimal() and stem.isascii() and len(stem) <= _DIGITS:
        return FileName(kind, _offset(stem), suffix=suffix)
    if match := re.fullmatch(_REMOTE_STEM, stem):
        return FileName(kind, _offset(match[1]), suffix=suffix, remote_id=match[2])
    return FileName(kind, suffix=suffix)


def _offset(digits: str) -> int | None:
    offset = int(digits)
    return offset if offset <= MAXIMUM_OFFSET else None


class DirectoryState(StrEnum):
    """The state of a partition directory by the end of its name; without such an end it is in use."""

    DELETE = "delete"
    FUTURE = "future"
    STRAY = "stray"


class PartitionDirectory(NamedTuple):
    """A partition directory name; `state` and `unique_id` (32 hex digits) are None if it is in use.

    Kafka shortens a long topic name so that the complete name has 255 characters: `topic` is only its beginning then.
    """

    topic: str
    partition: int
    state: DirectoryState | None = None
    unique_id: str | None = None


_STATES = "|".join(DirectoryState)
_PARTITION_DIRECTORY = rf"([A-Za-z0-9._-]+)-([0-9]{{1,10}})(?:\.([0-9a-f]{{32}})-({_STATES}))?"


def plain_text(name: str) -> str:
    """Return a name as text for columns; bytes that aren't UTF-8 are escaped."""
    return name if name.isascii() else name.encode(errors="backslashreplace").decode()


def parse_partition_directory(path: str | PathLike[str]) -> PartitionDirectory | None:
    """Return topic and partition in the last part of `path`, or None if that isn't a partition directory name."""
    return _parse_directory_name(_last_part(path))


@lru_cache(1 << 14)  # listing a log directory parses each name several times
def _parse_directory_name(name: str) -> PartitionDirectory | None:
    match = re.fullmatch(_PARTITION_DIRECTORY, name)
    if match is None or int(match[2]) > MAXIMUM_PARTITION:
        return None
    state = DirectoryState(match[4]) if match[4] else None
    return PartitionDirectory(match[1], int(match[2]), state, match[3])
