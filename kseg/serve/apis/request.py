"""A request of an API, replica ids in it, and SASL requests after the log-in."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.formats.messages import Fields
from kseg.formats.schemas import REQUESTS, VersionRange, version_range
from kseg.serve.cluster import ServedCluster
from kseg.serve.groups.classic import ClientName
from kseg.serve.partition import ServedPartition
from kseg.serve.values import ErrorCode


class ApiRequest(NamedTuple):
    """A request, read, and the address that its client is to use.

    `is_last_try`: the client waits no longer, so that also an answer without records goes out. `client`: who it is.
    """

    served: ServedCluster
    version: int
    body: Fields
    host: str
    port: int
    is_last_try: bool = True
    client: ClientName = ClientName("", "")


class Later(NamedTuple):
    """What is known once other clients have done something, and the answer that is given then."""

    outcome: Future[Any]
    answer: "Callable[[], ApiAnswer]"


class ApiAnswer(NamedTuple):
    """A response's body, or None where none is sent; `note` says for the log of requests what it was about.

    `wait_seconds`: the client would rather have an answer with more in it, up to so long after its request, as soon as
    one of `awaited` goes on after the offset beside it. `later`: the answer is given after others have done something.
    """

    body: Fields | None
    note: str = ""
    wait_seconds: float = 0.0
    awaited: Mapping[ServedPartition, int] = MappingProxyType({})
    later: Later | None = None


class Api(NamedTuple):
    """An api: its key, what answers it, whether clients are told of it, and of which versions if not of all known."""

    key: int
    answer: Callable[[ApiRequest], ApiAnswer]
    is_offered: bool = True
    told_versions: VersionRange | None = None

    @property
    def versions(self) -> VersionRange:
        """The versions that clients are told."""
        return self.told_versions or version_range(REQUESTS[self.key].versions)


CONSUMER = -1
"""Whoever isn't a broker; larger ones are brokers."""
DEBUGGING_CONSUMER = -2
"""A consumer that wants to see everything."""


SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
LATE = "SaslAuthenticate request received after successful authentication"
"""Kafka's text."""


def refuse_handshake(_: ApiRequest) -> ApiAnswer:
    """ILLEGAL_SASL_STATE, and no mechanisms."""
    return ApiAnswer({"errorCode": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}, "refused")


def refuse_authentication(_: ApiRequest) -> ApiAnswer:
    """ILLEGAL_SASL_STATE."""
    body = {"errorCode": ErrorCode.ILLEGAL_SASL_STATE, "errorMessage": LATE, "authBytes": b""}
    return ApiAnswer(body, "refused")
