"""The coordinators' latest states of transactional ids, and the producers of partitions."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kseg.serve.values import ServeSettings
from tests import golden
from tests.serve.running import serving
from tests.serve.test_server import Connection, open_connection

DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
LOGS = golden.ROOT / "logs"
COMMITTED, ABORTED, OPEN = "CompleteCommit", "CompleteAbort", "Ongoing"
KNOWN = {"ctx-a-2": ABORTED, "left-open": OPEN, "tx-1": COMMITTED, "tx-zstd": COMMITTED}
"""Transactional ids in the logs of 2.8.2."""


@pytest.fixture
def client() -> Iterator[Connection]:
    with serving(LOGS / "2.8.2") as running, open_connection(running) as connection:
        yield connection


def list_transactions(client: Connection, version: int = 2, **filters: Any) -> dict[str, str]:
    answer = client.ask(LIST_TRANSACTIONS, version, {"stateFilters": [], "producerIdFilters": [], **filters})
    assert answer["errorCode"] == 0
    return {each["transactionalId"]: each["transactionState"] for each in answer["transactionStates"]}


@pytest.mark.parametrize("version", range(3))
def test_transactional_ids_are_listed_with_their_states(client: Connection, version: int) -> None:
    assert list_transactions(client, version) == KNOWN


def test_transactional_ids_that_the_best_copy_lost_are_those_of_another(tmp_path: Path) -> None:
    for broker in ("b1", "b2"):
        shutil.copytree(LOGS / "2.8.2", tmp_path / broker)
    for log in (tmp_path / "b1").glob("__transaction_state-*/*.log"):
        content, position = bytearray(log.read_bytes()), 0
        while (following := position + 12 + int.from_bytes(content[position + 8 : position + 12])) < len(content):
            content[following - 1] ^= 1  # each batch but the last one
            position = following
        log.write_bytes(content)
    with serving(tmp_path / "b1") as running, open_connection(running) as connection:
        assert list_transactions(connection) != KNOWN
    identity = (tmp_path / "b2" / "meta.properties").read_text(encoding="utf-8")
    (tmp_path / "b2" / "meta.properties").write_text(identity.replace("broker.id=1", "broker.id=2"), encoding="utf-8")
    with serving(tmp_path / "b1", tmp_path / "b2") as running, open_connection(running) as connection:
        assert list_transactions(connection) == KNOWN


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"stateFilters": [OPEN]}, {"left-open"}),
        ({"stateFilters": ["Lost"]}, set()),
        ({"producerIdFilters": [14, 16, 99]}, {"tx-1", "tx-zstd"}),
        ({"transactionalIdPattern": "tx-.*"}, {"tx-1", "tx-zstd"}),
        ({"transactionalIdPattern": "tx"}, set()),
        ({"transactionalIdPattern": ""}, set(KNOWN)),
        ({"durationFilter": 0}, set(KNOWN)),
        ({"durationFilter": 1 << 50}, set()),
    ],
)
def test_all_filters_are_to_be_passed(client: Connection, filters: dict[str, Any], found: set[str]) -> None:
    assert set(list_transactions(client, **filters)) == found


def test_unknown_states_are_named(client: Connection) -> None:
    body = {"stateFilters": ["Lost", OPEN], "producerIdFilters": []}
    assert client.ask(LIST_TRANSACTIONS, 0, body)["unknownStateFilters"] == ["Lost"]


@pytest.mark.parametrize("pattern", ["tx-(", "x" * 600, r"(a)\1", "(?=a)"])
def test_what_is_no_pattern_of_a_brokers_is_refused(client: Connection, pattern: str) -> None:
    body = {"stateFilters": [], "producerIdFilters": [], "transactionalIdPattern": pattern}
    answer = client.ask(LIST_TRANSACTIONS, 2, body)
    assert (answer["errorCode"], answer["transactionStates"]) == (128, [])


def test_a_transaction_is_described_with_its_partitions(client: Connection) -> None:
    answer = client.ask(DESCRIBE_TRANSACTIONS, 0, {"transactionalIds": ["left-open", "tx-1"]})
    opened, done = answer["transactionStates"]
    assert {name: opened[name] for name in opened if name != "transactionStartTimeMs"} == {
        "errorCode": 0,
        "transactionalId": "left-open",
        "transactionState": OPEN,
        "transactionTimeoutMs": 600_000,
        "producerId": 1009,
        "producerEpoch": 0,
        "topics": [{"topic": "__consumer_offsets", "partitions": [1]}, {"topic": "txn", "partitions": [0]}],
    }
    assert (done["transactionState"], done["topics"]) == (COMMITTED, [])


def test_unknown_transactional_ids_are_named(client: Connection) -> None:
    answer = client.ask(DESCRIBE_TRANSACTIONS, 0, {"transactionalIds": ["new", ""]})
    assert [each["errorCode"] for each in answer["transactionStates"]] == [105, 42]


def test_who_asks_again_and_again_is_answered_once(client: Connection) -> None:
    answer = client.ask(DESCRIBE_TRANSACTIONS, 0, {"transactionalIds": ["left-open"] * 5000})
    assert len(answer["transactionStates"]) == 1
    topics = [{"name": "__transaction_state", "partitionIndexes": [0] * 50}] * 50
    (topic,) = client.ask(DESCRIBE_PRODUCERS, 0, {"topics": topics})["topics"]
    assert len(topic["partitions"]) == 1


def test_transactional_ids_are_known_without_internal_topics_too() -> None:
    settings = ServeSettings(has_internal=False)
    with serving(LOGS / "2.8.2", settings=settings) as running, open_connection(running) as client:
        assert list_transactions(client)["left-open"] == "Ongoing"


def test_producers_are_those_that_the_log_and_its_snapshots_know() -> None:
    topics = [{"name": "txn", "partitionIndexes": [1, 7]}, {"name": "new", "partitionIndexes": [0]}]
    with serving(LOGS / "2.3.1" / "txn-1") as running, open_connection(running) as client:
        txn, new = client.ask(DESCRIBE_PRODUCERS, 0, {"topics": topics})["topics"]
    here, missing = txn["partitions"]
    producers = {each["producerId"]: each for each in here["activeProducers"]}
    assert {key: each["currentTxnStartOffset"] for key, each in producers.items()} == {1001: 110, 1000: -1, 9: 98}
    assert producers[1000] == {
        "producerId": 1000,
        "producerEpoch": 0,
        "lastSequence": 4,
        "lastTimestamp": 1588833905662,
        "coordinatorEpoch": 2,
        "currentTxnStartOffset": -1,
    }
    assert [missing["errorCode"], new["partitions"][0]["errorCode"]] == [3, 3]
