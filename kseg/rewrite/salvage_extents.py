"""Extents of intact batches in a damaged partition, and the unreadable records in them."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from operator import ge
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.formats.codes import BATCH_HEADER_SIZE, MAGIC_POSITION, PLAUSIBLE_ATTRIBUTES, DamageKind, claimed_size
from kseg.formats.header_fields import BATCH_RECORDS_COUNT, ENTRY_V0_KEY_LENGTH, ENTRY_V1_KEY_LENGTH
from kseg.index.header_scan import end_of, intact_header, walk_headers
from kseg.kernel.contract import ROW, START, VALID
from kseg.kernel.entry_points import Columns
from kseg.kernel.fold_contract import Event
from kseg.reading.batch import Batch, BatchHeader, parse_header
from kseg.reading.blocks import HEADER_WINDOW, Damage
from kseg.reading.bodies import Slice
from kseg.reading.log_file import BUFFER_SIZE, FIRST_SIZE, LogFile, Run
from kseg.verify.batches import CheckedBatch, checked_rows, offsets_problem


class EpochRun(NamedTuple):
    """Consecutive batches of one leader epoch: its first offset, and their number."""

    epoch: int
    first_offset: int
    batch_count: int


class Extent(NamedTuple):
    """Consecutive intact batches in a log, with rising offsets.

    segment_base: the base offset of its segment. follows_loss: whether preceding bytes can't be read.
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
    """Return one batch as an extent."""
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
    """Consecutive extents in the process of joining."""

    def __init__(self, first: Extent) -> None:
        self._first = self._last = first
        self._size, self._batch_count = first.size, first.batch_count
        self._epochs = list(first.epochs)

    @property
    def last(self) -> Extent:
        """The last extent."""
        return self._last

    def add(self, following: Extent) -> "ExtentJoin":
        """Return the join with one more extent."""
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
        """Return the joined extent."""
        if self._last is self._first:
            return self._first
        return self._first._replace(
            size=self._size,
            batch_count=self._batch_count,
            last_offset=self._last.last_offset,
            epochs=tuple(self._epochs),
        )


def joined_neighbours(extents: Iterable[Extent]) -> Iterator[Extent]:
    """Yield the extents, joined where they touch in their log and their offsets rise."""
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
    """Return the extents with rising offsets that have the most batches together, in their order."""
    chosen = heaviest_chain([(each.first_offset, each.last_offset, each.batch_count) for each in extents])
    return [extents[number] for number in chosen]


def credible_epochs(runs: list[EpochRun]) -> list[EpochRun]:
    """Return starts of increasing leader epochs that most batches confirm. No CRC covers a batch's epoch."""
    chosen = heaviest_chain([(2 * run.epoch, 2 * run.epoch - 1, run.batch_count) for run in runs])
    starts: list[EpochRun] = []
    for run in (runs[number] for number in chosen):
        if not starts or run.epoch > starts[-1].epoch:
            starts.append(run)
    return starts


def heaviest_chain(items: list[tuple[int, int, int]]) -> list[int]:
    """Return the chain of items with the most weight.

    The items are (first, last, weight); in the chain, each first is above the preceding last. The result is their
    indices.
    """
    ends: list[int] = []  # last values of the best chains so far, rising, with rising weights
    best: list[tuple[int, int]] = []  # weight, and the index of the chain's last item
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
    """Reads the batches of extents; a context manager. The page cache stays as the first reading left it.

    A log stays open for the next extent, which is usually in the same log.
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
        """Yield each batch of an extent as an extent; one extent at a time. Raises OpenError as LogFile does."""
        if extent.batch_count == 1:
            yield extent
            return
        log_file = self._walked = _open(self._walked, extent)
        for header in _headers(log_file, extent):
            yield extent_of(log_file, header, extent.segment_base, follows_loss=extent.follows_loss)

    def read(self, batch: Extent) -> bytes:
        """Return the bytes of a batch. Raises OpenError if its log can't be opened or read."""
        self._read = _open(self._read, batch)
        return self._read.read(batch.position, batch.size)


def _open(log_file: LogFile | None, extent: Extent) -> LogFile:
    """Return an extent's log: the open log if it is the same."""
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


SEARCH_COST_LIMIT = 32
"""Bytes of CRC work that searches in a file may cost, for each byte that it takes on disk."""
_GIVEN_UP = "no intact batch was found here; kseg gave up the slow search, since it took too long"
_SIZE = rb"(?!\0\0\0[\0-\x0d])[\0-\x7f].{7}"
_V0, _V1, _V2 = PLAUSIBLE_ATTRIBUTES.values()
_HEADER = re.compile(
    rb"(?s)(?=.{8}" + _SIZE + rb"(?:\x02.{4}\0%b[\0-\x7f]|\x01%b|\0%b))" % (_V2, _V1, _V0),
)
"""Pattern of a possible header: a sufficient size, a known magic, attributes that a release has used."""


def intact_runs(log_file: LogFile, position: int = 0) -> Iterator[Run | Damage]:
    """Yield runs of batches with right CRCs, and damages, in file order, from a batch's position on.

    Their sizes add up to the file's.
    """
    search = _Search(log_file)
    while position < log_file.size and not log_file.has_given_up:
        for item in log_file.runs(position):
            damage = item if isinstance(item, Damage) else _wrong_crc(log_file, item)
            if damage is None:
                yield item
                position = end_of(item)
                continue
            found = search.first(damage.position + 1, damage.position + damage.size)
            position = damage.position + damage.size if found is None else found
            yield damage._replace(size=position - damage.position)
            if found is not None:
                break
        else:
            return
    yield from search.runs(position)


