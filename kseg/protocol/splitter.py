"""Frames from a stream of bytes: size and message, one after another; after an error, the next place to continue."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kseg.formats.schemas import REQUESTS, version_range
from kseg.protocol.api_message import API_VERSIONS

SIZE_SIZE = 4
"""Bytes of the size before each message."""
SMALLEST_MESSAGE = 4
"""The size of a response with only its correlation id."""
MAX_FRAME = 104_857_600
"""The largest request that a broker takes by default: `socket.request.max.bytes`."""
_HEADER_SIZE = 14
"""Bytes of a request and its size, up to the client id."""
_REQUEST = re.compile(
    rb"(?=[\0-\x7f](?!\0\0\0).{3}\0[\0-\x7f]\0[\0-\x3f].{4}(?:\0[^\xff]|[\1-\x7f]|\xff\xff))", re.DOTALL
)
"""What may be a size, an api key and a version, a correlation id, and the size of a client id."""
_NEWEST_API_VERSIONS = 16
"""Clients may send versions of ApiVersions that are newer than the schemas."""


class SizedMessage(NamedTuple):
    """The message after a size. `position`: of the size in the stream."""

    position: int
    content: bytes

    @property
    def size(self) -> int:
        """Bytes, including those of the size itself."""
        return SIZE_SIZE + len(self.content)


class Lost(NamedTuple):
    """Bytes of a stream that don't belong to a frame, or are missing."""

    position: int
    size: int
    detail: str


Find = Callable[[bytearray, int, int], int]
"""Finds where a frame may begin in the bytes from a position on; -1 if nowhere. Third: start of their last piece."""


class Splitter:
    """Splits a stream that comes piece by piece. Keeps only an incomplete frame.

    Sizes of messages and losses add up to the size of the stream.
    """

    def __init__(self, find: Find, max_frame: int = MAX_FRAME, lost: str | None = None) -> None:
        """`lost`: why the stream doesn't begin with a frame; None if it does."""
        self._find = find
        self._max_frame = max_frame
        self._buffer = bytearray()
        self._position = 0
        """The buffer's position in the stream."""
        self._reason = lost
        """Why bytes are being lost; None while frames follow one another."""
        self._lost_from = 0
        self._search_from = 0
        self._piece_at = 0

    def feed(self, piece: bytes) -> Iterator[SizedMessage | Lost]:
        """Messages that these bytes complete."""
        self._piece_at = len(self._buffer)
        self._buffer += piece
        yield from self._split()

    def skip(self, size: int) -> Iterator[SizedMessage | Lost]:
        """Continues after bytes that are missing."""
        yield from self._give_up()
        reason = f"{size} bytes are missing"
        if self._reason is None:
            self._lose(self._position + len(self._buffer), reason)
        elif "missing" not in self._reason:
            self._reason += f"; {reason}"
        self._position += len(self._buffer) + size
        self._search_from = self._position
        self._buffer.clear()

    def pass_over(self, size: int) -> None:
        """Skips the stream's first bytes."""
        self._position = self._search_from = size

    def end(self) -> Iterator[SizedMessage | Lost]:
        """What is left at the end."""
        yield from self._give_up()
        end = self._position + len(self._buffer)
        if self._reason is not None and end > self._lost_from:
            yield Lost(self._lost_from, end - self._lost_from, self._reason)
        self._position, self._reason = end, None
        self._buffer.clear()

    def _lose(self, position: int, reason: str) -> None:
        """Counts bytes as lost from here on, up to the next frame after the first of them."""
        self._lost_from, self._search_from, self._reason = position, position + 1, reason

    def _split(self) -> Iterator[SizedMessage | Lost]:
        at = 0
        while True:
            if self._reason is not None:
                at = self._find(self._buffer, max(self._search_from - self._position, 0), self._piece_at)
                if at < 0:
                    at = max(0, len(self._buffer) - _HEADER_SIZE + 1)  # a frame may begin in the kept bytes
                    break
                if lost := self._position + at - self._lost_from:
                    yield Lost(self._lost_from, lost, self._reason)
                self._reason = None
            left = len(self._buffer) - at
            size = int.from_bytes(self._buffer[at : at + SIZE_SIZE], "big", signed=True)
            if left < SIZE_SIZE:
                break
            if not SMALLEST_MESSAGE <= size <= self._max_frame:
                self._lose(self._position + at, f"a size can't be {size}")
                continue
            if left < SIZE_SIZE + size:
                break
            yield SizedMessage(self._position + at, bytes(self._buffer[at + SIZE_SIZE : at + SIZE_SIZE + size]))
            at += SIZE_SIZE + size
        del self._buffer[:at]
        self._position += at

    def _give_up(self) -> Iterator[SizedMessage | Lost]:
        """Gives up a frame that will stay incomplete: others may be within it."""
        while self._reason is None and self._buffer:
            size = int.from_bytes(self._buffer[:SIZE_SIZE], "big", signed=True)
            claim = f"a frame of {SIZE_SIZE + size} bytes begins" if len(self._buffer) >= SIZE_SIZE else "a size begins"
            self._lose(self._position, f"{claim}, {len(self._buffer)} bytes are there")
            yield from self._split()


def find_request(buffer: bytearray, start: int, max_frame: int = MAX_FRAME) -> int:
    """Where a request may begin: size, a known api and version, and a client id that is text; -1 if nowhere."""
    at = start
    while match := _REQUEST.search(buffer, at):
        at = match.start()
        if is_request(buffer, at, max_frame):
            return at
        at += 1
    return -1


def is_request(buffer: bytes | bytearray, at: int, max_frame: int = MAX_FRAME) -> bool:
    """Whether a request with its size may begin there, judging by the bytes that are there."""
    head = buffer[at : at + _HEADER_SIZE]
    if len(head) < _HEADER_SIZE:
        return False
    size, api_key, version = (int.from_bytes(head[a:b], "big", signed=True) for a, b in ((0, 4), (4, 6), (6, 8)))
    client_size = int.from_bytes(head[12:14], "big", signed=True)
    if not 10 + max(client_size, 0) <= size <= max_frame or client_size < -1:
        return False
    schema = REQUESTS.get(api_key)
    if schema is None:
        return False
    is_known = version in version_range(schema.versions)
    if not is_known and not (api_key == API_VERSIONS and 0 <= version < _NEWEST_API_VERSIONS):
        return False
    client = bytes(buffer[at + _HEADER_SIZE : at + _HEADER_SIZE + max(client_size, 0)])
    text = client.decode("utf-8", "replace")
    return text.isprintable() and "\ufffd" not in text
