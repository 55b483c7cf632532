"""Apis that would change something: not offered to clients, and refused if they are used all the same."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode

READ_ONLY = "kseg serve is read-only"
ITSELF = ""
"""As the name of a field: the element of a list has no fields, it is the value."""

TOPIC, GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER, TRANSACTION = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
TOKEN = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED

ErrorOf = ErrorCode | Callable[[Fields], ErrorCode]
"""An error, or what gives it for an element of a request or for all of it."""
_OF_RESOURCE = {2: TOPIC, 32: GROUP}
"""By ConfigResource.Type."""


class Each(NamedTuple):
    """A list of a response, with an element for each one of some lists of the request.

    asked: the request's lists; a dot leads into a list's elements. copied: fields of the response and of the request.
    inside: a list in each element; the error is in its elements then.
    """

    answered: str
    asked: tuple[str, ...]
    copied: tuple[tuple[str, str], ...] = ()
    inside: "Each | None" = None
    error_field: str = "errorCode"


class Refusal(NamedTuple):
    """An api, the error in some lists of its response, and the error in the response itself."""

    api: str
    error: ErrorOf = ErrorCode.NONE
    lists: tuple[Each, ...] = ()
    top: ErrorOf | None = None

    def answer(self, request: ApiRequest) -> ApiAnswer:
        """The response, with the error at its places."""
        top = {} if self.top is None else _failure("errorCode", self.top, request.body)
        lists: dict[str, list[Fields]] = {each.answered: [] for each in self.lists}
        for each in self.lists:
            lists[each.answered] += _elements(each, request.body, self.error)
        return ApiAnswer({**top, **lists}, "refused")


def _elements(each: Each, fields: Fields, error: ErrorOf) -> Iterator[Fields]:
    for path in each.asked:
        for asked in _found(fields, path.split(".")):
            fields_of = {ITSELF: asked} if not isinstance(asked, dict) else asked
            copied = {name: fields_of[own] for name, own in each.copied if own in fields_of}
            if each.inside is None:
                yield {**_failure(each.error_field, error, asked), **copied}
            else:
                yield {**copied, each.inside.answered: list(_elements(each.inside, asked, error))}


def _found(fields: Fields, path: list[str]) -> Iterator[Any]:
    """The elements of a list, or of lists in the elements of one; of one that isn't in this version, none."""
    name, *inner = path
    for element in fields.get(name) or ():
        yield from _found(element, inner) if inner else (element,)


def _failure(field: str, error: ErrorOf, asked: Fields) -> Fields:
    return {field: error(asked) if callable(error) else error, "errorMessage": READ_ONLY}


def _of_resource(resource: Fields) -> ErrorCode:
    return _OF_RESOURCE.get(resource["resourceType"], CLUSTER)


def _of_producer(body: Fields) -> ErrorCode:
    return CLUSTER if body["transactionalId"] is None else TRANSACTION


_NAME, _TOPIC_ID = ("name", "name"), ("topicId", "topicId")
_NAMELESS_PARTITION = (("partitionIndex", ITSELF),)
_PARTITIONS = Each("partitions", ("partitions",), (("partitionIndex", "partitionIndex"),))
_RESOURCES = Each("responses", ("resources",), (("resourceType", "resourceType"), ("resourceName", "resourceName")))
_OF_TRANSACTION = Each("resultsByPartition", ("partitions",), _NAMELESS_PARTITION, error_field="partitionErrorCode")
_OF_MARKER = Each("topics", ("topics",), (_NAME,), Each("partitions", ("partitionIndexes",), _NAMELESS_PARTITION))

REFUSALS = (
    Refusal("CreateTopics", TOPIC, (Each("topics", ("topics",), (_NAME,)),)),
    Refusal(
        "DeleteTopics",
        TOPIC,
        (
            Each("responses", ("topics",), (_NAME, _TOPIC_ID)),
            Each("responses", ("topicNames",), (("name", ITSELF),)),
        ),
    ),
    Refusal("DeleteRecords", TOPIC, (Each("topics", ("topics",), (_NAME,), _PARTITIONS),)),
    Refusal("InitProducerId", top=_of_producer),
    Refusal(
        "AddPartitionsToTxn",
        TRANSACTION,
        (Each("resultsByTopicV3AndBelow", ("v3AndBelowTopics",), (_NAME,), _OF_TRANSACTION),),
        top=CLUSTER,  # from version 4 on, which brokers alone send
    ),
    Refusal("AddOffsetsToTxn", top=TRANSACTION),
    Refusal("EndTxn", top=TRANSACTION),
    Refusal("WriteTxnMarkers", CLUSTER, (Each("markers", ("markers",), (("producerId", "producerId"),), _OF_MARKER),)),
    Refusal("TxnOffsetCommit", TRANSACTION, (Each("topics", ("topics",), (_NAME, _TOPIC_ID), _PARTITIONS),)),
    Refusal("CreateAcls", CLUSTER, (Each("results", ("creations",)),)),
    Refusal("DeleteAcls", CLUSTER, (Each("filterResults", ("filters",)),)),
    Refusal("AlterConfigs", _of_resource, (_RESOURCES,)),
    Refusal(
        "AlterReplicaLogDirs",
        CLUSTER,
        (
            Each(
                "results",
                ("dirs.topics",),
                (("topicName", "name"),),
                Each("partitions", ("partitions",), _NAMELESS_PARTITION),
            ),
        ),
    ),
    Refusal("CreatePartitions", TOPIC, (Each("results", ("topics",), (_NAME,)),)),
    Refusal("CreateDelegationToken", top=TOKEN),
    Refusal("RenewDelegationToken", top=TOKEN),
    Refusal("ExpireDelegationToken", top=TOKEN),
    Refusal("DeleteGroups", GROUP, (Each("results", ("groupsNames",), (("groupId", ITSELF),)),)),
    Refusal(
        "ElectLeaders",
        CLUSTER,
        (
            Each(
                "replicaElectionResults",
                ("topicPartitions",),
                (("topic", "topic"),),
                Each("partitionResult", ("partitions",), (("partitionId", ITSELF),)),
            ),
        ),
        top=CLUSTER,
    ),
    Refusal("IncrementalAlterConfigs", _of_resource, (_RESOURCES,)),
    Refusal("AlterPartitionReassignments", top=CLUSTER),
    Refusal("OffsetDelete", top=GROUP),
    Refusal("AlterClientQuotas", CLUSTER, (Each("entries", ("entries",), (("entity", "entity"),)),)),
    Refusal("AlterUserScramCredentials", CLUSTER, (Each("results", ("deletions", "upsertions"), (("user", "name"),)),)),
    Refusal("UpdateFeatures", top=CLUSTER),
    Refusal("UnregisterBroker", top=CLUSTER),
    Refusal("AddRaftVoter", top=CLUSTER),
    Refusal("RemoveRaftVoter", top=CLUSTER),
    Refusal("AlterShareGroupOffsets", top=GROUP),
    Refusal("DeleteShareGroupOffsets", top=GROUP),
)
"""All of them, as a broker refuses them to a client without rights. Source: KafkaApis, ControllerApis."""
