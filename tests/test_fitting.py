"""Tables on terminals: they fit, say once what rows have in common, and name what they leave out."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from kseg.output.fitting import Cut, Fitting, Head
from tests import golden, run
from tests.terminal import in_terminal

BROKER = "logs/4.3.1"
WIDTHS = (80, 100, 140, 200)
COMMANDS = (
    ("ls", BROKER),
    ("ls", "--by", "segment", "--sort", "size", BROKER),
    ("ls", "--by", "topic", BROKER),
    ("ls", "-o", "table", BROKER),
    ("dump", "-o", "table", f"{BROKER}/zstd-0"),
    ("groups", BROKER),
    ("groups", "-o", "table", BROKER),
    ("txns", BROKER),
)


def lines(*arguments: str, columns: int) -> list[str]:
    """What stands on a terminal, without colours and notes."""
    text = in_terminal(golden.ROOT, *arguments, "--no-color", columns=columns)
    found = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r", "").splitlines()
    return [
        line for line in found if not line.startswith(("kseg:", "Left out", "Total", "All ", "  All ", "  Left out"))
    ]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_tables_fit_the_terminal(command: tuple[str, ...], columns: int) -> None:
    shown = lines(*command, columns=columns)
    assert shown
    assert [line for line in shown if len(line.rstrip()) > columns] == []


def test_what_is_left_out_is_named_and_wide_shows_it() -> None:
    narrow = in_terminal(golden.ROOT, "ls", BROKER, columns=60)
    left_out = re.search(r"Left out for want of room: (.*?)\. --wide shows all columns, --columns chooses\.", narrow)
    assert left_out is not None
    wide = in_terminal(golden.ROOT, "ls", "--wide", BROKER, columns=60)
    piped = run.kseg(["ls", BROKER], golden.ROOT).stdout.decode()
    assert wide.replace("\r\n", "\n") == piped
    for title in left_out[1].split(", "):
        assert title in piped.splitlines()[0]


def test_a_value_that_all_rows_have_is_said_once(tmp_path: Path) -> None:
    shown = in_terminal(golden.ROOT, "dump", "-o", "table", f"{BROKER}/zstd-0", columns=100)
    assert shown.count("00000000000000000281.log") == 1
    shutil.copytree(golden.ROOT / BROKER / "zstd-0", tmp_path / "zstd-0")
    alone = in_terminal(tmp_path, "ls", "zstd-0", columns=100)
    assert "All " not in alone


def test_nothing_is_cut_in_pipes() -> None:
    piped = run.kseg(["ls", BROKER], golden.ROOT).stdout.decode()
    assert "…" not in piped
    assert "Left out" not in piped
    assert piped.count(f"{BROKER}/") == len([path for path in (golden.ROOT / BROKER).iterdir() if path.is_dir()])


@pytest.mark.parametrize("names", ["bytes,directory", "topicId,lastOffset"])
def test_columns_are_chosen_in_every_form(names: str) -> None:
    wanted = names.split(",")
    text = run.kseg(["ls", "-o", "csv", "--columns", names, BROKER], golden.ROOT).stdout.decode()
    assert next(csv.reader(io.StringIO(text))) == wanted
    for line in run.kseg(["ls", "-o", "json", "-q", "--columns", names, BROKER], golden.ROOT).stdout.splitlines():
        members = json.loads(line)
        if members["type"] == "partition":
            assert list(members) == ["type", *wanted]
    text = run.kseg(["ls", "--columns", names, BROKER], golden.ROOT).stdout.decode()
    assert len(text.splitlines()[0].split()) == len(wanted)


def test_a_column_that_is_none_is_refused() -> None:
    ran = run.kseg(["ls", "--columns", "byte", BROKER], golden.ROOT)
    assert ran.status == 2
    assert b"bytes" in ran.stderr


ROWS = [["a/long/common/directory/one", "1", "x" * 30], ["a/long/common/directory/two", "2", "y"]]
HEADS = [Head("PATH", Cut(8, in_middle=True), 0, is_path=True), Head("N"), Head("TEXT", Cut(5, in_middle=False), 2)]


def test_a_common_directory_goes_before_texts_are_cut() -> None:
    fitting = Fitting(HEADS, 40)
    rows = fitting.take(ROWS, is_whole=True)
    assert fitting.above == ["PATH in a/long/common/directory/:"]
    assert [row[0] for row in rows] == ["one", "two"]
    assert fitting.below == []


def test_columns_of_the_highest_rank_are_left_out_first() -> None:
    fitting = Fitting(HEADS, 10)
    assert fitting.take(ROWS, is_whole=True) == [["one", "1"], ["two", "2"]]
    assert fitting.below == ["Left out for want of room: TEXT. --wide shows all columns, --columns chooses."]


def test_rows_that_follow_are_cut_like_the_first() -> None:
    fitting = Fitting(HEADS, 24)
    first = fitting.take(ROWS, is_whole=False)
    assert fitting.above == []  # what all rows have in common isn't known yet
    later = fitting.take([["b" * 50, "3", "z" * 50]], is_whole=False)
    assert list(map(len, later[0])) == [max(map(len, cells)) for cells in zip(*first, strict=True)]
