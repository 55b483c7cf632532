"""Damage: its reports, reading after it, and a complete account of every byte of a file."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pytest
from crc32c import crc32c
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kseg
from kseg.formats.file_names import parse_file_name
from tests import golden
from tests.kernel.made import BatchHeader, Message, Record, batch
from tests.run import kseg as run_kseg

NAME = f"{1000:020}.log"
SINGLES = ("classes-2.0.1/singles-v0", "classes-3.9.1/singles-v1", "classes-2.0.1/singles-v2")
"""Sixty batches or entries of one record each, in each format; the first offset is 1000."""
COMPRESSED = (
    "classes-2.0.1/v0-gzip",
    "classes-2.0.1/v0-snappy",
    "classes-2.0.1/v0-lz4",
    "classes-2.0.1/v1-gzip-create",
    "classes-2.0.1/v1-snappy-create",
    "classes-2.0.1/v1-lz4-create",
    "classes-4.3.1/v2-gzip-create",
    "classes-4.3.1/v2-snappy-create",
    "classes-4.3.1/v2-lz4-create",
    "classes-4.3.1/v2-zstd-create",
)
"""Three batches or wrappers each."""
MIXED = "classes-3.9.1/mixed"
"""All three formats and five codecs in one file."""
MAGIC_AT = 16
ATTRIBUTES_AT = {0: 17, 1: 17, 2: 22}
BODY_AT = {0: 26, 1: 34, 2: 61}
"""Position of the body in a wrapper or a compressed batch; wrappers have no key."""
LEAST_SIZE_FIELD = {0: 14, 1: 22, 2: 49}
MANY = settings(max_examples=50)


@dataclass(frozen=True)
class Log:
    """A healthy log to be damaged."""

    content: bytes
    name: str = NAME

    @property
    def starts(self) -> list[int]:
        """Positions of its batches, and its end."""
        starts = [0]
        while starts[-1] < len(self.content):
            at = starts[-1] + 8
            starts.append(at + 4 + int.from_bytes(self.content[at : at + 4], "big"))
        return starts

    @property
    def magic(self) -> int:
        return self.content[MAGIC_AT]

    def offset(self, number: int) -> int:
        """Return the value of a batch's first field."""
        at = self.starts[number]
        return int.from_bytes(self.content[at : at + 8], "big")

    def extent(self, number: int) -> tuple[int, int]:
        """Return position and size of a batch."""
        start, end = self.starts[number : number + 2]
        return start, end - start

    def change_bytes(self, number: int, at: int, new: bytes) -> bytes:
        """Return the log with other bytes in a batch, `at` bytes from its start."""
        at += self.starts[number]
        return self.content[:at] + new + self.content[at + len(new) :]

    def replace_batch(self, number: int, new: bytes) -> bytes:
        """Return the log with other bytes instead of a batch."""
        start, end = self.starts[number : number + 2]
        return self.content[:start] + new + self.content[end:]

    def changed_with_right_crc(self, number: int, at: int, new: bytes) -> bytes:
        """Return the same as `change_bytes`, but with a right CRC: only reading the records finds that damage."""
        start, end = self.starts[number : number + 2]
        return self.replace_batch(number, with_right_crc(self.change_bytes(number, at, new)[start:end]))


def with_right_crc(content: bytes) -> bytes:
    if content[MAGIC_AT] == 2:
        return content[:17] + crc32c(content[21:]).to_bytes(4, "big") + content[21:]
    return content[:12] + crc32(content[MAGIC_AT:]).to_bytes(4, "big") + content[MAGIC_AT:]


def log(case: str) -> Log:
    (path,) = (golden.ROOT / "logs" / case).glob("*.log")
    return Log(path.read_bytes(), path.name)


@pytest.fixture(params=SINGLES)
def singles(request: pytest.FixtureRequest) -> Log:
    """Return a log of sixty batches of one record, in each format."""
    return log(request.param)


