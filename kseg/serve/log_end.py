"""Where a log ends for clients: after its last intact batch, followed while the log grows."""

import os

from kseg.errors import OpenError
from kseg.index.headers import header_of
from kseg.kernel.contract import VALID
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.partition.segment_tail import entry_problem, read_index_end
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile
from kseg.serve.fetch_plan import Missed, damage_of
from kseg.serve.limits import READ_AT_ONCE
from kseg.serve.readable_batches import readable_batches

FileState = tuple[str, int, int]
"""Path, size and time of the last modification in nanoseconds of the active log."""


class IntactEnd:
    """The offset after the last intact batch of a partition.

    A broker's own log end offset may be after batches that no client will get, and then a client would wait in front of
    it for ever. Batches are checked once: where a log has grown, reading goes on at its former end.

    tail: damage after the last intact batch, and the segment that it is in; a preallocated file's zeros aren't any.
    """

    def __init__(self) -> None:
        self._base_offset: int | None = None
        self._position = 0
        self._next_offset = 0
        self.tail: tuple[SegmentFiles, Missed] | None = None

    def read(self, partition: PartitionLog) -> int:
        """The end of a partition as it is listed, not below its log start offset.

        Raises OpenError if a log can't be opened.
        """
        self.tail = None
        for segment in reversed(partition.segments):
            found = self._end_of(segment)
            if found is not None or segment.size == 0 or segment is partition.segments[0]:
                end = segment.base_offset if found is None else found
                return max(end, partition.log_start_offset())
        return partition.log_start_offset()

    def _end_of(self, segment: SegmentFiles) -> int | None:
        """The offset after the last intact batch of a segment; None if it has none."""
        with LogFile(segment.path, buffer_size=READ_AT_ONCE) as log_file:
            if segment.base_offset == self._base_offset and self._position <= log_file.size:
                self._follow(log_file, self._position, segment)
                return self._next_offset
            for start in dict.fromkeys((_last_indexed(segment, log_file), 0)):
                if self._follow(log_file, start, segment):
                    self._base_offset = segment.base_offset
                    return self._next_offset
        return None

    def _follow(self, log_file: LogFile, start: int, segment: SegmentFiles) -> bool:
        """Notes the last intact batch from a position on, and damage after it; whether there is a batch."""
        found, tail = False, None
        for item in readable_batches(log_file.runs(start)):
            if not isinstance(item, Damage) and item.rows[VALID]:
                last = header_of(item, item.row_count - 1)
                self._position, self._next_offset = last.end, last.last_offset + 1
                found, tail = True, None
            elif tail is None:
                tail = damage_of(item)
        if tail is not None:
            first = self._next_offset if found or start else segment.base_offset
            self.tail = segment, Missed(tail.position, tail.detail, first, None)
        return found


def _last_indexed(segment: SegmentFiles, log_file: LogFile) -> int:
    """The position of the last index entry, if it matches the log; otherwise 0."""
    last = read_index_end(segment).last
    return 0 if last is None or entry_problem(log_file, last.offset, last.position) is not None else last.position


def state_of(partition: PartitionLog) -> FileState | None:
    """The state of the active log; None if there is none, or if it has gone."""
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
