"""Requests of administration tools: the cluster, its topics page by page, leader epochs, reassignments, ACLs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kseg.formats.messages import ZERO_UUID, Fields
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.serve.running import Running, serving
from tests.serve.test_server import LIST_OFFSETS, Connection, open_connection

OFFSET_FOR_LEADER_EPOCH, DESCRIBE_ACLS, LIST_PARTITION_REASSIGNMENTS = 23, 29, 46
DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 60, 75
RECORDS = [NewRecord(b"k", b"v", 1_700_000_000_000 + number) for number in range(10)]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Topics of two and three partitions; orders-0 had leaders 2, 5 and 7, from offsets 0, 20 and 50 on."""
    epochs = [2, 2, 5, 5, 5, 7, 7, 7, 7, 7]
    batches = [
        NewBatch(RECORDS, base_offset=10 * number, partition_leader_epoch=epoch) for number, epoch in enumerate(epochs)
    ]
    write_segment(tmp_path / "orders-0", batches)
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n3\n2 0\n5 20\n7 50\n")
    for name in ("orders-1", "pay-0", "pay-1", "pay-2"):
        write_segment(tmp_path / name, [NewBatch(RECORDS)])
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=4\n")
    return tmp_path


@pytest.fixture
def running(log_dir: Path) -> Iterator[Running]:
    with serving(log_dir) as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[Connection]:
    with open_connection(running) as connection:
        yield connection


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster_names_the_one_broker(client: Connection, running: Running, version: int) -> None:
    answer = client.ask(DESCRIBE_CLUSTER, version, {"includeClusterAuthorizedOperations": True, "endpointType": 1})
    (broker,) = answer["brokers"]
    assert (broker["brokerId"], broker["host"], broker["port"]) == (4, *running.address)
    assert (answer["clusterId"], answer["controllerId"], answer["errorCode"]) == ("abc", 4, 0)


@pytest.mark.parametrize(("endpoint_type", "error"), [(2, 114), (9, 115)])
def test_a_broker_is_no_controller(client: Connection, endpoint_type: int, error: int) -> None:
    answer = client.ask(DESCRIBE_CLUSTER, 1, {"endpointType": endpoint_type})
    assert (answer["errorCode"], answer["brokers"]) == (error, [])


def list_members(answer: Fields) -> list[tuple[str, list[int]]]:
    return [(topic["name"], [part["partitionIndex"] for part in topic["partitions"]]) for topic in answer["topics"]]


@pytest.mark.parametrize(
    ("asked", "cursor", "limit", "found", "following"),
    [
        ([], None, 2000, [("orders", [0, 1]), ("pay", [0, 1, 2])], None),
        ([], None, 3, [("orders", [0, 1]), ("pay", [0])], ("pay", 1)),
        ([], None, 2, [("orders", [0, 1])], ("pay", 0)),
        ([], None, 0, [("orders", [0])], ("orders", 1)),
        ([], ("pay", 1), 2000, [("pay", [1, 2])], None),
        ([], ("others", 1), 2000, [("pay", [0, 1, 2])], None),
        (["pay", "orders"], ("orders", 1), 2, [("orders", [1]), ("pay", [0])], ("pay", 1)),
        (["pay"], None, 2000, [("pay", [0, 1, 2])], None),
    ],
)
def test_topics_come_page_by_page(
    client: Connection,
    asked: list[str],
    cursor: tuple[str, int] | None,
    limit: int,
    found: list[tuple[str, list[int]]],
    following: tuple[str, int] | None,
) -> None:
    body = {
        "topics": [{"name": name} for name in asked],
        "responsePartitionLimit": limit,
        "cursor": None if cursor is None else {"topicName": cursor[0], "partitionIndex": cursor[1]},
    }
    answer = client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, body)
    assert list_members(answer) == found
    following_cursor = answer["nextCursor"]
    assert (following_cursor and (following_cursor["topicName"], following_cursor["partitionIndex"])) == following


def test_partitions_are_described_with_their_leader_epoch(client: Connection) -> None:
    (orders,) = client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": "orders"}]})["topics"]
    first, second = orders["partitions"]
    assert (first["leaderId"], first["leaderEpoch"], first["isrNodes"]) == (4, 7, [4])
    assert second["leaderEpoch"] == 0  # its last batch's: there is no checkpoint


def test_unknown_topics_are_described_as_such(client: Connection) -> None:
    (topic,) = client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": "new"}]})["topics"]
    assert (topic["errorCode"], topic["topicId"], topic["partitions"]) == (3, ZERO_UUID, [])


def end_of_epoch(client: Connection, epoch: int, current: int = -1, partition: int = 0, version: int = 4) -> Fields:
    part = {"partition": partition, "currentLeaderEpoch": current, "leaderEpoch": epoch}
    body = {"replicaId": -1, "topics": [{"topic": "orders", "partitions": [part]}]}
    (topic,) = client.ask(OFFSET_FOR_LEADER_EPOCH, version, body)["topics"]
    (found,) = topic["partitions"]
    return dict(found)


ENDS = [(7, (7, 100)), (6, (5, 50)), (5, (5, 50)), (3, (2, 20)), (1, (1, 0)), (8, (-1, -1)), (-1, (-1, -1))]


@for_each("version, epoch, end", [(version, *each) for version in range(2, 5) for each in ENDS])
def test_an_epoch_ends_where_the_next_one_begins(
    client: Connection, version: int, epoch: int, end: tuple[int, int]
) -> None:
    found = end_of_epoch(client, epoch, version=version)
    assert (found["errorCode"], found["leaderEpoch"], found["endOffset"]) == (0, *end)


def test_epochs_are_read_from_the_log_without_a_checkpoint(client: Connection, log_dir: Path) -> None:
    (log_dir / "orders-0" / "leader-epoch-checkpoint").unlink()
    found = end_of_epoch(client, 5)
    assert (found["leaderEpoch"], found["endOffset"]) == (5, 50)


def test_epochs_are_read_from_a_log_that_is_newer_than_its_checkpoint(client: Connection, log_dir: Path) -> None:
    (log_dir / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n2 0\n5 20\n")
    assert [end_of_epoch(client, epoch)["endOffset"] for epoch in (2, 5, 7)] == [20, 50, 100]


@pytest.mark.parametrize(("current", "error"), [(7, 0), (6, 74), (8, 75)])
def test_clients_of_another_epoch_are_told(client: Connection, current: int, error: int) -> None:
    assert end_of_epoch(client, 5, current)["errorCode"] == error


def test_epochs_of_what_is_not_here_are_unknown(client: Connection) -> None:
    assert end_of_epoch(client, 5, partition=9)["errorCode"] == 3


def test_list_offsets_tells_leader_epochs(client: Connection) -> None:
    for timestamp, told in ((-1, (100, 7)), (-2, (0, 2))):
        parts = [{"partitionIndex": 0, "timestamp": timestamp}]
        body = {"replicaId": -1, "topics": [{"name": "orders", "partitions": parts}]}
        (topic,) = client.ask(LIST_OFFSETS, 7, body)["topics"]
        assert [(part["offset"], part["leaderEpoch"]) for part in topic["partitions"]] == [told]


def test_nothing_is_being_reassigned(client: Connection) -> None:
    answer = client.ask(LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None})
    assert (answer["errorCode"], answer["topics"]) == (0, [])


@pytest.mark.parametrize("version", range(1, 4))
def test_there_are_no_acls_as_nobody_is_asked_who_may(client: Connection, version: int) -> None:
    assert client.ask(DESCRIBE_ACLS, version, {"resourceTypeFilter": 1, "operation": 1})["errorCode"] == 54
