from pathlib import Path

import pytest

from tests import golden
from tests.dump.segments import BASE_TIME, NAME, offset_index, segment, time_index
from tests.run import Run, kseg

INDEX, TIME_INDEX = f"{NAME}.index", f"{NAME}.timeindex"


def dump(directory: Path, *arguments: str) -> Run:
    return kseg(["dump", *arguments], directory)


def lines(text: bytes) -> list[str]:
    return text.decode().splitlines()


def test_offset_index_of_the_documentation_prints_its_eleven_entries() -> None:
    ran = dump(golden.ROOT / "docs" / "test-1-0", "--like", "2.0", "00000000000000203000.index")
    assert lines(ran.stdout)[:3] == [
        "Dumping 00000000000000203000.index",
        "offset: 203299 position: 8738",
        "offset: 204657 position: 34953",
    ]
    assert len(lines(ran.stdout)) == 12


def test_entries_that_name_last_offsets_of_batches_are_no_mismatches(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(3, positions[1]), (7, positions[3])])
    ran = dump(tmp_path, INDEX)
    assert lines(ran.stdout)[1:] == [f"offset: 103 position: {positions[1]}", f"offset: 107 position: {positions[3]}"]
    assert (ran.status, ran.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("like", "reported"),
    [
        ("2.2", ["  Index offset: 107, log offset: 106", "  Index offset: 103, log offset: 102"]),
        ("2.3", ["  Index offset: 104, log offset: 105"]),
        ("4.3", ["  Index offset: 104, log offset: 105"]),
    ],
)
def test_mismatches_are_compared_as_the_release_does_and_are_no_damage(
    tmp_path: Path, like: str, reported: list[str]
) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(3, positions[1]), (4, positions[2]), (7, positions[3])])
    ran = dump(tmp_path, "--like", like, INDEX)
    assert lines(ran.stderr) == [f"Mismatches in :{tmp_path / INDEX}", *reported]
    assert ran.status == 0


def test_followers_entry_for_several_batches_is_no_damage(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(5, positions[1])])
    ran = dump(tmp_path, INDEX)
    assert "  Index offset: 105, log offset: 103" in lines(ran.stderr)
    assert ran.status == 0


def test_offset_that_no_broker_writes_for_its_batch_ends_with_1(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(1, positions[1])])
    ran = dump(tmp_path, INDEX)
    assert "  Index offset: 101, log offset: 103" in lines(ran.stderr)
    assert ran.status == 1


def test_mismatches_of_4_3_are_there_once_by_falling_offset(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(4, positions[0]), (2, positions[1]), (4, positions[2])])
    found = [line for line in lines(dump(tmp_path, "--like", "4.3", INDEX).stderr) if line.startswith("  ")]
    assert found == ["  Index offset: 104, log offset: 105", "  Index offset: 102, log offset: 103"]


def test_without_a_release_only_some_mismatches_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    positions = segment(tmp_path, 30)
    offset_index(tmp_path, [(2 * n, positions[n]) for n in range(1, 30)])
    ran = dump(tmp_path, INDEX)
    assert len(lines(ran.stderr)) == 22
    assert lines(ran.stderr)[-1] == "  and 9 more; `--like latest` shows all"


def test_zero_tail_of_a_preallocated_index_is_not_printed(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(3, positions[1])], bytes(80))
    ran = dump(tmp_path, INDEX)
    assert lines(ran.stdout)[1:] == [f"offset: 103 position: {positions[1]}"]
    assert (ran.status, ran.stderr) == (0, b"")


def test_what_follows_a_zero_entry_is_spoken_of(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(3, positions[1]), (0, 0), (7, positions[3])])
    ran = dump(tmp_path, INDEX)
    assert len(lines(ran.stdout)) == 2
    assert ran.status == 1
    assert b"entry 1 is zero and ends the dump, but more entries follow at position 19" in ran.stderr


def test_all_zero_index_of_an_empty_log_is_well(tmp_path: Path) -> None:
    segment(tmp_path, 0)
    offset_index(tmp_path, [], bytes(80))
    ran = dump(tmp_path, INDEX)
    assert (ran.status, ran.stderr) == (0, b"")


