"""`kseg lookup`: the way in words, the object, exit status."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kseg.log.lookup import Lookup, look_up
from kseg.log.partition import PartitionLog
from kseg.log.selection import Selection
from tests import golden, run

SAMPLE = "docs/test-1-0"
LINE_OF_203500 = (
    b"offset: 203500 position: 14555 CreateTime: 1581597498413 isvalid: true keysize: -1 valuesize: 23 magic: 2"
    b" compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false headerKeys: []"
)


def kseg(*arguments: str, directory: Path = golden.ROOT) -> run.Run:
    return run.kseg(["lookup", *arguments], directory)


def run_lookup(*arguments: str) -> dict[str, object]:
    ran = kseg(*arguments, "-o", "json")
    assert ran.stdout.count(b"\n") == 1
    answer: dict[str, object] = json.loads(ran.stdout)
    return answer


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_that_is_cut_meanwhile_is_one_line(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "test-1-0" / "00000000000000203000.log"
    log.parent.mkdir()
    log.write_bytes((golden.ROOT / SAMPLE / log.name).read_bytes())

    def cut_after(partition: PartitionLog, offset: int, selection: Selection, **others: Any) -> Lookup:
        answer = look_up(partition, offset, selection, **others)
        os.truncate(log, 500)
        return answer

    monkeypatch.setattr("kseg.cluster.lookup.look_up", cut_after)
    ran = kseg("test-1-0", "--offset", "203500", "-o", form, directory=tmp_path)
    said = b"the batch found here no longer exists, since the file changed; run the command again\n"
    assert ran.status == 2
    assert ran.stderr.splitlines(keepends=True)[-1] == b"kseg: test-1-0/%b: at position 14555: %b" % (
        log.name.encode(),
        said,
    )


def test_the_largest_time_may_lie_below_the_log_start_offset(tmp_path: Path) -> None:
    """Brokers of 4.3.1 and 4.4.0 answer this after records were deleted."""
    shutil.copytree(golden.ROOT / SAMPLE, tmp_path / "test-1-0")
    before = json.loads(kseg("test-1-0", "--timestamp", "max-timestamp", "-o", "json", directory=tmp_path).stdout)
    start = before["offset"] + 1
    (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\ntest-1 0 {start}\n")
    ran = kseg("test-1-0", "--timestamp", "max-timestamp", "-o", "json", directory=tmp_path)
    assert (ran.status, json.loads(ran.stdout)["offset"]) == (0, start - 1)
    assert f"offset {start - 1} is below the log start offset {start}".encode() in ran.stderr


def test_way_of_the_documented_lookup() -> None:
    ran = kseg("--offset", "203500", directory=golden.ROOT / SAMPLE)
    assert (ran.status, ran.stderr) == (0, b"")
    lines = ran.stdout.decode().splitlines()
    for line in (
        "  base offset 203000, 199858 bytes  <- used",
        "  Offset index: 11 entries, lower slot 0, upper slot 1",
        "    [0] offset: 203299 position: 8738  <- floor",
        "    [1] offset: 204657 position: 34953",
        "  Scan from position 8738",
        "    passed: position 9031, offsets 203300 to 203399",
        "    found:  position 14555, offsets 203485 to 203534",
    ):
        assert line in lines


def test_last_line_is_that_of_dump() -> None:
    assert kseg(SAMPLE, "--offset", "203500").stdout.endswith(b"\n" + LINE_OF_203500 + b"\n")
    with_data = kseg(SAMPLE, "--offset", "203500", "--print-data-log").stdout
    assert with_data.endswith(b"\n" + LINE_OF_203500 + b" payload: local test -------- 100\n")


def test_object_of_the_documented_lookup() -> None:
    answer = run_lookup(SAMPLE, "--offset", "203500")
    record = answer.pop("record")
    assert isinstance(record, dict)
    assert (record["offset"], record["timestamp"], record["value"]) == (
        203500,
        1581597498413,
        "local test -------- 100",
    )
    assert answer == {
        "target": 203500,
        "by": "offset",
        "offset": 203500,
        "segment": f"{SAMPLE}/00000000000000203000.log",
        "indexEntry": {"offset": 203299, "position": 8738},
        "scanPosition": 8738,
        "batch": {"position": 14555, "baseOffset": 203485, "lastOffset": 203534},
        "absence": None,
        "previousOffset": None,
        "nextOffset": None,
        "nextGoodOffset": None,
    }


def test_offset_before_the_first_entry_has_no_index_entry() -> None:
    answer = run_lookup(SAMPLE, "--offset", "203004")
    assert (answer["indexEntry"], answer["scanPosition"]) == (None, 0)


def test_record_is_dumps_object() -> None:
    dumped = run.kseg(["dump", "-o", "json", "--only", "records", f"{SAMPLE}/00000000000000203000.log"], golden.ROOT)
    assert run_lookup(SAMPLE, "--offset", "203001")["record"] == json.loads(dumped.stdout.splitlines()[1])


@pytest.mark.parametrize("path", ["classes-4.3.1/utf8-v2", "classes-3.9.1/gaps-v1-gzip", "4.3.1/compacted-txn-0"])
def test_each_records_line_is_cut_out_of_dumps_text(path: str) -> None:
    logs = sorted((golden.ROOT / "logs" / path).glob("*.log"))
    dumped = run.kseg(["dump", "--print-data-log", *map(str, logs)], golden.ROOT).stdout
    objects = run.kseg(["dump", "-o", "json", "--only", "records", *map(str, logs)], golden.ROOT).stdout
    for line in objects.splitlines():
        offset = json.loads(line)["offset"]
        ran = kseg(f"logs/{path}", "--offset", str(offset), "--print-data-log")
        record = ran.stdout[ran.stdout.index(f"\noffset: {offset} ".encode()) + 1 :]
        assert record in dumped


def test_what_is_not_there_is_said_with_its_neighbours_and_status_1() -> None:
    ran = kseg(SAMPLE, "--offset", "209300")
    assert ran.status == 1
    assert ran.stderr == (
        b"kseg: docs/test-1-0: offset 209300 not found: it is the log end offset, the next to be written;"
        b" the previous record is 209299\n"
    )
    answer = run_lookup(SAMPLE, "--offset", "5")
    assert (answer["absence"], answer["record"], answer["nextOffset"]) == ("below-log-start", None, 203000)


def test_unreadable_record_says_where_consumers_go_on() -> None:
    ran = kseg("damaged/146-record-header-count-huge", "--offset", "21963")
    *_, first, second = ran.stderr.splitlines()
    assert first.endswith(b"the previous record is 21962; consumers that fail there can continue at offset 21969")
    assert second.endswith(b" --reset-offsets --to-offset 21969 --execute")
    answer = run_lookup("damaged/146-record-header-count-huge", "--offset", "21963")
    assert (answer["nextOffset"], answer["nextGoodOffset"]) == (None, 21969)


@pytest.mark.parametrize("time", ["1581597478320", "2020-02-13T12:37:58.320Z", "2020-02-13T13:37:58.320+01:00"])
def test_times_in_milliseconds_and_iso_8601(time: str) -> None:
    answer = run_lookup(SAMPLE, "--timestamp", time)
    assert (answer["target"], answer["offset"]) == (1581597478320, 203001)


@pytest.mark.parametrize(
    ("time", "offset"), [("earliest", 203000), ("-2", 203000), ("latest", 209300), ("-1", 209300), ("-4", 203000)]
)
def test_special_times(time: str, offset: int) -> None:
    assert run_lookup(SAMPLE, "--timestamp", time)["offset"] == offset


def test_partition_of_a_log_directory() -> None:
    answer = run_lookup("logs/3.6.2", "--topic", "plain", "--partition", "1", "--offset", "110")
    assert answer["segment"] == "logs/3.6.2/plain-1/00000000000000000108.log"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([SAMPLE], "specify either --offset or --timestamp"),
        ([SAMPLE, "--offset", "5", "--timestamp", "5"], "specify either --offset or --timestamp"),
        (["logs/3.6.2", "--offset", "5"], "partitions here; choose one with --topic and --partition"),
        (["logs/3.6.2", "--topic", "no", "--offset", "5"], "no such partition here"),
        (["nowhere", "--offset", "5"], "no such file or directory"),
        ([SAMPLE, "--timestamp", "-7"], "this isn't one of Kafka's special timestamps"),
        ([SAMPLE, "--timestamp", "noon"], "'noon' isn't a valid time"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], complaint: str) -> None:
    ran = kseg(*arguments)
    assert (ran.status, ran.stdout) == (2, b"")
    assert complaint in ran.stderr.decode()


def test_missing_index_is_reported_on_stderr_unless_quiet() -> None:
    path = "logs/classes-4.3.1/headers"
    ran = kseg(path, "--timestamp", "earliest")
    assert ran.status == 0
    assert b".index: missing: kseg scans the log instead" in ran.stderr
    assert kseg(path, "--timestamp", "earliest", "-q").stderr == b""


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Return partitions without a batch: one has no segment, and one's segment is below its log start offset."""
    for name, base in (("new-0", 0), ("trimmed-0", 7), ("below-0", 7), ("bare-0", None)):
        (tmp_path / name).mkdir()
        if base is not None:
            (tmp_path / name / f"{base:020}.log").touch()
            (tmp_path / name / f"{base:020}.index").touch()
    (tmp_path / "bare-0/leader-epoch-checkpoint").touch()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n2\nbelow 0 9\nbare 0 55\n")
    return tmp_path


