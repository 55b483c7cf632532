"""Requests and responses as values, their frames, and the records in them."""

import re
from collections.abc import Callable, Generator, Iterator, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Literal, NamedTuple, TypeVar

from kseg import kernel
from kseg.errors import KsegError, plural
from kseg.formats.codes import ENTRY_MINIMUM_SIZE, DamageKind, claimed_size
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, Fields, MessageError, parse_message, write_in_steps
from kseg.formats.schemas import REQUESTS, RESPONSES, MessageSchema, message_schema, version_range
from kseg.kernel.contract import Stop, new_rows
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import Run
from kseg.releases import NEWEST

PRODUCE, CONTROLLED_SHUTDOWN, API_VERSIONS = 0, 7, 18
"""Keys of APIs with special rules."""
UNSUPPORTED_VERSION = 35
"""The error in a broker's answer to an ApiVersions request of a newer version."""
MOST_ELEMENTS = 1 << 20
"""The most elements and tagged fields of one message; each takes a hundred bytes of memory or more."""
_SMALLEST_HEADER = 8
_NEWEST_VERSION = 64
"""A limit that no API's version will exceed soon; bytes with a higher version aren't a request."""


class FrameError(KsegError):
    """The bytes can't begin a request or response."""


class MessageHeader(NamedTuple):
    """A request header."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    version: int | None
    """The version of the header itself; None (parsed as version 1) if the API is unknown."""
    tagged_fields: dict[int, bytes]
    size: int
    """Bytes of the header."""


@dataclass(frozen=True, slots=True)
class ApiMessage:
    """A request or a response.

    `body` is None if the schemas don't have it, or if it can't be parsed; `problem` is the reason then. A response
    without a known request has no API. `trailing_size`: the bytes of the frame after a parsed body.
    """

    kind: Literal["request", "response"]
    correlation_id: int
    header_version: int | None
    tagged_fields: dict[int, bytes]
    body_size: int
    api_key: int | None = None
    api_version: int | None = None
    client_id: str | None = None
    schema: MessageSchema | None = None
    body_version: int = 0
    body: Fields | None = None
    problem: str | None = None
    trailing_size: int = 0

    @property
    def is_complete(self) -> bool:
        """True if its body has no problem, and no bytes follow it."""
        return self.problem is None and not self.trailing_size

    @property
    def api(self) -> str | None:
        """The API's name, without Request or Response, or None if unknown."""
        return None if self.api_key is None else api_name(self.api_key)

    @property
    def unknown(self) -> str | None:
        """The reason why a sound body isn't parsed: the schemas don't have its API or its version."""
        if self.schema is not None or self.api_key is None or self.api_version is None:
            return None
        known = version_range(REQUESTS[self.api_key].versions if self.api_key in REQUESTS else "none")
        if self.api is None or self.api_version > known.last >= known.first:
            what = f"api {self.api_key}" if self.api is None else f"{self.api} version {self.api_version}"
            return f"{what} is newer than kseg supports; its schemas are from Kafka {NEWEST}"
        return f"{self.api} version {self.api_version} is older than kseg supports; its schemas are from Kafka {NEWEST}"

    @property
    def is_answered(self) -> bool:
        """True if a broker answers this request: a Produce request with acks 0 gets no response."""
        return not (self.api_key == PRODUCE and self.body is not None and self.body["acks"] == 0)


def api_name(api_key: int) -> str | None:
    """Return the name of an API, or None if the newest known Kafka has none with this key."""
    name = REQUESTS.names.get(api_key)
    return None if name is None else name.removesuffix("Request")


@lru_cache(maxsize=1024)
def request_header_version(api_key: int, api_version: int) -> int | None:
    """Return the version of a request header: 2 with flexible bodies, else 1, or None if the API is unknown."""
    if (api_key, api_version) == (CONTROLLED_SHUTDOWN, 0):
        return 0
    if not _is_known(api_key):
        return None
    return 2 if api_version in version_range(REQUESTS[api_key].flexible) else 1


@lru_cache(maxsize=1024)
def response_header_version(api_key: int, api_version: int) -> int | None:
    """Return the version of a response header: 1 with flexible bodies, else 0, or None if the API is unknown.

    ApiVersions always has 0, so that every client can read the response.
    """
    if not _is_known(api_key):
        return None
    return int(api_key != API_VERSIONS and api_version in version_range(RESPONSES[api_key].flexible))


