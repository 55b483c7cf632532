"""The sources of records: copies of partitions on disks and in object stores, listed without opening a log."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster, joined_of
from kseg.cluster.directories import (
    NoPartitionError,
    Refuse,
    pass_over,
)
from kseg.cluster.replicas import Candidate, PartitionReplicas, only_cluster
from kseg.cluster.tier_inputs import RemoteLogs
from kseg.errors import OpenError
from kseg.formats.file_names import plain_text
from kseg.log.partition import PartitionLog
from kseg.store.location import is_remote, without_file_scheme
from kseg.system.placed_path import PlacedPath, StrPath, within


class SegmentSource(NamedTuple):
    """A segment in a listing, with the path or URL of its files, their sizes and modification times.

    inode: the log's, 0 if unknown. directory: of its files, if that is a placed directory.
    """

    base_offset: int
    log: str
    size: int
    modified_ms: int
    offset_index: str | None
    inode: int = 0
    directory: PlacedPath | None = None


class PartitionCopy(NamedTuple):
    """A copy of a partition. If the directory name isn't valid, `partition` is None.

    topic_id: from `partition.metadata`; without one, of the partition's topic; None if unknown. agreed_end: the offset
    below which it has the partition's records; None: all of its records are the partition's. log_end: None if unknown.
    """

    topic: str
    partition: int | None
    path: str
    segments: tuple[SegmentSource, ...]
    topic_id: str | None = None
    agreed_end: int | None = None
    log_end: int | None = None

    @property
    def size(self) -> int:
        """Bytes of its logs."""
        return sum(segment.size for segment in self.segments)

    @property
    def is_remote(self) -> bool:
        """True if it is in an object store or another remote file system."""
        return is_remote(self.path)

    @property
    def place(self) -> StrPath:
        """Its directory, as a placed path if it is one; or its URL."""
        return within(self.segments[0].directory if self.segments else None, self.path)

    def open(self) -> PartitionLog:
        """Return the partition directory. Raises OpenError if it can't be listed."""
        return PartitionLog(self.place)


Copies = dict[tuple[str, int | None], list[PartitionCopy]]


def find_replicas(sources: Iterable[StrPath], refuse: Refuse | None = None) -> list[PartitionReplicas[PartitionCopy]]:
    """Return all partitions at the given paths, globs or URLs, each with the copies that answer for it.

    A path is a partition's directory, a log directory or a parent of one; `join_replicas` decides which copies answer.
    Copies without logs are then omitted. `refuse` is called with the errors of paths, and of partitions below them,
    that can't be listed; without it they are raised as OpenError. Raises UsageError for directories of several
    clusters.
    """

    def pass_on(error: OpenError) -> None:
        if isinstance(error, NoPartitionError):
            return  # a disk may have none, if others have some
        if refuse is None:
            raise error
        refuse(error)

    paths = [path for source in sources for path in _matching(source, refuse)]
    with RemoteLogs({}, lambda _: None) as stores:
        local_cluster = Cluster([path for path in paths if not _is_remote(path)], pass_on)
        remote_cluster = Cluster(_mirror_urls(filter(_is_remote, paths), stores, pass_on), pass_on)
        for error in stores.unreadable_objects:
            pass_on(error)
        candidates = [_of_directory(each, os.fspath) for each in local_cluster.candidates()]
        candidates += [_of_directory(each, str) for each in remote_cluster.candidates()]
        known: dict[StrPath, Candidate[PartitionCopy]] = {}
        for each in candidates:
            known.setdefault(each.path, each)
        cluster = Cluster.join((local_cluster, remote_cluster))
        named = ((path, cluster_id) for cluster_id, path in cluster.clusters.items())
        cluster_id = only_cluster(chain(named, ((each.path, each.cluster_id) for each in known.values())))
        joined = joined_of([*known.values()], cluster_id, cluster.metadata)
        return [replace(each, copies=tuple(copy for copy in each.copies if copy.place.segments)) for each in joined]


def _mirror_urls(urls: Iterable[StrPath], stores: RemoteLogs, refuse: Refuse) -> Iterator[PlacedPath]:
    """Yield directories that mirror the objects at URLs."""
    for url in urls:
        try:
            yield stores.mirror_directory(os.fspath(url))
        except OpenError as error:
            refuse(error)


def metadata_dirs_of(sources: Iterable[StrPath]) -> Iterator[Path]:
    """Yield the possible places of the metadata on this machine for `find_replicas`.

    Lists nothing before it is needed.
    """
    paths = (path for source in sources for path in _matching(source, pass_over))
    yield from Cluster([path for path in paths if not _is_remote(path)], pass_over).metadata_dirs()


def copies_of(replicas: Iterable[PartitionReplicas[PartitionCopy]]) -> Copies:
    """Return the answering copies by topic and partition, best first, each with its agreed end."""
    return {
        (each.topic, each.partition): [
            copy.place._replace(
                topic_id=copy.topic_id or each.topic_id, agreed_end=copy.agreed_end, log_end=copy.log_end
            )
            for copy in each.copies
        ]
        for each in replicas
        if each.copies
    }


def others_here(own: Iterable[PartitionCopy], path: str) -> tuple[tuple[StrPath, int | None], ...]:
    """Return the paths of the other local copies of a partition."""
    return tuple((each.place, each.agreed_end) for each in own if each.path != path and not each.is_remote)


def _of_directory(found: Candidate[PartitionLog], named: Callable[[Path], str]) -> Candidate[PartitionCopy]:
    place = _replica(found.place, found.topic_id, named)
    return Candidate(
        place,
        place.place,
        place.topic,
        found.partition,
        found.topic_id,
        found.state,
        found.read_history,
        found.broker,
        found.cluster_id,
        found.is_given,
    )


def _is_remote(path: StrPath) -> bool:
    return isinstance(path, str) and is_remote(path)


def _matching(source: StrPath, refuse: Refuse | None) -> Sequence[StrPath]:
    """Return the paths that match a glob, or the path itself if it exists or isn't a glob."""
    if isinstance(source, str):
        source = without_file_scheme(source)
    if not isinstance(source, str) or is_remote(source) or Path(source).exists() or not set(source) & set("*?["):
        return [source]
    path = Path(source)
    found = sorted(map(str, Path(path.anchor).glob(str(path.relative_to(path.anchor)))))
    if not found:
        error = OpenError("no partition matches", source)
        if refuse is None:
            raise error
        refuse(error)
    return found


def _replica(place: PartitionLog, topic_id: str | None, named: Callable[[Path], str]) -> PartitionCopy:
    """Return a replica's value; named: gives a file path, or its URL if other programs read that."""
    path = place.path.absolute()
    directory = path if isinstance(path, PlacedPath) and named is not str else None
    segments = tuple(
        SegmentSource(
            segment.base_offset,
            named(path / segment.log.path.name),
            segment.log.size,
            segment.log.modified_ms,
            None if segment.offset_index is None else named(path / segment.offset_index.path.name),
            segment.log.inode,
            directory,
        )
        for segment in place.segments
        if segment.log is not None
    )
    return PartitionCopy(
        plain_text(place.topic or path.name),
        place.partition,
        named(path),
        segments,
        topic_id=topic_id,
    )


def require_replicas(copies: Copies, sources: Iterable[StrPath]) -> None:
    """Raise NoPartitionError if there is nothing to read."""
    if not copies:
        raise NoPartitionError(", ".join(map(str, sources)))
