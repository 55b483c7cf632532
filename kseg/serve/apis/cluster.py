"""APIs about the cluster: metadata, log directories, topic partitions, transactions, producers, ACLs."""

import re
import shutil
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

from kseg.decode.kafka_text import STATES
from kseg.errors import KsegError, plural
from kseg.formats.messages import ZERO_UUID, Fields, LazyList
from kseg.index.producers import ProducerState
from kseg.log.transactions import CoordinatorTransaction
from kseg.protocol.error_codes import ErrorCode
from kseg.serve.apis.request import ApiAnswer, ApiRequest, ApiSteps, merged_topics
from kseg.serve.cluster import ServedTopic
from kseg.serve.partition import ServedPartition
from kseg.serve.values import ClientPattern, PatternError, compile_pattern

_NO_DURATION = -1


def answer_list_transactions(request: ApiRequest) -> ApiAnswer:
    """Return the transactional ids that pass all filters. Source: TransactionStateManager.listTransactionStates."""
    body = request.body
    unknown = [state for state in dict.fromkeys(body["stateFilters"]) if state not in STATES]
    try:
        wanted = body.get("transactionalIdPattern")
        pattern = compile_pattern(wanted) if wanted else None
        found = request.served.transactions.all().values()
    except PatternError as error:
        return ApiAnswer({"errorCode": ErrorCode.INVALID_REGULAR_EXPRESSION, "transactionStates": []}, error.message)
    except KsegError:
        return ApiAnswer({"errorCode": ErrorCode.KAFKA_STORAGE_ERROR, "transactionStates": []})
    now_ms = int(time.time() * 1000)
    body = {**body, **{name: frozenset(body[name]) for name in ("stateFilters", "producerIdFilters")}}
    states = [
        {"transactionalId": each.transactional_id, "producerId": each.producer_id, "transactionState": each.state}
        for each in found
        if _passes(each, body, pattern, now_ms)
    ]
    return ApiAnswer({"unknownStateFilters": unknown, "transactionStates": states}, f"{len(states)} transactional ids")


def _passes(each: CoordinatorTransaction, body: Fields, pattern: ClientPattern | None, now_ms: int) -> bool:
    states, producers = body["stateFilters"], body["producerIdFilters"]
    longer_than = body.get("durationFilter", _NO_DURATION)
    return (
        (not states or each.state in states)
        and (not producers or each.producer_id in producers)
        and (longer_than < 0 or now_ms - each.start_timestamp > longer_than)
        and (pattern is None or bool(pattern.fullmatch(each.transactional_id)))
    )


def answer_describe_transactions(request: ApiRequest) -> ApiAnswer:
    """Return the known facts of some transactional ids, each once."""
    names = dict.fromkeys(request.body["transactionalIds"])
    try:
        known = request.served.transactions.all()
    except KsegError:
        states = ({"transactionalId": name, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR} for name in names)
    else:
        states = (_describe_transaction(name, known.get(name)) for name in names)
    return ApiAnswer({"transactionStates": LazyList(len(names), states)}, f"{len(names)} transactional ids")


def _describe_transaction(name: str, known: CoordinatorTransaction | None) -> Fields:
    if known is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if name else ErrorCode.INVALID_REQUEST
        return {"transactionalId": name, "errorCode": error}
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in known.partitions:
        topics[topic].append(partition)
    return {
        "transactionalId": name,
        "transactionState": known.state,
        "transactionTimeoutMs": known.timeout_ms,
        "transactionStartTimeMs": known.start_timestamp,
        "producerId": known.producer_id,
        "producerEpoch": known.producer_epoch,
        "topics": [{"topic": topic, "partitions": partitions} for topic, partitions in topics.items()],
    }


def answer_describe_producers(request: ApiRequest) -> ApiAnswer:
    """Return the producers of each partition once, including ones that a running broker would forget."""
    asked = merged_topics(request.body["topics"], "partitionIndexes")
    topics = [{"name": each["name"], "partitions": _producers_of(request, each)} for each in asked]
    return ApiAnswer({"topics": topics}, f"{sum(len(each['partitionIndexes']) for each in asked)} partitions")


def _producers_of(request: ApiRequest, asked: Fields) -> LazyList:
    numbers = asked["partitionIndexes"]
    return LazyList(len(numbers), (_of_partition(request, asked["name"], number) for number in numbers))


