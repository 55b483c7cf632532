"""A partition's directory: its segments by base offset, and the files next to them."""

import os
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.errors import KsegError, OpenError
from kseg.formats.entries import OffsetIndexEntry
from kseg.formats.names import DirectoryState, FileKind, PartitionDirectory, parse_file_name, parse_partition_directory
from kseg.index.folding import pass_all
from kseg.index.headers import header_of, header_runs, intact_header
from kseg.index.offset_index import OffsetIndex
from kseg.log.partition.swapped import swapped_in
from kseg.reading.batch import Batch
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import LogFile
from kseg.system.regular_file import read_text_file
from kseg.tiered.placed_tiers import placed_at

if TYPE_CHECKING:
    from kseg.index.producer_state import ProducerStates

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
CHECKPOINT_OF_FIELD = {
    "recovery_point": "recovery-point-offset-checkpoint",
    "high_watermark": "replication-offset-checkpoint",
    "log_start_offset": "log-start-offset-checkpoint",
    "clean_offset": "cleaner-offset-checkpoint",
}
"""Fields of Checkpoints, and the file of a log directory for each."""
COMPACTED_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""Internal topics that Kafka always compacts."""
METADATA_TOPIC = "__cluster_metadata"
"""The metadata topic of a KRaft cluster; its log has its own rules."""
_INDEX_KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


class FoundFile(NamedTuple):
    """A file as its directory listed it: bytes, and milliseconds since 1970 of its last modification.

    inode: its number in the file system, 0 if it isn't known: a file of the same name may take its place.
    """

    directory: Path
    name: str
    size: int
    modified_ms: int
    inode: int = 0

    @property
    def path(self) -> Path:
        """Its path."""
        return self.directory / self.name

    @property
    def full_name(self) -> str:
        """The same as text, which takes a tenth of the time."""
        return path_text(self.directory, self.name)


def path_text(directory: Path, name: str) -> str:
    """The text of the path of a file in a directory."""
    place = str(directory)
    return name if place == "." else f"{place}{name}" if place.endswith("/") else f"{place}/{name}"


class SegmentFiles(NamedTuple):
    """A segment: its log and the files next to it, None if a file is missing.

    In an orphan only the log is missing.
    """

    base_offset: int
    log: FoundFile | None
    offset_index: FoundFile | None = None
    time_index: FoundFile | None = None
    transaction_index: FoundFile | None = None

    @property
    def path(self) -> Path:
        """The log's path."""
        return self._own_log.path

    @property
    def _own_log(self) -> FoundFile:
        if self.log is None:
            raise KsegError(f"the segment of base offset {self.base_offset} has no log")
        return self.log

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return 0 if self.log is None else self.log.size

    @property
    def files(self) -> tuple[FoundFile, ...]:
        """Its files, the log first."""
        return tuple(file for file in self[1:] if file is not None)

    def open_log(self, *, keep_cache: bool = True) -> LogFile:
        """The log; one that can't be opened is unreadable as a whole. Raises OpenError if it is gone."""
        log = self._own_log
        return LogFile.of_directory(log.full_name, log.size, keep_cache=keep_cache)


class Checkpoints(NamedTuple):
    """What a log directory's checkpoint files say about one partition; None if they don't have it.

    `clean_offset` is the cleaner's: the first offset that it hasn't cleaned.
    """

    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    clean_offset: int | None = None


CheckpointsByPartition = dict[tuple[str | None, int | None], Checkpoints]
"""By topic and partition."""


def read_checkpoints(path: Path, problems: list[KsegError] | None = None) -> CheckpointsByPartition:
    """What a log directory's checkpoints say, by (topic, partition).

    Those that can't be read are ignored; adds what is wrong with them to `problems`, each with its path.
    """
    if not any((path / name).exists() for name in CHECKPOINT_OF_FIELD.values()):
        return {}
    from kseg.formats.checkpoint import parse_offset_checkpoint

    found: dict[tuple[str | None, int | None], dict[str, int]] = {}
    for field, name in CHECKPOINT_OF_FIELD.items():
        try:
            entries = parse_offset_checkpoint(read_small_file(path / name) or b"").entries
        except KsegError as error:
            if problems is not None:
                problems.append(KsegError(error.message, path / name, error.position))
            continue
        for topic, partition, offset in entries:
            found.setdefault((topic, partition), {})[field] = offset
    return {key: Checkpoints(**fields) for key, fields in found.items()}