@pytest.fixture(params=COMPRESSED)
def compressed_log(request: pytest.FixtureRequest) -> Log:
    """Return a log of three compressed batches, of each format and codec."""
    return log(request.param)


# --- reading ---------------------------------------------------------------------------------------------------------

Items = list[kseg.Batch | kseg.Damage]


def scan_items(path: Path) -> Items:
    """Return the items of a scan, which must account for each byte."""
    with kseg.open_segment(path) as segment:
        items = list(segment.scan())
    position = 0
    for item in items:
        assert item.position == position
        position += item.size
    assert position == path.stat().st_size
    return items


def scanned_content(content: bytes, directory: Path, name: str = NAME) -> Items:
    path = directory / name
    path.write_bytes(content)
    return scan_items(path)


def the_damage(items: Items) -> kseg.Damage:
    (damage,) = (item for item in items if isinstance(item, kseg.Damage))
    return damage


def place(damage: kseg.Damage) -> tuple[str, int, int, int | None]:
    return damage.kind, damage.position, damage.size, damage.next_offset


def intact(items: Items) -> set[tuple[int, int]]:
    """Return position and size of each valid batch."""
    return {(item.position, item.size) for item in items if isinstance(item, kseg.Batch) and item.is_valid}


@dataclass(frozen=True)
class Dumped:
    """The content of a JSON dump, and its exit status."""

    status: int
    objects: list[dict[str, Any]]
    stderr: bytes

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.objects if item["type"] == kind]

    @property
    def damage(self) -> dict[str, Any]:
        (found,) = self.of("damage")
        return found


def dump_items(path: Path, *options: str) -> Dumped:
    """Return a log's JSON; the sizes of its batches and damages must add up."""
    ran = run_kseg(["dump", "-o", "json", *options, path.name], path.parent)
    result = Dumped(ran.status, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr)
    assert sum(item["size"] for item in result.of("batch") + result.of("damage")) == path.stat().st_size
    return result


def dumped_content(content: bytes, directory: Path, *options: str) -> Dumped:
    path = directory / NAME
    path.write_bytes(content)
    return dump_items(path, *options)


# --- tails -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("left", [8, 11, 16, 17, 25])
def test_last_batch_cut_is_a_torn_tail(singles: Log, left: int, tmp_path: Path) -> None:
    start = singles.starts[-2]
    damage = the_damage(scanned_content(singles.content[: start + left], tmp_path))
    assert place(damage) == ("torn-tail", start, left, None)
    assert f"{left} bytes are left" in damage.detail


@pytest.mark.usefixtures("kernel")
def test_last_batch_without_its_last_byte_is_a_torn_tail(singles: Log, tmp_path: Path) -> None:
    start, size = singles.extent(59)
    damage = the_damage(scanned_content(singles.content[:-1], tmp_path))
    assert place(damage) == ("torn-tail", start, size - 1, None)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("zeros", [1, 17, 100, 3 << 20])
def test_zeros_up_to_the_end_are_a_zero_tail(singles: Log, zeros: int, tmp_path: Path) -> None:
    damage = the_damage(scanned_content(singles.content + bytes(zeros), tmp_path))
    assert place(damage) == ("zero-tail", len(singles.content), zeros, None)


@pytest.mark.usefixtures("kernel")
def test_file_of_zeros_is_one_zero_tail(tmp_path: Path) -> None:
    assert place(the_damage(scanned_content(bytes(500), tmp_path))) == ("zero-tail", 0, 500, None)


@pytest.mark.usefixtures("kernel")
def test_empty_file_has_no_damage(tmp_path: Path) -> None:
    assert scanned_content(b"", tmp_path) == []


