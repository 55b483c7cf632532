"""Values that a format can't hold: one rule for all formats, a note in the report, and never a ruined table."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from kseg.export.commit.formats import FORMATS
from kseg.export.commit.protocol import NO_TABLE
from kseg.text.export import report_lines
from tests import run
from tests.export import exports
from tests.export.test_tables import catalog
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each

FIRST_MS, LAST_MS = exports.YEARS_1_TO_9999[0], exports.YEARS_1_TO_9999[-1]
NOW_MS = 1_700_000_000_000
TIMES = (
    *(NOW_MS, NOW_MS * 1000, NOW_MS // 1000, -NOW_MS * 1000, 0, -1, FIRST_MS, FIRST_MS - 1, LAST_MS, LAST_MS + 1),
    *((1 << 63) - 1, -(1 << 63), NOW_MS * 1_000_000),
)
WAYS = [*((table_format, ("topic", "date")) for table_format in FORMATS), ("iceberg", ())]


def stored_timestamp(milliseconds: int) -> int | None:
    """Return a table's form of a timestamp, in microseconds."""
    return milliseconds * 1000 if milliseconds in exports.YEARS_1_TO_9999 else None


def write(directory: Path, times: tuple[int, ...], first: int = 0) -> None:
    batches = [NewBatch([NewRecord(b"k", b"v", time)], first + n) for n, time in enumerate(times)]
    write_segment(directory, batches, first)


def table_of(out: Path, table_format: str) -> pa.Table:
    """Return all rows by offset, read by the format's own library, or by pyarrow for Parquet files."""
    if table_format == "delta":
        from deltalake import DeltaTable

        found = DeltaTable(str(out)).to_pyarrow_table()
    elif table_format == "iceberg":
        found = catalog(out).load_table(NO_TABLE.name).scan().to_arrow()
    else:
        found = pa.concat_tables([table for *_, table in exports.tables(out)], promote_options="default")
    return found.sort_by("offset")


def times_of(out: Path, table_format: str) -> list[int | None]:
    """Return the timestamps of all rows, in microseconds."""
    found: list[int | None] = table_of(out, table_format).column("timestamp").cast(pa.int64()).to_pylist()
    return found


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def integers(*names: str) -> dict[str, Any]:
    return objects(**{name: {"type": "integer"} for name in names})


def export_by_schema(place: Path, schema: object, table_format: str, *options: str) -> run.Run:
    """Export a record whose value is an empty object, with typed columns by a JSON Schema."""
    write_segment(place / "disk/orders-0", [NewBatch([NewRecord(b"k", b"{}", NOW_MS)], 0)])
    (place / "schema.json").write_text(json.dumps(schema))
    decoding = ["--value-decoder", "json", "--schema", str(place / "schema.json")]
    return run.kseg(
        ["export", str(place / "disk"), str(place / "out"), "--format", table_format, *decoding, *options], place
    )


def message_lines(report: Any) -> list[str]:
    return [line for line in report_lines(report) if "outside of the years" in line]


@for_each("table_format, folders", WAYS)
def test_times_outside_of_the_years_1_to_9999_are_null_and_their_milliseconds_kept(
    table_format: str, folders: tuple[str, ...], tmp_path: Path
) -> None:
    out, count = tmp_path / "out", sum(stored_timestamp(time) is None for time in TIMES)
    write(tmp_path / "disk/orders-0", TIMES)
    options: dict[str, Any] = {"table_format": table_format, "partition_by": folders}
    report = exports.export([tmp_path / "disk"], out, **options)
    table = table_of(out, table_format)
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == list(map(stored_timestamp, TIMES))
    assert table.column("timestampMs").to_pylist() == list(TIMES)
    assert (exports.of_partition(report, "orders").without_time, report.status) == (count, 0)
    assert message_lines(report) == [
        f"orders-0: {count} timestamps are outside of the years 1 to 9999, so the column timestamp is null; "
        "timestampMs has the milliseconds"
    ]
    dates = {path.name.removeprefix("date=") for path in out.rglob("date=*")}
    assert ("__HIVE_DEFAULT_PARTITION__" in dates) == ("date" in folders)
    write(tmp_path / "disk/orders-1", TIMES)
    exports.export([tmp_path / "disk"], out, **options)
    exports.export([tmp_path / "disk"], out, **options, overwrite=True)
    assert table_of(out, table_format).num_rows == 2 * len(TIMES)
    if "date" in folders:
        assert_found(out, table_format, nulls=2 * count)


