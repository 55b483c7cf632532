"""Records as Arrow: the connector's schema, the values of `records()`, and the largest size of a record batch."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
import pytest

import kseg
from kseg.api.tables import TableOptions
from kseg.arrow import MAX_BYTES
from kseg.errors import OpenError
from kseg.formats.codes import Codec
from kseg.reading.batch import OnDamage
from tests import golden
from tests.kernel.made import BatchHeader, Record, batch

# spark-sql-kafka's names and types, in its order.
CONNECTORS_FIELDS = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("timestampType", pa.int32()),
]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
BATCH_FIELDS = [
    ("baseOffset", pa.int64()),
    ("position", pa.int64()),
    ("segment", pa.string()),
    ("producerId", pa.int64()),
    ("producerEpoch", pa.int32()),
    ("sequence", pa.int32()),
    ("partitionLeaderEpoch", pa.int32()),
    ("isTransactional", pa.bool_()),
    ("isControl", pa.bool_()),
    ("magic", pa.int32()),
    ("compression", pa.string()),
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST_MILLISECONDS = 253402300799999
"""The last millisecond in Python's own times; Arrow's range is larger."""
MIXED = golden.ROOT / "logs" / "classes-3.9.1" / "mixed" / f"{0:020}.log"
TRANSACTIONS = golden.ROOT / "logs" / "classes-4.3.1" / "transactions" / f"{0:020}.log"

Row = dict[str, Any]


def record_batches(
    path: Path, *, on_damage: OnDamage = "skip", **options: Unpack[TableOptions]
) -> pa.RecordBatchReader:
    return kseg.open_segment(path).to_arrow(on_damage=on_damage, **options)


def rows(path: Path, **options: Unpack[TableOptions]) -> list[Row]:
    """Return the records; times are microseconds, since Python's own end in the year 9999."""
    return [row for one in record_batches(path, **options) for row in with_microseconds(one).to_pylist()]


def with_microseconds(one: pa.RecordBatch) -> pa.RecordBatch:
    return one.set_column(one.schema.names.index("timestamp"), "timestamp", one["timestamp"].cast(pa.int64()))


def write_log(directory: Path, content: bytes) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / f"{0:020}.log"
    path.write_bytes(content)
    return path


# --- schema ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"headers": False}, CONNECTORS_FIELDS),
        ({}, [*CONNECTORS_FIELDS, ("headers", HEADERS)]),
        ({"batch_columns": True}, [*CONNECTORS_FIELDS, ("headers", HEADERS), *BATCH_FIELDS]),
    ],
)
def test_schema_is_the_connectors_with_what_was_asked_for(
    options: TableOptions, fields: list[tuple[str, pa.DataType]]
) -> None:
    schema = record_batches(MIXED, **options).schema
    assert schema.names == [name for name, _ in fields]
    assert [schema.field(name).type for name, _ in fields] == [kind for _, kind in fields]
    assert all(field.nullable for field in schema)


@pytest.mark.parametrize("options", [{}, {"headers": False}, {"batch_columns": True}])
def test_record_batches_have_the_schema_and_are_sound(options: TableOptions) -> None:
    reader = record_batches(MIXED, **options)
    for one in reader:
        assert one.schema == reader.schema
        one.validate(full=True)


# --- values ----------------------------------------------------------------------------------------------------------


def comparable(record: kseg.Record) -> Row:
    return {
        "key": record.key,
        "value": record.value,
        "offset": record.offset,
        "timestamp": record.timestamp * 1000,
        "timestampType": int(record.timestamp_type),
        "headers": [{"key": header.key, "value": header.value} for header in record.headers],
    }


def test_values_are_those_of_every_golden_logs_records() -> None:
    different = []
    for path in golden.files(".log"):
        with kseg.open_segment(path) as segment:
            wanted = [comparable(record) for record in segment.records(control=None)]
        told = rows(path, control=None)
        for want, have in zip(wanted, told, strict=True):
            if not -(2**63) <= want["timestamp"] < 2**63:
                have["timestamp"] = want["timestamp"]  # microseconds can't represent it
        if [{name: row[name] for name in wanted[0]} for row in told] != wanted:
            different.append(path)
    assert different == []


def test_null_is_reported_from_empty() -> None:
    found = rows(golden.ROOT / "logs" / "classes-3.9.1" / "nulls-v2-gzip" / f"{0:020}.log")
    assert [(row["key"], row["value"]) for row in found] == [
        (key, value) for key in (None, b"", b"x") for value in (None, b"", b"x")
    ]


def test_record_without_headers_has_an_empty_list_of_them() -> None:
    assert {len(row["headers"]) for row in rows(MIXED)} == {0}
    assert all(row["headers"] is not None for row in rows(MIXED))


def test_name_of_a_header_that_is_no_utf_8_is_read_as_java_reads_it(tmp_path: Path) -> None:
    content = batch(BatchHeader(), [Record(headers=[(b"\xffname", b"value"), (b"plain", None)])])
    (row,) = rows(write_log(tmp_path, content))
    assert row["headers"] == [{"key": "\ufffdname", "value": b"value"}, {"key": "plain", "value": None}]


