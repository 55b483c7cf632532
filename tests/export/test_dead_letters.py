"""Dead letters: copies of records that don't decode, each once, also after killed runs and full disks."""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import kseg.export.dead_letters as dead_letters
from kseg.errors import KsegError, OpenError, UsageError
from kseg.export.commit.order import Job, execute_here
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.report import Report
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import ColumnDecoding, FileOptions, ReadOptions
from tests import run
from tests.export.test_typed_protobuf import by_set, compile_schema
from tests.export.test_undecoded import BAD, FORMATS, GOOD, export, rows, write
from tests.export.typed_logs import TypedLogs


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def read_letters(place: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(place.rglob("*.parquet")):
        topic = path.parent.name.removeprefix("topic=")
        yield from ({**row, "topic": topic} for row in pq.ParquetFile(path).read().to_pylist())


def places_of(place: Path) -> list[tuple[str, int, int]]:
    return sorted((row["topic"], row["partition"], row["offset"]) for row in read_letters(place))


def letters_of(ran: run.Run) -> dict[str, Any]:
    found: dict[str, Any] = rows(ran, "summary")[0]["deadLetters"]
    return found


@pytest.mark.parametrize("table_format", FORMATS)
def test_letters_are_copies_and_later_runs_add_to_them(table_format: str, logs: Path) -> None:
    options, dead = ("--format", table_format, "--dead-letter", "dead"), logs.parent / "dead"
    write(logs, "orders-0", [GOOD, BAD])
    write(logs, "pays-0", [GOOD])
    ran = export(logs, *options)
    assert (ran.status, rows(ran, "summary")[0]["recordsOut"]) == (1, 3)
    assert letters_of(ran) == {"destination": str(dead), "records": 1, "undecoded": 1}
    assert places_of(dead) == [("orders", 0, 1)]
    again = export(logs, *options)
    assert (again.status, letters_of(again)["records"], places_of(dead)) == (0, 1, [("orders", 0, 1)])
    write(logs, "orders-0", [GOOD, BAD, GOOD, BAD, GOOD], 2)
    write(logs, "pays-0", [BAD], 1)
    later = export(logs, *options)
    assert (later.status, letters_of(later)["records"]) == (1, 4)
    assert places_of(dead) == [("orders", 0, 1), ("orders", 0, 3), ("orders", 0, 5), ("pays", 0, 1)]


def test_a_letter_has_the_record_its_side_and_the_reason(logs: Path) -> None:
    write(logs, "orders-0", [GOOD, BAD], key=b"k")
    write(logs, "pays-0", [GOOD, BAD, None], key=b"\xff")
    for options in (("--keep-raw", "undecoded"), ("--drop", "raw"), ("--headers", "map")):
        ran = export(logs, "--key-decoder", "string", "--dead-letter", "dead", "--overwrite", *options)
        found = [
            (row["topic"], row["offset"], row["key"], row["value"], row["side"])
            for row in read_letters(logs.parent / "dead")
        ]
        assert found == [
            ("orders", 1, b"k", BAD, "value"),
            ("pays", 0, b"\xff", GOOD, "key"),
            ("pays", 1, b"\xff", BAD, "both"),
            ("pays", 2, b"\xff", None, "key"),
        ]
        assert letters_of(ran)["records"] == letters_of(ran)["undecoded"] == 4
    row = next(row for row in read_letters(logs.parent / "dead") if row["side"] == "both")
    assert row["reason"].startswith("key: not UTF-8: byte 0xff at 0; value: not JSON: ")
    assert {"timestamp", "timestampMs", "headers"} < row.keys()
    assert not row.keys() & {"keyDecoded", "valueDecoded"}


def test_the_limit_decides_the_status_and_a_line_has_the_number(logs: Path) -> None:
    write(logs, "orders-0", [GOOD, BAD])
    command = ["export", "logs", "out", "--value-decoder", "json", "--max-undecoded", "1", "--dead-letter", "dead"]
    ran = run.kseg(command, logs.parent)
    assert (ran.status, ran.stderr) == (0, b"")
    assert f"dead letters: 1 record in {logs.parent / 'dead'}" in ran.stdout.decode().splitlines()
    report = json.loads((logs.parent / "dead/_kseg/report.json").read_bytes())["partitions"][0]
    assert (report["recordsIn"], report["recordsOut"], report["unselected"]) == (1, 1, 0)


def test_without_undecoded_records_there_is_no_directory(logs: Path) -> None:
    write(logs, "orders-0", [GOOD])
    ran = export(logs, "--dead-letter", "dead")
    assert (ran.status, letters_of(ran)["records"], (logs.parent / "dead").exists()) == (0, 0, False)


@pytest.mark.parametrize("dead", ["dead/{topic}", "dead"])
def test_tables_of_topics_have_letters_in_one_place_or_one_each(dead: str, logs: Path) -> None:
    def export_topics() -> list[dict[str, Any]]:
        options = ["--value-decoder", "json", "--dead-letter", dead, "-o", "json"]
        return rows(run.kseg(["export", "logs", "lake/{topic}", *options], logs.parent), "table")

    write(logs, "orders-0", [GOOD, BAD])
    write(logs, "pays-0", [BAD, GOOD, BAD])
    write(logs, "views-0", [GOOD])
    expected = [("orders", 0, 1), ("pays", 0, 0), ("pays", 0, 2)]
    for _ in range(2):
        assert [each["deadLetters"]["records"] for each in export_topics()] == [1, 2, 0]
        assert places_of(logs.parent / "dead") == expected
    write(logs, "orders-0", [BAD], 2)
    write(logs, "views-0", [BAD], 1)
    assert [each["deadLetters"]["records"] for each in export_topics()] == [2, 2, 1]
    assert places_of(logs.parent / "dead") == sorted([*expected, ("orders", 0, 2), ("views", 0, 1)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dead-letter", "dead"], b"--dead-letter is for exports with a decoder"),
        (["--value-decoder", "json", "--latest-per-key", "--dead-letter", "dead"], b"--dead-letter needs all records"),
        (["--value-decoder", "json", "--dead-letter", "out/dead"], b"is within the table's directory, or around it"),
        (["--value-decoder", "json", "--dead-letter", "."], b"kseg: "),
        (["--value-decoder", "json", "--dead-letter", "logs/dead"], b"kseg: "),
        (["--value-decoder", "json", "--dead-letter", "dead/{topic}"], b"--dead-letter has {topic}, but DEST doesn't"),
        (["--value-decoder", "json", "--dead-letter", "other"], b"kseg: "),
    ],
)
def test_a_wrong_place_is_refused_before_anything_is_written(options: list[str], message: bytes, logs: Path) -> None:
    write(logs, "orders-0", [BAD])
    (logs.parent / "other").mkdir()
    (logs.parent / "other/file").write_bytes(b"mine")
    ran = run.kseg(["export", "logs", "out", *options], logs.parent)
    assert (ran.status, (logs.parent / "out").exists()) == (2, False)
    assert message in ran.stderr


def test_avro_letters_of_all_versions(tmp_path: Path) -> None:
    logs = TypedLogs(tmp_path / "logs")
    fields = [{"name": "id", "type": "long"}]
    schema: dict[str, Any] = {"type": "record", "name": "Order", "fields": fields}
    wider = {**schema, "fields": [*fields, {"name": "note", "type": "string", "default": ""}]}
    logs.avro("orders", schema, [{"id": 1}])
    first = logs.register("orders-value", schema)
    logs.raw("orders", [GOOD, b"\0" + first.to_bytes(4, "big")])
    options = ("--dead-letter", str(tmp_path / "dead"))
    assert logs.export(tmp_path / "out", *options).status == 1
    logs.register("orders-value", wider)
    logs.avro("orders", wider, [{"id": 2, "note": "n"}])
    logs.raw("orders", [b"\0" + (99).to_bytes(4, "big") + b"\2"])
    assert logs.export(tmp_path / "out", *options).status == 1
    found = list(read_letters(tmp_path / "dead"))
    assert sorted(row["offset"] for row in found) == [1, 2, 4]
    reasons = [row["reason"] for row in sorted(found, key=lambda row: int(row["offset"]))]
    assert [text[:9] for text in reasons] == ["no schema", "the value", "schema 99"]


class Killed(BaseException):
    """The end of a process."""


def run_killed(wanted: Export, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Run an export, and end it before the export with a number: 2 is that of the dead letters."""
    count = 0

    def run_or_die(*arguments: Any) -> Report:
        nonlocal count
        count += 1
        if count == number:
            raise Killed
        return run_export(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(dead_letters, "run_export", run_or_die)
        with pytest.raises(Killed):
            dead_letters.run_with_dead_letters(wanted, execute_here)


def wanted_export(logs: Path, table_format: str = "parquet") -> Export:
    return Export(
        (str(logs),),
        str(logs.parent / "out"),
        read=ReadOptions(decode=ColumnDecoding(value="json")),
        files=FileOptions(table_format=table_format),
        dead_letters=str(logs.parent / "dead"),
    )


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_run_killed_between_the_commits_is_completed(
    table_format: str, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, dead, expected = wanted_export(logs, table_format), logs.parent / "dead", []
    for number in range(6):
        write(logs, "orders-0", [BAD, GOOD, BAD], 3 * number)
        expected += [("orders", 0, 3 * number), ("orders", 0, 3 * number + 2)]
        if number % 2:
            run_killed(wanted, monkeypatch, 2)
            run_killed(wanted, monkeypatch, 2)
            assert places_of(dead) == expected[:-2]
        report = dead_letters.run_with_dead_letters(wanted, execute_here)
        assert report.dead_letters is not None
        assert (report.dead_letters.records, report.dead_letters.undecoded) == (len(expected), len(expected))
        assert places_of(dead) == expected


def test_letters_that_retention_deleted_meanwhile_are_counted(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = wanted_export(logs)
    write(logs, "orders-0", [BAD, GOOD])
    write(logs, "orders-0", [GOOD, BAD], 2)
    run_killed(wanted, monkeypatch, 2)
    (logs / "orders-0/00000000000000000000.log").unlink()
    report = dead_letters.run_with_dead_letters(wanted, execute_here)
    assert report.dead_letters is not None
    assert (report.dead_letters.records, report.dead_letters.undecoded, report.status) == (1, 2, 1)
    again = dead_letters.run_with_dead_letters(wanted, execute_here)
    assert again.dead_letters is not None
    assert (again.dead_letters.records, again.dead_letters.undecoded, again.status) == (1, 2, 0)


def test_a_full_disk_below_the_letters_loses_none(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(logs, "orders-0", [BAD, GOOD, BAD])
    wanted, dead = wanted_export(logs), logs.parent / "dead"

    def fail_there(export: Export, *others: Any) -> Report:
        if export.destination == str(dead):
            raise OpenError("can't be written: No space left on device", str(dead))
        return run_export(export, *others)

    with monkeypatch.context() as patch:
        patch.setattr(dead_letters, "run_export", fail_there)
        with pytest.raises(OpenError):
            dead_letters.run_with_dead_letters(wanted, execute_here)
    dead_letters.run_with_dead_letters(wanted, execute_here)
    assert places_of(dead) == [("orders", 0, 0), ("orders", 0, 2)]


KILLED_IN_LETTERS = """
import os, signal, sys
from dataclasses import replace
from kseg.export.commit import parquet
from kseg.export.commit.order import execute_here
from kseg.export.dead_letters import run_with_dead_letters
from tests.export.test_dead_letters import wanted_export
from pathlib import Path

logs, step = Path(sys.argv[1]), sys.argv[2]

def execute(orders, job):
    is_of_letters = job.destination.endswith("dead")
    for number, result in enumerate(execute_here(orders, job)):
        if is_of_letters and step == f"order {number}":
            os.kill(os.getpid(), signal.SIGKILL)
        yield result
    if is_of_letters and step == "claimed":
        parquet._finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

run_with_dead_letters(wanted_export(logs), execute)
"""


@pytest.mark.parametrize("step", ["order 0", "order 1", "claimed"])
def test_letters_of_a_run_killed_while_it_writes_them_are_there_once(step: str, logs: Path) -> None:
    for number in range(3):
        for partition in range(2):
            write(logs, f"orders-{partition}", [BAD, GOOD, BAD], 3 * number)
        arguments = [sys.executable, "-c", KILLED_IN_LETTERS, str(logs), step]
        assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    report = dead_letters.run_with_dead_letters(wanted_export(logs), execute_here)
    expected = [("orders", partition, offset) for partition in range(2) for offset in (0, 2, 3, 5, 6, 8)]
    assert places_of(logs.parent / "dead") == expected
    assert report.dead_letters is not None
    assert (report.dead_letters.records, report.dead_letters.undecoded) == (12, 12)


def test_a_file_that_the_system_ends_loses_no_letter(logs: Path) -> None:
    """The system refuses the next byte, as on a full disk, in the middle of a file of letters."""
    bad = [b"{" + Random(number).randbytes(20_000) for number in range(3)]
    write(logs, "orders-0", bad)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        is_of_letters = job.destination.endswith("dead")
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limits[1]) if is_of_letters else limits)
        try:
            yield from execute_here(orders, job)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with pytest.raises(KsegError, match="can't be written: File too large"):
        dead_letters.run_with_dead_letters(wanted_export(logs), execute)
    assert not list((logs.parent / "dead").rglob("*.parquet"))
    report = dead_letters.run_with_dead_letters(wanted_export(logs), execute_here)
    assert places_of(logs.parent / "dead") == [("orders", 0, offset) for offset in range(3)]
    assert [row["value"] for row in read_letters(logs.parent / "dead")] == bad
    assert report.dead_letters is not None
    assert report.dead_letters.records == 3


def test_letters_of_a_table_of_fields_have_the_bytes(logs: Path) -> None:
    write(logs, "orders-0", [GOOD, BAD, b'{"a":"text"}'], key=b"k")
    schema = logs.parent / "orders.json"
    schema.write_text('{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}')
    ran = export(logs, "--schema", str(schema), "--flatten", "--drop", "raw", "--dead-letter", "dead")
    assert letters_of(ran) == {"destination": str(logs.parent / "dead"), "records": 2, "undecoded": 2}
    found = [(row["offset"], row["key"], row["value"], row["side"]) for row in read_letters(logs.parent / "dead")]
    assert found == [(1, b"k", BAD, "value"), (2, b"k", b'{"a":"text"}', "value")]
    (file,) = (logs.parent / "out").rglob("*.parquet")
    table = pq.ParquetFile(file).read()
    assert table.column("a").to_pylist() == [1, None, None]
    assert "value" not in table.column_names


def test_protobuf_letters_have_the_bytes_and_the_reason(tmp_path: Path) -> None:
    logs = TypedLogs(tmp_path / "logs")
    descriptors = compile_schema(tmp_path, 'syntax = "proto3"; package shop; message Order { int64 id = 1; }')
    logs.raw("orders", [b"\x08\x05", b"\x08", b"\xff\xff", b""])
    ran = by_set(logs, tmp_path / "out", descriptors, "--dead-letter", str(tmp_path / "dead"))
    assert (ran.status, letters_of(ran)["records"], letters_of(ran)["undecoded"]) == (1, 2, 2)
    found = list(read_letters(tmp_path / "dead"))
    assert [(row["offset"], row["value"], row["side"]) for row in found] == [
        (1, b"\x08", "value"),
        (2, b"\xff\xff", "value"),
    ]
    assert all(row["reason"] for row in found)


def test_a_rewritten_log_replaces_its_letters(logs: Path) -> None:
    write(logs, "orders-0", [BAD, GOOD, BAD])
    assert places_of_run(logs) == [("orders", 0, 0), ("orders", 0, 2)]
    write(logs, "orders-0", [GOOD, BAD, GOOD])
    assert places_of_run(logs) == [("orders", 0, 1)]
    write(logs, "orders-0", [GOOD, GOOD, GOOD])
    assert places_of_run(logs) == []


def places_of_run(logs: Path) -> list[tuple[str, int, int]]:
    export(logs, "--dead-letter", "dead")
    return places_of(logs.parent / "dead")


def test_place_within_the_table_is_refused_before_any_record_is_read(logs: Path) -> None:
    write(logs, "orders-0", [BAD])
    with pytest.raises(UsageError, match="within the table's directory"):
        dead_letters.run_with_dead_letters(
            Export((str(logs),), str(logs.parent / "out"), dead_letters=str(logs.parent / "out/x")), execute_here
        )
