"""The client of running brokers: versions, lost connections, leaders."""

import re
import socket
from collections.abc import Iterator
from threading import Thread

import pytest

from kseg.client.brokers import BrokerError, Brokers, error_codes
from kseg.client.connection import (
    API_VERSIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    Connection,
    ConnectionLostError,
)
from kseg.errors import ClusterError
from tests.restore.fake_broker import NODE, FakeBroker, FakeLog


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker().running() as running:
        running.logs["t"] = [FakeLog(), FakeLog()]
        yield running


def test_the_newest_common_version_is_sent(broker: FakeBroker) -> None:
    broker.versions[PRODUCE.key] = 5
    del broker.versions[LIST_GROUPS.key]
    connection = Connection.open(broker.address)
    assert connection.version_of(PRODUCE) == 5
    assert connection.version_of(METADATA) == METADATA.newest
    assert not connection.knows(LIST_GROUPS)
    with pytest.raises(ClusterError, match="has no ListGroups that kseg can send"):
        connection.version_of(LIST_GROUPS)
    connection.close()


@pytest.mark.parametrize("api", [API_VERSIONS, METADATA, LIST_OFFSETS])
def test_a_lost_connection_is_made_again(broker: FakeBroker, api: tuple[int, int]) -> None:
    broker.unanswered.add(api[0])
    broker.logs["t"][1].end = 9
    with Brokers([broker.address], patience=5) as brokers:
        assert brokers.end_offsets([("t", 0), ("t", 1)]) == {("t", 0): 0, ("t", 1): 9}
        assert brokers.ids == (NODE,)


def test_leaders_are_awaited(broker: FakeBroker) -> None:
    broker.elections = 2
    with Brokers([broker.address], patience=5) as brokers:
        assert brokers.leaders([("t", 1)]) == {("t", 1): NODE}


def test_a_topic_that_does_not_come_has_no_leader(broker: FakeBroker) -> None:
    with Brokers([broker.address], patience=0) as brokers, pytest.raises(ClusterError, match="nope-0 has no leader"):
        brokers.leaders([("nope", 0)])


def test_an_address_without_a_broker_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()[:2]
    with Brokers([address], patience=0) as brokers, pytest.raises(ConnectionLostError, match=f"{address[1]} can't be"):
        brokers.topics()


class Clock:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr("kseg.client.brokers.time", own)
    return own


def test_a_wrong_address_is_told_after_seconds_and_ends_soon(clock: Clock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()[:2]
    told: list[tuple[float, str]] = []
    with (
        Brokers([address], tell=lambda text: told.append((clock.now, text))) as brokers,
        pytest.raises(ConnectionLostError),
    ):
        brokers.topics()
    ((when, text),) = told
    assert re.fullmatch(rf"broker 127.0.0.1:{address[1]} can't be .*; kseg tries for another [67] seconds", text)
    assert 3 <= when < 5
    assert clock.now < 13


def test_a_broker_that_was_reached_is_worth_waiting_for(broker: FakeBroker, clock: Clock) -> None:
    told: list[str] = []
    with Brokers([broker.address], tell=told.append) as brokers:
        brokers.topics()
        broker.elections = 20
        assert brokers.leaders([("t", 1)]) == {("t", 1): NODE}
    (text,) = told
    assert re.fullmatch(r"t-1 has no leader; kseg tries for another 11\d seconds", text)
    assert clock.now > 30


def test_another_service_is_recognized() -> None:
    def answer(server: socket.socket) -> None:
        client, _ = server.accept()
        with client:
            client.recv(1000)
            client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=answer, args=(server,), daemon=True).start()
        with pytest.raises(ClusterError, match=r"isn't a Kafka broker: .*; specify the address of a broker's listener"):
            Connection.open(server.getsockname()[:2])


def test_errors_have_kafkas_names() -> None:
    assert str(BrokerError("topic t", 17)) == "topic t: the broker answered INVALID_TOPIC_EXCEPTION"
    assert str(BrokerError("topic t", 9999, "why")) == "topic t: the broker answered error 9999: why"


def test_errors_are_found_at_any_depth() -> None:
    answer = {"errorCode": 0, "topics": [{"partitions": [{"errorCode": 3}, {"errorCode": 12}]}], "members": [b""]}
    assert [*error_codes(answer)] == [0, 3, 12]
