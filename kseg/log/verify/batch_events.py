"""The batches of a log in which something happens that `verify` judges; a fold passes the others."""

from collections.abc import Callable, Iterator
from typing import Protocol

from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.verify.checked_batches import CheckedBatch, checked_rows
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile

JUDGED = (
    Event.CONTROL
    | Event.PRODUCER
    | Event.SEQUENCE
    | Event.OFFSET
    | Event.SPARSE
    | Event.DELETE_HORIZON
    | Event.EPOCH
    | Event.RECORDS
    | Event.INDEX
)
"""What no check has an opinion about may happen without it."""
FEW = 3
"""Events in turn after which the next batches are expected to have one too."""
MOST_TOGETHER = 256
"""Batches that are looked at together where something happens in every one: one by one costs more."""


class Watcher(Protocol):
    """Who wants to know what happens in a log."""

    def watch(self, fold: HeaderFold) -> None:
        """Tells the fold where to stop next."""

    def notice_passed(self) -> None:
        """Takes over what the fold has passed."""


def eventful_batches(
    log_file: LogFile, fold: HeaderFold, watcher: Watcher, on_slice: Callable[[Slice], None] | None = None
) -> Iterator[CheckedBatch | Damage]:
    """Damages, and batches in which something happens, in file order; and some of those after them.

    The fold has passed all batches before. Whoever takes a batch adds it to the fold. `on_slice` takes what is read.
    """
    for item in with_bodies(log_file.runs(), log_file.stored_size):
        if isinstance(item, Damage):
            yield item
        else:
            if on_slice is not None:
                on_slice(item)
            yield from _eventful_rows(log_file, item, fold, watcher)


def _eventful_rows(
    log_file: LogFile, piece: Slice, fold: HeaderFold, watcher: Watcher
) -> Iterator[CheckedBatch | Damage]:
    run, row, together, stops_in_turn = piece.run, piece.first, 1, 0
    while row < piece.last:
        watcher.watch(fold)
        stop, _ = fold.fold(run.buffer, run.rows, row, piece.last, run.position, piece.bodies, piece.first)
        watcher.notice_passed()
        stops_in_turn = stops_in_turn + 1 if stop == row else 0
        together = min(2 * together, MOST_TOGETHER) if stops_in_turn > FEW else 1
        row = min(stop + together, piece.last)
        yield from checked_rows(log_file, piece, stop, row)
