"""Frames that a client and a broker exchange, each response with its request."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from kseg.protocol.messages import (
    MAX_FRAME,
    SIZE_SIZE,
    ApiMessage,
    FrameError,
    Lost,
    SizedMessage,
    Splitter,
    correlation_id_of,
    find_request,
    read_request,
    read_request_header,
    read_response,
)

_MOST_CANDIDATES = 256
"""The most places in a piece where a response is searched: each attempt parses it."""
_MOST_TRIED = 64
"""The most waiting requests whose numbers are searched in a stream that can't be followed."""


class Peers(NamedTuple):
    """The two ends of a connection, each `address:port`."""

    client: str
    server: str


@dataclass(slots=True)
class Numbers:
    """A counter for the frames of all conversations in an input, starting at 1."""

    last: int = 0

    def next(self) -> int:
        """Return the next frame's number."""
        self.last += 1
        return self.last


@dataclass(frozen=True, slots=True)
class Frame:
    """A request or response with its place.

    `position` and `size` count bytes of its direction's stream, including the size before the message. `time` is the
    timestamp in microseconds since 1970 of the packet with its last byte. A response has its request's number and
    time.
    """

    number: int
    message: ApiMessage
    position: int
    size: int
    peers: Peers | None = None
    time: int | None = None
    request: int | None = None
    request_time: int | None = None


@dataclass(frozen=True, slots=True)
class FrameDamage:
    """Bytes of a stream outside of frames. `stream`: requests, responses, or None for a file of both."""

    position: int
    size: int
    detail: str
    stream: str | None = None
    peers: Peers | None = None


class _Waiting(NamedTuple):
    """A request without response so far."""

    number: int
    time: int | None
    api_key: int | None
    api_version: int | None


class _Requests:
    """Requests by their correlation ids, which a client may reuse."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[_Waiting]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __contains__(self, correlation_id: int) -> bool:
        return correlation_id in self._waiting

    def __iter__(self) -> Iterator[int]:
        return iter(self._waiting)

    def add(self, frame: Frame) -> None:
        """Add a request that expects a response."""
        message = frame.message
        waiting = _Waiting(frame.number, frame.time, message.api_key, message.api_version)
        self._waiting.setdefault(message.correlation_id, deque()).append(waiting)

    def first(self, correlation_id: int) -> _Waiting | None:
        """Return the first waiting request with this number."""
        return self._waiting[correlation_id][0] if correlation_id in self._waiting else None

    def remove_first(self, correlation_id: int) -> None:
        """Remove a request that has been answered."""
        waiting = self._waiting[correlation_id]
        waiting.popleft()
        if not waiting:
            del self._waiting[correlation_id]


class Conversation:
    """A connection: a stream of requests and a stream of responses."""

    def __init__(
        self, numbers: Numbers, peers: Peers | None, max_frame: int = MAX_FRAME, *, lost: str | None = None
    ) -> None:
        """Take the reason why the streams don't begin with complete frames in `lost`, or None if they do."""
        self._numbers = numbers
        self._peers = peers
        self._max_frame = max_frame
        self._is_whole = lost is None
        self._waiting = _Requests()
        self._requests = Splitter(lambda data, start, _: find_request(data, start, max_frame), max_frame, lost)
        self._responses = Splitter(self._find_response, max_frame, lost)
        self.frames = 0

    @property
    def unanswered(self) -> int:
        """The number of requests that lack a response."""
        return len(self._waiting)

    def pass_over(self, requests: int, responses: int) -> None:
        """Skip bytes at the beginning of both streams."""
        self._requests.pass_over(requests)
        self._responses.pass_over(responses)

    def from_client(self, piece: bytes, time: int | None) -> Iterator[Frame | FrameDamage]:
        """Take the bytes of the client, and yield the requests that they complete."""
        yield from self._read_requests(self._requests.feed(piece), time)

    def from_server(self, piece: bytes, time: int | None) -> Iterator[Frame | FrameDamage]:
        """Take the bytes of the server, and yield the responses that they complete."""
        yield from self._read_responses(self._responses.feed(piece), time)

    def skip_from_client(self, size: int, time: int | None) -> Iterator[Frame | FrameDamage]:
        """Note missing bytes of the client."""
        yield from self._read_requests(self._requests.skip(size), time)

    def skip_from_server(self, size: int, time: int | None) -> Iterator[Frame | FrameDamage]:
        """Note missing bytes of the server."""
        yield from self._read_responses(self._responses.skip(size), time)

    def end(self) -> Iterator[Frame | FrameDamage]:
        """Yield the rest at the end."""
        yield from self._read_requests(self._requests.end(), None)
        yield from self._read_responses(self._responses.end(), None)

    def _read_requests(self, items: Iterator[SizedMessage | Lost], time: int | None) -> Iterator[Frame | FrameDamage]:
        for item in items:
            if isinstance(item, Lost):
                self._is_whole = False
                yield FrameDamage(item.position, item.size, item.detail, "requests", self._peers)
                continue
            try:
                message = read_request(item.content)
            except FrameError as error:
                yield FrameDamage(item.position, item.size, str(error), "requests", self._peers)
                continue
            frame = Frame(self._numbers.next(), message, item.position, item.size, self._peers, time)
            self.frames += 1
            if message.is_answered:
                self._waiting.add(frame)
            yield frame

    def _read_responses(self, items: Iterator[SizedMessage | Lost], time: int | None) -> Iterator[Frame | FrameDamage]:
        for item in items:
            if isinstance(item, Lost):
                yield FrameDamage(item.position, item.size, item.detail, "responses", self._peers)
                continue
            waiting = self._waiting.first(correlation_id_of(item.content))
            try:
                message = _read_answer(item.content, waiting)
            except FrameError as error:
                yield FrameDamage(item.position, item.size, str(error), "responses", self._peers)
                continue
            if waiting is None and self._is_whole:
                detail = f"no request with correlation id {message.correlation_id} waits for a response"
                yield FrameDamage(item.position, item.size, detail, "responses", self._peers)
                continue
            yield self._response(item, message, waiting, time)

    def _response(self, item: SizedMessage, message: ApiMessage, waiting: _Waiting | None, time: int | None) -> Frame:
        self.frames += 1
        if waiting is not None:
            self._waiting.remove_first(message.correlation_id)
        number, request_time = (None, None) if waiting is None else (waiting.number, waiting.time)
        return Frame(self._numbers.next(), message, item.position, item.size, self._peers, time, number, request_time)

    def _find_response(self, buffer: bytearray, start: int, piece_at: int) -> int:
        """Return the start of a complete response to one of the requests, or -1 if there is none.

        An incomplete response must begin at the start of a packet's bytes.
        """
        tried = [re.escape(number.to_bytes(4, "big", signed=True)) for number in islice(self._waiting, _MOST_TRIED)]
        if not tried:
            return -1
        numbers = re.compile(b"(?=" + b"|".join(tried) + b")")
        for match in islice(numbers.finditer(buffer, start + SIZE_SIZE), _MOST_CANDIDATES):
            at = match.start() - SIZE_SIZE
            size = int.from_bytes(buffer[at : at + SIZE_SIZE], "big", signed=True)
            if SIZE_SIZE <= size <= self._max_frame:
                content = bytes(buffer[at + SIZE_SIZE : at + SIZE_SIZE + size])
                if at == piece_at if len(content) < size else self._is_answer(content):
                    return at
        return -1

    def _is_answer(self, content: bytes) -> bool:
        try:
            message = _read_answer(content, self._waiting.first(correlation_id_of(content)))
        except FrameError:
            return False
        return message.is_complete


