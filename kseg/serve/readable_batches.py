"""Leaves out batches whose CRC holds, but whose records no client can read: most clients would never get past them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from kseg import kernel
from kseg.formats.codes import DamageKind
from kseg.kernel.contract import ROW, SIZE, START, VALID
from kseg.kernel.fold_contract import Event
from kseg.reading.bodies import Slice, problem_damage, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import Run

LeftOut = TypeVar("LeftOut")


def readable_batches(items: Iterable[Run | Damage]) -> Iterator[Run | Damage]:
    """The same runs and damages, with a damage in the place of each batch that can't be read to its end.

    Bodies are decompressed and records walked over, but not kept. A batch whose CRC is wrong stays as it is.
    """
    for item in items:
        if isinstance(item, Damage) or not item.rows[VALID]:
            yield item
        else:
            yield from split_run(item, _unreadable_rows(item))


def _unreadable_rows(run: Run) -> dict[int, Damage]:
    """What is wrong with the records of some of a run's batches, by row."""
    found: dict[int, Damage] = {}
    for piece in with_bodies(iter((run,)), 0):
        if isinstance(piece, Slice):
            fold = kernel.load().HeaderFold(Event.RECORDS)
            row, _ = fold.fold(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, piece.first)
            if row < piece.last or piece.damages:
                found |= _problems(piece)
    return {row: damage._replace(size=run.rows[row * ROW + SIZE]) for row, damage in found.items()}


def _problems(piece: Slice) -> dict[int, Damage]:
    """The same for a slice in which something is unusual: all of its records are read."""
    run = piece.run
    columns = kernel.load().columns(
        run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, None, piece.first
    )
    rows_at = {run.position + run.rows[row * ROW + START]: row for row in range(piece.first, piece.last)}
    found = {rows_at[problem.position]: problem_damage(problem) for problem in columns.problems}
    found |= dict(piece.damages)
    valid = memoryview(columns.valid).cast("B")
    if 0 in valid.tobytes():
        rows = memoryview(columns.rows).cast("B").cast("i")
        for row in {rows[number] for number, holds in enumerate(valid) if not holds} - found.keys():
            position = run.position + run.rows[row * ROW + START]
            found[row] = Damage(DamageKind.BAD_CRC, position, 0, "the CRC of an inner message is wrong")
    return found


def split_run(run: Run, without: Mapping[int, LeftOut]) -> Iterator[Run | LeftOut]:
    """A run without some of its batches, by row, and what stands in their places."""
    first = 0
    for row in sorted(without):
        yield from _part(run, first, row)
        yield without[row]
        first = row + 1
    yield from _part(run, first, run.row_count)


def _part(run: Run, first: int, last: int) -> Iterator[Run]:
    if last > first:
        yield (
            run
            if last - first == run.row_count
            else run._replace(rows=run.rows[first * ROW : last * ROW], row_count=last - first)
        )
