"""Change events of Debezium become the rows of the database, however many runs export them, and wherever these end."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyiceberg.table import StaticTable

from kseg.errors import KsegError, UsageError
from kseg.export.cdc.change_reader import NO_KEY
from kseg.export.cdc.commits import RowCommits
from kseg.export.changes import ChangeCounts
from kseg.export.columns.unwrapped import Unwrapping
from kseg.export.commit.protocol import NO_TABLE, Commits
from kseg.export.commit.table_commits import TableCommits
from kseg.export.planning import Export
from kseg.export.report import Report
from kseg.export.settings import FileOptions, ReadOptions
from tests import run
from tests.export import exports
from tests.export.debezium import Database, Row
from tests.export.exports import table_log
from tests.export.stepped import Exporter, pause_runs
from tests.export.test_table_model import SteppedLog, SteppedPlace, TableStore
from tests.export.test_tables import FORMATS
from tests.export.typed_logs import TypedLogs
from tests.log_files import NewBatch, NewRecord, write_segment

TOPIC = "srv.customers"


def export(sources: Path, out: Path, table_format: str = "delta", *, history: bool = False, **options: Any) -> Report:
    unwrap = Unwrapping(history=history)
    return exports.export([sources], out, unwrap=unwrap, table_format=table_format, partition_by=(), **options)


def table_at(out: Path, table_format: str = "delta") -> pa.Table:
    if table_format == "delta":
        return deltalake.DeltaTable(str(out)).to_pyarrow_table()
    newest = max((out / "metadata").glob("*.metadata.json"))
    return StaticTable.from_metadata(str(newest)).scan().to_arrow()


def rows_at(out: Path, table_format: str = "delta") -> list[Row]:
    """Return the rows without kseg's own columns and nulls, in the order of keys."""
    rows = table_at(out, table_format).to_pylist()
    plain = [
        {name: value for name, value in row.items() if not name.startswith("_kseg") and value is not None}
        for row in rows
    ]
    return sorted(plain, key=lambda row: row["id"])


def expected(database: Database) -> list[Row]:
    return [{name: value for name, value in row.items() if value is not None} for row in database.expected()]


def counts_of(report: Report) -> ChangeCounts:
    assert report.changes is not None
    return report.changes


def event(op: str, row: Row | None, *, lsn: int | None = None, **more: Any) -> bytes:
    source = {"connector": "postgresql", **({} if lsn is None else {"lsn": lsn})}
    return json.dumps({"before": None, "after": row, "source": source, "op": op, **more}).encode()


def write(directory: Path, *records: NewRecord, partition: int = 0, topic: str = TOPIC) -> None:
    write_segment(directory / f"{topic}-{partition}", [NewBatch(records, 0)])


# --- the model --------------------------------------------------------------------------------------------------------


@FORMATS
@pytest.mark.parametrize(("connector", "has_schema"), [("postgresql", False), ("mysql", True)])
def test_many_runs_make_the_rows_of_the_database(
    connector: str, has_schema: bool, tmp_path: Path, table_format: str
) -> None:
    """Partitions that come late have older changes than the table, also of deleted rows."""
    database = Database(connector=connector, has_schema=has_schema)
    chance = Random(connector)
    database.snapshot(300)
    out, deleted = tmp_path / "table", 0
    for number in range(6):
        database.change(400)
        if number == 3:
            database.add_column("since")
        late = chance.sample(range(3), 2) if number < 5 else []
        database.write(tmp_path / "logs", late=late)
        report = export(tmp_path / "logs", out, table_format)
        deleted += counts_of(report).deleted
        assert (report.status, counts_of(report).undecided) == (0, 0)
    assert rows_at(out, table_format) == expected(database)
    assert counts_of(report).total == len(database.rows)
    assert deleted
    assert counts_of(export(tmp_path / "logs", out, table_format)).changes == 0


@FORMATS
def test_a_history_has_each_change_once(tmp_path: Path, table_format: str) -> None:
    database = Database()
    for _ in range(3):
        database.change(100)
        database.write(tmp_path / "logs")
        report = export(tmp_path / "logs", tmp_path / "table", table_format, history=True)
        assert report.status == 0
    table = table_at(tmp_path / "table", table_format)
    events = [json.loads(record.value) for log in database.logs.values() for record in log if record.value is not None]
    found = zip(*(table.column(f"_kseg_{name}").to_pylist() for name in ("op", "position", "ts_ms")), strict=True)
    assert sorted(found) == sorted(
        (each["op"], f"lsn:{each['source']['lsn']:020}", each["source"]["ts_ms"]) for each in events
    )
    by_op = {row["_kseg_op"]: row for row in table.to_pylist()}
    assert by_op["d"]["name"] is not None, "a deletion has the row before it"