def _of_partition(request: ApiRequest, name: str, number: int) -> Fields:
    partition = request.served.partition_of(name, number)
    if partition is None:
        return {"partitionIndex": number, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    try:
        producers = [_active(each) for each in partition.producers()]
    except KsegError:
        return {"partitionIndex": number, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR}
    return {"partitionIndex": number, "activeProducers": producers}


def _active(state: ProducerState) -> Fields:
    return {
        "producerId": state.producer_id,
        "producerEpoch": state.epoch,
        "lastSequence": state.last_sequence,
        "lastTimestamp": state.timestamp,
        "coordinatorEpoch": state.coordinator_epoch,
        "currentTxnStartOffset": state.current_txn_first_offset,
    }


READ_ONLY = 1 << 3 | 1 << 8 | 1 << 10
"""Allowed operations on a topic: Read, Describe, DescribeConfigs. Source: AclOperation."""
DESCRIBE_CLUSTER = 1 << 8
"""Allowed operations on the cluster: Describe."""
_NULL_IS_ALL = 1
"""From this version on an empty list asks for no topics, and null for all of them."""


def answer_metadata(request: ApiRequest) -> ApiAnswer:
    """Return the broker that all clients use, and the requested topics."""
    body, served = request.body, request.served
    asked = body["topics"]
    is_all = asked is None or (request.version < _NULL_IS_ALL and not asked)
    operations = {"topicAuthorizedOperations": READ_ONLY} if body.get("includeTopicAuthorizedOperations") else {}
    if is_all:
        count, topics = len(served.topics), (_describe_topic(topic, served.node_id) for topic in served.topics.values())
    else:
        named = {(each["name"], each.get("topicId", ZERO_UUID)): each for each in asked}  # each once, as a broker does
        count, topics = len(named), (_describe_requested(request, each) for each in named.values())
    of_cluster = {"clusterAuthorizedOperations": DESCRIBE_CLUSTER}
    return ApiAnswer(
        {
            "brokers": [{"nodeId": served.node_id, "host": request.host, "port": request.port}],
            "clusterId": served.cluster_id,
            "controllerId": served.node_id,
            "topics": LazyList(count, ({**topic, **operations} for topic in topics)),
            **(of_cluster if body.get("includeClusterAuthorizedOperations") else {}),
        },
        "all topics" if is_all else f"{plural(count, 'topic')}",
    )


def _describe_requested(request: ApiRequest, asked: Fields) -> Fields:
    name, topic_id = asked["name"], asked.get("topicId", ZERO_UUID)
    if name is None and request.version < _NAME_MAY_BE_NULL:
        return {"errorCode": ErrorCode.INVALID_REQUEST, "name": "", "topicId": topic_id, "partitions": []}
    topic = request.served.topic_of(name, topic_id)
    if topic is not None:
        return _describe_topic(topic, request.served.node_id)
    return {"errorCode": _missing_error(name), "name": name, "topicId": topic_id, "partitions": []}


def _missing_error(name: str | None) -> ErrorCode:
    """Return the error for a missing topic. Source: Topic.validate."""
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    is_possible = _TOPIC_NAME.fullmatch(name) and name not in (".", "..")
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_possible else ErrorCode.INVALID_TOPIC_EXCEPTION


_NAME_MAY_BE_NULL = 12
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def _describe_topic(topic: ServedTopic, node_id: int) -> dict[str, Any]:
    here = {"leaderId": node_id, "replicaNodes": [node_id], "isrNodes": [node_id]}
    return {
        "name": topic.name,
        "topicId": topic.topic_id,
        "isInternal": topic.is_internal,
        "partitions": LazyList(
            len(topic.partitions), ({"partitionIndex": number, **here} for number in topic.partitions)
        ),
    }


def answer_describe_log_dirs(request: ApiRequest) -> ApiSteps:
    """Return all log directories with the requested partitions. No partition lags: nobody appends to them."""
    wanted = _requested_partitions(request.body["topics"])
    inside: dict[Path, list[ServedPartition]] = defaultdict(list)
    for partition in request.served.partitions:
        if partition.listed is not None and (wanted is None or (partition.topic, partition.number) in wanted):
            inside[partition.listed.log_dir].append(partition)
    results = []
    for path in request.served.log_dirs:
        result = yield from _log_dir(path, inside[path])
        results += [result]
    return ApiAnswer({"results": results}, f"{len(results)} log directories")


def _requested_partitions(topics: list[Fields] | None) -> set[tuple[str, int]] | None:
    """Return the requested partitions, or None for all."""
    if topics is None:
        return None
    return {(topic["topic"], number) for topic in topics for number in topic["partitions"]}


def _log_dir(path: Path, partitions: list[ServedPartition]) -> Generator[None, None, Fields]:
    topics: dict[str, list[Fields]] = defaultdict(list)
    try:
        usage = shutil.disk_usage(path)
        for each in partitions:
            topics[each.topic].append({"partitionIndex": each.number, "partitionSize": each.size()})
            yield
    except (OSError, KsegError):
        return {"errorCode": ErrorCode.KAFKA_STORAGE_ERROR, "logDir": str(path), "topics": []}
    return {
        "logDir": str(path),
        "topics": [{"name": name, "partitions": found} for name, found in topics.items()],
        "totalBytes": usage.total,
        "usableBytes": usage.free,
    }


def answer_list_partition_reassignments(_: ApiRequest) -> ApiAnswer:
    """Return an empty answer: no partition is being reassigned."""
    return ApiAnswer({"errorMessage": None, "topics": []})


def answer_describe_acls(_: ApiRequest) -> ApiAnswer:
    """Return the error of a broker without authorizer."""
    return ApiAnswer(
        {"errorCode": ErrorCode.SECURITY_DISABLED, "errorMessage": "kseg serve has no authorizer", "resources": []}
    )


_BROKERS, _CONTROLLERS = 1, 2
"""Kinds of endpoints in a request."""


def answer_describe_cluster(request: ApiRequest) -> ApiAnswer:
    """Return the cluster; an error if the client wants controllers, since there are none here."""
    served, wanted = request.served, request.body.get("endpointType", _BROKERS)
    if wanted != _BROKERS:
        is_known = wanted == _CONTROLLERS
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = "this is a broker" if is_known else f"endpoint type {wanted} isn't known"
        return ApiAnswer({"errorCode": error, "errorMessage": message, "clusterId": ""}, "no controller here")
    is_asked = request.body["includeClusterAuthorizedOperations"]
    operations = {"clusterAuthorizedOperations": DESCRIBE_CLUSTER} if is_asked else {}
    return ApiAnswer(
        {
            "clusterId": served.cluster_id,
            "controllerId": served.node_id,
            "brokers": [{"brokerId": served.node_id, "host": request.host, "port": request.port}],
            **operations,
        }
    )


MOST_PARTITIONS = 2000
"""The most partitions in a response. Source: max.request.partition.size.limit."""


class _Cursor(NamedTuple):
    """The next partition to describe."""

    topic: str
    partition: int


def answer_describe_topic_partitions(request: ApiRequest) -> ApiAnswer:
    """Return the requested topics, or all, from the cursor on."""
    given = request.body["cursor"]
    start = _Cursor("", 0) if given is None else _Cursor(given["topicName"], given["partitionIndex"])
    names = {topic["name"] for topic in request.body["topics"]} or request.served.topics.keys()
    left = max(min(request.body["responsePartitionLimit"], MOST_PARTITIONS), 1)
    topics: list[Fields] = []
    following: _Cursor | None = None
    for name in sorted(name for name in names if name >= start.topic):
        if left <= 0:
            following = _Cursor(name, 0)
            break
        first = start.partition if name == start.topic else 0
        topic, following = _topic(request, _Cursor(name, first), left)
        topics.append(topic)
        left -= len(topic["partitions"])
        if following is not None:
            break
    cursor = {"topicName": following.topic, "partitionIndex": following.partition} if following else None
    return ApiAnswer({"topics": topics, "nextCursor": cursor}, f"{plural(len(topics), 'topic')}")


def _topic(request: ApiRequest, start: _Cursor, most: int) -> tuple[Fields, _Cursor | None]:
    """Return at most `most` partitions of a topic, and the cursor in it, or None after its last partition."""
    topic = request.served.topics.get(start.topic)
    known: Fields = {"name": start.topic, "topicAuthorizedOperations": READ_ONLY}
    if topic is None:
        return {**known, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "partitions": []}, None
    numbers = [number for number in topic.partitions if number >= start.partition]
    shown = numbers[:most]
    partitions = LazyList(len(shown), (_partition(topic, number, request.served.node_id) for number in shown))
    following = _Cursor(start.topic, numbers[most]) if most < len(numbers) else None
    described = {"topicId": topic.topic_id, "isInternal": topic.is_internal, "partitions": partitions}
    return {**known, **described}, following


def _partition(topic: ServedTopic, number: int, node_id: int) -> Fields:
    return {
        "partitionIndex": number,
        "leaderId": node_id,
        "leaderEpoch": _latest_epoch(topic.partitions[number]),
        "replicaNodes": [node_id],
        "isrNodes": [node_id],
        "eligibleLeaderReplicas": [],
        "lastKnownElr": [],
    }


def _latest_epoch(partition: ServedPartition) -> int:
    try:
        return partition.latest_epoch()
    except KsegError:
        return -1
