"""`dump --merge time`: the records of several partitions by their times, as each is printed alone."""

import heapq
import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import Run, kseg

RELEASE = golden.ROOT / "logs" / "3.6.2"


def run_dump(directory: Path, *arguments: str) -> Run:
    return kseg(["dump", *arguments], directory)


def write(directory: Path, *batches: list[int], value: bytes = b"v") -> None:
    """A partition of a record for each time."""
    made: list[NewBatch] = []
    for times in batches:
        records = [NewRecord(b"k", value, time) for time in times]
        made.append(NewBatch(records, made[-1].next_offset if made else 0))
    write_segment(directory, made)


def merge_by_definition(streams: list[list[dict[str, object]]]) -> Iterator[dict[str, object]]:
    """The merge by its definition: always the least of the first records, of equal ones that of the first stream."""
    heads = [(_time(stream[0]), number, 0) for number, stream in enumerate(streams) if stream]
    heapq.heapify(heads)
    while heads:
        _, number, place = heapq.heappop(heads)
        yield streams[number][place]
        if place + 1 < len(streams[number]):
            heapq.heappush(heads, (_time(streams[number][place + 1]), number, place + 1))


def _time(record: dict[str, object]) -> int:
    time = record["timestamp"]
    return time if isinstance(time, int) else -1


def objects(ran: Run) -> list[dict[str, object]]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("release", ["1.1.1", "2.8.2", "3.6.2", "4.3.1"])
def test_golden_partitions_are_merged_as_the_definition_says(release: str) -> None:
    logs = golden.ROOT / "logs" / release
    names = sorted(path.name for path in logs.iterdir() if any(path.glob("*.log")) and not path.name.startswith("__"))
    alone = [objects(run_dump(logs, "-o", "json", "--only", "records", name, "no.log")) for name in names]
    assert len(alone) > 1
    records = objects(run_dump(logs, "-o", "json", "--merge", "time", *names))
    assert records == list(merge_by_definition(alone))


def test_times_that_go_back_stay_behind_the_record_before(tmp_path: Path) -> None:
    write(tmp_path / "logs/t-0", [10, 50, 20, 30], [60, 5])
    write(tmp_path / "logs/t-1", [50, 55], [70])
    write(tmp_path / "logs/t-2", [1, 50])
    ran = run_dump(tmp_path, "logs", "--merge", "time", "--template", "{partition}:{offset}:{timestamp}")
    assert ran.stdout.decode().split() == [
        *("2:0:1", "0:0:10", "0:1:50", "0:2:20", "0:3:30", "1:0:50", "2:1:50"),
        *("1:1:55", "0:4:60", "0:5:5", "1:2:70"),
    ]


def test_what_is_merged_does_not_depend_on_the_pieces_that_are_read(tmp_path: Path) -> None:
    """Logs of several MiB, whose times cross again and again, and go back."""
    for partition in range(3):
        times = [(number * (7 + partition)) % 900 + number * 3 for number in range(6000)]
        batches = [times[at : at + 50] for at in range(0, len(times), 50)]
        write(tmp_path / f"logs/t-{partition}", *batches, value=bytes(500))
    fields = ("--fields", "partition,offset,timestamp", "-o", "json")
    alone = [objects(run_dump(tmp_path, f"logs/t-{partition}", *fields)) for partition in range(3)]
    assert objects(run_dump(tmp_path, "logs", "--merge", "time", *fields)) == list(merge_by_definition(alone))


@pytest.mark.parametrize(
    "form",
    [("-o", "csv"), ("-o", "json", "--fields", "offset,key"), ("--fields", "key,value"), ("--template", "{value}")],
)
def test_records_look_as_they_do_alone(form: tuple[str, ...], tmp_path: Path) -> None:
    """Also such as hold line feeds, or what looks like the beginning of another record."""
    values = [b"\n\n", b"1;2", b"", os.urandom(50), None]
    for partition in (0, 1):
        records = [NewRecord(value, value, 100 * partition + at) for at, value in enumerate(values)]
        write_segment(tmp_path / f"logs/t-{partition}", [NewBatch(records)])
    assert run_dump(tmp_path, "logs", "--merge", "time", *form).stdout == run_dump(tmp_path, "logs", *form).stdout


def test_lines_of_text_begin_with_topic_and_partition(tmp_path: Path) -> None:
    write(tmp_path / "logs/t-0", [1, 3])
    write(tmp_path / "logs/t-1", [2])
    lines = run_dump(tmp_path, "logs", "--merge", "time", "--print-data-log").stdout.decode().splitlines()
    assert [line.split(" position")[0] for line in lines] == [
        "topic: t partition: 0 offset: 0",
        "topic: t partition: 1 offset: 0",
        "topic: t partition: 0 offset: 1",
    ]
    assert all(line.endswith(" key: k payload: v") for line in lines)