class _Stepped(TableStore):
    def commits(self, exporter: Exporter) -> Commits:
        place = SteppedPlace(self.out, exporter)
        log = SteppedLog(table_log(place, NO_TABLE, exporter.export.files), exporter)
        return RowCommits.of(TableCommits(place, log, exporter))


class _Town:
    """A database, and runs that export its changes."""

    def __init__(self, folder: Path, table_format: str) -> None:
        self.database, self.folder, self.table_format = Database(), folder, table_format
        self.store = _Stepped(folder / "out")
        self.change()

    def change(self) -> None:
        self.database.change(60)
        self.database.write(self.folder / "logs")

    def come(self) -> Exporter:
        files = FileOptions(table_format=self.table_format, partition_by=())
        read = ReadOptions(unwrap=Unwrapping())
        return Exporter(self.store, Export((str(self.folder / "logs"),), str(self.store.out), read=read, files=files))

    def check(self) -> None:
        """Assert that the next run makes the table equal to the database, and that killed runs leave nothing."""
        assert self.come().finish() == "done"
        assert rows_at(self.store.out, self.table_format) == expected(self.database)
        names = {
            path.relative_to(self.store.out / "_kseg").as_posix() for path in (self.store.out / "_kseg").rglob("*")
        }
        assert {name.partition("/")[0] for name in names} <= {
            "attempts",
            "jobs",
            "runs",
            "deleted",
            "report.json",
            "damages.csv",
        }
        assert [name for name in names if name.startswith(("attempts/", "runs/", "jobs/")) and "." in name] == []
        assert len([name for name in names if name.startswith("deleted/")]) == 1


def _paused(folder: Path, table_format: str) -> Iterator[tuple[_Town, Exporter]]:
    folders = (folder / str(number) for number in count())

    def begin() -> tuple[_Town, Exporter]:
        town = _Town(next(folders), table_format)
        assert town.come().finish() == "done"
        town.change()
        return town, town.come()

    return pause_runs(begin, 1 if table_format == "delta" else 4, at_least=20, first=1)


@FORMATS
def test_a_run_may_be_killed_before_each_of_its_steps(tmp_path: Path, table_format: str) -> None:
    for town, killed in _paused(tmp_path, table_format):
        killed.crash()
        town.change()
        town.check()


@FORMATS
def test_a_run_may_pause_anywhere_while_another_commits(tmp_path: Path, table_format: str) -> None:
    for town, pausing in _paused(tmp_path, table_format):
        town.change()
        assert town.come().finish() == "done"
        assert pausing.finish() == "done"
        town.check()


# --- which change is the latest ---------------------------------------------------------------------------------------


def key(own: int) -> bytes:
    return json.dumps({"id": own}).encode()


def test_the_last_record_of_a_partition_wins_whatever_its_position(tmp_path: Path) -> None:
    """After a restart, a database's log may begin again."""
    write(
        tmp_path / "logs",
        NewRecord(key(1), event("c", {"id": 1, "n": 1}, lsn=9)),
        NewRecord(key(1), event("u", {"id": 1, "n": 2}, lsn=3)),
    )
    export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 1, "n": 2}]


