"""Leaves out intact batches whose offsets can't be right: a client that takes one skips all that comes after it.

No CRC covers a batch's base offset. A flipped bit in it leads clients far ahead, and they never come back.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kseg import kernel
from kseg.index.headers import header_of
from kseg.kernel.contract import LEAST, MOST, ROW, SIZE, VALID
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import Run
from kseg.serve.readable_batches import split_run


class StrayBatch(NamedTuple):
    """A batch that is left out: where it is, its bytes, and why."""

    position: int
    size: int
    detail: str


def without_strays(items: Iterable[Run | Damage], next_base: int) -> Iterator[Run | Damage | StrayBatch]:
    """The same runs and damages, with a stray in the place of each batch whose offsets are too large.

    Those are batches that reach the offset with which the next segment begins (`next_base`), and such after which the
    log goes on as if they had lower ones.
    """
    for item in items:
        if isinstance(item, Damage) or not item.rows[VALID]:
            yield item
        else:
            yield from split_run(item, _strays(item, next_base))


def _strays(run: Run, next_base: int) -> dict[int, StrayBatch]:
    """The strays of a run, by row."""
    found = {}
    fold = _fold(Event.BOUND)
    fold.offset_bound = min(max(next_base, LEAST), MOST)
    for row in _stops(fold, run):
        if header_of(run, row).last_offset >= next_base:  # there are other bounds
            found[row] = _stray(run, row, f"the next segment begins at {next_base}")
    for row in _stops(_fold(Event.FALL), run):
        before = next((each for each in range(row - 2, -1, -1) if each not in found), None)
        if before is None or row - 1 in found:
            continue
        if _fits_between(header_of(run, before), header_of(run, row - 1), header_of(run, row)):
            following = header_of(run, row).first_offset
            found[row - 1] = _stray(run, row - 1, f"the next batch begins at offset {following}")
    return found


def _fits_between(before: BatchHeader, batch: BatchHeader, following: BatchHeader) -> bool:
    """Whether the offsets that lie between two batches are enough for the one that stands there with larger ones."""
    span = batch.last_offset - batch.first_offset + 1
    return following.first_offset <= batch.last_offset and following.first_offset - before.last_offset > span


def _fold(watched: Event) -> HeaderFold:
    fold = kernel.load().HeaderFold(watched)
    fold.passes_legacy = True
    return fold


def _stops(fold: HeaderFold, run: Run) -> Iterator[int]:
    """The rows at which a fold stops; it goes on after each."""
    row = 0
    while True:
        row, _ = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
        if row == run.row_count:
            return
        yield row
        fold.next_offset = header_of(run, row).last_offset + 1
        row += 1


def _stray(run: Run, row: int, why: str) -> StrayBatch:
    header = header_of(run, row)
    detail = f"offsets-fall: a batch with offsets {header.first_offset} to {header.last_offset}, but {why}"
    return StrayBatch(header.position, run.rows[row * ROW + SIZE], detail)
