"""APIs of the members of consumer groups: joins, assignments, heartbeats, leaving; classic and consumer protocol."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar
from uuid import uuid4

from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.serve.apis.groups import topic_partitions
from kseg.serve.apis.request import ApiAnswer, ApiRequest, Later
from kseg.serve.cluster import ServedCluster
from kseg.serve.groups.classic import (
    JoinOutcome,
    JoinRequest,
    MemberName,
    Protocol,
    Synced,
)
from kseg.serve.groups.commits import ASSIGNORS, Partition
from kseg.serve.groups.consumer import (
    JOINS,
    LEAVES,
    LEAVES_FOR_NOW,
    HeartbeatRequest,
)
from kseg.serve.values import (
    CONSUMER_HEARTBEAT_MS,
    LONGEST_SESSION_MS,
    SHORTEST_SESSION_MS,
    GroupError,
)

_NEEDS_KNOWN_ID = 4
"""From this version on a client joins with an id that it was given before."""
_PROTOCOL_MAY_BE_NULL = 7
_NAMES_PROTOCOL = 5
"""From this version on a member that syncs names its protocol."""
_MAY_SKIP = 9
"""From this version on a leader may be told not to assign partitions."""
_MANY_LEAVE = 3
"""From this version on several members may leave at once."""
Outcome = TypeVar("Outcome")


def answer_join_group(request: ApiRequest) -> ApiAnswer:
    """Join a member to a group; the answer is ready once all other members have joined its generation."""
    body = request.body
    try:
        _require_group(body)
        if not SHORTEST_SESSION_MS <= body["sessionTimeoutMs"] <= LONGEST_SESSION_MS:
            raise GroupError(ErrorCode.INVALID_SESSION_TIMEOUT)
        waiting = request.served.groups.join(body["groupId"], _join_wanted(request))
    except GroupError as error:
        return _join_refused(request, error)
    return _answer_when_ready(
        waiting, lambda joined: _join_answer(request, joined), lambda error: _join_refused(request, error)
    )


def _join_wanted(request: ApiRequest) -> JoinRequest:
    body = request.body
    session = body["sessionTimeoutMs"]
    rebalance = body.get("rebalanceTimeoutMs", -1)
    return JoinRequest(
        body["memberId"],
        body.get("groupInstanceId"),
        request.client,
        session / 1000,
        (session if rebalance < 0 else min(rebalance, LONGEST_SESSION_MS)) / 1000,
        body["protocolType"],
        tuple(Protocol(each["name"], each["metadata"]) for each in body["protocols"]),
        request.version >= _NEEDS_KNOWN_ID,
        request.version >= _MAY_SKIP,
    )


def _join_answer(request: ApiRequest, joined: JoinOutcome) -> ApiAnswer:
    members = [
        {"memberId": each.member_id, "groupInstanceId": each.instance_id, "metadata": each.metadata}
        for each in joined.members
    ]
    return ApiAnswer(
        {
            "errorCode": ErrorCode.NONE,
            "generationId": joined.generation,
            "protocolType": joined.protocol_type,
            "protocolName": joined.protocol,
            "leader": joined.leader,
            "skipAssignment": joined.skips_assignment,
            "memberId": joined.member_id,
            "members": members,
        },
        f"{request.body['groupId']} generation {joined.generation}{', leads' if members else ''}",
    )


def _join_refused(request: ApiRequest, error: GroupError) -> ApiAnswer:
    nameless = None if request.version >= _PROTOCOL_MAY_BE_NULL else ""
    member_id = error.member_id or request.body["memberId"]
    return ApiAnswer(
        {"errorCode": error.code, "protocolName": nameless, "leader": "", "memberId": member_id, "members": []},
        _refusal_note(request, error),
    )


def answer_sync_group(request: ApiRequest) -> ApiAnswer:
    """Return a member's assignment, once the leader has sent it."""
    body = request.body
    assignments = {each["memberId"]: each["assignment"] for each in body["assignments"]}
    protocol = body.get("protocolType"), body.get("protocolName")
    try:
        _require_group(body)
        if request.version >= _NAMES_PROTOCOL and None in protocol:
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        waiting = request.served.groups.sync(body["groupId"], _member_name(body), protocol, assignments)
    except GroupError as error:
        return _refuse_sync(request, error)
    return _answer_when_ready(
        waiting, lambda synced: _sync_answer(request, synced), lambda error: _refuse_sync(request, error)
    )