@pytest.mark.parametrize(
    ("directory", "topic", "partition"),
    [
        ("orders-0", "orders", 0),
        ("a-b.c-12", "a-b.c", 12),
        ("nowhere", None, None),
        ("orders-0." + "0" * 32 + "-future", "orders", 0),
    ],
)
def test_topic_and_partition_are_the_directorys(
    directory: str, topic: str | None, partition: int | None, tmp_path: Path
) -> None:
    (row,) = rows(write_log(tmp_path / directory, batch(BatchHeader(), [Record(value=b"v")])))
    assert (row["topic"], row["partition"]) == (topic, partition)


@pytest.mark.parametrize("timestamp", [-1, 0, 1581597478310, LARGEST_MILLISECONDS])
def test_timestamp_is_the_records_to_the_millisecond(timestamp: int, tmp_path: Path) -> None:
    (one,) = record_batches(write_log(tmp_path, batch(BatchHeader(base_timestamp=timestamp), [Record()])))
    assert one["timestamp"][0].as_py() == EPOCH + timedelta(milliseconds=timestamp)


@pytest.mark.parametrize("timestamp", [2**63 - 1, -(2**63)])
def test_timestamp_beyond_arrows_times_never_raises(timestamp: int, tmp_path: Path) -> None:
    content = batch(BatchHeader(base_timestamp=timestamp), [Record(value=b"v")])
    assert sum(one.num_rows for one in record_batches(write_log(tmp_path, content))) == 1


# --- batch columns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [MIXED, TRANSACTIONS], ids=lambda path: path.parent.name)
def test_batch_columns_are_those_of_each_records_batch(path: Path) -> None:
    with kseg.open_segment(path) as segment:
        wanted = [of_batch(one, record) for one in segment.batches() for record in one.records()]
    names = [name for name, _ in BATCH_FIELDS]
    told = rows(path, batch_columns=True, control=None)
    assert [{name: row[name] for name in names} for row in told] == wanted


def of_batch(one: kseg.Batch, record: kseg.Record) -> Row:
    return {
        "baseOffset": one.base_offset,
        "position": one.position,
        "segment": f"{0:020}.log",
        "producerId": one.producer_id,
        "producerEpoch": one.producer_epoch,
        "sequence": record.sequence,
        "partitionLeaderEpoch": one.partition_leader_epoch,
        "isTransactional": one.is_transactional,
        "isControl": one.is_control,
        "magic": one.magic,
        "compression": Codec(one.codec).name.lower(),
    }


# --- which records, and how many at once -----------------------------------------------------------------------------


@pytest.mark.parametrize("keeps_control", [False, True])
def test_control_records_are_left_out_unless_asked_for(keeps_control: bool) -> None:
    with kseg.open_segment(TRANSACTIONS) as segment:
        wanted = [
            record.offset
            for one in segment.batches()
            if keeps_control or not one.is_control
            for record in one.records()
        ]
    assert [row["offset"] for row in rows(TRANSACTIONS, control=None if keeps_control else False)] == wanted


def test_log_of_control_records_alone_has_no_record_batches() -> None:
    path = golden.ROOT / "logs" / "classes-4.3.1" / "control-raft" / f"{0:020}.log"
    assert list(record_batches(path)) == []


def data_size(one: pa.RecordBatch) -> int:
    return sum(len(text) for name in ("key", "value") for text in one[name].to_pylist() if text is not None)


@pytest.mark.parametrize("most", [1, 50, 1000, MAX_BYTES])
def test_record_batch_holds_no_more_than_asked_for_unless_one_record_does(most: int) -> None:
    found = list(record_batches(MIXED, max_bytes=most))
    assert all(data_size(one) <= most or one.num_rows == 1 for one in found)
    assert rows(MIXED, max_bytes=most) == rows(MIXED)


@pytest.mark.parametrize("most", [1, 50])
def test_record_batch_holds_no_more_than_asked_for_where_control_records_are_left_out(most: int) -> None:
    found = list(record_batches(TRANSACTIONS, max_bytes=most))
    assert all(data_size(one) <= most or one.num_rows == 1 for one in found)


def test_damaged_stretches_are_left_out(tmp_path: Path) -> None:
    first, second = (batch(BatchHeader(number), [Record(value=b"%d" % number)]) for number in range(2))
    assert [row["value"] for row in rows(write_log(tmp_path, first + b"\xff" * 50 + second))] == [b"0", b"1"]


def test_empty_log_has_no_record_batches(tmp_path: Path) -> None:
    assert list(record_batches(write_log(tmp_path, b""))) == []


def test_missing_file_can_not_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OpenError, match="can't be opened"):
        list(record_batches(tmp_path / "absent.log"))


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["066-codec-5", "168-body-truncated", "106-count-minus-one", "055-magic-3"])
def test_damage_is_raised_or_told_if_that_is_asked_for(case: str) -> None:
    (path,) = (golden.ROOT / "damaged" / case).glob("*.log")
    met: list[kseg.Damage] = []
    found = sum(one.num_rows for one in record_batches(path, on_damage=met.append))
    assert met
    with kseg.open_segment(path) as segment:
        wanted: list[kseg.Damage] = []
        assert len(list(segment.records(on_damage=wanted.append))) == found
    assert met == wanted
    assert sum(one.num_rows for one in record_batches(path)) == found
    with pytest.raises(kseg.DamagedError, match=f"at position {met[0].position}: {met[0].kind}"):
        list(record_batches(path, on_damage="raise"))
