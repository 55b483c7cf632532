"""Fetch: records, as they lie in their logs."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.apis.replica_ids import CONSUMER
from kseg.serve.error_code import ErrorCode
from kseg.serve.fetch_plan import FetchBounds
from kseg.serve.fetch_sessions import BY_ID, AskedPartition, named_partitions
from kseg.serve.limits import LARGEST_FETCH, LARGEST_PARTITION_FETCH, LONGEST_WAIT_SECONDS
from kseg.serve.served_partition import ServedOffsets, ServedPartition, StoredRecords

READ_COMMITTED = 1
_HAS_TOP_ERROR = 7
"""From this version on a response has an error for all of it."""


class _Room(NamedTuple):
    """What a response still has room for."""

    most_bytes: int
    is_empty: bool


def answer_fetch(request: ApiRequest) -> ApiAnswer:
    """Records of the partitions in the request's order, or its session's, as much as client and limits allow."""
    body = request.body
    refused = _refusal(request)
    if refused is not None:
        return refused
    view = request.served.fetch_sessions.view(body, request.version)
    if isinstance(view, ErrorCode):
        return _no_session(view)
    room = _Room(min(max(body["maxBytes"], 0), LARGEST_FETCH), is_empty=True)
    parts: list[Fields] = []
    awaited: dict[ServedPartition, int] = {}
    size = 0
    for each in view.asked:
        partition = _partition_of(request, each)
        part = _of_partition(request, each.fields, partition, room)
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
    answer = request.served.fetch_sessions.answered(view, parts)
    if isinstance(answer, ErrorCode):
        return _no_session(answer)
    note = _note(view.asked, size, [*awaited])
    return ApiAnswer({"sessionId": answer.session_id, "responses": _by_topic(answer.parts)}, note)


def _no_session(error: ErrorCode) -> ApiAnswer:
    return ApiAnswer({"errorCode": error, "responses": []}, "not in this session")


def _refusal(request: ApiRequest) -> ApiAnswer | None:
    """The answer to who is a broker."""
    body = request.body
    replica_id = body.get("replicaState", {}).get("replicaId", body.get("replicaId", CONSUMER))
    if replica_id > CONSUMER:
        if request.version >= _HAS_TOP_ERROR:
            return ApiAnswer(
                {"errorCode": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "responses": []}, "a broker, refused"
            )
        failed = [
            (each, _failed(each.fields["partition"], ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
            for each in named_partitions(body)
        ]
        return ApiAnswer({"responses": _by_topic(failed)}, "a broker, refused")
    return None


def _partition_of(request: ApiRequest, asked: AskedPartition) -> ServedPartition | ErrorCode:
    """The partition that is asked for, or why there is none."""
    if request.version >= BY_ID:
        topic = request.served.topic_of(None, asked.topic["topicId"])
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = request.served.topics.get(asked.topic["topic"])
    partition = None if topic is None else topic.partitions.get(asked.fields["partition"])
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else partition


def _of_partition(request: ApiRequest, fields: Fields, partition: ServedPartition | ErrorCode, room: _Room) -> Fields:
    number = fields["partition"]
    if isinstance(partition, ErrorCode):
        return _failed(number, partition)
    try:
        offsets = partition.offsets()
        is_committed = request.body["isolationLevel"] == READ_COMMITTED
        end = partition.last_stable_offset(offsets) if is_committed else offsets.high_watermark
        known = {
            "partitionIndex": number,
            "errorCode": ErrorCode.NONE,
            "highWatermark": offsets.high_watermark,
            "lastStableOffset": end,
            "logStartOffset": offsets.log_start,
            "records": b"",  # never null, which librdkafka takes for damage
        } | {"abortedTransactions": [] if is_committed else None}
        if not offsets.log_start <= fields["fetchOffset"] <= offsets.log_end:
            return {**_failed(number, ErrorCode.OFFSET_OUT_OF_RANGE), "abortedTransactions": None}
        bounds = _bounds(partition, fields, room, end, is_committed=is_committed)
        return {**known, **_records(partition, bounds, offsets, is_committed=is_committed)}
    except KsegError:
        return _failed(number, ErrorCode.KAFKA_STORAGE_ERROR)


def _bounds(
    partition: ServedPartition, fields: Fields, room: _Room, end: int, *, is_committed: bool
) -> FetchBounds | None:
    """What of a partition is wanted; None if nothing is there, or there is no room for it."""
    most = min(max(fields["partitionMaxBytes"], 0), LARGEST_PARTITION_FETCH, room.most_bytes)
    if fields["fetchOffset"] >= end or not (most or room.is_empty):
        return None
    # A client forgets which transactions were aborted at their markers, and such a marker may be lost in the damage.
    return FetchBounds(
        fields["fetchOffset"], end, most, room.is_empty, stops_at_damage=is_committed or partition.is_strict
    )


def _records(
    partition: ServedPartition, bounds: FetchBounds | None, offsets: ServedOffsets, *, is_committed: bool
) -> Fields:
    planned = None if bounds is None else partition.plan(bounds)
    if bounds is None or planned is None:
        return {}
    log, plan = planned
    if partition.is_strict and plan.missed:
        return {"errorCode": ErrorCode.CORRUPT_MESSAGE}
    if not plan.ranges:
        return {}
    records = StoredRecords(log, plan.ranges, plan.mends)
    if not is_committed:
        return {"records": records}
    aborted = partition.aborted(plan, offsets)
    return {
        "records": records,
        "abortedTransactions": [{"producerId": producer_id, "firstOffset": first} for producer_id, first in aborted],
    }


def _failed(number: int, error: ErrorCode) -> Fields:
    return {"partitionIndex": number, "errorCode": error, "highWatermark": -1, "records": b""}


def _by_topic(parts: Iterable[tuple[AskedPartition, Fields]]) -> list[Fields]:
    """The parts of an answer, those of a topic together while they follow each other."""
    return [
        {**topic, "partitions": [part for _, part in pairs]}
        for topic, pairs in groupby(parts, lambda each: each[0].topic)
    ]


def _note(asked: Sequence[AskedPartition], size: int, served: list[ServedPartition]) -> str:
    if not asked:
        return "nothing"
    first = served[0] if served else "an unknown partition"
    more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
    return f"{first} from {asked[0].fields['fetchOffset']}{more}, {size} bytes"