class PartitionLog:
    """A partition's directory as it was listed; segments are read only when needed.

    path: the directory. segments: by base offset, each with a log. base_offsets: theirs. orphans: indexes that have no
    log. snapshots: producer snapshots by end offset. metadata_snapshots: KRaft's. leftovers: files that end in
    `.deleted`, `.cleaned`, `.swap` (they may be segments too), `.tmp`, `.part`. others: all other files.
    has_time_indexes: whether any segment has one: brokers before 0.10.1 wrote none. has_indexes: whether any has an
    offset or time index: logs may be copied without them. largest_timestamps: what lookups found, by base offset: the
    largest time, and what is wrong with the time index.

    If the directory changes, this stays as it was listed; opening a file that is gone meanwhile raises OpenError.
    Source: UnifiedLog, LogSegments.
    """

    def __init__(self, path: str | os.PathLike[str], checkpoints: Checkpoints | None = None) -> None:
        """Lists the directory.

        Args:
            path: the partition's directory.
            checkpoints: those of its log directory; None reads them from the parent directory.

        Raises:
            OpenError: if the directory can't be listed.
        """
        self.path = path if isinstance(path, Path) else Path(path)
        name = parse_partition_directory(self.directory_name)
        self.name: PartitionDirectory | None = name
        self._checkpoints = checkpoints
        self.largest_timestamps: dict[int, tuple[int, tuple[str, ...]]] = {}
        self._settled_ns = _settled_ns(self.path)
        self._take(_list_files(self.path))

    def as_it_is(self) -> "PartitionLog":
        """Itself, or the directory listed again if its files may be others since. Raises OpenError if it has gone."""
        return self if self._settled_ns == _settled_ns(self.path) != 0 else PartitionLog(self.path)

    @property
    def directory_name(self) -> str:
        """The directory's own name, even if it was given as `.`, for messages."""
        return self.path.name if self.path.name not in ("", "..") else self.path.resolve().name

    @cached_property
    def log_dir(self) -> Path:
        """The directory that it is in: the log directory, if it is a broker's."""
        return self.path.absolute().parent

    @property
    def topic(self) -> str | None:
        """The topic; None if the directory isn't named after one."""
        return None if self.name is None else self.name.topic

    @property
    def partition(self) -> int | None:
        """The partition's number."""
        return None if self.name is None else self.name.partition

    @property
    def state(self) -> DirectoryState | None:
        """Whether the directory is being deleted, being moved, or a stray; None if it is in use."""
        return None if self.name is None else self.name.state

    def _take(self, files: Iterable[FoundFile]) -> None:
        found: dict[FileKind, dict[int, FoundFile]] = {kind: {} for kind in (FileKind.LOG, *_INDEX_KINDS)}
        named: list[tuple[FileKind, int, str, FoundFile]] = []
        self.snapshots: dict[int, FoundFile] = {}
        self.metadata_snapshots: list[FoundFile] = []
        self.leftovers: list[FoundFile] = []
        self.others: list[FoundFile] = []
        for file in files:
            kind, offset, _, suffix, remote_id = parse_file_name(file.name)
            if suffix is not None:
                self.leftovers.append(file)
                named += [] if offset is None else [(kind, offset, suffix, file)]
            elif kind is FileKind.METADATA_SNAPSHOT:
                self.metadata_snapshots.append(file)
            elif offset is None or remote_id is not None:
                self.others.append(file)
            elif kind is FileKind.PRODUCER_SNAPSHOT:
                self.snapshots[offset] = file
            elif kind in found:
                found[kind][offset] = file
            else:
                self.others.append(file)
        if named:
            swapped_in(named, found, _next_offset)
        logs, *indexes = found.values()
        self.segments = _segments(logs, logs, indexes)
        orphans = {offset for found in indexes for offset in found if offset not in logs}
        self.orphans = _segments(orphans, logs, indexes) if orphans else ()
        self.snapshots = dict(sorted(self.snapshots.items()))
        self.base_offsets = [segment.base_offset for segment in self.segments]
        self.has_time_indexes = any(segment.time_index is not None for segment in self.segments)
        self.has_indexes = self.has_time_indexes or any(segment.offset_index is not None for segment in self.segments)

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(segment.size for segment in self.segments)

    @property
    def has_content(self) -> bool:
        """Whether there is any file of a log: a segment, an index, a snapshot, even an empty one; or a remote tier."""
        files = (self.segments, self.orphans, self.snapshots, self.metadata_snapshots, self.leftovers)
        return any(files) or placed_at(self.path) is not None

    @property
    def active_segment(self) -> SegmentFiles | None:
        """The segment that is appended to: the last one."""
        return self.segments[-1] if self.segments else None

    def floor_slot(self, offset: int) -> int | None:
        """Number of the segment with the largest base offset ≤ `offset`; None if all are above. Source: LogSegments."""
        slot = bisect_right(self.base_offsets, offset) - 1
        return slot if slot >= 0 else None

    def checkpoints(self) -> Checkpoints:
        """What the checkpoints of its log directory say about it; nothing if they can't be read."""
        if self._checkpoints is None:
            own = (self.topic, self.partition)
            found = read_checkpoints(self.log_dir) if self.name is not None else {}
            self._checkpoints = found.get(own, Checkpoints()) if self.state is None else Checkpoints()
        return self._checkpoints

    def log_start_offset(self) -> int:
        """The first readable offset: the first segment's base or, if that is higher, the checkpoint's."""
        return max(self.base_offsets[0] if self.base_offsets else 0, self.checkpoints().log_start_offset or 0)

    @property
    def has_log_start_checkpoint(self) -> bool:
        """Whether its log directory has the checkpoint for logs that start above their first segment's base.

        A broker lists only such partitions there.
        """
        return (self.log_dir / CHECKPOINT_OF_FIELD["log_start_offset"]).exists()

    def read_log_end_offset(self) -> int:
        """The offset of `read_log_end` alone."""
        return self.read_log_end().offset

    def read_log_end(self) -> "LogEnd":
        """The log's end: after the last readable batch, and not below the log start offset.

        Reads the last segment from its last index entry on. Raises OpenError if a file can't be opened.
        Source: LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd.
        """
        end = self._read_end_of_batches()
        return end._replace(offset=max(end.offset, self.log_start_offset()))

    def _read_end_of_batches(self) -> "LogEnd":
        for segment in reversed(self.segments):
            last = read_tail(segment).last
            if last is not None:
                return LogEnd(last.last_offset + 1, last)
            if segment.size == 0 or segment is self.segments[0]:
                return LogEnd(segment.base_offset, None)
        return LogEnd(0, None)

    def read_topic_id(self) -> str | None:
        """The topic's id, from `partition.metadata`; None if there is none. Raises KsegError if it can't be read."""
        from kseg.formats.checkpoint import parse_partition_metadata

        content = read_small_file(path_text(self.path, PARTITION_METADATA))
        return None if content is None else parse_partition_metadata(content).topic_id

    def read_leader_epochs(self) -> tuple[tuple[int, int], ...] | None:
        """(epoch, start offset) from `leader-epoch-checkpoint`; None if there is none. KsegError if unreadable."""
        from kseg.formats.checkpoint import parse_leader_epoch_checkpoint

        content = read_small_file(path_text(self.path, LEADER_EPOCH_CHECKPOINT))
        if content is None:
            return None
        return tuple((entry.epoch, entry.start_offset) for entry in parse_leader_epoch_checkpoint(content).entries)

    def was_compacted(self) -> bool:
        """Whether the log cleaner may have taken records: by the topic, or by the cleaner's checkpoint."""
        clean_offset = self.checkpoints().clean_offset
        first_offset = self.base_offsets[0] if self.base_offsets else 0
        return self.topic in COMPACTED_TOPICS or (clean_offset is not None and clean_offset > first_offset)

    def read_producer_states(self, offset: int) -> "ProducerStates | None":
        """The producers at an offset, from the snapshot that ends there; None if there is none that a broker would use.

        One that can't be read counts as none.
        """
        from kseg.index.producer_snapshot import ProducerSnapshot
        from kseg.index.producer_state import ProducerStates

        file = self.snapshots.get(offset)
        if file is None:
            return None
        try:
            with ProducerSnapshot(file.path) as snapshot:
                return ProducerStates(snapshot.entries()) if snapshot.problem() is None else None
        except KsegError:  # too short for its header, or unreadable
            return None


