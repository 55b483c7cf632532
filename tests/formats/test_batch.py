import pytest
from construct import ConstructError
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.batch import ATTRIBUTES, BATCH_HEADER, COMPRESSED_RECORD_BATCH, RECORD, RECORD_BATCH, RECORD_HEADER
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Codec,
    TimestampType,
)
from tests.formats.grammar import check_grammar

NO_ATTRIBUTES = {
    "unused": 0,
    "has_delete_horizon": False,
    "is_control": False,
    "is_transactional": False,
    "timestamp_type": TimestampType.CREATE_TIME,
    "codec": Codec.NONE,
}
HEADER_BYTES = bytes.fromhex(
    "00000000 000318f8"  # base offset
    "000000bd"  # length
    "00000007"  # partition leader epoch
    "02"  # magic
    "4de4e407"  # crc
    "005b"  # attributes: delete horizon, transactional, LogAppendTime, lz4
    "00000004"  # last offset delta
    "00000170 3e8e4da6"  # base timestamp
    "00000170 3e8e4db1"  # max timestamp
    "00000000 00001389"  # producer id
    "0003"  # producer epoch
    "7fffffff"  # base sequence
    "00000005"  # records count
)
HEADER_VALUE = {
    "base_offset": 203000,
    "length": 189,
    "partition_leader_epoch": 7,
    "magic": 2,
    "crc": 1306846215,
    "attributes": {
        "unused": 0,
        "has_delete_horizon": True,
        "is_control": False,
        "is_transactional": True,
        "timestamp_type": TimestampType.LOG_APPEND_TIME,
        "codec": Codec.LZ4,
    },
    "last_offset_delta": 4,
    "base_timestamp": 1581597478310,
    "max_timestamp": 1581597478321,
    "producer_id": 5001,
    "producer_epoch": 3,
    "base_sequence": 2147483647,
    "records_count": 5,
}
RECORD_BYTES = bytes.fromhex(
    "1c"  # length: 14
    "00"  # attributes
    "00"  # timestamp delta
    "00"  # offset delta
    "06 6b6579"  # key length: 3, key
    "0a 76616c7565"  # value length: 5, value
    "00"  # headers count
)
RECORD_VALUE = {
    "length": 14,
    "attributes": 0,
    "timestamp_delta": 0,
    "offset_delta": 0,
    "key_length": 3,
    "key": b"key",
    "value_length": 5,
    "value": b"value",
    "headers_count": 0,
    "headers": [],
}
# The documentation's sample: five records `local test -------- 0` to `4` in 201 bytes.
SAMPLE_BATCH = bytes.fromhex(
    "00000000000318f8 000000bd 00000000 02 4de4e407 0000 00000004"  # base offset … last offset delta
    "000001703e8e4da6 000001703e8e4db1 ffffffffffffffff ffff ffffffff 00000005"  # times, no producer, count
    "36 00 00 00 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2030 00"
    "36 00 14 02 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2031 00"
    "36 00 16 04 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2032 00"
    "36 00 16 06 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2033 00"
    "36 00 16 08 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2034 00"
)


def test_batch_header_is_read_and_built() -> None:
    check_grammar(BATCH_HEADER, HEADER_VALUE, HEADER_BYTES, size=BATCH_HEADER_SIZE)


@pytest.mark.parametrize(
    ("bits", "field", "value"),
    [
        (0x0001, "codec", Codec.GZIP),
        (0x0004, "codec", Codec.ZSTD),
        (0x0007, "codec", 7),
        (0x0008, "timestamp_type", TimestampType.LOG_APPEND_TIME),
        (0x0010, "is_transactional", True),
        (0x0020, "is_control", True),
        (0x0040, "has_delete_horizon", True),
        (0x0080, "unused", 1),
        (0x8000, "unused", 256),
    ],
)
def test_each_attribute_has_its_bits(bits: int, field: str, value: int) -> None:
    check_grammar(ATTRIBUTES, NO_ATTRIBUTES | {field: value}, bits.to_bytes(2, "big"), size=2)


@pytest.mark.parametrize(
    ("mask", "field", "value"),
    [
        (CODEC_MASK, "codec", 7),
        (TIMESTAMP_TYPE_MASK, "timestamp_type", 1),
        (TRANSACTIONAL_MASK, "is_transactional", True),
        (CONTROL_MASK, "is_control", True),
        (DELETE_HORIZON_MASK, "has_delete_horizon", True),
    ],
)
def test_masks_are_the_grammar_s_bits(mask: int, field: str, value: int) -> None:
    assert ATTRIBUTES.parse(mask.to_bytes(2, "big")) == NO_ATTRIBUTES | {field: value}


