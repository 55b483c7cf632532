"""APIs of consumer groups: coordinators, membership, offsets, listings."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import Future
from typing import NamedTuple, TypeVar
from uuid import uuid4

from kseg.errors import plural
from kseg.formats.messages import ZERO_UUID, Fields, LazyList
from kseg.protocol.error_codes import ErrorCode
from kseg.serve.apis.request import ApiAnswer, ApiRequest, Later, merged_topics
from kseg.serve.cluster import ServedCluster
from kseg.serve.groups.classic import (
    ClassicGroup,
    ClassicMember,
    ClassicState,
    JoinOutcome,
    JoinRequest,
    MemberName,
    Protocol,
    Synced,
)
from kseg.serve.groups.commits import ASSIGNORS, Committed, GroupKind, Partition
from kseg.serve.groups.consumer import (
    DEFAULT_ASSIGNOR,
    JOINS,
    LEAVES,
    LEAVES_FOR_NOW,
    NOTHING,
    ConsumerGroup,
    ConsumerMember,
    HeartbeatRequest,
)
from kseg.serve.groups.coordinator import LiveGroup
from kseg.serve.values import (
    CONSUMER_HEARTBEAT_MS,
    LONGEST_SESSION_MS,
    MOST_COMMIT_METADATA,
    SHORTEST_SESSION_MS,
    GroupError,
)

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


NOTHING_COMMITTED = Committed(-1, -1, "")
_MANY_GROUPS = 8
"""From this version on OffsetFetch asks for several groups."""
_BY_ID = 10
"""From this version on topics are identified by their ids."""


def answer_offset_fetch(request: ApiRequest) -> ApiAnswer:
    """Return the committed offsets of groups: those committed here, or else those on the disk."""
    body = request.body
    if request.version >= _MANY_GROUPS:
        asked = _merged_groups(body["groups"])
        groups = LazyList(len(asked), (_of_group(request, each) for each in asked))
        return ApiAnswer({"groups": groups}, ", ".join(each["groupId"] for each in asked[:1]))
    found = _of_group(request, body)
    return ApiAnswer({"topics": found["topics"], "errorCode": found["errorCode"]}, body["groupId"])


def _merged_groups(groups: Iterable[Fields]) -> list[Fields]:
    """Return each group once, with all its requested topics."""
    found: dict[str, Fields] = {}
    for each in groups:
        topics = found.setdefault(each["groupId"], {**each, "topics": []})["topics"]
        is_all = topics is None or each["topics"] is None
        found[each["groupId"]] = {**each, "topics": None if is_all else topics}
        if not is_all:
            topics += each["topics"]
    return [*found.values()]


def _of_group(request: ApiRequest, asked: Fields) -> Fields:
    name = asked["groupId"]
    try:
        known = request.served.groups.commits_of(name, asked.get("memberId"), asked.get("memberEpoch", -1))
    except GroupError as error:
        return {"groupId": name, "topics": [], "errorCode": error.code}
    is_all = asked["topics"] is None
    topics = _served_commits(request.served, known) if is_all else merged_topics(asked["topics"], "partitionIndexes")
    found = [_of_topic(request, topic, known) for topic in topics]
    if is_all and request.version >= _BY_ID:
        found = [topic for topic in found if topic["topicId"] != ZERO_UUID]
    return {"groupId": name, "topics": found, "errorCode": ErrorCode.NONE}


def _served_commits(served: ServedCluster, known: Iterable[Partition]) -> list[Fields]:
    """Return a group's commits for served topics only, since kafka-consumer-groups.sh fails at missing topics."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(known):
        if topic in served.topics and number in served.topics[topic].partitions:
            numbers[topic].append(number)
    return [{"name": topic, "partitionIndexes": partitions} for topic, partitions in numbers.items()]


def _of_topic(request: ApiRequest, asked: Fields, known: dict[Partition, Committed]) -> Fields:
    name, topic_id = asked.get("name"), asked.get("topicId", ZERO_UUID)
    topic = request.served.topic_of(name, topic_id)
    name, topic_id = (name, topic_id) if topic is None else (topic.name, topic.topic_id)
    error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.NONE
    numbers = asked["partitionIndexes"]
    partitions = (
        {"partitionIndex": number, "errorCode": error, **_committed_fields(known.get((name or "", number)))}
        for number in numbers
    )
    return {"name": name or "", "topicId": topic_id, "partitions": LazyList(len(numbers), partitions)}


def _committed_fields(committed: Committed | None) -> Fields:
    offset, leader_epoch, metadata = NOTHING_COMMITTED if committed is None else committed
    return {"committedOffset": offset, "committedLeaderEpoch": leader_epoch, "metadata": metadata}


def answer_offset_commit(request: ApiRequest) -> ApiAnswer:
    """Keep the offsets of served partitions in memory."""
    body = request.body
    asked = [
        (topic, each, _commit_problem(request, topic, each)) for topic in body["topics"] for each in topic["partitions"]
    ]
    offsets = {
        (_topic_name(request, topic) or "", each["partitionIndex"]): _parse_commit(each)
        for topic, each, problem in asked
        if problem is ErrorCode.NONE
    }
    refused = _take(request, offsets) if offsets or not asked else ErrorCode.NONE
    left = iter([problem if problem is not ErrorCode.NONE else refused for _, _, problem in asked])
    topics = [
        {
            **{key: topic[key] for key in ("name", "topicId") if key in topic},
            "partitions": [
                {"partitionIndex": each["partitionIndex"], "errorCode": next(left)} for each in topic["partitions"]
            ],
        }
        for topic in body["topics"]
    ]
    note = "" if refused is ErrorCode.NONE else f": {refused.name}"
    return ApiAnswer({"topics": topics}, f"{body['groupId']}, {plural(len(offsets), 'offset')}{note}")


def _take(request: ApiRequest, offsets: dict[Partition, Committed]) -> ErrorCode:
    body = request.body
    who = MemberName(body["memberId"], body.get("groupInstanceId"), body["generationIdOrMemberEpoch"])
    try:
        request.served.groups.commit(body["groupId"], who, offsets)
    except GroupError as error:
        return error.code
    return ErrorCode.NONE


def _topic_name(request: ApiRequest, topic: Fields) -> str | None:
    found = request.served.topic_of(topic.get("name"), topic.get("topicId", ZERO_UUID))
    return None if found is None else found.name


def _commit_problem(request: ApiRequest, asked: Fields, fields: Fields) -> ErrorCode:
    """Return the error of an offset that nobody can commit."""
    topic = request.served.topic_of(asked.get("name"), asked.get("topicId", ZERO_UUID))
    if topic is None and request.version >= _BY_ID:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if topic is None or fields["partitionIndex"] not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    is_long = len(fields["committedMetadata"] or "") > MOST_COMMIT_METADATA
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_long else ErrorCode.NONE


def _parse_commit(fields: Fields) -> Committed:
    return Committed(
        fields["committedOffset"], fields.get("committedLeaderEpoch", -1), fields["committedMetadata"] or ""
    )


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
