"""Runs of batches with decompressed bodies: in threads if there is much to do, in the same order."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from kseg import kernel
from kseg.codecs.limits import DEFAULT_LIMIT, LARGEST_RATIO_FREE
from kseg.formats.codes import Codec, DamageKind
from kseg.kernel.contract import ROW, START, Problem, RecordProblem
from kseg.named_tuple import NamedTuple
from kseg.reading.blocks import Damage
from kseg.reading.log_file import Run

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from kseg.kernel.entry_points import Bodies

    _Result: TypeAlias = "Slice | Damage | Future[Slice | Damage]"


SLICE_SIZE = 1 << 18
"""Compressed bytes that are decompressed as one piece of work: enough for a thread."""
ENOUGH = 1 << 23
"""Decompressed bytes at which a piece of work ends: bodies that grow a thousandfold are handed on in parts."""
ENOUGH_MORE = 1 << 19
"""The same for the following parts of a piece: memory that is freed and reused at once is cheapest."""
FAILURES_RATIO, FAILURES_FREE = 32, 1 << 28
"""Decompressed bytes of incomplete bodies: per byte of the file, and in any file.

Beyond these a body is limited by its own size: thousands of bombs would take a MiB each.
"""
MOST_THREADS = 4
"""Decompressing threads, including the caller's."""
MOST_UNDER_WAY = 4
"""Pieces that may wait for an earlier one: fewer than the runs that LogFile keeps."""
WORTH_THREADS = 1 << 20
"""Bytes of log below which starting threads costs more than it gains."""
_ROWS_MORE = 8
"""Rows that are examined beyond twice the previous part's number, instead of all remaining ones each time."""
_ONLY_UNCOMPRESSED = 1 << Codec.NONE
_QUICK = _ONLY_UNCOMPRESSED | 1 << Codec.LZ4
"""Codecs that are faster than handing the work to a thread."""


class Slice(NamedTuple):
    """Rows first … last - 1 of a run, with their bodies, or None for an uncompressed batch, `bodies` None if all are.

    `damages` are those of incomplete bodies, with their rows; `wasted` is the number of bytes from these.
    """

    run: Run
    first: int
    last: int
    bodies: "Bodies | None"
    damages: tuple[tuple[int, Damage], ...] = ()
    wasted: int = 0


class BodyBounds:
    """Limits of bodies' sizes, lowered once incomplete bodies have produced many bytes."""

    def __init__(self, size: int, limit: int) -> None:
        self.limit = limit
        self._remaining_waste = FAILURES_RATIO * size + FAILURES_FREE

    @property
    def free(self) -> int:
        """Bytes that a body may become whatever its size."""
        return LARGEST_RATIO_FREE if self._remaining_waste > 0 else 0

    def note(self, wasted: int) -> None:
        """Count wasted bytes; in file order, so that the same file always has the same result."""
        self._remaining_waste -= wasted


def with_bodies(
    items: Iterator[Run | Damage], size: int, limit: int = DEFAULT_LIMIT, *, in_threads: bool = True
) -> Iterator[Slice | Damage]:
    """Yield the items of `LogFile.runs` with compressed bodies decompressed.

    Args:
        items: runs and damages in file order.
        size: bytes of the file; small ones aren't worth threads.
        limit: the most bytes that a body may become.
        in_threads: whether this process may use several processors.
    """
    bounds = BodyBounds(size, limit)
    workers = _worker_count() if in_threads and size >= WORTH_THREADS else 0
    if workers == 0:
        for item in items:
            for piece in _pieces(item):
                yield from _parts(piece, _decompress_piece(piece, limit, bounds.free), bounds)
    else:
        yield from _in_threads(items, bounds, workers)


def _pieces(item: Run | Damage) -> Iterator[Slice | Damage]:
    """Cut a run into pieces of work, without bodies yet."""
    if isinstance(item, Damage):
        yield item
        return
    if item.codecs == _ONLY_UNCOMPRESSED:
        yield Slice(item, 0, item.row_count, None)
        return
    starts = item.rows[START : item.row_count * ROW : ROW]
    first = 0
    while first < item.row_count:
        last = max(bisect_left(starts, starts[first] + SLICE_SIZE, first), first + 1)
        yield Slice(item, first, last, None)
        first = last


def _in_threads(items: Iterator[Run | Damage], bounds: BodyBounds, workers: int) -> Iterator[Slice | Damage]:
    """Decompress pieces in threads, and in this one if the workers are busy; the pieces' order is kept."""
    pool: Executor | None = None
    under_way: deque[_Work] = deque()
    try:
        for item in items:
            for piece in _pieces(item):
                is_worth = isinstance(piece, Slice) and piece.run.codecs & ~_QUICK
                free = bounds.free
                if is_worth and sum(not _is_ready(work.result) for work in under_way) <= workers:
                    pool = pool or _pool(workers)
                    result: _Result = pool.submit(_decompress_piece, piece, bounds.limit, free)
                else:
                    result = _decompress_piece(piece, bounds.limit, free)
                under_way.append(_Work(piece, free, result))
                while len(under_way) > MOST_UNDER_WAY or (under_way and _is_ready(under_way[0].result)):
                    yield from _finish(under_way.popleft(), bounds)
        while under_way:
            yield from _finish(under_way.popleft(), bounds)
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