def test_record_is_read_and_built() -> None:
    assert len(RECORD_BYTES) == 15  # as documented
    check_grammar(RECORD, RECORD_VALUE, RECORD_BYTES)


def test_record_header_is_read_and_built() -> None:
    content = bytes.fromhex(
        "08 74797065"  # key length: 4, key
        "02 78"  # value length: 1, value
    )
    value = {"key_length": 4, "key": b"type", "value_length": 1, "value": b"x"}
    check_grammar(RECORD_HEADER, value, content)


def test_null_and_empty_differ_in_records_and_headers() -> None:
    content = bytes.fromhex(
        "14"  # length: 10
        "00 00 00"  # attributes, timestamp delta, offset delta
        "00"  # key length: 0
        "01"  # value length: -1
        "04"  # headers count: 2
        "00 01"  # empty key, null value
        "00 00"  # empty key, empty value
    )
    record = RECORD.parse(content)
    assert (record.key, record.value) == (b"", None)
    assert [header.value for header in record.headers] == [None, b""]
    assert RECORD.build(record) == content


@pytest.mark.parametrize(
    ("field", "length"),
    [("key", "03"), ("value", "ff ff ff ff 0f")],
)
def test_every_negative_length_is_null(field: str, length: str) -> None:
    lengths = {"key": "01", "value": "01"} | {field: length}
    body = bytes.fromhex("00 00 00" + lengths["key"] + lengths["value"] + "00")
    assert RECORD.parse(bytes([2 * len(body)]) + body)[field] is None


def test_timestamp_and_offset_deltas_may_be_negative_and_large() -> None:
    fields = {"attributes": 0, "key": None, "value": None, "headers": []}
    record = RECORD.parse(RECORD.build(fields | {"timestamp_delta": -(2**62), "offset_delta": 2**31 - 2}))
    assert (record.timestamp_delta, record.offset_delta) == (-(2**62), 2**31 - 2)


@pytest.mark.parametrize(
    "content",
    [
        "1c 00 00 00 06 6b6579 0a 76616c7565",  # cut
        "1e 00 00 00 06 6b6579 0a 76616c7565 00 00",  # a byte more than the fields take
        "1a 00 00 00 06 6b6579 0a 76616c7565 00",  # a byte less
        "01 00 00 00 01 01 00",  # length -1
        "0c 00 00 00 01 01 01",  # headers count -1
        "10 00 00 00 01 01 02 01 00",  # header key null
        "0c 00 00 00 fe ff ff ff 0f",  # key of 2 GiB
        "0c 00 00 00 01 01 fe ff ff ff 0f",  # 2^31 - 1 headers
        "80 80 80 80 80 00",  # length of six bytes
    ],
)
def test_record_that_contradicts_itself_is_refused(content: str) -> None:
    with pytest.raises(ConstructError):
        RECORD.parse(bytes.fromhex(content))


def test_documented_sample_batch_is_read() -> None:
    batch = RECORD_BATCH.parse(SAMPLE_BATCH)
    assert len(SAMPLE_BATCH) == 201 == batch.header.length + LOG_OVERHEAD
    assert batch.header.base_offset == 203000
    assert batch.header.attributes == NO_ATTRIBUTES
    assert batch.header.crc == 1306846215 == crc32c(SAMPLE_BATCH[21:])
    assert [record.value for record in batch.records] == [b"local test -------- %d" % number for number in range(5)]
    assert [batch.header.base_timestamp + record.timestamp_delta for record in batch.records] == [
        1581597478310,
        1581597478320,
        1581597478321,
        1581597478321,
        1581597478321,
    ]
    assert [batch.header.base_offset + record.offset_delta for record in batch.records] == list(range(203000, 203005))


def test_documented_sample_batch_is_built() -> None:
    assert RECORD_BATCH.build(RECORD_BATCH.parse(SAMPLE_BATCH)) == SAMPLE_BATCH


def test_batch_of_key_and_value_has_the_documented_76_bytes() -> None:
    header = HEADER_VALUE | {"attributes": NO_ATTRIBUTES, "length": 64, "records_count": 1}
    content = RECORD_BATCH.build({"header": header, "records": [RECORD_VALUE]})
    assert len(content) == 76
    assert content.endswith(RECORD_BYTES)


