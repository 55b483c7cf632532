"""Runs of batches with their bodies decompressed: in threads where there is much to do, the order kept."""

import os
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kseg import kernel
from kseg.codecs import DEFAULT_LIMIT, UNKNOWN_CODEC, Body, decompress, library_functions
from kseg.formats.codes import Codec, DamageKind
from kseg.kernel.contract import ROW, START, Bodies
from kseg.log_file import Damage, Run

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    _Result: TypeAlias = "Slice | Damage | Future[Slice | Damage]"

SLICE_SIZE = 1 << 18
"""Compressed bytes that are decompressed as one piece of work: enough to be worth a thread's while."""
ENOUGH = 1 << 23
"""Decompressed bytes with which a piece of work ends: bodies that grow a thousandfold are handed on by and by."""
MOST_THREADS = 4
"""Threads that decompress, the one that asks for the bodies included."""
MOST_UNDER_WAY = 4
"""Pieces that may wait for an earlier one: no more than LogFile keeps runs."""
WORTH_THREADS = 1 << 20
"""Bytes of log below which starting threads costs more than it gains."""
_ONLY_UNCOMPRESSED = 1 << Codec.NONE
_QUICK = _ONLY_UNCOMPRESSED | 1 << Codec.LZ4
"""Codecs that cost less than handing the work to a thread."""
_OF_KERNEL = 1 << Codec.LZ4 | 1 << Codec.ZSTD
"""Codecs that the kernel decompresses by itself."""
_NO_VALUE = Body(b"", "a wrapper without a value")


class Slice(NamedTuple):
    """Rows first … last - 1 of a run, with their bodies; None for an uncompressed batch, `bodies` None if all are.

    `damages` are those of bodies that can't be had whole, with their rows.
    """

    run: Run
    first: int
    last: int
    bodies: Bodies | None
    damages: tuple[tuple[int, Damage], ...] = ()


def with_bodies(items: Iterator[Run | Damage], size: int, limit: int = DEFAULT_LIMIT) -> Iterator[Slice | Damage]:
    """Gives what `LogFile.runs` gives, with compressed bodies decompressed.

    Args:
        items: runs and damages in file order.
        size: bytes of the file; small ones aren't worth threads.
        limit: bytes that a body may become at most.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(MOST_THREADS, processors) - 1
    if workers == 0 or size < WORTH_THREADS:
        for item in items:
            for piece in _pieces(item):
                yield from _parts(piece, _decompressed(piece, limit), limit)
    else:
        yield from _in_threads(items, limit, workers)


def _pieces(item: Run | Damage) -> Iterator[Slice | Damage]:
    """Cuts a run into pieces of work; bodies are still missing."""
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


def _in_threads(items: Iterator[Run | Damage], limit: int, workers: int) -> Iterator[Slice | Damage]:
    """This thread takes a piece itself where the workers have enough to do; the pieces' order is kept."""
    pool: Executor | None = None
    under_way: deque[tuple[Slice | Damage, _Result]] = deque()
    try:
        for item in items:
            for piece in _pieces(item):
                is_worth = isinstance(piece, Slice) and piece.run.codecs & ~_QUICK
                if is_worth and sum(not _is_ready(result) for _, result in under_way) <= workers:
                    pool = pool or _pool(workers)
                    under_way.append((piece, pool.submit(_decompressed, piece, limit)))
                else:
                    under_way.append((piece, _decompressed(piece, limit)))
                while len(under_way) > MOST_UNDER_WAY or (under_way and _is_ready(under_way[0][1])):
                    yield from _taken(under_way.popleft(), limit)
        while under_way:
            yield from _taken(under_way.popleft(), limit)
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _pool(workers: int) -> "Executor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(workers, "kseg-bodies")


def _is_ready(result: "_Result") -> bool:
    return isinstance(result, Slice | Damage) or result.done()


def _taken(work: "tuple[Slice | Damage, _Result]", limit: int) -> Iterator[Slice | Damage]:
    piece, result = work
    return _parts(piece, result if isinstance(result, Slice | Damage) else result.result(), limit)


def _parts(piece: Slice | Damage, part: Slice | Damage, limit: int) -> Iterator[Slice | Damage]:
    """A piece's parts, of which the first is done: more than one where its bodies are unusually large."""
    yield part
    while isinstance(piece, Slice) and isinstance(part, Slice) and part.last < piece.last:
        part = _decompressed(Slice(piece.run, part.last, piece.last, None), limit)
        yield part


def _decompressed(piece: Slice | Damage, limit: int) -> Slice | Damage:
    """A piece with its bodies, up to the row with which they become ENOUGH bytes."""
    if isinstance(piece, Damage) or piece.run.codecs == _ONLY_UNCOMPRESSED:
        return piece
    run, first, last, _, _ = piece
    bodies = kernel.load().Bodies(last - first)
    last, left = bodies.decompress(
        run.buffer, run.rows, first, library_functions(run.codecs & _OF_KERNEL), limit, ENOUGH
    )
    damages: list[tuple[int, Damage]] = []
    size = 0
    for row, codec, magic, start, end in left:
        if size >= ENOUGH:
            last = row
            break
        body = decompress(codec, magic, run.buffer[start:end], limit) if start >= 0 else _NO_VALUE
        size += len(body.data)
        if body.data or body.failure is None:
            bodies[row - first] = body.data
        if body.failure is not None:
            damages.append((row, _damage(run, row, body.failure)))
    return Slice(run, first, last, bodies, tuple(damages))


def _damage(run: Run, row: int, failure: str) -> Damage:
    is_unknown = failure.startswith(UNKNOWN_CODEC)
    kind = DamageKind.BAD_CODEC if is_unknown else DamageKind.BAD_BODY
    return Damage(kind, run.position + run.rows[row * ROW + START], 0, failure)
