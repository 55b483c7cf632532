"""Lookups where records, indexes or bytes are missing; special times."""

import shutil
from pathlib import Path
from struct import pack

import pytest

from kseg.log.lookup import Absence, Lookup, SpecialTime, lookup_offset, lookup_time
from kseg.log.partition import PartitionLog
from tests import golden

SAMPLE = golden.ROOT / "docs/test-1-0"
STEM = "00000000000000203000"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "test-1-0"))


def look(folder: Path, offset: int) -> Lookup:
    return lookup_offset(PartitionLog(folder), offset)


def offsets(answer: Lookup) -> tuple[int | None, int | None]:
    """Return the neighbours' offsets."""
    return (
        None if answer.previous is None else answer.previous.offset,
        None if answer.next is None else answer.next.offset,
    )


def replace_bytes(path: Path, position: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def test_documented_lookup_scans_from_8738() -> None:
    answer = look(SAMPLE, 203500)
    assert answer.step is not None
    assert (answer.step.index_entry, answer.step.scan_position) == ((203299, 8738), 8738)
    assert answer.batch is not None
    assert answer.batch.base_offset is not None
    assert answer.batch.base_offset <= 203500 <= answer.batch.last_offset
    assert (answer.offset, answer.problems) == (203500, [])


@pytest.mark.parametrize(
    ("offset", "absence", "neighbours"),
    [
        (5, Absence.BELOW_LOG_START, (None, 203000)),
        (209300, Absence.AT_LOG_END, (209299, None)),
        (209301, Absence.ABOVE_LOG_END, (209299, None)),
    ],
)
def test_offset_outside_the_log(offset: int, absence: Absence, neighbours: tuple[int | None, int | None]) -> None:
    answer = look(SAMPLE, offset)
    assert (answer.absence, answer.record, offsets(answer)) == (absence, None, neighbours)


def test_empty_partition(tmp_path: Path) -> None:
    assert look(tmp_path, 5).absence is Absence.EMPTY


def test_record_that_compaction_took_out_of_its_batch() -> None:
    answer = look(golden.ROOT / "logs/classes-4.3.1/gaps-v2-none", 1)
    assert answer.absence is Absence.REMOVED


def test_record_that_cannot_be_read_was_not_taken_out() -> None:
    answer = look(golden.ROOT / "damaged/119-record-length-overrun", 70741)
    assert (answer.absence, offsets(answer)) == (Absence.DAMAGED, (70739, 70742))


def test_offset_in_a_damaged_batch_says_so_and_names_its_neighbours(folder: Path) -> None:
    log = folder / f"{STEM}.log"
    replace_bytes(log, 14555 + 70, b"\xff\xff")  # the batch of 203485 to 203534
    answer = look(folder, 203500)
    assert (answer.absence, offsets(answer)) == (Absence.DAMAGED, (203484, 203535))


def test_torn_end_says_so(folder: Path) -> None:
    log = folder / f"{STEM}.log"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - 10)
    answer = look(folder, 209299)
    assert (answer.absence, offsets(answer)) == (Absence.DAMAGED_END, (209265, None))


def test_gap_between_segments(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    shutil.copytree(SAMPLE, folder)
    (folder / "00000000000000300000.log").write_bytes(b"")
    raw = bytearray((SAMPLE / f"{STEM}.log").read_bytes()[:8738])
    raw[:8] = pack(">q", 300000)
    (folder / "00000000000000300000.log").write_bytes(raw[: int.from_bytes(raw[8:12], "big") + 12])
    answer = look(folder, 250000)
    assert (answer.absence, offsets(answer)) == (Absence.GAP, (209299, 300000))


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (None, "missing"),
        (pack(">ii", 299, 8739), "doesn't point at an intact batch"),
        (pack(">ii", 299, 10**6), "points beyond the log's 199858 bytes"),
        (pack(">ii", 299, 34953), "points at a batch that begins with offset 204139"),
        (pack(">ii", 299, 8738) + b"\0\0\0", "11 bytes, not a multiple of 8"),
    ],
)
def test_unsound_offset_index_is_reported_and_the_answer_is_the_same(
    folder: Path, index: bytes | None, problem: str
) -> None:
    path = folder / f"{STEM}.index"
    path.unlink()
    if index is not None:
        path.write_bytes(index)
    answer = look(folder, 203500)
    assert answer.record == look(SAMPLE, 203500).record
    assert len(answer.problems) == 1
    assert problem in answer.problems[0]


def test_untrue_time_index_is_reported_and_the_answer_is_the_same(folder: Path) -> None:
    path = folder / f"{STEM}.timeindex"
    sound = lookup_time(PartitionLog(SAMPLE), 1581597490000)
    replace_bytes(path, 0, pack(">qi", 1581597480000, 299))
    answer = lookup_time(PartitionLog(folder), 1581597490000)
    assert answer.record == sound.record
    assert any("is wrong" in problem for problem in answer.problems)


def test_time_before_all_gives_the_first_record() -> None:
    assert lookup_time(PartitionLog(SAMPLE), 0).offset == 203000


def test_time_behind_all_says_so() -> None:
    answer = lookup_time(PartitionLog(SAMPLE), 10**15)
    assert (answer.absence, answer.offset) == (Absence.NO_LATER_TIME, None)
    assert "the largest timestamp is 1581597498775" in answer.absence_text()


def test_messages_without_times() -> None:
    partition = PartitionLog(golden.ROOT / "logs/classes-3.9.1/v0-none")
    assert lookup_time(partition, 5).absence is Absence.NO_TIMES
    assert lookup_time(partition, SpecialTime.MAX_TIMESTAMP).absence is Absence.NO_TIMES


def test_special_times() -> None:
    partition = PartitionLog(SAMPLE)
    assert lookup_time(partition, SpecialTime.EARLIEST).offset == 203000
    assert lookup_time(partition, SpecialTime.LATEST).offset == 209300
    largest = lookup_time(partition, SpecialTime.MAX_TIMESTAMP)
    assert largest.record is not None
    assert (largest.record.timestamp, largest.offset) == (1581597498775, lookup_time(partition, 1581597498775).offset)


def test_records_below_the_log_start_offset_are_not_found_by_time(folder: Path) -> None:
    (folder.parent / "log-start-offset-checkpoint").write_text("0\n1\ntest-1 0 203500\n")
    partition = PartitionLog(folder)
    assert lookup_time(partition, 0).offset == 203500
    assert lookup_time(partition, SpecialTime.EARLIEST).offset == 203500
    assert lookup_offset(partition, 203499).absence is Absence.BELOW_LOG_START
