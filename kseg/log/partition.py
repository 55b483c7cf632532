"""A partition directory: its segments by base offset, and the files next to them."""

import errno
import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kseg.errors import FileError, KsegError, OpenError
from kseg.formats.file_names import (
    DirectoryState,
    FileKind,
    PartitionDirectory,
    parse_file_name,
    parse_partition_directory,
)
from kseg.log.segments import FoundFile, SegmentFiles, path_text, read_tail, swapped_in
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.system.directory_names import DirectoryNames, find_settled_ns, list_names
from kseg.system.files import read_text_file
from kseg.system.placed_path import PlacedPath, as_path
from kseg.tiered.placed_tiers import placed_at

if TYPE_CHECKING:
    from kseg.index.producers import ProducerStates


LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
CHECKPOINT_OF_FIELD = {
    "recovery_point": "recovery-point-offset-checkpoint",
    "high_watermark": "replication-offset-checkpoint",
    "log_start_offset": "log-start-offset-checkpoint",
    "clean_offset": "cleaner-offset-checkpoint",
}
"""Fields of Checkpoints, and the log directory's file of each."""
OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
COMPACTED_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Internal topics that Kafka always compacts."""
METADATA_TOPIC = "__cluster_metadata"
"""The metadata topic of a KRaft cluster; its log has its own rules."""
_INDEX_KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


class Checkpoints(NamedTuple):
    """A partition's entries in the checkpoint files of its log directory, or None if there is no entry.

    `clean_offset` is the cleaner's: the first offset that it hasn't cleaned.
    """

    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    clean_offset: int | None = None


CheckpointsByPartition = dict[tuple[str | None, int | None], Checkpoints]
"""Checkpoints by topic and partition."""


def read_checkpoints(path: Path, problems: list[KsegError] | None = None) -> CheckpointsByPartition:
    """Read a log directory's checkpoints, by (topic, partition).

    Unreadable files are ignored; `problems` collects the reasons, each with its path.
    """
    if not any((path / name).exists() for name in CHECKPOINT_OF_FIELD.values()):
        return {}
    from kseg.formats.checkpoints import parse_offset_checkpoint

    found: dict[tuple[str | None, int | None], dict[str, int]] = {}
    for field, name in CHECKPOINT_OF_FIELD.items():
        try:
            entries = parse_offset_checkpoint(read_small_file(path / name) or b"").entries
        except FileError as error:
            if problems is not None:
                problems.append(KsegError(error.message, path / name, error.position))
            continue
        for topic, partition, offset in entries:
            found.setdefault((topic, partition), {})[field] = offset
    return {key: Checkpoints(**fields) for key, fields in found.items()}


def cleaned_topics(log_dir: Path) -> frozenset[str]:
    """Return the topics with a cleaned partition, by the cleaner's checkpoint of a log directory."""
    known = read_checkpoints(log_dir)
    return frozenset(topic for (topic, _), each in known.items() if topic and each.clean_offset is not None)


def was_compacted(topic: str | None, checkpoints: Checkpoints, first_offset: int) -> bool:
    """Return True if the log cleaner may have removed records of a log that begins at an offset."""
    clean_offset = checkpoints.clean_offset
    return topic in COMPACTED_TOPICS or (clean_offset is not None and clean_offset > first_offset)


def tell_of_cleaning(directories: Iterable[Path]) -> list[bool]:
    """Return for each copy of a partition whether its cleaning is known: an uncleaned copy has all of its offsets.

    It is known if the log directory has the cleaner's checkpoint, or some copy is in a remote tier: such a topic is
    never compacted. Source: LogConfig.validateRemoteStorageRequiresDeleteCleanupPolicy.
    """
    found = [*directories]
    is_tiered = any(placed_at(each) is not None for each in found)
    return [is_tiered or (each.absolute().parent / _OF_CLEANER).exists() for each in found]


_OF_CLEANER = CHECKPOINT_OF_FIELD["clean_offset"]


def is_gapless(topic: str | None, checkpoints: Checkpoints, first_offset: int, *, is_told: bool) -> bool:
    """Return True if each offset of a log had a batch. is_told: from `tell_of_cleaning`."""
    return is_told and not was_compacted(topic, checkpoints, first_offset)