# --- headers, and the search for the next batch ----------------------------------------------------------------------


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("length", [0, -1, -(2**31), 13, "least - 1", "file + 1", 2**30, 2**31 - 1])
def test_length_that_can_not_be_is_a_bad_length_up_to_the_next_batch(
    singles: Log, length: int | str, tmp_path: Path
) -> None:
    named = {
        "least - 1": LEAST_SIZE_FIELD[singles.magic] - 1,
        "file + 1": len(singles.content) - singles.starts[20] - 11,
    }
    field = length if isinstance(length, int) else named[length]
    damage = the_damage(scanned_content(singles.change_bytes(20, 8, field.to_bytes(4, "big", signed=True)), tmp_path))
    assert place(damage) == ("bad-length", *singles.extent(20), 1021)
    assert f"length field is {field}" in damage.detail


@pytest.mark.usefixtures("kernel")
def test_length_that_can_not_be_in_the_last_batch_loses_the_rest(singles: Log, tmp_path: Path) -> None:
    damage = the_damage(scanned_content(singles.change_bytes(59, 8, bytes(4)), tmp_path))
    assert place(damage) == ("bad-length", *singles.extent(59), None)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(("magic", "shown"), [(3, "3"), (127, "127"), (255, "-1")])
def test_unknown_magic_is_a_bad_magic_up_to_the_next_batch(
    singles: Log, magic: int, shown: str, tmp_path: Path
) -> None:
    damage = the_damage(scanned_content(singles.change_bytes(20, MAGIC_AT, bytes([magic])), tmp_path))
    assert place(damage) == ("bad-magic", *singles.extent(20), 1021)
    assert damage.detail == f"magic is {shown}, expected 0, 1 or 2"


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("number", [20, 59])
def test_batch_with_wrong_crc_is_given_as_invalid_if_a_header_or_the_end_follows(
    singles: Log, number: int, tmp_path: Path
) -> None:
    start, size = singles.extent(number)
    last = singles.content[start + size - 1]
    items = scanned_content(singles.change_bytes(number, size - 1, bytes([last ^ 1])), tmp_path)
    invalid = [item for item in items if isinstance(item, kseg.Damage) or not item.is_valid]
    assert [(item.position, item.size) for item in invalid] == [(start, size)]
    assert len(items) == 60


@pytest.mark.usefixtures("kernel")
def test_batch_with_wrong_crc_is_dumped_with_its_damage(singles: Log, tmp_path: Path) -> None:
    start, size = singles.extent(20)
    last = singles.content[start + size - 1]
    dump = dumped_content(singles.change_bytes(20, size - 1, bytes([last ^ 1])), tmp_path)
    assert [item["isValid"] for item in dump.of("batch")] == [True] * 20 + [False] + [True] * 39
    assert [dump.damage[key] for key in ("kind", "position", "size", "nextOffset")] == ["bad-crc", start, 0, 1021]
    assert len(dump.of("record")) == 60


@pytest.mark.usefixtures("kernel")
def test_detail_of_a_wrong_crc_names_both_checksums(singles: Log, tmp_path: Path) -> None:
    at = 17 if singles.magic == 2 else 12
    start = singles.starts[20] + at
    right = int.from_bytes(singles.content[start : start + 4], "big")
    dump = dumped_content(singles.change_bytes(20, at, bytes(4)), tmp_path)
    assert dump.damage["detail"] == f"CRC is 0x00000000, expected {right:#010x}"


@pytest.mark.usefixtures("kernel")
def test_wrong_crc_without_a_header_at_its_end_is_a_damage_up_to_the_next_batch(singles: Log, tmp_path: Path) -> None:
    start, size = singles.extent(20)
    damage = the_damage(scanned_content(singles.change_bytes(20, 8, (size - 12 + 1).to_bytes(4, "big")), tmp_path))
    assert place(damage) == ("bad-crc", start, size, 1021)
    assert "there is no header at its end" in damage.detail


@pytest.mark.usefixtures("kernel")
def test_garbage_between_batches_is_one_damage(singles: Log, tmp_path: Path) -> None:
    at = singles.starts[20]
    items = scanned_content(singles.content[:at] + b"garbage " * 500 + singles.content[at:], tmp_path)
    assert place(the_damage(items))[1:] == (at, 4000, 1020)
    assert len(items) == 61


