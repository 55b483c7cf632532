"""Groups get a real broker's answers, request by request: errors, generations, epochs, states. Needs Java."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kseg.formats.messages import Fields
from tests.log.real_broker import RELEASE, new_broker
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.serve.running import PATIENCE, Running, serving
from tests.serve.test_server import METADATA, Connection, open_connection

pytestmark = pytest.mark.kafka

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP = 8, 9, 10, 11, 12, 13
SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE = 14, 15, 16, 68, 69
TOPIC, PARTITIONS = "orders", 4


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A broker with a topic, whose groups wait as long for their first members as kseg's."""
    from confluent_kafka.admin import AdminClient, NewTopic

    settings: dict[str, object] = {"group.initial.rebalance.delay.ms": 500, "auto.create.topics.enable": "false"}
    # Assignments are made at once in the same thread, so that answers don't depend on the time of the request.
    settings |= {"group.consumer.assignor.offload.enable": "false"}
    settings |= {f"group.consumer.{name}assignment.interval.ms": 0 for name in ("min.", "max.", "")}
    broker = new_broker(tmp_path_factory, settings, RELEASE)
    with broker.running("groups"):
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
        for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
            made.result(PATIENCE)
        real = Running(("127.0.0.1", broker.port), None)  # type: ignore[arg-type]  nothing of kseg's is served
        with open_connection(real) as client:
            while client.ask(FIND_COORDINATOR, 4, {"coordinatorKeys": ["any"]})["coordinators"][0]["errorCode"]:
                time.sleep(0.2)  # until its topic for groups exists
            while client.ask(OFFSET_FETCH, 9, {"groups": [{"groupId": "any"}]})["groups"][0]["errorCode"]:
                time.sleep(0.2)
        yield real


@pytest.fixture
def served_groups(tmp_path: Path) -> Iterator[Running]:
    for number in range(PARTITIONS):
        write_segment(tmp_path / f"{TOPIC}-{number}", [NewBatch([NewRecord(b"k", b"v")])])
        metadata = "version: 0\ntopic_id: kyhdsJGrQrOXD0nG3u2j8A\n"
        (tmp_path / f"{TOPIC}-{number}" / "partition.metadata").write_text(metadata)
    with serving(tmp_path) as running:
        yield running


