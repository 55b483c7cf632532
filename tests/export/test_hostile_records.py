"""Any record of a producer, in any table: it is readable, and each record is unchanged, or null and counted."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.export.commit.formats import FORMATS
from kseg.export.commit.protocol import NO_TABLE
from kseg.export.settings import ColumnDecoding, DecodedAs
from tests.export import exports
from tests.export.test_tables import catalog
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "until", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4}},
        {"name": "share", "type": "double"},
        {"name": "name", "type": "string"},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
    ],
}


def avro_long(number: int) -> bytes:
    """Return an integer, zigzag-encoded, seven bits per byte."""
    left, found = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def avro_bytes(content: bytes) -> bytes:
    """Return bytes or a string, which needn't be UTF-8."""
    return avro_long(len(content)) + content


def avro_map(pairs: list[tuple[bytes, int]]) -> bytes:
    """Return a map, in which keys may repeat."""
    entries = b"".join(avro_bytes(key) + avro_long(value) for key, value in pairs)
    return (avro_long(len(pairs)) + entries if pairs else b"") + b"\0"


LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = LONGS | st.sampled_from([-1, 0, *exports.YEARS_1_TO_9999[:: len(exports.YEARS_1_TO_9999) - 1], 253402300800000])
TEXTS = st.binary(max_size=6) | st.sampled_from([b"\0", b"\xed\xa0\x80", "é\U0001f600".encode(), b"null", b"\xff"])
BODIES = st.tuples(
    LONGS.map(avro_long),
    LONGS.map(avro_long),
    st.integers(-(1 << 31), (1 << 31) - 1).map(avro_long),
    st.binary(max_size=18).map(avro_bytes),
    st.binary(min_size=8, max_size=8),
    TEXTS.map(avro_bytes),
    st.lists(st.tuples(TEXTS, LONGS), max_size=3).map(lambda pairs: avro_map(pairs + pairs[:1])),
).map(b"".join)
RECORDS = st.builds(
    NewRecord,
    st.none() | TEXTS,
    st.none() | TEXTS | BODIES,
    TIMES,
    headers=st.lists(st.tuples(TEXTS.map(lambda name: name.decode("utf-8", "replace")), st.none() | TEXTS), max_size=2),
)


class Way(NamedTuple):
    """A way to export records, first of one partition, then also of another one."""

    table_format: str
    folders: tuple[str, ...]
    overwrites: bool
    merges: bool


WAYS = st.builds(
    Way,
    st.sampled_from(list(FORMATS)),
    st.sampled_from([(), ("topic", "date"), ("partition", "date")]),
    st.booleans(),
    st.booleans(),
)


def by_files(out: Path) -> Iterator[pa.Table]:
    """Yield plain files as pyarrow and DuckDB read them."""
    files = sorted(path for path in out.rglob("*.parquet"))
    yield pa.concat_tables(map(pq.read_table, files), promote_options="default")
    yield duckdb.sql(f"from read_parquet('{out}/**/*.parquet', hive_partitioning = false)").to_arrow_table()


def by_delta(out: Path) -> Iterator[pa.Table]:
    from deltalake import DeltaTable

    yield DeltaTable(str(out)).to_pyarrow_table()


def by_iceberg(out: Path) -> Iterator[pa.Table]:
    yield catalog(out).load_table(NO_TABLE.name).scan().to_arrow()


READERS: dict[str, Callable[[Path], Iterator[pa.Table]]] = {
    "parquet": by_files,
    "delta": by_delta,
    "iceberg": by_iceberg,
}
Row = tuple[int | None, int, bytes | None, bytes | None]


def rows_of(table: pa.Table) -> list[Row]:
    """Return timestamps in microseconds, milliseconds, keys and values."""
    times = table.column("timestamp").cast(pa.int64()).to_pylist()
    columns = [table.column(name).to_pylist() for name in ("timestampMs", "key", "value")]
    return sorted(zip(times, *columns, strict=True), key=repr)


def row_of(record: NewRecord) -> Row:
    held = record.timestamp * 1000 if record.timestamp in exports.YEARS_1_TO_9999 else None
    return (held, record.timestamp, record.key, record.value)


NUMBERS = count()


@settings(max_examples=6)
@given(way=WAYS, records=st.lists(RECORDS, min_size=1, max_size=8))
def test_every_record_is_in_the_table_as_it_was(way: Way, records: list[NewRecord], tmp_path: Path) -> None:
    place = tmp_path / str(next(NUMBERS))
    place.mkdir()
    (place / "order.avsc").write_text(json.dumps(SCHEMA))
    decode = ColumnDecoding(value="avro", schema=str(place / "order.avsc"), decoded_as=DecodedAs.TYPED)
    options: dict[str, Any] = {"table_format": way.table_format, "partition_by": way.folders, "decode": decode}
    for number in range(2):
        write_segment(place / f"disk/orders-{number}", [NewBatch([each], n) for n, each in enumerate(records)])
        how = {"overwrite": way.overwrites and number == 1, "merge_files": way.merges, "reads_back": True}
        report = exports.export([place / "disk"], place / "out", **options, **how)
        for table in READERS[way.table_format](place / "out"):
            assert rows_of(table) == sorted(map(row_of, records * (number + 1)), key=repr)
            nulls = table.column("valueDecoded").null_count - table.column("value").null_count
            assert nulls == sum(part.undecoded for part in report.partitions)


def order_of(year: int) -> bytes:
    """Return a body whose times and dates are in the middle of a year."""
    days = (year - 1970) * 146_097 // 400 + 180
    times = avro_long(days * 86_400_000_000) + avro_long(days * 86_400_000) + avro_long(days)
    return times + avro_bytes(b"\1") + bytes(8) + avro_bytes(b"x") + avro_map([])


@for_each("table_format", FORMATS)
def test_decoded_times_outside_of_the_years_1_to_9999_are_undecoded(table_format: str, tmp_path: Path) -> None:
    """A Delta table with other times couldn't be exported to again after its files were joined."""
    (tmp_path / "order.avsc").write_text(json.dumps(SCHEMA))
    decode = ColumnDecoding(value="avro", schema=str(tmp_path / "order.avsc"), decoded_as=DecodedAs.TYPED)
    years = (1, 2026, 9999, 0, 10_000, 50_000, -50_000)
    batches = [NewBatch([NewRecord(None, order_of(year))], n) for n, year in enumerate(years)]
    for number in range(3):
        write_segment(tmp_path / f"disk/orders-{number}", batches)
        options: dict[str, Any] = {"table_format": table_format, "decode": decode, "merge_files": True}
        report = exports.export([tmp_path / "disk"], tmp_path / "out", **options)
    assert [part.undecoded for part in report.partitions] == [4, 4, 4]
    for table in READERS[table_format](tmp_path / "out"):
        decoded = table.column("valueDecoded").drop_null().to_pylist()
        assert sorted(each["day"].year for each in decoded) == [1] * 3 + [2026] * 3 + [9999] * 3