@pytest.mark.parametrize(
    ("one", "other", "winner", "undecided"),
    [
        ({"lsn": 7}, {"lsn": 12}, 2, 0),
        ({"lsn": 12}, {"lsn": 7}, 1, 0),
        ({"file": "bin.000009", "pos": 900, "row": 0}, {"file": "bin.000010", "pos": 4, "row": 0}, 2, 0),
        ({"file": "bin.000009", "pos": 900, "row": 1}, {"file": "bin.000009", "pos": 900, "row": 0}, 1, 0),
        ({"scn": "99"}, {"scn": "100"}, 2, 0),
        (
            {"commit_lsn": "0027:0ac0:0002", "change_lsn": "a"},
            {"commit_lsn": "0027:0ac0:0001", "change_lsn": "b"},
            1,
            0,
        ),
        ({"ts_ms": 5}, {"ts_ms": 4}, 1, 0),
        ({"ts_ms": 5, "lsn": 1}, {"ts_ms": 4}, 1, 0),
        ({"ts_ms": 5, "lsn": 1}, {"ts_ms": 4, "lsn": 1}, 1, 1),
        ({"ts_ms": 5}, {"ts_ms": 5}, 2, 1),
        ({}, {}, 2, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("run_count", [1, 2])
def test_the_position_decides_between_partitions(
    one: Row, other: Row, winner: int, undecided: int, run_count: int, tmp_path: Path
) -> None:
    for number, source in enumerate((one, other)):
        value = json.dumps({"op": "u", "after": {"id": 1, "n": number + 1}, "source": source}).encode()
        write(tmp_path / "logs", NewRecord(key(1), value), partition=number)
        if number or run_count == 2:
            report = export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 1, "n": winner}]
    assert counts_of(report).undecided == undecided


def test_a_late_change_does_not_bring_back_a_deleted_row(tmp_path: Path) -> None:
    write(tmp_path / "logs", NewRecord(key(1), event("d", None, lsn=9)), NewRecord(key(1), None))
    export(tmp_path / "logs", tmp_path / "table")
    write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1, "n": 1}, lsn=3)), partition=1)
    report = export(tmp_path / "logs", tmp_path / "table")
    assert (rows_at(tmp_path / "table"), counts_of(report).unchanged) == ([], 1)
    write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1, "n": 2}, lsn=12)), partition=2)
    export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 1, "n": 2}]


def test_a_tombstone_alone_deletes_a_row(tmp_path: Path) -> None:
    """Compaction removes the deletion that precedes it."""
    write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1, "n": 1}, lsn=3)), NewRecord(key(1), None))
    report = export(tmp_path / "logs", tmp_path / "table")
    assert (rows_at(tmp_path / "table"), counts_of(report).skipped) == ([], {"tombstones": 1})


def test_several_columns_make_a_key(tmp_path: Path) -> None:
    rows = [
        {"a": a, "b": b, "n": n} for n, (a, b) in enumerate([("x", "y:1"), ("x:1", "y"), ("x", "y:1"), ("x", None)])
    ]
    records = [
        NewRecord(json.dumps({"a": row["a"], "b": row["b"]}).encode(), event("c", row, lsn=n))
        for n, row in enumerate(rows)
    ]
    write(tmp_path / "logs", *records)
    export(tmp_path / "logs", tmp_path / "table")
    assert sorted(table_at(tmp_path / "table").column("n").to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("run_count", [1, 2])
def test_a_truncation_removes_earlier_rows(run_count: int, tmp_path: Path) -> None:
    own = [NewRecord(key(1), event("c", {"id": 1}, lsn=1)), NewRecord(key(2), event("c", {"id": 2}, lsn=2))]
    if run_count == 2:
        write(tmp_path / "logs", *own)
        export(tmp_path / "logs", tmp_path / "table")
    later = [NewRecord(None, event("t", None, lsn=5)), NewRecord(key(3), event("c", {"id": 3}, lsn=6))]
    write_segment(tmp_path / "logs" / f"{TOPIC}-0", [NewBatch(own, 0), NewBatch(later, 2)])
    report = export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 3}]
    assert (counts_of(report).deleted, counts_of(report).total) == (2 * (run_count == 2), 1)
    late = [NewRecord(key(4), event("c", {"id": 4}, lsn=4)), NewRecord(key(1), event("c", {"id": 1}, lsn=9))]
    write(tmp_path / "logs", *late, partition=1)
    export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 1}, {"id": 3}]


def test_values_that_were_not_logged_stay_as_they_were(tmp_path: Path) -> None:
    """PostgreSQL doesn't log large values that an update left as they were."""
    missing = "__debezium_unavailable_value"
    rows: list[Row] = [
        {"id": 1, "n": 1, "text": "one"},
        {"id": 2, "n": 1, "text": None},
        {"id": 1, "n": 2, "text": missing},
        {"id": 2, "n": 2, "text": missing},
        {"id": 3, "n": 2, "text": missing},
        {"id": 1, "n": 3, "text": missing},
    ]
    records = [NewRecord(key(row["id"]), event("u", row)) for row in rows]
    batches = [NewBatch([record], offset) for offset, record in enumerate(records)]
    for end in (4, 5, 6):
        write_segment(tmp_path / "logs" / f"{TOPIC}-0", batches[:end])
        export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 1, "n": 3, "text": "one"}, {"id": 2, "n": 2}, rows[4]]


