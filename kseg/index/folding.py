"""Batches of a run in which something happens: all others are passed by a kernel's fold."""

from collections.abc import Iterator

from kseg import kernel
from kseg.index.headers import header_of
from kseg.kernel.contract import LEAST, MOST
from kseg.kernel.fold_contract import HeaderFold, ProducerTable
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


class FoldWithin:
    """A fold over the batches whose last offsets are in a range; v0 and v1 entries are passed, like all outside of it.

    fold: takes no headers; a caller sets of its state what it needs.
    """

    def __init__(self, watched: int, offsets: range, producers: ProducerTable | None = None) -> None:
        """Takes the events to stop at, the range, and the producers known so far."""
        new_fold = kernel.load().HeaderFold
        below, self.fold, above = new_fold(0), new_fold(watched, producers), new_fold(0)
        self.fold.offset_floor = below.offset_bound = min(max(offsets.start, LEAST), MOST)
        self.fold.offset_bound = above.offset_floor = min(offsets.stop, MOST)
        self._offsets = offsets
        self._folds = (below, above, self.fold) if offsets.stop <= MOST else (below, self.fold)
        for each in self._folds:
            each.passes_legacy = True

    def events(self, run: Run) -> Iterator[BatchHeader]:
        """Headers of the batches of a run that are in the range and in which one of the fold's events happens."""
        row = 0
        while row < run.row_count:
            for fold in self._folds:
                row, _ = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
            if row < run.row_count:
                header = header_of(run, row)
                if header.last_offset in self._offsets:
                    yield header
                row += 1
