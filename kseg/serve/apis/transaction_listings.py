"""ListTransactions and DescribeTransactions: transactional ids, as their coordinators knew them last."""

import time
from collections import defaultdict

from kseg.decode.transaction_text import STATES
from kseg.errors import KsegError
from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.client_pattern import ClientPattern, PatternError, compile_pattern
from kseg.serve.error_code import ErrorCode
from kseg.views.transactions import CoordinatorTransaction

_NO_DURATION = -1


def answer_list_transactions(request: ApiRequest) -> ApiAnswer:
    """The transactional ids that pass all filters. Source: TransactionStateManager.listTransactionStates."""
    body = request.body
    unknown = [state for state in body["stateFilters"] if state not in STATES]
    try:
        wanted = body.get("transactionalIdPattern")
        pattern = compile_pattern(wanted) if wanted else None
        found = request.served.transactions.all().values()
    except PatternError as error:
        return ApiAnswer({"errorCode": ErrorCode.INVALID_REGULAR_EXPRESSION, "transactionStates": []}, error.message)
    except KsegError:
        return ApiAnswer({"errorCode": ErrorCode.KAFKA_STORAGE_ERROR, "transactionStates": []})
    now_ms = int(time.time() * 1000)
    states = [
        {"transactionalId": each.transactional_id, "producerId": each.producer_id, "transactionState": each.state}
        for each in found
        if _passes(each, body, pattern, now_ms)
    ]
    return ApiAnswer({"unknownStateFilters": unknown, "transactionStates": states}, f"{len(states)} transactional ids")


def _passes(each: CoordinatorTransaction, body: Fields, pattern: ClientPattern | None, now_ms: int) -> bool:
    states, producers = body["stateFilters"], body["producerIdFilters"]
    longer_than = body.get("durationFilter", _NO_DURATION)
    return (
        (not states or each.state in states)
        and (not producers or each.producer_id in producers)
        and (longer_than < 0 or now_ms - each.start_timestamp > longer_than)
        and (pattern is None or bool(pattern.fullmatch(each.transactional_id)))
    )


def answer_describe_transactions(request: ApiRequest) -> ApiAnswer:
    """What is known of some transactional ids, each once."""
    names = dict.fromkeys(request.body["transactionalIds"])
    try:
        known = request.served.transactions.all()
    except KsegError:
        states = [{"transactionalId": name, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR} for name in names]
    else:
        states = [_described(name, known.get(name)) for name in names]
    return ApiAnswer({"transactionStates": states}, f"{len(states)} transactional ids")


def _described(name: str, known: CoordinatorTransaction | None) -> Fields:
    if known is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if name else ErrorCode.INVALID_REQUEST
        return {"transactionalId": name, "errorCode": error}
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in known.partitions:
        topics[topic].append(partition)
    return {
        "transactionalId": name,
        "transactionState": known.state,
        "transactionTimeoutMs": known.timeout_ms,
        "transactionStartTimeMs": known.start_timestamp,
        "producerId": known.producer_id,
        "producerEpoch": known.producer_epoch,
        "topics": [{"topic": topic, "partitions": partitions} for topic, partitions in topics.items()],
    }
