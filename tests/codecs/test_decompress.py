"""Decompression: what each codec's own library wrote, what Kafka's writers wrote, and what is damaged or too large."""

import gzip
import random
import tracemalloc
import zlib
from array import array
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.codecs.bodies import Body, decompress, library_functions
from kseg.codecs.limits import limit_for
from kseg.formats.codes import BATCH_HEADER_SIZE, Codec, wrapper_value
from kseg.kernel.contract import new_rows
from tests.kernel.made import BatchHeader, Message, Record, batch
from tests.loops import for_each

if TYPE_CHECKING:
    from kseg.kernel.contract import Rows
    from kseg.kernel.entry_points import Bodies, Columns, Kernel

GZIP, SNAPPY, LZ4, ZSTD = Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD
# Half of it can't be made smaller, the other half nearly vanishes; more than one block of each codec.
DATA = random.Random(1).randbytes(100_000) + b"kafka " * 20_000
XERIAL_HEADER = b"\x82SNAPPY\x00" + b"\0\0\0\1" * 2

Compress = Callable[[bytes], bytes]


def body_of(codec: Codec, content: bytes, magic: int = 2, limit: int = 1 << 30) -> Body:
    return decompress(codec, magic, memoryview(content), limit)


def xerial(data: bytes, block_size: int = 32 << 10) -> bytes:
    """A stream as the xerial library writes it: a header, and blocks after their sizes."""
    return XERIAL_HEADER + b"".join(
        with_size(snappy.compress(data[at : at + block_size])) for at in range(0, len(data), block_size)
    )


def with_size(block: bytes) -> bytes:
    return len(block).to_bytes(4, "big") + block


def lz4_frame(data: bytes, **options: object) -> bytes:
    """A frame as Kafka writes it, unless options say otherwise: independent blocks of 64 KiB, no checksums, no size."""
    kafkas = {"block_linked": False, "store_size": False, "block_size": lz4.frame.BLOCKSIZE_MAX64KB}
    compressed: bytes = lz4.frame.compress(data, **{**kafkas, **options})
    return compressed