def _wrong_crc(log_file: LogFile, run: Run) -> Damage | None:
    """Return the damage of a run that is a batch with a wrong CRC, or None for others."""
    start, size, is_valid = run.rows[:ROW]
    if is_valid:
        return None
    position = run.position + start
    return Damage(DamageKind.BAD_CRC, position, size, log_file.crc_damage(position, size).detail)


class _Search:
    """Searches intact batches byte by byte, within its budget."""

    def __init__(self, log_file: LogFile) -> None:
        self._log_file = log_file
        self._budget = SEARCH_COST_LIMIT * log_file.stored_size

    def runs(self, position: int) -> Iterator[Run | Damage]:
        """Yield the findings from a position on: each batch as a run, and the damages between."""
        end = self._log_file.size
        while position < end:
            found = self.first(position, end)
            header = None if found is None else intact_header(self._log_file, found)
            following = end if header is None else header.position
            if following > position:
                yield Damage(DamageKind.BAD_LENGTH, position, following - position, _GIVEN_UP)
            position = end if header is None else header.end
            if header is not None:
                raw = memoryview(self._log_file.read(header.position, header.size))
                yield Run(raw, header.position, array("q", (0, len(raw), 1)), 1, 1 << header.codec)

    def first(self, start: int, end: int) -> int | None:
        """Return the position of the first intact batch that begins from `start` to below `end`; None without one."""
        most = FIRST_SIZE
        while start < end:
            stored, hole = self._log_file.next_stretch(start)
            start = max(start, stored - MAGIC_POSITION)
            size = min(most, end - start, max(hole - start, 1))
            most = BUFFER_SIZE
            window = self._log_file.read(start, size + BATCH_HEADER_SIZE)
            if len(window) < HEADER_WINDOW:
                return None
            if any(window):
                for match in _HEADER.finditer(window):
                    at = match.start()
                    if at >= size:
                        break
                    if self._is_batch(window, at, start + at):
                        return start + at
            start += size
        return None

    def _is_batch(self, window: bytes, at: int, position: int) -> bool:
        size = claimed_size(window, at)
        if size is None or size > self._log_file.size - position or not _fits(window, at, size):
            return False
        if not self._log_file.may_be_batch(position, size):
            return False
        self._budget -= size
        return self._budget > 0 and intact_header(self._log_file, position) is not None


def _fits(window: bytes, at: int, size: int) -> bool:
    """Return True if the record count or key length is plausible for a batch of this size."""
    magic = window[at + MAGIC_POSITION]
    if magic == 2:
        return 0 <= BATCH_RECORDS_COUNT.read(window, at) <= size * 1000
    key_length = ENTRY_V1_KEY_LENGTH if magic == 1 else ENTRY_V0_KEY_LENGTH
    return -1 <= key_length.read(window, at) <= size


class InnerProblem(NamedTuple):
    """A problem inside a batch with a right CRC: its place, the finding's id, a text, and the batch's last offset."""

    position: int
    id: str
    detail: str
    last_offset: int


class InnerProblems:
    """Finds problems inside the batches of a slice; if one batch is unusual, all are read."""

    def __init__(self, log_file: LogFile, piece: Slice) -> None:
        self._log_file = log_file
        self._piece = piece
        self._usual = kernel.load().HeaderFold(Event.RECORDS)

    def of(self, row: int, header: BatchHeader) -> InnerProblem | None:
        """Return the problem inside the batch of a row with the given header."""
        if header.is_control:
            return next(iter(self._find(row, row + 1).values()), None)
        run, piece = self._piece.run, self._piece
        stop, _ = self._usual.fold(run.buffer, run.rows, row, row + 1, run.position, piece.bodies, piece.first)
        return None if stop > row else self._all.get(header.position)

    @cached_property
    def _all(self) -> dict[int, InnerProblem]:
        """The problems of the slice, by position, without those of control batches."""
        run, piece = self._piece.run, self._piece
        columns = kernel.load().columns(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies)
        offsets = memoryview(columns.offsets).cast("B").cast("q")
        is_suspicious = columns.problems or piece.damages or b"\0" in bytes(columns.valid)
        if is_suspicious or any(map(ge, offsets, offsets[1:])) or _holds_strays(piece, columns):
            return self._find(piece.first, piece.last)
        return {}

    def _find(self, first: int, last: int) -> dict[int, InnerProblem]:
        batches = (each for each in checked_rows(self._log_file, self._piece, first, last))
        problems = (_problem_inside(batch) for batch in batches if isinstance(batch, CheckedBatch))
        return {problem.position: problem for problem in problems if problem is not None}


def _problem_inside(batch: CheckedBatch) -> InnerProblem | None:
    position, wrong = batch.header.position, offsets_problem(batch)
    if batch.damage is not None:
        return InnerProblem(position, str(batch.damage.kind), batch.damage.detail, batch.last_offset)
    return None if wrong is None else InnerProblem(position, "record-offsets", wrong, batch.last_offset)


def _holds_strays(piece: Slice, columns: Columns) -> bool:
    """Return True if a batch has a record outside the offsets of its header."""
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
