"""Rights in the target that a restore needs: each is asked for by a request that changes nothing.

A broker checks rights before everything else, so that a request without contents is refused for lack of rights, or for
its contents. Source: KafkaApis, ControllerApis.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from kseg.client.brokers import BrokerError, Brokers, error_codes
from kseg.client.connection import (
    CREATE_TOPICS,
    DELETE_RECORDS,
    FETCH,
    HEARTBEAT,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    METADATA,
    PRODUCE,
)
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.restore.filler import delete_body
from kseg.restore.plan import Plan

TOPIC_TYPE = 2
TIMEOUT_MS = 30_000
REFUSALS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)


class Resource(NamedTuple):
    """Something with rights: its kind in Kafka's words, and its name; the cluster has none."""

    kind: str
    name: str = ""


class Lack(NamedTuple):
    """A resource, and the operations on it that the target refuses."""

    resource: Resource
    operations: tuple[str, ...]


def lacking_rights(brokers: Brokers, plan: Plan, job_group: str) -> list[Lack]:
    """Return the rights that the target doesn't grant. Raises ClusterError if it doesn't answer."""
    brokers.topics(())  # the brokers' own addresses
    refused: dict[Resource, list[str]] = {}
    for operation, resource in _refusals(brokers, plan, job_group):
        refused.setdefault(resource, []).append(operation)
    return [Lack(resource, tuple(operations)) for resource, operations in refused.items()]


def _refusals(brokers: Brokers, plan: Plan, job_group: str) -> Iterator[tuple[str, Resource]]:
    """Yield each refused operation."""
    names = [each.target for each in plan.topics]
    for operation, topics in (
        ("Create", _uncreatable(brokers, plan)),
        ("Write", _unwritable(brokers, names)),
        ("Read", _unreadable(brokers, names)),
        ("AlterConfigs", _unalterable(brokers, names)),
        ("Delete", _undeletable(brokers, plan)),
    ):
        for name in topics:
            yield operation, Resource("topic", name)
    body = {"transactionalId": None, "transactionTimeoutMs": TIMEOUT_MS, "producerId": -1, "producerEpoch": -1}
    if brokers.ask(INIT_PRODUCER_ID, body)["errorCode"] in REFUSALS:
        yield "IdempotentWrite", Resource("cluster")
    for group in (job_group, *(each.name for each in plan.groups if each.offsets)):
        if _is_refused_group(brokers, group):
            yield "Read", Resource("group", group)


def _uncreatable(brokers: Brokers, plan: Plan) -> Collection[str]:
    """Return the topics that the target doesn't have, as far as it tells, and that can't be created."""
    body = {"topics": [{"name": each.target} for each in plan.topics], "allowAutoTopicCreation": False}
    existing = {each["name"] for each in brokers.ask(METADATA, body)["topics"] if not each["errorCode"]}
    wanted = [
        {"name": each.target, "numPartitions": each.partitions, "replicationFactor": -1}
        for each in plan.topics
        if each.target not in existing
    ]
    if not wanted:
        return ()
    topics = [{**each, "assignments": [], "configs": []} for each in wanted]
    answer = brokers.ask_controller(CREATE_TOPICS, {"topics": topics, "timeoutMs": TIMEOUT_MS, "validateOnly": True})
    return [each["name"] for each in answer["topics"] if each["errorCode"] in REFUSALS]


def _unwritable(brokers: Brokers, names: Collection[str]) -> Collection[str]:
    """Send no records."""
    data = [{"name": name, "partitionData": [{"index": 0, "records": b""}]} for name in names]
    body = {"transactionalId": None, "acks": -1, "timeoutMs": TIMEOUT_MS, "topicData": data}
    answer = brokers.ask(PRODUCE, body)
    return _refused_names(answer["responses"], "name", "partitionResponses")


def _unreadable(brokers: Brokers, names: Collection[str]) -> Collection[str]:
    part = {"partition": 0, "currentLeaderEpoch": -1, "fetchOffset": 0, "logStartOffset": -1, "partitionMaxBytes": 1}
    body = {
        "replicaId": -1,
        "maxWaitMs": 0,
        "minBytes": 0,
        "maxBytes": 1,
        "isolationLevel": 0,
        "sessionId": 0,
        "sessionEpoch": -1,
        "topics": [{"topic": name, "partitions": [{**part, "lastFetchedEpoch": -1}]} for name in names],
        "forgottenTopicsData": [],
        "rackId": "",
    }
    return _refused_names(brokers.ask(FETCH, body)["responses"], "topic", "partitions")


def _unalterable(brokers: Brokers, names: Collection[str]) -> Collection[str]:
    resources = [{"resourceType": TOPIC_TYPE, "resourceName": name, "configs": []} for name in names]
    answer = brokers.ask(INCREMENTAL_ALTER_CONFIGS, {"resources": resources, "validateOnly": True})
    return [each["resourceName"] for each in answer["responses"] if each["errorCode"] in REFUSALS]


def _undeletable(brokers: Brokers, plan: Plan) -> Collection[str]:
    """Delete no records: those before offset 0."""
    filled = [each._replace(base=0) for each in plan.partitions if each.is_filled]
    answer = brokers.ask(DELETE_RECORDS, delete_body(filled)) if filled else {"topics": []}
    return dict.fromkeys(_refused_names(answer["topics"], "name", "partitions"))


def _is_refused_group(brokers: Brokers, group: str) -> bool:
    body = {"groupId": group, "generationId": -1, "memberId": ""}
    try:
        answer = brokers.ask_coordinator(group, HEARTBEAT, body)
    except BrokerError as error:
        return error.code in REFUSALS
    return answer["errorCode"] in REFUSALS


def _refused_names(topics: Collection[Fields], name: str, parts: str) -> Collection[str]:
    return [
        each[name] for each in topics if any(code in REFUSALS for part in each[parts] for code in error_codes(part))
    ]
