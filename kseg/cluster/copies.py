"""Where records come from: copies of partitions on disks and in object stores, listed without opening a log."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import (
    META_PROPERTIES,
    NOBODY,
    DirectoryIdentity,
    NoPartitionError,
    Refuse,
    parse_identity,
    pass_over,
)
from kseg.cluster.replicas import Candidate, History, PartitionReplicas, join_replicas, only_cluster
from kseg.errors import KsegError, OpenError
from kseg.formats.checkpoints import parse_partition_metadata
from kseg.formats.file_names import FileKind, parse_file_name, parse_partition_directory, plain_text
from kseg.kernel.contract import MOST
from kseg.log.lineage import ENDLESS, Lineage, noted_epochs
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.segments import SWAP, complete_swaps
from kseg.store import remote_files as remote
from kseg.store.location import is_remote
from kseg.system.placed_path import PlacedPath, StrPath, within

if TYPE_CHECKING:
    from kseg.cluster.model import ClusterMetadata


class SegmentSource(NamedTuple):
    """A segment as it was listed: log and offset index by path or URL, bytes, milliseconds since 1970 of the change.

    inode: the log's, 0 if it isn't known. directory: that of its files, if that stands for something else.
    """

    base_offset: int
    log: str
    size: int
    modified_ms: int
    offset_index: str | None
    inode: int = 0
    directory: PlacedPath | None = None


class PartitionCopy(NamedTuple):
    """A copy of a partition. `topic` and `partition` as its directory is named; else the directory's name, and None.

    topic_id: of `partition.metadata`; where that has none, of the partition's topic; None if nothing tells it.
    agreed_end: the offset before which its records are the partition's; None: all of them are. log_end: None if it
    isn't known.
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
        """Whether it lies in an object store or another file system that isn't the machine's."""
        return is_remote(self.path)

    @property
    def place(self) -> StrPath:
        """Its directory, as one that stands for something else if it does; or its URL."""
        return within(self.segments[0].directory if self.segments else None, self.path)

    def open(self) -> PartitionLog:
        """The partition's directory. Raises OpenError if it can't be listed."""
        return PartitionLog(self.place)


Copies = dict[tuple[str, int | None], list[PartitionCopy]]
REQUESTS = 16
"""That are under way at a time."""
_METADATA_FILES = (".log", ".checkpoint", "leader-epoch-checkpoint")
SMALL_FILE = 4096
"""Bytes that are read of a `partition.metadata` or a `meta.properties`."""


def find_replicas(sources: Iterable[StrPath], refuse: Refuse | None = None) -> list[PartitionReplicas[PartitionCopy]]:
    """All partitions at some paths, globs or URLs, with the copies that answer for each of them.

    A path is a partition's directory, a log directory or a parent of such; `join_replicas` tells which copies answer.
    Those without logs are left out then.
    `refuse` takes the errors of paths, and of partitions below them, that can't be listed; without it they are raised
    as OpenError. Raises UsageError for directories of several clusters.
    """

    def refused(error: OpenError) -> None:
        if isinstance(error, NoPartitionError):
            return  # a disk may have none, if others have some
        if refuse is None:
            raise error
        refuse(error)

    paths = [path for source in sources for path in _matching(source, refuse)]
    cluster = Cluster([path for path in paths if not _is_remote(path)], refused)
    candidates = [_of_local(each) for each in cluster.candidates()]
    for path in filter(_is_remote, paths):
        try:
            candidates += _remote_candidates(os.fspath(path))
        except OpenError as error:
            refused(error)
    known: dict[StrPath, Candidate[PartitionCopy]] = {}
    for each in candidates:
        known.setdefault(each.path, each)
    in_stores = [each for each in known.values() if each.topic == METADATA_TOPIC and each.place.is_remote]

    @cache
    def metadata(cluster_id: str | None) -> "ClusterMetadata | None":
        return _furthest_metadata(cluster, in_stores, cluster_id)

    named = ((path, cluster_id) for cluster_id, path in cluster.clusters.items())
    cluster_id = only_cluster(chain(named, ((each.path, each.cluster_id) for each in known.values())))
    joined = join_replicas(known.values(), cluster_id, metadata)
    return [replace(each, copies=tuple(copy for copy in each.copies if copy.place.segments)) for each in joined]


