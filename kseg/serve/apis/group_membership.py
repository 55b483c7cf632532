"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: the classic protocol of groups."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest, Later
from kseg.serve.error_code import ErrorCode
from kseg.serve.groups.classic_member import JoinOutcome, JoinWanted, MemberName, Protocol, Synced
from kseg.serve.groups.group_error import GroupError
from kseg.serve.groups.group_limits import LONGEST_SESSION_MS, SHORTEST_SESSION_MS

_NEEDS_KNOWN_ID = 4
"""From this version on a client joins with an id that it was given before."""
_PROTOCOL_MAY_BE_NULL = 7
_NAMES_PROTOCOL = 5
"""From this version on who syncs says by which protocol it goes."""
_MAY_SKIP = 9
"""From this version on a leader may be told not to assign."""
_MANY_LEAVE = 3
"""From this version on several members may leave at once."""
Outcome = TypeVar("Outcome")


def answer_join_group(request: ApiRequest) -> ApiAnswer:
    """A generation to be a member of, once all other members have joined it too."""
    body = request.body
    try:
        _require_group(body)
        if not SHORTEST_SESSION_MS <= body["sessionTimeoutMs"] <= LONGEST_SESSION_MS:
            raise GroupError(ErrorCode.INVALID_SESSION_TIMEOUT)
        waiting = request.served.groups.join(body["groupId"], _join_wanted(request))
    except GroupError as error:
        return _join_refused(request, error)
    return _once_known(waiting, lambda joined: _joined(request, joined), lambda error: _join_refused(request, error))


def _join_wanted(request: ApiRequest) -> JoinWanted:
    body = request.body
    session = body["sessionTimeoutMs"]
    rebalance = body.get("rebalanceTimeoutMs", -1)
    return JoinWanted(
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


def _joined(request: ApiRequest, joined: JoinOutcome) -> ApiAnswer:
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
        _refused(request, error),
    )


def answer_sync_group(request: ApiRequest) -> ApiAnswer:
    """What a member is to read, once the leader has said it."""
    body = request.body
    assignments = {each["memberId"]: each["assignment"] for each in body["assignments"]}
    protocol = body.get("protocolType"), body.get("protocolName")
    try:
        _require_group(body)
        if request.version >= _NAMES_PROTOCOL and None in protocol:
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        waiting = request.served.groups.sync(body["groupId"], _member_name(body), protocol, assignments)
    except GroupError as error:
        return _sync_refused(request, error)
    return _once_known(waiting, lambda synced: _synced(request, synced), lambda error: _sync_refused(request, error))


def _synced(request: ApiRequest, synced: Synced) -> ApiAnswer:
    fields = {"protocolType": synced.protocol_type, "protocolName": synced.protocol, "assignment": synced.assignment}
    return ApiAnswer({"errorCode": ErrorCode.NONE, **fields}, str(request.body["groupId"]))


def _sync_refused(request: ApiRequest, error: GroupError) -> ApiAnswer:
    return ApiAnswer({"errorCode": error.code, "assignment": b""}, _refused(request, error))


def answer_heartbeat(request: ApiRequest) -> ApiAnswer:
    """Whether a member still is one, and need not join again."""
    try:
        _require_group(request.body)
        request.served.groups.heartbeat(request.body["groupId"], _member_name(request.body))
    except GroupError as error:
        return ApiAnswer({"errorCode": error.code}, _refused(request, error))
    return ApiAnswer({"errorCode": ErrorCode.NONE}, str(request.body["groupId"]))


def answer_leave_group(request: ApiRequest) -> ApiAnswer:
    """Members leave."""
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


def _refused(request: ApiRequest, error: GroupError) -> str:
    return f"{request.body['groupId']}: {error.code.name}"


def _once_known(
    waiting: Future[Outcome],
    answer: Callable[[Outcome], ApiAnswer],
    refuse: Callable[[GroupError], ApiAnswer],
) -> ApiAnswer:
    """The answer if what it depends on is known, or when it will be."""

    def finish() -> ApiAnswer:
        try:
            return answer(waiting.result())
        except GroupError as error:
            return refuse(error)

    return finish() if waiting.done() else ApiAnswer(None, later=Later(waiting, finish))
