"""Requests for changes are not offered, and are refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from kseg.formats.messages import Fields
from kseg.formats.schemas import REQUESTS, version_range
from kseg.protocol.messages import api_name
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.serve.running import serving
from tests.serve.test_server import API_VERSIONS, TOPIC_ID, Connection, open_connection

TOPIC, GROUP, CLUSTER, TRANSACTION, TOKEN = 29, 30, 31, 53, 65
KEYS = {api_name(key): key for key in REQUESTS}
NAMED = [{"name": "orders"}]
NUMBERED = [{"name": "orders", "topicId": TOPIC_ID, "partitions": [{"partitionIndex": 1}]}]
IN_TRANSACTION: Any = [{"name": "orders", "partitions": [0, 1]}]
RESOURCES = [
    {"resourceType": kind, "resourceName": name, "configs": []} for kind, name in ((2, "orders"), (4, "1"), (32, "g"))
]
ACL = {
    "resourceType": 2,
    "resourceName": "orders",
    "resourcePatternType": 3,
    "principal": "User:ann",
    "host": "*",
    "operation": 3,
    "permissionType": 3,
}
ACLS = {"resourceTypeFilter": 2, "patternTypeFilter": 3, "operation": 3, "permissionType": 3}
ADDED = {
    "v3AndBelowTransactionalId": "tx",
    "v3AndBelowTopics": IN_TRANSACTION,
    "transactions": [{"transactionalId": "tx", "topics": IN_TRANSACTION}],
}
BY_RESOURCE = [("orders", TOPIC), ("1", CLUSTER), ("g", GROUP)]
REFUSED: dict[str, tuple[Fields, Any]] = {
    "CreateTopics": ({"topics": NAMED}, [("orders", TOPIC)]),
    "DeleteTopics": ({"topics": NAMED, "topicNames": ["orders"], "timeoutMs": 5000}, [("orders", TOPIC)]),
    "DeleteRecords": ({"topics": NUMBERED}, [("orders", [(1, TOPIC)])]),
    "InitProducerId": ({"transactionalId": "tx"}, TRANSACTION),
    "AddOffsetsToTxn": ({"transactionalId": "tx", "groupId": "g"}, TRANSACTION),
    "EndTxn": ({"transactionalId": "tx"}, TRANSACTION),
    "TxnOffsetCommit": (
        {"transactionalId": "tx", "groupId": "g", "topics": NUMBERED},
        [("orders", [(1, TRANSACTION)])],
    ),
    "CreateAcls": ({"creations": [ACL, ACL]}, [(None, CLUSTER)] * 2),
    "DeleteAcls": ({"filters": [ACLS]}, [(None, CLUSTER)]),
    "AlterConfigs": ({"resources": RESOURCES}, BY_RESOURCE),
    "IncrementalAlterConfigs": ({"resources": RESOURCES}, BY_RESOURCE),
    "CreatePartitions": ({"topics": [{"name": "orders", "count": 3}]}, [("orders", TOPIC)]),
    "CreateDelegationToken": ({}, TOKEN),
    "RenewDelegationToken": ({}, TOKEN),
    "ExpireDelegationToken": ({}, TOKEN),
    "DeleteGroups": ({"groupsNames": ["g", "h"]}, [("g", GROUP), ("h", GROUP)]),
    "AlterPartitionReassignments": ({"topics": []}, CLUSTER),
    "OffsetDelete": ({"groupId": "g", "topics": []}, GROUP),
    "AlterUserScramCredentials": (
        {"deletions": [{"name": "ann"}], "upsertions": [{"name": "bob"}]},
        [("ann", CLUSTER), ("bob", CLUSTER)],
    ),
    "UpdateFeatures": ({}, CLUSTER),
    "UnregisterBroker": ({}, CLUSTER),
    "AddRaftVoter": ({}, CLUSTER),
    "RemoveRaftVoter": ({}, CLUSTER),
    "AlterShareGroupOffsets": ({"groupId": "g", "topics": []}, GROUP),
    "DeleteShareGroupOffsets": ({"groupId": "g", "topics": []}, GROUP),
    "WriteTxnMarkers": (
        {"markers": [{"producerId": 7, "topics": [{"name": "orders", "partitionIndexes": [0]}]}]},
        [(7, [("orders", [(0, CLUSTER)])])],
    ),
    "AlterReplicaLogDirs": (
        {"dirs": [{"path": "/a", "topics": IN_TRANSACTION}, {"path": "/b", "topics": IN_TRANSACTION}]},
        [("orders", [(0, CLUSTER), (1, CLUSTER)])],
    ),
    "ElectLeaders": (
        {"topicPartitions": [{"topic": "orders", "partitions": [0]}]},
        [("orders", [(0, CLUSTER)])],
    ),
}
"""Request bodies, and the answers' errors: one, or one per element with its name or number."""
VERSIONS = {api: version_range(REQUESTS[KEYS[api]].versions) for api in REFUSED}
CASES = [(api, version) for api, known in VERSIONS.items() for version in range(known.first, known.last + 1)]
NAMES = ("name", "topicName", "topic", "resourceName", "groupId", "user", "producerId", "partitionIndex", "partitionId")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    log_dir = tmp_path_factory.mktemp("served")
    write_segment(log_dir / "orders-0", [NewBatch([NewRecord(b"k", b"v", 1)])])
    with serving(log_dir) as running, open_connection(running) as connection:
        yield connection


