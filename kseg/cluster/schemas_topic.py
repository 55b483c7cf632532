"""The partitions of an internal topic, and the records of `_schemas`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import Refuse
from kseg.cluster.joined_log import whole_log
from kseg.cluster.replicas import PartitionReplicas
from kseg.errors import OpenError
from kseg.log.partition import PartitionLog
from kseg.reading.batch import intact_records
from kseg.reading.log_file import LogFile
from kseg.reading.other_files import refusal_of

SCHEMAS_TOPIC = "_schemas"


class TopicPlaces(NamedTuple):
    """A topic's partitions in use, by number, and the searched log directories.

    is_all: log directories were given, not single partitions. replicas: the copies of each that are here.
    """

    partitions: tuple[PartitionLog, ...]
    log_dirs: tuple[Path, ...]
    is_all: bool
    replicas: tuple[PartitionReplicas[PartitionLog], ...] = ()


def find_topic(paths: Path | Sequence[Path], topic: str, refuse: Refuse | None = None) -> TopicPlaces:
    """Return the partitions of a topic found at the given paths.

    A directory with segments is used whatever its name is, since it may have been copied from elsewhere. Of several
    replicas, the answering one is used.

    Args:
        paths: a path or several.
        topic: its name.
        refuse: called with the error of a path that can't be listed if others can; None raises it.

    Raises:
        OpenError: there is no such directory, or the topic isn't found.
        UsageError: there are partitions of several clusters.
    """
    given = [paths] if isinstance(paths, Path) else list(paths)
    for path in given:
        if path.is_file():
            raise OpenError(refusal_of(path), path)
    errors: list[OpenError] = []
    cluster = Cluster(given, errors.append)
    replicas = cluster.topic(topic)
    for each in errors:
        if refuse is None or not replicas:
            raise each
        refuse(each)
    if not replicas:
        raise OpenError(
            f"no {topic} here; the path has no directory {topic}-0, {topic}-1, …, and no segments", given[0]
        )
    is_all = not any(cluster.was_given(each.best) for each in replicas)
    log_dirs = tuple(dict.fromkeys(cluster.metadata_dirs()))
    return TopicPlaces(tuple(map(whole_log, replicas)), log_dirs, is_all, tuple(replicas))


class SchemasTopic(NamedTuple):
    """A schema registry's topic at a path: its partition directory, a log directory that has one, or one log file."""

    path: Path

    def records(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield keys and values of its intact records, in the log's order.

        Raises:
            OpenError: there is no such file or directory.
            UsageError: there are partitions of several clusters.
        """
        for log in self._logs():
            with log as log_file:
                yield from ((record.key, record.value) for record in intact_records(log_file))

    def _logs(self) -> Iterator[LogFile]:
        if self.path.is_file():
            yield LogFile(self.path)
            return
        for partition in find_topic(self.path, SCHEMAS_TOPIC).partitions:
            yield from map(partition.open_log, partition.segments)
