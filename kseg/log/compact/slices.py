"""Batches that are cleaned, many at a time: the slices of a log, cut where a batch has to do with a transaction."""

from collections.abc import Iterator
from pathlib import Path

from kseg import kernel
from kseg.errors import DamagedError
from kseg.formats.codes import DamageKind
from kseg.index.headers import header_of
from kseg.kernel.contract import ROW, VALID
from kseg.kernel.fold_contract import Event
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import LogFile


def intact_slices(path: Path) -> Iterator[Slice]:
    """All batches of a log, with their bodies. Raises DamagedError at damage."""
    with LogFile(path) as log_file:
        for item in with_bodies(log_file.runs(), log_file.stored_size):
            if isinstance(item, Slice):
                row = item.first * ROW
                if not item.run.rows[row + VALID]:  # it has a run of its own
                    detail = "the CRC is wrong: `kseg salvage` saves what is intact"
                    raise DamagedError(detail, path, item.run.position + item.run.rows[row])
                yield item
            elif item.kind is not DamageKind.ZERO_TAIL:
                refuse(path, item)


def refuse(path: Path, damage: Damage) -> None:
    """Raises DamagedError."""
    raise DamagedError(f"{damage.detail}: `kseg salvage` saves what is intact", path, damage.position)


def stretches(piece: Slice) -> Iterator[tuple[int, int, BatchHeader | None]]:
    """The rows of a slice, from which to before which; with a header it is one batch.

    Control batches and those of transactions come alone.
    """
    run, row = piece.run, piece.first
    fold = kernel.load().HeaderFold(Event.CONTROL | Event.TRANSACTIONAL)
    fold.passes_legacy = True
    while row < piece.last:
        first = row
        row, _ = fold.fold(run.buffer, run.rows, row, piece.last, run.position)
        if row > first:
            yield first, row, None
        if row < piece.last:
            yield row, row + 1, header_of(run, row)
            row += 1
