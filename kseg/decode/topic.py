"""Where the partitions of an internal topic lie."""

from collections.abc import Sequence
from pathlib import Path

from kseg.errors import OpenError
from kseg.log.log_dir import NoPartitionError, Refuse, find_log_dirs, holds_segments
from kseg.log.partition import PartitionLog
from kseg.log.replicas import one_of_each


def topic_partitions(paths: Path | Sequence[Path], topic: str, refuse: Refuse | None = None) -> list[PartitionLog]:
    """A topic's partitions that are in use, by number: those in log directories, or parents of these, and those given.

    A directory with segments is taken at its word, whatever it is called: it may have been copied from elsewhere. Of
    several replicas the one that goes furthest is taken.

    Args:
        paths: a path or several.
        topic: its name.
        refuse: takes the errors of paths that can't be listed while the others can; None lets them be raised.

    Raises:
        OpenError: there is no such directory, or the topic is nowhere.
    """
    given = [paths] if isinstance(paths, Path) else list(paths)
    found: list[PartitionLog] = []
    errors: list[OpenError] = []
    for path in given:
        try:
            found += _partitions_at(path, topic, refuse)
        except OpenError as error:
            errors.append(error)
    for each in errors:
        if refuse is None or not found:
            raise each
        refuse(each)
    if not found:
        raise OpenError(f"holds neither segments nor a directory {topic}-0, {topic}-1, …", given[0])
    return sorted(one_of_each(found), key=lambda partition: partition.partition or 0)


def _partitions_at(path: Path, topic: str, refuse: Refuse | None) -> list[PartitionLog]:
    if not path.is_dir():
        raise OpenError("is no directory" if path.exists() else "no such file or directory", path)
    if holds_segments(path):
        return [PartitionLog(path)]
    log_dirs = find_log_dirs(path, refuse)
    if not log_dirs:
        raise NoPartitionError(path)
    found = (partition for log_dir in log_dirs for partition in log_dir.partitions(refuse))
    return [partition for partition in found if partition.topic == topic and partition.state is None]
