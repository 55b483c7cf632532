"""Ranges of bytes of a work order: their reader, and signs that a file has changed since the plan or an earlier run."""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from kseg.cluster.copies import SegmentSource
from kseg.errors import KsegError, OpenError
from kseg.export.plan import ByteRange
from kseg.export.read.header_offsets import HeaderOffsets
from kseg.export.results import Result, SourceFile, Tally
from kseg.export.settings import OffsetRange
from kseg.index.entries import OffsetIndex
from kseg.index.header_scan import checked_headers
from kseg.kernel.contract import MOST, ROW, SIZE, START
from kseg.log.segments import entry_problem
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run
from kseg.store import remote_files as remote
from kseg.store.location import is_remote
from kseg.system.new_directory import scratch_directory
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from pathlib import Path


class ChangedError(OpenError):
    """The error of a log that the cleaner or a new topic has replaced since it was listed."""


def has_gone(error: OpenError) -> bool:
    """Return True if the error means that a listed file is missing or replaced."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ChangedError | FileNotFoundError):
        cause = cause.__cause__
    return cause is not None


def _inode(path: StrPath) -> int | None:
    """Return a file's inode, or None if unavailable, in which case reading it reports the reason."""
    try:
        return os.stat(path).st_ino  # noqa: PTH116  faster
    except OSError:
        return None


AddBodies = Callable[[Iterator[Run | Damage], int, int], Iterator[HeaderOffsets | Slice | Damage]]
"""Function from runs and damages, their size and the limit of a body to the same with bodies, as far as needed."""


ReadRuns = Callable[[LogFile, int], Iterator[Run | Damage]]
"""Function that reads a log from a batch's position on."""


class RangeReader:
    """A context manager that reads one range; of a remote file, only the range is copied to this machine.

    end: the position where reading ended. crc: CRC-32C of the bytes from `start` to there; None after damage, or if no
    checksum is wanted. read_runs: reads the log.
    """

    def __init__(
        self, part: ByteRange, max_decompressed: int, *, checksum: bool = True, read_runs: ReadRuns = LogFile.runs
    ) -> None:
        self.part = part
        self.start = self.end = part.start
        self.crc: int | None = 0 if checksum else None
        self._max_decompressed = max_decompressed
        self._read_runs = read_runs
        self._clean_up = ExitStack()
        self._scratch: Path | None = None
        self._copied = (0, 0)

    def __enter__(self) -> "RangeReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._clean_up.close()

    def check_start(self, offset: int) -> None:
        """Restart at the segment's start if the batch at the range's start doesn't match the offset."""
        with self.open(self.part.start, self.part.end, None) as log_file:
            if entry_problem(log_file, offset, self.part.start) is not None:
                self.start = self.end = 0

    def items(self, end: int, add_bodies: AddBodies = with_bodies) -> Iterator[HeaderOffsets | Slice | Damage]:
        """Yield runs with bodies, and damages, from the last position up to `end`."""
        if self.end >= end:
            return
        with self.open(self.end, end, end) as log_file:
            is_cut = log_file.file_size > end
            runs = self._up_to(end, self._read_runs(log_file, self.end), is_cut=is_cut)
            yield from add_bodies(runs, end - self.end, self._max_decompressed)
        if self.end < end and is_cut:
            # A batch that crosses the end, or can't be read up to it, is read again with all following bytes visible.
            with self.open(self.end, max(self.part.size, end), None) as log_file:
                yield from add_bodies(self._beginning_below(end, log_file), 0, self._max_decompressed)

    def source(self) -> SourceFile:
        """Return the bytes that were read, as the manifest's entry."""
        part = self.part
        start = self.start if self.crc is None else self._new_from
        return SourceFile(part.path, part.size, part.modified_ms, min(start, self.end), self.end, self.crc)

    @property
    def _new_from(self) -> int:
        """The position of the first bytes that no earlier run has read: an index points somewhat before it."""
        read_to = self.part.read_to
        return self.start if read_to is None else max(self.start, read_to)

    def open(self, start: int, end: int, limit: int | None) -> LogFile:
        """Open the log. Only the given range of a remote log is read.

        Raises OpenError if it is missing, ChangedError if it was replaced since it was listed.
        """
        if not is_remote(self.part.path):
            return self._require_listed(LogFile.of_directory(self.part.place, self.part.size, limit))
        if self._scratch is None:
            self._scratch = self._clean_up.enter_context(scratch_directory())
        target = self._scratch / self.part.path.rpartition("/")[2]
        if not self._copied[0] <= start <= end <= self._copied[1]:
            target.unlink(missing_ok=True)
            remote.copy_range(self.part.path, target, start, end, self.part.size)
            os.truncate(target, self.part.size)
            self._copied = start, end
        return LogFile(target, limit)

    def _require_listed(self, log_file: LogFile) -> LogFile:
        """Return the log if its name still belongs to the listed file, so that nothing can have come in between."""
        part = self.part
        if part.inode and (log_file.file_size < part.size or _inode(part.place) not in (part.inode, None)):
            log_file.close()
            raise ChangedError("has changed since it was listed", part.place)
        return log_file

    def _up_to(self, end: int, items: Iterator[Run | Damage], *, is_cut: bool) -> Iterator[Run | Damage]:
        for item in items:
            if is_cut and isinstance(item, Damage) and item.position + item.size >= end:
                return
            yield self._note_item(item)

    def _beginning_below(self, end: int, log_file: LogFile) -> Iterator[Run | Damage]:
        for item in log_file.runs(self.end):
            if isinstance(item, Run):
                rows = item.rows
                count = sum(item.position + rows[row * ROW + START] < end for row in range(item.row_count))
                item = item._replace(row_count=count)
            yield self._note_item(item)
            if self.end >= end:
                return

    def _note_item(self, item: Run | Damage) -> Run | Damage:
        if isinstance(item, Damage):
            self.crc = None
            self.end = item.position + item.size
            return item
        last = (item.row_count - 1) * ROW
        end = item.rows[last + START] + item.rows[last + SIZE]
        start = max(item.rows[START], self._new_from - item.position)
        if self.crc is not None and start < end:
            from crc32c import crc32c

            self.crc = crc32c(item.buffer[start:end], self.crc)
        self.end = item.position + end
        return item


