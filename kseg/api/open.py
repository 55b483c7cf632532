"""Functions that open files, partitions, log directories and archives."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from kseg.api.cluster import Cluster, JoinedDirectories
from kseg.api.partition import Partition, Segment
from kseg.api.tables import SHOWN_ROWS, Logs, ShortTable, warn
from kseg.cluster.directories import directory_at
from kseg.errors import OpenError, plural
from kseg.formats.file_names import LOG_KINDS, parse_file_name
from kseg.log.partition import PartitionLog
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.store.location import leads_inside
from kseg.system.placed_path import StrPath, as_path
from kseg.tiered.places import tier_at

Opened = TypeVar("Opened", bound=Logs)


class LogDirectory(JoinedDirectories):
    """The partitions of one or more log directories, listed when they were opened.

    Records of each partition are read once. If there are several replicas, the best one is read.
    """

    def __init__(self, paths: Iterable[Path], choice: PartitionChoice = EVERY_PARTITION) -> None:
        """List the directories and the chosen partitions in them.

        Partitions that can't be listed are skipped with a warning. Raises OpenError if a path can't be listed,
        NoPartitionError if it has no partition, and NoSuchPartitionError if none is chosen.
        """
        super().__init__(paths, choice)
        self._logs = sorted(self._cluster.directories(choice), key=_order)

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(log.size for log in self._logs)

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the topics, sorted."""
        return tuple(sorted({log.topic for log in self._logs if log.topic is not None}))

    def partitions(self, topic: str = "*", partition: int | None = None) -> tuple[Partition, ...]:
        """Return the partitions by topic and number, filtered by a topic glob and a number.

        Directories that are being deleted or moved come last; `Partition.state` has their state.
        """
        return tuple(
            Partition(log, self)
            for log in self._logs
            if fnmatchcase(log.topic or log.directory_name, topic) and partition in (None, log.partition)
        )

    def _table(self) -> ShortTable:
        title = (
            f"{', '.join(map(str, self._paths))}: {plural(len(self._logs), 'partition')} of"
            f" {plural(len(self.topics), 'topic')}"
        )
        return ShortTable(
            f"LogDirectory {title}, {self.size:,} bytes",
            ("topic", "partition", "segments", "bytes"),
            [
                (log.topic or log.directory_name, log.partition, len(log.segments), log.size)
                for log in self._logs[:SHOWN_ROWS]
            ],
            len(self._logs),
        )


def _order(log: PartitionLog) -> tuple[bool, str, int]:
    return log.state is not None, log.topic or log.directory_name, -1 if log.partition is None else log.partition


def open(  # noqa: A001  it is kseg.open
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    remote: str | Iterable[str] = (),
    private_keys: Mapping[str, str | os.PathLike[str]] | None = None,
) -> LogDirectory | Partition | Segment:
    """Open a log directory, its parent, a partition directory or a segment. Several paths become a LogDirectory.

    Paths may lead into archives (`support.tar.gz/orders-0`). The needed files are unpacked into TMPDIR until the
    result is closed or garbage-collected. Paths may also be remote tiers: directories of their objects, or s3://… .

    Args:
        path: the path to open.
        more: further disks of the same broker, or further brokers' disks.
        topic: names or globs of topics; with this or `partition` the result is a LogDirectory.
        partition: numbers of partitions.
        remote: remote tiers that have the older segments of the opened partitions.
        private_keys: files of private keys that decrypt segments of tiers, by the keys' ids.

    Raises:
        OpenError: a path doesn't exist, can't be opened, or has no Kafka files.
        UsageError: no partition matches; or a private key's file has no key.
        ClusterError: an object store failed.
    """
    choice = PartitionChoice.of(topic, partition)
    return _open_given((path, *more), lambda local: _open_listed(local, choice), choice, remote, private_keys or {})


def open_cluster(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    server_properties: str | os.PathLike[str] | None = None,
    remote: str | Iterable[str] = (),
    private_keys: Mapping[str, str | os.PathLike[str]] | None = None,
) -> Cluster:
    """Open the disks of a cluster, in any order. Example: `cluster.topics["orders"].partitions[0]`.

    Args:
        paths: log directories, parents of them up to five levels above, or archives; of all available brokers.
        server_properties: a broker's server.properties, for settings that the metadata don't have.
        remote: remote tiers that have the older segments.
        private_keys: files of private keys that decrypt segments of tiers, by the keys' ids.

    Raises:
        OpenError: a path doesn't exist, or no partition does. UsageError: the disks belong to several clusters.
    """
    given = (paths,) if isinstance(paths, str | os.PathLike) else tuple(paths)
    static = None if server_properties is None else Path(server_properties)
    keys = private_keys or {}
    return _open_given(given, lambda local: Cluster(map(as_path, local), static), EVERY_PARTITION, remote, keys)


def _open_given(
    given: Iterable[str | os.PathLike[str]],
    opening: Callable[[list[StrPath]], Opened],
    choice: PartitionChoice,
    remote: str | Iterable[str],
    private_keys: Mapping[str, str | os.PathLike[str]],
) -> Opened:
    """Open local paths. Archives and remote tiers stay unpacked until the result is closed."""
    paths = [os.fspath(each) for each in given]
    remotes = (remote,) if isinstance(remote, str) else tuple(remote)
    if not remotes and not any(leads_inside(each) or tier_at(each) is not None for each in paths):
        return opening([*paths])
    from kseg.cluster.tier_inputs import RemoteLogs
    from kseg.store.archive import Inputs

    with ExitStack() as stack:
        inputs = stack.enter_context(Inputs(warn))
        keys = {key_id: Path(file) for key_id, file in private_keys.items()}
        logs = stack.enter_context(RemoteLogs(keys, warn, choice))
        opened = opening([logs.local(inputs.local(each), remotes) for each in paths])
        for refused in logs.unreadable_objects:
            warn(str(refused))
        opened.close_with(stack.pop_all())
        return opened


def _open_listed(paths: list[StrPath], choice: PartitionChoice) -> LogDirectory | Partition | Segment:
    if len(paths) > 1 or not choice.is_everything:
        return LogDirectory(map(as_path, paths), choice)
    path = as_path(paths[0])
    directory, is_partition = directory_at(path)
    if path.is_file():
        if parse_file_name(path).kind not in LOG_KINDS:
            raise OpenError(
                "isn't a log; specify its directory, or call kseg.open_segment, which reads any file as a log", path
            )
        return Segment(path)
    return Partition(PartitionLog(directory)) if is_partition else LogDirectory([path])


def open_segment(path: str | os.PathLike[str]) -> Segment:
    """Open a file of batches, whatever its name. Raises OpenError if the file can't be opened."""
    return Segment(path)