class Talk:
    """A conversation about a group: the answers, without the names that each server makes up."""

    def __init__(self, client: Connection, group: str) -> None:
        self.client, self.group, self.heard = client, group, list[Any]()
        (topic,) = client.ask(METADATA, 12, {"topics": [{"name": TOPIC}]})["topics"]
        self.topic_id: str = topic["topicId"]

    def ask(self, api_key: int, version: int, **fields: Any) -> Fields:
        """Send a request, and note the comparable parts of the answer."""
        answer = self.client.ask(api_key, version, {"groupId": self.group, **fields})
        self.heard.append((api_key, version, self._comparable(answer)))
        return answer

    def _comparable(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: "?" if key in MADE_UP and each != "" else self._comparable(each)
                for key, each in value.items()
                if key not in LEFT_OUT
            }
        return [self._comparable(each) for each in value] if isinstance(value, list) else value

    def join(self, version: int, member_id: str = "", **fields: Any) -> Fields:
        protocols = [{"name": "range", "metadata": b"own"}]
        times = {"sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 10_000}
        asked = {**times, "memberId": member_id, "protocolType": "consumer", "protocols": protocols, **fields}
        return self.ask(JOIN_GROUP, version, **asked)

    def commit(self, version: int, **fields: Any) -> Fields:
        part = {"partitionIndex": 0, "committedOffset": 0, "committedMetadata": "noted"}
        topic = {"name": TOPIC, "topicId": self.topic_id, "partitions": [part]}
        return self.ask(OFFSET_COMMIT, version, **{"memberId": "", "topics": [topic], **fields})

    def fetch(self, version: int, **fields: Any) -> Fields:
        topics = [{"name": TOPIC, "topicId": self.topic_id, "partitionIndexes": [0, 3]}]
        asked = {"groupId": self.group, "topics": topics, **fields}
        return self.ask(OFFSET_FETCH, version, **(asked if version < 8 else {"groups": [asked]}))


MADE_UP = {"memberId", "leader", "topicId", "nodeId", "port", "clientHost"}
LEFT_OUT = {"errorMessage", "heartbeatIntervalMs", "authorizedOperations"}


def classic(talk: Talk) -> None:
    """Test joins, refusals, a rebalance, a commit, and the end."""
    talk.ask(FIND_COORDINATOR, 3, key=talk.group)
    talk.ask(DESCRIBE_GROUPS, 6, groups=[talk.group])
    talk.ask(DESCRIBE_GROUPS, 5, groups=[talk.group])
    talk.fetch(9)
    for wrong in (
        {"groupId": ""},
        {"sessionTimeoutMs": 1},
        {"protocols": []},
        {"protocolType": ""},
        {"memberId": "nobody"},
        {"groupInstanceId": "i", "memberId": "nobody"},
    ):
        talk.join(9, **wrong)
    given = talk.join(9)["memberId"]
    joined = talk.join(9, given)
    name = {"memberId": given, "generationId": joined["generationId"]}
    talk.ask(DESCRIBE_GROUPS, 6, groups=[talk.group])
    talk.ask(HEARTBEAT, 4, **name)
    talk.commit(9, memberId=given, generationIdOrMemberEpoch=1)
    known = {"protocolType": "consumer", "protocolName": "range"}
    talk.ask(SYNC_GROUP, 5, **name)
    for wrong in ({"generationId": 7}, {"protocolName": "sticky"}, {"memberId": "nobody"}, {"groupId": ""}):
        talk.ask(SYNC_GROUP, 5, **{**name, **known, **wrong})
    talk.ask(SYNC_GROUP, 5, **name, **known, assignments=[{"memberId": given, "assignment": b"given"}])
    talk.ask(SYNC_GROUP, 5, **name, **known)
    for wrong in ({}, {"generationId": 0}, {"memberId": "nobody"}, {"groupInstanceId": "i"}, {"groupId": "another"}):
        talk.ask(HEARTBEAT, 4, **{**name, **wrong})
    talk.join(9, given, protocols=[{"name": "own", "metadata": b""}])
    talk.join(9, given)
    talk.ask(LIST_GROUPS, 5, statesFilter=["CompletingRebalance"])
    name["generationId"] = 2
    talk.ask(SYNC_GROUP, 5, **name, **known, assignments=[{"memberId": given, "assignment": b"new"}])
    talk.ask(DESCRIBE_GROUPS, 6, groups=[talk.group])
    talk.ask(CONSUMER_DESCRIBE, 1, groupIds=[talk.group])
    talk.ask(CONSUMER_HEARTBEAT, 1, memberId="m", memberEpoch=3)
    for who in ((given, 2), (given, 1), ("nobody", 2), ("", -1), (given, -1)):
        talk.commit(9, memberId=who[0], generationIdOrMemberEpoch=who[1])
    talk.commit(9, memberId=given, generationIdOrMemberEpoch=2, groupInstanceId="i")
    talk.commit(9, memberId=given, generationIdOrMemberEpoch=2, topics=[{"name": "x", "partitions": [{}]}])
    talk.commit(10, memberId=given, generationIdOrMemberEpoch=2)
    talk.commit(10, memberId=given, generationIdOrMemberEpoch=2, topics=[{"topicId": OTHER_ID, "partitions": [{}]}])
    for version in (1, 5, 7, 8, 9, 10):
        talk.fetch(version)
    for version in (2, 7, 8, 9, 10):
        talk.fetch(version, topics=None)
    talk.ask(LEAVE_GROUP, 5, members=[{"memberId": "nobody"}, {"memberId": given}])
    talk.ask(HEARTBEAT, 4, **name)
    talk.ask(DESCRIBE_GROUPS, 6, groups=[talk.group])
    talk.commit(9, memberId=given, generationIdOrMemberEpoch=2)
    talk.commit(9, generationIdOrMemberEpoch=-1)
    talk.ask(LIST_GROUPS, 5, statesFilter=["Stable"])


OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def static(talk: Talk) -> None:
    """Test a static member, its restart, and its former self."""
    first = talk.join(9, groupInstanceId="i")
    name = {"memberId": first["memberId"], "generationId": 1, "groupInstanceId": "i"}
    talk.ask(SYNC_GROUP, 4, **name, assignments=[{"memberId": first["memberId"], "assignment": b"given"}])
    again = talk.join(9, groupInstanceId="i")
    older = talk.join(5, groupInstanceId="i")
    talk.ask(HEARTBEAT, 4, **name)
    talk.commit(9, memberId=first["memberId"], generationIdOrMemberEpoch=1, groupInstanceId="i")
    talk.ask(HEARTBEAT, 4, **{**name, "memberId": again["memberId"]})
    current = {**name, "memberId": older["memberId"]}
    talk.ask(HEARTBEAT, 4, **current)
    talk.ask(SYNC_GROUP, 4, **current)
    talk.ask(DESCRIBE_GROUPS, 6, groups=[talk.group])
    talk.ask(LEAVE_GROUP, 5, members=[{"memberId": first["memberId"], "groupInstanceId": "i"}])
    talk.ask(LEAVE_GROUP, 5, members=[{"memberId": "", "groupInstanceId": "j"}])
    talk.ask(LEAVE_GROUP, 5, members=[{"memberId": "", "groupInstanceId": "i"}])


def consumer(talk: Talk) -> None:
    """Test the consumer protocol: two members, returned partitions, refusals, and the end."""
    first = {"memberEpoch": 0, "rebalanceTimeoutMs": 10_000, "subscribedTopicNames": [TOPIC], "topicPartitions": []}
    for wrong in (
        {"groupId": ""},
        {"memberId": ""},
        {"rebalanceTimeoutMs": -1},
        {"subscribedTopicNames": None},
        {"serverAssignor": "own"},
        {"subscribedTopicRegex": "("},
        {"memberEpoch": -3},
        {"topicPartitions": None},
    ):
        talk.ask(CONSUMER_HEARTBEAT, 1, **{**first, "memberId": "a", **wrong})
    talk.ask(CONSUMER_HEARTBEAT, 1, **first, memberId="a")
    beat = {"subscribedTopicNames": None, "topicPartitions": None, "rebalanceTimeoutMs": -1}
    talk.ask(CONSUMER_HEARTBEAT, 1, **beat, memberId="a", memberEpoch=2)
    talk.ask(CONSUMER_DESCRIBE, 1, groupIds=[talk.group])
    talk.ask(DESCRIBE_GROUPS, 6, groups=[talk.group])
    talk.commit(9, memberId="a", generationIdOrMemberEpoch=2)
    talk.commit(9, memberId="a", generationIdOrMemberEpoch=0)
    talk.commit(9, memberId="b", generationIdOrMemberEpoch=2)
    talk.commit(9, generationIdOrMemberEpoch=-1)
    talk.fetch(9, memberId="a", memberEpoch=2)
    talk.fetch(9, memberId="a", memberEpoch=0)
    talk.fetch(9, memberId="b", memberEpoch=2)
    talk.fetch(9)
    for wrong in ({"memberEpoch": 5}, {"memberId": "b", "memberEpoch": 2}, {"memberEpoch": 2, "instanceId": "i"}):
        talk.ask(CONSUMER_HEARTBEAT, 1, **beat, **{"memberId": "a", **wrong})
    talk.ask(CONSUMER_HEARTBEAT, 1, **first, memberId="b", instanceId="j")
    told = talk.ask(CONSUMER_HEARTBEAT, 1, **beat, memberId="a", memberEpoch=2)
    talk.ask(CONSUMER_HEARTBEAT, 1, **beat, memberId="b", memberEpoch=3, instanceId="j")
    owned = {**beat, "topicPartitions": told["assignment"]["topicPartitions"]}
    talk.ask(CONSUMER_HEARTBEAT, 1, **owned, memberId="a", memberEpoch=2)
    talk.ask(CONSUMER_HEARTBEAT, 1, **beat, memberId="b", memberEpoch=3, instanceId="j")
    talk.ask(CONSUMER_HEARTBEAT, 1, **first, memberId="c", instanceId="j")
    talk.ask(CONSUMER_HEARTBEAT, 1, **beat, memberId="b", memberEpoch=-2, instanceId="j")
    talk.ask(CONSUMER_HEARTBEAT, 1, **first, memberId="c", instanceId="j")
    talk.ask(CONSUMER_HEARTBEAT, 1, **beat, memberId="b", memberEpoch=3, instanceId="j")
    talk.ask(CONSUMER_HEARTBEAT, 1, **beat, memberId="c", memberEpoch=-1, instanceId="j")
    talk.ask(CONSUMER_HEARTBEAT, 1, **owned, memberId="a", memberEpoch=3)
    talk.ask(CONSUMER_HEARTBEAT, 1, **beat, memberId="a", memberEpoch=-1)
    talk.ask(LIST_GROUPS, 5, typesFilter=["consumer"])


@pytest.mark.parametrize("conversation", [classic, static, consumer], ids=lambda each: each.__name__)
def test_answers_are_those_of_a_broker(broker: Running, served_groups: Running, conversation: Any) -> None:
    heard = []
    for running in (broker, served_groups):
        with open_connection(running) as client:
            talk = Talk(client, conversation.__name__)
            conversation(talk)
            heard.append(talk.heard)
    pairs = enumerate(zip(*heard, strict=True))
    differing = [f"{number}: broker {real}\n   kseg {ours}" for number, (real, ours) in pairs if real != ours]
    assert not differing, "\n".join(differing)
