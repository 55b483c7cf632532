"""The end of a partition for clients: after its last intact batch."""

import os

from kseg.errors import OpenError
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.index.header_scan import header_of
from kseg.kernel.contract import VALID
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles, entry_problem, read_index_end
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.serve.fetch_batches import Missed, damage_of, readable_batches
from kseg.serve.values import READ_AT_ONCE

FileState = tuple[str, int, int]
"""Path, size and modification time in nanoseconds of the active log."""


class IntactEnd:
    """The offset after the last intact batch of a partition.

    A broker's own log end offset may come after batches that no client can get, and then a client would wait for them
    forever. Batches are checked once: if a log has grown, checks continue at its former end.

    tail: damage after the last intact batch, and its segment; a preallocated file's zeros don't count. was_cut:
    whether the former last batch is gone, though its segment still exists: cached facts may be about another log.
    """

    def __init__(self) -> None:
        self._base_offset: int | None = None
        self._position = 0
        self._next_offset = 0
        self._last: tuple[int, bytes] | None = None
        self.tail: tuple[SegmentFiles, Missed] | None = None
        self.was_cut = False

    def read(self, partition: PartitionLog) -> int:
        """Return the end of a partition as listed, at least its log start offset.

        Raises OpenError if a log can't be opened.
        """
        self.tail, self.was_cut = None, False
        for segment in reversed(partition.segments):
            found = self._end_of(segment)
            if found is not None or segment.size == 0 or segment is partition.segments[0]:
                end = segment.base_offset if found is None else found
                return max(end, partition.log_start_offset())
        return partition.log_start_offset()

    def _end_of(self, segment: SegmentFiles) -> int | None:
        """Return the offset after the last intact batch of a segment, or None if it has none."""
        with LogFile(segment.path, buffer_size=READ_AT_ONCE) as log_file:
            if segment.base_offset == self._base_offset:
                self.was_cut = not self._has_last(log_file)
                if not self.was_cut:
                    self._follow(log_file, self._position, segment)
                    return self._next_offset
            for start in dict.fromkeys((_last_indexed(segment, log_file), 0)):
                if self._follow(log_file, start, segment):
                    self._base_offset = segment.base_offset
                    return self._next_offset
        return None

    def _has_last(self, log_file: LogFile) -> bool:
        """Return whether the last intact batch is still in its place, by its header, which has the CRC of the rest."""
        if self._last is None or self._position > log_file.size:
            return False
        position, header = self._last
        return log_file.read(position, len(header)) == header

    def _follow(self, log_file: LogFile, start: int, segment: SegmentFiles) -> bool:
        """Note the last intact batch from a position on, and damage after it; return whether there is a batch."""
        found, tail = False, None
        for item in readable_batches(log_file.runs(start)):
            if not isinstance(item, Damage) and item.rows[VALID]:
                last = header_of(item, item.row_count - 1)
                self._position, self._next_offset = last.end, last.last_offset + 1
                start = last.position - item.position
                self._last = last.position, bytes(item.buffer[start : start + min(last.size, BATCH_HEADER_SIZE)])
                found, tail = True, None
            elif tail is None:
                tail = damage_of(item)
        if tail is not None:
            first = self._next_offset if found or start else segment.base_offset
            self.tail = segment, Missed(tail.position, tail.detail, first, None)
        return found


def _last_indexed(segment: SegmentFiles, log_file: LogFile) -> int:
    """Return the position of the last index entry, if it matches the log; otherwise 0."""
    last = read_index_end(segment).last
    return 0 if last is None or entry_problem(log_file, last.offset, last.position) is not None else last.position


def state_of(partition: PartitionLog) -> FileState | None:
    """Return the state of the active log, or None if it doesn't exist, or if it has gone."""
    active = partition.active_segment
    if active is None:
        return None
    try:
        status = os.stat(active.path)  # noqa: PTH116  quicker
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror}", active.path) from error
    return str(active.path), status.st_size, status.st_mtime_ns