def test_a_table_has_topic_and_partition(tmp_path: Path) -> None:
    write(tmp_path / "logs/t-0", [1, 3])
    write(tmp_path / "logs/t-1", [2])
    lines = run_dump(tmp_path, "logs", "--merge", "time", "-o", "table").stdout.decode().splitlines()
    assert lines[0].split() == ["topic", "partition", "offset", "time", "key", "value", "headers"]
    assert [line.split()[:3] for line in lines[2:]] == [["t", "0", "0"], ["t", "1", "0"], ["t", "0", "1"]]


def test_the_limit_counts_merged_records_and_the_tail_those_of_each_partition(tmp_path: Path) -> None:
    write(tmp_path / "logs/t-0", [1, 4, 7])
    write(tmp_path / "logs/t-1", [2, 5, 8])
    merge = ("logs", "--merge", "time", "--template", "{timestamp}")
    for options, times in (
        (("--limit", "4"), "1 2 4 5"),
        (("--limit", "0"), ""),
        (("--limit", "9"), "1 2 4 5 7 8"),
        (("--tail", "1"), "7 8"),
        (("--tail", "2", "--limit", "3"), "4 5 7"),
        (("--from-offset", "1", "--partition", "1"), "5 8"),
        (("--from-time", "2", "--to-time", "6"), "2 4 5"),
    ):
        assert run_dump(tmp_path, *merge, *options).stdout.decode().split() == times.split()


def test_damage_is_reported_and_the_rest_merged(tmp_path: Path) -> None:
    write(tmp_path / "logs/t-0", [1], [3], [5])
    write(tmp_path / "logs/t-1", [2], [4])
    log = tmp_path / "logs/t-0" / f"{0:020}.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    ran = run_dump(tmp_path, "logs", "--merge", "time", "--template", "{timestamp} {isValid}")
    assert ran.status == 1
    assert ran.stdout.decode().splitlines() == ["1 true", "2 true", "3 false", "4 true", "5 true"]
    assert ran.stderr.startswith(b"kseg: logs/t-0/00000000000000000000.log: bad-crc at position 70: ")
    ran = run_dump(tmp_path, "logs", "--merge", "time", "--template", "{timestamp}", "--limit", "4")
    assert (ran.status, ran.stdout.split()) == (1, [b"1", b"2", b"3", b"4"])
    ran = run_dump(tmp_path, "logs", "--merge", "time", "-o", "json")
    assert [json.loads(line)["type"] for line in ran.stderr.splitlines()] == ["damage"]


def test_files_that_cannot_be_merged_are_said(tmp_path: Path) -> None:
    write(tmp_path / "logs/t-0", [1])
    index = tmp_path / "logs/t-0" / f"{0:020}.index"
    index.write_bytes(b"")
    ran = run_dump(
        tmp_path, "logs/t-0", f"logs/t-0/{index.name}", "none.log", "--merge", "time", "--template", "{offset}"
    )
    assert (ran.status, ran.stdout) == (2, b"0\n")
    assert f"kseg: logs/t-0/{index.name}: isn't a log, and --merge prints only logs\n" in ran.stderr.decode()
    assert "kseg: none.log: can't be opened: " in ran.stderr.decode()


@pytest.mark.parametrize(
    "options", [["--like", "4.3"], ["--shallow"], ["-o", "json", "--only", "batches"], ["--follow"], ["-o", "kcat"]]
)
def test_what_cannot_be_merged_is_wrong_usage(options: list[str], tmp_path: Path) -> None:
    write(tmp_path / "t-0", [1])
    ran = run_dump(tmp_path, "t-0", "--merge", "time", *options)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"kseg: --merge")


def test_more_partitions_than_fit_are_refused(tmp_path: Path) -> None:
    for number in range(257):
        (tmp_path / f"logs/t-{number}").mkdir(parents=True)
        (tmp_path / f"logs/t-{number}" / f"{0:020}.log").write_bytes(b"")
    ran = run_dump(tmp_path, "logs", "--merge", "time")
    assert ran.status == 2
    assert b"257 partitions are more than the 256 that can be merged at once" in ran.stderr
    assert run_dump(tmp_path, "logs", "--merge", "time", "--partition", "1-256").status == 0


def test_memory_does_not_grow_with_the_logs(tmp_path: Path) -> None:
    """The first selected record of one partition comes after the end of the other."""
    write(tmp_path / "logs/t-0", *([time] * 100 for time in range(300)), value=bytes(1000))
    write(tmp_path / "logs/t-1", *([time] * 100 for time in range(1000, 1300)), value=bytes(1000))
    tracemalloc.start()
    try:
        ran = run_dump(
            tmp_path, "logs", "--merge", "time", "-o", "csv", "--fields", "partition,offset,value", "--limit", "5"
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ran.stdout.count(b"\n") == 6
    assert peak < 40 << 20
