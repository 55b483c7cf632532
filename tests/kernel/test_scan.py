"""Results of a scan, and of a search."""

import random
import struct
from typing import TYPE_CHECKING

import pytest
from crc32c import crc32c

from kseg.kernel.contract import Stop, new_rows
from tests.kernel.made import BatchHeader, Message, Record, batch
from tests.loops import for_each

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Kernel

V2 = batch(BatchHeader(base_offset=5), [Record(b"k", b"v")])
V1 = Message(b"k", b"v", offset=6).encode()
V0 = Message(b"k", b"v", offset=7, magic=0).encode()


def with_byte(content: bytes, at: int, byte: int) -> bytes:
    return content[:at] + bytes([byte]) + content[at + 1 :]


def with_length(content: bytes, length: int) -> bytes:
    return content[:8] + struct.pack(">i", length) + content[12:]


def scan(kernel: "Kernel", content: bytes, capacity: int = 9) -> tuple[int, int, int, int]:
    return kernel.scan(memoryview(content), 0, len(content), new_rows(capacity), 0)


def test_batches_of_all_magics_become_rows(kernel: "Kernel") -> None:
    content = b"xyz" + V2 + V1 + V0
    rows = new_rows(4)
    count, end, stop, codecs = kernel.scan(memoryview(content), 3, len(content), rows, 1)
    assert (count, end, stop, codecs) == (4, len(content), Stop.END, 1)
    starts = (3, 3 + len(V2), 3 + len(V2) + len(V1))
    assert rows.tolist() == [0, 0, 0, *(starts[0], len(V2), 1), *(starts[1], len(V1), 1), *(starts[2], len(V0), 1)]


def test_codecs_met_are_reported(kernel: "Kernel") -> None:
    content = batch(BatchHeader(attributes=3), body=b"lz4?") + Message(None, b"gzip?", attributes=1).encode()
    assert scan(kernel, content)[3] == 1 << 3 | 1 << 1


@for_each(
    "content, stop",
    [
        (b"", Stop.END),
        (V2[:16], Stop.END),
        (V2[:-1], Stop.END),
        (with_byte(V2[:-1], 16, 3), Stop.END),
        (with_length(V2, 48), Stop.BAD_LENGTH),
        (with_length(V1, 21), Stop.BAD_LENGTH),
        (with_length(V0, 13), Stop.BAD_LENGTH),
        (with_length(V2, -1), Stop.BAD_LENGTH),
        (with_length(V0[:17], 13), Stop.BAD_LENGTH),
        (bytes(40), Stop.BAD_LENGTH),
        (with_byte(V2, 16, 3), Stop.BAD_MAGIC),
        (with_byte(V2, 16, 255), Stop.BAD_MAGIC),
        (with_byte(V2, len(V2) - 1, 1), Stop.BAD_CRC),
        (with_byte(V1, len(V1) - 1, 1), Stop.BAD_CRC),
    ],
)
def test_a_scan_says_why_it_stopped(kernel: "Kernel", content: bytes, stop: Stop) -> None:
    assert scan(kernel, V1 + content)[:3] == (1, len(V1), stop)


def test_a_scan_stops_where_the_table_is_full(kernel: "Kernel") -> None:
    assert scan(kernel, V1 + V2 + V0, capacity=2)[:3] == (2, len(V1) + len(V2), Stop.FULL)


@pytest.mark.parametrize("content", [V2, V1, V0], ids=["v2", "v1", "v0"])
def test_a_search_finds_a_header_between_other_bytes(kernel: "Kernel", content: bytes) -> None:
    around = b"\xff\0\0\0\0" * 20
    whole = memoryview(around + content + around)
    assert kernel.find_header(whole, 0, len(whole), 0, len(whole)) == len(around)
    assert kernel.find_header(whole, len(around) + 1, len(whole), 0, len(whole)) == -1


@pytest.mark.parametrize("zeros", [11, 900, 1100, 5000])
@pytest.mark.parametrize("base_offset", [0, 5])
def test_a_search_finds_a_header_before_and_behind_zeros(kernel: "Kernel", zeros: int, base_offset: int) -> None:
    content = memoryview(b"\1" + V2 + bytes(zeros) + V2)
    assert kernel.find_header(content, 0, len(content), base_offset, len(content)) == 1
    assert kernel.find_header(content, 2, len(content), base_offset, len(content)) == 1 + len(V2) + zeros


@pytest.mark.parametrize(
    ("base_offset", "room", "found"),
    [(5, len(V2), 0), (6, len(V2), -1), (5 - 2**31, len(V2), 0), (4 - 2**31, len(V2), -1), (5, len(V2) - 1, -1)],
)
def test_a_header_is_plausible_near_its_base_and_in_its_room(
    kernel: "Kernel", base_offset: int, room: int, found: int
) -> None:
    assert kernel.find_header(memoryview(V2), 0, len(V2), base_offset, room) == found


@pytest.mark.parametrize("base_offset", [2**32 - 3, 2**32, 2**63 - 2])
def test_a_header_is_found_whatever_the_upper_half_of_its_offset(kernel: "Kernel", base_offset: int) -> None:
    content = b"\1" * 9 + batch(BatchHeader(base_offset=base_offset + 1))
    assert kernel.find_header(memoryview(content), 0, len(content), base_offset, len(content)) == 9


@pytest.mark.parametrize(("at", "byte"), [(16, 3), (21, 1), (22, 0x80)])
def test_a_header_with_a_wrong_magic_or_reserved_bits_is_not_plausible(kernel: "Kernel", at: int, byte: int) -> None:
    content = memoryview(with_byte(V2, at, byte))
    assert kernel.find_header(content, 0, 26, 0, len(content)) == -1


def test_a_checksum_is_the_one_of_the_standard(kernel: "Kernel") -> None:
    assert kernel.crc32c(memoryview(b"123456789")) == 0xE3069283
    assert kernel.crc32c(memoryview(b"")) == 0


@for_each("size", [*range(80), *range(1500, 1560), 3071, 3072, 4609, 1 << 16])
def test_a_checksum_is_the_librarys_whatever_the_size(kernel: "Kernel", size: int) -> None:
    content = random.Random(size).randbytes(size + 1)
    assert kernel.crc32c(memoryview(content)[1:]) == crc32c(content[1:])


@for_each("size", [*range(200), 4609, 1 << 16])
def test_a_message_of_any_size_has_its_checksum(kernel: "Kernel", size: int) -> None:
    content = b"x" + Message(None, random.Random(size).randbytes(size), magic=0).encode()
    assert kernel.scan(memoryview(content), 1, len(content), new_rows(1), 0)[:3] == (1, len(content), Stop.END)


@pytest.mark.parametrize("bit", range(8))
def test_each_bit_of_a_message_counts_for_its_checksum(kernel: "Kernel", bit: int) -> None:
    content = Message(None, bytes(range(250))).encode()
    changed = [with_byte(content, at, content[at] ^ 1 << bit) for at in range(17, len(content))]
    assert {scan(kernel, each)[2] for each in changed} == {Stop.BAD_CRC}


def test_a_scan_beyond_its_buffer_is_refused(kernel: "Kernel") -> None:
    with pytest.raises(IndexError):
        kernel.scan(memoryview(V2), 0, len(V2) + 1, new_rows(1), 0)
    with pytest.raises(IndexError):
        kernel.find_header(memoryview(V2), -1, len(V2), 0, len(V2))
