"""The brokers of a running cluster: found from addresses, asked again until they answer."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kseg.client.connection import (
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    Api,
    Connection,
    ConnectionLostError,
)
from kseg.client.security import PLAINTEXT, ClientSecurity
from kseg.errors import ClusterError
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.system.addresses import Address

Place = tuple[str, int]
"""A partition: topic and number."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two attempts; each pause is twice the one before."""
PATIENCE, FIRST_PATIENCE = 120.0, 10.0
"""Seconds after which attempts without progress end; and before the first answer, since the address may be wrong."""
QUIET_SECONDS = 3.0
"""Seconds after which a note has the reason for a wait."""
Tell = Callable[[str], None]
"""Takes a note for users."""
PASSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Errors that end by themselves: the cluster elects leaders, loads coordinators, or creates topics."""
LATEST = -1
"""The time that stands for the log end offset."""


class BrokerError(ClusterError):
    """An error that a broker answered. A passing one is raised only after attempts.

    problem: the message without the next step.
    """

    def __init__(self, subject: str, code: int, detail: str | None = None) -> None:
        name = ErrorCode(code).name if code in ErrorCode.__members__.values() else f"error {code}"
        problem = f"{subject}: the broker answered {name}{f': {detail}' if detail else ''}"
        step = "; check the brokers, then run the command again" if code in PASSING else ""
        super().__init__(f"{problem}{step}")
        self.problem, self.code = problem, code


class TargetTopic(NamedTuple):
    """A topic of the cluster: each partition's leader, -1 without one."""

    name: str
    leaders: Mapping[int, int]


def _silent(_: str) -> None:
    """Tell users nothing."""


@dataclass
class Attempt:
    """An attempt; the caller writes down why it failed. problem: a clause without a next step."""

    problem: str = ""


def attempts(seconds: float = PATIENCE, tell: Tell = _silent) -> Iterator[Attempt]:
    """Yield for each attempt, with growing pauses between them, until some seconds have passed.

    tell: gets the problem once, if it lasts.
    """
    started, pause, is_told = time.monotonic(), FIRST_PAUSE, False
    while True:
        attempt = Attempt()
        yield attempt
        passed = time.monotonic() - started
        if passed > seconds:
            return
        if attempt.problem and passed >= QUIET_SECONDS and not is_told:
            tell(f"{attempt.problem}; kseg tries for another {seconds - passed:.0f} seconds")
            is_told = True
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


