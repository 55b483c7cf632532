"""The way from the bytes of a request to its answer's bytes: parse, find the API, answer, encode."""

from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.errors import KsegError, plural
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, Fields, parse_in_steps
from kseg.formats.schemas import REQUESTS
from kseg.protocol.messages import (
    API_VERSIONS,
    MessageHeader,
    api_name,
    build_response,
    build_response_in_steps,
    read_request_header,
)
from kseg.serve.apis.request import ApiAnswer, ApiRequest
from kseg.serve.apis.table import APIS, unsupported_versions
from kseg.serve.cluster import ServedCluster
from kseg.serve.groups.classic import ClientName
from kseg.serve.partition import ServedPartition
from kseg.serve.stored_records import StoredRecords
from kseg.serve.turns import AT_WORKER, Step, Steps, in_steps
from kseg.serve.values import AT_ONCE_REQUEST, MOST_REQUEST_ELEMENTS, Limits, shown_text

Piece = bytes | StoredRecords
MOST_CLIENT_ID = 40
"""The most characters of a client's id in the log of requests."""


class RefusedError(KsegError):
    """Raised if the connection has to be closed without a response, as a broker would do."""


class Answered(NamedTuple):
    """The pieces of an answer, and a line for the log of requests.

    `wait_seconds`, `awaited`: as in ApiAnswer; the pieces are empty then. `later`: the answer also waits, for other
    clients' actions.
    """

    pieces: list[Piece]
    line: str
    wait_seconds: float = 0.0
    awaited: Mapping[ServedPartition, int] = MappingProxyType({})
    later: "AnsweredLater | None" = None


class AnsweredLater(NamedTuple):
    """A future result of other clients' actions, and the function that makes the answer from it."""

    outcome: Future[Any]
    answer: Callable[[], Steps[Answered]]


class Asking(NamedTuple):
    """The client of a request: its host, and the server's address for it.

    is_last_try: the client has no time left to wait. largest: the most bytes of an answer, without records.
    """

    address: tuple[str, int]
    is_last_try: bool = True
    client_host: str = ""
    largest: int = Limits().answer


def answer_request(frame: bytes, served: ServedCluster, asking: Asking) -> Steps[Answered]:
    """Answer a request, given without its size, in steps.

    Raises RefusedError if the server doesn't answer such requests.
    """
    try:
        if len(frame) > AT_ONCE_REQUEST:
            yield AT_WORKER
        header = read_request_header(frame)
        name = f"{shown_text(header.client_id or '-', MOST_CLIENT_ID)} {api_name(header.api_key) or header.api_key}"
        line = f"{name} v{header.api_version}"
        if not is_known(header):
            if header.api_key != API_VERSIONS:
                raise RefusedError(f"{line}: not served")
            pieces = build_response(API_VERSIONS, 0, header.correlation_id, unsupported_versions(), StoredRecords)
            return Answered(pieces, f"{line}: unknown version, so kseg asked for another one")
        client = ClientName(header.client_id or "", asking.client_host)
        host, port = asking.address
        body = yield from read_body(header, frame)
        request = ApiRequest(
            served, header.api_version, body, host, port, is_last_try=asking.is_last_try, client=client
        )
        api = APIS[header.api_key]
        if not api.begins_at_once:
            yield AT_WORKER
        answering = api.answer(request)
        answer = answering if isinstance(answering, ApiAnswer) else (yield from in_steps(answering))
        encoding = _Encoding(header, line, asking.largest)
        if answer.later is not None:
            outcome, finish = answer.later
            return Answered([], line, later=AnsweredLater(outcome, lambda: encoding.of(finish())))
        return (yield from encoding.of(answer))
    except RefusedError:
        raise
    except KsegError as error:
        raise RefusedError(shown_text(str(error))) from error


class _Encoding(NamedTuple):
    """An encoder of answers to a request: the header, the line in the log, and the most bytes."""

    header: MessageHeader
    line: str
    largest: int

    def of(self, answer: ApiAnswer) -> Steps[Answered]:
        """Encode an answer in steps. Raises RefusedError as soon as it has too many bytes."""
        pieces: list[Piece] = [] if answer.body is None else (yield from self._pieces(answer.body))
        noted = f"{self.line}: {shown_text(answer.note)}" if answer.note else self.line
        return Answered(pieces, noted, answer.wait_seconds, answer.awaited)

    def _pieces(self, body: Fields) -> Steps[list[Piece]]:
        key, version, number = self.header.api_key, self.header.api_version, self.header.correlation_id
        may_begin_again = not APIS[key].changes
        steps: Generator[int, None, list[Piece]] = build_response_in_steps(key, version, number, body, StoredRecords)
        while True:
            try:
                size = next(steps)
            except StopIteration as end:
                pieces: list[Piece] = end.value
                return pieces
            if size > self.largest:
                raise RefusedError(
                    f"{self.line}: the answer has more than {plural(self.largest, 'byte')}; request less at once"
                )
            yield Step(size, may_begin_again)


def is_known(header: MessageHeader) -> bool:
    """Return True if the server answers this version of an API."""
    api = APIS.get(header.api_key)
    return api is not None and header.api_version in api.versions


def read_body(header: MessageHeader, frame: bytes) -> Steps[Fields]:
    """Parse the request body.

    Ignores bytes after it, as brokers do: librdkafka 2.16 asks for all topics with three.
    """
    schema, most = REQUESTS[header.api_key], MOST_REQUEST_ELEMENTS
    parsing = parse_in_steps(schema, header.api_version, frame, header.size, most_elements=most)
    body, _ = yield from in_steps(parsing)
    body.pop(UNKNOWN_TAGGED_FIELDS, None)
    return body
