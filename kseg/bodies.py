"""Runs of batches with their bodies decompressed: in threads where there is much to do, the order kept."""

import os
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kseg import kernel
from kseg.codecs import DEFAULT_LIMIT, UNKNOWN_CODEC, Body, decompress, lz4_decompress_safe, wrapper_value
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, MAGIC_POSITION, Codec, DamageKind
from kseg.kernel.contract import ROW, SIZE, START, Bodies
from kseg.log_file import Damage, Run

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    _Result: TypeAlias = "Slice | Damage | Future[Slice | Damage]"

SLICE_SIZE = 1 << 18
"""Compressed bytes that are decompressed as one piece of work: enough to be worth a thread's while."""
ENOUGH = 1 << 23
"""Decompressed bytes with which a piece of work ends: bodies that grow a thousandfold are handed on by and by."""
MOST_THREADS = 4
WORTH_THREADS = 1 << 20
"""Bytes of log below which starting threads costs more than it gains."""
_ONLY_UNCOMPRESSED = 1 << Codec.NONE
_LZ4 = 1 << Codec.LZ4
_QUICK = _ONLY_UNCOMPRESSED | _LZ4
"""Codecs that cost less than handing the work to a thread."""


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
    threads = min(MOST_THREADS, processors)
    if threads == 1 or size < WORTH_THREADS:
        for item in items:
            for piece in _pieces(item):
                yield from _parts(piece, _decompressed(piece, limit), limit)
    else:
        yield from _in_threads(items, limit, threads)


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


def _in_threads(items: Iterator[Run | Damage], limit: int, threads: int) -> Iterator[Slice | Damage]:
    pool: Executor | None = None
    under_way: deque[tuple[Slice | Damage, _Result]] = deque()
    try:
        for item in items:
            for piece in _pieces(item):
                if isinstance(piece, Slice) and piece.run.codecs & ~_QUICK:
                    pool = pool or _pool(threads)
                    under_way.append((piece, pool.submit(_decompressed, piece, limit)))
                else:
                    under_way.append((piece, _decompressed(piece, limit)))
                while len(under_way) > threads or (under_way and _is_ready(under_way[0][1])):
                    yield from _taken(under_way.popleft(), limit)
        while under_way:
            yield from _taken(under_way.popleft(), limit)
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _pool(threads: int) -> "Executor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, "kseg-bodies")


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
    waiting: Iterable[int] = range(first, last)
    if run.codecs & _LZ4 and (function := lz4_decompress_safe()):
        last, waiting = bodies.unlz4(run.buffer, run.rows, first, function, limit, ENOUGH)
    damages: list[tuple[int, Damage]] = []
    size = 0
    for row in waiting:
        if size >= ENOUGH:
            last = row
            break
        body = _body(run, row, limit)
        if body is None:
            continue
        size += len(body.data)
        if body.data or body.failure is None:
            bodies[row - first] = body.data
        if body.failure is not None:
            damages.append((row, _damage(run, row, body.failure)))
    return Slice(run, first, last, bodies, tuple(damages))


def _body(run: Run, row: int, limit: int) -> Body | None:
    """A row's body; None for an uncompressed batch."""
    start = run.rows[row * ROW + START]
    end = start + run.rows[row * ROW + SIZE]
    magic = run.buffer[start + MAGIC_POSITION]
    is_legacy = magic < 2 or magic > 127 or end - start < BATCH_HEADER_SIZE
    codec = run.buffer[start + (17 if is_legacy else 22)] & CODEC_MASK
    if codec == Codec.NONE:
        return None
    if not is_legacy:
        return decompress(codec, magic, run.buffer[start + BATCH_HEADER_SIZE : end], limit)
    compressed = wrapper_value(run.buffer[start:end])
    return Body(b"", "a wrapper without a value") if compressed is None else decompress(codec, magic, compressed, limit)


def _damage(run: Run, row: int, failure: str) -> Damage:
    is_unknown = failure.startswith(UNKNOWN_CODEC)
    kind = DamageKind.BAD_CODEC if is_unknown else DamageKind.BAD_BODY
    return Damage(kind, run.position + run.rows[row * ROW + START], 0, failure)
