"""A request's bytes to the pieces of its answer: read, looked up in the table of apis, answered, encoded."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.errors import KsegError
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, Fields, parse_message
from kseg.formats.schemas import REQUESTS, version_range
from kseg.protocol.messages import API_VERSIONS, MessageHeader, api_name, build_response, read_request_header
from kseg.serve.apis.request import ApiAnswer, ApiRequest
from kseg.serve.apis.table import APIS, unsupported_versions
from kseg.serve.cluster import ServedCluster
from kseg.serve.groups.classic import ClientName
from kseg.serve.partition import ServedPartition, StoredRecords
from kseg.serve.values import MOST_REQUEST_ELEMENTS, shown_text

Piece = bytes | StoredRecords
MOST_CLIENT_ID = 40
"""Characters of a client's id in the log of requests."""


class RefusedError(KsegError):
    """A request that gets no answer: its connection is closed, as a broker does."""


class Answered(NamedTuple):
    """The pieces of an answer, and a line for the log of requests.

    `wait_seconds`, `awaited`: as in ApiAnswer; then there are no pieces yet. `later`: the same, and what gives them
    once others have done something.
    """

    pieces: list[Piece]
    line: str
    wait_seconds: float = 0.0
    awaited: Mapping[ServedPartition, int] = MappingProxyType({})
    later: "AnsweredLater | None" = None


class AnsweredLater(NamedTuple):
    """What is known once other clients have done something, and what goes out then."""

    outcome: Future[Any]
    answer: Callable[[], Answered]


def answer_request(
    frame: bytes, served: ServedCluster, address: tuple[str, int], *, is_last_try: bool, client_host: str = ""
) -> Answered:
    """The answer to a request, given without its size; `address` is what its client is told to connect to.

    Raises RefusedError if it isn't one that is answered.
    """
    try:
        header = read_request_header(frame)
        name = f"{shown_text(header.client_id or '-', MOST_CLIENT_ID)} {api_name(header.api_key) or header.api_key}"
        line = f"{name} v{header.api_version}"
        if not is_known(header):
            if header.api_key != API_VERSIONS:
                raise RefusedError(f"{line}: not served")
            pieces = build_response(API_VERSIONS, 0, header.correlation_id, unsupported_versions(), StoredRecords)
            return Answered(pieces, f"{line}: not known, asked to take another version")
        client = ClientName(header.client_id or "", client_host)
        host, port = address
        request = ApiRequest(
            served, header.api_version, read_body(header, frame), host, port, is_last_try=is_last_try, client=client
        )
        answer = APIS[header.api_key].answer(request)
        if answer.later is not None:
            outcome, finish = answer.later
            return Answered([], line, later=AnsweredLater(outcome, lambda: _answered(header, line, finish())))
        return _answered(header, line, answer)
    except RefusedError:
        raise
    except KsegError as error:
        raise RefusedError(shown_text(str(error))) from error


def _answered(header: MessageHeader, line: str, answer: ApiAnswer) -> Answered:
    pieces = [] if answer.body is None else _encoded(header, answer.body)
    noted = f"{line}: {shown_text(answer.note)}" if answer.note else line
    return Answered(pieces, noted, answer.wait_seconds, answer.awaited)


def is_known(header: MessageHeader) -> bool:
    """Whether the schemas have this version of an api that is served."""
    return header.api_key in APIS and header.api_version in version_range(REQUESTS[header.api_key].versions)


def read_body(header: MessageHeader, frame: bytes) -> Fields:
    """The request's body. Bytes after it are ignored, as brokers do: librdkafka 2.16 asks for all topics with three."""
    schema = REQUESTS[header.api_key]
    body, _ = parse_message(schema, header.api_version, frame, header.size, most_elements=MOST_REQUEST_ELEMENTS)
    body.pop(UNKNOWN_TAGGED_FIELDS, None)
    return body


def _encoded(header: MessageHeader, body: Fields) -> list[Piece]:
    return build_response(header.api_key, header.api_version, header.correlation_id, body, StoredRecords)