def _sync_answer(request: ApiRequest, synced: Synced) -> ApiAnswer:
    fields = {"protocolType": synced.protocol_type, "protocolName": synced.protocol, "assignment": synced.assignment}
    return ApiAnswer({"errorCode": ErrorCode.NONE, **fields}, str(request.body["groupId"]))


def _refuse_sync(request: ApiRequest, error: GroupError) -> ApiAnswer:
    return ApiAnswer({"errorCode": error.code, "assignment": b""}, _refusal_note(request, error))


def answer_heartbeat(request: ApiRequest) -> ApiAnswer:
    """Return True if a member still belongs to its group and needn't join again."""
    try:
        _require_group(request.body)
        request.served.groups.heartbeat(request.body["groupId"], _member_name(request.body))
    except GroupError as error:
        return ApiAnswer({"errorCode": error.code}, _refusal_note(request, error))
    return ApiAnswer({"errorCode": ErrorCode.NONE}, str(request.body["groupId"]))


def answer_leave_group(request: ApiRequest) -> ApiAnswer:
    """Remove members from a group."""
    body = request.body
    leaving = [body] if request.version < _MANY_LEAVE else body["members"]
    left = [{**_identity(each), "errorCode": _leave(request, each)} for each in leaving]
    if request.version < _MANY_LEAVE:
        return ApiAnswer({"errorCode": left[0]["errorCode"]}, str(body["groupId"]))
    return ApiAnswer({"errorCode": ErrorCode.NONE, "members": left}, str(body["groupId"]))


def _identity(fields: Fields) -> Fields:
    return {"memberId": fields["memberId"], "groupInstanceId": fields.get("groupInstanceId")}


def _leave(request: ApiRequest, leaving: Fields) -> ErrorCode:
    try:
        request.served.groups.leave(request.body["groupId"], leaving["memberId"], leaving.get("groupInstanceId"))
    except GroupError as error:
        return error.code
    return ErrorCode.NONE


def _member_name(body: Fields) -> MemberName:
    return MemberName(body["memberId"], body.get("groupInstanceId"), body["generationId"])


def _require_group(body: Fields) -> None:
    if not body["groupId"]:
        raise GroupError(ErrorCode.INVALID_GROUP_ID)


def _refusal_note(request: ApiRequest, error: GroupError) -> str:
    return f"{request.body['groupId']}: {error.code.name}"


def _answer_when_ready(
    waiting: Future[Outcome],
    answer: Callable[[Outcome], ApiAnswer],
    refuse: Callable[[GroupError], ApiAnswer],
) -> ApiAnswer:
    """Return the answer if its result is ready, or else a later answer."""

    def finish() -> ApiAnswer:
        try:
            return answer(waiting.result())
        except GroupError as error:
            return refuse(error)

    return finish() if waiting.done() else ApiAnswer(None, later=Later(waiting, finish))


_MAKES_OWN_ID = 1
"""From this version on clients make up their members' ids."""


def answer_consumer_heartbeat(request: ApiRequest) -> ApiAnswer:
    """Return a member's epoch and, if they have changed, its partitions."""
    body = request.body
    try:
        _check(request)
        beat = request.served.groups.consumer_heartbeat(body["groupId"], _parse_heartbeat(request))
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
    """Raise GroupError for invalid heartbeats. Source: throwIfConsumerGroupHeartbeatRequestIsInvalid."""
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
    """Return True if a joining client needs an id: clients up to 3.9 don't make up their own."""
    return request.version < _MAKES_OWN_ID and request.body["memberEpoch"] == JOINS and not request.body["memberId"]


def _parse_heartbeat(request: ApiRequest) -> HeartbeatRequest:
    body = request.body
    names = body["subscribedTopicNames"]
    return HeartbeatRequest(
        str(uuid4()) if _needs_id(request) else body["memberId"],
        body["memberEpoch"],
        body["instanceId"],
        body["rackId"],
        request.client,
        min(body["rebalanceTimeoutMs"], LONGEST_SESSION_MS) / 1000,
        None if names is None else frozenset(names),
        body.get("subscribedTopicRegex"),
        body["serverAssignor"],
        _parse_owned(request.served, body["topicPartitions"]),
    )


def _parse_owned(served: ServedCluster, parts: list[Fields] | None) -> frozenset[Partition] | None:
    """Return the partitions that a client says it owns, without those of unknown topics."""
    if parts is None:
        return None
    found = ((served.topic_of(None, each["topicId"]), each["partitions"]) for each in parts)
    return frozenset((topic.name, number) for topic, numbers in found if topic is not None for number in numbers)
