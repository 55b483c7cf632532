"""A broker and kseg answer requests with repeated names alike. Needs Java and Maven."""

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from kseg.formats.messages import Fields, MessageError
from kseg.formats.schemas import REQUESTS, version_range
from tests.log.real_broker import PATIENCE, Broker, new_broker
from tests.protocol.packets import request
from tests.serve.running import Running, serving
from tests.serve.test_bounds import KEYS
from tests.serve.test_refusals_kafka import ask
from tests.serve.test_server import API_VERSIONS, METADATA, open_connection

pytestmark = pytest.mark.kafka

REPLIES_OF_NAMES = ("name", "topic", "topicName", "groupId", "key", "resourceName", "transactionalId", "groupName")
NUMBERS = ("partitionIndex", "partition")
TIMES = 3
TRANSACTIONAL_ID_NOT_FOUND = 105


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = new_broker(tmp_path_factory, {"auto.create.topics.enable": "false"})
    with made.running("repeating"):
        topics = [{"name": "orders", "numPartitions": 2, "replicationFactor": 1}]
        assert (
            ask(made, KEYS["CreateTopics"], 7, {"topics": topics, "timeoutMs": 30_000})["topics"][0]["errorCode"] == 0
        )
        for api, body in (
            ("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["g"]}),
            ("FindCoordinator", {"keyType": 1, "coordinatorKeys": ["t"]}),
            ("OffsetFetch", {"groups": [{"groupId": "g", "memberId": None, "memberEpoch": -1, "topics": None}]}),
            ("DescribeTransactions", {"transactionalIds": ["t"]}),
        ):
            made.tools.wait_until(partial(is_ready, made, api, body), PATIENCE, f"{api} isn't answered", None)
        yield made


def is_ready(broker: Broker, api: str, body: Fields) -> bool:
    """Return True if the coordinator for a request is ready."""
    (one,) = next(
        each
        for each in ask(broker, KEYS[api], version_range(REQUESTS[KEYS[api]].versions).last, body).values()
        if isinstance(each, list)
    )
    return one["errorCode"] in (0, TRANSACTIONAL_ID_NOT_FOUND)


@pytest.fixture(scope="module")
def running(broker: Broker) -> Iterator[Running]:
    with serving(broker.logs) as running:
        yield running


def bodies(topic_id: str) -> list[tuple[str, Fields]]:
    """Return requests that name something once, twice or in two ways."""
    both = {"name": "orders", "topic": "orders", "topicId": topic_id}

    def topics(part: Any, **others: Any) -> Fields:
        return {"topics": [{**both, "partitions": [part, part], "partitionIndexes": [part, part]}], **others}

    group = {"groupId": "g", "memberId": None, "memberEpoch": -1, **topics(1)}
    return [
        ("Metadata", {"topics": [{"name": "orders"}, {"name": "nowhere"}], "allowAutoTopicCreation": False}),
        (
            "Metadata",
            {"topics": [{"name": None, "topicId": topic_id}], "allowAutoTopicCreation": False},
        ),  # from version 12
        ("Metadata", {"topics": [{"name": "a/b"}], "allowAutoTopicCreation": False}),
        ("DescribeGroups", {"groups": ["g", "h"]}),
        ("ConsumerGroupDescribe", {"groupIds": ["g", "h"]}),
        ("FindCoordinator", {"key": "g", "keyType": 0, "coordinatorKeys": ["g", "h"]}),
        ("FindCoordinator", {"key": "t", "keyType": 1, "coordinatorKeys": ["t"]}),
        ("OffsetFetch", {"groupId": "g", **topics(1), "groups": [group]}),
        ("OffsetFetch", {"groupId": "g", "topics": None, "groups": [{**group, "topics": None}]}),
        ("ListOffsets", topics({"partitionIndex": 1, "timestamp": -1, "maxNumOffsets": 1}, replicaId=-1)),
        (
            "ListOffsets",
            {"replicaId": -1, "topics": [{**both, "partitions": [{"partitionIndex": 0, "timestamp": -2}]}]},
        ),
        ("OffsetForLeaderEpoch", topics({"partition": 1, "currentLeaderEpoch": -1, "leaderEpoch": 0}, replicaId=-1)),
        ("DescribeLogDirs", {"topics": [{"topic": "orders", "partitions": [0, 1, 0]}]}),
        ("DescribeConfigs", {"resources": [{"resourceType": 2, "resourceName": "orders", "configurationKeys": None}]}),
        ("DescribeProducers", topics(1)),
        ("DescribeTransactions", {"transactionalIds": ["t", "u"]}),
        ("DescribeTopicPartitions", {"topics": [{"name": "orders"}], "responsePartitionLimit": 2000, "cursor": None}),
        ("ListGroups", {"statesFilter": ["Stable", "Odd"], "typesFilter": ["consumer"]}),
        ("ListTransactions", {"stateFilters": ["Ongoing"], "producerIdFilters": [7]}),
    ]


def answered_names(answer: Any) -> Any:
    """Return the names in an answer, in order, with their errors."""
    if isinstance(answer, list):
        return sorted((answered_names(each) for each in answer), key=repr)
    if not isinstance(answer, dict):
        return ()
    name = next((answer[each] for each in (*REPLIES_OF_NAMES, *NUMBERS) if answer.get(each) is not None), None)
    lists = [answered_names(each) for key, each in answer.items() if isinstance(each, list) and key not in LEFT_OUT]
    return (name, answer.get("errorCode", 0), *filter(None, lists))


def can_be_asked(api_key: int, version: int, body: Fields) -> bool:
    """Return True if a version allows null names."""
    try:
        return bool(request(api_key, version, body))
    except MessageError:
        return False


LEFT_OUT = {"brokers", "endpoints", "configs", "synonyms", "nodeEndpoints"}


MERGED = ("ListOffsets", "DescribeLogDirs", "DescribeTopicPartitions", "ListGroups", "ListTransactions")
"""APIs that a broker, too, answers once per name; for others it repeats answers, which makes them large."""


def each_once(answer: Any) -> Any:
    """Return `answered_names` without repetitions; the partitions of a repeated topic are separate."""
    if isinstance(answer, list):
        return [once for once, _ in groupby(map(each_once, answer))]
    return tuple(map(each_once, answer)) if isinstance(answer, tuple) else answer


def test_a_broker_names_the_same_as_often(broker: Broker, running: Running) -> None:
    known = {
        row["apiKey"]: row
        for row in ask(broker, API_VERSIONS, 3, {"clientSoftwareName": "test", "clientSoftwareVersion": "1"})["apiKeys"]
    }
    (topic,) = ask(broker, METADATA, 12, {"topics": [{"name": "orders"}]})["topics"]
    compared, wrong = 0, []
    with open_connection(running) as client:
        for api, once in bodies(topic["topicId"]):
            mine, yours = version_range(REQUESTS[KEYS[api]].versions), known[KEYS[api]]
            for version in range(max(mine.first, yours["minVersion"]), min(mine.last, yours["maxVersion"]) + 1):
                body = {name: each * TIMES if isinstance(each, list) else each for name, each in once.items()}
                if not can_be_asked(KEYS[api], version, body):
                    continue
                theirs, own = (
                    answered_names(ask(broker, KEYS[api], version, body)),
                    answered_names(client.ask(KEYS[api], version, body)),
                )
                compared += 1
                if own != (theirs if api in MERGED else each_once(theirs)):
                    wrong.append((api, version, once, theirs, own))
    assert not wrong, "\n".join(map(str, wrong))
    assert compared > 60
