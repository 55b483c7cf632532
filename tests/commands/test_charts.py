"""`-o chart` of `kseg ls` and `kseg groups`: bars of segments and of lags."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from kseg.output.chart import Span, bar, span_bar
from tests.coordinators.coordinators import commit
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg
from tests.terminal import in_terminal, plain

HOUR = 3_600_000
BEGIN = 1_793_491_200_000
"""2026-11-01T00:00Z."""


def segment(directory: Path, base_offset: int, first: int, last: int) -> None:
    """Write a segment of ten records between two hours."""
    times = [BEGIN + HOUR * first] * 5 + [BEGIN + HOUR * last] * 5
    write_segment(
        directory,
        [NewBatch([NewRecord(b"k", b"v", time)], base_offset + at) for at, time in enumerate(times)],
        base_offset,
    )


def chart(directory: Path, *arguments: str, command: str = "ls") -> list[str]:
    ran = kseg([command, "-o", "chart", *arguments, "."], directory)
    assert ran.status == 0, ran.stderr
    return ran.stdout.decode().splitlines()


def test_segments_stand_along_time_with_their_offsets_and_sizes(tmp_path: Path) -> None:
    segment(tmp_path / "orders-0", 0, 0, 4)
    segment(tmp_path / "orders-0", 10, 4, 8)
    heading, axis, titles, first, second, _ = chart(tmp_path)
    assert heading.startswith("orders-0: 2 segments, ")
    assert axis == "  time 2026-11-01T00:00:00.000Z to 2026-11-01T08:00:00.000Z, 8h00m"
    assert titles.split() == ["BASE", "LAST", "SIZE", "FIRST", "TIME", "(UTC)", "TIME"]
    assert first.split()[:2] == ["0", "9"]
    assert second.split()[:2] == ["10", "19"]
    assert "2026-11-01T04:00:00.000Z" in second
    bars = [line[titles.rindex("TIME") :] for line in (first, second)]
    assert set(bars[0].strip()) == set(bars[1].strip()) == {"█"} or "▌" in bars[0]
    assert abs(len(bars[0].rstrip()) - bars[1].count(" ")) <= 1
    assert max(map(len, (first, second))) == 100


def test_where_time_goes_back_is_marked(tmp_path: Path) -> None:
    for base_offset, first, last in ((0, 0, 4), (10, 1, 2), (20, 4, 8)):
        segment(tmp_path / "orders-0", base_offset, first, last)
    lines = chart(tmp_path)
    assert [line.split()[0] for line in lines if line.startswith("  !")] == ["!", "!"]
    assert lines[4].split()[:3] == ["!", "10", "19"]
    assert "  ! timestamps go back in 1 segment, marked !: by 3h00m at offset 10" in lines


def test_log_without_times_is_drawn_along_its_offsets(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k", b"v", -1)] * 10)])
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k", b"v", -1)] * 10, 10)], 10)
    lines = chart(tmp_path)
    assert lines[1] == "  offsets 0 to 19"
    assert lines[2].split() == ["BASE", "LAST", "SIZE", "OFFSETS"]


def test_times_are_in_the_zone(tmp_path: Path) -> None:
    segment(tmp_path / "orders-0", 0, 0, 4)
    assert "2026-11-01T02:00:00.000+02:00" in chart(tmp_path, "--tz", "+02:00")[3]


def test_largest_partitions_alone(tmp_path: Path) -> None:
    segment(tmp_path / "orders-0", 0, 0, 4)
    write_segment(tmp_path / "large-0", [NewBatch([NewRecord(b"k", b"v" * 5000, BEGIN)])])
    lines = chart(tmp_path, "--sort", "size", "--top", "1")
    assert lines[0].startswith("large-0: ")
    assert not any(line.startswith("orders-0") for line in lines)


@pytest.mark.parametrize("setting", [{"TERM": "dumb"}, {"LC_ALL": "C"}], ids=["dumb", "ascii"])
def test_terminals_without_block_characters_get_plain_ones(tmp_path: Path, setting: dict[str, str]) -> None:
    segment(tmp_path / "orders-0", 0, 0, 4)
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "kseg", "ls", "-o", "chart", "orders-0"]
    environment = {**os.environ, "TERM": "xterm", "KSEG_PAGER": "cat", **setting}
    subprocess.run(command, cwd=tmp_path, env=environment, stdout=follower, check=True)
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert "##\r\n" in shown
    assert shown.isascii()


def test_chart_is_as_wide_as_the_terminal_and_without_colours(tmp_path: Path) -> None:
    segment(tmp_path / "orders-0", 0, 0, 4)
    lines = in_terminal(tmp_path, "ls", "-o", "chart", ".", columns=160).split("\r\n")
    assert "LARGEST TIME" in lines[2]
    assert len(lines[3]) == 160
    assert plain("\n".join(lines)) == "\n".join(lines)


def test_rows_of_others_have_no_chart(tmp_path: Path) -> None:
    segment(tmp_path / "orders-0", 0, 0, 4)
    assert b"omit --by" in kseg(["ls", "-o", "chart", "--by", "topic", "."], tmp_path).stderr
    assert b"omit --show" in kseg(["groups", "-o", "chart", "--show", "commits", "."], tmp_path).stderr


def test_lags_are_drawn_largest_first(tmp_path: Path) -> None:
    for number, end in enumerate((100, 40, 10)):
        write_segment(tmp_path / f"orders-{number}", [NewBatch([NewRecord(b"k", b"v")] * end)])
    commits = [commit("orders", offset, group="billing", partition=number) for number, offset in enumerate((90, 0, 30))]
    commits.append(commit("orders", 100, group="audit"))
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(commits)])
    lines = chart(tmp_path, command="groups")
    assert lines[0] == "billing: 3 partitions, lag 50, 1 commit beyond the log end"
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["PARTITION", "LAG"],
        ["orders-1", "40"],
        ["orders-0", "10"],
        ["orders-2", "-20"],
    ]
    assert len(lines[2]) == 100
    assert lines[4].endswith("beyond the log end")
    assert lines[3].count("█") * 4 == pytest.approx(lines[2].count("█"), abs=4)
    assert lines[5] == "audit: 1 partition, lag 0"


def test_bars() -> None:
    assert bar(0, 8, 4) == "    "
    assert bar(1, 1000, 4) == "▏   "
    assert bar(5, 8, 4) == "██▌ "
    assert bar(5, 8, 4, has_blocks=False) == "##  "
    assert bar(1, 1000, 4, has_blocks=False) == "#   "


def test_bars_of_spans() -> None:
    axis = Span(0, 80)
    assert span_bar(Span(0, 80), axis, 4) == "████"
    assert span_bar(Span(30, 50), axis, 4) == " ▐▌ "
    assert span_bar(Span(30, 50), axis, 4, has_blocks=False) == " ## "
    assert span_bar(Span(80, 80), axis, 4) == "   ▐"
    assert span_bar(Span(5, 5), Span(5, 5), 2) == "▌ "