class PartitionLog:
    """A listed partition directory; segments are read only when needed.

    path: the directory. segments: by base offset, each with a log. base_offsets: theirs. orphans: indexes that have no
    log. snapshots: producer snapshots by end offset. metadata_snapshots: KRaft's. leftovers: files that end in
    `.deleted`, `.cleaned`, `.swap` (they may be segments too), `.tmp`, `.part`. others: all other files.
    has_time_indexes: whether any segment has one: brokers before 0.10.1 wrote none. has_indexes: whether any has an
    offset or time index: logs may be copied without them. largest_timestamps: results of lookups, by base offset: the
    largest timestamp, and the problems of the time index. open_whole: opens a log together with those of other copies;
    None: it is read alone.

    If the directory changes, this value stays as listed; opening a file that is deleted meanwhile raises OpenError.
    Source: UnifiedLog, LogSegments.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        checkpoints: Checkpoints | None = None,
        names: DirectoryNames | None = None,
    ) -> None:
        """List the directory.

        Args:
            path: the partition's directory.
            checkpoints: those of its log directory; None reads them from the parent directory.
            names: the directory's names if it was already listed; None lists it.

        Raises:
            OpenError: if the directory can't be listed.
        """
        self.path = as_path(path)
        name = parse_partition_directory(self.directory_name)
        self.name: PartitionDirectory | None = name
        self._checkpoints = checkpoints
        self.largest_timestamps: dict[int, tuple[int, tuple[str, ...]]] = {}
        self.open_whole: Callable[[Path], LogFile] | None = None
        if names is None:
            names = list_names(self.path)
        elif not os.path.isdir(self.path):  # noqa: PTH112  quicker
            raise OpenError(f"can't be listed: {os.strerror(errno.ENOENT)}", self.path)
        self._settled_ns = names.settled_ns
        self._take(_regular_files(self.path, names.files))

    def open_log(self, segment: SegmentFiles, *, keep_cache: bool = True) -> LogFile:
        """Open a segment's log, with the batches of other copies if `open_whole` was set. Raises OpenError."""
        if self.open_whole is not None:
            return self.open_whole(segment.path)
        return segment.open_log(keep_cache=keep_cache)

    def relist(self) -> "PartitionLog":
        """Return the directory with its present files, to be read with the same other copies.

        Returns itself if they are certainly the same; logs may have grown. Raises OpenError if the directory was
        deleted.
        """
        if self._settled_ns == find_settled_ns(self.path) != 0:
            return self
        listed = PartitionLog(self.path)
        listed.open_whole = self.open_whole
        return listed

    @property
    def directory_name(self) -> str:
        """The directory's own name for messages, also if it was given as `.`."""
        return self.path.name if self.path.name not in ("", "..") else self.path.resolve().name

    @cached_property
    def log_dir(self) -> Path:
        """The parent directory: a broker's log directory, if a broker wrote it."""
        return self.path.absolute().parent

    @property
    def topic(self) -> str | None:
        """The topic, or None if the directory isn't named after one."""
        return None if self.name is None else self.name.topic

    @property
    def partition(self) -> int | None:
        """The partition number."""
        return None if self.name is None else self.name.partition

    @property
    def state(self) -> DirectoryState | None:
        """The directory's state: being deleted, being moved, or a stray, or None if it is in use."""
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

    def files(self) -> Iterator[FoundFile]:
        """Return all files of the directory."""
        for segment in (*self.segments, *self.orphans):
            yield from segment.files
        yield from self.snapshots.values()
        yield from (*self.metadata_snapshots, *self.leftovers, *self.others)

    @property
    def allocated(self) -> int:
        """Disk space of all files, in bytes."""
        return sum(file.allocated for file in self.files())

    @property
    def has_content(self) -> bool:
        """True if there is any file of a log (segment, index, snapshot), even an empty one; or a remote tier."""
        files = (self.segments, self.orphans, self.snapshots, self.metadata_snapshots, self.leftovers)
        return any(files) or placed_at(self.path) is not None

    @property
    def active_segment(self) -> SegmentFiles | None:
        """The segment that is appended to: the last one."""
        return self.segments[-1] if self.segments else None

    def is_last(self, segment: SegmentFiles) -> bool:
        """Return True if a broker may still have written to a segment: to the last one, to none in a remote tier."""
        placed = placed_at(self.path)
        is_stored = placed is not None and placed.used_at(segment.base_offset) is not None
        return segment is self.segments[-1] and not is_stored

    def floor_slot(self, offset: int) -> int | None:
        """Return the slot of the segment with the largest base offset ≤ `offset`, or None if all are above.

        Source: LogSegments.
        """
        slot = bisect_right(self.base_offsets, offset) - 1
        return slot if slot >= 0 else None

    def checkpoints(self) -> Checkpoints:
        """Return the partition's entries in the checkpoints of its log directory; empty if they can't be read."""
        if self._checkpoints is None:
            own = (self.topic, self.partition)
            found = read_checkpoints(self.log_dir) if self.name is not None else {}
            self._checkpoints = found.get(own, Checkpoints()) if self.state is None else Checkpoints()
        return self._checkpoints

    def log_start_offset(self, tier: "RemoteTier | None" = None) -> int:
        """Return the first readable offset: in a remote tier, or else on this disk.

        On disk it is the first segment's base offset or, if higher, the checkpoint.
        """
        if tier is not None:
            return tier.log_start_offset
        return max(self.base_offsets[0] if self.base_offsets else 0, self.checkpoints().log_start_offset or 0)

    @property
    def disk_start_offset(self) -> int:
        """The first offset on the broker's own disk, if the log was joined with its tier; otherwise the log's start."""
        placed = placed_at(self.path)
        own = None if placed is None else placed.local_start
        return self.log_start_offset() if own is None else max(self.log_start_offset(), own)

    @property
    def disk_segments(self) -> tuple[SegmentFiles, ...]:
        """The segments on the broker's own disk; all if the log wasn't joined with its tier."""
        placed = placed_at(self.path)
        own = None if placed is None else placed.local_start
        return self.segments if own is None else self.segments[self.floor_slot(own) or 0 :]

    @property
    def has_log_start_checkpoint(self) -> bool:
        """True if the log directory has the checkpoint of logs that start above their first segment's base offset.

        A broker lists only such partitions there.
        """
        return (self.log_dir / CHECKPOINT_OF_FIELD["log_start_offset"]).exists()

    def read_log_end_offset(self) -> int:
        """Return the offset of `read_end` alone."""
        return self.read_end().offset

    def read_end(self, known: Mapping[int, BatchHeader | None] = MappingProxyType({})) -> "PartitionEnd":
        """Return the end of the log: after the last readable batch, and not below the log start offset.

        Reads the last segment from its last index entry on, unless its last batch is known, by its base offset. Raises
        OpenError if a file can't be opened. Source: LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd.
        """
        end = self._read_end_of_batches(known)
        return end._replace(offset=max(end.offset, self.log_start_offset()))

    def _read_end_of_batches(self, known: Mapping[int, BatchHeader | None]) -> "PartitionEnd":
        damage: Damage | None = None
        for segment in reversed(self.segments):
            if segment.base_offset in known:
                last = known[segment.base_offset]
            else:
                tail = read_tail(segment)
                last = tail.last
                damage = tail.damage if segment is self.active_segment else damage
            if last is not None:
                return PartitionEnd(last.last_offset + 1, last, damage)
            if segment.size == 0 or segment is self.segments[0]:
                return PartitionEnd(segment.base_offset, None, damage)
        return PartitionEnd(0, None)

    def read_topic_id(self) -> str | None:
        """Return the topic id from `partition.metadata`, or None if it doesn't exist.

        Raises KsegError if it can't be read.
        """
        return read_topic_id(self.path)

    def read_leader_epochs(self) -> tuple[tuple[int, int], ...] | None:
        """Return (epoch, start offset) from `leader-epoch-checkpoint`, or None if it doesn't exist.

        KsegError if unreadable.
        """
        from kseg.formats.checkpoints import parse_leader_epoch_checkpoint

        content = read_small_file(path_text(self.path, LEADER_EPOCH_CHECKPOINT))
        if content is None:
            return None
        return tuple((entry.epoch, entry.start_offset) for entry in parse_leader_epoch_checkpoint(content).entries)

    def was_compacted(self) -> bool:
        """Return True if the log cleaner may have removed records: by the topic, or by the cleaner's checkpoint."""
        return was_compacted(self.topic, self.checkpoints(), self.base_offsets[0] if self.base_offsets else 0)

    def is_gapless(self, *, is_told: bool | None = None) -> bool:
        """Return True if each offset had a batch. is_told: from `tell_of_cleaning`; None: by this copy alone."""
        first = self.base_offsets[0] if self.base_offsets else 0
        if is_told is None:
            (is_told,) = tell_of_cleaning([self.path])
        return is_gapless(self.topic, self.checkpoints(), first, is_told=is_told)

    def read_producer_states(self, offset: int) -> "ProducerStates | None":
        """Return the producers at an offset, by the snapshot that ends there.

        None without a snapshot that a broker would use.

        An unreadable snapshot counts as none.
        """
        from kseg.index.producers import ProducerSnapshot, ProducerStates

        file = self.snapshots.get(offset)
        if file is None:
            return None
        try:
            with ProducerSnapshot(file.path) as snapshot:
                return ProducerStates(snapshot.entries()) if snapshot.problem() is None else None
        except FileError:  # too short for its header, or unreadable
            return None


