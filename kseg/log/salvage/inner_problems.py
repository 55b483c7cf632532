"""What is wrong inside batches whose CRC holds: records that can't be read, and offsets that don't rise."""

from bisect import bisect_left
from functools import cached_property
from operator import ge
from typing import NamedTuple

from kseg import kernel
from kseg.kernel.contract import ROW, START, VALID, Columns
from kseg.kernel.fold_contract import Event
from kseg.log.verify.checked_batches import CheckedBatch, checked_rows, offsets_problem
from kseg.reading.bodies import Slice
from kseg.reading.header import BatchHeader, parse_header
from kseg.reading.log_file import LogFile


class InnerProblem(NamedTuple):
    """Something wrong inside a batch whose CRC holds: where, the finding's id, what, in words, and its last offset."""

    position: int
    id: str
    detail: str
    last_offset: int


class InnerProblems:
    """Finds what is wrong inside the batches of a slice; all of them are read when one of them isn't as usual."""

    def __init__(self, log_file: LogFile, piece: Slice) -> None:
        self._log_file = log_file
        self._piece = piece
        self._usual = kernel.load().HeaderFold(Event.RECORDS)

    def of(self, row: int, header: BatchHeader) -> InnerProblem | None:
        """What is wrong inside the batch of a row, whose header is given."""
        if header.is_control:
            return next(iter(self._found(row, row + 1).values()), None)
        run, piece = self._piece.run, self._piece
        stop, _ = self._usual.fold(run.buffer, run.rows, row, row + 1, run.position, piece.bodies, piece.first)
        return None if stop > row else self._all.get(header.position)

    @cached_property
    def _all(self) -> dict[int, InnerProblem]:
        """The problems of the slice, by position; those of control batches aren't looked for."""
        run, piece = self._piece.run, self._piece
        columns = kernel.load().columns(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies)
        offsets = memoryview(columns.offsets).cast("B").cast("q")
        is_suspicious = columns.problems or piece.damages or b"\0" in bytes(columns.valid)
        if is_suspicious or any(map(ge, offsets, offsets[1:])) or _holds_strays(piece, columns):
            return self._found(piece.first, piece.last)
        return {}

    def _found(self, first: int, last: int) -> dict[int, InnerProblem]:
        batches = (each for each in checked_rows(self._log_file, self._piece, first, last))
        problems = (_problem_inside(batch) for batch in batches if isinstance(batch, CheckedBatch))
        return {problem.position: problem for problem in problems if problem is not None}


def _problem_inside(batch: CheckedBatch) -> InnerProblem | None:
    position, wrong = batch.header.position, offsets_problem(batch)
    if batch.damage is not None:
        return InnerProblem(position, str(batch.damage.kind), batch.damage.detail, batch.last_offset)
    return None if wrong is None else InnerProblem(position, "record-offsets", wrong, batch.last_offset)


def _holds_strays(piece: Slice, columns: Columns) -> bool:
    """Whether a batch has a record outside of the offsets that its header gives."""
    run = piece.run
    rows = memoryview(columns.rows).cast("B").cast("i")
    offsets = memoryview(columns.offsets).cast("B").cast("q")
    end = 0
    for row in range(piece.first, piece.last):
        start, valid = run.rows[row * ROW + START], run.rows[row * ROW + VALID]
        begin, end = end, bisect_left(rows, row + 1, end)
        if not valid:
            continue
        header = parse_header(run.buffer, start, run.position + start, is_valid=True)
        if header.base_offset is None:
            continue
        if header.last_offset < header.base_offset:
            return True
        if end > begin and (offsets[begin] < header.base_offset or offsets[end - 1] > header.last_offset):
            return True
    return False
