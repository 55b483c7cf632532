"""APIs that describe consumer groups: lists, members and their partitions, coordinators."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from kseg.errors import plural
from kseg.formats.messages import ZERO_UUID, Fields, LazyList
from kseg.protocol.error_codes import ErrorCode
from kseg.serve.apis.request import ApiAnswer, ApiRequest
from kseg.serve.cluster import ServedCluster
from kseg.serve.groups.classic import (
    ClassicGroup,
    ClassicMember,
    ClassicState,
)
from kseg.serve.groups.commits import GroupKind, Partition
from kseg.serve.groups.consumer import (
    DEFAULT_ASSIGNOR,
    NOTHING,
    ConsumerGroup,
    ConsumerMember,
)
from kseg.serve.groups.coordinator import LiveGroup

READ_GROUP = 1 << 3 | 1 << 6 | 1 << 8
"""Allowed operations on a group: Read, Delete, Describe. Source: AclOperation."""
_TELLS_NOT_FOUND = 6
"""From this version on a missing group is an error, and not a dead group."""
_CONSUMER_MEMBER = 1
"""The type of a member that uses the consumer protocol instead of the classic one."""


class _Listed(NamedTuple):
    """A group in a list."""

    kind: GroupKind
    state: str

    def fits(self, states: Container[str], types: Container[str]) -> bool:
        """Return True if it has one of the states and one of the types, given in small letters."""
        return self.state.lower() in states and self.kind.type.lower() in types


class _All:
    """A container that has everything in it."""

    def __contains__(self, _: object) -> bool:
        return True


def _wanted_words(request: ApiRequest, field: str) -> Container[str]:
    """Return the words of a filter in small letters; without a filter, a container with every word."""
    words = request.body.get(field)
    return frozenset(map(str.lower, words)) if words else _All()


def answer_list_groups(request: ApiRequest) -> ApiAnswer:
    """Return groups by name."""
    states, types = _wanted_words(request, "statesFilter"), _wanted_words(request, "typesFilter")
    found = [
        {
            "groupId": name,
            "protocolType": group.kind.protocol_type,
            "groupState": group.state,
            "groupType": group.kind.type,
        }
        for name, group in sorted(_all_groups(request.served).items())
        if group.fits(states, types)
    ]
    return ApiAnswer({"errorCode": ErrorCode.NONE, "groups": found}, f"{plural(len(found), 'group')}")


def _all_groups(served: ServedCluster) -> dict[str, _Listed]:
    empty = {name: _Listed(kind, ClassicState.EMPTY) for name, kind in served.groups.commits.kinds().items()}
    return {**empty, **served.groups.live(lambda group: _Listed(group.kind, group.state))}


def answer_describe_groups(request: ApiRequest) -> ApiAnswer:
    """Return groups of the classic protocol with their members."""
    body = request.body
    operations = {"authorizedOperations": READ_GROUP} if body.get("includeAuthorizedOperations") else {}
    names = dict.fromkeys(body["groups"])
    known = _all_groups(request.served)
    found = ({**_describe_group(request, name, known), **operations} for name in names)
    return ApiAnswer({"groups": LazyList(len(names), found)}, ", ".join(body["groups"][:1]))


def _describe_group(request: ApiRequest, name: str, known: Mapping[str, _Listed]) -> Fields:
    live = request.served.groups.see(name, _classic_fields)
    if live is not None:
        return {"groupId": name, **live} if live else _not_found(request, name, "isn't a classic group")
    listed = known.get(name)
    if listed is None or listed.kind.type != "classic":
        return _not_found(request, name, "isn't there" if listed is None else "isn't a classic group")
    return {
        "groupId": name,
        "errorCode": ErrorCode.NONE,
        "groupState": listed.state,
        "protocolType": listed.kind.protocol_type,
        "protocolData": "",
        "members": [],
    }


def _not_found(request: ApiRequest, name: str, why: str) -> Fields:
    dead = {"groupId": name, "groupState": "Dead", "protocolType": "", "protocolData": "", "members": []}
    if request.version < _TELLS_NOT_FOUND:
        return {**dead, "errorCode": ErrorCode.NONE}
    return {**dead, "errorCode": ErrorCode.GROUP_ID_NOT_FOUND, "errorMessage": f"Group {name} {why}."}


def _classic_fields(group: LiveGroup) -> Fields:
    """Return a classic group, or an empty group if it uses another protocol."""
    if isinstance(group, ConsumerGroup):
        return {}
    is_stable = group.state is ClassicState.STABLE
    return {
        "errorCode": ErrorCode.NONE,
        "groupState": group.state,
        "protocolType": group.protocol_type or "",
        "protocolData": (group.protocol or "") if is_stable else "",
        "members": [_classic_member(group, member, is_stable=is_stable) for member in group.members.values()],
    }


def _classic_member(group: ClassicGroup, member: ClassicMember, *, is_stable: bool) -> Fields:
    return {
        "memberId": member.member_id,
        "groupInstanceId": member.wanted.instance_id,
        "clientId": member.wanted.client.client_id,
        "clientHost": f"/{member.wanted.client.host}",
        "memberMetadata": member.protocols.get(group.protocol or "", b"") if is_stable else b"",
        "memberAssignment": member.assignment,
    }


def answer_consumer_group_describe(request: ApiRequest) -> ApiAnswer:
    """Return groups of the consumer protocol with their members, and these members' present and target partitions."""
    body = request.body
    operations = {"authorizedOperations": READ_GROUP} if body["includeAuthorizedOperations"] else {}
    names = dict.fromkeys(body["groupIds"])
    found = ({**_describe_consumer_group(request, name), **operations} for name in names)
    return ApiAnswer({"groups": LazyList(len(names), found)}, ", ".join(body["groupIds"][:1]))


