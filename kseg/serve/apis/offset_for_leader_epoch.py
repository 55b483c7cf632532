"""OffsetForLeaderEpoch: where a leader's records end, so that a client sees whether it read what was truncated."""

from kseg.errors import KsegError
from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.apis.replica_ids import CONSUMER, DEBUGGING_CONSUMER
from kseg.serve.error_code import ErrorCode
from kseg.serve.served_partition import ServedPartition


def answer_offset_for_leader_epoch(request: ApiRequest) -> ApiAnswer:
    """The end of an epoch for each partition."""
    topics = [
        {
            "topic": topic["topic"],
            "partitions": [_of_partition(request, topic["topic"], each) for each in topic["partitions"]],
        }
        for topic in request.body["topics"]
    ]
    return ApiAnswer({"topics": topics}, f"{sum(len(topic['partitions']) for topic in topics)} partitions")


def _of_partition(request: ApiRequest, name: str, asked: Fields) -> Fields:
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
