"""Where records come from: copies of partitions on disks and in object stores, listed without opening a log."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kseg.cluster.directories import NoPartitionError, Refuse, partitions_at
from kseg.cluster.replicas import require_one_topic_id, topic_id_of
from kseg.errors import KsegError, OpenError
from kseg.formats.checkpoints import parse_partition_metadata
from kseg.formats.file_names import DirectoryState, FileKind, parse_file_name, parse_partition_directory, plain_text
from kseg.log.partition import PartitionLog
from kseg.log.segments import SWAP, complete_swaps, read_tail
from kseg.store import remote_files as remote


class SegmentSource(NamedTuple):
    """A segment as it was listed: log and offset index by path or URL, bytes, milliseconds since 1970 of the change.

    inode: the log's, 0 if it isn't known.
    """

    base_offset: int
    log: str
    size: int
    modified_ms: int
    offset_index: str | None
    inode: int = 0


class PartitionCopy(NamedTuple):
    """A copy of a partition. `topic` and `partition` as its directory is named; else the directory's name, and None.

    is_used: False for a directory that a broker had put aside (`-future`). topic_id: of `partition.metadata`; None if
    there is none that can be read.
    """

    topic: str
    partition: int | None
    path: str
    segments: tuple[SegmentSource, ...]
    is_used: bool = True
    topic_id: str | None = None

    @property
    def size(self) -> int:
        """Bytes of its logs."""
        return sum(segment.size for segment in self.segments)

    @property
    def is_remote(self) -> bool:
        """Whether it lies in an object store or another file system that isn't the machine's."""
        return remote.is_remote(self.path)

    def open(self) -> PartitionLog:
        """The partition's directory. Raises OpenError if it can't be listed."""
        return PartitionLog(self.path)


Copies = dict[tuple[str, int | None], list[PartitionCopy]]
NO_COPIES = (DirectoryState.DELETE, DirectoryState.STRAY)
"""Directories that a broker keeps apart from the partition: it may have been recreated since."""
REQUESTS = 16
"""That are under way at a time."""
SMALL_FILE = 4096
"""Bytes that are read of a `partition.metadata`."""


def find_replicas(sources: Iterable[str], refuse: Refuse | None = None) -> Copies:
    """All copies of partitions at some paths, globs or URLs, by topic and partition; the best copy of each comes first.

    A path is a partition's directory, a log directory or a parent of such. Directories that a broker was about to
    delete (`-delete`) or found to be no longer its own (`-stray`) are left out, unless they are given themselves.
    `refuse` takes the errors of paths, and of partitions below them, that can't be listed; without it they are raised
    as OpenError. Raises UsageError for copies of different topics.
    """
    copies: Copies = defaultdict(list)
    for source in sources:
        for path in _matching(source, refuse):
            found = _remote_replicas(path) if remote.is_remote(path) else _local_replicas(path, refuse)
            for replica in _without_refused(found, refuse):
                known = copies[replica.topic, replica.partition]
                if replica.segments and all(other.path != replica.path for other in known):
                    known.append(replica)
    for known in copies.values():
        if len(known) > 1:
            require_one_topic_id((copy.path, copy.topic_id) for copy in known)
    return {key: _best_first(known) for key, known in copies.items() if known}


def _without_refused(found: Iterator[PartitionCopy], refuse: Refuse | None) -> Iterator[PartitionCopy]:
    """Replicas at one path up to the error that it has."""
    try:
        yield from found
    except NoPartitionError:
        return  # a disk may have none, if others have some
    except OpenError as error:
        if refuse is None:
            raise
        refuse(error)


def _local_replicas(path: str, refuse: Refuse | None) -> Iterator[PartitionCopy]:
    for place in partitions_at(path, refuse):
        if place.state not in NO_COPIES or place.path.samefile(path):
            yield _replica(place)


def _matching(source: str, refuse: Refuse | None) -> list[str]:
    """The paths that a glob matches; the path itself if it is none, or is there as it stands."""
    if remote.is_remote(source) or Path(source).exists() or not set(source) & set("*?["):
        return [source]
    path = Path(source)
    found = sorted(map(str, Path(path.anchor).glob(str(path.relative_to(path.anchor)))))
    if not found:
        error = OpenError("nothing matches", source)
        if refuse is None:
            raise error
        refuse(error)
    return found


def _replica(place: PartitionLog) -> PartitionCopy:
    path = place.path.absolute()
    segments = tuple(
        SegmentSource(
            segment.base_offset,
            str(path / segment.log.path.name),
            segment.log.size,
            segment.log.modified_ms,
            None if segment.offset_index is None else str(path / segment.offset_index.path.name),
            segment.log.inode,
        )
        for segment in place.segments
        if segment.log is not None
    )
    return PartitionCopy(
        plain_text(place.topic or path.name),
        place.partition,
        str(path),
        segments,
        is_used=place.state is None,
        topic_id=topic_id_of(place),
    )


def _remote_replicas(url: str) -> Iterator[PartitionCopy]:
    directories: dict[str, dict[int, dict[FileKind, remote.RemoteFile]]] = defaultdict(lambda: defaultdict(dict))
    metadata: dict[str, remote.RemoteFile] = {}
    swaps: dict[str, list[tuple[FileKind, int, str, remote.RemoteFile]]] = defaultdict(list)
    for file in remote.list_files(url):
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
        if name is not None and name.state in NO_COPIES and directory != url.rstrip("/"):
            continue
        found = tuple(
            _remote_segment(offset, files) for offset, files in sorted(segments.items()) if FileKind.LOG in files
        )
        topic, partition = (PurePosixPath(directory).name, None) if name is None else (name.topic, name.partition)
        yield PartitionCopy(
            topic,
            partition,
            directory,
            found,
            is_used=name is None or name.state is None,
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


def _best_first(copies: list[PartitionCopy]) -> list[PartitionCopy]:
    """The copy in use with the highest leader epoch first; of equal ones that which reaches further, or is larger."""
    if len(copies) == 1:
        return copies

    def rank(replica: PartitionCopy) -> tuple[bool, int, int, int]:
        return (replica.is_used, leader_epoch(replica), replica.segments[-1].base_offset, replica.size)

    return sorted(copies, key=rank, reverse=True)


def leader_epoch(replica: PartitionCopy) -> int:
    """The last leader epoch of its checkpoint or, without one, of its last batch; -1 if neither can be had."""
    if replica.is_remote:
        with remote.local_directory(replica.path, remote.SMALL_FILES) as directory:
            return _leader_epoch(PartitionLog(directory))
    try:
        return _leader_epoch(replica.open())
    except OpenError:
        return -1  # it has gone since it was listed


def _leader_epoch(place: PartitionLog) -> int:
    try:
        epochs = place.read_leader_epochs()
        if epochs:
            return epochs[-1][0]
        tail = None if place.active_segment is None else read_tail(place.active_segment)
    except KsegError:
        return -1  # damaged: the other copies are better
    return -1 if tail is None or tail.last is None else tail.last.partition_leader_epoch


def require_replicas(copies: Copies, sources: Iterable[str]) -> None:
    """Raises NoPartitionError if there is nothing to read."""
    if not copies:
        raise NoPartitionError(", ".join(sources))