class Brokers:
    """A cluster's brokers; each is connected when it is needed first. A context manager."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        patience: float = PATIENCE,
        security: ClientSecurity = PLAINTEXT,
        first_patience: float = FIRST_PATIENCE,
        tell: Tell = _silent,
    ) -> None:
        """Take the first addresses.

        patience: seconds after which attempts end; first_patience: before any answer. tell: gets reasons of long waits.
        """
        self.tell = tell
        self._bootstrap, self._later_patience, self._security = tuple(bootstrap), patience, security
        self._first_patience = min(first_patience, patience)
        self._addresses: dict[int, Address] = {}
        self._connections: dict[Address, Connection] = {}
        self._controller: int | None = None
        self.cluster_id: str | None = None

    def __enter__(self) -> "Brokers":
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._connections.values():
            each.close()

    def attempts(self) -> Iterator[Attempt]:
        """Yield for each attempt, for a shorter time if no broker was ever reached."""
        return attempts(self._later_patience if self._addresses else self._first_patience, self.tell)

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(self._addresses)

    def connection(self, node: int | None = None) -> Connection:
        """Return the connection to a broker; None: to any. Raises ClusterError if none can be made."""
        if node is not None and node not in self._addresses:
            raise ConnectionLostError(f"broker {node} isn't part of the cluster now")
        addresses = [self._addresses[node]] if node is not None else [*self._addresses.values(), *self._bootstrap]
        failure: ConnectionLostError | None = None
        for address in addresses:
            try:
                return self._connections.get(address) or self._connect(address)
            except ConnectionLostError as error:
                failure = error
        assert failure is not None
        raise failure

    def open(self, node: int) -> Connection:
        """Return a new connection to a broker, for requests that don't wait for each other. Raises ClusterError."""
        if node not in self._addresses:
            raise ConnectionLostError(f"broker {node} isn't part of the cluster now")
        return Connection.open(self._addresses[node], self._security)

    def _connect(self, address: Address) -> Connection:
        connection = self._connections[address] = Connection.open(address, self._security)
        return connection

    def drop(self, connection: Connection) -> None:
        """Forget a connection that failed."""
        connection.close()
        self._connections = {address: each for address, each in self._connections.items() if each is not connection}

    def ask(self, api: Api, body: Fields, node: int | None = None) -> Fields:
        """Return a broker's answer, after more attempts if the connection fails. Raises ClusterError."""
        failure: ConnectionLostError | None = None
        for attempt in self.attempts():
            try:
                return self._ask_once(api, body, node)
            except ConnectionLostError as error:
                failure, attempt.problem = error, error.problem
                if self._addresses:
                    self._refresh_quietly()
        assert failure is not None
        raise failure

    def _ask_once(self, api: Api, body: Fields, node: int | None) -> Fields:
        connection = self.connection(node)
        try:
            return connection.ask(api, body)
        except ConnectionLostError:
            self.drop(connection)
            raise

    def _refresh_quietly(self) -> None:
        """Read the brokers' addresses again, if any broker answers."""
        try:
            self._take(self._ask_once(METADATA, {"topics": [], "allowAutoTopicCreation": False}, None))
        except ConnectionLostError:
            return

    def _take(self, answer: Fields) -> None:
        self._addresses = {each["nodeId"]: (each["host"], each["port"]) for each in answer["brokers"]}
        self.cluster_id, self._controller = answer.get("clusterId"), answer["controllerId"]

    def ask_controller(self, api: Api, body: Fields) -> Fields:
        """Return the answer of the controller, or of a broker that passes requests on to it. Raises ClusterError."""
        answer: Fields = {}
        for attempt in self.attempts():
            self._take(self.ask(METADATA, {"topics": [], "allowAutoTopicCreation": False}))
            answer = self.ask(api, body, self._controller)
            if ErrorCode.NOT_CONTROLLER not in error_codes(answer):
                return answer
            attempt.problem = "the cluster has no controller"
        return answer

    def topics(self, names: Collection[str] | None = None) -> dict[str, TargetTopic]:
        """Return the existing topics among some, or all. Raises ClusterError."""
        asked = None if names is None else [{"name": name} for name in names]
        answer = self.ask(METADATA, {"topics": asked, "allowAutoTopicCreation": False})
        self._take(answer)
        found = {}
        for topic in answer["topics"]:
            if topic["errorCode"] in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE):
                continue
            if topic["errorCode"]:
                raise BrokerError(f"topic {topic['name']}", topic["errorCode"])
            leaders = {each["partitionIndex"]: each["leaderId"] for each in topic["partitions"]}
            found[topic["name"]] = TargetTopic(topic["name"], leaders)
        return found

    def leaders(self, places: Collection[Place]) -> dict[Place, int]:
        """Return the leaders of partitions, after a wait until all have one. Raises ClusterError."""
        missing: list[Place] = []
        for attempt in self.attempts():
            topics = self.topics({topic for topic, _ in places})
            found = {
                (topic, number): topics[topic].leaders.get(number, -1) if topic in topics else -1
                for topic, number in places
            }
            missing = [place for place, leader in found.items() if leader < 0]
            if not missing:
                return found
            topic, number = missing[0]
            attempt.problem = f"{topic}-{number} has no leader"
        raise ClusterError(f"{attempt.problem}; start its brokers, then run the command again")

    def end_offsets(self, places: Collection[Place]) -> dict[Place, int]:
        """Return the log end offsets of partitions, as consumers see them. Raises ClusterError."""
        found: dict[Place, int] = {}
        code = 0
        for attempt in self.attempts():
            by_leader: dict[int, list[Place]] = {}
            left = [place for place in places if place not in found]
            for place, leader in self.leaders(left).items():
                by_leader.setdefault(leader, []).append(place)
            for leader, own in by_leader.items():
                for place, offset, code in self._list_offsets(leader, own):
                    if not code:
                        found[place] = offset
                    elif code not in PASSING:
                        raise BrokerError(f"{place[0]}-{place[1]}", code)
            if len(found) == len(places):
                return found
            topic, number = next(place for place in places if place not in found)
            failure = BrokerError(f"{topic}-{number}", code)
            attempt.problem = failure.problem
        raise failure

    def _list_offsets(self, leader: int, places: Sequence[Place]) -> Iterator[tuple[Place, int, int]]:
        topics: dict[str, list[Fields]] = {}
        for topic, number in places:
            asked = {"partitionIndex": number, "currentLeaderEpoch": -1, "timestamp": LATEST}
            topics.setdefault(topic, []).append(asked)
        body = {
            "replicaId": -1,
            "isolationLevel": 0,
            "topics": [{"name": name, "partitions": own} for name, own in topics.items()],
        }
        for topic in self.ask(LIST_OFFSETS, body, leader)["topics"]:
            for each in topic["partitions"]:
                yield (topic["name"], each["partitionIndex"]), each["offset"], each["errorCode"]

    def ask_coordinator(self, group: str, api: Api, body: Fields) -> Fields:
        """Return the answer of a group's coordinator. Raises ClusterError.

        Answers with a passing error, of the request or of any partition in it, are asked for again.
        """
        answer: Fields = {}
        for attempt in self.attempts():
            attempt.problem = f"group {group} has no coordinator"
            node = self._coordinator(group)
            if node is None:
                continue
            answer = self.ask(api, body, node)
            if not PASSING_OF_GROUPS.intersection(error_codes(answer)):
                return answer
        if not answer:
            raise ClusterError(f"{attempt.problem}; check __consumer_offsets of the cluster")
        return answer

    def _coordinator(self, group: str) -> int | None:
        answer = self.ask(FIND_COORDINATOR, {"key": group, "keyType": 0})
        if answer["errorCode"] in PASSING:
            return None
        if answer["errorCode"]:
            raise BrokerError(f"group {group}", answer["errorCode"])
        self._addresses.setdefault(answer["nodeId"], (answer["host"], answer["port"]))
        return int(answer["nodeId"])


PASSING_OF_GROUPS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def error_codes(answer: Fields) -> Iterator[int]:
    """Yield all error codes of an answer."""
    for name, value in answer.items():
        if name == "errorCode":
            yield value
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, dict):
                    yield from error_codes(each)
