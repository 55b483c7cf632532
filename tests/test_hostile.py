"""Files made to be expensive: kseg's cost is measured in bytes of memory and in calls, not in time."""

import json
import random
import struct
import sys
import tracemalloc
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from crc32c import crc32c
from zstandard import ZstdCompressor

from kseg.codecs.bodies import decompress
from kseg.codecs.limits import LARGEST_RATIO, LARGEST_RATIO_FREE
from kseg.explain.batch import MOST_DECOMPRESSED
from kseg.explain.items import explain_file
from kseg.explain.walk import MOST_FIELDS
from kseg.formats.codes import Codec, DamageKind
from kseg.log.lookup import lookup_offset
from kseg.log.partition import PartitionLog
from kseg.reading.blocks import Damage
from kseg.reading.bodies import FAILURES_FREE, Slice, with_bodies
from kseg.reading.log_file import LogFile, Run
from tests.kernel.made import BatchHeader, Message, Record, batch, varint
from tests.run import kseg, run_bounded

NAME = f"{0:020}.log"
SMALL = batch(BatchHeader(3), [Record(value=b"small")])
LARGE_SIZE = 40 << 20
"""Larger than the lengths that are trusted before a CRC check, and than a command's memory limit."""
MOST_MEMORY = 12 << 20
"""Bytes of a read buffer's ring, and a margin."""
UNKNOWN_CODEC = 7

pytestmark = pytest.mark.usefixtures("kernel")


def write(directory: Path, content: bytes, size: int | None = None) -> Path:
    """Write a log with a hole after its content, up to `size` bytes; return its path."""
    path = directory / NAME
    with path.open("wb") as file:
        file.write(content)
        file.truncate(size or len(content))
    return path


def claiming(size: int) -> bytes:
    """Return the start of a v2 batch of `size` bytes with a wrong CRC."""
    return with_length(batch(BatchHeader(1), [Record(value=b"not this one")]), size)


def with_length(made: bytes, size: int) -> bytes:
    """Return a batch whose header claims `size` bytes in all; the CRC doesn't cover that."""
    return made[:8] + (size - 12).to_bytes(4, "big") + made[12:]


def with_wrong_crc(made: bytes) -> bytes:
    return made[:17] + bytes(4) + made[21:]