def _describe_consumer_group(request: ApiRequest, name: str) -> Fields:
    live = request.served.groups.see(name, lambda group: _consumer_fields(request.served, group))
    if live:
        return {"groupId": name, **live}
    kind = request.served.groups.commits.kinds().get(name)
    nothing = {"groupId": name, "members": [], "assignorName": ""}
    if live is not None or kind is None or kind.type != ConsumerGroup.kind.type:
        why = f"Group {name} is not a consumer group." if live is not None or kind else f"Group {name} not found."
        return {**nothing, "errorCode": ErrorCode.GROUP_ID_NOT_FOUND, "errorMessage": why, "groupState": ""}
    empty = {**nothing, "errorCode": ErrorCode.NONE, "groupState": "Empty", "assignorName": DEFAULT_ASSIGNOR}
    stored = request.served.groups.commits.stored_group(name)
    if stored is None:
        return empty
    epochs = {"groupEpoch": stored.epoch, "assignmentEpoch": stored.assignment_epoch}
    return {**empty, **epochs, "assignorName": stored.assignor or DEFAULT_ASSIGNOR}


def _consumer_fields(served: ServedCluster, group: LiveGroup) -> Fields:
    """Return a group of the consumer protocol; an empty one if it uses another protocol."""
    if isinstance(group, ClassicGroup):
        return {}
    return {
        "errorCode": ErrorCode.NONE,
        "groupState": group.state,
        "groupEpoch": group.epoch,
        "assignmentEpoch": group.target_epoch,
        "assignorName": group.assignor,
        "members": [_consumer_member(served, group, member) for member in group.members.values()],
    }


def _consumer_member(served: ServedCluster, group: ConsumerGroup, member: ConsumerMember) -> Fields:
    target = group.target.get(member.member_id, NOTHING)
    return {
        "memberId": member.member_id,
        "instanceId": member.wanted.instance_id,
        "rackId": member.wanted.rack_id,
        "memberEpoch": member.epoch,
        "clientId": member.wanted.client.client_id,
        "clientHost": f"/{member.wanted.client.host}",
        "subscribedTopicNames": sorted(member.names),
        "subscribedTopicRegex": "" if member.pattern is None else member.pattern.pattern,
        "assignment": {"topicPartitions": topic_partitions(served, member.assigned)},
        "targetAssignment": {"topicPartitions": topic_partitions(served, target)},
        "memberType": _CONSUMER_MEMBER,
    }


def topic_partitions(served: ServedCluster, partitions: Iterable[Partition]) -> list[Fields]:
    """Return partitions by topic, as in the consumer protocol."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        numbers[topic].append(number)
    return [
        {
            "topicId": served.topics[topic].topic_id if topic in served.topics else ZERO_UUID,
            "topicName": topic,
            "partitions": found,
        }
        for topic, found in numbers.items()
    ]


GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators. Source: FindCoordinatorRequest.CoordinatorType."""
_MANY = 4
"""From this version on a request has several keys."""


def answer_find_coordinator(request: ApiRequest) -> ApiAnswer:
    """Return the broker that all clients use."""
    body = request.body
    kind = body.get("keyType", GROUP)
    if request.version < _MANY:
        return ApiAnswer({"errorMessage": "NONE", **_coordinator(request, kind)}, body["key"])
    keys = dict.fromkeys(body["coordinatorKeys"])
    found = ({"key": key, "errorMessage": "", **_coordinator(request, kind)} for key in keys)
    return ApiAnswer({"coordinators": LazyList(len(keys), found)}, ", ".join(body["coordinatorKeys"][:1]))


def _coordinator(request: ApiRequest, kind: int) -> Fields:
    if kind not in (GROUP, TRANSACTION):
        return {"errorCode": ErrorCode.INVALID_REQUEST, "nodeId": -1, "host": "", "port": -1, "errorMessage": None}
    here = {"nodeId": request.served.node_id, "host": request.host, "port": request.port}
    return {"errorCode": ErrorCode.NONE, **here}
