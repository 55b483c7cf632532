"""Batches of a run in which something happens: all others are passed by a kernel's fold."""

from collections.abc import Iterator

from kseg.index.headers import header_of
from kseg.kernel.fold_contract import HeaderFold
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import Run


def events(fold: HeaderFold, run: Run) -> Iterator[tuple[BatchHeader, int]]:
    """Headers of a run's batches in which one of the fold's events happens, and the events, see Event.

    At each, the fold's state is what the batches before it left; it takes the header when the next one is asked for,
    so a caller may set what it likes before.
    """
    row = 0
    while True:
        row, happened = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
        if row == run.row_count:
            return
        header = header_of(run, row)
        yield header, happened
        fold.take(header)
        row += 1


def pass_all(fold: HeaderFold, run: Run) -> None:
    """Passes all of a run's batches, whatever happens in them."""
    for _ in events(fold, run):
        pass