def crc_of_range(segment: SegmentSource, start: int, end: int) -> int | None:
    """Return the CRC-32C of bytes of a segment's log, or None if they are missing or unreadable.

    Raises OpenError if the log is missing, ChangedError if it was replaced since it was listed.
    """
    from crc32c import crc32c

    part = ByteRange(
        segment.log, segment.base_offset, start, end, end, segment.modified_ms, None, segment.inode, segment.directory
    )
    with RangeReader(part, 0) as reader, reader.open(start, end, None) as log_file:
        if log_file.file_size < end:
            return None
        crc = 0
        for position in range(start, end, 1 << 20):
            crc = crc32c(log_file.read(position, min(1 << 20, end - position)), crc)
        return crc if log_file.is_readable(start, end - start) else None


def is_cleaned(result: Result, segment: SegmentSource) -> bool:
    """Return True if an inactive segment holds the compacted remains of the records of a result.

    Its log belongs to the same topic. Returns False if the log was truncated and rewritten since, if that is unknown,
    or if damage was met, which may have been repaired. Raises OpenError if the log is missing.
    """
    tally = result.tally
    if not tally.epochs or tally.disordered or any(not loss.is_harmless for loss in tally.losses):
        return False
    first, end = tally.epochs[0][1], tally.next_offset or 0
    last = _last_below(end, segment)
    if last is None:
        return True
    if last.last_offset < first:
        return last.partition_leader_epoch <= tally.epochs[0][0]
    return _has_read(last, tally)


def is_decayed(result: Result, source: SourceFile, segment: SegmentSource) -> bool:
    """Return True if a log is now damaged where a result read it, and nothing else has changed there.

    Its log belongs to the same topic. Leader epochs tell whether it was truncated and rewritten since. Returns False
    then, if earlier damage was repaired, or if either is unknown. Raises OpenError if the log is missing.
    """
    tally, has_damage = result.tally, False
    if not tally.epochs or tally.disordered or segment.size < source.end:
        return False
    with _open_whole(segment) as log_file:
        for item in checked_headers(log_file, source.start):
            if item.position >= source.end:
                break
            if isinstance(item, Damage) or not item.is_valid:
                has_damage = True
            elif not _has_read(item, tally):
                return False
    return has_damage


def _has_read(header: BatchHeader, tally: Tally) -> bool:
    """Return True if a batch can be one that an order read, by its offsets and its leader epoch."""
    first, end = tally.epochs[0][1], tally.next_offset or 0
    if header.last_offset < first:
        return True  # the order began after it
    if header.first_offset >= end:
        return tally.open_from is not None  # the order ended before it, at an open transaction
    if tally.lost_offsets.meets(OffsetRange(header.first_offset, header.last_offset + 1)):
        return False
    epochs = {_epoch_of(max(header.first_offset, first), tally), _epoch_of(min(header.last_offset, end - 1), tally)}
    return epochs == {header.partition_leader_epoch}


def _epoch_of(offset: int, tally: Tally) -> int:
    place = bisect_right(tally.epochs, offset, key=lambda entry: entry[1]) - 1
    return tally.epochs[place][0]


def _last_below(end: int, segment: SegmentSource) -> BatchHeader | None:
    """Return the header of the last intact batch that begins below an offset, or None if it doesn't exist."""
    with _open_whole(segment) as log_file:
        for start in (_position_below(end, segment), 0):
            found = None
            for item in checked_headers(log_file, start):
                if isinstance(item, Damage) or not item.is_valid:
                    continue
                if item.first_offset >= end:
                    break
                found = item
            if found is not None:
                return found
    return None


@contextmanager
def _open_whole(segment: SegmentSource) -> Iterator[LogFile]:
    whole = ByteRange(
        segment.log, segment.base_offset, 0, segment.size, segment.size, segment.modified_ms, None, 0, segment.directory
    )
    with RangeReader(whole, 0, checksum=False) as reader, reader.open(0, segment.size, None) as log_file:
        yield log_file


def _position_below(end: int, segment: SegmentSource) -> int:
    """Return a position to search from, according to the offset index; 0 without a readable index."""
    if segment.offset_index is None or is_remote(segment.offset_index):
        return 0
    with suppress(KsegError), OffsetIndex(segment.offset_index, segment.base_offset) as index:
        position = index.lookup(min(end, MOST) - 1).position
        return position if position < segment.size else 0
    return 0
