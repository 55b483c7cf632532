"""Runs and damages of a range of bytes of a log: ranges that meet give each batch once, whatever damage is there.

A range owns the batches that begin in it. Where it was cut at a place that is no batch's start, since the index was
wrong, the range before reads the batch to its end, and the one after it finds the next start by itself.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from kseg.errors import OpenError
from kseg.export import remote
from kseg.export.copies import SegmentSource
from kseg.export.plan import ByteRange
from kseg.export.result import SourceFile
from kseg.kernel.contract import ROW, SIZE, START
from kseg.log.partition.segment_tail import entry_problem
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile, Run
from kseg.system.scratch import scratch_directory


class ChangedError(OpenError):
    """A log isn't the one any more that was listed: the cleaner or a new topic has taken its place."""


def has_gone(error: OpenError) -> bool:
    """Whether a file isn't there any more that was listed, or another one is in its place."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ChangedError | FileNotFoundError):
        cause = cause.__cause__
    return cause is not None


def _inode(path: str) -> int | None:
    """The number of a file; None if it can't be had: reading it shows why."""
    try:
        return Path(path).stat().st_ino
    except OSError:
        return None


class RangeReader:
    """One range, read; a context manager. Remote files are copied to this machine, the range alone.

    end: up to where it was read. crc: CRC-32C of the bytes from `start` to there; None once damage was met, and where
    no checksum is wanted.
    """

    def __init__(self, part: ByteRange, max_decompressed: int, *, checksum: bool = True) -> None:
        self.part = part
        self.start = self.end = part.start
        self.crc: int | None = 0 if checksum else None
        self._max_decompressed = max_decompressed
        self._clean_up = ExitStack()
        self._scratch: Path | None = None
        self._copied = (0, 0)

    def __enter__(self) -> "RangeReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._clean_up.close()

    def check_start(self, offset: int) -> None:
        """Begins with the segment's start, if the batch at the range's start can't be the one for the offset."""
        with self.open(self.part.start, self.part.end, None) as log_file:
            if entry_problem(log_file, offset, self.part.start) is not None:
                self.start = self.end = 0

    def items(self, end: int | None = None) -> Iterator[Slice | Damage]:
        """Slices and damages from where reading ended, up to the range's end or that one."""
        end = self.part.end if end is None else end
        if self.end >= end:
            return
        with self.open(self.end, end, end) as log_file:
            is_cut = log_file.file_size > end
            runs = self._up_to(end, log_file.runs(self.end), is_cut=is_cut)
            yield from with_bodies(runs, end - self.end, self._max_decompressed)
        if self.end < end and is_cut:
            # What crosses the end, or can't be read up to it: looked at again with all that follows in sight.
            with self.open(self.end, max(self.part.size, end), None) as log_file:
                yield from with_bodies(self._beginning_below(end, log_file), 0, self._max_decompressed)

    def source(self) -> SourceFile:
        """What was read, for the manifest."""
        part = self.part
        start = self.start if self.crc is None else self._new_from
        return SourceFile(part.path, part.size, part.modified_ms, min(start, self.end), self.end, self.crc)

    @property
    def _new_from(self) -> int:
        """Where the bytes begin that no earlier run has read: an index leads to a place somewhat before it."""
        read_to = self.part.read_to
        return self.start if read_to is None else max(self.start, read_to)

    def open(self, start: int, end: int, limit: int | None) -> LogFile:
        """The log; of a remote one the bytes from `start` to `end`.

        Raises OpenError if it has gone, ChangedError if another one has taken its place since it was listed.
        """
        if not remote.is_remote(self.part.path):
            return self._require_listed(LogFile.of_directory(self.part.path, self.part.size, limit))
        if self._scratch is None:
            self._scratch = self._clean_up.enter_context(scratch_directory())
        target = self._scratch / self.part.path.rpartition("/")[2]
        if not self._copied[0] <= start <= end <= self._copied[1]:
            target.unlink(missing_ok=True)
            remote.copy_range(self.part.path, target, start, end)
            os.truncate(target, self.part.size)
            self._copied = start, end
        return LogFile(target, limit)

    def _require_listed(self, log_file: LogFile) -> LogFile:
        """The log, if the name is still that of the file that was listed: nothing can have come in between then."""
        part = self.part
        if part.inode and (log_file.file_size < part.size or _inode(part.path) not in (part.inode, None)):
            log_file.close()
            raise ChangedError("has changed since it was listed", part.path)
        return log_file

    def _up_to(self, end: int, items: Iterator[Run | Damage], *, is_cut: bool) -> Iterator[Run | Damage]:
        for item in items:
            if is_cut and isinstance(item, Damage) and item.position + item.size >= end:
                return
            yield self._seen(item)

    def _beginning_below(self, end: int, log_file: LogFile) -> Iterator[Run | Damage]:
        for item in log_file.runs(self.end):
            if isinstance(item, Run):
                rows = item.rows
                count = sum(item.position + rows[row * ROW + START] < end for row in range(item.row_count))
                item = item._replace(row_count=count)
            yield self._seen(item)
            if self.end >= end:
                return

    def _seen(self, item: Run | Damage) -> Run | Damage:
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
    """CRC-32C of bytes of a segment's log; None if they aren't there, or can't be read.

    Raises OpenError if the log has gone, ChangedError if another one has taken its place since it was listed.
    """
    from crc32c import crc32c

    part = ByteRange(segment.log, segment.base_offset, start, end, end, segment.modified_ms, inode=segment.inode)
    with RangeReader(part, 0) as reader, reader.open(start, end, None) as log_file:
        if log_file.file_size < end:
            return None
        crc = 0
        for position in range(start, end, 1 << 20):
            crc = crc32c(log_file.read(position, min(1 << 20, end - position)), crc)
        return crc if log_file.is_readable(start, end - start) else None
