"""What each codec would make of a topic: a sample of its batches, compressed by all of them."""

from collections.abc import Iterator
from contextlib import suppress
from time import perf_counter
from typing import NamedTuple

from kseg.codecs.body import compress
from kseg.errors import KsegError
from kseg.formats.codes import BATCH_HEADER_SIZE, Codec
from kseg.kernel.contract import ROW, SIZE, START, VALID
from kseg.kernel.statistics_contract import BATCH_SIZE
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.header import parse_header

TRIED = (Codec.LZ4, Codec.ZSTD, Codec.SNAPPY, Codec.GZIP)
SAMPLE_SIZE = 512 << 10
"""Bytes of records that a sample has at most."""
_SEGMENTS = 8
"""A sample is taken from the beginnings of so many segments."""


class Trial(NamedTuple):
    """What a codec made of a sample: bytes, with the batches' headers, as they are batched, and joined to full batches.

    speed: uncompressed bytes a second, None if nobody asked.
    """

    codec: Codec
    size: int
    joined_size: int
    speed: float | None


class Sample(NamedTuple):
    """Batches of a partition: how many, bytes of their bodies uncompressed, of all as they are stored; and trials."""

    batches: int
    uncompressed_size: int
    stored_size: int
    trials: tuple[Trial, ...]


def try_codecs(partition: PartitionLog, *, is_timed: bool) -> Sample | None:
    """A sample of a partition's data, compressed by each codec at Kafka's level; None without v2 batches of data."""
    bodies: list[bytes] = []
    stored = 0
    for body, size in _bodies(partition):
        bodies.append(body)
        stored += size
    if not bodies:
        return None
    joined = _joined(bodies)
    return Sample(
        len(bodies), sum(map(len, bodies)), stored, tuple(_trial(each, bodies, joined, is_timed) for each in TRIED)
    )


def _trial(codec: Codec, bodies: list[bytes], joined: list[bytes], is_timed: bool) -> Trial:
    started = perf_counter()
    size = _compressed(codec, bodies)
    took = perf_counter() - started
    speed = sum(map(len, bodies)) / took if is_timed and took > 0 else None
    return Trial(codec, size, _compressed(codec, joined), speed)


def _compressed(codec: Codec, bodies: list[bytes]) -> int:
    return sum(len(compress(codec, body)) + BATCH_HEADER_SIZE for body in bodies)


def _joined(bodies: list[bytes]) -> list[bytes]:
    """Bodies joined up to the default `batch.size`."""
    joined: list[bytes] = []
    for body in bodies:
        if joined and len(joined[-1]) + len(body) <= BATCH_SIZE:
            joined[-1] += body
        else:
            joined.append(body)
    return joined


def _bodies(partition: PartitionLog) -> Iterator[tuple[bytes, int]]:
    """Bodies of batches of data, and the batches' sizes."""
    filled = [segment for segment in partition.segments if segment.size]
    step = max(len(filled) / _SEGMENTS, 1.0)
    chosen = [filled[int(place * step)] for place in range(min(len(filled), _SEGMENTS))]
    for segment in chosen:
        left = SAMPLE_SIZE // len(chosen)
        with suppress(KsegError):
            for body, size in _of_segment(segment):
                if len(body) > left:
                    break
                left -= len(body)
                yield body, size


def _of_segment(segment: SegmentFiles) -> Iterator[tuple[bytes, int]]:
    with segment.open_log() as log_file:
        for piece in with_bodies(log_file.runs(), log_file.stored_size):
            if not isinstance(piece, Damage):
                yield from _of_slice(piece)


def _of_slice(piece: Slice) -> Iterator[tuple[bytes, int]]:
    run = piece.run
    for row in range(piece.first, piece.last):
        start, size, is_valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
        header = parse_header(run.buffer, start, run.position + start, bool(is_valid))
        if not is_valid or header.is_legacy or header.is_control:
            continue
        if header.codec == Codec.NONE:
            yield bytes(run.buffer[start + BATCH_HEADER_SIZE : start + size]), size
        elif piece.bodies is not None and (body := piece.bodies[row - piece.first]) is not None:
            yield body, size
