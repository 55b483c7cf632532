"""Stretches of intact batches of a partition, and the longest sequence of them with increasing offsets."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.index.headers import walk_headers
from kseg.reading.batch import Batch
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import LogFile


class EpochRun(NamedTuple):
    """Batches of one leader epoch in a row: its first offset, and how many they are."""

    epoch: int
    first_offset: int
    batch_count: int


class Extent(NamedTuple):
    """Intact batches that lie one after another in a log, with rising offsets.

    segment_base: the base offset of its segment. follows_loss: whether bytes before it can't be read.
    """

    log: Path
    segment_base: int
    position: int
    size: int
    batch_count: int
    first_offset: int
    last_offset: int
    follows_loss: bool
    epochs: tuple[EpochRun, ...]

    @property
    def end(self) -> int:
        """Position after it."""
        return self.position + self.size


def extent_of(log_file: LogFile, header: BatchHeader, base: int, *, follows_loss: bool) -> Extent:
    """One batch as an extent."""
    first_offset = header.base_offset
    if first_offset is None:
        raw = log_file.read(header.position, header.size)
        first_offset = Batch.parse(raw, header.position, is_valid=True).base_offset
    epoch = header.partition_leader_epoch
    epochs = (EpochRun(epoch, first_offset, 1),) if epoch >= 0 else ()
    return Extent(
        log_file.path,
        base,
        header.position,
        header.size,
        1,
        first_offset,
        header.last_offset,
        follows_loss,
        epochs,
    )


class ExtentJoin:
    """Extents that follow one another, while they become one."""

    def __init__(self, first: Extent) -> None:
        self._first = self._last = first
        self._size, self._batch_count = first.size, first.batch_count
        self._epochs = list(first.epochs)

    @property
    def last(self) -> Extent:
        """The last one."""
        return self._last

    def add(self, following: Extent) -> "ExtentJoin":
        """Goes on with another one."""
        self._last = following
        self._size += following.size
        self._batch_count += following.batch_count
        for run in following.epochs:
            if self._epochs and self._epochs[-1].epoch == run.epoch:
                known = self._epochs[-1]
                self._epochs[-1] = known._replace(batch_count=known.batch_count + run.batch_count)
            else:
                self._epochs.append(run)
        return self

    def extent(self) -> Extent:
        """What they became."""
        if self._last is self._first:
            return self._first
        return self._first._replace(
            size=self._size,
            batch_count=self._batch_count,
            last_offset=self._last.last_offset,
            epochs=tuple(self._epochs),
        )


def joined_neighbours(extents: Iterable[Extent]) -> Iterator[Extent]:
    """The same with those joined that touch in their log and whose offsets rise."""
    join: ExtentJoin | None = None
    for extent in extents:
        if join is not None and _touch(join.last, extent) and extent.first_offset > join.last.last_offset:
            join.add(extent)
            continue
        if join is not None:
            yield join.extent()
        join = ExtentJoin(extent)
    if join is not None:
        yield join.extent()


def _touch(extent: Extent, following: Extent) -> bool:
    return extent.log == following.log and extent.end == following.position


def longest_rising(extents: list[Extent]) -> list[Extent]:
    """Those extents, in their order, whose offsets rise and that hold the most batches together."""
    chosen = heaviest_chain([(each.first_offset, each.last_offset, each.batch_count) for each in extents])
    return [extents[number] for number in chosen]


def credible_epochs(runs: list[EpochRun]) -> list[EpochRun]:
    """Starts of increasing leader epochs: those that most batches agree with. No CRC covers a batch's epoch."""
    chosen = heaviest_chain([(2 * run.epoch, 2 * run.epoch - 1, run.batch_count) for run in runs])
    starts: list[EpochRun] = []
    for run in (runs[number] for number in chosen):
        if not starts or run.epoch > starts[-1].epoch:
            starts.append(run)
    return starts


def heaviest_chain(items: list[tuple[int, int, int]]) -> list[int]:
    """Numbers of the items (first, last, weight) that rise, each first above the last before it, of the most weight."""
    ends: list[int] = []  # last values of the best chains so far, rising, with their weights rising too
    best: list[tuple[int, int]] = []  # weight, and the number of the chain's last item
    before: list[int] = []
    for number, (first, last, weight) in enumerate(items):
        slot = bisect_left(ends, first)
        total = weight + (best[slot - 1][0] if slot else 0)
        before.append(best[slot - 1][1] if slot else -1)
        at = bisect_left(ends, last)
        if at < len(ends) and ends[at] == last and best[at][0] >= total:
            continue
        if at and best[at - 1][0] >= total:
            continue
        end = at
        while end < len(ends) and best[end][0] <= total:
            end += 1
        ends[at:end] = [last]
        best[at:end] = [(total, number)]
    chain: list[int] = []
    number = best[-1][1] if best else -1
    while number >= 0:
        chain.append(number)
        number = before[number]
    return chain[::-1]


class ExtentBatches:
    """Reads the batches of extents; a context manager. The page cache is left as the first reading has left it.

    A log stays open for the next extent, which most often is of the same one.
    """

    def __init__(self) -> None:
        self._walked: LogFile | None = None
        self._read: LogFile | None = None

    def __enter__(self) -> "ExtentBatches":
        return self

    def __exit__(self, *_: object) -> None:
        for log_file in (self._walked, self._read):
            if log_file is not None:
                log_file.close()

    def of(self, extent: Extent) -> Iterator[Extent]:
        """Each batch of an extent as one of its own; of one extent at a time. Raises OpenError as LogFile does."""
        if extent.batch_count == 1:
            yield extent
            return
        log_file = self._walked = _opened(self._walked, extent)
        for header in _headers(log_file, extent):
            yield extent_of(log_file, header, extent.segment_base, follows_loss=extent.follows_loss)

    def read(self, batch: Extent) -> bytes:
        """The bytes of a batch. Raises OpenError if its log can't be opened or read."""
        self._read = _opened(self._read, batch)
        return self._read.read(batch.position, batch.size)


def _opened(log_file: LogFile | None, extent: Extent) -> LogFile:
    """An extent's log: the one that is open, if it's that."""
    if log_file is not None and log_file.path == extent.log:
        return log_file
    if log_file is not None:
        log_file.close()
    return LogFile(extent.log, keep_cache=False)


def _headers(log_file: LogFile, extent: Extent) -> Iterator[BatchHeader]:
    for item in walk_headers(log_file, extent.position):
        if isinstance(item, Damage) or item.position >= extent.end:
            return
        yield item