@pytest.mark.parametrize(("like", "printed"), [("2.7", []), ("2.8", [f"{INDEX} is empty."])])
def test_index_without_entries_is_called_empty_from_2_8_on(tmp_path: Path, like: str, printed: list[str]) -> None:
    segment(tmp_path)
    offset_index(tmp_path, [])
    assert lines(dump(tmp_path, "--like", like, INDEX).stdout)[1:] == printed


def test_verify_index_only_prints_no_entries_but_the_mismatches(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(2, positions[1])])
    ran = dump(tmp_path, "--verify-index-only", INDEX)
    assert lines(ran.stdout) == [f"Dumping {INDEX}"]
    assert "  Index offset: 102, log offset: 103" in lines(ran.stderr)


@pytest.mark.parametrize(("like", "passes"), [("1.1", False), ("2.0", True)])
def test_sanity_check_wants_the_last_offset_above_the_base_up_to_1_1(tmp_path: Path, like: str, passes: bool) -> None:
    segment(tmp_path)
    offset_index(tmp_path, [(0, 0)])
    ran = dump(tmp_path, "--like", like, "--index-sanity-check", INDEX)
    assert (f"{INDEX} passed sanity check." in lines(ran.stdout)) is passes
    assert (b"sanity check failed: its last offset 100 is not above its base offset 100" in ran.stderr) is not passes
    assert ran.status == int(not passes)


def test_missing_log_leaves_entries_unchecked_and_creates_nothing(tmp_path: Path) -> None:
    offset_index(tmp_path, [(3, 75)])
    time_index(tmp_path, [(BASE_TIME, 3)])
    ran = dump(tmp_path, INDEX, TIME_INDEX)
    assert "offset: 103 position: 75" in lines(ran.stdout)
    assert f"timestamp: {BASE_TIME} offset: 103" in lines(ran.stdout)
    assert [line.count("kseg couldn't check it") for line in lines(ran.stderr)] == [1, 1]
    assert ran.status == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [INDEX, TIME_INDEX]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ((9, 1000), "position after the log's last complete batch"),
        ((9, -8), "negative position"),
        ((9, 5), "position where no batch begins"),
    ],
)
def test_entries_that_point_nowhere_are_printed_and_summed_up(
    tmp_path: Path, entry: tuple[int, int], problem: str
) -> None:
    segment(tmp_path)
    offset_index(tmp_path, [entry] * 50)
    ran = dump(tmp_path, INDEX)
    assert lines(ran.stdout)[1:] == [f"offset: 109 position: {entry[1]}"] * 50
    told = [line for line in lines(ran.stderr) if problem in line]
    assert len(told) == 1
    assert f"50 entries, the first number 0 (offset 109, position {entry[1]})" in told[0]
    assert ran.status == 1


def test_batches_larger_than_the_largest_message_are_not_compared(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(3, positions[1])])
    ran = dump(tmp_path, "--max-message-size", "70", INDEX)
    assert lines(ran.stdout)[1:] == [f"offset: 103 position: {positions[1]}"]
    assert b"batch larger than --max-message-size: 1 entry, number 0" in ran.stderr
    assert ran.status == 1


def test_index_that_ends_inside_an_entry_says_so(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(3, positions[1])], b"\0\0\0")
    ran = dump(tmp_path, INDEX)
    assert len(lines(ran.stdout)) == 2
    assert b"the last 3 of its 11 bytes are not a complete entry" in ran.stderr
    assert ran.status == 1


def test_deleted_index_is_compared_with_the_deleted_log(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(3, positions[1])])
    for name in (INDEX, f"{NAME}.log"):
        (tmp_path / name).rename(tmp_path / f"{name}.deleted")
    ran = dump(tmp_path, f"{INDEX}.deleted")
    assert lines(ran.stdout)[1:] == [f"offset: 103 position: {positions[1]}"]
    assert (ran.status, ran.stderr) == (0, b"")