@pytest.mark.parametrize(("partition", "end"), [("new-0", 0), ("trimmed-0", 7), ("below-0", 9), ("bare-0", 55)])
def test_an_empty_log_has_an_end_and_no_largest_time(partition: str, end: int, empty: Path) -> None:
    for time in ("latest", "-1", "earliest", "-2"):
        ran = kseg(partition, "--timestamp", time, "-o", "json", directory=empty)
        answer = json.loads(ran.stdout)
        assert (ran.status, answer["offset"], answer["record"], answer["absence"]) == (0, end, None, None)
        ran = kseg(partition, "--timestamp", time, directory=empty)
        assert (ran.status, ran.stdout.splitlines()[-1]) == (0, f"offset: {end}".encode())
    for time in ("max-timestamp", "-3", "0"):
        ran = kseg(partition, "--timestamp", time, "-o", "json", directory=empty)
        answer = json.loads(ran.stdout)
        assert (ran.status, answer["offset"], answer["record"]) == (1, None, None)
        assert answer["absence"] == ("empty" if partition == "bare-0" else "no-times")
        assert b"not found" in ran.stderr


def test_records_that_slice_left_out_are_not_said_to_be_compacted(tmp_path: Path) -> None:
    run.kseg(["slice", str(golden.ROOT / SAMPLE), "--drop-offset", "203500", "--to", "t-0"], tmp_path)
    ran = run.kseg(["lookup", "t-0", "--offset", "203500"], tmp_path)
    assert ran.status == 1
    assert b"its batch exists, but compaction or `slice` removed the record" in ran.stderr
