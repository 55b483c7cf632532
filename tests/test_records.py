"""Records for Python's own tools: a frozen dataclass, with either kernel."""

import copy
import dataclasses
import operator
import pickle
from pathlib import Path

import pytest

import kseg
from kseg.formats.codes import TimestampType
from tests.kernel.made import BatchHeader, Message, Record, batch

HEADERS = [(b"name", b"1"), (b"\xff", None), (b"name", b"")]
# Of one record, with numbers as large as possible.
CONTENT = batch(
    BatchHeader(2**63 - 8, base_timestamp=2**62, base_sequence=2**31 - 1),
    [Record(b"k", None, HEADERS, offset_delta=7, timestamp_delta=-1)],
)
SAME = kseg.Record(
    offset=2**63 - 1,
    timestamp=2**62 - 1,
    timestamp_type=TimestampType.CREATE_TIME,
    key=b"k",
    value=None,
    headers=(kseg.Header("name", b"1"), kseg.Header("\N{REPLACEMENT CHARACTER}", None), kseg.Header("name", b"")),
    sequence=6,
    position=0,
    crc=int.from_bytes(CONTENT[17:21]),
    is_valid=True,
)


def records_of(directory: Path, content: bytes) -> list[kseg.Record]:
    path = directory / f"{0:020}.log"
    path.write_bytes(content)
    with kseg.open_segment(path) as segment:
        return list(segment.records())


@pytest.fixture
def record(kernel: object, tmp_path: Path) -> kseg.Record:
    (found,) = records_of(tmp_path, CONTENT)
    return found


def test_record_is_one(record: kseg.Record) -> None:
    assert isinstance(record, kseg.Record)
    assert record.__class__ is kseg.Record
    assert dataclasses.is_dataclass(record)


def test_record_equals_one_of_the_same_fields_and_no_other(record: kseg.Record) -> None:
    assert record == SAME
    assert operator.eq(SAME, record)
    assert len({record, SAME, copy.copy(record)}) == 1
    for field in dataclasses.fields(kseg.Record):
        other = dataclasses.replace(SAME, **{field.name: "other"})
        assert record != other
        assert other != record
    assert record != dataclasses.astuple(record)


def test_record_shows_its_fields(record: kseg.Record) -> None:
    assert repr(record) == repr(SAME)
    assert repr(record).startswith("Record(offset=9223372036854775807, timestamp=4611686018427387903, timestamp_type=")


def test_records_tools_are_those_of_a_dataclass(record: kseg.Record) -> None:
    assert dataclasses.asdict(record) == dataclasses.asdict(SAME)
    assert dataclasses.replace(record, key=b"other") == dataclasses.replace(SAME, key=b"other")
    match record:
        case kseg.Record(key=b"k", value=None, headers=[first, *_]):
            assert first == ("name", b"1")
        case _:
            pytest.fail("it doesn't match")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_record_can_be_pickled(record: kseg.Record, protocol: int) -> None:
    assert pickle.loads(pickle.dumps(record, protocol)) == record


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_record_can_be_copied(record: kseg.Record, copied: object) -> None:
    assert operator.call(copied, record) == record  # type: ignore[arg-type]


def test_record_can_not_be_changed(record: kseg.Record) -> None:
    for field in dataclasses.fields(kseg.Record):
        with pytest.raises(AttributeError):
            setattr(record, field.name, 1)
        with pytest.raises(AttributeError):
            delattr(record, field.name)
    for name in ("key_size", "another"):  # a frozen dataclass with slots raises TypeError here
        with pytest.raises((AttributeError, TypeError)):
            setattr(record, name, 1)
    assert record == SAME


def test_headers_are_the_same_each_time(record: kseg.Record) -> None:
    assert record.headers == SAME.headers
    assert record.headers is record.headers
    assert all(isinstance(header, kseg.Header) for header in record.headers)


def test_record_outlives_its_segment(record: kseg.Record, tmp_path: Path) -> None:
    (tmp_path / f"{0:020}.log").write_bytes(b"")
    assert record == SAME


def test_sizes_and_next_offset_follow_from_the_fields(record: kseg.Record) -> None:
    assert (record.key_size, record.value_size, record.next_offset) == (1, -1, 2**63)
    assert (record.has_key, record.is_null) == (True, True)


@pytest.mark.usefixtures("kernel")
def test_record_without_headers_has_none_and_messages_have_no_sequence(tmp_path: Path) -> None:
    plain = batch(BatchHeader(), [Record(b"", b"")])
    first, second = records_of(tmp_path, plain + Message(None, b"v", offset=1, magic=0).encode())
    assert (first.headers, first.key, first.value, first.sequence) == ((), b"", b"", -1)
    assert (second.headers, second.key, second.value, second.sequence) == ((), None, b"v", -1)
    assert (second.timestamp, second.timestamp_type) == (-1, TimestampType.NO_TIMESTAMP_TYPE)
    assert second.position == len(plain)
