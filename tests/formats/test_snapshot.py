from dataclasses import FrozenInstanceError, asdict

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.snapshot import (
    CRC_START,
    PRODUCER_ENTRY,
    PRODUCER_SNAPSHOT,
    ProducerEntry,
    SnapshotSchemaError,
    parse_producer_snapshot,
)
from tests.formats.grammar import check_grammar, field_names
from tests.golden import damaged_files

ENTRY_BYTES = bytes.fromhex(
    "00000000 00001389"  # producer id
    "0003"  # epoch
    "00000029"  # last sequence
    "00000000 00000035"  # last offset
    "00000002"  # offset delta
    "00000170 3e8e4da6"  # timestamp
    "00000004"  # coordinator epoch
    "ffffffff ffffffff"  # current transaction's first offset: none
)
ENTRY = ProducerEntry(
    producer_id=5001,
    epoch=3,
    last_sequence=41,
    last_offset=53,
    offset_delta=2,
    timestamp=1581597478310,
    coordinator_epoch=4,
    current_txn_first_offset=-1,
)


def snapshot(count: int, entries: bytes, version: int = 1) -> bytes:
    """A file with a right CRC, whatever its count says."""
    rest = count.to_bytes(4, "big", signed=True) + entries
    return version.to_bytes(2, "big") + crc32c(rest).to_bytes(4, "big") + rest


def test_producer_entry_is_read_and_built() -> None:
    check_grammar(PRODUCER_ENTRY, asdict(ENTRY), ENTRY_BYTES, size=46)


def test_producer_snapshot_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0001"  # version
        "0badcafe"  # crc
        "00000001"  # entries
    )
    value = {"version": 1, "crc": 0x0BADCAFE, "entries_count": 1, "entries": [asdict(ENTRY)], "trailing": b""}
    check_grammar(PRODUCER_SNAPSHOT, value, content + ENTRY_BYTES)


def test_entry_has_the_fields_of_the_grammar() -> None:
    assert list(asdict(ENTRY)) == field_names(PRODUCER_ENTRY)


def test_entries_come_with_version_and_both_checksums() -> None:
    content = snapshot(2, ENTRY_BYTES * 2)
    parsed = parse_producer_snapshot(content)
    assert parsed.version == 1
    assert parsed.entries == (ENTRY, ENTRY)
    assert parsed.stored_crc == parsed.computed_crc == crc32c(content[CRC_START:])
    assert parsed.is_valid


def test_snapshot_without_producers_is_valid() -> None:
    assert parse_producer_snapshot(snapshot(0, b"")).entries == ()


def test_wrong_checksum_is_told_and_the_entries_are_given() -> None:
    content = bytearray(snapshot(1, ENTRY_BYTES))
    content[2:6] = bytes.fromhex("00000007")
    parsed = parse_producer_snapshot(bytes(content))
    assert parsed.stored_crc == 7
    assert not parsed.is_valid
    assert parsed.entries == (ENTRY,)


def test_unknown_version_is_given() -> None:
    assert parse_producer_snapshot(snapshot(1, ENTRY_BYTES, version=9)).version == 9


def test_checksum_covers_bytes_behind_the_entries() -> None:
    content = snapshot(1, ENTRY_BYTES + b"more")
    assert parse_producer_snapshot(content).is_valid
    assert PRODUCER_SNAPSHOT.build(PRODUCER_SNAPSHOT.parse(content)) == content


@pytest.mark.parametrize(
    ("content", "field", "position", "available", "count"),
    [
        (b"", "version", 0, 0, None),
        (b"\x00", "version", 0, 1, None),
        (bytes(5), "crc", 2, 3, None),
        (bytes(9), "entries_count", 6, 3, None),
        (snapshot(-1, ENTRY_BYTES), "entries_count", 6, 46, -1),
        (snapshot(2**31 - 16, ENTRY_BYTES * 3), "entries_count", 6, 138, 2**31 - 16),
        (snapshot(3, ENTRY_BYTES * 2), "producer_id", 102, 0, None),
        (snapshot(2, ENTRY_BYTES + ENTRY_BYTES[:33]), "timestamp", 82, 7, None),
    ],
)
def test_file_that_its_bytes_contradict_is_refused_with_the_place(
    content: bytes, field: str, position: int, available: int, count: int | None
) -> None:
    with pytest.raises(SnapshotSchemaError) as caught:
        parse_producer_snapshot(content)
    error = caught.value
    assert (error.field, error.position, error.available, error.count) == (field, position, available, count)
    assert "\n" not in str(error)


def test_values_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ENTRY.epoch = 4  # type: ignore[misc]


def test_damaged_golden_snapshots_are_read_or_refused() -> None:
    outcomes = set()
    for path in damaged_files(".snapshot"):
        try:
            outcomes.add(parse_producer_snapshot(path.read_bytes()).is_valid)
        except SnapshotSchemaError as error:
            outcomes.add(error.field)
    assert {False, "version", "entries_count", "timestamp"} <= outcomes


INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
ENTRIES = st.builds(ProducerEntry, INT64, INT16, INT32, INT64, INT32, INT64, INT32, INT64)


@given(st.lists(ENTRIES, max_size=5))
def test_entries_come_back(entries: list[ProducerEntry]) -> None:
    body = b"".join(PRODUCER_ENTRY.build(asdict(entry)) for entry in entries)
    assert parse_producer_snapshot(snapshot(len(entries), body)).entries == tuple(entries)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        parsed = parse_producer_snapshot(content)
    except SnapshotSchemaError:
        return
    assert len(parsed.entries) * PRODUCER_ENTRY.sizeof() <= len(content)