def _settled_ns(directory: Path) -> int:
    """When a directory's files last became others; 0 if that can't be known, or is too near for a coarse clock."""
    changed = os.stat(directory).st_mtime_ns if os.path.isdir(directory) else 0  # noqa: PTH112, PTH116  quicker
    return changed if time.time_ns() - changed > 1_000_000_000 else 0


def _segments(
    offsets: Iterable[int], logs: dict[int, FoundFile], indexes: list[dict[int, FoundFile]]
) -> tuple[SegmentFiles, ...]:
    return tuple(
        SegmentFiles(offset, logs.get(offset), *[found.get(offset) for found in indexes]) for offset in sorted(offsets)
    )


class LogEnd(NamedTuple):
    """The end of a partition's log: the next offset to write, and the batch before it if its last segment has one."""

    offset: int
    last: BatchHeader | None


class Tail(NamedTuple):
    """The end of a segment's log.

    first_position: where reading started: at the last index entry, or 0. first, last: the headers of the first batch
    from there on and of the last one, None if none was found. max_timestamp: the largest of the batches read, -1 if
    there is none. damage: the last one met. index_problem: why an offset index that is there wasn't used.
    """

    first_position: int
    first: BatchHeader | None
    last: BatchHeader | None
    max_timestamp: int
    damage: Damage | None
    index_problem: str | None = None