def errors(answer: Fields) -> Any:
    """Return the errors of an answer in the form of REFUSED."""
    lists = [value for value in answer.values() if isinstance(value, list) and value]
    if not lists:
        return next(answer[name] for name in ("errorCode", "partitionErrorCode") if name in answer)
    return [(next((each[name] for name in NAMES if name in each), None), errors(each)) for each in lists[0]]


@for_each("api, version", CASES)
def test_changes_are_refused_where_they_are_asked_for(client: Connection, api: str, version: int) -> None:
    body, found = REFUSED[api]
    answer = client.ask(KEYS[api], version, body)
    if version >= 6 and api == "TxnOffsetCommit":
        found = [(None, found[0][1])]  # topics are identified by their ids
    assert errors(answer) == found


def test_a_producer_without_transactions_is_refused_by_the_cluster(client: Connection) -> None:
    assert client.ask(KEYS["InitProducerId"], 4, {"transactionalId": None})["errorCode"] == CLUSTER


@pytest.mark.parametrize("version", range(6))
def test_partitions_of_a_transaction_are_refused_one_by_one(client: Connection, version: int) -> None:
    answer = client.ask(KEYS["AddPartitionsToTxn"], version, ADDED)
    if version > 3:  # only brokers send this
        assert (answer["errorCode"], answer["resultsByTransaction"]) == (CLUSTER, [])
        return
    (topic,) = answer["resultsByTopicV3AndBelow"]
    found = {part["partitionIndex"]: part["partitionErrorCode"] for part in topic["resultsByPartition"]}
    assert found == {0: TRANSACTION, 1: TRANSACTION}


def test_quotas_are_refused_for_each_of_their_owners(client: Connection) -> None:
    entity = [{"entityType": "user", "entityName": None}]
    (entry,) = client.ask(KEYS["AlterClientQuotas"], 1, {"entries": [{"entity": entity, "ops": []}]})["entries"]
    assert (entry["errorCode"], entry["entity"]) == (CLUSTER, entity)


def test_what_is_refused_is_not_offered(client: Connection) -> None:
    answer = client.ask(API_VERSIONS, 4, {"clientSoftwareName": "test", "clientSoftwareVersion": "1"})
    assert not {row["apiKey"] for row in answer["apiKeys"]} & {KEYS[api] for api in REFUSED}


def test_no_topic_is_created(client: Connection) -> None:
    client.ask(KEYS["CreateTopics"], 7, {"topics": [{"name": "new", "numPartitions": 1, "replicationFactor": 1}]})
    assert [topic["name"] for topic in client.ask(3, 9, {"topics": None})["topics"]] == ["orders"]
