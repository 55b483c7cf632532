"""Records, messages and batches in memory, held against the grammars and the documentation's sizes."""

import io
from collections.abc import Callable
from dataclasses import astuple
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kseg
from kseg.errors import RecordError
from kseg.formats.batch import LOG_ENTRY, RECORD, RECORD_BATCH
from kseg.formats.codes import LOG_OVERHEAD, MINIMUM_SIZE_FIELD, Codec, ControlType, TimestampType
from kseg.formats.grammar import VARLONG
from kseg.formats.varint_bytes import varint, varint_size
from kseg.writer.batches import InvalidMessageError, MemoryRecords, Message, RecordsBuilder, create_records
from kseg.writer.messages import encode_record, record_size
from tests.loops import for_each
from tests.writer.cases import Case, cases

ALL = tuple(Codec)
PACKED = [(magic, codec) for magic in range(3) for codec in Codec if codec and (magic == 2 or codec != Codec.ZSTD)]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_are_the_grammars(number: int) -> None:
    assert varint(number) == VARLONG.build(number)
    assert varint_size(number) == len(varint(number))


def test_sizes_are_those_of_the_documentation() -> None:
    assert (MINIMUM_SIZE_FIELD[0], MINIMUM_SIZE_FIELD[1], LOG_OVERHEAD) == (14, 22, 12)
    assert Message.build(b"value", b"key", magic=0).size == 22
    message = Message.build(b"value", b"key", timestamp=0)
    assert message.size == 30
    assert create_records(message).size_in_bytes == 42
    assert record_size(0, 0, b"key", b"value") == len(encode_record(0, 0, b"key", b"value")) == 15
    builder = RecordsBuilder()
    builder.append(0, b"key", b"value")
    assert builder.build().size_in_bytes == 76


def test_the_documentations_record_has_its_bytes() -> None:
    assert encode_record(0, 0, b"key", b"value") == bytes.fromhex("1c 00 00 00 06 6b6579 0a 76616c7565 00")


@given(cases((Codec.NONE,)))
def test_the_grammars_read_what_is_built(case: Case) -> None:
    raw = case.build().raw
    if case.magic == 2:
        batch = RECORD_BATCH.parse(raw)
        assert RECORD_BATCH.build(batch) == raw
        assert [(case.base_offset + record.offset_delta, record.key, record.value) for record in batch.records] == [
            (offset, key, value) for offset, _, key, value, _ in case.records
        ]
    else:
        entry = LOG_ENTRY.parse(raw)
        assert (entry.offset, entry.message.value) == (case.records[0][0], case.records[0][3])


@given(cases(ALL))
def test_what_is_built_reads_back(case: Case) -> None:
    records = list(case.build().deep())
    assert [(record.offset, record.key, record.value) for record in records] == [
        (offset, key, value) for offset, _, key, value, _ in case.records
    ]
    assert all(record.is_valid for record in records)
    assert [tuple(record.headers) for record in records] == [headers for *_, headers in case.records]


@given(
    st.lists(
        st.tuples(
            st.integers(-1, 2**45),
            st.none() | st.binary(max_size=10),
            st.none() | st.binary(max_size=10),
            st.sampled_from([(), (("h", None),)]),
        )
    )
)
def test_many_at_once_are_as_one_by_one(records: list[tuple[int, bytes | None, bytes | None, tuple[()]]]) -> None:
    many, one = RecordsBuilder(7), RecordsBuilder(7)
    many.extend(records)
    for record in records:
        one.append(*record)
    assert many.build() == one.build()
    assert (many.count, many.next_offset, many.estimated_size) == (one.count, one.next_offset, one.estimated_size)


def test_estimated_size_is_the_size_of_what_is_not_compressed() -> None:
    for magic in range(3):
        builder = RecordsBuilder(magic=magic)
        builder.append(5, b"k", b"v" * 300)
        builder.append(6, None, b"")
        assert builder.estimated_size == builder.build().size_in_bytes


@pytest.mark.parametrize("magic", range(3))
def test_a_builder_is_full_at_its_write_limit(magic: int) -> None:
    builder = RecordsBuilder(magic=magic, write_limit=200)
    while builder.has_room_for(1, b"key", b"value" * 4):
        builder.append(1, b"key", b"value" * 4)
    assert 140 < builder.estimated_size <= 200
    builder.append(1, b"key", b"value" * 4)
    assert builder.is_full
    assert RecordsBuilder(magic=magic, write_limit=10).has_room_for(1, None, b"larger than the limit")


def test_nothing_is_built_of_no_records() -> None:
    assert RecordsBuilder().build().size_in_bytes == 0


def test_markers_stand_in_control_batches() -> None:
    builder = RecordsBuilder(9, producer_id=3, producer_epoch=1, is_transactional=True, is_control=True)
    builder.append_end_marker(ControlType.COMMIT, 7, 1000)
    (batch,) = builder.build().shallow()
    assert (batch.size, batch.is_control, batch.is_transactional) == (78, True, True)
    (record,) = batch.records()
    assert (record.key, record.value) == (bytes.fromhex("00000001"), bytes.fromhex("000000000007"))


