"""LogFile: the files it opens, its reading, and the cost of reading, whatever a file claims."""

import os
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from kseg.errors import OpenError
from kseg.formats.codes import DamageKind
from kseg.kernel.contract import ROW, SIZE, START
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile, Run
from tests import golden
from tests.kernel.made import BatchHeader, Message, Record, batch
from tests.loops import for_each

SAMPLE = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
NAME = f"{0:020}.log"
LARGE = 3 << 20
"""Larger than one read, and than the cache."""
HEADER_CLAIMING_GIB = (5).to_bytes(8, "big") + (1 << 30).to_bytes(4, "big") + b"\0\0\0\0\x02" + bytes(44)


def write(directory: Path, content: bytes, name: str = NAME) -> Path:
    path = directory / name
    path.write_bytes(content)
    return path


def extents(items: Iterator[Run | Damage]) -> list[tuple[int, int]]:
    """Return position and size of each batch and damage."""
    found = []
    for item in items:
        if isinstance(item, Damage):
            found.append((item.position, item.size))
            continue
        starts, sizes = (item.rows[column : item.row_count * ROW : ROW] for column in (START, SIZE))
        found += [(item.position + start, size) for start, size in zip(starts, sizes, strict=True)]
    return found


def read(path: Path, start: int = 0, limit: int | None = None) -> list[tuple[int, int]]:
    with LogFile(path, limit) as log_file:
        return extents(log_file.runs(start))


# --- opening ---------------------------------------------------------------------------------------------------------


def test_missing_file_can_not_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OpenError, match=r"absent\.log: can't be opened: No such file"):
        LogFile(tmp_path / "absent.log")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_can_not_be_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / NAME)
    with pytest.raises(OpenError, match=NAME), LogFile(tmp_path / NAME) as log_file:
        list(log_file.runs())


@pytest.mark.parametrize(
    ("name", "base_offset"),
    [
        ("00000000000000203000.log", 203000),
        ("00000000000000203000.log.deleted", 203000),
        ("message.log", None),
        ("00000000000000000100-0000000001.checkpoint", None),
    ],
)
def test_base_offset_is_that_of_a_segments_name(name: str, base_offset: int | None, tmp_path: Path) -> None:
    with LogFile(write(tmp_path, b"", name)) as log_file:
        assert log_file.base_offset == base_offset


def test_size_is_the_files_and_no_more_than_the_limit(tmp_path: Path) -> None:
    path = write(tmp_path, bytes(100))
    with LogFile(path) as whole, LogFile(path, 60) as part, LogFile(path, 200) as more:
        assert [(one.file_size, one.size) for one in (whole, part, more)] == [(100, 100), (100, 60), (100, 100)]


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kernel")
def test_batches_follow_one_another_up_to_the_end() -> None:
    found = read(SAMPLE)
    assert sum(size for _, size in found) == SAMPLE.stat().st_size
    assert [position for position, _ in found] == [sum(size for _, size in found[:i]) for i in range(len(found))]


@pytest.mark.usefixtures("kernel")
def test_reading_starts_at_any_batch() -> None:
    found = read(SAMPLE)
    assert read(SAMPLE, found[7][0]) == found[7:]


@pytest.mark.usefixtures("kernel")
def test_limit_keeps_the_batches_that_lie_in_front_of_it() -> None:
    found = read(SAMPLE)
    position, size = found[7]
    assert read(SAMPLE, limit=position + size) == found[:8]
    assert read(SAMPLE, limit=position + size + 30)[:8] == found[:8]


@pytest.mark.usefixtures("kernel")
def test_batch_larger_than_what_is_read_at_once_is_one_batch(tmp_path: Path) -> None:
    large = batch(BatchHeader(1), [Record(value=bytes(LARGE))])
    small = batch(BatchHeader(0), [Record(value=b"small")])
    path = write(tmp_path, small + large + small)
    sizes = [len(small), len(large), len(small)]
    assert [size for _, size in read(path)] == sizes


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_beyond_the_trusted_size_is_one_batch(magic: int, tmp_path: Path) -> None:
    large = Message(value=bytes(9 << 20), offset=1, magic=magic).encode()
    small = Message(value=b"small", offset=2, magic=magic).encode()
    assert [size for _, size in read(write(tmp_path, large + small))] == [len(large), len(small)]


@pytest.mark.usefixtures("kernel")
def test_large_batch_with_a_wrong_crc_is_left_behind(tmp_path: Path) -> None:
    large = bytearray(batch(BatchHeader(1), [Record(value=bytes(9 << 20))]))
    large[100] ^= 1
    small = batch(BatchHeader(2), [Record(value=b"small")])
    path = write(tmp_path, bytes(large) + small)
    with LogFile(path) as log_file:
        items = list(log_file.runs())
    assert extents(iter(items)) == [(0, len(large)), (len(large), len(small))]


