"""Metadata: the broker, topics, partitions. Nothing is ever created."""

from typing import Any

from kseg.formats.messages import ZERO_UUID, Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode
from kseg.serve.served_cluster import ServedTopic

READ_ONLY = 1 << 3 | 1 << 8 | 1 << 10
"""Operations on a topic that are allowed: Read, Describe, DescribeConfigs. Source: AclOperation."""
DESCRIBE_CLUSTER = 1 << 8
"""Operations on the cluster that are allowed: Describe."""
_NULL_IS_ALL = 1
"""From this version on no topics are asked for by an empty list, and all of them by null."""


def answer_metadata(request: ApiRequest) -> ApiAnswer:
    """The broker that everybody is connected to, and the topics that are asked for."""
    body, served = request.body, request.served
    asked = body["topics"]
    is_all = asked is None or (request.version < _NULL_IS_ALL and not asked)
    operations = {"topicAuthorizedOperations": READ_ONLY} if body.get("includeTopicAuthorizedOperations") else {}
    if is_all:
        topics = [_found(topic, served.node_id) for topic in served.topics.values()]
    else:
        topics = [_asked(request, each) for each in asked]
    of_cluster = {"clusterAuthorizedOperations": DESCRIBE_CLUSTER}
    return ApiAnswer(
        {
            "brokers": [{"nodeId": served.node_id, "host": request.host, "port": request.port}],
            "clusterId": served.cluster_id,
            "controllerId": served.node_id,
            "topics": [{**topic, **operations} for topic in topics],
            **(of_cluster if body.get("includeClusterAuthorizedOperations") else {}),
        },
        "all topics" if is_all else f"{len(topics)} topics",
    )


def _asked(request: ApiRequest, asked: Fields) -> Fields:
    name, topic_id = asked["name"], asked.get("topicId", ZERO_UUID)
    topic = request.served.topic_of(name, topic_id)
    if topic is not None:
        return _found(topic, request.served.node_id)
    error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    nameless = None if request.version >= _NAME_MAY_BE_NULL else ""
    return {"errorCode": error, "name": nameless if name is None else name, "topicId": topic_id, "partitions": []}


_NAME_MAY_BE_NULL = 12


def _found(topic: ServedTopic, node_id: int) -> dict[str, Any]:
    here = {"leaderId": node_id, "replicaNodes": [node_id], "isrNodes": [node_id]}
    return {
        "name": topic.name,
        "topicId": topic.topic_id,
        "isInternal": topic.is_internal,
        "partitions": [{"partitionIndex": number, **here} for number in topic.partitions],
    }
