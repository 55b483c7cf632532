"""Segments of a partition: their files, tails and interrupted swaps, the reasons for rolls, and retention."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeVar

from kseg.errors import FileError, OpenError, plural
from kseg.formats.codes import (
    MAXIMUM_RELATIVE_OFFSET,
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
    SEGMENT_MS,
    UNLIMITED,
)
from kseg.formats.file_names import FileKind
from kseg.formats.header_fields import OFFSET_INDEX_ENTRY_FIELDS, TIME_INDEX_ENTRY_FIELDS, OffsetIndexEntry
from kseg.index.entries import OffsetIndex
from kseg.index.header_scan import header_of, header_runs, intact_header, pass_all
from kseg.reading.batch import Batch, BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.system.placed_path import PlacedPath, StrPath


class FoundFile(NamedTuple):
    """A listed file: bytes, and milliseconds since 1970 of its last modification.

    inode: its number in the file system, 0 if unknown: another file of the same name may replace it. blocks: its
    allocated blocks of 512 bytes; None if the system doesn't report them.
    """

    directory: Path
    name: str
    size: int
    modified_ms: int
    inode: int = 0
    blocks: int | None = None

    @property
    def allocated(self) -> int:
        """Allocated disk space in bytes; its size if that isn't known."""
        return self.size if self.blocks is None else 512 * self.blocks

    @property
    def path(self) -> Path:
        """The file path."""
        return self.directory / self.name

    @property
    def full_name(self) -> StrPath:
        """The path as text, which takes a tenth of the time; a path if it is placed."""
        return path_text(self.directory, self.name)


def path_text(directory: Path, name: str) -> StrPath:
    """Return the path of a file in a directory as text; as a path if that is placed."""
    if isinstance(directory, PlacedPath):
        return directory / name
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
            raise FileError(f"the segment with base offset {self.base_offset} has no .log file")
        return self.log

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return 0 if self.log is None else self.log.size

    @property
    def files(self) -> tuple[FoundFile, ...]:
        """The segment files, the log first."""
        return tuple(file for file in self[1:] if file is not None)

    def open_log(self, *, keep_cache: bool = True) -> LogFile:
        """Open the log; one that can't be opened is completely unreadable. Raises OpenError if it was deleted."""
        log = self._own_log
        return LogFile.of_directory(log.full_name, log.size, keep_cache=keep_cache)


SWAP = ".swap"
CLEANED = ".cleaned"
File = TypeVar("File")


def swapped_in(
    named: Iterable[tuple[FileKind, int, str, File]],
    found: Mapping[FileKind, dict[int, File]],
    next_offset: Callable[[int, File], int | None],
) -> None:
    """Complete interrupted swaps in the files of segments, by kind and base offset: logs and their indexes.

    A swap at or above the lowest `.cleaned` file is part of an unfinished split: a broker drops it too. A swap without
    an intact batch isn't used if there is a readable log of its base offset.

    Args:
        named: files with a suffix: kind, base offset, suffix.
        found: files without one.
        next_offset: gives the offset after a log's last batch; None if it has no readable batch.
    """
    named = list(named)
    logs = found[FileKind.LOG]
    swaps: list[tuple[int, int]] = []
    for base in complete_swaps(each[:3] for each in named):
        log = next(each[3] for each in named if each[:3] == (FileKind.LOG, base, SWAP))
        end = next_offset(base, log)
        if end is not None or base not in logs:
            swaps.append((base, base if end is None else end))
    if not swaps:
        return
    first, end = swaps[0][0], max(end for _, end in swaps)
    for files in found.values():
        for base in [base for base in files if first <= base < end or any(base == own for own, _ in swaps)]:
            del files[base]
    bases = {base for base, _ in swaps}
    for kind, base, suffix, file in named:
        if suffix == SWAP and base in bases and kind in found:
            found[kind][base] = file


def complete_swaps(names: Iterable[tuple[FileKind, int, str]]) -> list[int]:
    """Return the base offsets of the logs that a broker would swap in at startup."""
    names = list(names)
    unfinished = min((base for _, base, suffix in names if suffix == CLEANED), default=None)
    swaps = sorted(base for kind, base, suffix in names if kind is FileKind.LOG and suffix == SWAP)
    return [base for base in swaps if unfinished is None or base < unfinished]


