"""A request of an API, replica ids in it, and SASL requests after the log-in."""

from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.formats.messages import Fields
from kseg.formats.schemas import VersionRange
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


ApiSteps = Generator[None, None, ApiAnswer]
"""An answer that takes long, a little at a time: nothing is changed until it is there, so that it may begin again."""


class Api(NamedTuple):
    """An api: its key, the versions that are answered, by what, and whether clients are told of it.

    told_versions: those that clients are told, if not these. changes: whether an answer changes what others are
    answered, so that a request isn't answered twice.
    """

    key: int
    versions: VersionRange
    answer: Callable[[ApiRequest], ApiAnswer | ApiSteps]
    is_offered: bool = True
    told_versions: VersionRange | None = None
    changes: bool = False

    @property
    def told(self) -> VersionRange:
        """The versions that clients are told."""
        return self.told_versions or self.versions


_NAMES = ("name", "topic", "topicId")


def merged_topics(topics: Iterable[Fields], partitions: str, number: str | None = None) -> list[Fields]:
    """A request's topics, each once with each of its partitions once: a small request shall not have a huge answer.

    partitions: the field that lists partitions. number: the field of each that has its number; None: it is the number.
    """
    found: dict[tuple[tuple[str, Any], ...], dict[int, Any]] = {}
    for topic in topics:
        named = tuple((name, topic[name]) for name in _NAMES if name in topic)
        of_topic = found.setdefault(named, {})
        for each in topic[partitions]:
            of_topic.setdefault(each if number is None else each[number], each)
    return [{**dict(named), partitions: [*of_topic.values()]} for named, of_topic in found.items()]


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
