"""Measures the least CPU seconds of any reader on this machine, and prints them as a line of JSON: FILE OUTPUT_SIZE.

Copying the file's bytes in memory, a CRC over them, the codec's library over the batches' bodies, and writing as many
bytes as the dump of the file has into a file. Reading the file and starting Python are left out.
"""

import json
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import crc32c
import lz4.frame
import snappy
import zstandard
from isal import isal_zlib

Part = TypeVar("Part", bytes, memoryview)
CHUNK_SIZE = 1 << 20
# Start of the records' bytes in a batch of magic 2, and in a wrapper of magic 1 without a key.
BODY_POSITION = {2: 61, 1: 34}
XERIAL_HEADER_SIZE = 16


def iter_bodies(data: bytes) -> Iterator[bytes]:
    """Yield each batch's bytes after its header; `codec_of` returns the codec."""
    start = BODY_POSITION[data[16]]
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        yield data[position + start : position + 12 + length]
        position += 12 + length


def codec_of(data: bytes) -> int:
    """Return the codec of the first batch."""
    attributes = data[22] if data[16] == 2 else data[17]
    return attributes & 7


def decompress_snappy(body: bytes) -> bytes:
    """Decompress the blocks of a snappy-java stream."""
    return b"".join(snappy.uncompress(block) for block in _snappy_blocks(body))


def _snappy_blocks(body: bytes) -> Iterator[bytes]:
    position = XERIAL_HEADER_SIZE
    while position < len(body):
        (size,) = struct.unpack_from(">i", body, position)
        yield body[position + 4 : position + 4 + size]
        position += 4 + size


def decompress_zstd(body: bytes) -> bytes:
    """Decompress one frame without a content size."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(body)


# Decompressors by Kafka's number of the codec.
LIBRARIES: dict[int, dict[str, Callable[[bytes], bytes]]] = {
    0: {},
    1: {"codec": lambda body: zlib.decompress(body, 31), "codec, isal": lambda body: isal_zlib.decompress(body, 31)},
    2: {"codec": decompress_snappy},
    3: {"codec": lz4.frame.decompress},
    4: {"codec": decompress_zstd},
}


def apply(function: Callable[[Part], object], parts: Iterable[Part]) -> float:
    """Return the CPU seconds of a function over all parts."""
    start = time.process_time()
    for part in parts:
        function(part)
    return time.process_time() - start


def write_seconds(size: int) -> float:
    """Return the CPU seconds for writing the given number of bytes into a file next to the segment."""
    chunk = bytes(CHUNK_SIZE)
    with tempfile.TemporaryFile(dir=Path(sys.argv[1]).parent) as file:
        return apply(file.write, (chunk[: size - position] for position in range(0, size, CHUNK_SIZE)))


def limits(path: Path, output_size: int) -> dict[str, float]:
    """Return CPU seconds by the name of the limit."""
    data = path.read_bytes()
    chunks = [memoryview(data)[position : position + CHUNK_SIZE] for position in range(0, len(data), CHUNK_SIZE)]
    target = bytearray(CHUNK_SIZE)
    seconds = {
        "memcpy": apply(lambda chunk: target.__setitem__(slice(len(chunk)), chunk), chunks),
        "CRC": apply(crc32c.crc32c, chunks),
    }
    bodies = list(iter_bodies(data))
    for name, decompress in LIBRARIES[codec_of(data)].items():
        seconds[name] = apply(decompress, bodies)
    return seconds | {"write": write_seconds(output_size)}


if __name__ == "__main__":
    print(json.dumps(limits(Path(sys.argv[1]), int(sys.argv[2]))))
