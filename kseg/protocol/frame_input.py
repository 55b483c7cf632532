"""Input of `kseg protocol`: captures, frames one after another, hex text; the first bytes show which one it is."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import BinaryIO

from kseg.errors import KsegError
from kseg.protocol.conversation import Frame, FrameDamage, Mixture, Numbers
from kseg.protocol.splitter import MAX_FRAME, SIZE_SIZE, SMALLEST_MESSAGE

PIECE = 1 << 16
_PEEKED = 1 << 9
_PLAIN_LINE = re.compile(r"(0x)?([0-9A-Fa-f]{2}[\s:]*)*")
_DUMP_LINE = re.compile(
    r"[0-9A-Fa-f]{4,16}(?:: ((?:[0-9A-Fa-f]{2})+(?: (?:[0-9A-Fa-f]{2})+)*)(?:  .*)?"
    r"|   ?((?:[0-9A-Fa-f]{2}  ?)*[0-9A-Fa-f]{2})(?: +\|.*)?)"
)
"""A line of `xxd` (`00000010: 0001 0203  ..`), of `hexdump -C` (`00000010  00 01 02 03  |..|`) or of Wireshark."""
_POSITION_LINE = re.compile(r"[0-9A-Fa-f]{8}")
"""The last line of `hexdump -C`."""


class InputForm(StrEnum):
    """The form of the input."""

    CAPTURE = "capture"
    FRAMES = "frames"
    HEX = "hex"


class HexError(KsegError):
    """Text that isn't hexadecimal."""


class Replay:
    """A stream whose first bytes can be seen before they are read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.first = _read(stream, _PEEKED)
        self._kept = self.first

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        if self._kept:
            taken, self._kept = self._kept[:size], self._kept[size:]
            return taken
        return self._stream.read(size)


def _read(stream: BinaryIO, size: int) -> bytes:
    pieces, left = [], size
    while left and (piece := stream.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def form_of(first: bytes) -> InputForm:
    """The form of an input, by its first bytes."""
    from kseg.protocol.capture import PCAP_MAGICS, PCAPNG_MAGIC

    if first[:4] in (*PCAP_MAGICS, PCAPNG_MAGIC):
        return InputForm.CAPTURE
    is_text = first.strip() and _looks_like_hex(first)
    return InputForm.HEX if is_text else InputForm.FRAMES


def _looks_like_hex(first: bytes) -> bool:
    lines = first.split(b"\n")
    # The last line may be cut within a character of its text.
    whole = lines[:-1] if len(lines) > 1 else lines
    return all(_is_hex_line(line) for line in whole)


def _is_hex_line(line: bytes) -> bool:
    text = line.decode("ascii", "replace").partition("#")[0].strip()
    return _PLAIN_LINE.fullmatch(text) is not None or _DUMP_LINE.fullmatch(text) is not None


def read_frames(
    stream: Replay, *, max_frame: int = MAX_FRAME, response_to: tuple[int, int] | None = None
) -> Iterator[Frame | FrameDamage]:
    """Frames one after another: size and message, requests and responses."""
    mixture = Mixture(Numbers(), max_frame, response_to=response_to)
    while piece := stream.read(PIECE):
        yield from mixture.feed(piece)
    yield from mixture.end()


def read_hex(
    stream: Replay, *, max_frame: int = MAX_FRAME, response_to: tuple[int, int] | None = None
) -> Iterator[Frame | FrameDamage]:
    """Messages in hexadecimal: a paragraph each, or several with their sizes; `#` begins a comment.

    Positions count the bytes that the text represents. Raises HexError for other text.
    """
    mixture = Mixture(Numbers(), max_frame, response_to=response_to)
    position = 0
    for content in _paragraphs(stream, 4 * max_frame):
        at = 0
        for size in _sizes(content):
            yield mixture.read(content[at + SIZE_SIZE : at + size], position + at, size)
            at += size
        if at == 0:
            yield mixture.read(content, position, len(content))
        position += len(content)


def _sizes(content: bytes) -> list[int]:
    """Sizes of the frames in the bytes, if these are frames to the last byte; otherwise none."""
    sizes, at = [], 0
    while at < len(content):
        size = int.from_bytes(content[at : at + SIZE_SIZE], "big", signed=True)
        if size < SMALLEST_MESSAGE or at + SIZE_SIZE + size > len(content):
            return []
        sizes.append(SIZE_SIZE + size)
        at += SIZE_SIZE + size
    return sizes


def _paragraphs(stream: Replay, most: int) -> Iterator[bytes]:
    """The bytes of each paragraph of hexadecimal text."""
    parts: list[bytes] = []
    is_dump = False
    for number, line in enumerate(_lines(stream, most), 1):
        text = line.partition("#")[0].strip()
        if text and not (is_dump and _POSITION_LINE.fullmatch(text)):
            is_dump = is_dump or (not parts and _digits_of_dump(text) is not None)
            digits = _digits_of_dump(text) if is_dump else text
            parts.append(_bytes_of(digits or text, number))
        elif not line.strip():
            if parts:
                yield b"".join(parts)
            parts, is_dump = [], False
    if parts:
        yield b"".join(parts)


def _digits_of_dump(text: str) -> str | None:
    """The digits of a line that begins with a position; None if it doesn't."""
    match = _DUMP_LINE.fullmatch(text) if ":" in text[:17] or "  " in text else None
    return None if match is None else match[1] or match[2]


def _bytes_of(digits: str, number: int) -> bytes:
    try:
        return bytes.fromhex(digits.removeprefix("0x").replace(":", ""))
    except ValueError as error:
        raise HexError(f"line {number} isn't hexadecimal text: {digits[:40]!r}") from error


def _lines(stream: Replay, most: int) -> Iterator[str]:
    """Lines of text. Raises HexError for one with more characters than any frame."""
    rest = b""
    while piece := stream.read(PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode("ascii", "replace")
        if len(rest) > most:
            raise HexError(f"a line of more than {most} characters isn't hexadecimal text")
    if rest:
        yield rest.decode("ascii", "replace")
