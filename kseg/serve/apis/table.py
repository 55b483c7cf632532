"""The table of APIs and their versions, and the refusals of others."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

from kseg.formats.messages import Fields
from kseg.formats.schemas import REQUESTS, VersionRange, version_range
from kseg.protocol.error_codes import ErrorCode
from kseg.protocol.messages import API_VERSIONS, PRODUCE, api_name
from kseg.serve.apis.cluster import (
    answer_describe_acls,
    answer_describe_cluster,
    answer_describe_log_dirs,
    answer_describe_producers,
    answer_describe_topic_partitions,
    answer_describe_transactions,
    answer_list_partition_reassignments,
    answer_list_transactions,
    answer_metadata,
)
from kseg.serve.apis.committed import answer_offset_commit, answer_offset_fetch
from kseg.serve.apis.configs import answer_describe_configs
from kseg.serve.apis.fetch import answer_fetch, answer_list_offsets, answer_offset_for_leader_epoch, refuse_produce
from kseg.serve.apis.groups import (
    answer_consumer_group_describe,
    answer_describe_groups,
    answer_find_coordinator,
    answer_list_groups,
)
from kseg.serve.apis.membership import (
    answer_consumer_heartbeat,
    answer_heartbeat,
    answer_join_group,
    answer_leave_group,
    answer_sync_group,
)
from kseg.serve.apis.request import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
    ApiAnswer,
    ApiRequest,
    ApiSteps,
    refuse_authentication,
    refuse_handshake,
)

READ_ONLY = "kseg serve is read-only"
ITSELF = ""
"""A field name for list elements that are plain values."""

TOPIC, GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER, TRANSACTION = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
TOKEN = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED

ErrorOf = ErrorCode | Callable[[Fields], ErrorCode]
"""An error, or the function that returns it for an element of a request or for the request."""
_OF_RESOURCE = {2: TOPIC, 32: GROUP}
"""The errors by ConfigResource.Type."""


class Each(NamedTuple):
    """A list in a response, with one element per element of some lists in the request.

    asked: the request's lists; a dot leads into a list's elements. copied: fields of the response and of the request.
    inside: a list in each element, which has the error then.
    """

    answered: str
    asked: tuple[str, ...]
    copied: tuple[tuple[str, str], ...] = ()
    inside: "Each | None" = None
    error_field: str = "errorCode"


class Refusal(NamedTuple):
    """A refused API: the error in some lists of its response, and the error in the response itself."""

    api: str
    error: ErrorOf = ErrorCode.NONE
    lists: tuple[Each, ...] = ()
    top: ErrorOf | None = None

    def answer(self, request: ApiRequest) -> ApiSteps:
        """Return the response with the errors in it."""
        top = {} if self.top is None else _failure("errorCode", self.top, request.body)
        lists: dict[str, list[Fields]] = {each.answered: [] for each in self.lists}
        for each in self.lists:
            lists[each.answered] += yield from _elements(each, [request.body], self.error)
        return ApiAnswer({**top, **lists}, "refused")


def _elements(each: Each, holders: Sequence[Fields], error: ErrorOf) -> Generator[None, None, list[Fields]]:
    """Build an element per element of the lists in some structures, merging repeated ones; one step per element."""
    merged: dict[Any, tuple[Fields, list[Any]]] = {}
    for number, asked in enumerate(_asked_of(each, holders)):
        fields_of = {ITSELF: asked} if not isinstance(asked, dict) else asked
        copied = {name: fields_of[own] for name, own in each.copied if own in fields_of}
        is_named = bool(copied) and not any(isinstance(value, list) for value in copied.values())
        merged.setdefault(tuple(copied.items()) if is_named else number, (copied, []))[1].append(asked)
        yield
    found: list[Fields] = []
    for copied, same in merged.values():
        if each.inside is None:
            found.append({**_failure(each.error_field, error, same[0]), **copied})
        else:
            found.append({**copied, each.inside.answered: (yield from _elements(each.inside, same, error))})
        yield
    return found


def _asked_of(each: Each, holders: Sequence[Fields]) -> Iterator[Any]:
    for path in each.asked:
        for holder in holders:
            yield from _found(holder, path.split("."))


def _found(fields: Fields, path: list[str]) -> Iterator[Any]:
    """Yield the elements of a list, or of lists in its elements; none if this version doesn't have it."""
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
        top=CLUSTER,  # from version 4 on, which only brokers send
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
"""All refused APIs, with a broker's errors for clients without rights. Source: KafkaApis, ControllerApis."""


