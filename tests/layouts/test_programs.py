"""Programs: the lines of the documentation, word for word, and those of releases that differ."""

from pathlib import Path

import pytest

from kseg.layouts.programs import LogOptions, documented_program, release_program
from kseg.releases import parse_release
from tests import golden
from tests.run import Run, kseg

NAME = "00000000000000203000"
SAMPLE = golden.ROOT / "docs" / "test-1-0"

# The documentation's listings (001 of the reference's samples), with the file's own path.
LOG_LINES = [
    f"Dumping {NAME}.log",
    "Starting offset: 203000",
    "offset: 203000 position: 0 CreateTime: 1581597478310 isvalid: true keysize: -1 valuesize: 21 magic: 2"
    " compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false headerKeys: []"
    " payload: local test -------- 0",
    "offset: 203001 position: 0 CreateTime: 1581597478320 isvalid: true keysize: -1 valuesize: 21 magic: 2"
    " compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false headerKeys: []"
    " payload: local test -------- 1",
    "offset: 203002 position: 0 CreateTime: 1581597478321 isvalid: true keysize: -1 valuesize: 21 magic: 2"
    " compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false headerKeys: []"
    " payload: local test -------- 2",
    "offset: 203003 position: 0 CreateTime: 1581597478321 isvalid: true keysize: -1 valuesize: 21 magic: 2"
    " compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false headerKeys: []"
    " payload: local test -------- 3",
    "offset: 203004 position: 0 CreateTime: 1581597478321 isvalid: true keysize: -1 valuesize: 21 magic: 2"
    " compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false headerKeys: []"
    " payload: local test -------- 4",
]
INDEX_LINES = [
    f"Dumping {NAME}.index",
    "offset: 203299 position: 8738",
    "offset: 204657 position: 34953",
    "offset: 205169 position: 51314",
    "offset: 205681 position: 67695",
    "offset: 206193 position: 84076",
    "offset: 206705 position: 100457",
    "offset: 207217 position: 116838",
    "offset: 207729 position: 133219",
    "offset: 208241 position: 149600",
    "offset: 208753 position: 165981",
    "offset: 209265 position: 182362",
]
# One batch with the documentation's five records: the real tool of 1.1.1, 2.0.1 and 2.1.1 printed the lines above.
FIVE_RECORDS = bytes.fromhex(
    "00000000000318f8 000000bd 00000000 02 4de4e407"  # base offset, length, leader epoch, magic, crc
    "0000 00000004 000001703e8e4da6 000001703e8e4db1"  # attributes, last offset delta, base and largest timestamp
    "ffffffffffffffff ffff ffffffff 00000005"  # producer id and epoch, base sequence, count
    "36 00 00 00 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2030 00"  # length, attributes, deltas, key, value, headers
    "36 00 14 02 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2031 00"
    "36 00 16 04 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2032 00"
    "36 00 16 06 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2033 00"
    "36 00 16 08 01 2a 6c6f63616c2074657374202d2d2d2d2d2d2d2d2034 00"
)


def dump(directory: Path, *arguments: str) -> Run:
    return kseg(["dump", *arguments], directory)


def lines(ran: Run) -> list[str]:
    return ran.stdout.decode().splitlines()


def test_documentations_log_lines_come_out_word_for_word() -> None:
    ran = dump(SAMPLE, "--print-data-log", f"{NAME}.log")
    assert lines(ran)[:7] == LOG_LINES
    assert len(lines(ran)) == 2 + 6300
    assert (ran.status, ran.stderr) == (0, b"")


