"""Log files for tests, written with aiokafka's record builders: kseg doesn't read its own output."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy  # type: ignore[import-untyped]
from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

COMMIT, ABORT = 1, 0


class NewRecord(NamedTuple):
    """A record to write; a null key or value is None."""

    key: bytes | None
    value: bytes | None
    timestamp: int = 1_700_000_000_000
    headers: Sequence[tuple[str, bytes | None]] = ()


class NewBatch(NamedTuple):
    """A batch to write."""

    records: Sequence[NewRecord]
    base_offset: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    is_transactional: bool = False
    is_control: bool = False
    partition_leader_epoch: int = 0
    base_sequence: int = 0

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.records)


def batch_bytes(batch: NewBatch) -> bytes:
    """Return the batch in its form in a log."""
    sequence = -1 if batch.producer_id < 0 or batch.is_control else batch.base_sequence
    builder = _DefaultRecordBatchBuilderPy(
        2, 0, int(batch.is_transactional), batch.producer_id, batch.producer_epoch, sequence, 1 << 30
    )
    for number, record in enumerate(batch.records):
        builder.append(number, record.timestamp, record.key, record.value, list(record.headers))
    data = bytearray(builder.build())
    data[0:8] = batch.base_offset.to_bytes(8, "big")
    data[12:16] = batch.partition_leader_epoch.to_bytes(4, "big", signed=True)
    if batch.is_control:
        data[22] |= 0x20
        data[17:21] = calc_crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def marker(kind: int, batch: NewBatch, timestamp: int = 1_700_000_000_000) -> NewBatch:
    """Return the control batch that ends a producer's transaction, directly after `batch`.

    kind: COMMIT or ABORT.
    """
    key = (0).to_bytes(2, "big") + kind.to_bytes(2, "big")
    record = NewRecord(key, bytes.fromhex("0000 00000007"), timestamp)  # version 0, coordinator epoch 7
    return NewBatch([record], batch.next_offset, batch.producer_id, batch.producer_epoch, True, True)


def write_segment(directory: Path, batches: Iterable[NewBatch], base_offset: int = 0) -> Path:
    """Write a segment of these batches into a partition directory, which is created if necessary; return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base_offset:020}.log"
    path.write_bytes(b"".join(map(batch_bytes, batches)))
    return path