FETCH, LIST_OFFSETS, METADATA = 1, 2, 3
OFFSET_FOR_LEADER_EPOCH, DESCRIBE_ACLS, LIST_PARTITION_REASSIGNMENTS = 23, 29, 46
DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 32, 35
DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 60, 75
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 11, 12, 13, 14, 15, 16
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
OLD_PRODUCE = VersionRange(0, 13)
"""Brokers list versions that they no longer accept, from which some clients infer the supported codecs."""


def answer_api_versions(request: ApiRequest) -> ApiAnswer:
    """Return the table; in version 5 an error if the client is looking for another cluster or broker (KIP-1242)."""
    wanted, node = request.body.get("clusterId"), request.body.get("nodeId", -1)
    is_other = wanted is not None and wanted != request.served.cluster_id
    is_other = is_other or (node >= 0 and wanted is not None and node != request.served.node_id)
    error = ErrorCode.REBOOTSTRAP_REQUIRED if is_other else ErrorCode.NONE
    return ApiAnswer({"errorCode": error, "apiKeys": [_row(api) for api in APIS.values() if api.is_offered]})


def unsupported_versions() -> Fields:
    """Return the answer, in version 0, to an ApiVersions request of a version that isn't known."""
    return {"errorCode": ErrorCode.UNSUPPORTED_VERSION, "apiKeys": [_row(APIS[API_VERSIONS])]}


def _row(api: Api) -> Fields:
    return {"apiKey": api.key, "minVersion": api.advertised_versions.first, "maxVersion": api.advertised_versions.last}


def _refusing_api(refusal: Refusal) -> Api:
    key = next(key for key in REQUESTS if api_name(key) == refusal.api)
    return Api(key, version_range(REQUESTS[key].versions), refusal.answer, is_offered=False)


APIS = {
    api.key: api
    for api in (
        Api(PRODUCE, VersionRange(3, 13), refuse_produce, told_versions=OLD_PRODUCE),
        Api(FETCH, VersionRange(4, 18), answer_fetch, changes=True, begins_at_once=True),
        Api(LIST_OFFSETS, VersionRange(1, 11), answer_list_offsets),
        Api(METADATA, VersionRange(0, 13), answer_metadata),
        Api(OFFSET_FOR_LEADER_EPOCH, VersionRange(2, 4), answer_offset_for_leader_epoch),
        Api(DESCRIBE_ACLS, VersionRange(1, 3), answer_describe_acls),
        Api(DESCRIBE_CONFIGS, VersionRange(1, 4), answer_describe_configs),
        Api(DESCRIBE_LOG_DIRS, VersionRange(1, 5), answer_describe_log_dirs),
        Api(DESCRIBE_PRODUCERS, VersionRange(0, 0), answer_describe_producers),
        Api(DESCRIBE_TRANSACTIONS, VersionRange(0, 0), answer_describe_transactions),
        Api(LIST_TRANSACTIONS, VersionRange(0, 2), answer_list_transactions),
        Api(LIST_PARTITION_REASSIGNMENTS, VersionRange(0, 0), answer_list_partition_reassignments),
        Api(DESCRIBE_CLUSTER, VersionRange(0, 2), answer_describe_cluster),
        Api(DESCRIBE_TOPIC_PARTITIONS, VersionRange(0, 0), answer_describe_topic_partitions),
        Api(SASL_HANDSHAKE, VersionRange(0, 1), refuse_handshake),
        Api(OFFSET_COMMIT, VersionRange(2, 10), answer_offset_commit, changes=True),
        Api(OFFSET_FETCH, VersionRange(1, 10), answer_offset_fetch),
        Api(FIND_COORDINATOR, VersionRange(0, 6), answer_find_coordinator),
        Api(JOIN_GROUP, VersionRange(0, 9), answer_join_group, changes=True),
        Api(HEARTBEAT, VersionRange(0, 4), answer_heartbeat, changes=True),
        Api(LEAVE_GROUP, VersionRange(0, 5), answer_leave_group, changes=True),
        Api(SYNC_GROUP, VersionRange(0, 5), answer_sync_group, changes=True),
        Api(DESCRIBE_GROUPS, VersionRange(0, 6), answer_describe_groups),
        Api(LIST_GROUPS, VersionRange(0, 5), answer_list_groups),
        Api(CONSUMER_GROUP_HEARTBEAT, VersionRange(0, 1), answer_consumer_heartbeat, changes=True),
        Api(CONSUMER_GROUP_DESCRIBE, VersionRange(0, 1), answer_consumer_group_describe),
        Api(API_VERSIONS, VersionRange(0, 5), answer_api_versions),
        Api(SASL_AUTHENTICATE, VersionRange(0, 2), refuse_authentication),
        *(_refusing_api(refusal) for refusal in REFUSALS),
    )
}
