"""Requests that no client sends on its own, sent to a running broker."""

import socket
from collections.abc import Iterable
from typing import NamedTuple

from kseg.formats.messages import Fields
from kseg.protocol.messages import read_response
from tests.log.real_broker import PATIENCE
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.protocol.packets import frame_message, request

PRODUCE, DESCRIBE_PRODUCERS, LIST_TRANSACTIONS, DESCRIBE_SHARE_GROUP_OFFSETS = 0, 61, 66, 90


class CoordinatorState(NamedTuple):
    """A coordinator's state of a transactional id."""

    producer_id: int
    state: str


def answer_of(port: int, api_key: int, version: int, body: Fields) -> Fields:
    """Return the broker's answer to a request."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client, client.makefile("rb") as stream:
        client.sendall(frame_message(request(api_key, version, body)))
        answer = read_response(stream.read(int.from_bytes(stream.read(4), "big")), api_key, version)
    assert answer.body is not None, answer.problem
    return answer.body


def coordinator_states(port: int) -> dict[str, CoordinatorState]:
    """Return the transactional ids that a broker's coordinators know."""
    found = answer_of(port, LIST_TRANSACTIONS, 0, {"stateFilters": [], "producerIdFilters": []})
    return {
        each["transactionalId"]: CoordinatorState(each["producerId"], each["transactionState"])
        for each in found["transactionStates"]
    }


def open_transactions(port: int, topics: Iterable[str]) -> dict[str, set[tuple[int, int]]]:
    """Return producers and first offsets of open transactions in partition 0 of topics, by DescribeProducers."""
    wanted = [{"name": topic, "partitionIndexes": [0]} for topic in topics]
    return {
        topic["name"]: {
            (each["producerId"], each["currentTxnStartOffset"])
            for partition in topic["partitions"]
            for each in partition["activeProducers"]
            if each["currentTxnStartOffset"] >= 0
        }
        for topic in answer_of(port, DESCRIBE_PRODUCERS, 0, {"topics": wanted})["topics"]
    }


def write_late(port: int, topic: str, partition: int, producer_id: int, epoch: int, timestamp: int) -> int:
    """Write a transactional batch that no coordinator knows; return its offset."""
    record = NewRecord(b"late", b"late", timestamp)
    raw = batch_bytes(NewBatch([record], 0, producer_id, epoch, is_transactional=True))
    body = {
        "transactionalId": "late",
        "acks": -1,
        "timeoutMs": 5000,
        "topicData": [{"name": topic, "partitionData": [{"index": partition, "records": raw}]}],
    }
    (answer,) = answer_of(port, PRODUCE, 7, body)["responses"]
    (written,) = answer["partitionResponses"]
    assert written["errorCode"] == 0, written
    return int(written["baseOffset"])