def peak_of(arguments: list[str], directory: Path) -> int:
    """Return the most bytes that Python allocated in a run of kseg."""
    kseg(arguments, directory)  # memory of imports and compilation isn't the file's
    tracemalloc.start()
    try:
        kseg(arguments, directory)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def calls_of(arguments: list[str], directory: Path) -> int:
    """Return Python's calls in a run of kseg, with the steps of its generators."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        kseg(arguments, directory)
    finally:
        sys.setprofile(None)
    return count


# --- false lengths ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["dump"], ["dump", "--print-data-log"], ["dump", "--like", "4.3"], ["dump", "-o", "json"], ["verify"]]
)
def test_false_length_that_ends_with_the_file_is_not_allocated(arguments: list[str], tmp_path: Path) -> None:
    write(tmp_path, claiming(LARGE_SIZE), LARGE_SIZE)
    assert peak_of([*arguments, NAME if "dump" in arguments else "."], tmp_path) < MOST_MEMORY


def items(path: Path, *, as_kafka: bool) -> list[Run | Damage]:
    with LogFile(path) as log_file:
        return list(log_file.runs_as_kafka() if as_kafka else log_file.runs())


@pytest.mark.parametrize("as_kafka", [False, True])
def test_false_length_up_to_the_files_end_is_a_damage_that_says_why(as_kafka: bool, tmp_path: Path) -> None:
    [damage] = items(write(tmp_path, claiming(LARGE_SIZE), LARGE_SIZE), as_kafka=as_kafka)
    assert isinstance(damage, Damage)
    assert (damage.kind, damage.position, damage.size) == (DamageKind.BAD_CRC, 0, LARGE_SIZE)
    assert f"nothing else confirms its size of {LARGE_SIZE} bytes" in damage.detail


@pytest.mark.parametrize("as_kafka", [False, True])
def test_batch_inside_a_large_false_length_is_found(as_kafka: bool, tmp_path: Path) -> None:
    start = claiming(LARGE_SIZE)
    damage, run, tail = items(write(tmp_path, start + SMALL, LARGE_SIZE), as_kafka=as_kafka)
    assert isinstance(damage, Damage)
    assert isinstance(run, Run)
    assert (damage.size, run.position) == (len(start), 0)
    assert isinstance(tail, Damage)
    assert tail.kind is DamageKind.ZERO_TAIL


@pytest.mark.parametrize("as_kafka", [False, True])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_large_batch_with_a_flipped_value_keeps_its_length(magic: int, as_kafka: bool, tmp_path: Path) -> None:
    value = bytes(9 << 20)
    message = Message(value=value, offset=1, magic=magic)
    made = batch(BatchHeader(1), [Record(value=value)]) if magic == 2 else message.encode()
    run, _ = items(write(tmp_path, made[:-1] + b"\x01" + SMALL), as_kafka=as_kafka)
    assert isinstance(run, Run)
    assert list(run.rows) == [0, len(made), 0]


def test_large_compressed_batch_with_a_wrong_crc_is_read_where_others_are_as_large(tmp_path: Path) -> None:
    good = batch(BatchHeader(1, attributes=4), body=bytes(9 << 20))
    bad = with_wrong_crc(batch(BatchHeader(2, attributes=4), body=bytes(9 << 20)))
    sizes = [list(item.rows[:3]) for item in items(write(tmp_path, good + bad + SMALL), as_kafka=False)]
    assert sizes[:2] == [[0, len(good), 1], [0, len(bad), 0]]


def test_batch_for_which_there_is_no_memory_is_one_line_and_status_2(tmp_path: Path) -> None:
    start = with_length(batch(BatchHeader(0)), size := (256 << 20) + 61)
    crc = crc32c(start[21:])
    for _ in range(256):
        crc = crc32c(bytes(1 << 20), crc)
    write(tmp_path, start[:17] + crc.to_bytes(4, "big") + start[21:], size)
    ran = run_bounded(["dump", NAME], tmp_path, memory=250 << 20)
    assert ran.status == 2
    assert ran.stderr == f"kseg: {NAME}: at position 0: there isn't enough memory for {size} bytes\n".encode()


# --- many damages ----------------------------------------------------------------------------------------------------


def test_work_on_batches_of_unknown_codecs_grows_with_their_number(tmp_path: Path) -> None:
    calls = []
    for count in (500, 1000):
        write(tmp_path, b"".join(batch(BatchHeader(n, attributes=UNKNOWN_CODEC), body=b"?") for n in range(count)))
        calls.append(calls_of(["dump", NAME], tmp_path))
    assert calls[1] < 2.2 * calls[0]


# --- bombs -----------------------------------------------------------------------------------------------------------

BOMB = ZstdCompressor().compress(bytes(2 << 20))
"""Zeros that exceed their free size twofold: one MiB is free for every body."""


def unpacked_sizes(directory: Path, count: int) -> list[int]:
    """Return decompressed bytes of each bomb of a log."""
    write(directory, b"".join(batch(BatchHeader(n, attributes=Codec.ZSTD), body=BOMB) for n in range(count)))
    sizes = []
    with LogFile(directory / NAME) as log_file:
        for item in with_bodies(log_file.runs(), log_file.size):
            assert isinstance(item, Slice)
            sizes += [item.wasted] if item.last == item.first + 1 else []
            assert len(item.damages) == item.last - item.first
    return sizes


def test_bombs_become_no_larger_than_their_size_allows_once_many_came_to_nothing(tmp_path: Path) -> None:
    count = 300 + FAILURES_FREE // LARGEST_RATIO_FREE
    sizes = unpacked_sizes(tmp_path, count)
    assert sizes[0] > LARGEST_RATIO_FREE
    assert sizes[-1] <= LARGEST_RATIO * len(BOMB)


def test_few_bombs_each_have_their_mebibyte(tmp_path: Path) -> None:
    assert set(unpacked_sizes(tmp_path, 20)) == {LARGEST_RATIO * len(BOMB) + LARGEST_RATIO_FREE}


@pytest.mark.parametrize("size", [2, 7])
def test_both_kernels_hold_bodies_of_mebibytes_to_their_ratio(size: int, tmp_path: Path) -> None:
    body = ZstdCompressor().compress(bytes(size << 20))
    write(tmp_path, batch(BatchHeader(0, attributes=Codec.ZSTD), body=body))
    ran = kseg(["dump", NAME], tmp_path)
    assert ran.status == 1
    most = LARGEST_RATIO * len(body) + LARGEST_RATIO_FREE
    assert f"bad-body at position 0: zstd: the decompressed size is more than {most} bytes".encode() in ran.stderr


def test_zstd_bomb_gives_little_more_than_it_may(tmp_path: Path) -> None:
    repeated = (((1 << 17) << 3) | 2).to_bytes(3, "little") + b"\0"
    bomb = bytes.fromhex("28b52ffd 00 38") + repeated * 100
    tracemalloc.start()
    try:
        body = decompress(Codec.ZSTD, 2, memoryview(bomb), free=0)
        assert (len(body.data), tracemalloc.get_traced_memory()[1] < 2 << 20) == (LARGEST_RATIO * len(bomb), True)
    finally:
        tracemalloc.stop()


def test_many_tiny_blocks_of_snappy_cost_little_memory() -> None:
    block = bytes.fromhex("00000004 02 04 4141")  # size; a block of 2 bytes, literally
    body = memoryview(b"\x82SNAPPY\0" + bytes(8) + block * 20_000 + b"\0\0\0\x09")
    decompress(Codec.SNAPPY, 2, body)  # memory of the library's import isn't the body's
    tracemalloc.start()
    try:
        assert decompress(Codec.SNAPPY, 2, body).data == b"A" * 40_000
        assert tracemalloc.get_traced_memory()[1] < 3 << 18
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("options", [[], ["--print-data-log"], ["-o", "json"]])
def test_record_of_very_many_headers_costs_little_more_than_its_lines(options: list[str], tmp_path: Path) -> None:
    count = 5_000
    record = Record(value=b"v", headers=[(b"", None)] * count)
    write(tmp_path, batch(BatchHeader(0), [record, record]))
    assert peak_of(["dump", *options, NAME], tmp_path) < (1 << 19) + 2 * count * 25 * 4


def test_thousands_of_headers_are_all_given(tmp_path: Path) -> None:
    headers = [(b"name %d" % n, None if n % 7 == 0 else b"%d" % n * (n % 90)) for n in range(2000)]
    write(tmp_path, batch(BatchHeader(0), [Record(value=b"v", headers=headers)]))
    record = json.loads(kseg(["dump", "-o", "json", NAME], tmp_path).stdout.splitlines()[1])
    given = [(header["key"].encode(), header["value"] and header["value"].encode()) for header in record["headers"]]
    assert given == [(key, "" if value == b"" else value) for key, value in headers]


@pytest.mark.parametrize("last", [b"\0", b"\0\x02", b"\x01\x01"])
def test_record_whose_thousands_of_headers_end_wrongly_is_a_bad_record(last: bytes, tmp_path: Path) -> None:
    content = b"\0\0\0\x01\x01" + varint(2000) + b"\0\x01" * 1999 + last
    write(tmp_path, batch(BatchHeader(0, count=1), body=varint(len(content)) + content))
    assert b"bad-record at position 0: record 0 can't be read" in kseg(["dump", NAME], tmp_path).stderr


def test_long_texts_of_control_characters_are_escaped_without_a_call_for_each(tmp_path: Path) -> None:
    value = (bytes(range(0x20)) + b'"\\\\u0041\x7f/ \xc3\xa9') * 500
    write(tmp_path, batch(BatchHeader(0), [Record(value=value)]))
    arguments = ["dump", "-o", "json", NAME]
    record = json.loads(kseg(arguments, tmp_path).stdout.splitlines()[1])
    assert record["value"].encode() == value
    assert calls_of(arguments, tmp_path) < len(value) // 3


# --- indexes ---------------------------------------------------------------------------------------------------------

BATCHES = 1000
TIME_INDEX = f"{0:020}.timeindex"


def write_back_and_forth(directory: Path, entries: int) -> None:
    """Write a log, and a .timeindex whose entries alternate between its last and its first batch.

    There is no .index.
    """
    write(directory, b"".join(Message(value=b"", offset=n).encode() for n in range(BATCHES)))
    offsets = [BATCHES - 1, 1] * (entries // 2)
    (directory / TIME_INDEX).write_bytes(b"".join(struct.pack(">qi", n, offset) for n, offset in enumerate(offsets)))


def test_entries_of_an_index_that_lead_back_and_forth_soon_cost_little_each(tmp_path: Path) -> None:
    calls = []
    for entries in (200, 1200):
        write_back_and_forth(tmp_path, entries)
        calls.append(calls_of(["dump", TIME_INDEX], tmp_path))
    assert calls[1] - calls[0] < 20 * 1000


def test_entries_that_are_too_far_to_compare_are_printed_and_counted(tmp_path: Path) -> None:
    write_back_and_forth(tmp_path, 1600)
    ran = kseg(["dump", TIME_INDEX], tmp_path)
    assert ran.stdout.count(b"timestamp: ") == 1600
    assert b"batch that is too far away: " in ran.stderr
    assert b"kseg didn't compare them" in ran.stderr


def test_index_of_a_few_entries_back_and_forth_is_compared_whole(tmp_path: Path) -> None:
    write_back_and_forth(tmp_path, 20)
    assert b"not compared" not in kseg(["dump", TIME_INDEX], tmp_path).stderr


# --- other commands --------------------------------------------------------------------------------------------------


def test_explain_reads_no_more_fields_than_anybody_does_but_tells_every_byte(tmp_path: Path) -> None:
    count = MOST_FIELDS // 7
    body = Record(value=b"v").encode() * count
    path = write(tmp_path, batch(BatchHeader(0, count=count), body=body))
    [item] = explain_file(path)
    leaves = [leaf for field in item.fields for leaf in field.leaves()]
    assert len(leaves) < MOST_FIELDS + 20
    assert sum(leaf.size for leaf in leaves) == path.stat().st_size
    assert leaves[-1].meaning == f"more than {MOST_FIELDS} fields; kseg skips these"


def test_explain_says_where_it_ends_a_bomb(tmp_path: Path) -> None:
    compressed = ZstdCompressor().compress(
        Record(value=bytes(MOST_DECOMPRESSED)).encode() + random.Random(1).randbytes(1 << 16)
    )
    path = write(tmp_path, batch(BatchHeader(0, attributes=Codec.ZSTD, count=1), body=compressed))
    [item] = explain_file(path)
    assert [field.problem for field in item.fields if field.body] == [
        f"decompresses to more than {MOST_DECOMPRESSED} bytes; kseg skips the rest"
    ]


@pytest.mark.parametrize("arguments", [["ls", "--deep", "orders-0"], ["reindex", "--to", "new", "orders-0"]])
def test_producer_snapshot_too_short_for_its_header_is_no_snapshot(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    write(tmp_path / "orders-0", batch(BatchHeader(0), [Record(value=b"v")]))
    (tmp_path / "orders-0" / f"{0:020}.snapshot").write_bytes(b"\0\1")
    ran = kseg([*arguments, "-q"], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")


def write_bombs(directory: Path, count: int) -> None:
    directory.mkdir()
    bombs = [batch(BatchHeader(n, attributes=Codec.ZSTD, count=1), body=BOMB) for n in range(count)]
    write(directory, b"".join(bombs))


MANY_BOMBS = 300 + FAILURES_FREE // LARGEST_RATIO_FREE


def test_ls_decompresses_no_more_of_bombs_than_dump(tmp_path: Path) -> None:
    write_bombs(tmp_path / "orders-0", MANY_BOMBS)
    ran = kseg(["ls", "--by", "segment", "--deep", "-o", "json", "orders-0"], tmp_path)
    ratios = [ratio for line in ran.stdout.splitlines() if (ratio := json.loads(line).get("compressionRatio"))]
    assert ratios
    assert max(ratios) * len(BOMB) < LARGEST_RATIO_FREE


def test_lookup_does_not_open_bombs_without_end(tmp_path: Path) -> None:
    write_bombs(tmp_path / "orders-0", MANY_BOMBS)
    [step] = lookup_offset(PartitionLog(tmp_path / "orders-0"), 0).steps
    details = [damage.detail for damage in step.damages]
    assert len(details) == MANY_BOMBS
    assert details[0].startswith("zstd: the decompressed size is more than ")
    assert details[-1] == "not read, since earlier batches took too long"