def test_time_index_that_fits_its_log_is_printed_without_reports(tmp_path: Path) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(3, positions[1])])
    time_index(tmp_path, [(BASE_TIME + 1000, 3), (BASE_TIME + 3000, 7)])
    ran = dump(tmp_path, TIME_INDEX)
    assert lines(ran.stdout)[1:] == [
        f"timestamp: {BASE_TIME + 1000} offset: 103",
        f"timestamp: {BASE_TIME + 3000} offset: 107",
    ]
    assert (ran.status, ran.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("like", "header"),
    [
        ("4.1", "The following indexed offsets are not found in the log."),
        ("4.3", "The following indexed offsets are not found in :{path}"),
    ],
)
def test_time_index_errors_come_in_the_tools_order_and_words(tmp_path: Path, like: str, header: str) -> None:
    segment(tmp_path)
    offset_index(tmp_path, [])
    time_index(tmp_path, [(BASE_TIME + 2000, 5), (BASE_TIME + 1000, 3), (7, 7), (8, 6), (9, 50)])
    path = tmp_path / TIME_INDEX
    ran = dump(tmp_path, "--like", like, TIME_INDEX)
    assert lines(ran.stderr) == [
        f"Found timestamp mismatch in :{path}",
        f"  Index timestamp: 7, log timestamp: {BASE_TIME + 3000}",
        f"Found out of order timestamp in :{path}",
        f"  Index timestamp: {BASE_TIME + 1000}, Previously indexed timestamp: {BASE_TIME + 2000}",
        f"  Index timestamp: 7, Previously indexed timestamp: {BASE_TIME + 1000}",
        header.format(path=path),
        "Indexed offset: 106, found log offset: 107",
        "Indexed offset: 150, found log offset: -1",
    ]
    assert ran.status == 1


@pytest.mark.parametrize(("like", "count"), [("2.2", 4), ("2.3", 1)])
def test_zero_slots_of_a_time_index_are_printed_up_to_2_2(tmp_path: Path, like: str, count: int) -> None:
    segment(tmp_path)
    offset_index(tmp_path, [])
    time_index(tmp_path, [(BASE_TIME + 1000, 3)], bytes(36))
    ran = dump(tmp_path, "--like", like, TIME_INDEX)
    assert len(lines(ran.stdout)[1:]) == count
    assert lines(ran.stderr)[1:] == ["Indexed offset: 100, found log offset: 101"] * (count - 1)
    assert ran.status == 0


def test_time_index_is_checked_without_an_offset_index_and_none_is_created(tmp_path: Path) -> None:
    segment(tmp_path)
    time_index(tmp_path, [(BASE_TIME + 1000, 3)])
    ran = dump(tmp_path, TIME_INDEX)
    assert lines(ran.stdout)[1:] == [f"timestamp: {BASE_TIME + 1000} offset: 103"]
    assert len(lines(ran.stderr)) == 1
    assert not (tmp_path / INDEX).exists()


def test_sanity_check_of_a_time_index_wants_its_last_time_not_below_its_first(tmp_path: Path) -> None:
    segment(tmp_path)
    time_index(tmp_path, [(BASE_TIME, 1), (BASE_TIME - 1, 3)])
    ran = dump(tmp_path, "--index-sanity-check", TIME_INDEX)
    assert b"sanity check failed: its last timestamp" in ran.stderr
    assert ran.status == 1


@pytest.mark.parametrize("name", [INDEX, TIME_INDEX])
@pytest.mark.parametrize("like", ["0.10.2", "2.2", "latest"])
def test_random_entries_are_all_printed_and_reported_in_few_lines(tmp_path: Path, name: str, like: str) -> None:
    segment(tmp_path)
    size = 8 if name == INDEX else 12
    (tmp_path / INDEX).touch()
    (tmp_path / name).write_bytes(bytes(byte % 251 + 1 for byte in range(size * 100)))
    ran = dump(tmp_path, "--like", like, name)
    assert len(lines(ran.stdout)) == 101
    assert sum(line.startswith("kseg: ") for line in lines(ran.stderr)) <= 4
    assert ran.status == 1


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_batch_whose_body_is_broken_can_not_be_compared_by_first_record(tmp_path: Path, codec: str) -> None:
    positions = segment(tmp_path)
    offset_index(tmp_path, [(2, positions[1])])
    log = tmp_path / f"{NAME}.log"
    content = bytearray(log.read_bytes())
    content[positions[1] + 22] |= {"gzip": 1, "zstd": 4}[codec]
    log.write_bytes(content)
    ran = dump(tmp_path, "--like", "2.2", INDEX)
    assert lines(ran.stdout)[1:] == [f"offset: 102 position: {positions[1]}"]
    assert b"batch whose records can't be read: 1 entry, number 0" in ran.stderr
    assert ran.status == 1
