"""Which directory holds which replica, as the cluster's metadata and the log directories at hand tell."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.names import parse_partition_directory
from kseg.log.partition.log_dir import LogDir
from kseg.views.cluster import ClusterPartition

UNKNOWN_DIRECTORIES = {
    "AAAAAAAAAAAAAAAAAAAAAA": "",
    "AAAAAAAAAAAAAAAAAAAAAQ": "unassigned",
    "AAAAAAAAAAAAAAAAAAAAAg": "lost",
}
"""Ids that stand for no directory: one that nobody told, one to be chosen, one that is offline. Source: DirectoryId."""


class ReplicaPlace(NamedTuple):
    """Where a replica lies: `replica` is its broker; the directory's id as metadata have it, its path if it is here."""

    replica: int
    directory_id: str | None
    path: Path | None

    def text(self) -> str:
        """For people: `1:disk2`; the id where the path isn't known."""
        if self.path is not None:
            return f"{self.replica}:{self.path}"
        place = UNKNOWN_DIRECTORIES.get(self.directory_id or "", self.directory_id)
        return f"{self.replica}:{place}" if place else ""


class _Disk(NamedTuple):
    path: Path
    broker: int | None
    directory_id: str | None
    partitions: frozenset[tuple[str, int]]


class ReplicaPlaces:
    """Finds replicas in some log directories.

    By the ids in their `meta.properties` (from 3.7 on); and by what lies in them, if the metadata are of now.
    """

    def __init__(self, log_dirs: Iterable[Path], *, are_of_now: bool) -> None:
        """Takes the log directories; those that can't be listed hold nothing."""
        self._disks = list(_disks(log_dirs))
        self._are_of_now = are_of_now

    def of(self, partition: ClusterPartition) -> tuple[ReplicaPlace, ...]:
        """The places of a partition's replicas, in the order of these."""
        ids = partition.directories
        if len(ids) != len(partition.replicas):
            ids = (None,) * len(partition.replicas)
        own = (partition.topic, partition.partition)
        return tuple(
            ReplicaPlace(replica, directory_id, self._path(replica, directory_id, own))
            for replica, directory_id in zip(partition.replicas, ids, strict=True)
        )

    def path_of(self, directory_id: str) -> Path | None:
        """The path of the directory with an id; None if it isn't here."""
        return next((disk.path for disk in self._disks if disk.directory_id == directory_id), None)

    def _path(self, replica: int, directory_id: str | None, own: tuple[str, int]) -> Path | None:
        for disk in self._disks if self._are_of_now else ():
            if disk.broker == replica and own in disk.partitions:
                return disk.path
        return None if directory_id is None else self.path_of(directory_id)


def _disks(log_dirs: Iterable[Path]) -> Iterator[_Disk]:
    for path in log_dirs:
        try:
            log_dir = LogDir(path)
            directory_id, broker = log_dir.read_properties().get("directory.id"), log_dir.broker_id()
        except KsegError:
            continue
        names = map(parse_partition_directory, log_dir.directories)
        held = frozenset((name.topic, name.partition) for name in names if name is not None and name.state is None)
        yield _Disk(path, broker, directory_id, held)