def _is_known(api_key: int) -> bool:
    return api_key in REQUESTS and REQUESTS[api_key].versions != "none"


def read_request_header(data: bytes) -> MessageHeader:
    """Parse the header of a request, given without its size. Raises FrameError if there is none."""
    if len(data) < _SMALLEST_HEADER:
        raise FrameError(f"{plural(len(data), 'byte is', 'bytes are')} too few for a request")
    api_key, api_version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
    if api_key < 0 or not 0 <= api_version < _NEWEST_VERSION:
        raise FrameError(f"API key {api_key} in version {api_version} isn't possible")
    version = request_header_version(api_key, api_version)
    if version == 0:
        return MessageHeader(api_key, api_version, int.from_bytes(data[4:8], "big", signed=True), None, 0, {}, 8)
    try:
        fields, size = parse_message(message_schema("RequestHeader"), version or 1, data, most_elements=MOST_ELEMENTS)
    except MessageError as error:
        raise FrameError(f"not a request header: {error}") from error
    tagged = fields.get(UNKNOWN_TAGGED_FIELDS, {})
    return MessageHeader(api_key, api_version, fields["correlationId"], fields["clientId"], version, tagged, size)


def read_request(data: bytes) -> ApiMessage:
    """Parse a request, given without its size. Raises FrameError if it doesn't begin with a request header."""
    header = read_request_header(data)
    found = _read_body(REQUESTS.get(header.api_key), header.api_version, data, header.size)
    return ApiMessage(
        kind="request",
        correlation_id=header.correlation_id,
        header_version=header.version,
        tagged_fields=header.tagged_fields,
        body_size=len(data) - header.size,
        api_key=header.api_key,
        api_version=header.api_version,
        client_id=header.client_id,
        schema=found.schema,
        body_version=header.api_version,
        body=found.body,
        problem=found.problem,
        trailing_size=found.trailing_size,
    )


def correlation_id_of(response: bytes) -> int:
    """Return the correlation id of a response. Raises FrameError if there are too few bytes."""
    if len(response) < 4:
        raise FrameError(f"{plural(len(response), 'byte is', 'bytes are')} too few for a response")
    return int.from_bytes(response[:4], "big", signed=True)


def read_response(data: bytes, api_key: int | None, api_version: int | None) -> ApiMessage:
    """Parse a response to a request of this API, given without its size.

    Raises FrameError if it doesn't begin with a response's header.
    """
    correlation_id = correlation_id_of(data)
    version = None if api_key is None or api_version is None else response_header_version(api_key, api_version)
    if api_key is None or api_version is None or version is None:
        return ApiMessage("response", correlation_id, None, {}, len(data) - 4, api_key, api_version)
    try:
        fields, size = parse_message(message_schema("ResponseHeader"), version, data, most_elements=MOST_ELEMENTS)
    except MessageError as error:
        raise FrameError(f"not a response header: {error}") from error
    body_version = api_version
    found = _read_body(RESPONSES.get(api_key), api_version, data, size)
    is_read = found.body is not None and not found.trailing_size
    if api_key == API_VERSIONS and not is_read and data[4:6] == UNSUPPORTED_VERSION.to_bytes(2, "big"):
        # A broker that doesn't know the version answers in version 0, with the versions that it knows.
        body_version = 0
        found = _read_body(RESPONSES[api_key], 0, data, size)
    return ApiMessage(
        kind="response",
        correlation_id=correlation_id,
        header_version=version,
        tagged_fields=fields.get(UNKNOWN_TAGGED_FIELDS, {}),
        body_size=len(data) - size,
        api_key=api_key,
        api_version=api_version,
        schema=found.schema,
        body_version=body_version,
        body=found.body,
        problem=found.problem,
        trailing_size=found.trailing_size,
    )


class _Body(NamedTuple):
    """A body, its problem, and the number of bytes after it; no schema if none has the version."""

    schema: MessageSchema | None = None
    body: Fields | None = None
    problem: str | None = None
    trailing_size: int = 0


def _read_body(schema: MessageSchema | None, version: int, data: bytes, start: int) -> _Body:
    """Parse the body at a position. Brokers and clients ignore bytes after it: librdkafka sends some."""
    if schema is None or version not in version_range(schema.versions):
        return _Body()
    try:
        body, end = parse_message(schema, version, data, start, most_elements=MOST_ELEMENTS)
    except MessageError as error:
        return _Body(schema, None, f"{error}")
    return _Body(schema, body, None, len(data) - end)


