"""The selection of `kseg dump` on ls, lookup and verify: it selects the same records as a filter over the dump."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.log.partition import PartitionLog
from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.selections import OPTIONS, Chosen, Object, control, no_control, selections, timestamp_of

EXAMPLES = settings(max_examples=60)
SELECTIONS = selections() | selections((*OPTIONS[:4], control)) | selections((*OPTIONS[:4], no_control))
DAMAGED = sorted(path.name for path in (golden.ROOT / "damaged").iterdir() if list(path.glob("*.log")))
LINE = "{:020}.log"
LS = ("ls", "--by", "segment")


def kseg(*arguments: str, directory: Path = golden.ROOT) -> run.Run:
    return run.kseg(arguments, directory)


def objects(*arguments: str, directory: Path = golden.ROOT) -> list[Object]:
    return [json.loads(line) for line in kseg(*arguments, "-o", "json", directory=directory).stdout.splitlines()]


def in_segments(chosen: Chosen) -> list[Object]:
    """Return the selected records of the logs that a broker would read."""
    partition = PartitionLog(golden.ROOT / chosen.partition)
    names = {segment.path.name for segment in partition.segments}
    return [record for record in chosen.records() if Path(record["file"]).name in names]


# --- ls --------------------------------------------------------------------------------------------------------------


def sums_of(records: list[Object]) -> dict[str, object]:
    sizes = {record["position"]: record["size"] for record in records}
    times = [timestamp_of(record) for record in records if timestamp_of(record) >= 0]
    offsets = [record["offset"] for record in records]
    return {
        "selectedRecords": len(records),
        "selectedBatches": len(sizes),
        "selectedBytes": sum(sizes.values()),
        "selectedFirstOffset": min(offsets),
        "selectedLastOffset": max(offsets),
        "selectedFirstTimestamp": min(times, default=-1),
        "selectedLargestTimestamp": max(times, default=-1),
    }


@EXAMPLES
@given(SELECTIONS)
def test_ls_sums_up_what_is_selected_of_each_segment(chosen: Chosen) -> None:
    by_segment: dict[int, list[Object]] = {}
    for record in in_segments(chosen):
        by_segment.setdefault(int(Path(record["file"]).stem), []).append(record)
    listed = objects(*LS, "--now", "0", chosen.partition, *chosen.arguments)
    found = {
        each["baseOffset"]: {name: value for name, value in each.items() if name.startswith("selected")}
        for each in listed
        if each["type"] == "segment"
    }
    assert found == {base: sums_of(records) for base, records in by_segment.items()}
    assert listed[-1]["selectedRecords"] == sum(map(len, by_segment.values()))


@pytest.mark.parametrize("option", ["--limit", "--tail"])
@pytest.mark.parametrize("count", [0, 1, 30, 10_000])
def test_ls_of_the_first_and_of_the_last_records(option: str, count: int) -> None:
    partition = "logs/2.8.2/roll-time-0"
    whole = in_segments(Chosen(partition, []))
    records = whole[:count] if option == "--limit" else whole[max(len(whole) - count, 0) :]
    found = [each for each in objects(*LS, "--now", "0", partition, option, str(count)) if each["type"] == "segment"]
    assert sum(each["selectedRecords"] for each in found) == len(records)
    if records:
        ends = (found[0]["selectedFirstOffset"], found[-1]["selectedLastOffset"])
        assert ends == (records[0]["offset"], records[-1]["offset"])


@settings(max_examples=40)
@given(SELECTIONS, st.integers(0, 60))
def test_tail_is_the_end_of_what_is_selected(chosen: Chosen, count: int) -> None:
    records = in_segments(chosen)
    wanted = [record["offset"] for record in records[max(len(records) - count, 0) :]]
    listed = objects(
        "ls", "--by", "segment", "-q", "--now", "0", chosen.partition, *chosen.arguments, "--tail", str(count)
    )
    found = [each for each in listed if each["type"] == "segment"]
    assert sum(each["selectedRecords"] for each in found) == len(wanted)
    if wanted:
        assert min(each["selectedFirstOffset"] for each in found) == min(wanted)
        assert max(each["selectedLastOffset"] for each in found) == max(wanted)


def test_limit_of_ls_is_over_all_partitions() -> None:
    listed = objects(*LS, "--now", "0", "logs/2.8.2", "--limit", "70")
    assert listed[-1]["selectedRecords"] == 70


def test_ls_shows_what_is_selected_to_people_and_in_csv() -> None:
    whole = [*LS, "--bytes", "--now", "0", "docs/test-1-0"]
    arguments = [*whole, "--from-offset", "203500", "--to-offset", "203600"]
    lines = kseg(*arguments).stdout.decode().splitlines()
    assert lines[0].startswith("docs/test-1-0: 1 segment, 199858 bytes, offsets 203000 to 209299, 100 records selected")
    assert lines[2].split()[-9:-2] == ["199858", "██████████", "100", "3", "4668", "203500", "203599"]
    names, row = (line.split(",") for line in kseg(*arguments, "-o", "csv").stdout.decode().splitlines())
    assert dict(zip(names, row, strict=True))["selectedBytes"] == "4668"
    assert b"SEL RECORDS" in kseg(*arguments, "-o", "table").stdout


def test_ls_without_a_selection_has_no_columns_of_it() -> None:
    assert b"selected" not in kseg("ls", "--now", "0", "docs/test-1-0", "-o", "json").stdout


# --- lookup ----------------------------------------------------------------------------------------------------------


@EXAMPLES
@given(SELECTIONS, st.integers(0, 1 << 16))
def test_lookup_finds_the_first_record_from_the_target_on_that_is_selected(chosen: Chosen, place: int) -> None:
    start = PartitionLog(golden.ROOT / chosen.partition).log_start_offset()
    whole = in_segments(Chosen(chosen.partition, []))
    target = max(whole[place * len(whole) >> 17]["offset"] if whole else 0, 0)
    wanted = [one["offset"] for one in in_segments(chosen) if one["offset"] >= max(target, start)]
    (found,) = objects("lookup", "-q", chosen.partition, "--offset", str(target), *chosen.arguments)
    assert (found["target"], found["offset"]) == (target, wanted[0] if wanted else None)
    if whole and not wanted:
        assert found["absence"] == "not-selected"


def of_times(*times: int) -> list[NewBatch]:
    return [NewBatch([NewRecord(b"%d" % (offset % 2), b"v", time)], offset) for offset, time in enumerate(times)]


@pytest.mark.parametrize(
    ("arguments", "offset"),
    [
        (["--timestamp", "20", "--key", "0"], 2),
        (["--timestamp", "earliest", "--key", "1"], 1),
        (["--timestamp", "latest", "--key", "0"], 4),
        (["--timestamp", "max-timestamp", "--key", "0"], 2),
        (["--key", "1"], 1),
        (["--offset", "2", "--key", "1"], 3),
        (["--offset", "4", "--key", "1"], None),
        (["--timestamp", "51", "--key", "0"], None),
    ],
)
def test_lookup_of_times_among_what_is_selected(arguments: list[str], offset: int | None, tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", of_times(10, 50, 50, 20, 40))
    (found,) = objects("lookup", "-q", "orders-0", *arguments, directory=tmp_path)
    assert (found["offset"], None if found["record"] is None else found["record"]["offset"]) == (offset, offset)


def test_lookup_says_that_nothing_is_selected_and_ends_with_1() -> None:
    ran = kseg("lookup", "docs/test-1-0", "--offset", "203500", "--key", "nobody's")
    assert ran.status == 1
    reason = b"no record from there on matches the selection: --key 'nobody'\"'\"'s'"
    assert ran.stderr == b"kseg: docs/test-1-0: offset 203500 not found: " + reason + b"\n"


# --- verify ----------------------------------------------------------------------------------------------------------


def findings(*arguments: str, directory: Path = golden.ROOT) -> list[tuple[Any, ...]]:
    names = ("id", "file", "position", "sentence")
    found = objects("verify", "-q", *arguments, directory=directory)
    return [tuple(each[name] for name in names) for each in found if each["type"] == "finding"]


@for_each("name", DAMAGED[::9])
def test_findings_of_a_selection_are_among_all(name: str) -> None:
    path = f"damaged/{name}"
    whole = set(findings(path))
    of_logs = {finding for finding in whole if Path(finding[1]).suffix in (".log", ".index", ".timeindex")}
    assert set(findings(path, "--from-offset", "-9223372036854775808")) >= {
        finding for finding in of_logs if finding[0] in ("bad-length", "bad-magic", "bad-crc", "torn-tail")
    }
    assert set(findings(path, "--from-time", "0", "--to-time", "2000000000000", "--key-regex", "[0-9]")) <= whole


HOLE = ("damaged/210-wiped-batch", 237)  # offsets 21933 to 21937, then 107 bytes that were 21938, then up to 21968


@pytest.mark.parametrize(
    ("arguments", "is_reported"),
    [
        (["--to-offset", "21938"], False),
        (["--from-offset", "21938", "--to-offset", "21939"], True),
        (["--from-offset", "21939"], False),
        (["--key", "nobody's"], True),
        (["--tail", "3"], False),
        (["--tail", "31"], True),
        (["--limit", "5"], False),
        (["--from-time", "1608917129114"], True),
    ],
)
def test_damage_is_reported_where_what_is_selected_may_have_been(arguments: list[str], is_reported: bool) -> None:
    path, position = HOLE
    assert [found[2] for found in findings(path, *arguments) if found[0] == "bad-length"] == [position] * is_reported


def test_wrong_batch_is_reported_only_if_it_holds_what_is_selected(tmp_path: Path) -> None:
    good, wrong = [NewBatch([NewRecord(name, b"v", 10)], offset) for offset, name in enumerate((b"good", b"wrong"))]
    write_segment(tmp_path / "orders-0", [good, wrong, wrong])
    (told,) = [found for found in findings("orders-0", "--key", "wrong", directory=tmp_path) if ".log" in found[1]]
    assert told[0] == "duplicate-batch"
    assert [found for found in findings("orders-0", "--key", "good", directory=tmp_path) if ".log" in found[1]] == []


def test_segments_outside_of_the_selection_are_not_read(tmp_path: Path) -> None:
    for first in (0, 1, 2):
        write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(None, b"v", first)], first)], first)
    sizes = [(tmp_path / "orders-0" / LINE.format(first)).stat().st_size for first in (0, 1, 2)]
    for arguments, read in (
        (["--from-offset", "2"], sizes[2:]),
        (["--to-offset", "1"], sizes[:1]),
        (["--from-offset", "1", "--to-offset", "2"], sizes[1:2]),
        (["--tail", "1"], sizes[2:]),
        (["--from-time", "1"], sizes[1:]),
    ):
        assert objects("verify", "orders-0", *arguments, directory=tmp_path)[-1]["bytes"] == sum(read), arguments


def test_verify_says_which_index_a_selection_did_not_trust(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", of_times(1, 2, 3))
    ran = kseg("verify", "orders-0", "--from-offset", "2", directory=tmp_path)
    assert b".index: missing: kseg scans the log instead" in ran.stderr
    assert b"scans" not in kseg("verify", "-q", "orders-0", "--from-offset", "2", directory=tmp_path).stderr


@pytest.mark.parametrize("command", ["ls", "verify", "lookup"])
def test_what_is_wrong_in_a_selection_is_wrong_usage_everywhere(command: str) -> None:
    ran = kseg(command, "docs/test-1-0", "--key-regex", "(")
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"--key-regex (: " in ran.stderr
