"""Bodies are compressed as Java writes them."""

import lz4.block
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseg.codecs.bodies import compress, decompress
from kseg.errors import RecordError
from kseg.formats.codes import Codec

CODECS = [codec for codec in Codec if codec]


@pytest.mark.parametrize("codec", CODECS)
@given(st.binary(min_size=1, max_size=1000) | st.binary(min_size=1, max_size=9).map(lambda piece: piece * 20_000))
def test_what_is_compressed_comes_back(codec: Codec, content: bytes) -> None:
    for magic in (0, 1, 2) if codec != Codec.ZSTD else (2,):
        body = decompress(codec, magic, memoryview(compress(codec, content, magic=magic)))
        assert (body.data, body.failure) == (content, None)


def test_snappy_is_a_xerial_stream_of_blocks_of_32_kib() -> None:
    stream = compress(Codec.SNAPPY, bytes(40_000))
    assert stream[:16] == b"\x82SNAPPY\0" + bytes.fromhex("00000001 00000001")
    size = int.from_bytes(stream[16:20], "big")
    assert stream[20:23] == bytes.fromhex("80 80 02")  # varint 32768
    assert stream[24 + size : 26 + size] == bytes.fromhex("c0 38")  # varint 7232, the rest


def test_lz4_is_a_frame_of_blocks_of_64_kib() -> None:
    frame = compress(Codec.LZ4, bytes(100_000))
    first = int.from_bytes(frame[7:11], "little")
    second = int.from_bytes(frame[11 + first : 15 + first], "little")
    assert lz4.block.decompress(frame[11 : 11 + first], uncompressed_size=1 << 16) == bytes(1 << 16)
    assert frame[15 + first + second :] == bytes(4)


def test_lz4_of_v0_has_the_header_checksum_that_old_readers_demand() -> None:
    assert compress(Codec.LZ4, b"content", magic=0)[:7] == bytes.fromhex("04224d18 60 40 1a")
    assert compress(Codec.LZ4, b"content", magic=1)[:7] == bytes.fromhex("04224d18 60 40 82")


def test_lz4_stores_what_does_not_become_smaller() -> None:
    # header, size 7 with the high bit for a stored block, the content, end mark
    stored = bytes.fromhex("04224d18 60 40 82") + bytes.fromhex("07000080") + b"content" + bytes(4)
    assert compress(Codec.LZ4, b"content") == stored


@pytest.mark.parametrize(("codec", "levels"), [(Codec.GZIP, (1, 9)), (Codec.LZ4, (9, 12)), (Codec.ZSTD, (-5, 19))])
def test_levels_change_the_size_and_nothing_else(codec: Codec, levels: tuple[int, int]) -> None:
    content = b"".join(b"%d,%d;" % (number, number * number % 1009) for number in range(5000))
    little, much = (compress(codec, content, level=level) for level in levels)
    assert len(much) < len(little)
    assert decompress(codec, 2, memoryview(much)).data == content


@pytest.mark.parametrize(
    ("codec", "magic", "level"),
    [(Codec.ZSTD, 1, None), (5, 2, None), (0, 2, None), (Codec.GZIP, 2, 10), (Codec.SNAPPY, 2, 1), (Codec.ZSTD, 2, 23)],
)
def test_what_kafka_does_not_have_is_refused(codec: int, magic: int, level: int | None) -> None:
    with pytest.raises(RecordError):
        compress(codec, b"content", magic=magic, level=level)
