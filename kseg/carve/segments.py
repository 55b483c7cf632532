"""Segments and metadata snapshots: batches as the images have them, with the few bytes that had to be rebuilt."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.carve.chains import CarvedPartition, Part, Rows, first_header, last_header
from kseg.carve.contents import is_snapshot
from kseg.carve.runs import Runs
from kseg.formats.codes import MAXIMUM_RELATIVE_OFFSET, SEGMENT_BYTES
from kseg.formats.file_names import BOOTSTRAP_CHECKPOINT
from kseg.system.new_directory import write_whole

_PIECE = 1 << 20


class CarvedSegment(NamedTuple):
    """A segment, or a metadata snapshot: its directory, its base offset, its parts and their bytes."""

    directory: str
    base_offset: int
    parts: tuple[Part, ...]
    size: int
    is_snapshot: bool = False

    @property
    def name(self) -> str:
        """The path of its file in the output. A snapshot doesn't have the offset of its own name."""
        name = BOOTSTRAP_CHECKPOINT if self.is_snapshot else f"{self.base_offset:020}.log"
        return f"{self.directory}/{name}"


def segments_of(runs: Runs, partition: CarvedPartition) -> Iterator[CarvedSegment]:
    """Yield the segments of a partition: a new one begins at a gap in the offsets, and when the last one is full."""
    if is_snapshot(runs, partition):
        size = sum(size_of(runs, part) for part in partition.parts)
        yield CarvedSegment(partition.directory, 0, partition.parts, size, is_snapshot=True)
        return
    held: list[Part] = []
    size = 0
    for part in partition.parts:
        first = first_header(runs, part)
        if held:
            base_offset = first_header(runs, held[0]).first_offset
            is_next = last_header(runs, held[-1]).last_offset + 1 == first.first_offset
            is_near = last_header(runs, part).last_offset - base_offset <= MAXIMUM_RELATIVE_OFFSET
            if not is_next or not is_near or size + size_of(runs, part) > SEGMENT_BYTES:
                yield CarvedSegment(partition.directory, base_offset, tuple(held), size)
                held, size = [], 0
        held.append(part)
        size += size_of(runs, part)
    if held:
        yield CarvedSegment(partition.directory, first_header(runs, held[0]).first_offset, tuple(held), size)


def size_of(runs: Runs, part: Part) -> int:
    """Return the bytes of a part."""
    if isinstance(part, Rows):
        return runs.batches.header(part.last - 1).end - runs.batches.header(part.first).position
    return part.header.size


def pieces_of(runs: Runs, part: Part) -> tuple[tuple[int, int], ...]:
    """Return the pieces of the images that a part consists of, after its rebuilt bytes."""
    if isinstance(part, Rows):
        return ((runs.batches.header(part.first).position, runs.batches.header(part.last - 1).end),)
    return part.pieces


def write_segment(runs: Runs, segment: CarvedSegment, directory: Path) -> str:
    """Write a segment into a directory; return its SHA-256. Only its owner can read it.

    Raises OSError if the system can't write.
    """
    path = directory / segment.name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    digest = hashlib.sha256()
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for content in _contents(runs, segment):
            write_whole(target, content)
            digest.update(content)
    finally:
        os.close(target)
    return digest.hexdigest()


def _contents(runs: Runs, segment: CarvedSegment) -> Iterator[bytes]:
    for part in segment.parts:
        if not isinstance(part, Rows):
            yield part.rebuilt
        for start, end in pieces_of(runs, part):
            for position in range(start, end, _PIECE):
                yield runs.images.read(position, min(position + _PIECE, end))