@pytest.mark.usefixtures("kernel")
def test_run_stays_as_it_is_until_seven_more_were_taken(tmp_path: Path) -> None:
    content = b"".join(batch(BatchHeader(n), [Record(value=b"%9999d" % n)]) for n in range(950))
    with LogFile(write(tmp_path, content)) as log_file:
        first, *others = islice(log_file.runs(), 8)
        assert len(others) == 7
        assert isinstance(first, Run)
        assert extents(iter([first]))[:2] == [(0, len(content) // 950), (len(content) // 950, len(content) // 950)]
        assert content.startswith(first.buffer.tobytes())


@pytest.mark.usefixtures("kernel")
def test_file_that_is_cut_while_it_is_read_ends_there(tmp_path: Path) -> None:
    one = batch(BatchHeader(1), [Record(value=bytes(1000))])
    path = write(tmp_path, one * 4000)
    with LogFile(path) as log_file:
        items = log_file.runs()
        first = extents(iter([next(items)]))
        os.truncate(path, 0)
        [cut] = items
    end = sum(first[-1])
    assert isinstance(cut, Damage)
    assert (cut.kind, cut.position, cut.size) == (DamageKind.TORN_TAIL, end, 4000 * len(one) - end)


@pytest.mark.usefixtures("kernel")
def test_file_that_grows_while_it_is_read_ends_where_it_ended_at_opening(tmp_path: Path) -> None:
    one = batch(BatchHeader(1), [Record(value=bytes(1000))])
    path = write(tmp_path, one * 2000)
    with LogFile(path) as log_file, path.open("ab") as growing:
        items = log_file.runs()
        first = extents(iter([next(items)]))
        growing.write(one * 10)
        growing.flush()
        assert len(first) + len(extents(items)) == 2000


# --- Kafka's walk
# ------------------------------------------------------------------------------------------------------


def as_kafka(path: Path) -> list[tuple[int, int]]:
    with LogFile(path) as log_file:
        return extents(log_file.runs_as_kafka())


@pytest.mark.usefixtures("kernel")
@for_each("path", [SAMPLE, *golden.files(".log", golden.ROOT)[:20]])
def test_healthy_files_are_the_same_to_kafka(path: Path) -> None:
    assert as_kafka(path) == read(path)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("at", "new"),
    [
        (8, (87 - 12).to_bytes(4, "big")),  # length: one more than it has, so that the CRC fails and no header follows
        (16, b"\x07"),  # magic
        (30, b"\xaa"),  # a byte that the CRC covers
    ],
)
def test_kafka_takes_every_length_within_the_file(at: int, new: bytes, tmp_path: Path) -> None:
    first, second = (batch(BatchHeader(number), [Record(value=b"0123456789abcdef")]) for number in range(2))
    changed = first[:at] + new + first[at + len(new) :]
    size = int.from_bytes(changed[8:12], "big") + 12
    assert as_kafka(write(tmp_path, changed + second))[0] == (0, size)


@pytest.mark.usefixtures("kernel")
def test_where_kafka_would_fail_reading_goes_on_at_the_next_batch(tmp_path: Path) -> None:
    one = batch(BatchHeader(1), [Record(value=b"value")])
    broken = one[:8] + bytes(4) + one[12:]
    assert as_kafka(write(tmp_path, broken + one)) == [(0, len(one)), (len(one), len(one))]


# --- cost of reading --------------------------------------------------------------------------------------------------


def peak_of(path: Path) -> int:
    """Return the most bytes that Python allocated while a file was read."""
    with LogFile(path) as log_file:
        list(log_file.runs())  # memory of imports and compilation isn't the file's
    tracemalloc.start()
    try:
        with LogFile(path) as log_file:
            for _ in log_file.runs():
                pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("kernel")
def test_length_of_a_gibibyte_in_a_small_file_costs_little(tmp_path: Path) -> None:
    assert peak_of(write(tmp_path, HEADER_CLAIMING_GIB + bytes(range(1, 251)) * 20)) < 4 << 20


@pytest.mark.usefixtures("kernel")
def test_length_of_most_of_a_large_file_is_not_believed_before_its_crc(tmp_path: Path) -> None:
    size = 24 << 20
    header = (5).to_bytes(8, "big") + (size - 100).to_bytes(4, "big") + b"\0\0\0\0\x02" + bytes(44)
    path = write(tmp_path, header + b"\x07")
    os.truncate(path, size)  # a hole: nothing is written
    assert peak_of(path) < 12 << 20


@pytest.mark.usefixtures("kernel")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    one = batch(BatchHeader(1), [Record(value=bytes(16000))])
    small, large = write(tmp_path, one * 600, f"{1:020}.log"), write(tmp_path, one * 1200, f"{2:020}.log")
    assert peak_of(large) < peak_of(small) + (1 << 20)


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the sizes of reads from files, as reported by the system."""
    counted: list[int] = []
    pread, preadv = os.pread, os.preadv

    def counting_pread(descriptor: int, size: int, position: int) -> bytes:
        got = pread(descriptor, size, position)
        counted.append(len(got))
        return got

    def counting_preadv(descriptor: int, buffers: list[memoryview], position: int) -> int:
        counted.append(preadv(descriptor, buffers, position))
        return counted[-1]

    monkeypatch.setattr(os, "pread", counting_pread)
    monkeypatch.setattr(os, "preadv", counting_preadv)
    return counted


SLOW_SIZE = 64 << 10
MOST_READ = 100
"""Most times that a file's size may be read, for any bytes."""
INTACT = Message(offset=5, magic=0).encode()


def false_header(claimed: int) -> bytes:
    """Return a plausible header of a v0 message of this size whose CRC is wrong."""
    return (3).to_bytes(8, "big") + (claimed - 12).to_bytes(4, "big") + b"\1\2\3\4\0\0"


def headers_alone() -> bytes:
    """Return headers that each claim nearly all of the rest."""
    content = bytearray()
    while len(content) < SLOW_SIZE:
        content += false_header(SLOW_SIZE + 100 - len(content)) + bytes(8)
    return bytes(content) + b"\7" * 200


def headers_between_batches() -> bytes:
    """Return batches with false headers between them, each of which starts a search."""
    content = bytearray()
    while len(content) < SLOW_SIZE:
        for _ in range(20):
            content += false_header(SLOW_SIZE + 1500 - len(content))
        content += INTACT
    return bytes(content) + b"\7" * 2000


def header_before_every_batch() -> bytes:
    """Return batches with a header before each, so that the CRC of nearly all of the rest is needed each time."""
    content = bytearray()
    while len(content) < SLOW_SIZE:
        content += false_header(SLOW_SIZE + 200 - len(content)) + bytes(8) + INTACT
    return bytes(content) + b"\7" * 300


def garbage_between_batches() -> bytes:
    return (INTACT + b"\xff" * 8) * (SLOW_SIZE // (len(INTACT) + 8))


def zeros_between_batches() -> bytes:
    return (INTACT + bytes(40)) * (SLOW_SIZE // (len(INTACT) + 40))


def batches_with_wrong_crcs() -> bytes:
    wrong = INTACT[:12] + b"\1\2\3\4" + INTACT[16:]
    return wrong * (SLOW_SIZE // len(wrong))


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    "made",
    [
        headers_alone,
        headers_between_batches,
        header_before_every_batch,
        garbage_between_batches,
        zeros_between_batches,
        batches_with_wrong_crcs,
    ],
    ids=lambda made: made.__name__,
)
def test_bytes_made_to_be_slow_are_read_a_bounded_number_of_times(
    made: Callable[[], bytes], bytes_read: list[int], tmp_path: Path
) -> None:
    path = write(tmp_path, made())
    found = read(path)
    assert sum(size for _, size in found) == path.stat().st_size
    assert sum(bytes_read) / path.stat().st_size < MOST_READ


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("between", [b"\xff" * 8, bytes(40), b"\xff" * 5000], ids=len)
def test_batches_between_many_damages_are_all_found(between: bytes, tmp_path: Path) -> None:
    count = 1000
    with LogFile(write(tmp_path, (INTACT + between) * count)) as log_file:
        items = list(log_file.runs())
    assert sum(item.row_count for item in items if isinstance(item, Run)) == count


@pytest.mark.usefixtures("kernel")
def test_batches_between_many_wrong_crcs_are_all_found(tmp_path: Path) -> None:
    good, other = (batch(BatchHeader(number), [Record(value=bytes(1000))]) for number in range(2))
    wrong = other[:-2] + b"\1" + other[-1:]
    with LogFile(write(tmp_path, (good + wrong) * 1000)) as log_file:
        runs = list(log_file.runs())
    assert len(extents(iter(runs))) == 2000
    assert all(isinstance(item, Run) for item in runs)


@pytest.mark.usefixtures("kernel")
def test_healthy_file_is_read_once(bytes_read: list[int]) -> None:
    read(SAMPLE)
    assert sum(bytes_read) == SAMPLE.stat().st_size
