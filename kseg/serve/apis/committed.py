"""APIs of consumer groups' committed offsets: OffsetFetch, OffsetCommit."""

from collections import defaultdict
from collections.abc import Iterable

from kseg.errors import plural
from kseg.formats.messages import ZERO_UUID, Fields, LazyList
from kseg.protocol.error_codes import ErrorCode
from kseg.serve.apis.request import ApiAnswer, ApiRequest, merged_topics
from kseg.serve.cluster import ServedCluster
from kseg.serve.groups.classic import (
    MemberName,
)
from kseg.serve.groups.commits import Committed, Partition
from kseg.serve.values import (
    MOST_COMMIT_METADATA,
    GroupError,
)

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
