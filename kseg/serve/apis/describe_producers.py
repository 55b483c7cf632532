"""DescribeProducers: who wrote to a partition, by its newest producer snapshot and the log after it."""

from kseg.errors import KsegError
from kseg.formats.messages import Fields
from kseg.index.producer_state import ProducerState
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode


def answer_describe_producers(request: ApiRequest) -> ApiAnswer:
    """The producers of each partition, once, also those that a running broker would have forgotten after a day."""
    asked: dict[str, dict[int, None]] = {}
    for topic in request.body["topics"]:
        asked.setdefault(topic["name"], {}).update(dict.fromkeys(topic["partitionIndexes"]))
    topics = [
        {"name": name, "partitions": [_of_partition(request, name, number) for number in numbers]}
        for name, numbers in asked.items()
    ]
    return ApiAnswer({"topics": topics}, f"{sum(map(len, asked.values()))} partitions")


def _of_partition(request: ApiRequest, name: str, number: int) -> Fields:
    partition = request.served.partition_of(name, number)
    if partition is None:
        return {"partitionIndex": number, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    try:
        producers = [_active(each) for each in partition.producers()]
    except KsegError:
        return {"partitionIndex": number, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR}
    return {"partitionIndex": number, "activeProducers": producers}


def _active(state: ProducerState) -> Fields:
    return {
        "producerId": state.producer_id,
        "producerEpoch": state.epoch,
        "lastSequence": state.last_sequence,
        "lastTimestamp": state.timestamp,
        "coordinatorEpoch": state.coordinator_epoch,
        "currentTxnStartOffset": state.current_txn_first_offset,
    }