def assert_found(out: Path, table_format: str, nulls: int) -> None:
    """Assert that queries find all rows, although the libraries skip files by partition."""
    days = {time // 86_400_000 for time in TIMES if stored_timestamp(time) is not None}
    if table_format == "iceberg":
        table = catalog(out).load_table(NO_TABLE.name)
        counts = [
            table.scan(row_filter=f"timestamp {test}").to_arrow().num_rows
            for test in ("is null", "is not null", "< '0001-01-02T00:00:00+00:00'", ">= '9999-12-31T00:00:00+00:00'")
        ]
        assert counts == [nulls, 2 * len(TIMES) - nulls, 2, 2]
    elif table_format == "delta":
        dates = table_of(out, table_format).column("date")
        assert (dates.null_count, len(dates.unique().drop_null())) == (nulls, len(days))
    else:
        select = "select count(*) filter (date is null), count(distinct date) from"
        assert duckdb.sql(f"{select} read_parquet('{out}/**/*.parquet')").fetchall() == [(nulls, len(days))]


@for_each("table_format", FORMATS)
def test_a_table_without_milliseconds_keeps_its_columns(table_format: str, tmp_path: Path) -> None:
    out, disk = tmp_path / "out", tmp_path / "disk"
    options: dict[str, Any] = {"table_format": table_format, "partition_by": ("date",)}
    write(disk / "orders-0", (NOW_MS,))
    exports.export([disk], out, **options, adds_milliseconds=False)
    columns = table_of(out, table_format).schema.names
    assert "timestampMs" not in columns
    write(disk / "orders-1", (NOW_MS * 1000, NOW_MS))
    report = exports.export([disk], out, **options, merge_files=True)
    assert table_of(out, table_format).schema.names == columns
    assert sorted(times_of(out, table_format), key=str) == [NOW_MS * 1000, NOW_MS * 1000, None]
    assert message_lines(report) == [
        "orders-1: 1 timestamp is outside of the years 1 to 9999, so the column timestamp is null, "
        "and this table has no column timestampMs; export to another destination to keep them"
    ]
    exports.export([disk], out, **options, overwrite=True)
    has_column = "timestampMs" in table_of(out, table_format).schema.names
    assert has_column == (table_format != "iceberg")  # which keeps its columns


@for_each("table_format, folders", [(each, folders) for each in FORMATS for folders in ("topic,date", "none")])
def test_a_topic_with_the_name_of_no_topic_is_refused_or_kept(table_format: str, folders: str, tmp_path: Path) -> None:
    out, topic = tmp_path / "out", "__HIVE_DEFAULT_PARTITION__"
    write(tmp_path / f"disk/{topic}-0", TIMES)
    ran = run.kseg(["export", "disk", "out", "--format", table_format, "--partition-by", folders], tmp_path)
    if "topic" in folders and table_format != "iceberg":
        assert (ran.status, out.exists()) == (2, False)
        assert ran.stderr.startswith(f"kseg: readers interpret the folder topic={topic} as null; ".encode())
    else:
        assert table_of(out, table_format).column("topic").to_pylist() == [topic] * len(TIMES)


@for_each("table_format, folders", [(each, folders) for each in FORMATS for folders in (("topic", "date"), ())])
def test_names_that_an_address_has_to_quote_are_those_of_files(
    table_format: str, folders: tuple[str, ...], tmp_path: Path
) -> None:
    out, topic = tmp_path / "out é %+", "a b%20é>+;" + ("" if table_format == "iceberg" else "?#")
    disk = tmp_path / "disk"
    options: dict[str, Any] = {"table_format": table_format, "partition_by": folders, "reads_back": True}
    for times, merges in ((TIMES, False), (TIMES[:2], False), (TIMES[2:4], True)):  # the log changes each time
        write(disk / f"{topic}-0", times)
        exports.export([disk], out, **options, merge_files=merges)
        table = table_of(out, table_format)
        assert table.column("timestampMs").to_pylist() == list(times)


@for_each("name", ["a?b-0", "a#b-0"])
def test_an_iceberg_table_has_no_files_whose_names_readers_cut(name: str, tmp_path: Path) -> None:
    write(tmp_path / "disk" / name, TIMES)
    ran = run.kseg(["export", "disk", "out", "--format", "iceberg"], tmp_path)
    assert (ran.status, (tmp_path / "out").exists()) == (2, False)
    assert ran.stderr.startswith(f"kseg: readers of Iceberg can't find files of the topic {name!r}; ".encode())


UNADDRESSABLE = {
    "delta": ["o%20x", "o%2f..%2fx", "o#x", "o?x", "o\\x", "o\nx", "o\udcff"],
    "iceberg": ["o#x", "o?x", "o\udcff"],
}


@for_each("table_format, name", [(each, name) for each, names in UNADDRESSABLE.items() for name in names])
def test_a_place_that_the_library_would_look_for_elsewhere_is_refused(
    table_format: str, name: str, tmp_path: Path
) -> None:
    write(tmp_path / "disk/orders-0", TIMES)
    ran = run.kseg(["export", "disk", f"out/{name}", "--format", table_format], tmp_path)
    assert (ran.status, (tmp_path / "out").exists(), ran.stderr.count(b"\n")) == (2, False, 1)
    assert b"tables don't support " in ran.stderr


ALIKE = {
    "fields 'id' and 'ID' would have the same name in a table": integers("id", "ID"),
    "fields 'é' and 'É' would have the same name in a table": integers("é", "É"),
    "fields 'lines.element.n' and 'lines.element.N' would have the same name in a table": objects(
        lines={"type": "array", "items": integers("n", "N")}
    ),
    "fields 'tags.value.n' and 'tags.value.N' would have the same name in a table": objects(
        tags={"type": "object", "additionalProperties": integers("n", "N")}
    ),
    "fields 'a.b' and 'A.b' would have the same name in a table": objects(
        **{"a.b": {"type": "integer"}, "A": integers("b")}
    ),
    "field 'a\\x00b' has a character that column names can't have": integers("a\0b"),
    "field '\\ud800' has a character that column names can't have": integers("\ud800"),
}
"""Messages about schemas, in all formats."""


@for_each("problem, schema", ALIKE.items())
def test_names_that_are_one_in_a_table_are_refused_before_anything_is_written(
    problem: str, schema: object, tmp_path: Path
) -> None:
    for table_format in FORMATS:
        ran = export_by_schema(tmp_path, schema, table_format)
        (line,) = ran.stderr.decode().splitlines()
        assert (ran.status, problem in line) == (2, True), line
        assert line.endswith("make the values text with --decoded text, or leave them raw with --on-mismatch raw")
        assert not (tmp_path / "out").exists()
    assert export_by_schema(tmp_path, schema, "delta", "--on-mismatch", "raw").status == 0


def test_a_later_schema_whose_name_differs_only_in_case_is_refused(tmp_path: Path) -> None:
    for table_format in FORMATS:
        place = tmp_path / table_format
        assert export_by_schema(place, integers("id"), table_format).status == 0
        before = sorted((place / "out").rglob("*"))
        ran = export_by_schema(place, integers("Id"), table_format)
        assert (ran.status, b"fields 'id' and 'Id' would have the same name" in ran.stderr) == (2, True), ran.stderr
        assert sorted((place / "out").rglob("*")) == before


def test_names_of_any_other_kind_are_columns(tmp_path: Path) -> None:
    names = ["", "a b,;{}()\n\t=", "n" * 3000, "a.b", "a\"b`c'", "a/b\\c%25", "*", "element", "ß", "timestamp", "date"]
    for table_format in FORMATS:
        place = tmp_path / table_format
        for _ in range(2):
            ran = export_by_schema(place, integers(*names), table_format, "--partition-by", "date", "--merge-files")
            assert ran.status == 0, ran.stderr
        column = table_of(place / "out", table_format).schema.field("valueDecoded").type
        assert [column.field(place).name for place in range(column.num_fields)] == names
