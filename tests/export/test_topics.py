"""Exports that write a table per topic."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kseg.export.commit.order import execute_here
from kseg.export.planning import Export
from kseg.export.report import Report
from kseg.export.run import run_export
from kseg.export.topics import run_topics
from kseg.log.selection import PartitionChoice
from tests import run
from tests.export import exports
from tests.export.test_tables import catalog
from tests.export.typed_logs import TypedLogs
from tests.test_listings import COUNTING

FORMATS = pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
TOPICS = {"orders": 30, "pay.ments": 20}
"""The number of records of each topic."""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for topic, count in TOPICS.items():
        for partition in (0, 1):
            exports.write_log(tmp_path / "logs" / f"{topic}-{partition}", 0, count)
    return tmp_path / "logs"


def kseg(logs: Path, *options: str, to: str = "lake/{topic}") -> run.Run:
    return run.kseg(["export", str(logs), *options, "--to", to], logs.parent)


def objects(ran: run.Run, kind: str) -> list[dict[str, Any]]:
    return [found for line in ran.stdout.splitlines() if (found := json.loads(line))["type"] == kind]


def row_count(out: Path, table_format: str, table: str) -> int:
    """Return the rows of a table as its library reads them."""
    if table_format == "parquet":
        return int(pq.read_table(out, partitioning=None).num_rows)
    if table_format == "delta":
        from deltalake import DeltaTable

        return int(DeltaTable(str(out)).to_pyarrow_table().num_rows)
    return int(catalog(out).load_table(table).scan().to_arrow().num_rows)


def test_a_failed_topic_is_not_an_empty_selection(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    (tmp_path / "lake" / "orders" / "notes").touch()
    ran = kseg(logs, "--topic", "orders", "--isolation", "read_committed")
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"isn't empty and isn't an export" in ran.stderr


@FORMATS
def test_each_topic_has_its_own_table_and_grows_on_its_own(table_format: str, logs: Path, tmp_path: Path) -> None:
    first = kseg(logs, "--format", table_format, "-o", "json")
    assert (first.status, first.stderr) == (0, b"")
    exports.write_log(logs / "orders-1", 30, 10)
    ran = kseg(logs, "--format", table_format, "-o", "json")
    assert (ran.status, ran.stderr) == (0, b"")
    assert [(each["topic"], each["recordsOut"], each["newFiles"]) for each in objects(ran, "table")] == [
        ("orders", 70, 1),
        ("pay.ments", 40, 0),
    ]
    assert [(each["topic"], each["partition"], each["recordsOut"]) for each in objects(ran, "partition")] == [
        ("orders", 0, 30),
        ("orders", 1, 40),
        ("pay.ments", 0, 20),
        ("pay.ments", 1, 20),
    ]
    (summary,) = objects(ran, "summary")
    assert (summary["tables"], summary["failed"], summary["recordsOut"], summary["newFiles"]) == (2, 0, 110, 1)
    assert row_count(tmp_path / "lake/orders", table_format, "kafka.orders") == 70
    assert row_count(tmp_path / "lake/pay.ments", table_format, "kafka.pay_ments") == 40
    reports = [json.loads((tmp_path / f"lake/{topic}/_kseg/report.json").read_bytes()) for topic in TOPICS]
    assert [{part["topic"] for part in each["partitions"]} for each in reports] == [{topic} for topic in TOPICS]


def test_text_has_one_table_of_accounts_and_a_line_per_table(logs: Path, tmp_path: Path) -> None:
    lines = kseg(logs).stdout.decode().splitlines()
    assert [line.split()[:2] for line in lines[1:5]] == [
        [topic, partition] for topic in TOPICS for partition in ("0", "1")
    ]
    assert lines[5] == f"60 of 60 records, 0 offsets lost, 0 damages; 2 new files in {tmp_path}/lake/orders"
    assert lines[7] == "2 tables: 100 of 100 records, 0 offsets lost, 0 damages; 4 new files in lake/{topic}"
    assert "lake/orders" in lines[8]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_topic_that_fails_stops_no_other_and_decides_the_status(form: str, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "lake/orders").mkdir(parents=True)
    (tmp_path / "lake/orders/mine").touch()
    ran = kseg(logs, "-o", form)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert ran.stderr.startswith(b"kseg: orders: %b/lake/orders: the destination isn't empty" % bytes(tmp_path))
    assert len(exports.offsets(tmp_path / "lake/pay.ments", "pay.ments")) == 20
    if form == "json":
        failed, done = objects(ran, "table")
        assert (failed["topic"], failed["status"], done["status"]) == ("orders", 2, 0)
        assert "isn't empty" in failed["error"]
        assert objects(ran, "summary")[0]["failed"] == 1
    else:
        assert b"1 table, 1 topic failed: 40 of 40 records" in ran.stdout


def test_schemas_that_fit_in_no_common_table_have_one_each(tmp_path: Path) -> None:
    logs = TypedLogs(tmp_path / "logs")
    kinds = {"orders": "long", "payments": {"type": "long", "logicalType": "timestamp-micros"}}
    for topic, kind in kinds.items():
        schema = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": kind}]}
        logs.avro(topic, schema, [{"id": number} for number in range(3)])
    options = ["--value-decoder", "avro", "--schema-registry", str(logs.registry()), "--topic", "[op]*s"]
    assert kseg(logs.directory, *options, to="one").status == 2
    assert kseg(logs.directory, *options).status == 0
    types = [
        pq.read_schema(next((tmp_path / "lake" / topic).rglob("*.parquet"))).field("valueDecoded").type
        for topic in kinds
    ]
    assert [str(each) for each in types] == ["struct<id: int64>", "struct<id: timestamp[us, tz=UTC]>"]


def test_a_name_that_no_topic_has_leads_nowhere(logs: Path, tmp_path: Path) -> None:
    (logs / "orders-0").rename(logs / "a b-0")
    ran = kseg(logs, "--topic", "a*", "--topic", "pay*")
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: a b-0: no topic of Kafka has this name")
    assert [path.name for path in (tmp_path / "lake").iterdir()] == ["pay.ments"]


def test_topics_whose_tables_would_have_one_name_are_told_apart(logs: Path, tmp_path: Path) -> None:
    shutil.copytree(logs / "orders-0", logs / "pay_ments-0")
    ran = kseg(logs, "--format", "iceberg", "--table", "kafka.{topic}", "--topic", "pay*")
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: pay_ments: its table would be 'kafka.pay_ments'")
    assert row_count(tmp_path / "lake/pay.ments", "iceberg", "kafka.pay_ments") == 40


@pytest.mark.parametrize(
    ("options", "to"),
    [(["--table", "kafka.{topic}"], "lake"), (["--table", "kafka.records", "--catalog", "any"], "lake/{topic}")],
)
def test_tables_of_several_topics_need_a_place_and_a_name_each(options: list[str], to: str, logs: Path) -> None:
    ran = kseg(logs, "--format", "iceberg", *options, to=to)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert b"{topic}" in ran.stderr


def test_no_such_topic_writes_nothing(logs: Path, tmp_path: Path) -> None:
    ran = kseg(logs, "--topic", "order")
    assert (ran.status, ran.stdout, (tmp_path / "lake").exists()) == (2, b"", False)
    assert b"did you mean orders (0-1)?" in ran.stderr


def test_a_dry_run_plans_all_topics(logs: Path, tmp_path: Path) -> None:
    ran = kseg(logs, "--dry-run")
    assert (ran.status, ran.stdout.decode().splitlines()[-1].split(",")[0]) == (0, "4 partitions")
    assert not (tmp_path / "lake").exists()


def test_directories_are_listed_once_for_all_topics(logs: Path) -> None:
    words = ["export", "logs", "lake/{topic}", "-q"]
    ran = run.process([], logs.parent, program=f"{COUNTING}main({words})")
    counts = Counter(json.loads(ran.stderr.splitlines()[-1]))
    assert {name: counts[f"logs/{name}"] for name in ("orders-0", "pay.ments-1")} == {"orders-0": 1, "pay.ments-1": 1}


def test_records_that_another_run_exports_meanwhile_stay(logs: Path, tmp_path: Path) -> None:
    """The listing is older than the other run's commit: the log isn't truncated, but has grown since."""
    wanted = Export((str(logs),), str(tmp_path / "lake/{topic}"))
    later = tmp_path / "lake" / "pay.ments"

    def export(each: Export) -> Report:
        return run_export(each, execute_here)

    def export_late(each: Export) -> Report:
        if each.destination.endswith("orders"):
            with (logs / "pay.ments-0" / f"{0:020}.log").open("ab") as file:
                file.write(exports.write_log(tmp_path / "more", 20, 10).read_bytes())
            exports.export([logs], later, partitions=PartitionChoice(("pay.ments",)))
        return export(each)

    assert run_topics(wanted, export).errors == []
    report = run_topics(wanted, export_late).done[1]
    assert ([part.records_out for part in report.partitions], report.new_files) == ([30, 20], 0)
    assert exports.offsets(later, "pay.ments") == list(range(30))