@for_each(
    "wrong",
    [
        lambda: RecordsBuilder(magic=3),
        lambda: RecordsBuilder(magic=1, codec=Codec.ZSTD),
        lambda: RecordsBuilder(magic=1, is_transactional=True),
        lambda: RecordsBuilder(is_transactional=True),
        lambda: RecordsBuilder(producer_id=1),
        lambda: RecordsBuilder(codec=Codec.SNAPPY, level=1),
        lambda: RecordsBuilder(magic=0, timestamp_type=TimestampType.CREATE_TIME),
        lambda: RecordsBuilder(magic=1).append(1, None, b"", [("header", b"")]),
        lambda: RecordsBuilder().append(-2, None, b""),
        lambda: RecordsBuilder(5).append_at(4, 0, None, b""),
        lambda: RecordsBuilder().append_at(2**31, 0, None, b""),
        lambda: RecordsBuilder().append(0, None, b"", [("\ud800", b"")]),
        lambda: RecordsBuilder().append_end_marker(ControlType.ABORT, 0, 0),
    ],
    ids=lambda wrong: f"line {wrong.__code__.co_firstlineno}",
)
def test_what_no_format_holds_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(RecordError):
        wrong()


def test_messages_answer_kafkas_questions() -> None:
    (placed,) = create_records(Message.build(b"v", b"key", timestamp=5), base_offset=41).messages()
    message = placed.message
    assert (placed.offset, placed.next_offset) == (41, 42)
    assert (message.size, message.key_size, message.has_key, message.is_null) == (26, 3, True, False)
    assert (message.magic, message.timestamp, message.codec, message.key, message.value) == (1, 5, 0, b"key", b"v")
    assert message.checksum == message.compute_checksum() == crc32(message.raw[4:])
    assert message.is_valid
    message.ensure_valid()


def test_null_is_not_empty_in_messages() -> None:
    null, empty = Message.build(None, magic=0), Message.build(b"", b"", magic=0)
    assert (null.key, null.value, null.key_size, null.has_key, null.is_null) == (None, None, -1, False, True)
    assert (empty.key, empty.value, empty.key_size, empty.has_key, empty.is_null) == (b"", b"", 0, True, False)


def test_a_damaged_message_says_both_checksums() -> None:
    raw = bytearray(Message.build(b"value").raw)
    raw[-1] ^= 1
    message = Message(bytes(raw))
    assert not message.is_valid
    with pytest.raises(
        InvalidMessageError, match=f"0x{message.checksum:08x}, expected 0x{message.compute_checksum():08x}"
    ):
        message.ensure_valid()
    with pytest.raises(InvalidMessageError, match="13 bytes"):
        Message(bytes(13))


@for_each("magic, codec", [(0, Codec.NONE), (1, Codec.NONE), (2, Codec.NONE), *PACKED])
def test_assigned_offsets_follow_one_another(magic: int, codec: Codec) -> None:
    builders = [RecordsBuilder(base, magic=magic, codec=codec) for base in (0, 0)]
    for builder in builders:
        for number in range(3):
            builder.append(1000 + number, b"key", b"value %d" % number)
    records = MemoryRecords(b"".join(builder.build().raw for builder in builders))
    assigned = records.assign_offsets(100)
    assert [record.offset for record in assigned.deep()] == list(range(100, 106))
    assert [astuple(record)[1:6] for record in assigned.deep()] == [astuple(record)[1:6] for record in records.deep()]
    assert all(record.is_valid for record in assigned.deep())


@pytest.mark.parametrize(
    ("magic", "codec"), [(0, Codec.NONE), (1, Codec.NONE), (2, Codec.NONE), (1, Codec.GZIP), (2, Codec.LZ4)]
)
def test_offsets_are_assigned_in_place_where_the_format_allows_it(magic: int, codec: Codec) -> None:
    builder = RecordsBuilder(magic=magic, codec=codec)
    builder.append(0, b"key", b"value")
    before, after = builder.build().raw, builder.build().assign_offsets(2**40).raw
    assert before[8:] == after[8:]


def test_a_cut_batch_is_not_one_of_the_batches() -> None:
    whole = create_records(Message.build(b"value"), Message.build(b"other"))
    cut = MemoryRecords(whole.raw[:-1])
    assert len(list(cut.shallow())) == 1
    assert (whole.valid_bytes, cut.valid_bytes) == (whole.size_in_bytes, whole.size_in_bytes // 2)


def test_records_are_written_however_little_is_taken_at_once() -> None:
    class Slow(io.BytesIO):
        def write(self, content: object) -> int:
            return super().write(memoryview(content)[:7])  # type: ignore[arg-type]

    records, target = create_records(Message.build(b"value" * 10)), Slow()
    assert records.write_to(target) == records.size_in_bytes
    assert target.getvalue() == records.raw


def test_a_record_with_attributes_keeps_them() -> None:
    assert RECORD.parse(encode_record(0, 0, None, None, attributes=-3)).attributes == -3


def test_the_public_classes_are_those_of_the_package() -> None:
    message = kseg.Message.build(b"value", b"key", timestamp=7)
    message.ensure_valid()
    records = kseg.create_records(message, message, codec=kseg.Codec.GZIP).assign_offsets(100)
    assert isinstance(records, kseg.MemoryRecords)
    assert [(record.offset, record.value) for record in records.deep()] == [(100, b"value"), (101, b"value")]
    target = io.BytesIO()
    assert records.write_to(target) == len(target.getvalue()) == records.size_in_bytes == records.valid_bytes
    with pytest.raises(kseg.InvalidMessageError, match="CRC is 0x2c2e6a94, expected 0x5d9fef1d"):
        kseg.Message(message.raw[:-1] + b"!").ensure_valid()