class _Work(NamedTuple):
    """A piece of a log that is being decompressed, and its current or future result."""

    piece: Slice | Damage
    free: int
    result: "_Result"


def _pool(workers: int) -> "Executor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(workers, "kseg-bodies")


def _worker_count() -> int:
    from kseg.system.shared_work import processors

    return min(MOST_THREADS, processors()) - 1


def _is_ready(result: "_Result") -> bool:
    return isinstance(result, Slice | Damage) or result.done()


def _finish(work: "_Work", bounds: BodyBounds) -> Iterator[Slice | Damage]:
    piece, free, result = work
    part = result if isinstance(result, Slice | Damage) else result.result()
    if free != bounds.free:  # started before this was known
        part = _decompress_piece(piece, bounds.limit, bounds.free)
    return _parts(piece, part, bounds)


def _parts(piece: Slice | Damage, part: Slice | Damage, bounds: BodyBounds) -> Iterator[Slice | Damage]:
    """Yield a piece's parts, of which the first is done; there are several if its bodies are unusually large."""
    bounds.note(part.wasted if isinstance(part, Slice) else 0)
    yield part
    while isinstance(piece, Slice) and isinstance(part, Slice) and part.last < piece.last:
        last = min(piece.last, part.last + 2 * (part.last - part.first) + _ROWS_MORE)
        rest = Slice(piece.run, part.last, last, None)
        part = _decompress_piece(rest, bounds.limit, bounds.free, ENOUGH_MORE)
        bounds.note(part.wasted if isinstance(part, Slice) else 0)
        yield part


def _decompress_piece(piece: Slice | Damage, limit: int, free: int, enough: int = ENOUGH) -> Slice | Damage:
    """Return a piece with its bodies, up to the row at which they become enough bytes.

    The kernel gets bodies within the general limit; the others are limited by their own sizes.
    """
    if isinstance(piece, Damage) or piece.run.codecs == _ONLY_UNCOMPRESSED:
        return piece
    from kseg.codecs.bodies import Body, decompress, library_functions

    run, first, last = piece.run, piece.first, piece.last
    bodies = kernel.load().Bodies(last - first)
    last, left = bodies.decompress(run.buffer, run.rows, first, library_functions(run.codecs), min(limit, free), enough)
    damages: list[tuple[int, Damage]] = []
    size = wasted = 0
    for row, codec, magic, start, end in left:
        if size >= enough:
            last = row
            break
        body = Body(b"", "a wrapper without a value")
        if start >= 0:
            body = decompress(codec, magic, run.buffer[start:end], limit, free)
        size += len(body.data)
        if body.data or body.failure is None:
            bodies[row - first] = body.data
        if body.failure is not None:
            wasted += len(body.data)
            damages.append((row, body_damage(run.position + run.rows[row * ROW + START], body.failure)))
    return Slice(run, first, last, bodies, tuple(damages), wasted)


# --- problems inside a batch
# ------------------------------------------------------------------------------------------


class ProblemText(NamedTuple):
    """The kind of damage of a problem with the records of a batch, and its description."""

    kind: DamageKind
    detail: str


PROBLEMS: dict[Problem, ProblemText] = {
    Problem.BAD_RECORD: ProblemText(DamageKind.BAD_RECORD, "record {n} can't be read, at byte {at} of the records"),
    Problem.BAD_COUNT: ProblemText(
        DamageKind.BAD_COUNT, "{n} records end at byte {at} of the records, but the header has another count"
    ),
    Problem.BAD_CONTROL: ProblemText(DamageKind.BAD_RECORD, "control record {n} has no key or value of its kind"),
    Problem.BAD_MESSAGE: ProblemText(DamageKind.BAD_RECORD, "the CRC of inner message {n} is wrong"),
}


def body_damage(position: int, failure: str) -> Damage:
    """Return the damage of a batch at a position with an incomplete body."""
    from kseg.codecs.bodies import UNKNOWN_CODEC

    is_unknown = failure.startswith(UNKNOWN_CODEC)
    return Damage(DamageKind.BAD_CODEC if is_unknown else DamageKind.BAD_BODY, position, 0, failure)


def problem_damage(problem: RecordProblem) -> Damage:
    """Return the damage of a batch whose records can't all be read."""
    kind, detail = PROBLEMS[problem.problem]
    return Damage(kind, problem.position, 0, detail.format(n=problem.records_read, at=problem.body_position))
