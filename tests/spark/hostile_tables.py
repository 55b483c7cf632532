"""Tables of hostile records, made in every way. The program makes them with Spark, and reads all in one session."""

import json
import shutil
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from kseg.export.commit.formats import FORMATS
from kseg.export.commit.order import Execute
from kseg.export.planning import Export
from kseg.export.run import run_export
from kseg.export.settings import ColumnDecoding, DecodedAs, FileOptions, ReadOptions
from kseg.text.export import report_lines
from tests.export import exports
from tests.export.test_hostile_records import SCHEMA, avro_bytes, avro_long, avro_map
from tests.export.test_hostile_values import TIMES
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.spark.connectors import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONGS = (-(1 << 63), (1 << 63) - 1)
FIRST, LAST = exports.YEARS_1_TO_9999[0] * 1000, exports.YEARS_1_TO_9999[-1] * 1000 + 999
"""Bounds of a table's timestamps in microseconds."""
DAYS = FIRST // 86_400_000_000, LAST // 86_400_000_000
MOST = 10**38 - 1
"""The largest number with as many digits as a decimal can have."""
GONE, LATER = "Orders", 3
"""The topic whose log is deleted before the second run, and the number of partitions that are added."""
LOGS = (("orders", 0), ("0042", 7), (GONE, 0), ("orders", 1), ("__x", 0), ("a" * 240, 0))


EXPORT, SPARK_EXPORT = "export", "spark-export"


class Way(NamedTuple):
    """A way to make a table in two runs: the second adds to it or overwrites it."""

    decoder: str
    table_format: str
    folders: tuple[str, ...]
    overwrites: bool

    @property
    def name(self) -> str:
        """The name of its directory."""
        second = "overwrite" if self.overwrites else "append"
        return "-".join((self.decoder, self.table_format, "+".join(self.folders) or "none", second))


WAYS = tuple(map(Way._make, product(("avro", "json"), FORMATS, ((), ("topic",), ("date",)), (False, True))))


# --- records ---------------------------------------------------------------------------------------------------------

KEYS = (None, b"", b"\0", b"\xed\xa0\x80", b"k")
HEADERS = ((), (("", None),), (("a", b""), ("a", b"\0")), (("\0", b"x"),))
AVRO_NAMES = ("ID", "camelCase", "n" * 1000, "_", "element", "key_value", "Timestamp", "offset", "select")
AVRO: dict[str, Any] = {
    **SCHEMA,
    "fields": [
        *SCHEMA["fields"],
        *({"name": name, "type": ["null", "string"], "default": None} for name in AVRO_NAMES),
    ],
}
JSON_NAMES = (
    *("a b,;{}()\n\t=", "n" * 1000, "a.b", "a\"b`c'", "a/b\\c%25", "*", "ß", "timestamp", "date", "Offset", "KEY"),
    *("element", "list", "key_value", "a:b", "$x", "#", "0", "null"),
)
"""Names except the empty one, which DuckDB changes, as docs/how-to/tables.md says."""
JSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{name: {"type": "integer"} for name in JSON_NAMES},
        "text": {"type": "string"},
        "price": {"type": "number"},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "more": {"type": "array", "items": {"type": "object", "properties": {"A": {"type": "string"}, "b": {}}}},
    },
    "additionalProperties": False,
}


def _avro(
    at: int = 0,
    until: int = 0,
    day: int = 0,
    price: int | bytes = 0,
    share: bytes = bytes(8),
    name: bytes = b"x",
    tags: tuple[tuple[bytes, int], ...] = (),
    text: bytes | None = None,
) -> bytes:
    """Return a body of the Avro schema; a decimal is a number of units, or its bytes."""
    units = price if isinstance(price, bytes) else price.to_bytes(17, "big", signed=True)
    times = avro_long(at) + avro_long(until) + avro_long(day)
    texts = b"\0" if text is None else b"\2" + avro_bytes(text)
    return times + avro_bytes(units) + share + avro_bytes(name) + avro_map([*tags]) + texts * len(AVRO_NAMES)