def test_documentations_batch_prints_just_its_lines(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.log").write_bytes(FIVE_RECORDS)
    assert lines(dump(tmp_path, "--print-data-log", f"{NAME}.log")) == LOG_LINES


def test_documentations_index_lines_come_out_word_for_word() -> None:
    ran = dump(SAMPLE, "--print-data-log", f"{NAME}.index")
    assert lines(ran) == INDEX_LINES
    assert ran.status == 0


def test_files_may_be_given_as_kafkas_tool_takes_them() -> None:
    ran = dump(SAMPLE, "--files", f"{NAME}.log,{NAME}.index", "--print-data-log")
    assert lines(ran)[:7] == LOG_LINES
    assert lines(ran)[-12:] == INDEX_LINES


def test_without_print_data_log_there_is_no_payload() -> None:
    ran = dump(SAMPLE, f"{NAME}.log")
    assert lines(ran)[:7] == [line.split(" payload: ")[0] for line in LOG_LINES]


SHALLOW_CASES = [
    case
    for case in golden.cases("healthy", ("log",), "2.0.1")
    if len(case.files) == 1 and case.arguments == ("--files", case.files[0])
]


def test_shallow_prints_the_lines_of_batches_as_2_0_1_does() -> None:
    different = [
        case.files[0]
        for case in SHALLOW_CASES
        if dump(golden.ROOT, "--shallow", *case.arguments).stdout != case.stdout()
    ]
    assert len(SHALLOW_CASES) > 20
    assert different == []


def test_key_stands_in_front_of_the_payload_where_there_is_one() -> None:
    path = "logs/classes-2.0.1/v2-none-create/00000000000000040747.log"
    with_key = [line for line in lines(dump(golden.ROOT, "--print-data-log", path)) if " keysize: -1 " not in line][2:]
    assert with_key
    assert all(" headerKeys: [] key: k" in line and " payload: " in line for line in with_key)


@pytest.mark.parametrize(("like", "told"), [(None, "false"), ("2.1", "true"), ("0.11", "true")])
def test_record_of_a_batch_with_a_wrong_crc_is_not_valid_except_to_releases(
    like: str | None, told: str, tmp_path: Path
) -> None:
    (tmp_path / f"{NAME}.log").write_bytes(FIVE_RECORDS[:-2] + b"5" + FIVE_RECORDS[-1:])
    options = [] if like is None else ["--like", like, "--deep-iteration"]
    shown = lines(dump(tmp_path, *options, "--print-data-log", f"{NAME}.log"))
    assert [line.split(" isvalid: ")[1].split(" ")[0] for line in shown if line.startswith("offset: ")] == [told] * 5


def test_old_records_are_valid_or_not_by_themselves(tmp_path: Path) -> None:
    content = (golden.ROOT / "logs/classes-2.0.1/singles-v0/00000000000000001000.log").read_bytes()
    (tmp_path / f"{1000:020}.log").write_bytes(content[:87] + bytes([content[87] ^ 1]) + content[88:])
    shown = lines(dump(tmp_path, f"{1000:020}.log"))[2:]
    assert ["isvalid: true" in line for line in shown] == [False] + [True] * 59


def test_record_metadata_can_be_left_out() -> None:
    ran = dump(SAMPLE, "--skip-record-metadata", "--print-data-log", f"{NAME}.log")
    assert lines(ran)[2:4] == ["| payload: local test -------- 0", "| payload: local test -------- 1"]


@pytest.mark.parametrize(
    ("like", "options", "has_batches", "has_records"),
    [
        ("0.8", LogOptions(), True, False),
        ("0.10.2", LogOptions(deep=True), False, True),
        ("0.11", LogOptions(), True, False),
        ("0.11", LogOptions(print_data=True), True, False),
        ("1.0", LogOptions(print_data=True), True, False),
        ("1.1", LogOptions(print_data=True), False, True),
        ("2.1", LogOptions(deep=True), False, True),
        ("2.2", LogOptions(deep=True), True, True),
        ("4.3", LogOptions(), True, False),
        ("4.3", LogOptions(print_data=True), True, True),
    ],
)
def test_release_prints_batches_records_or_both(
    like: str, options: LogOptions, has_batches: bool, has_records: bool
) -> None:
    program = release_program(parse_release(like), options)
    assert (any(program.batch), any(program.record)) == (has_batches, has_records)


def test_default_layout_prints_records_or_batches() -> None:
    deep, shallow = documented_program(LogOptions(deep=True)), documented_program(LogOptions())
    assert (any(deep.batch), any(deep.record)) == (False, True)
    assert (any(shallow.batch), any(shallow.record)) == (True, False)