class RollReason(StrEnum):
    """The reason why a segment was rolled."""

    ACTIVE = "active"
    SIZE = "size"
    TIME = "time"
    INDEX_FULL = "index-full"
    OFFSET_RANGE = "offset-range"
    UNKNOWN = "unknown"


class Retention(StrEnum):
    """The effect of `cleanup.policy=delete` on a segment."""

    KEEP = "keep"
    COMPACTED = "compacted, policy unknown"
    DELETE_LOG_START = "delete-log-start"
    DELETE_SIZE = "delete-size"
    DELETE_TIME = "delete-time"

    @property
    def is_deletion(self) -> bool:
        """True if the segment is deleted."""
        return self not in (Retention.KEEP, Retention.COMPACTED)


@dataclass(frozen=True, slots=True)
class RollSettings:
    """A topic's settings for rolling; the defaults are Kafka's."""

    segment_bytes: int = SEGMENT_BYTES
    segment_ms: int = SEGMENT_MS
    segment_index_bytes: int = SEGMENT_INDEX_BYTES


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """A topic's settings for retention, -1 for none; `now_ms`: the current time for them.

    is_policy_unknown: the topic is compacted, and it isn't known whether segments are also deleted by age and size.
    highest_remote_offset: of a tiered topic, the last offset that was copied to the remote tier; a segment beyond it
    stays on the disk. None if the topic has no tier, or the offset is unknown.
    """

    now_ms: int
    retention_ms: int = RETENTION_MS
    retention_bytes: int = UNLIMITED
    is_policy_unknown: bool = False
    highest_remote_offset: int | None = None


class ClosedSegment(NamedTuple):
    """The facts about a segment that the rules for rolling need.

    `first_timestamp` is the largest of its first batch, -1 for none.
    """

    base_offset: int
    size: int
    first_timestamp: int
    offset_entries: int
    time_entries: int


class NextAppend(NamedTuple):
    """The first batch of the next segment: the append that caused the roll, or its beginning."""

    size: int
    last_offset: int
    max_timestamp: int


def why_rolled(segment: ClosedSegment, append: NextAppend | None, settings: RollSettings) -> RollReason:
    """Return the first Kafka rule that applies; UNKNOWN if none does, or if the next segment is empty.

    Compaction changes sizes and first batches, and a follower's append may have been larger than its first batch.
    Source: LogSegment.shouldRoll.
    """
    if append is None:
        return RollReason.UNKNOWN
    if segment.size > settings.segment_bytes - append.size:
        return RollReason.SIZE
    waited = append.max_timestamp - segment.first_timestamp
    if segment.size > 0 and segment.first_timestamp >= 0 and waited > settings.segment_ms:
        return RollReason.TIME
    most_offsets = settings.segment_index_bytes // OFFSET_INDEX_ENTRY_FIELDS.struct.size
    most_times = settings.segment_index_bytes // TIME_INDEX_ENTRY_FIELDS.struct.size - 1
    if segment.offset_entries >= most_offsets or segment.time_entries >= most_times:
        return RollReason.INDEX_FULL
    if append.last_offset - segment.base_offset > MAXIMUM_RELATIVE_OFFSET:
        return RollReason.OFFSET_RANGE
    return RollReason.UNKNOWN


class RetainedSegment(NamedTuple):
    """The facts about a segment that retention needs; `end_offset` is the next one's base, or the log end offset.

    is_dated_by_file: its records have no timestamps, so `largest_timestamp` is its file's modification time.
    """

    size: int
    largest_timestamp: int
    end_offset: int
    is_dated_by_file: bool = False


def retention_of(
    segments: Sequence[RetainedSegment],
    settings: RetentionSettings,
    log_start_offset: int,
    high_watermark: int | None = None,
) -> list[Retention]:
    """Return the effect of retention on each segment of a partition, oldest first, in one pass of a broker.

    Like Kafka, by log start offset, then by size, then by time. Each rule begins at the oldest remaining segment, and
    ends at the first one that it doesn't match. An empty last segment stays, and everything beyond the high watermark;
    by size and time also everything that the remote tier lacks. Source: UnifiedLog.deleteOldSegments,
    isSegmentEligibleForDeletion.
    """
    decisions = [Retention.KEEP] * len(segments)
    excess = sum(segment.size for segment in segments) - settings.retention_bytes
    done = 0

    def may_go(slot: int) -> bool:
        is_last = slot == len(segments) - 1
        below = high_watermark is None or segments[slot].end_offset <= high_watermark
        return below and not (is_last and segments[slot].size == 0)

    def may_expire(slot: int) -> bool:
        copied = settings.highest_remote_offset
        return may_go(slot) and (copied is None or segments[slot].end_offset - 1 <= copied)

    while done < len(segments) - 1 and segments[done].end_offset <= log_start_offset and may_go(done):
        excess -= segments[done].size
        decisions[done] = Retention.DELETE_LOG_START
        done += 1
    while settings.retention_bytes >= 0 and done < len(segments) and excess >= segments[done].size and may_expire(done):
        excess -= segments[done].size
        decisions[done] = Retention.DELETE_SIZE
        done += 1
    while settings.retention_ms >= 0 and done < len(segments) and may_expire(done):
        if settings.now_ms - segments[done].largest_timestamp <= settings.retention_ms:
            break
        decisions[done] = Retention.DELETE_TIME
        done += 1
    return decisions