@pytest.mark.usefixtures("kernel")
def test_zeros_between_batches_are_one_damage_however_many_they_are(singles: Log, tmp_path: Path) -> None:
    at, zeros = singles.starts[20], (3 << 20) + 5
    items = scanned_content(singles.content[:at] + bytes(zeros) + singles.content[at:], tmp_path)
    assert place(the_damage(items))[1:] == (at, zeros, 1020)
    assert len(items) == 61


@pytest.mark.usefixtures("kernel")
def test_search_passes_over_plausible_headers_whose_crc_is_wrong(singles: Log, tmp_path: Path) -> None:
    start, size = singles.extent(20)
    false = bytearray(singles.content[start : start + size])
    false[-1] ^= 1
    hole = b"\xff" * 40 + bytes(false) + b"\xff" * 40
    items = scanned_content(singles.content[:start] + hole + singles.content[start:], tmp_path)
    assert place(the_damage(items))[1:] == (start, len(hole), 1020)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("offset", [999, 1000 + 2**31 + 1])
def test_search_takes_no_batch_whose_offset_can_not_be_in_the_segment(
    singles: Log, offset: int, tmp_path: Path
) -> None:
    start = singles.starts[20]
    foreign = Message(value=b"foreign", offset=offset, magic=1).encode()
    hole = b"\xff" * 40 + foreign
    items = scanned_content(singles.content[:start] + hole + singles.content[start:], tmp_path)
    assert place(the_damage(items))[1:] == (start, len(hole), 1020)


@pytest.mark.usefixtures("kernel")
def test_file_whose_name_has_no_offset_is_searched_as_well(singles: Log, tmp_path: Path) -> None:
    items = scanned_content(b"\xff" * 40 + singles.content, tmp_path, "message.log")
    assert place(the_damage(items))[1:] == (0, 40, 1000)
    assert len(items) == 61


# --- bodies and records ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_a_damage_of_its_batch_and_reading_goes_on(
    compressed_log: Log, codec: int, tmp_path: Path
) -> None:
    position, _ = compressed_log.extent(1)
    content = compressed_log.changed_with_right_crc(1, ATTRIBUTES_AT[compressed_log.magic], bytes([codec]))
    dump = dumped_content(content, tmp_path)
    assert [dump.damage[key] for key in ("kind", "position", "size")] == ["bad-codec", position, 0]
    assert f"unknown codec {codec}" in dump.damage["detail"]
    assert {item["position"] for item in dump.of("record")} == {0, compressed_log.starts[2]}


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("case", ["classes-2.0.1/v0-gzip", "classes-2.0.1/v1-gzip-create"])
def test_zstd_in_old_formats_is_a_bad_codec_as_in_kafka(case: str, tmp_path: Path) -> None:
    wrappers = log(case)
    dump = dumped_content(wrappers.changed_with_right_crc(1, 17, b"\x04"), tmp_path)
    assert dump.damage["kind"] == "bad-codec"


@pytest.mark.usefixtures("kernel")
def test_body_that_does_not_decompress_is_a_damage_of_its_batch_and_reading_goes_on(
    compressed_log: Log, tmp_path: Path
) -> None:
    position, _ = compressed_log.extent(1)
    content = compressed_log.changed_with_right_crc(1, BODY_AT[compressed_log.magic], b"\xff" * 8)
    dump = dumped_content(content, tmp_path)
    assert [dump.damage[key] for key in ("kind", "position", "size")] == ["bad-body", position, 0]
    assert {item["position"] for item in dump.of("record")} == {0, compressed_log.starts[2]}


