"""OffsetFetch and OffsetCommit: how far groups have read."""

from collections import defaultdict
from collections.abc import Iterable

from kseg.formats.messages import ZERO_UUID, Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode
from kseg.serve.groups.assignors import Partition
from kseg.serve.groups.classic_member import MemberName
from kseg.serve.groups.commits import Committed
from kseg.serve.groups.group_error import GroupError
from kseg.serve.groups.group_limits import MOST_COMMIT_METADATA
from kseg.serve.served_cluster import ServedCluster

NOTHING_COMMITTED = Committed(-1, -1, "")
_MANY_GROUPS = 8
"""From this version on OffsetFetch asks for several groups."""
_BY_ID = 10
"""From this version on topics go by their ids."""


def answer_offset_fetch(request: ApiRequest) -> ApiAnswer:
    """What groups have committed: here, or else before the disk was left."""
    body = request.body
    if request.version >= _MANY_GROUPS:
        groups = [_of_group(request, asked) for asked in body["groups"]]
        return ApiAnswer({"groups": groups}, ", ".join(each["groupId"] for each in body["groups"][:1]))
    found = _of_group(request, body)
    return ApiAnswer({"topics": found["topics"], "errorCode": found["errorCode"]}, body["groupId"])


def _of_group(request: ApiRequest, asked: Fields) -> Fields:
    name = asked["groupId"]
    try:
        known = request.served.groups.committed(name, asked.get("memberId"), asked.get("memberEpoch", -1))
    except GroupError as error:
        return {"groupId": name, "topics": [], "errorCode": error.code}
    topics = _all_of(request.served, known) if asked["topics"] is None else asked["topics"]
    found = [_of_topic(request, topic, known) for topic in topics]
    if asked["topics"] is None and request.version >= _BY_ID:
        found = [topic for topic in found if topic["topicId"] != ZERO_UUID]
    return {"groupId": name, "topics": found, "errorCode": ErrorCode.NONE}


def _all_of(served: ServedCluster, known: Iterable[Partition]) -> list[Fields]:
    """What a group has committed of what is served: kafka-consumer-groups.sh fails at topics that aren't there."""
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
    partitions = [
        {"partitionIndex": number, "errorCode": error, **_committed_fields(known.get((name or "", number)))}
        for number in asked["partitionIndexes"]
    ]
    return {"name": name or "", "topicId": topic_id, "partitions": partitions}


def _committed_fields(committed: Committed | None) -> Fields:
    offset, leader_epoch, metadata = NOTHING_COMMITTED if committed is None else committed
    return {"committedOffset": offset, "committedLeaderEpoch": leader_epoch, "metadata": metadata}


def answer_offset_commit(request: ApiRequest) -> ApiAnswer:
    """Offsets are kept in memory, if they are of partitions that are served."""
    body = request.body
    asked = [
        (topic, each, _commit_problem(request, topic, each)) for topic in body["topics"] for each in topic["partitions"]
    ]
    offsets = {
        (_topic_name(request, topic) or "", each["partitionIndex"]): _committed(each)
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
    return ApiAnswer({"topics": topics}, f"{body['groupId']}, {len(offsets)} offsets{note}")


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
    """Why an offset isn't taken, whoever commits it."""
    topic = request.served.topic_of(asked.get("name"), asked.get("topicId", ZERO_UUID))
    if topic is None and request.version >= _BY_ID:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if topic is None or fields["partitionIndex"] not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    is_long = len(fields["committedMetadata"] or "") > MOST_COMMIT_METADATA
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_long else ErrorCode.NONE


def _committed(fields: Fields) -> Committed:
    return Committed(
        fields["committedOffset"], fields.get("committedLeaderEpoch", -1), fields["committedMetadata"] or ""
    )
