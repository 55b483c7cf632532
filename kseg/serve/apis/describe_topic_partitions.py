"""DescribeTopicPartitions: topics by name with their partitions, so many at a time; a cursor says where to go on."""

from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.apis.cluster_metadata import READ_ONLY
from kseg.serve.error_code import ErrorCode
from kseg.serve.served_cluster import ServedTopic
from kseg.serve.served_partition import ServedPartition

MOST_PARTITIONS = 2000
"""Partitions in a response. Source: max.request.partition.size.limit."""


class _Cursor(NamedTuple):
    """The partition that comes next."""

    topic: str
    partition: int


def answer_describe_topic_partitions(request: ApiRequest) -> ApiAnswer:
    """The topics that are asked for, or all, from the cursor on."""
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
    return ApiAnswer({"topics": topics, "nextCursor": cursor}, f"{len(topics)} topics")


def _topic(request: ApiRequest, start: _Cursor, most: int) -> tuple[Fields, _Cursor | None]:
    """So many partitions of a topic, and where to go on in it; None if that was its last one."""
    topic = request.served.topics.get(start.topic)
    known: Fields = {"name": start.topic, "topicAuthorizedOperations": READ_ONLY}
    if topic is None:
        return {**known, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "partitions": []}, None
    numbers = [number for number in topic.partitions if number >= start.partition]
    partitions = [_partition(topic, number, request.served.node_id) for number in numbers[:most]]
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
