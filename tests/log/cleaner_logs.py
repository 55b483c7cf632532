"""Logs for the tests of `compact`, made batch by batch, with an active segment after them."""

import os
from collections.abc import Sequence
from pathlib import Path

from kseg import Segment
from kseg.formats.codes import ControlType
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.segments import RollReason
from kseg.log.writer import NEVER, PartitionSettings, PartitionWriter
from kseg.reading.batch import Batch
from kseg.writer.batches import MemoryRecords, RecordsBuilder

NOW = 1_700_000_000_000

Pair = tuple[str | None, str | None]
"""Key and value."""


def batch(base_offset: int, *pairs: Pair, timestamp: int = NOW, **fields: object) -> bytes:
    """Return a batch of records with one timestamp; a wrapper or messages with magic 0 or 1."""
    builder = RecordsBuilder(base_offset, **fields)  # type: ignore[arg-type]
    for key, value in pairs:
        key_bytes, value_bytes = (None if text is None else text.encode() for text in (key, value))
        builder.append(-1 if builder.magic == 0 else timestamp, key_bytes, value_bytes)
    return builder.build().raw


def produce_batch(
    base_offset: int, *pairs: Pair, producer_id: int, is_transactional: bool = True, **fields: int
) -> bytes:
    """Return a batch of a producer whose sequences are its offsets."""
    producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": base_offset}
    return batch(base_offset, *pairs, is_transactional=is_transactional, **producer, **fields)


def marker(
    offset: int, kind: ControlType, producer_id: int, horizon_ms: int | None = None, timestamp: int = NOW
) -> bytes:
    """Return the batch that ends a producer's transaction."""
    builder = RecordsBuilder(
        offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
        delete_horizon_ms=horizon_ms,
    )
    builder.append_end_marker(kind, 0, timestamp)
    return builder.build().raw


def make(directory: Path, *segments: Sequence[bytes], modified_ms: int = NOW) -> PartitionLog:
    """Write a partition of these segments and an active one after them."""
    directory.mkdir(parents=True)
    with PartitionWriter(directory, 0, PartitionSettings(NEVER)) as writer:
        for entries in segments:
            for raw in entries:
                for entry in MemoryRecords(raw).shallow():
                    writer.append(entry.raw)
            writer.roll(RollReason.UNKNOWN)
        writer.append(batch(writer.next_offset, ("active", "v"), ("active", "w")))
    for path in directory.glob("*.log"):
        os.utime(path, ns=(modified_ms * 1_000_000,) * 2)
    return PartitionLog(directory)


def batches(directory: Path) -> list[Batch]:
    """Return all batches of a directory's logs."""
    found: list[Batch] = []
    for path in sorted(directory.glob("*.log")):
        with Segment(path) as segment:
            found += segment.batches()
    return found


def records(directory: Path) -> list[Record]:
    """Return all records of a directory's logs."""
    return [record for each in batches(directory) for record in each.records()]