def test_emptied_batch_is_61_bytes() -> None:
    header = HEADER_VALUE | {"attributes": NO_ATTRIBUTES, "length": 49, "records_count": 0, "base_timestamp": -1}
    content = RECORD_BATCH.build({"header": header, "records": []})
    assert len(content) == 61
    assert RECORD_BATCH.parse(content) == {"header": header, "records": []}


@pytest.mark.parametrize(
    ("position", "damage"),
    [
        (57, "00000004"),  # count: fewer records than there are
        (57, "00000006"),  # more
        (57, "ffffffff"),  # negative
        (57, "7fffffff"),  # as many as there can be
        (8, "000000be"),  # length: a byte more than there is
        (8, "000000bc"),  # a byte less
    ],
)
def test_batch_whose_records_do_not_fit_is_refused(position: int, damage: str) -> None:
    changed = bytearray(SAMPLE_BATCH)
    changed[position : position + 4] = bytes.fromhex(damage)
    with pytest.raises(ConstructError):
        RECORD_BATCH.parse(bytes(changed))


def test_compressed_batch_keeps_its_records_as_bytes() -> None:
    content = HEADER_BYTES[:8] + (49 + 3).to_bytes(4, "big") + HEADER_BYTES[12:] + b"lz4"
    header = HEADER_VALUE | {"length": 52}
    check_grammar(COMPRESSED_RECORD_BATCH, {"header": header, "records": b"lz4"}, content)


@pytest.mark.parametrize("length", ["00000035", "00000030", "80000000", "7fffffff"])
def test_compressed_batch_with_a_wrong_length_is_refused(length: str) -> None:
    content = HEADER_BYTES[:8] + bytes.fromhex(length) + HEADER_BYTES[12:] + b"lz4"
    with pytest.raises(ConstructError):
        COMPRESSED_RECORD_BATCH.parse(content)


INT8 = st.integers(-128, 127)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NULLABLE = st.none() | st.binary(max_size=70)
RECORDS = st.fixed_dictionaries(
    {
        "attributes": INT8,
        "timestamp_delta": INT64,
        "offset_delta": INT32,
        "key": NULLABLE,
        "value": NULLABLE,
        "headers": st.lists(st.fixed_dictionaries({"key": st.binary(max_size=9), "value": NULLABLE}), max_size=3),
    }
)
HEADERS = st.fixed_dictionaries(
    {
        "base_offset": INT64,
        "partition_leader_epoch": INT32,
        "magic": INT8,
        "crc": st.integers(0, 2**32 - 1),
        "attributes": st.fixed_dictionaries(
            {
                "unused": st.integers(0, 511),
                "has_delete_horizon": st.booleans(),
                "is_control": st.booleans(),
                "is_transactional": st.booleans(),
                "timestamp_type": st.integers(0, 1),
                "codec": st.integers(0, 7),
            }
        ),
        "last_offset_delta": INT32,
        "base_timestamp": INT64,
        "max_timestamp": INT64,
        "producer_id": INT64,
        "producer_epoch": INT16,
        "base_sequence": INT32,
    }
)


@given(RECORDS)
def test_record_comes_back(record: dict[str, object]) -> None:
    content = RECORD.build(record)
    parsed = RECORD.parse(content)
    assert {name: parsed[name] for name in record if name != "headers"} == {
        name: value for name, value in record.items() if name != "headers"
    }
    assert [{"key": header.key, "value": header.value} for header in parsed.headers] == record["headers"]
    assert RECORD.build(parsed) == content


@given(HEADERS, st.lists(RECORDS, max_size=4))
def test_batch_comes_back(header: dict[str, object], records: list[dict[str, object]]) -> None:
    size = sum(len(RECORD.build(record)) for record in records)
    whole = header | {"length": BATCH_HEADER_SIZE - LOG_OVERHEAD + size, "records_count": len(records)}
    content = RECORD_BATCH.build({"header": whole, "records": records})
    batch = RECORD_BATCH.parse(content)
    assert batch.header == whole
    assert RECORD_BATCH.build(batch) == content


@given(st.integers(0, 200), st.integers(0, 255))
def test_changed_byte_is_read_or_refused(position: int, byte: int) -> None:
    changed = bytearray(SAMPLE_BATCH)
    changed[position] = byte
    try:
        batch = RECORD_BATCH.parse(bytes(changed))
    except ConstructError:
        return
    assert len(batch.records) == batch.header.records_count
