"""A log file that is open as values: batches, records, damages."""

from collections.abc import Callable, Iterator

from kseg import kernel
from kseg.kernel.contract import ROW, SIZE, START, VALID, Columns
from kseg.kernel.record import Record
from kseg.reading.batch import Batch
from kseg.reading.bodies import Slice, problem_damage, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile, Run


def scan_log(log_file: LogFile, start: int = 0) -> Iterator[Batch | Damage]:
    """Batches and damages of an open log, in order, from a batch's position on."""
    for item in log_file.runs(start):
        if isinstance(item, Damage):
            yield item
        else:
            yield from (batch_of(item, row) for row in range(item.row_count))


def intact_records(log_file: LogFile) -> Iterator[Record]:
    """The records of an open log whose CRC holds, control records too; damage is passed over."""
    for item in with_bodies(log_file.runs(), log_file.stored_size):
        for part in record_lists(item, lambda _: None) if isinstance(item, Slice) else ():
            yield from (record for record in part if record.is_valid)


def batch_of(run: Run, row: int) -> Batch:
    """The batch of a run's row, with a copy of its bytes."""
    start, size, valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
    return Batch.parse(bytes(run.buffer[start : start + size]), run.position + start, is_valid=bool(valid))


def record_lists(piece: Slice, meet_damage: Callable[[Damage], None]) -> Iterator[list[Record]]:
    """A slice's records, in order, and what is wrong with a batch after those that could be read of it.

    Of a body that can't be had whole only that is reported, not what follows from it.
    """
    first = piece.first
    for row, damage in piece.damages:
        yield from _readable(piece, first, row, meet_damage)
        yield from _readable(piece, row, row + 1, lambda _: None)
        meet_damage(damage)
        first = row + 1
    yield from _readable(piece, first, piece.last, meet_damage)


def _readable(piece: Slice, first: int, last: int, meet_damage: Callable[[Damage], None]) -> Iterator[list[Record]]:
    """The records of some rows of a slice."""
    run = piece.run
    for part in kernel.load().records(run.buffer, run.rows, first, last, run.position, piece.bodies, piece.first):
        if isinstance(part, list):
            yield part
        else:
            meet_damage(problem_damage(part))


def damages_of(piece: Slice, columns: Columns) -> list[Damage]:
    """What is wrong with a slice's batches, in the file's order: of a body that can't be had only that is reported."""
    damages = {problem.position: problem_damage(problem) for problem in columns.problems}
    damages |= {damage.position: damage for _, damage in piece.damages}
    return [damages[position] for position in sorted(damages)]