BODIES = {
    "avro": (
        *(_avro(), _avro(FIRST, FIRST // 1000, DAYS[0], -MOST), _avro(LAST, LAST // 1000, DAYS[1], MOST)),
        *(_avro(FIRST - 1), _avro(LAST + 1), _avro(until=LAST // 1000 + 1), _avro(day=DAYS[0] - 1), _avro(LONGS[0])),
        *(_avro(price=MOST + 1), _avro(price=b""), _avro(price=b"\xff"), _avro(price=b"\xff" * 18)),
        *(_avro(share=bytes.fromhex(bits)) for bits in ("000000000000f87f", "000000000000f0ff", "0000000000000080")),
        *(_avro(name=name) for name in (b"", b"\0", b"\xed\xa0\x80", "é\U0001f600".encode(), b"\xff")),
        _avro(tags=((b"a", 1), (b"a", 2), (b"A", LONGS[0]), (b"", LONGS[1]), (b"\0", 0))),
        *(_avro(tags=((b"\xed\xa0\x80", 1),)), _avro(text=b""), _avro(text=b"\0"), b"\xff" * 20),
    ),
    "json": (
        *(json.dumps(dict.fromkeys(JSON_NAMES, number)).encode() for number in (0, *LONGS)),
        *(b"{}", b"null", b"[", b'{"n": 1}', b'{"0": 9223372036854775808}', b'{"0": 1, "0": 2}'),
        *(b'{"text": ""}', b'{"text": "\\u0000"}', b'{"text": "\\ud800"}', b'{"text": "\\ud83d\\ude00"}'),
        *(b'{"price": 1e308}', b'{"price": 1e999}', b'{"price": NaN}', b'{"price": -0.0}', b'{"price": 1%030d}' % 0),
        *(b'{"tags": {}}', b'{"tags": {"a": "1", "a": "2", "A": "", "": "x", "\\u0000": "x"}}'),
        *(b'{"tags": {"\\ud800": ""}}', b'{"tags": null, "more": null}', b'{"more": []}'),
        b'{"more": [{}, {"A": "", "b": {"c": null}, "d": 1}, {"A": "\\u0000", "b": [1e400]}]}',
    ),
}


def records(decoder: str) -> list[NewRecord]:
    """Return the records of each log."""
    values = (None, b"", b"\0", b"\xed\xa0\x80", *BODIES[decoder])
    times = (*TIMES, -(1 << 62), 1 << 62, -12_219_292_800_001, -12_219_292_800_000)  # the last two: Gregory's first day
    return [
        NewRecord(KEYS[number % len(KEYS)], value, times[number % len(times)], headers=HEADERS[number % len(HEADERS)])
        for number, value in enumerate(values)
    ]


Row = tuple[str, int, int, int, int | None, bytes | None, bytes | None]
"""Topic, partition, offset, milliseconds, microseconds, key, value."""


def rows_of(way: Way) -> list[Row]:
    """Return the expected rows of a table."""
    return sorted(
        (
            (
                *(topic, partition, offset, each.timestamp),
                each.timestamp * 1000 if each.timestamp in exports.YEARS_1_TO_9999 else None,
                *(each.key, each.value),
            )
            for topic, partition in LOGS
            if topic != GONE or not way.overwrites
            for offset, each in enumerate(records(way.decoder))
        ),
        key=lambda row: row[:3],
    )


FILTERS = (
    *("timestamp IS NULL", "timestamp < TIMESTAMP '0001-01-02 00:00:00'"),
    *("timestamp >= TIMESTAMP '9999-12-31 00:00:00'", "timestamp < TIMESTAMP '1582-10-15 00:00:00'"),
    *("timestampMs = 9223372036854775807", "timestampMs < 0", "key IS NULL", "key = unhex('')"),
    *("key = unhex('EDA080')", "value > unhex('EDA07F')", f"partition = 0 AND topic = '{GONE}'", "topic = '0042'"),
    *("partition = 7", "valueDecoded IS NULL"),
)
"""Filters that each match some rows of every table; readers skip files by bounds and by folders."""
DECODED_FILTERS = {
    "avro": (
        *("valueDecoded.price > 9999999999999999999999999999999999.9998", "valueDecoded.name = ''"),
        *("valueDecoded.name > 'x'", "valueDecoded.day > DATE '9999-12-30'", "isnan(valueDecoded.share)"),
        *("valueDecoded.at < TIMESTAMP '0001-01-02 00:00:00'", "valueDecoded.tags IS NULL"),
    ),
    "json": (
        *("valueDecoded.text = ''", "valueDecoded.price > 1e300", "valueDecoded.date = 9223372036854775807"),
        "valueDecoded.Offset < 0",
    ),
}


def counting(way: Way, rows: str) -> str:
    """Return SQL that counts the matches of each filter among rows, for Spark and DuckDB."""
    filters = (*FILTERS, *DECODED_FILTERS[way.decoder])
    return " UNION ALL ".join(f"SELECT {n}, count(*) FROM {rows} WHERE {each}" for n, each in enumerate(filters))


# --- tables ----------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A finished table: its way, its directory, its location, and other readers' lines for it."""

    way: Way
    out: Path
    location: str
    lines: dict[str, str]

    @property
    def spark(self) -> Path:
        """Spark's output for the table."""
        return self.out.with_name("spark.arrow")

    @property
    def counts(self) -> Path:
        """Spark's counts for each filter; for a Delta table, also the number of files that one filter reads."""
        return self.out.with_name("counts.json")

    @property
    def is_filtered(self) -> bool:
        """True if filters are tested: for tables that both make alike, with old and new files."""
        return self.maker == EXPORT and not self.way.overwrites

    @property
    def maker(self) -> str:
        """The command that made it."""
        return self.out.parent.parent.name


def make(way: Way, place: Path, execute: Execute) -> None:
    """Make a table in a directory."""
    disk, schema = place / "disk", place / "schema.json"
    disk.mkdir(parents=True)
    schema.write_text(json.dumps({"avro": AVRO, "json": JSON}[way.decoder]))
    decode = ColumnDecoding(value=way.decoder, schema=str(schema), decoded_as=DecodedAs.TYPED)
    files = FileOptions(table_format=way.table_format, partition_by=way.folders)
    for logs, overwrites in ((LOGS[:-LATER], False), (LOGS[-LATER:], way.overwrites)):
        for topic, partition in logs:
            batches = [NewBatch([record], offset) for offset, record in enumerate(records(way.decoder))]
            write_segment(disk / f"{topic}-{partition}", batches)
        report = run_export(
            Export(
                (str(disk),), str(place / "out"), read=ReadOptions(decode=decode), files=files, overwrite=overwrites
            ),
            execute,
        )
        shutil.rmtree(disk / f"{GONE}-0", ignore_errors=True)
    lines = dict(line.split(": ", 1) for line in list(report_lines(report))[-2:])
    (place / "table.json").write_text(json.dumps([way, report.table, lines]))


def tables(place: Path) -> Iterator[Table]:
    """Yield the tables below a directory."""
    for file in sorted(place.rglob("table.json")):
        (decoder, table_format, folders, overwrites), location, lines = json.loads(file.read_bytes())
        way = Way(decoder, table_format, tuple(folders), overwrites)
        yield Table(way, file.parent / "out", location, lines)


# --- Spark -----------------------------------------------------------------------------------------------------------


def _read(session: "SparkSession", table: Table) -> "DataFrame":
    reader = session.read.format(table.way.table_format)
    if table.way.table_format == "parquet":
        reader = reader.option("mergeSchema", "true")
    return reader.load(table.location)


def _files_read(frame: "DataFrame") -> int:
    """Return the number of files that Spark read for rows, from its plan's metrics."""
    frame.collect()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    return sum(leaves.apply(number).metrics().apply("numFiles").value() for number in range(leaves.size()))


def main(place: Path, jars: str) -> None:
    """Make the missing tables with Spark, and write what it reads of each next to it."""
    from pyspark.sql import SparkSession

    from kseg.spark.job import by_context, open_context

    with open_context("local[2]", {**SETTINGS, "spark.jars": jars}) as context:
        session = SparkSession(context)
        for way in WAYS:
            make(way, place / SPARK_EXPORT / way.name, by_context(context, 2))
        for table in tables(place):
            read = _read(session, table)
            found = read.toArrow()
            with pa.OSFile(str(table.spark), "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
                writer.write_table(found)
            if table.is_filtered:
                read.createOrReplaceTempView("found")
                counts = session.sql(counting(table.way, "found")).collect()
                is_delta = table.way.table_format == "delta"
                files = _files_read(read.filter(f"partition = {LOGS[1][1]}").select("offset")) if is_delta else None
                table.counts.write_text(json.dumps([sorted(map(list, counts)), files]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
