from kseg.formats.indexes import PRODUCER_ENTRY, PRODUCER_SNAPSHOT
from kseg.index.producers import ProducerState
from tests.formats.grammar import check_grammar, field_names

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
ENTRY = ProducerState(
    producer_id=5001,
    epoch=3,
    last_sequence=41,
    last_offset=53,
    offset_delta=2,
    timestamp=1581597478310,
    coordinator_epoch=4,
    current_txn_first_offset=-1,
)


def test_producer_entry_is_read_and_built() -> None:
    check_grammar(PRODUCER_ENTRY, ENTRY._asdict(), ENTRY_BYTES, size=46)


def test_producer_snapshot_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0001"  # version
        "0badcafe"  # crc
        "00000001"  # entries
    )
    value = {"version": 1, "crc": 0x0BADCAFE, "entries_count": 1, "entries": [ENTRY._asdict()], "trailing": b""}
    check_grammar(PRODUCER_SNAPSHOT, value, content + ENTRY_BYTES)


def test_entry_has_the_fields_of_the_grammar() -> None:
    assert list(ENTRY._asdict()) == field_names(PRODUCER_ENTRY)
