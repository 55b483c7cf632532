"""Damage: its reports, and reading after it."""

import gzip
from pathlib import Path

import pytest

import kseg
from tests.damaged_logs import (
    ATTRIBUTES_AT,
    BODY_AT,
    COMPRESSED,
    LEAST_SIZE_FIELD,
    MAGIC_AT,
    NAME,
    RECORDS,
    SINGLES,
    Log,
    dumped_content,
    log,
    place,
    scanned_content,
    the_damage,
)
from tests.kernel.made import BatchHeader, Message, Record, batch
from tests.run import kseg as run_kseg


@pytest.fixture(params=SINGLES)
def singles(request: pytest.FixtureRequest) -> Log:
    """Return a log of sixty batches of one record, in each format."""
    return log(request.param)


@pytest.fixture(params=COMPRESSED)
def compressed_log(request: pytest.FixtureRequest) -> Log:
    """Return a log of three compressed batches, of each format and codec."""
    return log(request.param)


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
