"""Requests and responses as values: headers, by api and version, and bodies.

Source: Kafka's RequestHeader, ResponseHeader, ApiMessageType, ApiVersionsResponse.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from kseg.errors import KsegError
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, Fields, MessageError, parse_message
from kseg.formats.schemas import REQUESTS, RESPONSES, MessageSchema, message_schema, version_range
from kseg.releases import NEWEST

PRODUCE, CONTROLLED_SHUTDOWN, API_VERSIONS = 0, 7, 18
"""Keys of apis with special rules."""
UNSUPPORTED_VERSION = 35
"""The error with which a broker answers an ApiVersions request that is too new for it."""
MOST_ELEMENTS = 1 << 20
"""The most elements and tagged fields that are read from one message; each takes a hundred bytes of memory or more."""
_SMALLEST_HEADER = 8
_NEWEST_VERSION = 64
"""No api will have more versions soon: bytes with a higher one aren't a request."""


class FrameError(KsegError):
    """Bytes that can't be the beginning of a request or response."""


class MessageHeader(NamedTuple):
    """A request's header."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    version: int | None
    """The version of the header itself; None (read as version 1) if the api isn't known."""
    tagged_fields: dict[int, bytes]
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class ApiMessage:
    """A request or a response.

    `body` is None if the schemas don't have it, or if it can't be read: then `problem` says why. A response without a
    known request has no api.
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

    @property
    def api(self) -> str | None:
        """The api's name, without Request or Response; None if it isn't known."""
        return None if self.api_key is None else api_name(self.api_key)

    @property
    def unknown(self) -> str | None:
        """Why its body isn't read although nothing is wrong with it: the schemas don't have its api or its version."""
        if self.schema is not None or self.api_key is None or self.api_version is None:
            return None
        known = version_range(REQUESTS[self.api_key].versions if self.api_key in REQUESTS else "none")
        if self.api is None or self.api_version > known.last >= known.first:
            what = f"api {self.api_key}" if self.api is None else f"{self.api} version {self.api_version}"
            return f"{what} is newer than kseg knows: its schemas are those of Kafka {NEWEST}"
        return f"{self.api} version {self.api_version} is older than the schemas of Kafka {NEWEST}"

    @property
    def is_answered(self) -> bool:
        """Whether a broker answers this request: a Produce request with acks 0 gets no response."""
        return not (self.api_key == PRODUCE and self.body is not None and self.body["acks"] == 0)


def api_name(api_key: int) -> str | None:
    """The name of an api; None if the newest known Kafka has none with this key."""
    name = REQUESTS.names.get(api_key)
    return None if name is None else name.removesuffix("Request")


def request_header_version(api_key: int, api_version: int) -> int | None:
    """The version of a request's header: 2 with flexible bodies, else 1; None if the api isn't known."""
    if (api_key, api_version) == (CONTROLLED_SHUTDOWN, 0):
        return 0
    if not _is_known(api_key):
        return None
    return 2 if api_version in version_range(REQUESTS[api_key].flexible) else 1


def response_header_version(api_key: int, api_version: int) -> int | None:
    """The version of a response's header: 1 with flexible bodies, else 0; None if the api isn't known.

    0 for ApiVersions whatever its version: every client must be able to read the response.
    """
    if not _is_known(api_key):
        return None
    return int(api_key != API_VERSIONS and api_version in version_range(RESPONSES[api_key].flexible))


def _is_known(api_key: int) -> bool:
    return api_key in REQUESTS and REQUESTS[api_key].versions != "none"


def read_request_header(data: bytes) -> MessageHeader:
    """The header at the start of a request, given without its size. Raises FrameError if there is none."""
    if len(data) < _SMALLEST_HEADER:
        raise FrameError(f"{len(data)} bytes are too few for a request")
    api_key, api_version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
    if api_key < 0 or not 0 <= api_version < _NEWEST_VERSION:
        raise FrameError(f"there can't be an api key {api_key} in version {api_version}")
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
    """A request, given without its size. Raises FrameError if it doesn't begin with a request's header."""
    header = read_request_header(data)
    schema, body, problem = _read_body(REQUESTS.get(header.api_key), header.api_version, data, header.size)
    return ApiMessage(
        kind="request",
        correlation_id=header.correlation_id,
        header_version=header.version,
        tagged_fields=header.tagged_fields,
        body_size=len(data) - header.size,
        api_key=header.api_key,
        api_version=header.api_version,
        client_id=header.client_id,
        schema=schema,
        body_version=header.api_version,
        body=body,
        problem=problem,
    )


def correlation_id_of(response: bytes) -> int:
    """The number of the request that a response answers. Raises FrameError if there are too few bytes."""
    if len(response) < 4:
        raise FrameError(f"{len(response)} bytes are too few for a response")
    return int.from_bytes(response[:4], "big", signed=True)


def read_response(data: bytes, api_key: int | None, api_version: int | None) -> ApiMessage:
    """A response to a request of this api, given without its size.

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
    schema, body, problem = _read_body(RESPONSES.get(api_key), api_version, data, size)
    if api_key == API_VERSIONS and body is None and data[4:6] == UNSUPPORTED_VERSION.to_bytes(2, "big"):
        # The broker doesn't know the version: it answers in the first one, with the list of those that it knows.
        body_version = 0
        schema, body, problem = _read_body(RESPONSES[api_key], 0, data, size)
    return ApiMessage(
        kind="response",
        correlation_id=correlation_id,
        header_version=version,
        tagged_fields=fields.get(UNKNOWN_TAGGED_FIELDS, {}),
        body_size=len(data) - size,
        api_key=api_key,
        api_version=api_version,
        schema=schema,
        body_version=body_version,
        body=body,
        problem=problem,
    )


def _read_body(
    schema: MessageSchema | None, version: int, data: bytes, start: int
) -> tuple[MessageSchema | None, Fields | None, str | None]:
    """Schema, body, and what is wrong; the first two are None if the schemas don't have the version."""
    if schema is None or version not in version_range(schema.versions):
        return None, None, None
    try:
        body, end = parse_message(schema, version, data, start, most_elements=MOST_ELEMENTS)
    except MessageError as error:
        return schema, None, f"{error}"
    if end != len(data):
        return schema, None, f"{schema.name} version {version} ends {len(data) - end} bytes before its frame"
    return schema, body, None
