"""Keys and values that don't decode: counts and reasons in reports, and the exit status above a limit."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import run
from tests.export.typed_logs import TypedLogs
from tests.log_files import NewBatch, NewRecord, write_segment

GOOD, BAD = b'{"a":1}', b"{oops"
FORMATS = ("parquet", "delta", "iceberg")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def write(logs: Path, name: str, values: Sequence[bytes | None], first: int = 0, key: bytes = b"k") -> None:
    """Add a segment to a partition."""
    write_segment(logs / name, [NewBatch([NewRecord(key, value) for value in values], first)], first)


def export(logs: Path, *options: str, decoder: str = "json") -> run.Run:
    command = ["export", str(logs), str(logs.parent / "out"), "--value-decoder", decoder, "-o", "json", *options]
    return run.kseg(command, logs.parent)


def rows(ran: run.Run, kind: str = "partition") -> list[dict[str, Any]]:
    return [row for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == kind]


def counts(ran: run.Run, member: str = "decoded") -> list[tuple[Any, ...]]:
    """Return total, undecoded, first and last offset of each partition's keys and values."""
    names = ("part", "total", "undecoded", "firstOffset", "lastOffset")
    return [tuple(each[name] for name in names) for row in rows(ran) for each in row[member]]


def test_each_topic_and_side_has_a_line_with_place_and_reason(logs: Path) -> None:
    write(logs, "orders-0", [GOOD, GOOD])
    write(logs, "orders-1", [GOOD, None, BAD, BAD])
    write(logs, "pays-0", [GOOD], key=b"\xff")
    ran = run.kseg(["export", "logs", "out", "--value-decoder", "json", "--key-decoder", "string"], logs.parent)
    lines = [line for line in ran.stdout.decode().splitlines() if "don't decode" in line]
    assert lines == [
        "orders: 2 of 5 values don't decode, the first at partition 1, offset 2: not JSON: Expecting property name"
        " enclosed in double quotes: line 1 column 2 (char 1)",
        "pays: 1 of 1 keys don't decode, the first at partition 0, offset 0: not UTF-8: byte 0xff at 0",
    ]
    assert ran.status == 1
    assert ran.stderr.decode().splitlines() == [
        f"kseg: {line}; choose another --{part}-decoder, or accept more with --max-undecoded (now 0)"
        for line, part in zip(lines, ("value", "key"), strict=True)
    ]


@pytest.mark.parametrize("table_format", FORMATS)
def test_only_what_a_run_finds_counts(table_format: str, logs: Path) -> None:
    write(logs, "orders-0", [GOOD, BAD])
    assert export(logs, "--format", table_format).status == 1
    again = export(logs, "--format", table_format)
    assert (again.status, counts(again, "newDecoded")) == (0, [("value", 0, 0, None, None)])
    write(logs, "orders-0", [GOOD, GOOD, BAD, GOOD], 2)
    later = export(logs, "--format", table_format)
    assert (later.status, counts(later)) == (1, [("value", 6, 2, 1, 4)])
    assert counts(later, "newDecoded") == [("value", 4, 1, 4, 4)]
    assert b"1 of 4 values don't decode, the first at partition 0, offset 4" in later.stderr
    summary = rows(later, "summary")[0]
    assert (summary["undecoded"], summary["newUndecoded"], summary["recordsOut"]) == (2, 1, 6)


@pytest.mark.parametrize(
    ("limit", "status"), [("0", 1), ("1", 1), ("2", 0), ("19.9%", 1), ("20%", 0), ("0%", 1), ("100%", 0)]
)
def test_a_limit_is_a_number_or_a_percentage(limit: str, status: int, logs: Path) -> None:
    write(logs, "orders-0", [GOOD] * 4 + [BAD])
    write(logs, "orders-1", [GOOD] * 4 + [BAD])
    write(logs, "pays-0", [GOOD] * 90)
    assert export(logs, "--max-undecoded", limit).status == status


@pytest.mark.parametrize("limit", ["", "-1", "x", "1.5", "101%", "nan%", "%"])
def test_a_wrong_limit_is_refused_before_anything_is_written(limit: str, logs: Path) -> None:
    write(logs, "orders-0", [BAD])
    ran = export(logs, "--max-undecoded", limit)
    assert (ran.status, (logs.parent / "out").exists()) == (2, False)
    assert b"isn't a number or a percentage; specify 0, 100 or 1%" in ran.stderr


@pytest.mark.parametrize(
    ("decoder", "value", "reason"),
    [
        ("json", b'{"a":"\\ud800"}', "not JSON: 'utf-8' codec can't encode"),
        ("json", b"[" * 5000, "JSON is nested too deeply"),
        ("json", b"1e999", "the number 1e999 is too large"),
        ("json", b"", "not JSON: Expecting value"),
        ("msgpack", b"\xc1", "not MessagePack: "),
        ("int64", b"1", "it has 1 byte, expected 8"),
        ("string", b"a\x80", "not UTF-8: byte 0x80 at 1"),
    ],
)
def test_hostile_bytes_have_a_short_reason(decoder: str, value: bytes, reason: str, logs: Path) -> None:
    write(logs, "orders-0", [value, None])
    ran = export(logs, decoder=decoder)
    (found,) = rows(ran)[0]["decoded"]
    assert (ran.status, found["total"], found["undecoded"]) == (1, 1, 1)
    assert found["reason"].startswith(reason)
    assert len(found["reason"]) < 250


def test_auto_never_fails(logs: Path) -> None:
    write(logs, "orders-0", [BAD, b"\xff", GOOD])
    ran = export(logs, decoder="auto")
    assert (ran.status, ran.stderr, counts(ran)) == (0, b"", [("value", 3, 0, None, None)])


def test_avro_with_a_registry_names_byte_and_schema(tmp_path: Path) -> None:
    logs = TypedLogs(tmp_path / "logs")
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    logs.avro("orders", schema, [{"id": 1}])
    known = logs.register("orders-value", schema)
    assert logs.export(tmp_path / "out").status == 0
    for value, reason in (
        (GOOD, "no schema id before the message or in a header: byte 0 is 0x7b"),
        (b"\0" + (99).to_bytes(4, "big") + b"\2", "schema 99 isn't among the topic's schemas"),
        (b"\0" + known.to_bytes(4, "big"), "doesn't match the Avro schema"),
    ):
        logs.raw("orders", [value])
        ran = logs.export(tmp_path / "out")
        (found,) = rows(ran)[0]["newDecoded"]
        assert (ran.status, found["total"], found["undecoded"]) == (1, 1, 1)
        assert reason in found["reason"]


def test_a_query_notes_what_does_not_decode(logs: Path) -> None:
    write(logs, "orders-0", [GOOD, BAD])
    ran = run.kseg(["query", "select count(valueDecoded) from records", "logs", "--value-decoder", "json"], logs.parent)
    assert ran.status == 0
    assert b"1 of 2 values don't decode, the first at offset 1: not JSON: " in ran.stderr
