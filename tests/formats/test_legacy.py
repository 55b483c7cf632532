import pytest
from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.batch import LOG_ENTRY, MESSAGE_V0, MESSAGE_V1
from kseg.formats.codes import LOG_OVERHEAD, Codec, TimestampType
from tests.formats.grammar import check_grammar

MESSAGE_V0_BYTES = bytes.fromhex(
    "12345678"  # crc
    "00"  # magic
    "02"  # attributes: snappy
    "00000003 6b6579"  # key length, key
    "00000005 76616c7565"  # value length, value
)
MESSAGE_V0_VALUE = {
    "crc": 0x12345678,
    "magic": 0,
    "attributes": {"unused": 0, "codec": Codec.SNAPPY},
    "key_length": 3,
    "key": b"key",
    "value_length": 5,
    "value": b"value",
    "trailing": b"",
}
MESSAGE_V1_BYTES = bytes.fromhex(
    "9abcdef0"  # crc
    "01"  # magic
    "09"  # attributes: LogAppendTime, gzip
    "00000170 3e8e4da6"  # timestamp
    "00000003 6b6579"  # key length, key
    "00000005 76616c7565"  # value length, value
)
MESSAGE_V1_VALUE = {
    "crc": 0x9ABCDEF0,
    "magic": 1,
    "attributes": {"unused": 0, "timestamp_type": TimestampType.LOG_APPEND_TIME, "codec": Codec.GZIP},
    "timestamp": 1581597478310,
    "key_length": 3,
    "key": b"key",
    "value_length": 5,
    "value": b"value",
    "trailing": b"",
}


def test_message_v0_is_read_and_built() -> None:
    check_grammar(MESSAGE_V0, MESSAGE_V0_VALUE, MESSAGE_V0_BYTES)


def test_message_v1_is_read_and_built() -> None:
    check_grammar(MESSAGE_V1, MESSAGE_V1_VALUE, MESSAGE_V1_BYTES)


@pytest.mark.parametrize(
    ("message", "value"), [(MESSAGE_V0_BYTES, MESSAGE_V0_VALUE), (MESSAGE_V1_BYTES, MESSAGE_V1_VALUE)]
)
def test_log_entry_chooses_the_message_by_its_magic(message: bytes, value: dict[str, object]) -> None:
    content = (
        bytes.fromhex("00000000 000318f8")  # offset
        + len(message).to_bytes(4, "big")  # message size
        + message
    )
    check_grammar(LOG_ENTRY, {"offset": 203000, "message_size": len(message), "message": value}, content)


def test_documented_sizes_of_key_and_value() -> None:
    assert len(MESSAGE_V0_BYTES) == 22
    assert len(MESSAGE_V1_BYTES) == 30
    for message, size in ((MESSAGE_V0_VALUE, 34), (MESSAGE_V1_VALUE, 42)):
        assert len(LOG_ENTRY.build({"offset": 0, "message": message})) == size


@pytest.mark.parametrize(("message", "size"), [(MESSAGE_V0_VALUE, 14), (MESSAGE_V1_VALUE, 22)])
def test_smallest_messages_have_null_key_and_null_value(message: dict[str, object], size: int) -> None:
    entry = LOG_ENTRY.build({"offset": 0, "message": message | {"key": None, "value": None}})
    assert len(entry) == LOG_OVERHEAD + size


@pytest.mark.parametrize(
    ("lengths", "key", "value"),
    [
        ("ffffffff ffffffff", None, None),
        ("00000000 ffffffff", b"", None),
        ("ffffffff 00000000", None, b""),
        ("00000000 00000000", b"", b""),
    ],
)
def test_null_and_empty_differ(lengths: str, key: bytes | None, value: bytes | None) -> None:
    content = bytes.fromhex("00000000 00 00" + lengths)  # crc, magic, attributes, both lengths
    message = MESSAGE_V0.parse(content)
    assert (message.key, message.value) == (key, value)
    assert MESSAGE_V0.build(message) == content


def test_every_negative_length_is_null() -> None:
    message = MESSAGE_V0.parse(bytes.fromhex("00000000 00 00 fffffffe 80000000"))
    assert (message.key, message.value) == (None, None)


def test_bytes_behind_the_value_are_kept() -> None:
    entry = LOG_ENTRY.build({"offset": 1, "message": MESSAGE_V1_VALUE | {"trailing": b"more"}})
    assert LOG_ENTRY.parse(entry).message.trailing == b"more"
    assert LOG_ENTRY.build(LOG_ENTRY.parse(entry)) == entry


@pytest.mark.parametrize(
    "content",
    [
        MESSAGE_V0_BYTES[:-1],
        MESSAGE_V0_BYTES[:9],
        bytes.fromhex("00000000 00 00 7fffffff 00"),  # a key of 2 GiB in one byte
    ],
)
def test_cut_message_is_refused(content: bytes) -> None:
    with pytest.raises(ConstructError):
        MESSAGE_V0.parse(content)


@pytest.mark.parametrize(
    "content",
    [
        "0000000000000000 00000004 00000000",  # ends before the magic
        "0000000000000000 ffffffff 00000000 00 00 ffffffff ffffffff",  # message size -1
        "0000000000000000 0000000e 00000000 02 00 ffffffff ffffffff",  # magic 2
        "0000000000000000 7fffffff 00000000 00 00 ffffffff ffffffff",  # message size of 2 GiB
    ],
)
def test_entry_without_a_whole_v0_or_v1_message_is_refused(content: str) -> None:
    with pytest.raises(ConstructError):
        LOG_ENTRY.parse(bytes.fromhex(content))


def test_message_of_another_magic_is_not_built() -> None:
    with pytest.raises(ConstructError):
        LOG_ENTRY.build({"offset": 0, "message": MESSAGE_V0_VALUE | {"magic": 2}})


NULLABLE = st.none() | st.binary(max_size=40)
OFFSETS = st.integers(-(2**63), 2**63 - 1)
CRCS = st.integers(0, 2**32 - 1)
CODECS = st.integers(0, 7)
MESSAGES_V0 = st.fixed_dictionaries(
    {
        "crc": CRCS,
        "magic": st.just(0),
        "attributes": st.fixed_dictionaries({"unused": st.integers(0, 31), "codec": CODECS}),
        "key": NULLABLE,
        "value": NULLABLE,
        "trailing": st.binary(max_size=3),
    }
)
MESSAGES_V1 = st.fixed_dictionaries(
    {
        "crc": CRCS,
        "magic": st.just(1),
        "attributes": st.fixed_dictionaries(
            {"unused": st.integers(0, 15), "timestamp_type": st.integers(0, 1), "codec": CODECS}
        ),
        "timestamp": OFFSETS,
        "key": NULLABLE,
        "value": NULLABLE,
        "trailing": st.binary(max_size=3),
    }
)


@given(OFFSETS, MESSAGES_V0 | MESSAGES_V1)
def test_log_entry_comes_back(offset: int, message: dict[str, object]) -> None:
    content = LOG_ENTRY.build({"offset": offset, "message": message})
    entry = LOG_ENTRY.parse(content)
    assert entry.offset == offset
    assert entry.message_size == len(content) - LOG_OVERHEAD
    assert {name: entry.message[name] for name in message} == message
    assert LOG_ENTRY.build(entry) == content


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        entry = LOG_ENTRY.parse(content)
    except ConstructError:
        return
    assert entry.message.magic in (0, 1)
