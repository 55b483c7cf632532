"""APIs that read and write logs: Fetch, ListOffsets, OffsetForLeaderEpoch, Produce."""

from collections import Counter
from collections.abc import Container, Generator, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from kseg.errors import KsegError, plural
from kseg.formats.messages import Fields, LazyList
from kseg.log.lookup import SpecialTime
from kseg.protocol.error_codes import ErrorCode
from kseg.serve.apis.request import (
    CONSUMER,
    DEBUGGING_CONSUMER,
    ApiAnswer,
    ApiRequest,
    ApiSteps,
    merged_topics,
)
from kseg.serve.cluster import ServedCluster
from kseg.serve.fetch_batches import FetchBounds
from kseg.serve.fetch_sessions import BY_ID, AskedPartition, named_partitions
from kseg.serve.partition import ServedOffsets, ServedPartition
from kseg.serve.stored_records import StoredRecords
from kseg.serve.turns import AT_WORKER, Step
from kseg.serve.values import LARGEST_FETCH, LARGEST_PARTITION_FETCH, LONGEST_WAIT_SECONDS

READ_COMMITTED = 1
_HAS_TOP_ERROR = 7
"""From this version on a response has an error for the whole request."""


_PartSteps = Generator[Step | None, None, Fields]


class _Room(NamedTuple):
    """The room left in a response."""

    most_bytes: int
    is_empty: bool


def answer_fetch(request: ApiRequest) -> ApiSteps:
    """Return records in the order of the request's or session's partitions, within the client's and own limits."""
    body = request.body
    refused = _refusal(request)
    if refused is not None:
        return refused
    if request.served.fetch_sessions.is_large(body):
        yield AT_WORKER
    view = request.served.fetch_sessions.view(body, request.version)
    if isinstance(view, ErrorCode):
        return _no_session(view)
    room = _Room(min(max(body["maxBytes"], 0), LARGEST_FETCH), is_empty=True)
    parts: list[Fields] = []
    awaited: dict[ServedPartition, int] = {}
    size = 0
    for each in view.partitions:
        yield None
        partition = _partition_of(request, each)
        part = yield from _fetch_partition(request, each.fields, partition, room)
        parts.append(part)
        if isinstance(partition, ServedPartition):
            awaited[partition] = part["highWatermark"]
        added = len(part["records"])
        if added:
            room = _Room(max(room.most_bytes - added, 0), is_empty=False)
            size += added
    is_enough = size >= max(body["minBytes"], 1) or any(part["errorCode"] for part in parts) or not parts
    wait = 0.0 if is_enough else min(max(body["maxWaitMs"], 0) / 1000, LONGEST_WAIT_SECONDS)
    if wait and not request.is_last_try:
        return ApiAnswer(None, "", wait, awaited)
    answer = request.served.fetch_sessions.remember_answer(view, parts)
    if isinstance(answer, ErrorCode):
        return _no_session(answer)
    note = _note(view.partitions, size, [*awaited])
    return ApiAnswer({"sessionId": answer.session_id, "responses": _group_by_topic(answer.parts)}, note)


def _no_session(error: ErrorCode) -> ApiAnswer:
    return ApiAnswer({"errorCode": error, "responses": []}, "not in this session")


