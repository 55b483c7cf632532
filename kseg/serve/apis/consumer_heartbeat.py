"""ConsumerGroupHeartbeat: the consumer protocol of groups (KIP-848)."""

from uuid import uuid4

from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.apis.group_listings import topic_partitions
from kseg.serve.error_code import ErrorCode
from kseg.serve.groups.assignors import ASSIGNORS, Partition
from kseg.serve.groups.consumer_member import JOINS, LEAVES, LEAVES_FOR_NOW, HeartbeatWanted
from kseg.serve.groups.group_error import GroupError
from kseg.serve.groups.group_limits import CONSUMER_HEARTBEAT_MS, LONGEST_SESSION_MS
from kseg.serve.served_cluster import ServedCluster

_MAKES_OWN_ID = 1
"""From this version on clients make up their members' ids."""


def answer_consumer_heartbeat(request: ApiRequest) -> ApiAnswer:
    """A member's epoch and, if they have changed, its partitions."""
    body = request.body
    try:
        _check(request)
        beat = request.served.groups.consumer_heartbeat(body["groupId"], _wanted(request))
    except GroupError as error:
        return ApiAnswer(
            {"errorCode": error.code, "errorMessage": str(error), "memberEpoch": 0},
            f"{body['groupId']}: {error.code.name}",
        )
    assigned = None
    if beat.assigned is not None:
        parts = topic_partitions(request.served, beat.assigned)
        assigned = {"topicPartitions": [{key: each[key] for key in ("topicId", "partitions")} for each in parts]}
    is_leaving = beat.epoch in (LEAVES, LEAVES_FOR_NOW)
    return ApiAnswer(
        {
            "errorCode": ErrorCode.NONE,
            "memberId": beat.member_id,
            "memberEpoch": beat.epoch,
            "heartbeatIntervalMs": 0 if is_leaving else CONSUMER_HEARTBEAT_MS,
            "assignment": assigned,
        },
        f"{body['groupId']} epoch {beat.epoch}",
    )


def _check(request: ApiRequest) -> None:
    """Raises GroupError for what no member may say. Source: throwIfConsumerGroupHeartbeatRequestIsInvalid."""
    body = request.body
    is_subscribed = body["subscribedTopicNames"] is not None or body.get("subscribedTopicRegex") is not None
    problems = {
        "GroupId can't be empty.": not body["groupId"],
        "MemberId can't be empty.": not (body["memberId"] or _needs_id(request)),
        "InstanceId can't be empty.": body["instanceId"] == "",
        "MemberEpoch is invalid.": body["memberEpoch"] < LEAVES_FOR_NOW,
        "InstanceId can't be null.": body["memberEpoch"] == LEAVES_FOR_NOW and body["instanceId"] is None,
    }
    if body["memberEpoch"] == JOINS:
        problems["RebalanceTimeoutMs must be provided in first request."] = body["rebalanceTimeoutMs"] <= 0
        problems["TopicPartitions must be empty when (re-)joining."] = body["topicPartitions"] != []
        problems["SubscribedTopicNames or SubscribedTopicRegex must be set in first request."] = not is_subscribed
    for problem, is_there in problems.items():
        if is_there:
            raise GroupError(ErrorCode.INVALID_REQUEST, problem)
    if body["serverAssignor"] and body["serverAssignor"] not in ASSIGNORS:
        known = ", ".join(ASSIGNORS)
        raise GroupError(ErrorCode.UNSUPPORTED_ASSIGNOR, f"ServerAssignor is not supported. Supported: {known}.")


def _needs_id(request: ApiRequest) -> bool:
    """Whether a client that joins is to be given an id: 3.9 and before don't make up their own."""
    return request.version < _MAKES_OWN_ID and request.body["memberEpoch"] == JOINS and not request.body["memberId"]


def _wanted(request: ApiRequest) -> HeartbeatWanted:
    body = request.body
    names = body["subscribedTopicNames"]
    return HeartbeatWanted(
        str(uuid4()) if _needs_id(request) else body["memberId"],
        body["memberEpoch"],
        body["instanceId"],
        body["rackId"],
        request.client,
        min(body["rebalanceTimeoutMs"], LONGEST_SESSION_MS) / 1000,
        None if names is None else frozenset(names),
        body.get("subscribedTopicRegex"),
        body["serverAssignor"],
        _owned(request.served, body["topicPartitions"]),
    )


def _owned(served: ServedCluster, parts: list[Fields] | None) -> frozenset[Partition] | None:
    """Partitions that a client says it has; those of unknown topics it can't have from here."""
    if parts is None:
        return None
    found = ((served.topic_of(None, each["topicId"]), each["partitions"]) for each in parts)
    return frozenset((topic.name, number) for topic, numbers in found if topic is not None for number in numbers)