# --- records of other kinds -------------------------------------------------------------------------------------------


def test_records_without_a_change_are_counted(tmp_path: Path) -> None:
    write(
        tmp_path / "logs",
        NewRecord(b'{"serverName":"srv"}', b'{"ts_ms":1}'),
        NewRecord(
            b'{"databaseName":"inventory"}',
            b'{"source":{"ts_ms":1},"databaseName":"inventory","ddl":"CREATE TABLE t (i INT)"}',
        ),
        NewRecord(b'{"prefix":"p"}', b'{"op":"m","ts_ms":1,"source":{},"message":{"prefix":"p","content":"AA=="}}'),
        NewRecord(key(1), event("c", {"id": 1})),
    )
    report = export(tmp_path / "logs", tmp_path / "table")
    assert counts_of(report).skipped == {"heartbeats": 1, "schemaChanges": 1, "messages": 1}
    assert (rows_at(tmp_path / "table"), report.status) == ([{"id": 1}], 0)


def test_a_topic_without_changes_makes_no_table(tmp_path: Path) -> None:
    write(tmp_path / "logs", NewRecord(b'{"id":"571"}', b'{"status":"BEGIN","id":"571","event_count":null}'))
    report = export(tmp_path / "logs", tmp_path / "table")
    assert (counts_of(report).skipped, report.status) == ({"transactions": 1}, 0)
    assert not deltalake.DeltaTable.is_deltatable(str(tmp_path / "table"))


NOT_ONE = "not a change event of Debezium:"


@pytest.mark.parametrize(
    ("record", "part", "reason"),
    [
        (NewRecord(key(2), b'{"x":1}'), "value", f"{NOT_ONE} it has no field op"),
        (NewRecord(key(2), b'{"op":"u","after":null}'), "value", f"{NOT_ONE} it has no field after"),
        (NewRecord(key(2), b'{"op":"x","after":{"id":1}}'), "value", f"{NOT_ONE} its op is 'x'"),
        (NewRecord(key(2), b"no JSON"), "value", "the text isn't one JSON object"),
        (NewRecord(key(2), b'{"op":"c"'), "value", "Missing a comma or '}' after an object member."),
        (NewRecord(key(2), b"{}{}"), "value", "the text isn't one JSON object"),
        (NewRecord(key(2), b"\xff"), "value", "the text isn't one JSON object"),
        (NewRecord(key(2), event("c", {"id": 2, "n": "text"})), "value", "field n is string, not long"),
        (NewRecord(None, event("c", {"id": 2, "n": 5})), "key", NO_KEY),
        (NewRecord(b"[1]", event("c", {"id": 2, "n": 5})), "key", "the text isn't one JSON object"),
    ],
    ids=["no op", "no after", "op x", "no JSON", "cut", "two", "no text", "type", "no key", "odd key"],
)
def test_a_record_that_is_no_change_is_undecoded(record: NewRecord, part: str, reason: str, tmp_path: Path) -> None:
    good = [NewRecord(key(own), event("c", {"id": own, "n": own})) for own in (1, 3)]
    write(tmp_path / "logs", good[0], record, good[1])
    report = export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 1, "n": 1}, {"id": 3, "n": 3}]
    undecoded = [
        (each.counts.part, each.counts.undecoded, each.counts.first_offset, each.counts.reason)
        for each in report.undecoded_parts()
    ]
    assert (undecoded, report.status) == ([(part, 1, 1, reason)], 1)


def test_a_column_of_another_type_leaves_the_other_rows(tmp_path: Path) -> None:
    write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1, "n": 1})))
    values = ["a", None, "b", None]
    write(
        tmp_path / "logs",
        *(NewRecord(key(own), event("c", {"id": own, "n": value})) for own, value in enumerate(values, 2)),
        partition=1,
    )
    report = export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 1, "n": 1}, {"id": 3}, {"id": 5}]
    assert [(each.counts.undecoded, each.counts.reason) for each in report.undecoded_parts()] == [
        (2, "field n is string, not long")
    ]