def read_topic_id(directory: Path) -> str | None:
    """Return the topic id in a directory's `partition.metadata`, or None if there isn't one.

    Raises KsegError if it can't be read.
    """
    from kseg.formats.checkpoints import parse_partition_metadata

    content = read_small_file(path_text(directory, PARTITION_METADATA))
    return None if content is None else parse_partition_metadata(content).topic_id


def _segments(
    offsets: Iterable[int], logs: dict[int, FoundFile], indexes: list[dict[int, FoundFile]]
) -> tuple[SegmentFiles, ...]:
    return tuple(
        SegmentFiles(offset, logs.get(offset), *[found.get(offset) for found in indexes]) for offset in sorted(offsets)
    )


class PartitionEnd(NamedTuple):
    """The end of a partition log: the next offset, and the last batch if the last segment has one.

    damage: at the active segment's end; None too if its last batch was already known.
    """

    offset: int
    last: BatchHeader | None
    damage: Damage | None = None


def _next_offset(base_offset: int, log: FoundFile) -> int | None:
    try:
        last = read_tail(SegmentFiles(base_offset, log)).last
    except OpenError:
        return None
    return None if last is None else last.last_offset + 1


def _regular_files(path: Path, names: Iterable[str]) -> Iterator[FoundFile]:
    """Yield the regular files of a directory among some names, without those deleted meanwhile."""
    is_placed = isinstance(path, PlacedPath)
    for name in names:
        try:
            status = os.stat(path_text(path, name))  # noqa: PTH116  quicker
        except FileNotFoundError:
            continue
        except OSError:
            yield FoundFile(path, name, 0, 0)  # unknown size; opening it shows the reason
            continue
        if not stat.S_ISREG(status.st_mode):
            continue
        blocks: int | None = getattr(status, "st_blocks", None)
        if is_placed and (path / name).source is not None:  # type: ignore[attr-defined]
            blocks = None  # of an empty file here
        yield FoundFile(path, name, status.st_size, status.st_mtime_ns // 1_000_000, status.st_ino, blocks)


def read_small_file(path: str | os.PathLike[str]) -> bytes | None:
    """Return the content of a Kafka text file, or None if it doesn't exist.

    Raises OpenError if it can't be read, KsegError if it is too large for one.
    """
    try:
        return read_text_file(path)
    except OpenError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def was_closed(log: Path) -> bool:
    """Return True if a log's segment is in a remote tier, or has a later one next to it; False if that isn't known."""
    own = parse_file_name(log).base_offset
    placed = placed_at(log.parent)
    if placed is not None and own is not None and placed.used_at(own) is not None:
        return True
    try:
        names = [parse_file_name(name) for name in os.listdir(log.absolute().parent)]  # noqa: PTH208  names are enough
    except OSError:
        return False
    return own is not None and any(
        name.kind is FileKind.LOG and name.suffix is None and (name.base_offset or 0) > own for name in names
    )


class RemoteTier(NamedTuple):
    """A partition's remote tier: the log start offset, and the first local offset.

    `highest_offset`: the highest one ever copied to the tier; None if it isn't known.
    """

    log_start_offset: int
    local_start_offset: int
    highest_offset: int | None = None

    @property
    def first_not_copied(self) -> int | None:
        """The first offset that isn't in the tier yet, or None if the copied offsets aren't known."""
        return None if self.highest_offset is None else max(self.highest_offset + 1, self.log_start_offset)

    @property
    def has_remote_part(self) -> bool:
        """True if some offsets are only remote."""
        return self.log_start_offset < self.local_start_offset

    def text(self) -> str:
        """Return the places of its offsets, for people; empty if all are local."""
        if not self.has_remote_part:
            return ""
        last = self.local_start_offset - 1
        return f"local from {self.local_start_offset}; {self.log_start_offset}\u2013{last} in the remote tier"


def remote_tier_of(partition: PartitionLog, is_tiered: bool | None) -> RemoteTier | None:
    """Return the tier of a partition, or None if it has none.

    A broker lists a partition in `log-start-offset-checkpoint` if its log starts above its first segment, or if it has
    a tier: then the offset there may be below the segment. In a checkpoint from before the last deletion it is below,
    too. In that case `leader-epoch-checkpoint`, which a broker cuts at the start of the log or tier, has nothing
    there. Source: LogManager.checkpointLogStartOffsetsInDir, LogLoader, LeaderEpochFileCache.truncateFromStart.

    Args:
        partition: the partition.
        is_tiered: by the topic's settings; None if they aren't known.
    """
    if not partition.base_offsets or is_tiered is False:
        return None
    base = partition.base_offsets[0]
    start = partition.checkpoints().log_start_offset
    if is_tiered:
        if start is None:
            start = _start_of_epochs(partition, base)
        return RemoteTier(start, max(start, base))
    if start is None or start >= base or _start_of_epochs(partition, start) >= base:
        return None
    return RemoteTier(start, base)


def _start_of_epochs(partition: PartitionLog, default: int) -> int:
    """Return the first offset in `leader-epoch-checkpoint`; the default if the file is missing or can't be read."""
    try:
        epochs = partition.read_leader_epochs() or ()
    except FileError:
        return default
    return min((offset for _, offset in epochs), default=default)
