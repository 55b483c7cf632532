"""Runs by topic: the objects of `-q -o json`, and the table of runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import kseg.export.recording as recording
from kseg.errors import KsegError
from kseg.export.commit.order import execute_here
from kseg.export.dead_letters import run_with_dead_letters
from kseg.export.planning import Export
from kseg.export.recording import Recorder
from kseg.export.settings import FileOptions
from kseg.output.progress import Talk
from tests import run
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment

FORMATS = pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
RUNS = "lake/_kseg_runs"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for topic, count in (("orders", 30), ("payments", 20)):
        for partition in (0, 1):
            exports.write_log(tmp_path / "logs" / f"{topic}-{partition}", 0, count)
    return tmp_path / "logs"


def kseg(logs: Path, *options: str, to: str = "lake/{topic}") -> run.Run:
    return run.kseg(["export", str(logs), *options, "--to", to, "-q", "-o", "json"], logs.parent)


def objects(ran: run.Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


def rows(directory: Path) -> list[dict[str, Any]]:
    """Return the rows of a table of runs, in the order of the runs."""
    found = [row for path in sorted(directory.glob("*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()]
    return sorted(found, key=lambda row: (row["startTime"], row["topic"] or ""))


def facts(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


@FORMATS
def test_each_topic_has_an_object_and_a_row_per_run(table_format: str, logs: Path, tmp_path: Path) -> None:
    options = ("--format", table_format, "--runs-table", RUNS)
    first = kseg(logs, *options)
    exports.write_log(logs / "orders-1", 30, 10)
    second = kseg(logs, *options)
    assert [(each.status, each.stderr) for each in (first, second)] == [(0, b"")] * 2
    told = [*objects(first), *objects(second)]
    assert [
        facts(each, "topic", "outcome", "newRows", "totalRows", "newFiles", "status", "commit") for each in told
    ] == [
        ("orders", "committed", 60, 60, 2, 0, 1),
        ("payments", "committed", 40, 40, 2, 0, 1),
        ("orders", "committed", 10, 70, 1, 0, 2),
        ("payments", "nothing new", 0, 40, 0, 0, 1),
    ]
    assert told[2]["offsetRanges"] == [{"partition": 1, "fromOffset": 30, "toOffset": 40}]
    assert told[3]["offsetRanges"] == []
    assert (told[2]["tableVersion"] is None) == (table_format == "parquet")
    found = rows(tmp_path / RUNS)
    assert len(found) == len(told)
    for row, each in zip(found, told, strict=True):
        times = {
            name: row[name].isoformat(timespec="milliseconds").replace("+00:00", "Z")
            for name in ("startTime", "endTime")
        }
        assert {"type": "topic", **row, **times} | {"seconds": each["seconds"]} == each
        assert row["seconds"] == pytest.approx(each["seconds"], abs=0.001)


def test_bytes_are_those_of_the_new_files(logs: Path, tmp_path: Path) -> None:
    (each,) = objects(kseg(logs, "--topic", "orders"))
    assert each["newBytes"] == sum(path.stat().st_size for path in (tmp_path / "lake/orders").rglob("*.parquet"))


def test_a_file_of_several_topics_counts_for_each_by_its_rows(logs: Path, tmp_path: Path) -> None:
    kseg(logs, "--partition-by", "none", to="one")
    exports.write_log(logs / "orders-1", 30, 30)
    exports.write_log(logs / "payments-1", 20, 10)
    told = objects(kseg(logs, "--partition-by", "none", "--merge-files", to="one"))
    assert [facts(each, "topic", "newRows", "totalRows") for each in told] == [("orders", 30, 90), ("payments", 10, 50)]
    sizes = [path.stat().st_size for path in (tmp_path / "one").rglob("*.parquet")]
    assert {each["newFiles"] for each in told} == {1}
    assert sum(each["newBytes"] for each in told) in (sum(sizes), sum(sizes) - 1)


def test_a_topic_that_fails_has_an_object_and_the_others_too(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "lake/orders").mkdir(parents=True)
    (tmp_path / "lake/orders/mine").touch()
    ran = kseg(logs, "--runs-table", RUNS)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    failed, done = objects(ran)
    assert facts(failed, "topic", "outcome", "status", "newRows", "commit") == ("orders", "failed", 2, None, None)
    assert "isn't empty" in failed["error"]
    assert facts(done, "topic", "outcome", "status", "newRows") == ("payments", "committed", 0, 40)
    assert [facts(row, "topic", "outcome", "error") for row in rows(tmp_path / RUNS)] == [
        ("orders", "failed", failed["error"]),
        ("payments", "committed", None),
    ]


def test_a_name_that_is_no_topic_has_an_object(logs: Path) -> None:
    exports.write_log(logs / "no topic!-0", 0, 5)
    ran = kseg(logs)
    assert ran.status == 2
    (failed,) = [each for each in objects(ran) if each["outcome"] == "failed"]
    assert (failed["topic"], failed["status"]) == ("no topic!-0", 2)


@pytest.mark.parametrize("to", ["lake", "lake/{topic}"])
def test_an_export_without_sources_has_an_object(to: str, tmp_path: Path) -> None:
    ran = run.kseg(["export", "missing", to, "-q", "-o", "json"], tmp_path)
    (failed,) = objects(ran)
    assert ran.status == 2
    assert facts(failed, "topic", "outcome", "error") == (None, "failed", "missing: no such file or directory")


def test_losses_decide_the_status_of_their_topic(restored: Path, tmp_path: Path) -> None:
    damaged = restored / "damaged/210-wiped-batch"
    ran = run.kseg(["export", str(damaged), str(restored / "docs"), "lake/{topic}", "-q", "-o", "json"], tmp_path)
    assert ran.status == 1
    assert sorted((each["status"], each["newLost"] > 0) for each in objects(ran)) == [(0, False), (1, True)]


def test_a_source_that_is_missing_is_the_error_of_each_topic(logs: Path) -> None:
    told = objects(kseg(logs, str(logs.parent / "missing")))
    assert [facts(each, "topic", "outcome", "status") for each in told] == [
        ("orders", "committed", 2),
        ("payments", "committed", 2),
    ]
    assert all(each["error"].endswith("missing: no such file or directory") for each in told)


def test_undecoded_values_and_dead_letters_are_those_of_the_run(tmp_path: Path) -> None:
    for first in (0, 3):
        batch = NewBatch([NewRecord(None, value) for value in (b"{", b"1", b"x")], first)
        write_segment(tmp_path / "logs/orders-0", [batch], first)
        ran = kseg(tmp_path / "logs", "--value-decoder", "json", "--dead-letter", "dead")
        (each,) = objects(ran)
        assert ran.status == 1
        assert facts(each, "newRows", "newUndecoded", "newDeadLetters", "status") == (3, 2, 2, 1)


def test_a_replaced_log_gives_the_change_of_the_number_of_rows(logs: Path, tmp_path: Path) -> None:
    options = ("--topic", "orders", "--runs-table", RUNS)
    kseg(logs, *options)
    exports.write_log(logs / "orders-0", 0, 10, value=b"other")
    kseg(logs, *options)
    assert sum(row["newRows"] for row in rows(tmp_path / RUNS)) == 40
    assert len(exports.offsets(tmp_path / "lake/orders", "orders")) == 10


def test_rows_of_a_database_are_counted_as_changes(tmp_path: Path) -> None:
    events = [b'{"op":"c","after":{"id":%d},"source":{"lsn":%d}}' % (number % 2, number) for number in range(5)]
    records = [NewRecord(b'{"id":%d}' % (number % 2), event) for number, event in enumerate(events)]
    write_segment(tmp_path / "logs/shop.customers-0", [NewBatch(records)])
    options = ("--format", "delta", "--unwrap", "debezium")
    first, again = (objects(kseg(tmp_path / "logs", *options))[0] for _ in range(2))
    assert facts(first, "outcome", "newRows", "newFiles", "newBytes", "tableVersion") == ("committed", 5, 1, None, "0")
    assert facts(again, "outcome", "newRows", "newFiles") == ("nothing new", 0, 0)


def test_without_quiet_the_objects_stay_as_they_were(logs: Path) -> None:
    ran = run.kseg(["export", str(logs), "lake/{topic}", "-o", "json"], logs.parent)
    assert {each["type"] for each in objects(ran)} == {"partition", "table", "summary"}


class Killed(BaseException):
    """The end of a process."""


def run_killed(wanted: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run an export, and end it between its commit and the row."""

    def die(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(recording, "write_rows", die)
        with pytest.raises(Killed):
            run_recorded(wanted)


def run_recorded(wanted: Export) -> None:
    Recorder(Talk()).record(wanted, lambda each: run_with_dead_letters(each, execute_here))


def wanted_export(logs: Path, table_format: str = "parquet", **options: Any) -> Export:
    return Export(
        (str(logs),),
        str(logs.parent / "out"),
        files=FileOptions(table_format=table_format),
        runs_table=str(logs.parent / RUNS),
        **options,
    )


@FORMATS
@pytest.mark.parametrize("overwrite", [False, True])
def test_the_rows_of_a_run_killed_after_its_commit_are_written_once(
    table_format: str, overwrite: bool, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = wanted_export(logs, table_format)
    last = wanted_export(logs, table_format, overwrite=overwrite)
    run_killed(wanted, monkeypatch)
    assert rows(tmp_path / RUNS) == []
    exports.write_log(logs / "orders-1", 30, 10)
    run_killed(last, monkeypatch)
    run_recorded(last)
    found = rows(tmp_path / RUNS)
    if overwrite:
        assert [facts(row, "topic", "totalRows") for row in found] == [("orders", 60), ("payments", 40)] + [
            ("orders", 70),
            ("payments", 40),
        ] * 2
    else:
        assert [facts(row, "topic", "outcome", "newRows", "commit") for row in found] == [
            ("orders", "committed", 60, 1),
            ("payments", "committed", 40, 1),
            ("orders", "committed", 10, 2),
            ("payments", "nothing new", 0, 2),
            ("orders", "nothing new", 0, 2),
            ("payments", "nothing new", 0, 2),
        ]
    assert len({(row["runId"], row["topic"]) for row in found}) == len(found)


def test_a_run_without_the_option_keeps_the_rows_that_are_missing(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_killed(wanted_export(logs), monkeypatch)
    exports.write_log(logs / "orders-1", 30, 10)
    exports.export([logs], tmp_path / "out")
    run_recorded(wanted_export(logs))
    assert [facts(row, "topic", "newRows", "commit") for row in rows(tmp_path / RUNS)] == [
        ("orders", 60, 1),
        ("payments", 40, 1),
        ("orders", 0, 2),
        ("payments", 0, 2),
    ]


def test_the_same_table_may_be_given_by_another_path(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_killed(wanted_export(logs), monkeypatch)
    monkeypatch.chdir(tmp_path)
    run_recorded(replace(wanted_export(logs), runs_table=RUNS))
    assert sorted(row["newRows"] for row in rows(tmp_path / RUNS)) == [0, 0, 40, 60]


def test_the_incomplete_file_of_a_killed_run_goes(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_killed(wanted_export(logs), monkeypatch)
    run_recorded(wanted_export(logs))
    killed = min(path.name for path in (tmp_path / RUNS).iterdir())
    (tmp_path / RUNS / killed).rename(tmp_path / RUNS / f"{killed}.0123456789ab.tmp")
    run_recorded(wanted_export(logs))
    assert {path.suffix for path in (tmp_path / RUNS).iterdir()} == {".parquet"}


def test_a_full_disk_below_the_table_is_reported_and_its_rows_follow(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KsegError("can't be written: No space left on device", "runs")

    with monkeypatch.context() as patch:
        patch.setattr(recording, "write_rows", fail)
        ran = kseg(logs, "--runs-table", RUNS)
    assert (ran.status, ran.stderr) == (2, b"kseg: runs: can't be written: No space left on device\n" * 2)
    assert {facts(each, "outcome", "status", "newRows") for each in objects(ran)} == {
        ("committed", 2, 60),
        ("committed", 2, 40),
    }
    assert kseg(logs, "--runs-table", RUNS).status == 0
    assert sorted(row["newRows"] for row in rows(tmp_path / RUNS)) == [0, 0, 40, 60]


def test_a_failure_after_the_commit_keeps_the_numbers(logs: Path, tmp_path: Path) -> None:
    def fail_late(each: Export) -> Any:
        run_with_dead_letters(each, execute_here)
        raise KsegError("the table can't be read")

    with pytest.raises(KsegError):
        Recorder(Talk()).record(wanted_export(logs), fail_late)
    run_recorded(wanted_export(logs))
    assert [facts(row, "outcome", "status", "error", "newRows") for row in rows(tmp_path / RUNS)] == [
        ("committed", 2, "the table can't be read", 60),
        ("committed", 2, "the table can't be read", 40),
        ("nothing new", 0, None, 0),
        ("nothing new", 0, None, 0),
    ]


def test_each_topic_may_have_a_table_of_runs(logs: Path, tmp_path: Path) -> None:
    assert kseg(logs, "--runs-table", "runs/{topic}").status == 0
    found = {topic: rows(tmp_path / "runs" / topic) for topic in ("orders", "payments")}
    assert {topic: [row["topic"] for row in own] for topic, own in found.items()} == {
        "orders": ["orders"],
        "payments": ["payments"],
    }


@pytest.mark.parametrize(
    ("place", "to", "message"),
    [
        ("lake/orders/runs", "lake/{topic}", "is within the table's directory, or around it"),
        ("lake", "lake/{topic}", "is within the table's directory, or around it"),
        ("runs/{topic}", "lake", "--runs-table has {topic}, but DEST doesn't"),
        ("logs/runs", "lake", "kseg: "),
        ("other", "lake", "is the destination of an export"),
    ],
)
def test_a_table_of_runs_in_a_wrong_place_is_refused(
    place: str, to: str, message: str, logs: Path, tmp_path: Path
) -> None:
    kseg(logs, to="other")
    ran = kseg(logs, "--topic", "orders", "--runs-table", place, to=to)
    assert (ran.status, (tmp_path / "lake").exists()) == (2, False)
    assert message in ran.stderr.decode()
    assert objects(ran)[0]["outcome"] == "failed"


@pytest.mark.parametrize(
    ("member", "value"),
    [("id", "../../x"), ("id", 1), ("startedMs", -1), ("runsTable", None), ("topics", [{}]), ("topics", 1)],
)
def test_a_record_that_no_run_can_have_written_is_refused(member: str, value: Any, logs: Path, tmp_path: Path) -> None:
    kseg(logs, "--runs-table", RUNS, to="out")
    manifest = next((tmp_path / "out/_kseg").glob("manifest-*.json"))
    content = json.loads(manifest.read_bytes())
    content["record"][member] = value
    manifest.write_text(json.dumps(content))
    ran = kseg(logs, "--runs-table", RUNS, to="out")
    assert (ran.status, f"record.{member}".encode() in ran.stderr) == (2, True)
    assert {row["outcome"] for row in rows(tmp_path / RUNS)} == {"committed", "failed"}