def test_rows_taken_out_of_their_envelopes_are_changes_too(tmp_path: Path) -> None:
    """As Debezium's ExtractNewRecordState writes them, with delete.tombstone.handling.mode=rewrite."""
    flat = [
        {"id": 1, "n": 1, "__op": "c", "__deleted": "false", "__lsn": 5},
        {"id": 2, "n": 2, "__op": "c", "__deleted": "false", "__lsn": 6},
        {"id": 1, "n": None, "__op": "d", "__deleted": "true", "__lsn": 7},
    ]
    write(tmp_path / "logs", *(NewRecord(key(row["id"]), json.dumps(row).encode()) for row in flat))
    export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [{"id": 2, "n": 2}]
    assert table_at(tmp_path / "table").column("_kseg_position").to_pylist() == [f"lsn:{6:020}"]


# --- columns ----------------------------------------------------------------------------------------------------------


def test_whole_numbers_become_doubles_when_a_fraction_comes(tmp_path: Path) -> None:
    for number, value in enumerate((1, 2.5)):
        write(tmp_path / "logs", NewRecord(key(number), event("c", {"id": number, "n": value})), partition=number)
        export(tmp_path / "logs", tmp_path / "table")
    table = table_at(tmp_path / "table")
    assert table.schema.field("n").type == pa.float64()
    assert rows_at(tmp_path / "table") == [{"id": 0, "n": 1.0}, {"id": 1, "n": 2.5}]


def test_iceberg_refuses_wider_columns(tmp_path: Path) -> None:
    for number, value in enumerate((1, 2.5)):
        write(tmp_path / "logs", NewRecord(key(number), event("c", {"id": number, "n": value})), partition=number)
        if number:
            with pytest.raises(UsageError, match="field n is double, not long as in the table, and Iceberg's columns"):
                export(tmp_path / "logs", tmp_path / "table", "iceberg")
        else:
            export(tmp_path / "logs", tmp_path / "table", "iceberg")


def test_other_programs_may_rewrite_the_files(tmp_path: Path) -> None:
    database = Database()
    for _ in range(3):
        database.change(100)
        database.write(tmp_path / "logs")
        export(tmp_path / "logs", tmp_path / "table", target_size=1000)
        deltalake.DeltaTable(str(tmp_path / "table")).optimize.z_order(["id"])
    assert rows_at(tmp_path / "table") == expected(database)


def test_texts_that_look_like_times_stay_texts(tmp_path: Path) -> None:
    row = {"id": 1, "day": "2024-01-05", "more": {"at": "2024-01-05T00:00:00Z", "all": ["2024-01-05"]}}
    write(tmp_path / "logs", NewRecord(key(1), event("c", row)))
    export(tmp_path / "logs", tmp_path / "table")
    assert rows_at(tmp_path / "table") == [row]


def avro_envelope(*columns: Row) -> Row:
    """Return the schema of an envelope as Debezium's Avro converter registers it."""
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}, *columns]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    fields = [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": source},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]
    return {"type": "record", "name": "Envelope", "namespace": "srv.customers", "fields": fields}


def test_avro_is_read_by_its_schemas(tmp_path: Path) -> None:
    logs = TypedLogs(tmp_path / "logs")
    key_schema = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    at = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}
    since = {"name": "since", "type": ["null", "string"], "default": None}
    time = datetime(2024, 1, 5, tzinfo=UTC)
    rows: list[Row] = [{"id": 1, "at": time}, {"id": 2, "at": time}, {"id": 1, "at": time, "since": "May"}]
    changes = [("c", rows[0], [at]), ("c", rows[1], [at]), ("u", rows[2], [at, since]), ("d", None, [at, since])]
    records = []
    for number, (op, row, columns) in enumerate(changes):
        own = 2 if row is None else row["id"]
        parts = ((MessageField.KEY, key_schema, {"id": own}), (MessageField.VALUE, avro_envelope(*columns), None))
        value = {"before": None, "after": row, "source": {"lsn": number}, "op": op}
        key, message = (
            AvroSerializer(logs.client, json.dumps(schema))(content or value, SerializationContext(TOPIC, part))
            for part, schema, content in parts
        )
        records.append(NewRecord(key, message))
    write(tmp_path / "logs", *records, NewRecord(records[1].key, None))
    options = ["--key-decoder", "avro", "--value-decoder", "avro", "--schema-registry", str(logs.registry())]
    arguments = ["logs", "table", "--topic", TOPIC, "--format", "delta", "--unwrap", "debezium", *options, "-o", "json"]
    ran = run.kseg(["export", *arguments], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    assert rows_at(tmp_path / "table") == [rows[2]]
    changed = json.loads(ran.stdout.splitlines()[-1])["changes"]
    assert (changed["inserted"], changed["superseded"], changed["skipped"]) == (1, 2, {"tombstones": 1})


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_table_made_otherwise_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1})))
    export(tmp_path / "logs", tmp_path / "table")
    with pytest.raises(UsageError, match="the export was made with no --history; specify the same"):
        export(tmp_path / "logs", tmp_path / "table", history=True)
    with pytest.raises(UsageError, match="the export was made with --unwrap debezium; specify the same"):
        exports.export([tmp_path / "logs"], tmp_path / "table", table_format="delta", partition_by=())


