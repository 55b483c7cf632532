"""ListOffsets: where a partition begins and ends, and the first record with a time or a later one."""

from kseg.errors import KsegError
from kseg.formats.messages import Fields
from kseg.log.lookup.lookup import SpecialTime
from kseg.log.partition.leader_epochs import EpochStarts
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.apis.replica_ids import CONSUMER
from kseg.serve.error_code import ErrorCode
from kseg.serve.served_partition import ServedPartition

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
"""Times that aren't times. Source: ListOffsetsRequest."""
NOWHERE = (-1, -1)
"""Offset and time where there is none."""


def answer_list_offsets(request: ApiRequest) -> ApiAnswer:
    """An offset for each partition and time, with its leader epoch."""
    asked = [(topic["name"], each) for topic in request.body["topics"] for each in topic["partitions"]]
    topics = [
        {
            "name": topic["name"],
            "partitions": [_of_partition(request, topic["name"], each) for each in topic["partitions"]],
        }
        for topic in request.body["topics"]
    ]
    first = f"{asked[0][0]}-{asked[0][1]['partitionIndex']} at {asked[0][1]['timestamp']}" if asked else "nothing"
    return ApiAnswer({"topics": topics}, first if len(asked) < 2 else f"{first} and {len(asked) - 1} more")


def _of_partition(request: ApiRequest, name: str, asked: Fields) -> Fields:
    number = asked["partitionIndex"]
    partition = request.served.partition_of(name, number)
    if request.body["replicaId"] > CONSUMER:
        return {"partitionIndex": number, "errorCode": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    if partition is None:
        return {"partitionIndex": number, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    try:
        is_committed = request.body.get("isolationLevel", 0) == 1
        offset, timestamp = _offset_at(partition, asked["timestamp"], is_committed=is_committed)
    except KsegError:
        return {"partitionIndex": number, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR}
    epochs = partition.noted_epochs() if offset >= 0 else EpochStarts()
    epoch = epochs.latest if asked["timestamp"] == LATEST else epochs.of_offset(offset)
    return {"partitionIndex": number, "offset": offset, "timestamp": timestamp, "leaderEpoch": epoch}


def _offset_at(partition: ServedPartition, timestamp: int, *, is_committed: bool) -> tuple[int, int]:
    """Offset and time that answer a time; both are -1 where there is none."""
    offsets = partition.offsets()
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return offsets.log_start, -1
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOWHERE  # nothing of what is served is in a remote tier
    end = partition.last_stable_offset(offsets) if is_committed else offsets.high_watermark
    if timestamp == LATEST:
        return end, -1
    wanted = SpecialTime.MAX_TIMESTAMP if timestamp == MAX_TIMESTAMP else timestamp
    return partition.find_time(wanted, end) or NOWHERE
