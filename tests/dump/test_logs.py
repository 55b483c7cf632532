"""`kseg dump` of logs as text: the lines around batches and records, the options, and reports of damage."""

import shutil
from itertools import product
from pathlib import Path

import pytest

from tests import golden
from tests.kernel.made import BatchHeader, Record, batch
from tests.loops import for_each
from tests.run import Run, kseg

NAME = f"{0:020}.log"
FIRST = batch(BatchHeader(), [Record(key=b"k", value=b"first")])
SECOND = batch(BatchHeader(1), [Record(value=b"second")])


def dump(directory: Path, *arguments: str) -> Run:
    return kseg(["dump", *arguments], directory)


def dump_content(directory: Path, content: bytes, *arguments: str) -> Run:
    (directory / NAME).write_bytes(content)
    return dump(directory, *arguments, NAME)


def lines(ran: Run) -> list[str]:
    return ran.stdout.decode().splitlines()


def payloads(ran: Run) -> list[str]:
    return [line.split(" payload: ")[1] for line in lines(ran) if " payload: " in line]


# --- the first lines -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("00000000000000203000.log", "Starting offset: 203000"),
        ("00000000000000203000.log.deleted", "Starting offset: 203000"),
        ("00000000000000203000.log.swap", "Starting offset: 203000"),
        ("00000000000000203000.log.cleaned", "Starting offset: 203000"),
        ("message.log", "Starting offset: ?"),
        ("00000000000000000100-0000000007.checkpoint", "Snapshot end offset: 100, epoch: 7"),
        ("bootstrap.checkpoint", "KRaft bootstrap snapshot"),
    ],
)
def test_second_line_tells_what_the_name_tells(name: str, first: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FIRST)
    assert lines(dump(tmp_path, name))[:2] == [f"Dumping {name}", first]


@pytest.mark.parametrize(("like", "word"), [("3.2", "Starting offset: 0"), ("3.3", "Log starting offset: 0")])
def test_second_line_is_the_releases(like: str, word: str, tmp_path: Path) -> None:
    assert lines(dump_content(tmp_path, FIRST, "--like", like))[1] == word


def test_empty_log_has_its_two_lines_alone(tmp_path: Path) -> None:
    ran = dump_content(tmp_path, b"")
    assert lines(ran) == [f"Dumping {NAME}", "Starting offset: 0"]
    assert (ran.status, ran.stderr) == (0, b"")