def test_another_key_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1})))
    write(tmp_path / "logs", NewRecord(b'{"no":1}', event("c", {"no": 1})), partition=1)
    with pytest.raises(UsageError, match="the columns of the key are no, but were id"):
        export(tmp_path / "logs", tmp_path / "table")


def test_changed_records_are_refused_until_the_table_is_made_again(tmp_path: Path) -> None:
    write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1})), NewRecord(key(2), event("c", {"id": 2})))
    export(tmp_path / "logs", tmp_path / "table")
    write(tmp_path / "logs", NewRecord(key(7), event("c", {"id": 7})))
    with pytest.raises(KsegError, match="have changed since they were exported"):
        export(tmp_path / "logs", tmp_path / "table")
    export(tmp_path / "logs", tmp_path / "table", overwrite=True)
    assert rows_at(tmp_path / "table") == [{"id": 7}]


def test_topics_need_a_table_each(tmp_path: Path) -> None:
    for topic in ("a", "b"):
        write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1})), topic=topic)
    with pytest.raises(UsageError, match="--unwrap needs a table per topic"):
        export(tmp_path / "logs", tmp_path / "table")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--history", "--format", "delta"], "--history needs --unwrap"),
        (["--unwrap", "debezium"], "--unwrap needs a table whose rows can change; specify --format delta or iceberg"),
        (["--partition-by", "topic"], "--unwrap excludes --partition-by: its table has rows, not records"),
        (["--latest-per-key"], "--unwrap excludes --latest-per-key: its table has rows, not records"),
        (["--verify", "full"], "--unwrap excludes --verify full: its table has rows, not records"),
        (["--value-decoder", "json"], "--unwrap reads JSON without a decoder; other decoders need --schema or"),
        (["--redact", "keys"], "--unwrap excludes --redact: substitutes are no rows"),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, list) else "",
)
def test_options_that_mean_nothing_for_rows_are_refused(options: list[str], problem: str, tmp_path: Path) -> None:
    write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1})))
    more = [] if {"--unwrap", "--history"} & set(options) else ["--unwrap", "debezium", "--format", "delta"]
    ran = run.kseg(["export", "logs", "table", *options, *more], tmp_path)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert problem in ran.stderr.decode()


def test_a_connector_gets_a_table_per_topic(tmp_path: Path) -> None:
    for topic in ("srv.a", "srv.b"):
        write(tmp_path / "logs", NewRecord(key(1), event("c", {"id": 1})), topic=topic)
    write(tmp_path / "logs", NewRecord(b'{"serverName":"srv"}', b'{"ts_ms":1}'), topic="__debezium-heartbeat.srv")
    arguments = ["logs", "lake/{topic}", "--format", "delta", "--unwrap", "debezium"]
    for found in ("1 change: 1 row inserted", "0 changes: 0 rows inserted"):
        ran = run.kseg(["export", *arguments], tmp_path)
        assert (ran.status, ran.stderr, ran.stdout.decode().count(found)) == (0, b"", 2 if found[0] == "1" else 3)
    assert rows_at(tmp_path / "lake" / "srv.a") == rows_at(tmp_path / "lake" / "srv.b") == [{"id": 1}]
    assert not (tmp_path / "lake" / "__debezium-heartbeat.srv" / "_delta_log").exists()
