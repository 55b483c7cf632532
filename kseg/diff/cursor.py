"""A copy's batches in the order of its log, run by run, from an offset on; unreadable parts are noted."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.errors import OpenError
from kseg.findings.kinds import id_of_damage, status_of
from kseg.formats.codes import DamageKind
from kseg.index.header_scan import header_of
from kseg.kernel.contract import MOST, ROW, SIZE, START, VALID, BatchFilter
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.reading.batch import BatchHeader, record_lists
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run

MOST_TOLD = 1000
"""The most damages kept one by one; the others are counted."""
MOST_TOGETHER = 64
"""The most batches decoded at once."""
OFFSETS_FALL = "offsets-fall"
_position_of = attrgetter("position")


class FoundDamage(NamedTuple):
    """Bytes of a copy's log that weren't compared: the id of `kseg verify`'s finding, and the problem."""

    log: Path
    id: str
    position: int
    size: int
    detail: str


class BatchCursor:
    """The place of the comparison in a copy.

    path: the log that is read. run, row: the next batch, unless `is_at_end`; rows before it are done. damages: the
    first parts that weren't compared; damage_count: of all.
    """

    path: Path
    run: Run
    row: int

    def __init__(
        self,
        partition: PartitionLog,
        start: int,
        *,
        keep_cache: bool = False,
        on_read: Callable[[int], None] | None = None,
    ) -> None:
        """Begin with the first batch that doesn't end below offset `start`."""
        self.partition = partition
        self.damages: list[FoundDamage] = []
        self.damage_count = 0
        self.is_at_end = False
        self._start = start
        self._keep_cache = keep_cache
        self._on_read = on_read
        self._lists: Iterator[list[Record]] = iter(())
        self._decoded_records: list[Record] = []
        self._decoded_row = self._decoded_to = 0
        self._decode_count = 1
        self._runs = self._all_runs()
        self._take_run()

    def close(self) -> None:
        """Close the open log."""
        self._runs.close()

    @property
    def rows_left(self) -> int:
        """The number of the run's remaining batches."""
        return self.run.row_count - self.row

    def header(self) -> BatchHeader:
        """Return the header of the next batch."""
        return header_of(self.run, self.row)

    def start_of(self, row: int) -> int:
        """Return the start of a row in the run's buffer."""
        start: int = self.run.rows[row * ROW + START]
        return start

    def end_of(self, row: int) -> int:
        """Return the end of a row in the run's buffer."""
        end: int = self.run.rows[row * ROW + START] + self.run.rows[row * ROW + SIZE]
        return end

    def advance(self, count: int) -> None:
        """Pass some batches of the run."""
        self.row += count
        if self.row == self.run.row_count:
            self._take_run()

    def records(self) -> list[Record]:
        """Return the readable records of the next batch; the problem of the others is noted once.

        Some later batches are decoded with it: callers usually need several.
        """
        if not self._decoded_row <= self.row < self._decoded_to:
            self._decode()
        position = self.run.position + self.start_of(self.row)
        found: list[Record] = []
        while True:
            first = bisect_left(self._decoded_records, position, key=_position_of)
            last = bisect_right(self._decoded_records, position, first, key=_position_of)
            found += self._decoded_records[first:last]
            self._decoded_records = self._decoded_records[last:]
            following = None if self._decoded_records else next(self._lists, None)
            if following is None:
                return found
            self._decoded_records = following

    def begin_records(self) -> None:
        """Reset the number of batches decoded together: often the copies soon agree again."""
        self._decode_count = 1
        self._decoded_to = 0

    def note(self, finding_id: str, position: int, size: int, detail: str) -> None:
        """Note a part that isn't compared."""
        self.damage_count += 1
        if len(self.damages) < MOST_TOLD:
            self.damages.append(FoundDamage(self.path, finding_id, position, size, detail))

    def _decode(self) -> None:
        first, last = self.row, min(self.row + self._decode_count, self.run.row_count)
        self._decode_count = min(2 * self._decode_count, MOST_TOGETHER)
        self._decoded_row, self._decoded_to = first, last
        part = self.run._replace(rows=self.run.rows[first * ROW : last * ROW], row_count=last - first)
        pieces = with_bodies(iter((part,)), 0)
        self._decoded_records = []
        self._lists = (
            records
            for piece in pieces
            if isinstance(piece, Slice)
            for records in record_lists(piece, self._note_damage)
        )

    def _note_damage(self, damage: Damage) -> None:
        self.note(str(damage.kind), damage.position, damage.size, damage.detail)

    def _take_run(self) -> None:
        self._decoded_to = 0
        found = next(self._runs, None)
        if found is None:
            self.is_at_end = True
        else:
            self.run, self.row = found, 0

    def _all_runs(self) -> Generator[Run, None, None]:
        partition = self.partition
        first = partition.floor_slot(self._start) or 0
        for segment in partition.segments[:first]:
            self._tell(segment)
        for segment in partition.segments[first:]:
            self.path = segment.path
            try:
                with segment.open_log(keep_cache=self._keep_cache) as log_file:
                    yield from self._runs_of(log_file, is_last=partition.is_last(segment))
            except OpenError as error:
                self.note(DamageKind.UNREADABLE, 0, segment.size, f"the file {error.message}")
            self._tell(segment)

    def _tell(self, segment: SegmentFiles) -> None:
        if self._on_read is not None:
            self._on_read(segment.size)

    def _runs_of(self, log_file: LogFile, *, is_last: bool) -> Iterator[Run]:
        for item in log_file.runs():
            if isinstance(item, Damage):
                finding_id = id_of_damage(item.kind, is_last=is_last)
                if status_of(finding_id):
                    self.note(finding_id, item.position, item.size, item.detail)
                continue
            if not item.rows[VALID]:
                damage = log_file.crc_damage(item.position + item.rows[START], item.rows[SIZE])
                self.note(str(damage.kind), damage.position, item.rows[SIZE], damage.detail)
                continue
            run = self._from_start(item)
            if run.row_count:
                yield run

    def _from_start(self, run: Run) -> Run:
        """Return a run without the batches before the first offset; the other rows keep their order."""
        if self._start == 0 or header_of(run, 0).first_offset >= self._start:
            return run
        wanted = BatchFilter(first_offset=self._start, last_offset=MOST)
        count, *_ = kernel.load().select(run.buffer, run.rows, run.row_count, wanted)
        return run._replace(row_count=count)