def test_log_that_is_not_there_is_reported_and_the_others_printed(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(FIRST)
    ran = dump(tmp_path, "absent.log", NAME)
    assert f"Dumping {NAME}" in lines(ran)
    assert ran.stderr.decode().startswith("kseg: absent.log: can't be opened: No such file")
    assert ran.status == 2


# --- what is printed -------------------------------------------------------------------------------------------------


def test_healthy_log_ends_with_status_0_and_says_nothing_else(tmp_path: Path) -> None:
    ran = dump_content(tmp_path, FIRST + SECOND, "--print-data-log")
    assert payloads(ran) == ["first", "second"]
    assert (ran.status, ran.stderr) == (0, b"")


@pytest.mark.parametrize("over", [0, 30])
def test_max_bytes_prints_the_batches_in_front_of_it_and_is_no_damage(over: int, tmp_path: Path) -> None:
    ran = dump_content(tmp_path, FIRST + SECOND, "--print-data-log", "--max-bytes", str(len(FIRST) + over))
    assert payloads(ran) == ["first"]
    assert (ran.status, ran.stderr) == (0, b"")


def test_max_bytes_keeps_the_damage_in_front_of_it(tmp_path: Path) -> None:
    hole = b"\xff" * 50
    ran = dump_content(tmp_path, FIRST + hole + SECOND + SECOND, "--max-bytes", str(len(FIRST + hole + SECOND)))
    assert ran.status == 1
    assert f"at position {len(FIRST)}" in ran.stderr.decode()


@pytest.mark.parametrize(
    ("option", "name", "value", "shown"),
    [
        ("--value-decoder-class", "kafka.serializer.IntegerDecoder", b"\x00\x00\x01\x00", "256"),
        ("--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder", b"\xff" * 8, "-1"),
        ("--value-decoder-class", "LongDecoder", b"\x00" * 7 + b"\x05", "5"),
        ("--value-decoder-class", "org.apache.kafka.tools.api.StringDecoder", "naïve".encode(), "naïve"),
        ("--value-decoder-class", "kafka.serializer.DefaultDecoder", b"\x01\xff", "01ff"),
        ("--value-decoder-class", "org.apache.kafka.tools.api.ByteArrayDecoder", b"\x01\xff", "01ff"),
        ("--key-decoder-class", "IntegerDecoder", b"as it is", "as it is"),
    ],
)
def test_decoder_classes_decode_values_and_imply_printing(
    option: str, name: str, value: bytes, shown: str, tmp_path: Path
) -> None:
    assert payloads(dump_content(tmp_path, batch(BatchHeader(), [Record(value=value)]), option, name)) == [shown]


def test_key_decoder_class_decodes_keys(tmp_path: Path) -> None:
    content = batch(BatchHeader(), [Record(key=b"\0\0\0\x2a", value=b"v")])
    assert " key: 42 payload: v" in lines(dump_content(tmp_path, content, "--key-decoder-class", "IntegerDecoder"))[2]


def test_unknown_decoder_class_is_refused_before_anything_is_printed(tmp_path: Path) -> None:
    ran = dump_content(tmp_path, FIRST, "--value-decoder-class", "com.example.Decoder")
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"com.example.Decoder" in ran.stderr


def test_records_that_an_internal_decoder_can_not_read_are_shown_raw_and_counted(tmp_path: Path) -> None:
    ran = dump_content(tmp_path, SECOND, "--offsets-decoder")  # it has no key, where the real tool stops
    assert payloads(ran) == ["second"]
    assert b"1 record can't be decoded and is shown raw; the first at offset 1: " in ran.stderr
    assert ran.status == 1


# --- damage ----------------------------------------------------------------------------------------------------------

ZERO_TAIL = FIRST + bytes(100)
HOLE = FIRST + b"\xff" * 50 + SECOND


@for_each(
    "content, options",
    list(
        product(
            [HOLE, FIRST[:-1], FIRST[:-2] + b"x" + FIRST[-1:]],
            [(), ("--shallow",), ("--like", "0.8"), ("--like", "2.1"), ("--like", "latest")],
        )
    ),
)
def test_damage_ends_with_status_1_in_every_layout(content: bytes, options: tuple[str, ...], tmp_path: Path) -> None:
    ran = dump_content(tmp_path, content, *options)
    assert ran.status == 1
    assert ran.stderr.decode().splitlines()[-1].startswith(f"kseg: {NAME}: {len(content)} bytes, ")


def test_quiet_says_nothing_of_damage_but_ends_with_its_status(tmp_path: Path) -> None:
    ran = dump_content(tmp_path, HOLE, "--quiet")
    assert (ran.status, ran.stderr) == (1, b"")


def test_records_behind_a_hole_are_printed(tmp_path: Path) -> None:
    assert payloads(dump_content(tmp_path, HOLE, "--print-data-log")) == ["first", "second"]


def test_last_line_counts_as_the_documentations_to_string_does(tmp_path: Path) -> None:
    ran = dump_content(tmp_path, HOLE)
    assert ran.stderr.decode().splitlines()[-1].endswith("50 of them lost; batch count is 2, record count is 2")


@pytest.mark.parametrize(("content", "size"), [(ZERO_TAIL, 100), (FIRST + SECOND[:-1], len(SECOND) - 1)])
@pytest.mark.parametrize("options", [(), ("--like", "0.8"), ("--like", "4.3")])
def test_tail_is_reported_on_stdout_as_the_tool_tells_it(
    content: bytes, size: int, options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / NAME).write_bytes(content)
    ran = dump(tmp_path, *options, f"orders-0/{NAME}")
    assert lines(ran)[-1] == f"Found {size} invalid bytes at the end of {NAME}"


def test_max_bytes_leaves_the_tail_untold(tmp_path: Path) -> None:
    ran = dump_content(tmp_path, ZERO_TAIL, "--like", "4.3", "--max-bytes", str(len(ZERO_TAIL)))
    assert "invalid bytes" not in ran.stdout.decode()


# --- what dump leaves alone ------------------------------------------------------------------------------------------


def test_nothing_appears_beside_the_log(tmp_path: Path) -> None:
    source = golden.ROOT / "logs" / "classes-2.0.1" / "thousand" / NAME
    shutil.copy(source, tmp_path / NAME)
    assert dump(tmp_path, "--print-data-log", NAME).status == 0
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).read_bytes() == source.read_bytes()


def test_last_line_counts_a_batch_with_a_wrong_crc_as_lost() -> None:
    path = "damaged/021-flip-records/00000000000000036158.log"
    ran = kseg(["dump", path], golden.ROOT)
    counts = "1496 bytes, 880 of them lost; batch count is 3, record count is 17"
    assert ran.stderr.decode().splitlines()[-1] == f"kseg: {path}: {counts}"
