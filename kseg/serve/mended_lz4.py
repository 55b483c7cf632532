"""lz4 messages of format 0 with the checksum that their frames should have: two small changes in what is sent of a log.

Brokers and clients up to 0.9 hashed too much for the checksum of a frame's header. Java's client and librdkafka read
such frames all the same, others don't. Source: KAFKA-3160.
"""

import zlib
from collections.abc import Iterator, Sequence

from kseg.codecs.lz4 import right_checksum
from kseg.formats.codes import Codec
from kseg.formats.positions import KEY_LENGTH_POSITION, LENGTH, checksum_of
from kseg.index.headers import header_of
from kseg.kernel.contract import ROW, START
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile, Run
from kseg.serve.fetch_plan import Mend, StoredRange

_MAGIC = 0


def mends_in(log_file: LogFile, ranges: Sequence[StoredRange]) -> Iterator[Mend]:
    """What is to be changed in some ranges of a log, by position; nothing in other messages than those."""
    for each in ranges:
        for item in log_file.runs(each.position):
            if isinstance(item, Damage) or item.position + item.rows[START] >= each.end:
                break
            if item.codecs >> Codec.LZ4 & 1:
                yield from (mend for mend in _mends_in_run(item) if mend.position < each.end)


def _mends_in_run(run: Run) -> Iterator[Mend]:
    for row in range(run.row_count):
        header = header_of(run, row)
        if header.magic == _MAGIC and header.codec == Codec.LZ4:
            start = run.rows[row * ROW + START]
            message = bytes(run.buffer[start : start + header.size])
            yield from (Mend(header.position + at, content) for at, content in _mends_of(message))


def _mends_of(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The CRC and the frame's checksum of a message, with their positions in it; nothing if the latter is right."""
    body = _position_of_body(message)
    found = right_checksum(message[body:])
    if found is None or message[body + found[0]] == found[1][0]:
        return
    at = body + found[0]
    mended = message[:at] + found[1] + message[at + 1 :]
    crc = checksum_of(_MAGIC)
    yield crc.field.position, zlib.crc32(mended[crc.covers_from :]).to_bytes(4, "big")
    yield at, found[1]


def _position_of_body(message: bytes) -> int:
    key_length = KEY_LENGTH_POSITION[_MAGIC]
    return key_length + 2 * LENGTH.size + max(LENGTH.read(message, key_length), 0)


def pieces_of(ranges: Sequence[StoredRange], mends: Sequence[Mend]) -> Iterator[StoredRange | bytes]:
    """What is sent of some ranges, in order: stretches of the log, and the changed bytes between them."""
    left = list(reversed(mends))
    for each in ranges:
        position = each.position
        while left and left[-1].position < each.end:
            mend = left.pop()
            if mend.position > position:
                yield StoredRange(position, mend.position - position)
            yield mend.content
            position = mend.end
        if position < each.end:
            yield StoredRange(position, each.end - position)
