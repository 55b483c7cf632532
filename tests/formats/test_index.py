import pytest
from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.indexes import (
    ABORTED_TRANSACTION,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
)
from tests.formats.grammar import check_grammar

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

# The documentation's index, beside 00000000000000203000.log.
SAMPLE_INDEX = bytes.fromhex(
    "0000012b000022220000067900008889000008790000c87200000a790001086f00000c790001486c"
    "00000e7900018869000010790001c86600001279000208630000147900024860000016790002885d"
    "000018790002c85a"
)


def test_offset_index_entry_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0000012b"  # relative offset
        "00002222"  # position
    )
    check_grammar(OFFSET_INDEX_ENTRY, {"relative_offset": 299, "position": 8738}, content, size=8)


def test_time_index_entry_is_read_and_built() -> None:
    content = bytes.fromhex(
        "00000170 3e8e4db1"  # timestamp
        "0000012b"  # relative offset
    )
    check_grammar(TIME_INDEX_ENTRY, {"timestamp": 1581597478321, "relative_offset": 299}, content, size=12)


def test_aborted_transaction_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0000"  # version
        "00000000 00001389"  # producer id
        "00000000 0000000a"  # first offset
        "00000000 00000014"  # last offset
        "00000000 00000015"  # last stable offset
    )
    value = {"version": 0, "producer_id": 5001, "first_offset": 10, "last_offset": 20, "last_stable_offset": 21}
    check_grammar(ABORTED_TRANSACTION, value, content, size=34)


def test_documented_sample_index_holds_its_eleven_entries() -> None:
    starts = range(0, len(SAMPLE_INDEX), 8)
    fields = [OFFSET_INDEX_ENTRY.parse(SAMPLE_INDEX[start : start + 8]) for start in starts]
    assert [OffsetIndexEntry(203000 + field.relative_offset, field.position) for field in fields] == [
        (203299, 8738),
        (204657, 34953),
        (205169, 51314),
        (205681, 67695),
        (206193, 84076),
        (206705, 100457),
        (207217, 116838),
        (207729, 133219),
        (208241, 149600),
        (208753, 165981),
        (209265, 182362),
    ]
    assert b"".join(OFFSET_INDEX_ENTRY.build(field) for field in fields) == SAMPLE_INDEX


@pytest.mark.parametrize("grammar", [OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, ABORTED_TRANSACTION])
def test_cut_entry_is_refused(grammar) -> None:
    with pytest.raises(ConstructError):
        grammar.parse(bytes(grammar.sizeof() - 1))


def test_values_name_their_fields() -> None:
    assert OffsetIndexEntry(203299, 8738)._asdict() == {"offset": 203299, "position": 8738}
    assert TimeIndexEntry(1581597478321, 203299)._asdict() == {"timestamp": 1581597478321, "offset": 203299}
    assert list(AbortedTransaction(0, 1, 2, 3, 4)._asdict()) == [field.name for field in ABORTED_TRANSACTION.subcons]


@given(INT32, INT32)
def test_offset_index_entry_comes_back(relative_offset: int, position: int) -> None:
    value = {"relative_offset": relative_offset, "position": position}
    assert OFFSET_INDEX_ENTRY.parse(OFFSET_INDEX_ENTRY.build(value)) == value


@given(INT64, INT32)
def test_time_index_entry_comes_back(timestamp: int, relative_offset: int) -> None:
    value = {"timestamp": timestamp, "relative_offset": relative_offset}
    assert TIME_INDEX_ENTRY.parse(TIME_INDEX_ENTRY.build(value)) == value


@given(INT16, INT64, INT64, INT64, INT64)
def test_aborted_transaction_comes_back(version: int, producer_id: int, first: int, last: int, stable: int) -> None:
    value = AbortedTransaction(version, producer_id, first, last, stable)._asdict()
    assert ABORTED_TRANSACTION.parse(ABORTED_TRANSACTION.build(value)) == value