@pytest.mark.usefixtures("kernel")
def test_records_in_front_of_a_bodys_damage_are_given(tmp_path: Path) -> None:
    records = [Record(value=b"%d" % number * 50, offset_delta=number) for number in range(1000)]
    body = gzip.compress(b"".join(record.encode() for record in records))
    content = batch(BatchHeader(1000, attributes=1, count=1000), body=body[: len(body) // 2])
    dump = dumped_content(content + log(SINGLES[2]).content, tmp_path)
    values = [item["value"] for item in dump.of("record")[:-60]]
    assert dump.damage["kind"] == "bad-body"
    assert 100 < len(values) < 1000
    assert values == [str(number) * 50 for number in range(len(values))]


@pytest.mark.usefixtures("kernel")
def test_body_beyond_the_limit_is_cut_with_a_message_that_names_the_option(compressed_log: Log, tmp_path: Path) -> None:
    dump = dumped_content(compressed_log.content, tmp_path, "--max-decompressed", "20")
    assert [item["kind"] for item in dump.of("damage")] == ["bad-body"] * 3
    assert all("--max-decompressed" in item["detail"] for item in dump.of("damage"))
    assert dump.status == 1


def v2_body(*records: Record) -> bytes:
    return b"".join(record.encode() for record in records)


RECORDS = [Record(value=b"first"), Record(value=b"second", offset_delta=1), Record(value=b"third", offset_delta=2)]
SECOND_AT = len(RECORDS[0].encode())


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("at", "new"),
    [
        (0, b"\x01"),  # length: -1
        (0, b"\xff\xff\xff\xff\xff\x01"),  # length: a varint of six bytes
        (0, b"\x7e"),  # length: beyond the batch
        (0, b"\x08"),  # length: shorter than its fields
        (2, b"\xff" * 10 + b"\x01"),  # timestamp delta: a varlong of eleven bytes
        (4, b"\x7e"),  # key length: beyond the record
        (5, b"\x7e"),  # value length: beyond the record
        (12, b"\x01"),  # count of headers: -1
        (12, b"\x02"),  # count of headers: one that is missing
    ],
)
def test_record_that_can_not_be_read_is_a_damage_behind_those_that_can(at: int, new: bytes, tmp_path: Path) -> None:
    body = bytearray(v2_body(*RECORDS))
    body[SECOND_AT + at : SECOND_AT + at + len(new)] = new
    content = batch(BatchHeader(1000, count=3), body=bytes(body))
    dump = dumped_content(content + log(SINGLES[2]).content, tmp_path)
    assert [dump.damage[key] for key in ("kind", "position", "size")] == ["bad-record", 0, 0]
    assert [item["value"] for item in dump.of("record")[:-60]] == ["first"]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(("count", "given"), [(2, 2), (4, 3), (0, 0), (-1, 0), (2**31 - 1, 3)])
def test_other_number_of_records_than_counted_is_a_bad_count(count: int, given: int, tmp_path: Path) -> None:
    content = batch(BatchHeader(1000, count=count), RECORDS)
    dump = dumped_content(content + log(SINGLES[2]).content, tmp_path)
    assert [dump.damage[key] for key in ("kind", "position", "size")] == ["bad-count", 0, 0]
    assert len(dump.of("record")) == given + 60
    assert dump.status == 1


@pytest.mark.usefixtures("kernel")
def test_segment_tells_the_same_problems_batch_by_batch(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(batch(BatchHeader(1000, count=4), RECORDS) + log(SINGLES[2]).content)
    with kseg.open_segment(path) as segment:
        first, *others = segment.batches()
    assert first.problem() is not None
    assert all(other.problem() is None for other in others)


# --- reports of the command -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kernel")
def test_summary_on_stderr_counts_what_was_read_and_lost(singles: Log, tmp_path: Path) -> None:
    start, size = singles.extent(20)
    (tmp_path / NAME).write_bytes(singles.change_bytes(20, 8, bytes(4)))
    ran = run_kseg(["dump", NAME], tmp_path)
    lost = f"bad-length at position {start}: "
    counts = f"{len(singles.content)} bytes, {size} of them lost; batch count is 59, record count is 59"
    first, second = ran.stderr.decode().splitlines()
    assert first.startswith(f"kseg: {NAME}: {lost}")
    assert first.endswith(f", {size} bytes lost; next good offset 1021")
    assert second == f"kseg: {NAME}: {counts}"


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("name", ["classes-2.0.1/v0-gzip", "classes-2.0.1/v1-lz4-create"])
@pytest.mark.parametrize("at", [MAGIC_AT, -1], ids=["unreadable", "bad-crc"])
def test_next_good_offset_is_the_first_record_of_the_following_wrapper(name: str, at: int, tmp_path: Path) -> None:
    """The header of a wrapper has only its last offset; readers that continue there would lose its other records."""
    whole = log(name)
    position, size = whole.extent(0)
    changed = bytearray(whole.content)
    changed[position + at if at > 0 else size - 1] ^= 0x55
    (tmp_path / NAME).write_bytes(changed)
    (tmp_path / "whole.log").write_bytes(whole.content)
    with kseg.open_segment(tmp_path / "whole.log") as segment:
        first = list(segment.batches())[1].base_offset
    ran = run_kseg(["dump", NAME], tmp_path)
    assert f"; next good offset {first}\n" in ran.stderr.decode()
    shallow = run_kseg(["dump", "--shallow", NAME], tmp_path).stderr.decode()
    assert f"; next good offset {first}\n" in shallow
    assert "record count" not in shallow


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("tail", [b"\0" * 50, b"\0" * 7 + b"\x01\0\0"])
def test_bytes_behind_the_last_batch_are_reported_as_the_tool_tells_them(tail: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(log(SINGLES[2]).content + tail)
    ran = run_kseg(["dump", NAME], tmp_path)
    assert ran.stdout.decode().endswith(f"\nFound {len(tail)} invalid bytes at the end of {NAME}\n")
    assert ran.status == int(any(tail))


# --- any damage ------------------------------------------------------------------------------------------------------

SMALL = Log(
    batch(BatchHeader(1000), RECORDS)
    + Message(value=b"old", offset=1003, magic=0).encode()
    + batch(BatchHeader(1004), RECORDS[:2])
    + Message(key=b"k", value=b"newer", offset=1006, magic=1).encode()
    + batch(BatchHeader(1007), RECORDS[:1])
)


def untouched_batches(whole: Log, first: int, last: int, shift: int = 0) -> set[tuple[int, int]]:
    """Return the batches outside bytes first … last - 1 of a log; those after them are moved by `shift` bytes."""
    extents = [whole.extent(number) for number in range(len(whole.starts) - 1)]
    before = {(start, size) for start, size in extents if start + size <= first}
    return before | {(start + shift, size) for start, size in extents if start >= last}


@pytest.mark.usefixtures("kernel")
def test_no_flipped_byte_costs_another_batch(tmp_path: Path) -> None:
    for at in range(len(SMALL.content)):
        content = bytearray(SMALL.content)
        content[at] ^= (0x01, 0x80, 0xFF)[at % 3]
        assert untouched_batches(SMALL, at, at + 1) <= intact(scanned_content(bytes(content), tmp_path)), f"byte {at}"


@pytest.mark.usefixtures("kernel")
def test_no_cut_costs_a_batch_in_front_of_it(tmp_path: Path) -> None:
    for end in range(len(SMALL.content)):
        assert untouched_batches(SMALL, end, len(SMALL.content)) == intact(
            scanned_content(SMALL.content[:end], tmp_path)
        )


@pytest.mark.usefixtures("kernel")
def test_no_inserted_byte_costs_another_batch(tmp_path: Path) -> None:
    for at in range(len(SMALL.content) + 1):
        new = (b"\0", b"\xff", b"\x02" * 30)[at % 3]
        content = SMALL.content[:at] + new + SMALL.content[at:]
        assert untouched_batches(SMALL, at, at, len(new)) <= intact(scanned_content(content, tmp_path)), f"at {at}"


@pytest.mark.usefixtures("kernel")
def test_no_missing_byte_costs_more_than_its_batch(tmp_path: Path) -> None:
    for at in range(len(SMALL.content)):
        items = scanned_content(SMALL.content[:at] + SMALL.content[at + 1 :], tmp_path)
        assert sum(isinstance(item, kseg.Batch) and item.is_valid for item in items) >= len(SMALL.starts) - 2, (
            f"at {at}"
        )


@pytest.mark.usefixtures("kernel")
def test_flipped_length_that_ends_where_another_batch_begins_costs_none_between(tmp_path: Path) -> None:
    whole = log(SINGLES[2])
    (_, first), (second_at, second) = whole.extent(0), whole.extent(1)
    content = whole.change_bytes(0, 8, (first + second - 12).to_bytes(4, "big"))
    assert (second_at, second) in intact(scanned_content(content, tmp_path))


@pytest.mark.usefixtures("kernel")
def test_flipped_length_that_ends_at_the_files_end_costs_no_batch_behind(tmp_path: Path) -> None:
    whole = log(SINGLES[2])
    content = whole.change_bytes(20, 8, (len(whole.content) - whole.starts[20] - 12).to_bytes(4, "big"))
    assert untouched_batches(whole, whole.starts[20], whole.starts[21]) <= intact(scanned_content(content, tmp_path))


Edit = Callable[[bytes], bytes]
BYTES = st.one_of(st.binary(min_size=1, max_size=40), st.integers(1, 200).map(bytes))
SHARES = st.floats(0, 1, exclude_max=True)


def overwrite(share: float, new: bytes) -> Edit:
    return lambda content: content[: int(share * len(content))] + new + content[int(share * len(content)) + len(new) :]


def insert(share: float, new: bytes) -> Edit:
    return lambda content: content[: int(share * len(content))] + new + content[int(share * len(content)) :]


def omit(share: float, size: int) -> Edit:
    return lambda content: content[: int(share * len(content))] + content[int(share * len(content)) + size :]


def cut(share: float) -> Edit:
    return lambda content: content[: int(share * len(content))]


EDITS = st.lists(
    st.one_of(
        st.builds(overwrite, SHARES, BYTES),
        st.builds(insert, SHARES, BYTES),
        st.builds(omit, SHARES, st.integers(1, 300)),
        st.builds(cut, SHARES),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.usefixtures("kernel")
@MANY
@given(content=st.one_of(st.binary(max_size=200), st.integers(0, 100).map(bytes)))
@example(content=b"\0" * 8 + b"\0\0\0\x0e" + b"\0" * 14)
def test_any_bytes_are_accounted_for(content: bytes) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / NAME
        path.write_bytes(content)
        assert dump_items(path).status in (0, 1)
        scan_items(path)


@pytest.mark.usefixtures("kernel")
@MANY
@given(edits=EDITS)
def test_any_damage_is_accounted_for(edits: list[Edit]) -> None:
    content, name = log(MIXED).content, log(MIXED).name
    for edit in edits:
        content = edit(content)
    with TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(content)
        assert dump_items(path).status in (0, 1)
        items = scan_items(path)
        with kseg.open_segment(path) as segment:
            records = list(segment.records(control=None, on_damage="skip"))
    batches = [item for item in items if isinstance(item, kseg.Batch) and item.is_valid]
    assert [record for one in batches for record in one.records(on_damage="skip")] == records


@pytest.mark.usefixtures("kernel")
@MANY
@given(share=SHARES, new=BYTES)
def test_damage_of_one_place_costs_no_other_batch(share: float, new: bytes) -> None:
    whole = log(MIXED)
    at = int(share * len(whole.content))
    with TemporaryDirectory() as directory:
        found = scanned_content(overwrite(share, new)(whole.content)[: len(whole.content)], Path(directory), whole.name)
    assert untouched_batches(whole, at, at + len(new)) <= intact(found)


def test_names_of_golden_files_give_the_offsets_that_the_search_relies_on() -> None:
    logs = [log(case) for case in (*SINGLES, *COMPRESSED)]
    assert all((parse_file_name(one.name).base_offset or 0) <= one.offset(0) for one in logs)
