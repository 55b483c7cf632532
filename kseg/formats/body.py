"""Position of a batch's compressed bytes, without construct."""

from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, MAGIC_POSITION
from kseg.formats.positions import FLAGS_POSITION, KEY_LENGTH_POSITION, LEGACY_FLAGS_POSITION, LENGTH


def compressed_body(buffer: memoryview, start: int, end: int) -> tuple[int, int, int, int]:
    """Codec, magic, and start and end of the body of the batch that lies in the buffer between start and end.

    The codec is 0 for an uncompressed batch; if a wrapper has no value, start and end of the body are -1.
    """
    magic = buffer[start + MAGIC_POSITION]
    is_legacy = magic < 2 or magic > 127 or end - start < BATCH_HEADER_SIZE
    codec = buffer[start + (LEGACY_FLAGS_POSITION if is_legacy else FLAGS_POSITION)] & CODEC_MASK
    if not is_legacy:
        return codec, magic, start + BATCH_HEADER_SIZE, end
    at, value_end = _wrapper_value(buffer, start, end)
    return codec, magic, at, value_end


def wrapper_value(entry: memoryview) -> memoryview | None:
    """The value of a v0 or v1 log entry; None if it is null or doesn't lie within the entry."""
    at, end = _wrapper_value(entry, 0, len(entry))
    return entry[at:end] if at >= 0 else None


def _wrapper_value(buffer: memoryview, start: int, end: int) -> tuple[int, int]:
    at = start + KEY_LENGTH_POSITION[1 if buffer[start + MAGIC_POSITION] == 1 else 0]
    at += LENGTH.size + max(LENGTH.read(buffer, at), 0)
    if at + LENGTH.size > end:
        return -1, -1
    value_size = LENGTH.read(buffer, at)
    at += LENGTH.size
    return (at, at + value_size) if 0 <= value_size <= end - at else (-1, -1)