def raw_deflate_with_gzip_header(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(data) + compressor.flush()


def zstd_stream(data: bytes) -> bytes:
    """A frame without the size of its content, as a stream's writer makes it."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(data) + compressor.flush()


WRITERS: dict[str, tuple[Codec, Compress]] = {
    "gzip": (GZIP, gzip.compress),
    "gzip by zlib": (GZIP, raw_deflate_with_gzip_header),
    "snappy raw": (SNAPPY, snappy.compress),
    "snappy xerial, 32 KiB": (SNAPPY, xerial),
    "snappy xerial, 1 KiB": (SNAPPY, lambda data: xerial(data, 1 << 10)),
    "lz4": (LZ4, lz4_frame),
    "lz4 with sizes and checksums": (
        LZ4,
        lambda data: lz4_frame(data, store_size=True, content_checksum=True, block_checksum=True),
    ),
    "lz4, 4 MiB blocks": (LZ4, lambda data: lz4_frame(data, block_size=lz4.frame.BLOCKSIZE_MAX4MB)),
    "zstd": (ZSTD, zstandard.ZstdCompressor().compress),
    "zstd without size": (ZSTD, zstd_stream),
    "zstd with checksum": (ZSTD, zstandard.ZstdCompressor(write_checksum=True).compress),
}


def name_and_size(case: Sequence[Any]) -> str:
    """A case whose last part is too long to be shown."""
    return f"{case[:-1]}, {len(case[-1])} bytes"


# --- whole bodies ----------------------------------------------------------------------------------------------------


@for_each("name, data", list(product(WRITERS, [DATA, b"", b"k", bytes(1_000_000), DATA[:65536]])), ids=name_and_size)
def test_what_a_library_compressed_comes_back(name: str, data: bytes) -> None:
    codec, compress = WRITERS[name]
    assert body_of(codec, compress(data)) == Body(data)


@pytest.mark.parametrize("members", [2, 3])
def test_gzip_members_in_a_row_are_one_body(members: int) -> None:
    assert body_of(GZIP, gzip.compress(DATA) * members) == Body(DATA * members)


def test_what_follows_a_gzip_member_and_is_none_is_left_out_as_java_does() -> None:
    assert body_of(GZIP, gzip.compress(DATA) + b"no member") == Body(DATA)


@pytest.mark.parametrize(
    ("behind", "more"),
    [(gzip.compress(b"k"), b"k"), (bytes(7), b""), (b"no member", b"")],
    ids=["a smaller member", "zeros", "text"],
)
def test_what_follows_a_large_gzip_member_is_not_read_for_ever(behind: bytes, more: bytes) -> None:
    """The last bytes tell how much is asked for at first: here less than comes out, so that more calls follow."""
    data = b"compressible " * 100_000
    assert body_of(GZIP, gzip.compress(data) + behind) == Body(data + more)


@pytest.mark.parametrize("members", [500, 20_000])
def test_any_number_of_gzip_members_is_one_body(members: int) -> None:
    assert body_of(GZIP, gzip.compress(b"k") * members) == Body(b"k" * members)


ZSTD_FRAMES = {"with size": zstandard.ZstdCompressor().compress, "without size": zstd_stream}


@for_each("first, second, data", list(product(ZSTD_FRAMES, ZSTD_FRAMES, [b"", b"k", DATA])), ids=name_and_size)
def test_zstd_frames_in_a_row_are_one_body(first: str, second: str, data: bytes) -> None:
    frames = ZSTD_FRAMES[first](data) + ZSTD_FRAMES[second](b"next") + ZSTD_FRAMES[first](DATA)
    assert body_of(ZSTD, frames) == Body(data + b"next" + DATA)


@pytest.mark.parametrize("data", [b"", b"k", DATA], ids=len)
@pytest.mark.parametrize("first", ZSTD_FRAMES)
def test_what_follows_a_zstd_frame_and_is_none_is_a_failure(first: str, data: bytes) -> None:
    body = body_of(ZSTD, ZSTD_FRAMES[first](data) + b"no frame")
    assert body.data == data
    assert body.failure is not None


def test_second_xerial_header_inside_a_stream_is_passed_over() -> None:
    assert body_of(SNAPPY, xerial(b"first") + xerial(b"second")) == Body(b"firstsecond")


def test_xerial_stream_without_blocks_is_empty() -> None:
    assert body_of(SNAPPY, XERIAL_HEADER) == Body(b"")


def test_stored_lz4_blocks_come_back() -> None:
    data = random.Random(2).randbytes(70_000)
    frame = lz4_frame(data)
    assert len(frame) > len(data)
    assert body_of(LZ4, frame) == Body(data)


def test_lz4_blocks_that_depend_on_each_other_are_refused_as_kafka_does() -> None:
    body = body_of(LZ4, lz4_frame(DATA, block_linked=True))
    assert body.failure is not None
    assert "depend" in body.failure


V0_WRONG_CHECKSUM = 0x1A
"""The header checksum that Kafka's writers of v0 store for the descriptor 60 40. Source: docs/reference/formats.md."""


def with_checksum(frame: bytes, checksum: int) -> bytes:
    return frame[:6] + bytes([checksum]) + frame[7:]


def test_lz4_header_checksum_is_not_looked_at_in_v0() -> None:
    frame = with_checksum(lz4_frame(DATA), V0_WRONG_CHECKSUM)
    assert frame[4:6] == b"\x60\x40"
    assert body_of(LZ4, frame, magic=0) == Body(DATA)


def test_lz4_header_checksum_is_not_looked_at_in_v0_behind_a_content_size() -> None:
    frame = bytearray(lz4_frame(DATA, store_size=True))
    frame[14] ^= 0xFF
    assert body_of(LZ4, bytes(frame), magic=0) == Body(DATA)


@pytest.mark.parametrize("magic", [1, 2])
def test_lz4_header_checksum_must_be_right_from_v1_on(magic: int) -> None:
    assert body_of(LZ4, with_checksum(lz4_frame(DATA), V0_WRONG_CHECKSUM), magic).failure is not None


@for_each("codec, magic", list(product([5, 6, 7], [0, 1, 2])))
def test_codecs_that_kafka_does_not_know_are_named(codec: int, magic: int) -> None:
    assert decompress(codec, magic, memoryview(b"body")) == Body(b"", f"unknown codec {codec} in format {magic}")


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_unknown_before_v2(magic: int) -> None:
    assert body_of(ZSTD, zstd_stream(DATA), magic) == Body(b"", f"unknown codec 4 in format {magic}")


# --- damaged bodies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_body_without_bytes_is_a_failure(codec: Codec) -> None:
    body = body_of(codec, b"")
    assert body.data == b""
    assert body.failure is not None


@for_each("name", WRITERS)
def test_body_that_is_cut_gives_its_start_and_a_failure(name: str) -> None:
    codec, compress = WRITERS[name]
    whole = compress(DATA)
    for end in (1, 8, 20, len(whole) // 3, len(whole) - 2):
        body = body_of(codec, whole[:end])
        assert body.failure is not None
        assert DATA.startswith(body.data)


@pytest.mark.parametrize("name", ["gzip", "snappy xerial, 32 KiB", "lz4", "zstd", "zstd without size"])
def test_body_that_is_cut_gives_what_lies_in_front_of_the_cut(name: str) -> None:
    codec, compress = WRITERS[name]
    whole = compress(random.Random(3).randbytes(600_000))
    assert len(body_of(codec, whole[: len(whole) * 9 // 10]).data) > 400_000


@for_each("name", WRITERS)
def test_flipped_byte_never_raises(name: str) -> None:
    codec, compress = WRITERS[name]
    whole = bytearray(compress(DATA[99_000:102_000]))
    for at in range(0, len(whole), max(1, len(whole) // 300)):
        whole[at] ^= 0x55
        body = body_of(codec, bytes(whole))
        assert body.failure is None or isinstance(body.failure, str)
        whole[at] ^= 0x55


@settings(max_examples=200)
@given(codec=st.integers(0, 7), magic=st.integers(0, 2), content=st.binary(max_size=200))
def test_any_bytes_never_raise(codec: int, magic: int, content: bytes) -> None:
    for start in (
        b"",
        b"\x1f\x8b\x08\0\0\0\0\0\0\3",
        XERIAL_HEADER,
        b"\x04\x22\x4d\x18\x60\x40\x82",
        b"\x28\xb5\x2f\xfd",
    ):
        if codec:
            assert isinstance(decompress(codec, magic, memoryview(start + content), 1 << 16), Body)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "limit", "most"),
    [
        (10, 1 << 30, 10_000 + (1 << 20)),
        (1 << 20, 1 << 30, 1_049_624_576),
        (10, 5000, 5000),
        (2 << 20, 1 << 30, 1 << 30),
    ],
)
def test_limit_is_a_thousand_times_the_size_and_a_mebibyte_up_to_the_largest(size: int, limit: int, most: int) -> None:
    assert limit_for(size, limit) == most


@for_each("name, limit", list(product(WRITERS, [0, 1, 1000, 100_000, len(DATA) - 1])))
def test_body_beyond_the_limit_is_cut_there_with_a_message(name: str, limit: int) -> None:
    codec, compress = WRITERS[name]
    body = body_of(codec, compress(DATA), limit=limit)
    assert body.failure is not None
    assert f"the decompressed size is more than {limit} bytes; raise --max-decompressed to read it" in body.failure
    assert DATA[:limit].startswith(body.data)


@for_each("name", WRITERS)
def test_body_of_just_the_limit_is_whole(name: str) -> None:
    codec, compress = WRITERS[name]
    assert body_of(codec, compress(DATA), limit=len(DATA)) == Body(DATA)


def peak_of(codec: Codec, content: bytes, limit: int) -> int:
    """Bytes that Python allocated at most."""
    body_of(codec, content[:20])  # the library's import is not the body's
    tracemalloc.start()
    try:
        body = body_of(codec, content, limit=limit)
        assert body.failure is not None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ZEROS_SIZE = 128 << 20
MOST_MEMORY = 72 << 20
"""The libraries' own buffers, and what zstd makes of the first KiB: some 32 MiB, twice while it is joined."""


def zeros_by(codec: Codec, compress: Compress) -> tuple[Codec, bytes]:
    return codec, compress(bytes(ZEROS_SIZE))


def lz4_claiming_a_tebibyte() -> tuple[Codec, bytes]:
    frame = lz4_frame(DATA[:1000], store_size=True)
    header = frame[:6] + (1 << 40).to_bytes(8, "little")
    return LZ4, next(header + bytes([n]) + frame[15:] for n in range(256) if is_lz4_header(header + bytes([n])))


def is_lz4_header(header: bytes) -> bool:
    try:
        lz4.frame.get_frame_info(header)
    except RuntimeError:
        return False
    return True


SNAPPY_CLAIMING_A_GIBIBYTE = b"\x80\x80\x80\x80\x04" + b"\0" * 100
BOMBS: dict[str, Callable[[], tuple[Codec, bytes]]] = {
    "gzip": lambda: zeros_by(GZIP, lambda data: gzip.compress(data, 1)),
    "lz4": lambda: zeros_by(LZ4, lz4_frame),
    "lz4 with size": lambda: zeros_by(LZ4, lambda data: lz4_frame(data, store_size=True)),
    "lz4 that claims a tebibyte": lz4_claiming_a_tebibyte,
    "zstd": lambda: zeros_by(ZSTD, zstandard.ZstdCompressor().compress),
    "zstd without size": lambda: zeros_by(ZSTD, zstd_stream),
    "snappy that claims a gibibyte": lambda: (SNAPPY, SNAPPY_CLAIMING_A_GIBIBYTE),
    "snappy block that claims a gibibyte": lambda: (SNAPPY, XERIAL_HEADER + with_size(SNAPPY_CLAIMING_A_GIBIBYTE)),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bomb_costs_no_more_than_the_limit(bomb: str) -> None:
    assert peak_of(*BOMBS[bomb](), 1 << 20) < MOST_MEMORY


# --- bodies of wrappers ----------------------------------------------------------------------------------------------


@for_each("magic, key, value", list(product([0, 1], [None, b"", b"key"], [None, b"", b"compressed"])))
def test_wrappers_body_is_its_value(magic: int, key: bytes | None, value: bytes | None) -> None:
    entry = Message(key=key, value=value, magic=magic).encode()
    found = wrapper_value(memoryview(entry))
    assert (None if found is None else bytes(found)) == value


@pytest.mark.parametrize("magic", [0, 1])
def test_value_beyond_its_entry_is_no_body(magic: int) -> None:
    entry = Message(value=b"compressed", magic=magic).encode()
    assert wrapper_value(memoryview(entry[:-1])) is None


# --- the kernel's own way to the libraries ---------------------------------------------------------------------------

RECORDS = b"".join(Record(value=b"%d " % number * (number % 50), offset_delta=number).encode() for number in range(40))
FUNCTIONS = library_functions(1 << LZ4 | 1 << ZSTD)


def in_batch(frame: bytes, count: int = 40, codec: Codec = LZ4) -> bytes:
    return batch(BatchHeader(attributes=codec, count=count), body=frame)


def in_wrapper(frame: bytes, magic: int) -> bytes:
    return Message(value=frame, offset=9, magic=magic, attributes=LZ4).encode()


def what_is_seen(columns: "Columns") -> tuple[object, ...]:
    names = ("count", "problems", "offsets", "value_offsets", "value_validity", "value_data")
    return tuple(value if isinstance(value := getattr(columns, name), int | list) else bytes(value) for name in names)


def decompress_file(
    kernel: "Kernel", content: bytes
) -> "tuple[Bodies, tuple[int, list[tuple[int, int, int, int, int]]]]":
    """The kernel's bodies of a file of one batch, and what it says of them."""
    bodies: Bodies = kernel.Bodies(1)
    return bodies, bodies.decompress(memoryview(content), one_row(content), 0, FUNCTIONS, 1 << 30, 1 << 40)


def one_row(content: bytes) -> "Rows":
    rows = new_rows(1)
    rows[1], rows[2] = len(content), 1
    return rows


def same_as_library(kernel: "Kernel", content: bytes, magic: int, frame: bytes, codec: Codec = LZ4) -> bool:
    """Return True if the kernel leaves a frame to the library, or returns the same bytes."""
    own, (end, left) = decompress_file(kernel, content)
    if left:
        [(row, left_codec, left_magic, start, stop)] = left
        return (end, row, left_codec, left_magic, content[start:stop]) == (1, 0, codec, magic, frame)
    body = body_of(codec, frame, magic)
    own_columns = kernel.columns(memoryview(content), one_row(content), 0, 1, 0, own)
    library_columns = kernel.columns(memoryview(content), one_row(content), 0, 1, 0, [body.data])
    return body.failure is None and what_is_seen(own_columns) == what_is_seen(library_columns)


def test_libraries_show_the_functions_that_the_kernel_calls() -> None:
    assert 0 not in FUNCTIONS


@pytest.mark.parametrize(
    ("codec", "frame"),
    [(LZ4, lz4_frame(RECORDS)), (ZSTD, zstd_stream(RECORDS)), (ZSTD, ZSTD_FRAMES["with size"](RECORDS))],
)
def test_kernel_takes_the_frames_that_kafka_writes(kernel: "Kernel", codec: Codec, frame: bytes) -> None:
    content = in_batch(frame, codec=codec)
    _, told = decompress_file(kernel, content)
    left = (0, codec, 2, BATCH_HEADER_SIZE, len(content))
    assert told == (1, [] if kernel.NAME == "fast" else [left])  # the twin leaves all to the library


@for_each("codec, magic", list(product([GZIP, SNAPPY, 5, 7], [2, 3])))
def test_kernel_leaves_other_codecs_to_the_libraries(kernel: "Kernel", codec: Codec, magic: int) -> None:
    content = bytearray(in_batch(b"body", codec=codec))
    content[16] = magic
    assert decompress_file(kernel, bytes(content))[1] == (1, [(0, codec, magic, BATCH_HEADER_SIZE, len(content))])


def test_kernel_leaves_no_uncompressed_row(kernel: "Kernel") -> None:
    assert decompress_file(kernel, batch(BatchHeader(), [Record()]))[1] == (1, [])


@for_each("magic, size", list(product([0, 1], [0, 1, 3, 4, 7, 8, 11, 12])))
def test_wrapper_without_a_value_is_left_without_bytes(kernel: "Kernel", magic: int, size: int) -> None:
    entry = Message(value=None, offset=9, magic=magic, attributes=LZ4).encode()
    assert decompress_file(kernel, entry)[1] == (1, [(0, LZ4, magic, -1, -1)])
    cut = entry[: max(len(entry) - size, 26)]  # no entry is smaller
    assert decompress_file(kernel, cut)[1] == (1, [(0, LZ4, magic, -1, -1)])


@for_each(
    "name, level, data",
    list(product(ZSTD_FRAMES, [1, 3, 19], [b"", b"k", RECORDS, Record(value=DATA).encode()])),
    ids=name_and_size,
)
def test_kernel_reads_zstd_as_the_library_does(kernel: "Kernel", name: str, data: bytes, level: int) -> None:
    write = ZSTD_FRAMES[name]
    one = zstandard.ZstdCompressor(level=level, write_checksum=level == 3).compress(data)
    for body in (write(data), one, one + one, one + write(data), one + b"more"):
        assert same_as_library(kernel, in_batch(body, codec=ZSTD), 2, body, ZSTD)


@pytest.mark.parametrize("write", ZSTD_FRAMES.values(), ids=ZSTD_FRAMES)
def test_kernel_reads_damaged_zstd_as_the_library_does(kernel: "Kernel", write: Compress) -> None:
    whole = write(RECORDS)
    damaged = [whole[:end] for end in range(1, len(whole))]
    damaged += [
        whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :] for at in range(len(whole)) for bits in (1, 0x80)
    ]
    wrong = [body for body in damaged if not same_as_library(kernel, in_batch(body, codec=ZSTD), 2, body, ZSTD)]
    assert wrong == []


def test_zstd_in_formats_that_know_none_is_left_to_the_library(kernel: "Kernel") -> None:
    frame = zstd_stream(RECORDS)
    entry = Message(value=frame, offset=9, magic=1, attributes=ZSTD).encode()
    assert decompress_file(kernel, entry)[1] == (1, [(0, ZSTD, 1, len(entry) - len(frame), len(entry))])


@pytest.mark.parametrize(("codec", "write"), [(LZ4, lz4_frame), (ZSTD, zstd_stream)])
def test_kernel_leaves_what_becomes_too_large_to_the_library(kernel: "Kernel", codec: Codec, write: Compress) -> None:
    content = in_batch(write(bytes(300_000)), codec=codec)
    told = kernel.Bodies(1).decompress(memoryview(content), one_row(content), 0, FUNCTIONS, 200_000, 1 << 30)
    assert told == (1, [(0, codec, 2, BATCH_HEADER_SIZE, len(content))])


def test_kernel_ends_with_the_row_with_which_there_is_enough(kernel: "Kernel") -> None:
    one = in_batch(lz4_frame(bytes(1000)))
    rows = new_rows(3)
    for row in range(3):
        rows[3 * row : 3 * row + 3] = array("q", (row * len(one), len(one), 1))
    end, left = kernel.Bodies(3).decompress(memoryview(one * 3), rows, 0, FUNCTIONS, 1 << 30, 1500)
    assert (end, len(left)) == ((2, 0) if kernel.NAME == "fast" else (3, 3))


FRAMES = {
    "usual": lz4_frame(RECORDS),
    "with size": lz4_frame(RECORDS, store_size=True),
    "with checksums": lz4_frame(RECORDS, content_checksum=True, block_checksum=True),
    "linked": lz4_frame(RECORDS, block_linked=True),
    "of large blocks": lz4_frame(RECORDS, block_size=lz4.frame.BLOCKSIZE_MAX1MB),
    "of v0": with_checksum(lz4_frame(RECORDS), V0_WRONG_CHECKSUM),
    "with bytes after it": lz4_frame(RECORDS) + b"more",
    "two": lz4_frame(RECORDS) + lz4_frame(RECORDS),
    "empty": lz4_frame(b""),
    "with an empty stored block": lz4_frame(RECORDS)[:7] + b"\0\0\0\x80" + lz4_frame(RECORDS)[7:],
    "of several blocks": lz4_frame(Record(value=DATA).encode()),
}


@for_each("name", FRAMES)
def test_kernel_reads_a_frame_as_the_library_does(kernel: "Kernel", name: str) -> None:
    frame = FRAMES[name]
    assert same_as_library(kernel, in_batch(frame), 2, frame)


@for_each("name, magic", list(product(FRAMES, [0, 1])))
def test_kernel_reads_a_wrappers_frame_as_the_library_does(kernel: "Kernel", name: str, magic: int) -> None:
    frame = FRAMES[name]
    assert same_as_library(kernel, in_wrapper(frame, magic), magic, frame)


def test_kernel_reads_every_cut_of_a_frame_as_the_library_does(kernel: "Kernel") -> None:
    whole = FRAMES["usual"]
    wrong = [end for end in range(len(whole)) if not same_as_library(kernel, in_batch(whole[:end]), 2, whole[:end])]
    assert wrong == []


def test_kernel_reads_every_flipped_byte_of_a_frame_as_the_library_does(kernel: "Kernel") -> None:
    wrong = []
    for at in range(len(FRAMES["usual"])):
        for bits in (0x01, 0x10, 0x80, 0xFF):
            frame = bytearray(FRAMES["usual"])
            frame[at] ^= bits
            if not same_as_library(kernel, in_batch(bytes(frame)), 2, bytes(frame)):
                wrong.append((at, bits))
    assert wrong == []


@settings(max_examples=60)
@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.builds(lambda piece, times: piece * times, st.binary(max_size=9), st.integers(0, 20_000)),
    ),
    level=st.sampled_from([0, 3, 9, 16]),
)
def test_kernel_reads_any_frame_of_kafkas_kind_as_the_library_does(kernel: "Kernel", data: bytes, level: int) -> None:
    frame = lz4_frame(Record(value=data).encode(), compression_level=level)
    assert same_as_library(kernel, in_batch(frame, 1), 2, frame)