def metadata_dirs_of(sources: Iterable[StrPath]) -> Iterator[Path]:
    """Where on this machine the metadata may be, of what `find_replicas` finds; lists nothing before it is needed."""
    paths = (path for source in sources for path in _matching(source, pass_over))
    yield from Cluster([path for path in paths if not _is_remote(path)], pass_over).metadata_dirs()


def _furthest_metadata(
    cluster: Cluster, in_stores: Iterable[Candidate[PartitionCopy]], cluster_id: str | None
) -> "ClusterMetadata | None":
    """The metadata of the furthest copy, on disks or in a store; of those in stores the furthest one is copied here."""
    own = [each for each in in_stores if cluster_id is None or each.cluster_id in (None, cluster_id)]
    if own:
        with (
            suppress(KsegError),
            remote.local_directory(join_replicas(own, cluster_id)[0].best.path, _METADATA_FILES) as copied,
        ):
            return cluster.read_metadata(cluster_id, (copied.parent,))
    return cluster.metadata(cluster_id)


def copies_of(replicas: Iterable[PartitionReplicas[PartitionCopy]]) -> Copies:
    """The copies that answer, by topic and partition, the best one first; each knows how far it agrees with that."""
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
    """A partition's copies on this machine but for the one at a path: their paths and agreed ends."""
    return tuple((each.place, each.agreed_end) for each in own if each.path != path and not each.is_remote)


def _of_local(found: Candidate[PartitionLog]) -> Candidate[PartitionCopy]:
    place = _replica(found.place, found.topic_id)
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


def _remote_candidates(url: str) -> Iterator[Candidate[PartitionCopy]]:
    files = list(remote.list_files(url))
    small = [each for each in files if each.url.endswith(f"/{META_PROPERTIES}")]
    given = url.rstrip("/")
    if parse_partition_directory(given) is not None:
        small += remote.list_files(f"{_directory_of(given)}/{META_PROPERTIES}", may_be_missing=True)
    with ThreadPoolExecutor(REQUESTS) as pool:
        owners = dict(zip(map(_directory_of, small), pool.map(_remote_identity, small), strict=True))
    return (_of_remote(each, url, owners.get(_directory_of(each.path), NOBODY)) for each in _remote_replicas(files))


def _directory_of(file: remote.RemoteFile | str) -> str:
    return (file if isinstance(file, str) else file.url).rpartition("/")[0]


def _remote_identity(file: remote.RemoteFile) -> DirectoryIdentity:
    try:
        return parse_identity(remote.read_range(file.url, 0, min(file.size, SMALL_FILE)))
    except KsegError:
        return NOBODY


def _of_remote(place: PartitionCopy, url: str, owner: DirectoryIdentity) -> Candidate[PartitionCopy]:
    name = parse_partition_directory(place.path)
    state = None if name is None else name.state
    return Candidate(
        place,
        place.path,
        place.topic,
        place.partition,
        place.topic_id,
        state,
        partial(_remote_history, place),
        owner.broker,
        owner.cluster_id,
        is_given=place.path == url.rstrip("/"),
    )


def _remote_history(place: PartitionCopy, is_exact: bool) -> History:
    """What the small files of a remote copy tell. Its headers aren't read, so the log's end isn't known."""
    with remote.local_directory(place.path, remote.SMALL_FILES) as directory:
        epochs = noted_epochs(PartitionLog(directory), MOST)
    first, last = place.segments[0], place.segments[-1]
    lineage = Lineage(epochs, first.base_offset, ENDLESS, None)
    return History(lineage, epochs.latest, last_segment=(last.base_offset, last.size))


def _is_remote(path: StrPath) -> bool:
    return isinstance(path, str) and is_remote(path)


def _matching(source: StrPath, refuse: Refuse | None) -> Sequence[StrPath]:
    """The paths that a glob matches; the path itself if it is none, or is there as it stands."""
    if not isinstance(source, str) or is_remote(source) or Path(source).exists() or not set(source) & set("*?["):
        return [source]
    path = Path(source)
    found = sorted(map(str, Path(path.anchor).glob(str(path.relative_to(path.anchor)))))
    if not found:
        error = OpenError("nothing matches", source)
        if refuse is None:
            raise error
        refuse(error)
    return found