def read_tail(segment: SegmentFiles, *, keep_cache: bool = False) -> Tail:
    """The end of a segment: headers from its last index entry on, if that matches the log; otherwise from the start.

    `keep_cache`: as in LogFile. Raises OpenError if the log can't be opened.
    """
    with segment.open_log(keep_cache=keep_cache) as log_file:
        return tail_of(log_file, read_index_end(segment))


class IndexEnd(NamedTuple):
    """The end of a segment's offset index: the last entry, None without an index; how many; its file's bytes.

    has_trailing: whether bytes follow the last whole entry. error: why it can't be opened or read.
    """

    last: OffsetIndexEntry | None = None
    entries: int = 0
    size: int = 0
    has_trailing: bool = False
    error: OpenError | None = None


def read_index_end(segment: SegmentFiles) -> IndexEnd:
    """The end of a segment's offset index, if it has one."""
    if segment.offset_index is None:
        return IndexEnd()
    try:
        with OffsetIndex(segment.offset_index.full_name, segment.base_offset) as index:
            return IndexEnd(index.last_entry(), index.count, index.size, index.trailing > 0)
    except OpenError as error:
        return IndexEnd(size=segment.offset_index.size, error=error)


def _next_offset(base_offset: int, log: FoundFile) -> int | None:
    try:
        last = read_tail(SegmentFiles(base_offset, log)).last
    except OpenError:
        return None
    return None if last is None else last.last_offset + 1


def tail_of(log_file: LogFile, index: IndexEnd) -> Tail:
    """The end of an open log, as `read_tail` gives it."""
    problem: str | None = str(index.error) if index.error is not None and index.size else None
    if index.last is None or index.last.position == 0:
        return _tail_from(log_file, 0, None, problem)
    known = _header_of_entry(log_file, *index.last)
    if isinstance(known, str):
        return _tail_from(log_file, 0, None, known)
    return _tail_from(log_file, known.position, known._replace(is_valid=None), None)


def _tail_from(log_file: LogFile, start: int, known: BatchHeader | None, problem: str | None) -> Tail:
    """The tail from a batch on, whose header may be known already."""
    first, last, damage = known, known, None
    fold = log_file.kernel.HeaderFold(0)
    fold.passes_legacy = True
    for item in header_runs(log_file, start if known is None else known.end):
        if isinstance(item, Damage):
            damage = item
        else:
            pass_all(fold, item)
            first = first or header_of(item, 0)
            last = header_of(item, item.row_count - 1)
    largest = fold.max_timestamp if known is None else max(fold.max_timestamp, known.max_timestamp)
    return Tail(start, first, last, largest, damage, problem)


def entry_problem(log_file: LogFile, offset: int, position: int) -> str | None:
    """How the log contradicts an index entry; None if a search may start there.

    There must be a batch with a right CRC at the position, and it must begin at or below the entry's offset: then all
    offsets from the entry's on are there or later, whichever offset of its batch or append the entry has.
    """
    if position == 0:
        return None
    found = _header_of_entry(log_file, offset, position)
    return found if isinstance(found, str) else None


def _header_of_entry(log_file: LogFile, offset: int, position: int) -> BatchHeader | str:
    """The header of the batch that an entry points at, or how the log contradicts the entry."""
    if not 0 < position < log_file.size:
        return f"the entry {offset} → {position} points beyond the log's {log_file.size} bytes"
    header = intact_header(log_file, position)
    if header is None:
        return f"the entry {offset} → {position} doesn't point at an intact batch"
    first = header.first_offset
    if header.base_offset is None and first > offset:
        first = _wrapper_base(log_file, header)
    if first > offset:
        return f"the entry {offset} → {position} points at a batch that begins with offset {first}"
    return header


def _wrapper_base(log_file: LogFile, header: BatchHeader) -> int:
    return Batch.parse(log_file.read(header.position, header.size), header.position, is_valid=True).base_offset


def _list_files(path: Path) -> Iterator[FoundFile]:
    """The regular files of a directory, without those that vanish while it is listed."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    if entry.is_file():
                        status = entry.stat()
                        modified_ms = status.st_mtime_ns // 1_000_000
                        yield FoundFile(path, entry.name, status.st_size, modified_ms, status.st_ino)
                except FileNotFoundError:
                    continue
                except OSError:
                    yield FoundFile(path, entry.name, 0, 0)  # its size can't be read; opening it shows why
    except OSError as error:
        raise OpenError(f"can't be listed: {error.strerror}", path) from error


def read_small_file(path: str | os.PathLike[str]) -> bytes | None:
    """The content of one of Kafka's text files; None if it isn't there.

    Raises OpenError if it can't be read, KsegError if it is too large for one.
    """
    try:
        return read_text_file(path)
    except OpenError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
