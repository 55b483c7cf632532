"""Tables on terminals: they fit, print common values once, and name omitted columns."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from kseg.output.columns import Column, Field, Kind, Unit
from kseg.output.fitting import Cut, Fitting, Head
from kseg.output.table import sums_text
from tests import golden, run
from tests.terminal import in_terminal

BROKER = "logs/4.3.1"
NOW = ("--now", "2026-11-22")
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
    """Return the lines on a terminal, without colours and notes."""
    text = in_terminal(golden.ROOT, *arguments, "--no-color", columns=columns)
    found = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r", "").splitlines()
    beside = ("kseg:", "Hidden columns", "Total", "All ", "Empty:")
    return [line for line in found if not line.lstrip().startswith(beside)]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_tables_fit_the_terminal(command: tuple[str, ...], columns: int) -> None:
    shown = lines(*command, columns=columns)
    assert shown
    assert [line for line in shown if len(line.rstrip()) > columns] == []


def test_what_is_left_out_is_named_and_wide_shows_it() -> None:
    narrow = in_terminal(golden.ROOT, "ls", BROKER, *NOW, columns=60)
    left_out = re.search(r"Hidden columns: (.*?) \(--wide shows all, --fields chooses\)", narrow)
    assert left_out is not None
    wide = in_terminal(golden.ROOT, "ls", "--wide", BROKER, *NOW, columns=60)
    piped = run.kseg(["ls", BROKER, *NOW], golden.ROOT).stdout.decode()
    assert wide.replace("\r\n", "\n").partition("kseg:")[0] == piped
    for title in left_out[1].split(", "):
        assert title in piped.splitlines()[0]


def test_a_value_that_all_rows_have_is_said_once(tmp_path: Path) -> None:
    shown = in_terminal(golden.ROOT, "dump", "-o", "table", f"{BROKER}/zstd-0", columns=100)
    assert shown.count("00000000000000000281.log") == 1
    shutil.copytree(golden.ROOT / BROKER / "zstd-0", tmp_path / "zstd-0")
    alone = in_terminal(tmp_path, "ls", "zstd-0", columns=100)
    assert "All " not in alone


def test_rows_that_add_up_have_a_sum_which_programs_do_not_get() -> None:
    arguments = ["groups", "logs/0.9.0.1"]
    assert "Total: 3 commits, lag 389" in in_terminal(golden.ROOT, *arguments, columns=100)
    piped = run.kseg(arguments, golden.ROOT)
    assert b"otal" not in piped.stdout
    assert b"kseg: 3 commits, lag 389\n" in piped.stderr
    for options in (["-q"], ["-o", "json"], ["-o", "csv"]):
        assert b"total" not in run.kseg([*arguments, *options], golden.ROOT).stderr


def test_a_sum_says_what_it_leaves_out() -> None:
    size = Column[int | None](Field("bytes", Kind.INTEGER, "Size.", Unit.BYTES), "SIZE", lambda row: row)
    offset = size._replace(field=size.field._replace(unit=Unit.OFFSET))
    assert (
        sums_text("files", [size, offset], [1024, 512, None, -1])
        == "4 files, size 1.5 KiB (without 1 unknown, 1 negative)"
    )
    assert sums_text("files", [size], [1024]) is None
    assert sums_text("files", [size], [0, None]) is None


def test_heads_of_times_name_the_zone() -> None:
    for given, shown in (("UTC", "UTC"), ("Europe/Berlin", "Europe/Berlin"), ("+02:00", "UTC+02:00")):
        for command in ("ls", "txns"):
            head = run.kseg([command, BROKER, "--tz", given], golden.ROOT).stdout.decode()
            assert f" ({shown})" in head
    assert "+02:00)" not in run.kseg(["ls", BROKER, "--tz", "+02:00", "-o", "csv"], golden.ROOT).stdout.decode()


def test_nothing_is_cut_in_pipes() -> None:
    piped = run.kseg(["ls", BROKER], golden.ROOT).stdout.decode()
    assert "…" not in piped
    assert "Hidden columns" not in piped
    assert piped.count(f"{BROKER}/") == len([path for path in (golden.ROOT / BROKER).iterdir() if path.is_dir()])


@pytest.mark.parametrize("names", ["bytes,directory", "topicId,lastOffset"])
def test_columns_are_chosen_in_every_form(names: str) -> None:
    wanted = names.split(",")
    text = run.kseg(["ls", "-o", "csv", "--fields", names, BROKER], golden.ROOT).stdout.decode()
    assert next(csv.reader(io.StringIO(text))) == wanted
    for line in run.kseg(["ls", "-o", "json", "-q", "--fields", names, BROKER], golden.ROOT).stdout.splitlines():
        members = json.loads(line)
        if members["type"] == "partition":
            assert list(members) == ["type", *wanted]
    text = run.kseg(["ls", "--fields", names, BROKER], golden.ROOT).stdout.decode()
    assert len(text.splitlines()[0].split()) == len(wanted)


def test_a_column_that_is_none_is_refused() -> None:
    ran = run.kseg(["ls", "--fields", "byte", BROKER], golden.ROOT)
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
    assert fitting.below == ["Hidden columns: TEXT (--wide shows all, --fields chooses)"]


def test_rows_that_follow_have_the_columns_of_the_first_and_the_room_that_is_left() -> None:
    fitting = Fitting(HEADS, 24)
    fitting.take(ROWS, is_whole=False)
    assert fitting.above == []  # the common values of all rows aren't known yet
    places = list(fitting.places)
    (later,) = fitting.take([["b" * 50, "3", "z" * 50]], is_whole=False)
    assert fitting.places == places
    assert sum(map(len, later)) + 2 * (len(later) - 1) <= 24


def test_numbers_of_later_rows_are_whole(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / BROKER / "zstd-0", tmp_path / "zstd-0")
    sql = "select i from range(12000) t(i) where i < 500 or i >= 11000"
    shown = in_terminal(tmp_path, "query", sql, "zstd-0", columns=120)
    assert "11999" in shown
    assert "…" not in shown


@pytest.mark.parametrize("form", ["text", "table"])
def test_a_table_without_rows_is_none_on_a_terminal(form: str) -> None:
    shown = in_terminal(golden.ROOT, "ls", f"{BROKER}/zstd-0", "-o", form, "--key", "no such key", columns=80)
    assert "Traceback" not in shown
    assert "no record" in shown


def test_directories_next_to_the_root_are_none_to_be_said_above() -> None:
    fitting = Fitting([Head("PATH", Cut(8, in_middle=True), 0, is_path=True), Head("TEXT")], 30)
    fitting.take([["/data1-with-a-long-name", "x" * 9], ["/mnt/data2/and/more", "y" * 9]], is_whole=True)
    assert fitting.above == []


def test_wide_characters_take_two_cells() -> None:
    (row,) = Fitting([Head("TEXT", Cut(4, in_middle=False))], 11).take([["\u6f22" * 9]], is_whole=True)
    assert row == ["\u6f22" * 5 + "…"]


def test_columns_that_a_command_has_not_are_refused() -> None:
    ran = run.kseg(["ls", "--fields", "lag", BROKER], golden.ROOT)
    assert ran.status == 2
    assert b"no row has lag; use topic, " in ran.stderr
    shown = run.kseg(["ls", "--fields", "directory,allocatedBytes,leftovers", BROKER], golden.ROOT).stdout.decode()
    assert "[]" not in shown
    assert "KiB" in shown.splitlines()[1]
