"""`--csv-excel`: a spreadsheet opens the CSV by a double click, with all digits, texts as texts and times as times."""

import csv
import io
from pathlib import Path

import pytest

from tests import run
from tests.log_files import NewBatch, NewRecord, write_segment

FIRST = 2**60
TEXTS = {
    "=1+1": "'=1+1",
    "-2": "'-2",
    "\r=1": "'\r=1",
    "007": "'007",
    "9" * 16: f"'{'9' * 16}",
    "1.5": "1.5",
    "ü;,": "ü;,",
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    records = [NewRecord(text.encode(), None, headers=[("a", b"b")]) for text in TEXTS]
    return write_segment(tmp_path / "orders-0", [NewBatch(records, FIRST)], FIRST)


def sheet(directory: Path, *arguments: str, separator: str = ",") -> list[dict[str, str]]:
    ran = run.kseg((*arguments, "--csv-excel"), directory)
    assert ran.status == 0
    text = ran.stdout.decode()
    assert text.count("\ufeff") == 1
    rows = [*csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator)]
    assert text.count("\r\n") == len(rows)
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("option", "separator"), [(",", ","), (";", ";"), ("tab", "\t")])
def test_records_keep_their_digits_and_texts(option: str, separator: str, tmp_path: Path) -> None:
    found = sheet(tmp_path, "dump", "orders-0", "--csv-separator", option, separator=separator)
    assert [row["key"] for row in found] == [*TEXTS.values()]
    assert found[0] | {"file": ""} == {
        "file": "",
        "offset": f"'{FIRST}",
        "timestamp": "1700000000000",
        "time": "2023-11-14 22:13:20.000",
        "timestampType": "CreateTime",
        "key": "'=1+1",
        "value": "",
        "headers": '[{"key":"a","value":"b"}]',
        "isValid": "true",
    }


@pytest.mark.usefixtures("log")
def test_times_are_those_of_the_zone(tmp_path: Path) -> None:
    shown = "2023-11-14 23:13:20.000"
    zone = ("--tz", "Europe/Berlin")
    assert sheet(tmp_path, "dump", "orders-0", *zone)[0]["time"] == shown
    assert sheet(tmp_path, "ls", "orders-0", *zone)[0]["largestTimestamp"] == shown
    sql = "SELECT timestamp, '2026-11-01T03:00:00Z' AS text FROM records"
    assert sheet(tmp_path, "query", sql, "orders-0", *zone)[0] == {"timestamp": shown, "text": "2026-11-01T03:00:00Z"}


@pytest.mark.usefixtures("log")
def test_an_empty_result_has_its_names(tmp_path: Path) -> None:
    for command in (["dump", "orders-0", "--key", "none"], ["txns", "orders-0"], ["groups", "orders-0"]):
        ran = run.kseg((*command, "--csv-excel"), tmp_path)
        assert (ran.stdout[:3], ran.stdout.count(b"\r\n")) == (b"\xef\xbb\xbf", 1)


@pytest.mark.usefixtures("log")
def test_records_of_one_copy_are_cells_too(tmp_path: Path) -> None:
    write_segment(tmp_path / "copy" / "orders-0", [NewBatch([NewRecord(b"x", None)], FIRST - 1)], FIRST - 1)
    for separator in ((), ("--csv-separator", ";")):
        ran = run.kseg(("diff", "orders-0", "copy/orders-0", "--records", "--csv-excel", *separator), tmp_path)
        head, *rows = csv.reader(
            io.StringIO(ran.stdout.decode("utf-8-sig"), newline=""), delimiter=";" if separator else ","
        )
        assert "'=1+1" in [dict(zip(head, row, strict=True))["key"] for row in rows]


@pytest.mark.usefixtures("log")
def test_it_is_csv_unless_another_form_is_given(tmp_path: Path) -> None:
    refused = run.kseg(("ls", "orders-0", "-o", "json", "--csv-excel"), tmp_path)
    assert (refused.status, refused.stderr) == (2, b"kseg: --csv-excel prints CSV; remove -o\n")
    refused = run.kseg(("dump", "orders-0", "--csv-separator", ";"), tmp_path)
    assert refused.stderr == b"kseg: --csv-separator needs CSV; add -o csv or --csv-excel\n"
    assert run.kseg(("ls", "orders-0", "-o", "csv", "--csv-separator", ";"), tmp_path).stdout.startswith(b"topic;")
