"""The segments and positions to read for a selection, by indexes or from the end of the log."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.errors import OpenError
from kseg.formats.codes import Codec
from kseg.index.entries import OffsetIndex
from kseg.kernel.contract import MOST, ROW, SIZE, START, VALID, BatchFilter, new_rows
from kseg.log.committed import ReadCommitted, find_withheld, read_committed
from kseg.log.partition import PartitionLog
from kseg.log.segment_search import SCANNED, SegmentStep, largest_timestamp, seek_offset, seek_time
from kseg.log.segments import FoundFile, SegmentFiles, entry_problem
from kseg.log.selection import LATE_SIZE, Selection
from kseg.reading.batch import parse_header
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile, Run

_STEP = 8
"""The factor by which each attempt to find a tail goes further back in the index."""


class Selector:
    """A reader of one directory's logs for a selection, in the order of their offsets.

    is_done: nothing later can be wanted. Offsets should increase from batch to batch, as Kafka writes them.
    """

    def __init__(
        self,
        selection: Selection,
        directory: Path,
        say: Callable[[str], None],
        listed: PartitionLog | None = None,
    ) -> None:
        """List the directory, unless `listed` is given.

        Args:
            selection: the wanted records.
            directory: the directory of the logs.
            say: called with untrusted indexes and the reason, and with omissions.
            listed: the listed directory; None lists it.

        Raises:
            OpenError: if the directory can't be listed.
        """
        self.selection = selection
        self.is_done = False
        self._late_size = 0
        self._say = say
        self._reported_lines: set[str] = set()
        self._directory = directory
        self._take(PartitionLog(directory) if listed is None else listed)

    def start_over(self) -> None:
        """Reset the reading state, so that logs can be read again."""
        self.is_done = False
        self._late_size = 0

    def list_again(self) -> None:
        """List the directory again. Raises OpenError if it can't be listed."""
        self._take(PartitionLog(self._directory))

    def _take(self, partition: PartitionLog) -> None:
        self.partition = partition
        self._segments = {segment.path.name: segment for segment in self.partition.segments}
        self._isolation: ReadCommitted | None = None

    def segment(self, path: Path) -> SegmentFiles | None:
        """Return the segment of a log file, or None for a log that no broker would read."""
        return self._segments.get(path.name)

    def may_hold(self, path: Path) -> bool:
        """Return True if a log may contain selected records, judging by its name and its largest timestamp."""
        segment = self.segment(path)
        if segment is None:
            return True
        if self.is_done or segment.base_offset > self.selection.last_offset:
            return False
        place = (self.partition.floor_slot(segment.base_offset) or 0) + 1
        following = self.partition.base_offsets[place : place + 1]
        if following and following[0] <= self.selection.first_offset:
            return False
        return self._may_hold_time(segment)

    def _may_hold_time(self, segment: SegmentFiles) -> bool:
        if not self.selection.from_time:
            return True
        problems: list[str] = []
        if segment.time_index is None and segment.size and self.partition.has_time_indexes:
            problems.append(f"{segment.path.with_suffix('.timeindex')}: missing: {SCANNED}")
        largest = largest_timestamp(segment, problems)
        self._say_once(problems)
        return largest >= self.selection.from_time

    def _say_once(self, lines: list[str] | tuple[str, ...]) -> None:
        for line in lines:
            if line not in self._reported_lines:
                self._reported_lines.add(line)
                self._say(line)

    def start_position(self, log_file: LogFile) -> int:
        """Return the start position in a log: of the batch of an index entry that matches the log, or 0."""
        segment = self.segment(log_file.path)
        if segment is None:
            return 0
        problems: list[str] = []
        step = SegmentStep(segment)
        offset = max(self.selection.first_offset, segment.base_offset)
        if self.selection.from_time and segment.time_index is not None:
            seek_time(log_file, step, self.selection.from_time - 1, offset, problems)
        elif offset > segment.base_offset:
            seek_offset(log_file, step, offset, problems)
        self._say_once(problems)
        return step.scan_position

    def isolation(self, path: Path) -> ReadCommitted:
        """Return the transactions of the partition, read once.

        For a log that isn't one of its segments, the log's own.
        """
        segment = self.segment(path)
        if segment is None:
            status = path.stat()
            file = FoundFile(path.parent, path.name, status.st_size, status.st_mtime_ns // 1_000_000)
            return read_committed([SegmentFiles(0, file)])
        if self._isolation is None:
            first, last = self.selection.first_offset, self.selection.last_offset
            end = min(last, MOST - 1) + 1
            self._isolation = read_committed(self.partition.segments, self.partition, first, end)
            self._say_once(self._isolation.notes)
            withheld = find_withheld(self.partition.segments, self._isolation, end)
            if withheld is not None:
                self._say_once([f"{self.partition.path}: {withheld.line()}"])
        return self._isolation

    def last_offset(self, path: Path) -> int:
        """Return the last wanted offset of a log: below the last stable offset if only committed records are wanted."""
        if not self.selection.is_committed:
            return self.selection.last_offset
        stable = self.isolation(path).last_stable_offset
        return min(self.selection.last_offset, MOST if stable is None else stable - 1)

    def items(self, log_file: LogFile, start: int) -> Iterator[Run | Damage]:
        """Yield runs of batches that may have wanted records, from a position on, and damages.

        Sets `is_done` and stops where nothing wanted can follow.
        """
        wanted = self.selection.batch_filter(self.last_offset(log_file.path))
        isolation = self.isolation(log_file.path) if self.selection.is_committed else None
        is_segment = self.segment(log_file.path) is not None
        for item in log_file.runs(start):
            if isinstance(item, Damage):
                yield item
                continue
            size = _size_of(item)
            run, earliest, is_behind = _select_rows(item, wanted)
            if isolation is not None and isolation.aborted:
                run = _without_aborted(run, isolation)
            is_valid = bool(item.rows[VALID])
            if run.row_count or not is_valid:
                yield run
            if not is_valid:
                continue
            self._late_size = self._late_size + size if self.selection.is_late(earliest) else 0
            if is_behind or self._late_size >= LATE_SIZE:
                self.is_done = self.is_done or is_segment
                return


def starts_from_end(log_file: LogFile, selector: Selector) -> Iterator[int]:
    """Yield positions to count from: of index entries, further and further from the end, then the start."""
    first = selector.start_position(log_file)
    segment = selector.segment(log_file.path)
    if segment is not None and segment.offset_index is not None:
        back = 1
        with OffsetIndex(segment.offset_index.path, segment.base_offset) as index:
            while back <= index.count:
                entry = index.entry(index.count - back)
                if entry.position <= first:
                    break
                if entry_problem(log_file, entry.offset, entry.position) is None:
                    yield entry.position
                back *= _STEP
    yield first


def _select_rows(run: Run, wanted: BatchFilter) -> tuple[Run, int, bool]:
    """Return a run with only the wanted rows, the least timestamp, and whether a row is after the last offset.

    An unwanted batch with a wrong CRC leaves an empty run, so that its damage is reported.
    """
    count, codecs, earliest, is_behind = kernel.load().select(run.buffer, run.rows, run.row_count, wanted)
    return run._replace(row_count=count, codecs=codecs or 1 << Codec.NONE), earliest, is_behind


def _size_of(run: Run) -> int:
    """Return the bytes from a run's first batch to its last."""
    last = (run.row_count - 1) * ROW
    return run.rows[last + START] + run.rows[last + SIZE] - run.rows[START]


def _without_aborted(run: Run, isolation: ReadCommitted) -> Run:
    rows = new_rows(0)
    for at in range(0, run.row_count * ROW, ROW):
        header = parse_header(run.buffer, run.rows[at + START], 0)
        if header.is_transactional and isolation.is_aborted(header.producer_id, header.first_offset):
            continue
        rows.extend(run.rows[at : at + ROW])
    if not rows:
        rows.extend(run.rows[:ROW])
        return run._replace(rows=rows, row_count=0, codecs=1 << Codec.NONE)
    return run._replace(rows=rows, row_count=len(rows) // ROW)


class SelectedTail(NamedTuple):
    """The start of a tail: the log's number, the position (None: the normal start), and the records to skip.

    All logs before `number` have nothing of it; the first `skip` selected records in that log are before it.
    """

    number: int
    start: int | None
    skip: int


def find_tail(
    logs: Sequence[Path],
    count: int,
    selector: Selector,
    open_log: Callable[[Path], AbstractContextManager[LogFile]],
    counted: Callable[[LogFile, int], int],
) -> SelectedTail:
    """Return the position from which the last `count` selected records can be read.

    Logs that can't be opened are skipped: their readers report them.

    Args:
        logs: in the order of their offsets.
        count: records; or batches, if these are counted.
        selector: the selection; it has to start over afterwards.
        open_log: opens one of the logs.
        counted: counts the selected records of a log from a position on.
    """
    wanted = count
    for number in range(len(logs) - 1, -1, -1):
        if wanted == 0:
            return SelectedTail(number + 1, None, 0)
        try:
            selector.start_over()
            if not selector.may_hold(logs[number]):
                continue
            with open_log(logs[number]) as log_file:
                found = 0
                for start in starts_from_end(log_file, selector):
                    selector.start_over()
                    found = counted(log_file, start)
                    if found >= wanted:
                        return SelectedTail(number, start, found - wanted)
        except OpenError:
            continue
        finally:
            selector.start_over()
        wanted -= found
    return SelectedTail(0, None, 0)