def _replica(place: PartitionLog, topic_id: str | None) -> PartitionCopy:
    path = place.path.absolute()
    directory = path if isinstance(path, PlacedPath) else None
    segments = tuple(
        SegmentSource(
            segment.base_offset,
            os.fspath(path / segment.log.path.name),
            segment.log.size,
            segment.log.modified_ms,
            None if segment.offset_index is None else os.fspath(path / segment.offset_index.path.name),
            segment.log.inode,
            directory,
        )
        for segment in place.segments
        if segment.log is not None
    )
    return PartitionCopy(
        plain_text(place.topic or path.name),
        place.partition,
        os.fspath(path),
        segments,
        topic_id=topic_id,
    )


def _remote_replicas(files: Iterable[remote.RemoteFile]) -> Iterator[PartitionCopy]:
    directories: dict[str, dict[int, dict[FileKind, remote.RemoteFile]]] = defaultdict(lambda: defaultdict(dict))
    metadata: dict[str, remote.RemoteFile] = {}
    swaps: dict[str, list[tuple[FileKind, int, str, remote.RemoteFile]]] = defaultdict(list)
    for file in files:
        kind, offset, _, suffix, remote_id = parse_file_name(file.url)
        if suffix is None and remote_id is None and offset is not None:
            directories[file.url.rpartition("/")[0]][offset][kind] = file
        elif suffix is not None and offset is not None:
            swaps[file.url.rpartition("/")[0]].append((kind, offset, suffix, file))
        elif kind is FileKind.PARTITION_METADATA and suffix is None:
            metadata[file.url.rpartition("/")[0]] = file
    for directory, named in swaps.items():
        _swap_in(named, directories[directory])
    topic_ids = _remote_topic_ids(file for directory, file in metadata.items() if directory in directories)
    for directory, segments in sorted(directories.items()):
        name = parse_partition_directory(directory)
        found = tuple(
            _remote_segment(offset, files) for offset, files in sorted(segments.items()) if FileKind.LOG in files
        )
        topic, partition = (PurePosixPath(directory).name, None) if name is None else (name.topic, name.partition)
        yield PartitionCopy(
            topic,
            partition,
            directory,
            found,
            topic_id=topic_ids.get(directory),
        )


def _swap_in(
    named: list[tuple[FileKind, int, str, remote.RemoteFile]], segments: dict[int, dict[FileKind, remote.RemoteFile]]
) -> None:
    """Takes the logs that a broker would swap in. Where old ones overlap them, each offset counts once anyway."""
    for base in complete_swaps(each[:3] for each in named):
        segments[base] = {kind: file for kind, offset, suffix, file in named if offset == base and suffix == SWAP}


def _remote_topic_ids(files: Iterable[remote.RemoteFile]) -> dict[str, str]:
    """The topics' ids by the directories of these `partition.metadata`; several are read at a time."""
    with ThreadPoolExecutor(REQUESTS) as pool:
        found = list(pool.map(_remote_topic_id, files))
    return {directory: topic_id for directory, topic_id in found if topic_id is not None}


def _remote_topic_id(file: remote.RemoteFile) -> tuple[str, str | None]:
    directory = file.url.rpartition("/")[0]
    try:
        return directory, parse_partition_metadata(remote.read_range(file.url, 0, min(file.size, SMALL_FILE))).topic_id
    except KsegError:
        return directory, None


def _remote_segment(offset: int, files: dict[FileKind, remote.RemoteFile]) -> SegmentSource:
    log, index = files[FileKind.LOG], files.get(FileKind.OFFSET_INDEX)
    return SegmentSource(offset, log.url, log.size, log.modified_ms, None if index is None else index.url)


def require_replicas(copies: Copies, sources: Iterable[StrPath]) -> None:
    """Raises NoPartitionError if there is nothing to read."""
    if not copies:
        raise NoPartitionError(", ".join(map(str, sources)))
