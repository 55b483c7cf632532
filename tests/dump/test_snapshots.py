import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from tests.run import Run, kseg

NAME = "00000000000000000054.snapshot"

# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, transaction's first offset
IN_TRANSACTION = (5001, 3, 1, 53, 3, 1_700_000_000_000, 4, 50)
WITHOUT_BATCH = (5002, 0, -1, -1, 0, 1_700_000_000_001, 9, -1)


def snapshot(*entries: tuple[int, ...], version: int = 1, count: int | None = None) -> bytes:
    body = struct.pack(">i", len(entries) if count is None else count)
    body += b"".join(struct.pack(">qhiqiqiq", *entry) for entry in entries)
    return struct.pack(">hI", version, crc32c(body)) + body


def dump(directory: Path, content: bytes, *options: str) -> Run:
    (directory / NAME).write_bytes(content)
    return kseg(["dump", *options, NAME], directory)


def print_lines(directory: Path, like: str, *entries: tuple[int, ...]) -> list[str]:
    return dump(directory, snapshot(*entries), "--like", like).stdout.decode().split("\n")[1:-1]


COMMON = "producerId: 5001 producerEpoch: 3 coordinatorEpoch: 4 currentTxnFirstOffset: "
BATCH = "lastSequence: 1 lastOffset: 53 offsetDelta: 3 timestamp: 1700000000000"


@pytest.mark.parametrize(
    ("like", "line"),
    [
        (
            "0.11",
            "producerId: 5001 producerEpoch: 3 lastSequence: 1 lastOffset: 53 offsetDelta: 3"
            " lastTimestamp: 1700000000000 coordinatorEpoch: 4 currentTxnFirstOffset: Some(50)",
        ),
        (
            "1.0.1",
            COMMON + "Some(50) cachedMetadata: Queue(BatchMetadata(firstSeq=-2, lastSeq=1, firstOffset=50,"
            " lastOffset=53, timestamp=1700000000000))",
        ),
        ("2.0", f"{COMMON}Some(50) firstSequence: -2 {BATCH}"),
        ("2.1", f"{COMMON}Some(50) firstSequence: 2147483646 {BATCH}"),
        ("3.1", f"{COMMON}Some(50) lastTimestamp: 1700000000000 firstSequence: 2147483646 {BATCH}"),
        ("3.5", f"{COMMON}OptionalLong[50] lastTimestamp: 1700000000000 firstSequence: 2147483646 {BATCH}"),
        ("4.3", f"{COMMON}OptionalLong[50] lastTimestamp: 1700000000000 firstSequence: 2147483646 {BATCH}"),
    ],
)
def test_producer_in_a_transaction_prints_as_in_each_release(tmp_path: Path, like: str, line: str) -> None:
    assert print_lines(tmp_path, like, IN_TRANSACTION) == [line]


@pytest.mark.parametrize(
    ("like", "end"),
    [
        ("2.0", "None firstSequence: -1 lastSequence: -1 lastOffset: -1 offsetDelta: 0 timestamp: 1700000000001"),
        (
            "2.3",
            "None firstSequence: 2147483647 lastSequence: -1 lastOffset: -1 offsetDelta: 0 timestamp: 1700000000001",
        ),
        ("2.4", "None "),
        ("4.2", "OptionalLong.empty lastTimestamp: 1700000000001 "),
        ("4.3", "OptionalLong.empty lastTimestamp: 1700000000001"),
    ],
)
def test_producer_without_a_batch_prints_as_in_each_release(tmp_path: Path, like: str, end: str) -> None:
    start = "producerId: 5002 producerEpoch: 0 coordinatorEpoch: 9 currentTxnFirstOffset: "
    assert print_lines(tmp_path, like, WITHOUT_BATCH) == [start + end]


SCHEMA = "Snapshot failed schema validation: "
UNDERFLOW = "java.nio.BufferUnderflowException"
WHOLE = snapshot(IN_TRANSACTION)
OTHER_CRC = WHOLE[:2] + bytes(4) + WHOLE[6:]
CRC_LINE = f"(CRC is no longer valid). Stored crc: 0. Computed crc: {crc32c(WHOLE[6:])}"


@pytest.mark.parametrize(
    ("like", "content", "line"),
    [
        ("0.11.0.0", OTHER_CRC, f"Snapshot file '{NAME}' is corrupted {CRC_LINE}"),
        ("0.11", OTHER_CRC, f"Snapshot is corrupt {CRC_LINE}"),
        ("4.3", OTHER_CRC, f"Snapshot is corrupt {CRC_LINE}"),
        ("3.9", snapshot(version=9), "Snapshot contained an unknown file version 9"),
        ("4.0", snapshot(version=9), SCHEMA + "Snapshot contained an unknown file version 9"),
        ("3.9", b"", f"{SCHEMA}Error reading field 'version': {UNDERFLOW}"),
        ("3.9", WHOLE[:8], f"{SCHEMA}Error reading field 'producer_entries': {UNDERFLOW}"),
        ("4.0", b"", SCHEMA + "null"),
        (
            "3.9",
            WHOLE[:30],
            f"{SCHEMA}Error reading field 'producer_entries': Error reading field 'last_offset': {UNDERFLOW}",
        ),
        (
            "2.8",
            snapshot(IN_TRANSACTION, count=2_000_000_000),
            f"{SCHEMA}Error reading field 'producer_entries':"
            " Error reading array of size 2000000000, only 46 bytes available",
        ),
        (
            "4.3",
            snapshot(IN_TRANSACTION, count=2_000_000_000),
            f"{SCHEMA}Tried to allocate a collection of size 2000000000, but there are only 46 bytes remaining.",
        ),
        (
            "2.0",
            snapshot(count=-5),
            f"{SCHEMA}Error reading field 'producer_entries': Array size -5 cannot be negative",
        ),
    ],
)
def test_corrupt_snapshot_is_reported_on_stderr_in_the_releases_words(
    tmp_path: Path, like: str, content: bytes, line: str
) -> None:
    ran = dump(tmp_path, content, "--like", like)
    assert ran.stdout.decode() == f"Dumping {NAME}\n"
    assert ran.stderr.decode() == f"{line}\n"
    assert ran.status == 1


def test_corrupt_snapshot_is_reported_with_its_path_without_a_release(tmp_path: Path) -> None:
    ran = dump(tmp_path, OTHER_CRC)
    assert ran.stderr.decode() == f"kseg: {NAME}: Snapshot is corrupt {CRC_LINE}\n"
    assert ran.status == 1


def test_bytes_behind_the_last_producer_are_passed_over(tmp_path: Path) -> None:
    body = WHOLE[6:] + bytes(60)
    ran = dump(tmp_path, WHOLE[:2] + crc32c(body).to_bytes(4, "big") + body)
    assert len(ran.stdout.splitlines()) == 2
    assert ran.status == 0
