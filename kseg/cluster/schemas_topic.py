"""Finds the partitions of an internal topic, and the records of `_schemas`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.directories import META_PROPERTIES, LogDir, NoPartitionError, Refuse, find_log_dirs, holds_segments
from kseg.cluster.replicas import one_of_each, require_one_topic
from kseg.errors import OpenError
from kseg.log.partition import PartitionLog
from kseg.reading.batch import intact_records
from kseg.reading.log_file import LogFile

SCHEMAS_TOPIC = "_schemas"


class TopicPlaces(NamedTuple):
    """A topic's partitions that are in use, by number, and the log directories that were searched.

    is_all: log directories were given, not single partitions.
    """

    partitions: tuple[PartitionLog, ...]
    log_dirs: tuple[Path, ...]
    is_all: bool


def find_topic(paths: Path | Sequence[Path], topic: str, refuse: Refuse | None = None) -> TopicPlaces:
    """A topic's partitions: given directly, in log directories, or in parents of these.

    A directory with segments is used whatever its name is, since it may have been copied from elsewhere. If there are
    several replicas, the one with the largest end offset is used.

    Args:
        paths: a path or several.
        topic: its name.
        refuse: is called with the error of a path that can't be listed if others can; None raises it.

    Raises:
        OpenError: there is no such directory, or the topic isn't found.
        UsageError: there are partitions of several clusters.
    """
    given = [paths] if isinstance(paths, Path) else list(paths)
    found: list[PartitionLog] = []
    log_dirs: dict[Path, None] = {}
    errors: list[OpenError] = []
    is_all = True
    for path in given:
        try:
            own = _places_at(path, topic, refuse)
        except OpenError as error:
            errors.append(error)
            continue
        found += own.partitions
        log_dirs |= dict.fromkeys(own.log_dirs)
        is_all = is_all and own.is_all
    for each in errors:
        if refuse is None or not found:
            raise each
        refuse(each)
    if not found:
        raise OpenError(f"has neither segments nor a directory {topic}-0, {topic}-1, …", given[0])
    require_one_topic(found)
    partitions = sorted(one_of_each(found), key=lambda partition: partition.partition or 0)
    return TopicPlaces(tuple(partitions), tuple(log_dirs), is_all)


def topic_partitions(paths: Path | Sequence[Path], topic: str, refuse: Refuse | None = None) -> list[PartitionLog]:
    """Only the partitions; arguments and errors as for `find_topic`."""
    return list(find_topic(paths, topic, refuse).partitions)


class SchemasTopic(NamedTuple):
    """A schema registry's topic at a path: its partition's directory, a log directory that has one, or one log file."""

    path: Path

    def records(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Keys and values of its intact records, in the log's order.

        Raises:
            OpenError: there is no such file or directory.
            UsageError: there are partitions of several clusters.
        """
        for file in self._files():
            with LogFile(file) as log_file:
                yield from ((record.key, record.value) for record in intact_records(log_file))

    def _files(self) -> list[Path]:
        if self.path.is_file():
            return [self.path]
        partitions = topic_partitions(self.path, SCHEMAS_TOPIC)
        return [segment.path for partition in partitions for segment in partition.segments]


def _places_at(path: Path, topic: str, refuse: Refuse | None) -> TopicPlaces:
    if not path.is_dir():
        raise OpenError("isn't a directory" if path.exists() else "no such file or directory", path)
    if holds_segments(path):
        named = path.resolve() if path.name in ("", "..") else path
        return TopicPlaces((PartitionLog(path),), (named.parent,), is_all=False)
    log_dirs = find_log_dirs(path, refuse)
    if not log_dirs:
        raise NoPartitionError(path)
    found = (partition for log_dir in log_dirs for partition in log_dir.partitions(refuse))
    own = tuple(partition for partition in found if partition.topic == topic and partition.state is None)
    return TopicPlaces(
        own, (*(log_dir.path for log_dir in log_dirs), *_without_partitions(path, log_dirs)), is_all=True
    )


def _without_partitions(path: Path, log_dirs: Sequence[LogDir]) -> list[Path]:
    """Log directories directly below a path that have no partitions any more: metadata may still name them."""
    known = {log_dir.path for log_dir in log_dirs}
    return [place.parent for place in sorted(path.glob(f"*/{META_PROPERTIES}")) if place.parent not in known]
