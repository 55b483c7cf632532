"""A segment's log as values: what notebooks and the other commands read."""

import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from kseg import kernel
from kseg.formats.codes import DamageKind
from kseg.kernel.contract import ROW, SIZE, START, VALID, Columns
from kseg.kernel.record import Record
from kseg.reading.batch import Batch, OnDamage, check_on_damage, meet
from kseg.reading.bodies import Slice, problem_damage, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile, Run


class Segment:
    """One log file as batches, records and damages; a context manager.

    Raises OpenError if the file can't be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.file = LogFile(path)

    @property
    def path(self) -> Path:
        """The file's path."""
        return self.file.path

    @property
    def base_offset(self) -> int | None:
        """The offset in the file's name."""
        return self.file.base_offset

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.file.size

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    def __enter__(self) -> "Segment":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def scan(self, start: int = 0) -> Iterator[Batch | Damage]:
        """Everything in the file, in order, from a batch's position on; sizes add up to the file's size.

        Records aren't looked at: `Batch.problem` tells whether they can be read.
        """
        return scan_log(self.file, start)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches, damaged stretches left out; those with a wrong CRC have `is_valid` False."""
        return (item for item in self.scan(start) if isinstance(item, Batch))

    def records(self, start: int = 0, *, on_damage: OnDamage = "raise") -> Iterator[Record]:
        """All records, control records too, from a batch's position on; quicker than batch by batch.

        Args:
            start: a batch's position.
            on_damage: what to do about damage, in the file or in a batch, as for `Batch.records`. The zeros that a
                preallocated file ends with are none.

        Raises:
            DamagedError: at damage, after the records before it, unless `on_damage` says otherwise.
        """
        check_on_damage(on_damage)
        return chain.from_iterable(self._record_lists(start, on_damage))

    def _record_lists(self, start: int, on_damage: OnDamage) -> Iterator[list[Record]]:
        for item in with_bodies(self.file.runs(start), self.file.stored_size):
            if isinstance(item, Slice):
                yield from _record_lists(item, lambda damage: meet(damage, on_damage, self.path))
            elif item.kind is not DamageKind.ZERO_TAIL:
                meet(item, on_damage, self.path)


def scan_log(log_file: LogFile, start: int = 0) -> Iterator[Batch | Damage]:
    """Batches and damages of an open log, in order, from a batch's position on."""
    for item in log_file.runs(start):
        if isinstance(item, Damage):
            yield item
        else:
            yield from (batch_of(item, row) for row in range(item.row_count))


def batch_of(run: Run, row: int) -> Batch:
    """The batch of a run's row, with a copy of its bytes."""
    start, size, valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
    return Batch.parse(bytes(run.buffer[start : start + size]), run.position + start, is_valid=bool(valid))


def _record_lists(piece: Slice, meet_damage: Callable[[Damage], None]) -> Iterator[list[Record]]:
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


def open_segment(path: str | os.PathLike[str]) -> Segment:
    """Opens a log file. Raises OpenError if it can't be opened."""
    return Segment(path)
