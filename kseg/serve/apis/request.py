"""A parsed request of an API, replica ids, and SASL requests after the log-in."""

from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.formats.messages import Fields
from kseg.formats.schemas import VersionRange
from kseg.protocol.error_codes import ErrorCode
from kseg.serve.cluster import ServedCluster
from kseg.serve.groups.classic import ClientName
from kseg.serve.partition import ServedPartition
from kseg.serve.turns import Step


class ApiRequest(NamedTuple):
    """A parsed request, and the address that its client is to use.

    `is_last_try`: the client has no time left to wait, so the answer is sent even without records. `client`: its name
    and host.
    """

    served: ServedCluster
    version: int
    body: Fields
    host: str
    port: int
    is_last_try: bool = True
    client: ClientName = ClientName("", "")


class Later(NamedTuple):
    """An answer that waits for other clients' actions: the future result, and the function from it to the answer."""

    outcome: Future[Any]
    answer: "Callable[[], ApiAnswer]"


class ApiAnswer(NamedTuple):
    """The body of a response, or None if there is no response. `note` is used in the request log.

    `wait_seconds`: the client prefers to wait this long after its request for a fuller answer, until a partition of
    `awaited` grows beyond the given offset. `later`: the answer waits for other clients' actions.
    """

    body: Fields | None
    note: str = ""
    wait_seconds: float = 0.0
    awaited: Mapping[ServedPartition, int] = MappingProxyType({})
    later: Later | None = None


ApiSteps = Generator[Step | None, None, ApiAnswer]
"""A long answer in steps. It changes nothing before its end, so it can be started again."""


class Api(NamedTuple):
    """An API: its key, the answered versions, the answering function, and whether it is listed for clients.

    told_versions: the listed versions, if these differ. changes: whether an answer changes later
    answers, so that a request must not be answered twice. begins_at_once: whether an answer's steps tell when it needs
    a worker; other answers need one from the start.
    """

    key: int
    versions: VersionRange
    answer: Callable[[ApiRequest], ApiAnswer | ApiSteps]
    is_offered: bool = True
    told_versions: VersionRange | None = None
    changes: bool = False
    begins_at_once: bool = False

    @property
    def advertised_versions(self) -> VersionRange:
        """The versions listed for clients."""
        return self.told_versions or self.versions


_NAMES = ("name", "topic", "topicId")


def merged_topics(topics: Iterable[Fields], partitions: str, number: str | None = None) -> list[Fields]:
    """Return the topics of a request and their partitions, each once, so that a small request can't get a huge answer.

    partitions: the field that lists partitions. number: the field of a partition with its number; None if it is the
    number itself.
    """
    found: dict[tuple[tuple[str, Any], ...], dict[int, Any]] = {}
    for topic in topics:
        named = tuple((name, topic[name]) for name in _NAMES if name in topic)
        of_topic = found.setdefault(named, {})
        for each in topic[partitions]:
            of_topic.setdefault(each if number is None else each[number], each)
    return [{**dict(named), partitions: [*of_topic.values()]} for named, of_topic in found.items()]


CONSUMER = -1
"""The replica id of clients; larger ids are brokers."""
DEBUGGING_CONSUMER = -2
"""The replica id of a consumer that may see everything."""


SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
LATE = "SaslAuthenticate request received after successful authentication"
"""Kafka's text."""


def refuse_handshake(_: ApiRequest) -> ApiAnswer:
    """Return ILLEGAL_SASL_STATE without mechanisms."""
    return ApiAnswer({"errorCode": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}, "refused")


def refuse_authentication(_: ApiRequest) -> ApiAnswer:
    """Return ILLEGAL_SASL_STATE."""
    body = {"errorCode": ErrorCode.ILLEGAL_SASL_STATE, "errorMessage": LATE, "authBytes": b""}
    return ApiAnswer(body, "refused")