def _refusal(request: ApiRequest) -> ApiAnswer | None:
    """Return the answer to requests of brokers, or None for a consumer's request."""
    body = request.body
    replica_id = body.get("replicaState", {}).get("replicaId", body.get("replicaId", CONSUMER))
    if replica_id > CONSUMER:
        if request.version >= _HAS_TOP_ERROR:
            return ApiAnswer(
                {"errorCode": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "responses": []}, "a broker, refused"
            )
        failed = [
            (each, _error_part(each.fields["partition"], ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
            for each in named_partitions(body)
        ]
        return ApiAnswer({"responses": _group_by_topic(failed)}, "a broker, refused")
    return None


def _partition_of(request: ApiRequest, asked: AskedPartition) -> ServedPartition | ErrorCode:
    """Return the requested partition, or the error if there is none."""
    if request.version >= BY_ID:
        topic = request.served.topic_of(None, asked.topic["topicId"])
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = request.served.topics.get(asked.topic["topic"])
    partition = None if topic is None else topic.partitions.get(asked.fields["partition"])
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else partition


def _fetch_partition(
    request: ApiRequest, fields: Fields, partition: ServedPartition | ErrorCode, room: _Room
) -> _PartSteps:
    """Return a partition's part of the response, from memory if possible; a worker does the rest."""
    number = fields["partition"]
    if isinstance(partition, ErrorCode):
        return _error_part(number, partition)
    try:
        offsets = partition.known_offsets()
        if offsets is None:
            yield AT_WORKER
            offsets = partition.offsets()
        is_committed = request.body["isolationLevel"] == READ_COMMITTED
        end = partition.known_last_stable_offset(offsets) if is_committed else offsets.high_watermark
        if end is None:
            yield AT_WORKER
            end = partition.last_stable_offset(offsets)
        known = {
            "partitionIndex": number,
            "errorCode": ErrorCode.NONE,
            "highWatermark": offsets.high_watermark,
            "lastStableOffset": end,
            "logStartOffset": offsets.log_start,
            "records": b"",  # never null, which librdkafka takes for damage
        } | {"abortedTransactions": [] if is_committed else None}
        if not offsets.log_start <= fields["fetchOffset"] <= offsets.log_end:
            return {**_error_part(number, ErrorCode.OFFSET_OUT_OF_RANGE), "abortedTransactions": None}
        bounds = _bounds(partition, fields, room, end, is_committed=is_committed)
        return {**known, **(yield from _records(partition, bounds, offsets, is_committed=is_committed))}
    except KsegError:
        return _error_part(number, ErrorCode.KAFKA_STORAGE_ERROR)


def _bounds(
    partition: ServedPartition, fields: Fields, room: _Room, end: int, *, is_committed: bool
) -> FetchBounds | None:
    """Return the wanted part of a partition, or None if it is empty, or the response has no room for it."""
    most = min(max(fields["partitionMaxBytes"], 0), LARGEST_PARTITION_FETCH, room.most_bytes)
    if fields["fetchOffset"] >= end or not (most or room.is_empty):
        return None
    # Clients forget aborted transactions at their markers, and such a marker may be lost in the damage.
    return FetchBounds(
        fields["fetchOffset"], end, most, room.is_empty, stops_at_damage=is_committed or partition.is_strict
    )


def _records(
    partition: ServedPartition, bounds: FetchBounds | None, offsets: ServedOffsets, *, is_committed: bool
) -> _PartSteps:
    if bounds is None:
        return {}
    planned = partition.known_plan(bounds)
    if planned is None:
        yield AT_WORKER
        planned = partition.plan(bounds)
        if planned is None:
            return {}
    log, plan = planned
    if partition.is_strict and plan.missed:
        return {"errorCode": ErrorCode.CORRUPT_MESSAGE}
    if not plan.ranges:
        return {}
    records = StoredRecords(log, plan.ranges, plan.first_offset, plan.next_offset, plan.mends)
    if not is_committed:
        return {"records": records}
    aborted = partition.known_aborted(plan)
    if aborted is None:
        yield AT_WORKER
        aborted = partition.find_aborted(plan, offsets)
    return {
        "records": records,
        "abortedTransactions": [{"producerId": producer_id, "firstOffset": first} for producer_id, first in aborted],
    }


def _error_part(number: int, error: ErrorCode) -> Fields:
    return {"partitionIndex": number, "errorCode": error, "highWatermark": -1, "records": b""}


def _group_by_topic(parts: Iterable[tuple[AskedPartition, Fields]]) -> list[Fields]:
    """Group the parts of an answer by topic while parts of the same topic follow each other."""
    return [
        {**topic, "partitions": [part for _, part in pairs]}
        for topic, pairs in groupby(parts, lambda each: each[0].topic)
    ]


def _note(asked: Sequence[AskedPartition], size: int, served: list[ServedPartition]) -> str:
    if not asked:
        return "nothing"
    first = served[0] if served else "an unknown partition"
    more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
    return f"{first} from {asked[0].fields['fetchOffset']}{more}, {plural(size, 'byte')}"


LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
"""Special values of a timestamp. Source: ListOffsetsRequest."""
_SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The first version that allows each special timestamp. Source: KafkaApis.timestampMinSupportedVersion."""


def answer_list_offsets(request: ApiRequest) -> ApiAnswer:
    """Return an offset and its leader epoch per partition and timestamp.

    Partitions that are named twice get one error. Source: KafkaApis.handleListOffsetRequest,
    ListOffsetsRequest.duplicatePartitions.
    """
    asked = [(topic["name"], each) for topic in request.body["topics"] for each in topic["partitions"]]
    counts = Counter((name, each["partitionIndex"]) for name, each in asked)
    repeated = {key for key, count in counts.items() if count > 1}
    topics = [
        {"name": topic["name"], "partitions": _listed_partitions(request, topic, repeated)}
        for topic in merged_topics(request.body["topics"], "partitions", "partitionIndex")
    ]
    first = f"{asked[0][0]}-{asked[0][1]['partitionIndex']} at {asked[0][1]['timestamp']}" if asked else "nothing"
    return ApiAnswer({"topics": topics}, first if len(asked) < 2 else f"{first} and {len(asked) - 1} more")


def _listed_partitions(request: ApiRequest, topic: Fields, repeated: Container[tuple[str, int]]) -> LazyList:
    asked, name = topic["partitions"], topic["name"]
    return LazyList(len(asked), (_listed_partition(request, name, each, repeated) for each in asked))


def _listed_partition(request: ApiRequest, name: str, asked: Fields, repeated: Container[tuple[str, int]]) -> Fields:
    number = asked["partitionIndex"]
    if (name, number) in repeated:
        return {"partitionIndex": number, "errorCode": ErrorCode.INVALID_REQUEST}
    partition = request.served.partition_of(name, number)
    if request.body["replicaId"] > CONSUMER:
        return {"partitionIndex": number, "errorCode": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    if partition is None:
        return {"partitionIndex": number, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    if asked["timestamp"] < 0 and request.version < _SINCE.get(asked["timestamp"], request.version + 1):
        return {"partitionIndex": number, "errorCode": ErrorCode.UNSUPPORTED_VERSION}
    try:
        is_committed = request.body.get("isolationLevel", 0) == 1
        found = _offset_at(request.served, partition, asked["timestamp"], is_committed=is_committed)
    except KsegError:
        return {"partitionIndex": number, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR}
    return {"partitionIndex": number, **found._asdict()}


class _Listed(NamedTuple):
    """The answer for a timestamp under the response's field names; all are -1 without a record."""

    offset: int
    timestamp: int
    leaderEpoch: int


_NOWHERE = _Listed(-1, -1, -1)


def _offset_at(served: ServedCluster, partition: ServedPartition, timestamp: int, *, is_committed: bool) -> _Listed:
    offsets = partition.offsets()
    end = partition.last_stable_offset(offsets) if is_committed else offsets.high_watermark
    if timestamp == LATEST:
        return _Listed(end, -1, partition.noted_epochs().latest)
    if timestamp >= 0 or timestamp == MAX_TIMESTAMP:
        found = partition.find_time(SpecialTime.MAX_TIMESTAMP if timestamp < 0 else timestamp, end)
        return _NOWHERE if found is None else _Listed(*found)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = offsets.log_start if timestamp == EARLIEST else partition.disk_start(offsets)
    else:
        tier = None if partition.listed is None else served.tiers.of(partition.listed)
        is_latest = timestamp == LATEST_TIERED
        bound = None if tier is None else tier.highest_offset if is_latest else tier.first_not_copied
        if bound is None or not 0 <= bound < end:
            return _NOWHERE
        offset = bound
    return _Listed(offset, -1, partition.noted_epochs().of_offset(offset))


def answer_offset_for_leader_epoch(request: ApiRequest) -> ApiAnswer:
    """Return the end of an epoch for each partition."""
    asked = merged_topics(request.body["topics"], "partitions", "partition")
    topics = [{"topic": topic["topic"], "partitions": _epoch_ends(request, topic)} for topic in asked]
    return ApiAnswer({"topics": topics}, f"{sum(len(topic['partitions']) for topic in asked)} partitions")


def _epoch_ends(request: ApiRequest, topic: Fields) -> LazyList:
    asked = topic["partitions"]
    return LazyList(len(asked), (_epoch_end_partition(request, topic["topic"], each) for each in asked))


def _epoch_end_partition(request: ApiRequest, name: str, asked: Fields) -> Fields:
    number = asked["partition"]
    partition = request.served.partition_of(name, number)
    if request.body.get("replicaId", DEBUGGING_CONSUMER) not in (CONSUMER, DEBUGGING_CONSUMER):
        return {"partition": number, "errorCode": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    if partition is None:
        return {"partition": number, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    try:
        return {"partition": number, **_end(partition, asked)}
    except KsegError:
        return {"partition": number, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR}


def _end(partition: ServedPartition, asked: Fields) -> Fields:
    epochs = partition.leader_epochs()
    current = asked["currentLeaderEpoch"]
    if current > epochs.latest:
        return {"errorCode": ErrorCode.UNKNOWN_LEADER_EPOCH}
    if 0 <= current < epochs.latest:
        return {"errorCode": ErrorCode.FENCED_LEADER_EPOCH}
    epoch, end = epochs.end_of(asked["leaderEpoch"], partition.offsets().log_end)
    return {"leaderEpoch": epoch, "endOffset": end}


REFUSAL = "kseg serve is read-only and accepts no records"
_NO_ANSWER = 0
"""The value of acks that asks for no response."""


def refuse_produce(request: ApiRequest) -> ApiAnswer:
    """Return an authorization error for each partition."""
    if request.body["acks"] == _NO_ANSWER:
        return ApiAnswer(None, "refused")
    failed = {"errorCode": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "baseOffset": -1, "errorMessage": REFUSAL}
    responses = [
        {
            **{key: topic[key] for key in ("name", "topicId") if key in topic},
            "partitionResponses": [{"index": each["index"], **failed} for each in topic["partitionData"]],
        }
        for topic in merged_topics(request.body["topicData"], "partitionData", "index")
    ]
    return ApiAnswer({"responses": responses}, "refused")