LARGEST_BODY = 1 << 28
"""The largest size of a decompressed batch, in bytes: all records of a frame are in memory at once."""
_CODECS = 0b111


def record_slices(records: bytes, *, deep: bool) -> Iterator[Slice | Damage]:
    """Yield the batches in slices, with their bodies if `deep`, and damages. Positions are within the bytes."""
    if deep:
        yield from with_bodies(_runs(records), len(records), LARGEST_BODY)
        return
    for item in _runs(records):
        yield Slice(item, 0, item.row_count, None) if isinstance(item, Run) else item


def _runs(records: bytes) -> Iterator[Run | Damage]:
    """Yield runs of batches; a batch with a wrong CRC is a run of its own. Everything from a non-batch on is lost."""
    buffer, at = memoryview(records), 0
    while at < len(records):
        rows = new_rows(min(len(records) // ENTRY_MINIMUM_SIZE + 1, 1 << 12))
        count, end, stop, codecs = kernel.load().scan(buffer, at, len(records), rows, 0)
        if count:
            yield Run(buffer, 0, rows, count, codecs)
            at = end
            continue
        size = claimed_size(records, at)
        if stop == Stop.BAD_CRC and size is not None and at + size <= len(records):
            rows[:3] = type(rows)("q", (at, size, 0))
            yield Run(buffer, 0, rows, 1, _CODECS)
            at += size
            continue
        left = len(records) - at
        if stop == Stop.END:
            claim = "a batch" if size is None else f"a batch of {plural(size, 'byte')}"
            yield Damage(
                DamageKind.TORN_TAIL, at, left, f"{claim} begins, but only {plural(left, 'byte is', 'bytes are')} left"
            )
        else:
            yield Damage(
                DamageKind.BAD_LENGTH if stop == Stop.BAD_LENGTH else DamageKind.BAD_MAGIC, at, left, "no batch"
            )
        return


SIZE_SIZE = 4
"""Bytes of the size before each message."""
SMALLEST_MESSAGE = 4
"""The size of a response with only its correlation id."""
MAX_FRAME = 104_857_600
"""The largest request that a broker accepts by default: `socket.request.max.bytes`."""
_HEADER_SIZE = 14
"""Bytes of a request with its size, up to the client id."""
_REQUEST = re.compile(
    rb"(?=[\0-\x7f](?!\0\0\0).{3}\0[\0-\x7f]\0[\0-\x3f].{4}(?:\0[^\xff]|[\1-\x7f]|\xff\xff))", re.DOTALL
)
"""The pattern of a size, an API key and a version, a correlation id, and the size of a client id."""
_NEWEST_API_VERSIONS = 16
"""The newest version of ApiVersions that is expected: clients may send newer ones than the schemas have."""


class SizedMessage(NamedTuple):
    """A message after its size. `position`: the size's position in the stream."""

    position: int
    content: bytes

    @property
    def size(self) -> int:
        """The size in bytes, including the size field."""
        return SIZE_SIZE + len(self.content)


class Lost(NamedTuple):
    """Bytes of a stream that are missing or outside of frames."""

    position: int
    size: int
    detail: str


Find = Callable[[bytearray, int, int], int]
"""A search for a possible frame from a position on; -1 if there is none. Third: the start of the last piece."""


class Splitter:
    """A splitter of a stream into messages, piece by piece. Keeps only an incomplete frame.

    Sizes of messages and losses add up to the size of the stream.
    """

    def __init__(self, find: Find, max_frame: int = MAX_FRAME, lost: str | None = None) -> None:
        """Take the reason in `lost` if the stream doesn't begin with a frame."""
        self._find = find
        self._max_frame = max_frame
        self._buffer = bytearray()
        self._position = 0
        """The buffer's position in the stream."""
        self._reason = lost
        """The reason why bytes are being lost; None while frames follow one another."""
        self._lost_from = 0
        self._search_from = 0
        self._piece_at = 0

    def feed(self, piece: bytes) -> Iterator[SizedMessage | Lost]:
        """Take bytes, and yield the messages that they complete."""
        self._piece_at = len(self._buffer)
        self._buffer += piece
        yield from self._split()

    def skip(self, size: int) -> Iterator[SizedMessage | Lost]:
        """Continue after missing bytes."""
        yield from self._give_up()
        reason = f"{plural(size, 'byte is', 'bytes are')} missing"
        if self._reason is None:
            self._lose(self._position + len(self._buffer), reason)
        elif "missing" not in self._reason:
            self._reason += f"; {reason}"
        self._position += len(self._buffer) + size
        self._search_from = self._position
        self._buffer.clear()

    def pass_over(self, size: int) -> None:
        """Skip the stream's first bytes."""
        self._position = self._search_from = size

    def end(self) -> Iterator[SizedMessage | Lost]:
        """Yield the rest at the end."""
        yield from self._give_up()
        end = self._position + len(self._buffer)
        if self._reason is not None and end > self._lost_from:
            yield Lost(self._lost_from, end - self._lost_from, self._reason)
        self._position, self._reason = end, None
        self._buffer.clear()

    def _lose(self, position: int, reason: str) -> None:
        """Count bytes as lost from here on, up to the next frame after the first of them."""
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
        """Give up a frame that stays incomplete, since other frames may be within it."""
        while self._reason is None and self._buffer:
            size = int.from_bytes(self._buffer[:SIZE_SIZE], "big", signed=True)
            claim = f"a frame of {SIZE_SIZE + size} bytes begins" if len(self._buffer) >= SIZE_SIZE else "a size begins"
            self._lose(self._position, f"{claim}, but only {plural(len(self._buffer), 'byte is', 'bytes are')} left")
            yield from self._split()


def find_request(buffer: bytearray, start: int, max_frame: int = MAX_FRAME) -> int:
    """Return the start of a possible request: size, known API and version, and a text as client id, or -1 if none."""
    at = start
    while match := _REQUEST.search(buffer, at):
        at = match.start()
        if is_request(buffer, at, max_frame):
            return at
        at += 1
    return -1


def is_request(buffer: bytes | bytearray, at: int, max_frame: int = MAX_FRAME) -> bool:
    """Return True if the available bytes at a position can be a request with its size."""
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


Stored = TypeVar("Stored", bound=Sized)
"""Bytes in another place; their length is known."""
SIZE_BYTES = 4
"""Bytes of the size before each request and response."""


_PIECE = 1 << 16
"""The most bytes in a piece of a response, except for a larger field."""


class _Pieces(Generic[Stored]):
    """The output of grammars: bytes are joined, stored bytes stay separate. held: joined bytes so far."""

    def __init__(self) -> None:
        self.size = self.held = 0
        self.done: list[bytes | Stored] = []
        self._bytes = bytearray()

    def write(self, piece: "bytes | Stored") -> int:
        """Take a piece; return its length, as files do."""
        size = len(piece)
        if isinstance(piece, bytes):
            if len(self._bytes) + size > _PIECE:
                self.end_bytes()
            self._bytes += piece
            self.held += size
        else:
            self.end_bytes()
            self.done.append(piece)
        self.size += size
        return size

    def end_bytes(self) -> None:
        """Append the merged bytes to the list."""
        if self._bytes:
            self.done.append(bytes(self._bytes))
            self._bytes.clear()


def build_response(
    api_key: int, api_version: int, correlation_id: int, body: Fields, stored: type[Stored] | None = None
) -> list[bytes | Stored]:
    """Build a response after its size, in pieces whose lengths add up to the size.

    A field of type records may be of type `stored`, which has a length; it becomes a separate piece.

    Raises:
        MessageError: the body isn't a response of this API and version.
    """
    steps = build_response_in_steps(api_key, api_version, correlation_id, body, stored)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            pieces: list[bytes | Stored] = end.value
            return pieces


def build_response_in_steps(
    api_key: int, api_version: int, correlation_id: int, body: Fields, stored: type[Stored] | None = None
) -> Generator[int, None, list[bytes | Stored]]:
    """Build the same in steps; each yields the number of bytes so far, without stored ones."""
    pieces: _Pieces[Stored] = _Pieces()
    header_version = response_header_version(api_key, api_version) or 0
    header, schema = message_schema("ResponseHeader"), RESPONSES[api_key]
    for _ in write_in_steps(header, header_version, {"correlationId": correlation_id}, pieces):
        pass
    for _ in write_in_steps(schema, api_version, body, pieces):
        yield pieces.held
    pieces.end_bytes()
    yield pieces.held
    size, first = pieces.size.to_bytes(SIZE_BYTES, "big"), pieces.done[0]
    return [size + first, *pieces.done[1:]] if isinstance(first, bytes) else [size, *pieces.done]
