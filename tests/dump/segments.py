"""Segments with their indexes for the tests of dump: batches by aiokafka, entries as they stand in files."""

import struct
from collections.abc import Sequence
from pathlib import Path

from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment

BASE_OFFSET = 100
BASE_TIME = 1_700_000_000_000
NAME = f"{BASE_OFFSET:020}"


def two_record_batches(count: int) -> list[NewBatch]:
    """Batch n has the offsets 100 + 2n and 101 + 2n; its largest timestamp is n seconds after BASE_TIME."""
    return [
        NewBatch(
            [NewRecord(None, b"a", BASE_TIME + 1000 * n - 1), NewRecord(None, b"b", BASE_TIME + 1000 * n)],
            BASE_OFFSET + 2 * n,
        )
        for n in range(count)
    ]


def segment(directory: Path, count: int = 4) -> list[int]:
    """Writes a log of two-record batches, and gives their positions, followed by the log's size."""
    batches = two_record_batches(count)
    write_segment(directory, batches, BASE_OFFSET)
    positions = [0]
    for batch in batches:
        positions.append(positions[-1] + len(batch_bytes(batch)))
    return positions


def offset_index(directory: Path, entries: Sequence[tuple[int, int]], tail: bytes = b"") -> Path:
    """An .index of (relative offset, position)."""
    path = directory / f"{NAME}.index"
    path.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries) + tail)
    return path


def time_index(directory: Path, entries: Sequence[tuple[int, int]], tail: bytes = b"") -> Path:
    """A .timeindex of (timestamp, relative offset)."""
    path = directory / f"{NAME}.timeindex"
    path.write_bytes(b"".join(struct.pack(">qi", *entry) for entry in entries) + tail)
    return path