def _read_answer(content: bytes, waiting: _Waiting | None) -> ApiMessage:
    if waiting is None:
        return read_response(content, None, None)
    return read_response(content, waiting.api_key, waiting.api_version)


class Mixture:
    """A stream of frames that may be requests or responses, as in a file of frames.

    A frame is a request if it can be parsed completely as one. Otherwise it is a response if a request waits for it.
    """

    def __init__(
        self, numbers: Numbers, max_frame: int = MAX_FRAME, *, response_to: tuple[int, int] | None = None
    ) -> None:
        """Take api key and version in `response_to`, if all frames are responses to these."""
        self._numbers = numbers
        self._response_to = response_to
        self._waiting = _Requests()
        self._splitter = Splitter(lambda data, start, _: find_request(data, start, max_frame), max_frame)

    @property
    def unanswered(self) -> int:
        """The number of requests that lack a response."""
        return len(self._waiting)

    def feed(self, piece: bytes) -> Iterator[Frame | FrameDamage]:
        """Take bytes, and yield the frames that they complete."""
        yield from self._read(self._splitter.feed(piece))

    def end(self) -> Iterator[Frame | FrameDamage]:
        """Yield the rest at the end."""
        yield from self._read(self._splitter.end())

    def read(self, content: bytes, position: int, size: int) -> Frame | FrameDamage:
        """Parse a message at a position of the input, where its size may be missing."""
        try:
            return self._frame(content, position, size)
        except FrameError as error:
            return FrameDamage(position, size, str(error))

    def _read(self, items: Iterator[SizedMessage | Lost]) -> Iterator[Frame | FrameDamage]:
        for item in items:
            if isinstance(item, Lost):
                yield FrameDamage(item.position, item.size, item.detail)
            else:
                yield self.read(item.content, item.position, item.size)

    def _frame(self, content: bytes, position: int, size: int) -> Frame:
        if self._response_to is not None:
            api_key, version = self._response_to
            message = read_response(content, api_key, version)
            return Frame(self._numbers.next(), message, position, size)
        waiting = self._waiting.first(correlation_id_of(content))
        message = self._request_or_response(content, waiting)
        if message.kind == "response":
            assert waiting is not None
            self._waiting.remove_first(message.correlation_id)
            return Frame(self._numbers.next(), message, position, size, request=waiting.number)
        frame = Frame(self._numbers.next(), message, position, size)
        if message.is_answered:
            self._waiting.add(frame)
        return frame

    @staticmethod
    def _request_or_response(content: bytes, waiting: _Waiting | None) -> ApiMessage:
        if waiting is None:
            return read_request(content)
        try:
            read_request_header(content)
            request = read_request(content)
        except FrameError:
            return _read_answer(content, waiting)
        if request.body is not None and request.is_complete:
            return request
        response = _read_answer(content, waiting)
        return response if response.problem is None else request