class Tail(NamedTuple):
    """The end of a segment's log.

    first_position: the start of reading: the last index entry, or 0. first, last: the headers of the first batch from
    there on and of the last one, None if none was found. max_timestamp: the largest of the batches read, -1 if there
    is none. damage: the last one found. index_problem: the reason why an existing offset index wasn't used.
    """

    first_position: int
    first: BatchHeader | None
    last: BatchHeader | None
    max_timestamp: int
    damage: Damage | None
    index_problem: str | None = None


def read_tail(segment: SegmentFiles, *, keep_cache: bool = False) -> Tail:
    """Read the end of a segment: headers from its last index entry on if that matches the log.

    Otherwise from the start.

    `keep_cache`: as in LogFile. Raises OpenError if the log can't be opened.
    """
    with segment.open_log(keep_cache=keep_cache) as log_file:
        return tail_of(log_file, read_index_end(segment))


class IndexEnd(NamedTuple):
    """The end of a segment's offset index: its last entry, number of entries, and bytes of the file.

    The last entry is None without an index. has_trailing: bytes follow the last complete entry. error: the reason why
    it can't be opened or read.
    """

    last: OffsetIndexEntry | None = None
    entries: int = 0
    size: int = 0
    has_trailing: bool = False
    error: OpenError | None = None


def read_index_end(segment: SegmentFiles) -> IndexEnd:
    """Read the end of a segment's offset index, if it has one."""
    if segment.offset_index is None:
        return IndexEnd()
    try:
        with OffsetIndex(segment.offset_index.full_name, segment.base_offset) as index:
            return IndexEnd(index.last_entry(), index.count, index.size, index.trailing > 0)
    except OpenError as error:
        return IndexEnd(size=segment.offset_index.size, error=error)


def tail_of(log_file: LogFile, index: IndexEnd) -> Tail:
    """Return the end of an open log, like `read_tail`."""
    problem: str | None = str(index.error) if index.error is not None and index.size else None
    if index.last is None or index.last.position == 0:
        return _tail_from(log_file, 0, None, problem)
    known = _header_of_entry(log_file, index.last.offset, index.last.position)
    if isinstance(known, str):
        return _tail_from(log_file, 0, None, known)
    return _tail_from(log_file, known.position, known._replace(is_valid=None), None)


def _tail_from(log_file: LogFile, start: int, known: BatchHeader | None, problem: str | None) -> Tail:
    """Return the tail from a batch on, whose header may already be known."""
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
    """Return how the log contradicts an index entry, or None if a search may start there.

    The position must have a batch with a correct CRC that begins at or below the entry's offset. Then no offset from
    the entry's on is earlier in the log, whichever offset of its batch or append the entry has.
    """
    if position == 0:
        return None
    found = _header_of_entry(log_file, offset, position)
    return found if isinstance(found, str) else None


def _header_of_entry(log_file: LogFile, offset: int, position: int) -> BatchHeader | str:
    """Return the header of the batch that an entry points at, or how the log contradicts the entry."""
    if not 0 < position < log_file.size:
        return f"the entry {offset} → {position} points beyond the log's {plural(log_file.size, 'byte')}"
    header = intact_header(log_file, position)
    if header is None:
        return f"the entry {offset} → {position} doesn't point at an intact batch"
    first = header.first_offset
    if header.base_offset is None and first > offset:
        first = Batch.parse(log_file.read(header.position, header.size), header.position, is_valid=True).base_offset
    if first > offset:
        return f"the entry {offset} → {position} points at a batch that begins with offset {first}"
    return header
