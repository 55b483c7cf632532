"""ListGroups, DescribeGroups, ConsumerGroupDescribe: groups with members here, and groups of the disk."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kseg.formats.messages import ZERO_UUID, Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode
from kseg.serve.groups.assignors import Partition
from kseg.serve.groups.classic_group import ClassicGroup, ClassicState
from kseg.serve.groups.classic_member import ClassicMember
from kseg.serve.groups.commits import GroupKind
from kseg.serve.groups.consumer_group import DEFAULT_ASSIGNOR, ConsumerGroup
from kseg.serve.groups.consumer_member import NOTHING, ConsumerMember
from kseg.serve.groups.group_coordinator import LiveGroup
from kseg.serve.served_cluster import ServedCluster

READ_GROUP = 1 << 3 | 1 << 6 | 1 << 8
"""Operations on a group that are allowed: Read, Delete, Describe. Source: AclOperation."""
_TELLS_NOT_FOUND = 6
"""From this version on a group that there isn't is an error, and not one that is dead."""
_CONSUMER_MEMBER = 1
"""Type of a member that uses the consumer protocol, and not the classic one."""


class _Listed(NamedTuple):
    """A group in a list."""

    kind: GroupKind
    state: str

    def fits(self, request: ApiRequest) -> bool:
        """Whether it is in one of the states and of one of the types that are asked for; none means all."""
        asked = request.body.get("statesFilter"), request.body.get("typesFilter")
        own = self.state, self.kind.type
        return all(
            not wanted or each.lower() in map(str.lower, wanted) for wanted, each in zip(asked, own, strict=True)
        )


def answer_list_groups(request: ApiRequest) -> ApiAnswer:
    """Groups by name."""
    found = [
        {
            "groupId": name,
            "protocolType": group.kind.protocol_type,
            "groupState": group.state,
            "groupType": group.kind.type,
        }
        for name, group in sorted(_all_groups(request.served).items())
        if group.fits(request)
    ]
    return ApiAnswer({"errorCode": ErrorCode.NONE, "groups": found}, f"{len(found)} groups")


def _all_groups(served: ServedCluster) -> dict[str, _Listed]:
    empty = {name: _Listed(kind, ClassicState.EMPTY) for name, kind in served.groups.commits.kinds().items()}
    return {**empty, **served.groups.live(lambda group: _Listed(group.kind, group.state))}


def answer_describe_groups(request: ApiRequest) -> ApiAnswer:
    """Groups of the classic protocol with their members."""
    body = request.body
    operations = {"authorizedOperations": READ_GROUP} if body.get("includeAuthorizedOperations") else {}
    found = [{**_described(request, name), **operations} for name in body["groups"]]
    return ApiAnswer({"groups": found}, ", ".join(body["groups"][:1]))


def _described(request: ApiRequest, name: str) -> Fields:
    live = request.served.groups.see(name, _classic_fields)
    if live is not None:
        return {"groupId": name, **live} if live else _not_found(request, name, "isn't a classic group")
    listed = _all_groups(request.served).get(name)
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
    """A group of the classic protocol; nothing of another one."""
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
    """Groups of the consumer protocol with their members, what these have and what they are to have."""
    body = request.body
    operations = {"authorizedOperations": READ_GROUP} if body["includeAuthorizedOperations"] else {}
    found = [{**_consumer_described(request, name), **operations} for name in body["groupIds"]]
    return ApiAnswer({"groups": found}, ", ".join(body["groupIds"][:1]))


def _consumer_described(request: ApiRequest, name: str) -> Fields:
    live = request.served.groups.see(name, lambda group: _consumer_fields(request.served, group))
    if live:
        return {"groupId": name, **live}
    kind = request.served.groups.commits.kinds().get(name)
    nothing = {"groupId": name, "members": [], "assignorName": ""}
    if live is not None or kind is None or kind.type != ConsumerGroup.kind.type:
        why = f"Group {name} is not a consumer group." if live is not None or kind else f"Group {name} not found."
        return {**nothing, "errorCode": ErrorCode.GROUP_ID_NOT_FOUND, "errorMessage": why, "groupState": ""}
    empty = {**nothing, "errorCode": ErrorCode.NONE, "groupState": "Empty", "assignorName": DEFAULT_ASSIGNOR}
    stored = request.served.groups.commits.stored(name)
    if stored is None:
        return empty
    epochs = {"groupEpoch": stored.epoch, "assignmentEpoch": stored.assignment_epoch}
    return {**empty, **epochs, "assignorName": stored.assignor or DEFAULT_ASSIGNOR}


def _consumer_fields(served: ServedCluster, group: LiveGroup) -> Fields:
    """A group of the consumer protocol; nothing of another one."""
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
    """Partitions by topic, as the consumer protocol has them."""
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
