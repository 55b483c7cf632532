"""Partitions with transactions, and their coordinators, for tests of `kseg txns`."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden
from tests.log_files import COMMIT, NewBatch, NewRecord, batch_bytes, marker, write_segment
from tests.run import kseg

LOGS = golden.ROOT / "logs"


def objects(arguments: list[str], directory: Path = LOGS) -> list[dict[str, Any]]:
    """Return the rows without sums."""
    printed = kseg(["txns", "-o", "json", *arguments], directory).stdout.splitlines()
    return [row for row in map(json.loads, printed) if row["type"] != "total"]


def write_two(tmp_path: Path) -> None:
    """Write one committed transaction and one open transaction."""
    ended = NewBatch([NewRecord(b"k", b"v", 1000)], 0, 7, 0, True)
    opened = NewBatch([NewRecord(b"k", b"v", 3000)] * 2, 2, 8, 1, True)
    write_segment(tmp_path / "orders-4", [ended, marker(COMMIT, ended, 2000), opened])


EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, COMPLETE_ABORT = 0, 1, 2, 4, 5


IDLE: tuple[str, int, int, dict[str, list[int]]] = ("idle", 1, EMPTY, {})
"""An id whose hash gives partition 0 of a topic of one partition, not of fifty."""


def write_coordinator(
    tmp_path: Path,
    *states: tuple[str, int, int, dict[str, list[int]]],
    number: int = 0,
    written_at: int = 1_700_000_000_000,
) -> None:
    """Write transactional ids to `__transaction_state`: name, producer id, status, partitions by topic."""
    write_segment(tmp_path / f"__transaction_state-{number}", [NewBatch(coordinator_records(states, written_at))])


def coordinator_records(
    states: Iterable[tuple[str, int, int, dict[str, list[int]]]], written_at: int
) -> list[NewRecord]:
    records = []
    for name, producer_id, status, partitions in states:
        key = build_message(message_schema("TransactionLogKey"), 0, {"transactionalId": name})
        value = {
            "producerId": producer_id,
            "producerEpoch": 1,
            "transactionTimeoutMs": 60_000,
            "transactionStatus": status,
            "transactionPartitions": [
                {"topic": topic, "partitionIds": numbers} for topic, numbers in partitions.items()
            ],
            "transactionLastUpdateTimestampMs": 5000,
            "transactionStartTimestampMs": 4000,
        }
        content = b"\0\0" + build_message(message_schema("TransactionLogValue"), 0, value)
        records.append(NewRecord(b"\0\0" + key, content, written_at))
    return records


def opened(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    (row,) = (row for row in objects(["orders-4", "--open", *arguments], tmp_path) if row["type"] == "transaction")
    return row


def write_damaged(tmp_path: Path, *, is_before: bool = False) -> Path:
    """Return a transaction whose end marker's bytes are random ones, between plain batches."""
    before = NewBatch([NewRecord(b"k", b"v", 1000)] * 2)
    opened = NewBatch([NewRecord(b"k", b"v", 1000)], 2, 8, 1, True)
    end = marker(COMMIT, opened, 2000)
    after = NewBatch([NewRecord(b"k", b"v", 3000)], 4)
    log = write_segment(tmp_path / "orders-4", [before, opened, end, after])
    data = bytearray(log.read_bytes())
    sizes = [len(batch_bytes(batch)) for batch in (before, opened, end)]
    start, size = (0, sizes[0]) if is_before else (sum(sizes[:2]), sizes[2])
    data[start : start + size] = random.Random(7).randbytes(size)
    log.write_bytes(data)
    return log
