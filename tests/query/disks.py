"""A disk to query, and answers as Python's rows."""

import json
from pathlib import Path
from typing import Any

from kseg.export.settings import ReadOptions
from kseg.query.database import QueryLimits
from kseg.query.session import QuerySession, QuerySources, open_session
from tests.log_files import COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.run import kseg
from tests.sandbox import write_indexes

START_MS = 1_793_500_200_000
"""2026-11-01T02:30."""
PARTITIONS, SEGMENTS, BATCHES, PER_BATCH = 3, 4, 20, 25
PER_SEGMENT = BATCHES * PER_BATCH


def write_disk(root: Path) -> Path:
    """Write topics `orders`, of three partitions with four segments, and `odd`, with unusual records."""
    for partition in range(PARTITIONS):
        for segment in range(SEGMENTS):
            log = write_segment(root / f"orders-{partition}", _orders(partition, segment), segment * PER_SEGMENT)
            write_indexes(log)
    transaction = NewBatch([NewRecord(b"t", b"x", START_MS)], 4, 7, 0, is_transactional=True)
    odd = [
        NewBatch(
            [
                NewRecord(None, b"no key", START_MS + 5),
                NewRecord(b"", b"", START_MS + 1),
                NewRecord(b"tombstone", None, -1),
                NewRecord(b"\xff\xfe", b"\0\x80", START_MS, [("h", None), ("h", b"2")]),
            ]
        ),
        transaction,
        marker(COMMIT, transaction, START_MS),
    ]
    write_indexes(write_segment(root / "odd-0", odd))
    return root


def _orders(partition: int, segment: int) -> list[NewBatch]:
    return [
        NewBatch(
            [_order(partition, offset) for offset in range(first, first + PER_BATCH)],
            first,
            producer_id=100 + partition,
            producer_epoch=0,
            base_sequence=first,
        )
        for first in range(segment * PER_SEGMENT, (segment + 1) * PER_SEGMENT, PER_BATCH)
    ]


def _order(partition: int, offset: int) -> NewRecord:
    value = json.dumps({"id": offset, "amount": offset % 97, "note": "n" * (offset % 200) * 10})
    headers = [("trace", b"%d" % offset)] if offset % 3 == 0 else []
    return NewRecord(b"customer-%d" % (offset % 10), value.encode(), START_MS + offset * 1000 + partition, headers)


def rows(session: QuerySession, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of the last statement."""
    found: list[tuple[Any, ...]] = []
    for answer in session.answers(sql):
        found = []
        for batch in answer.batches:
            found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def opened(*paths: Path, read: ReadOptions | None = None, is_quick: bool = False) -> Any:
    """Open a session over some directories, which raises errors of files."""

    def refuse(error: Exception) -> None:
        raise error

    return open_session(QuerySources(paths, read=read or ReadOptions(), is_quick=is_quick), QueryLimits(), refuse)


def run_query(directory: Path, *arguments: str, told: bytes = b"") -> list[dict[str, Any]]:
    """Return the rows of `kseg query … -o json`; only `told` may be on stderr."""
    ran = kseg(["query", *arguments, "-o", "json"], directory)
    assert (ran.status, ran.stderr) == (0, told)
    return [json.loads(line) for line in ran.stdout.splitlines()]
