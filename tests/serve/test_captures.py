"""The traffic between clients and kseg equals that with a real broker, frame by frame. Needs Java and Maven.

The same clients read from a broker and from kseg, over copies of the same directory, through a recording proxy. `kseg
protocol` decodes both captures. DIFFERENCES lists the fields that may differ, with reasons.
"""

import asyncio
import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kseg.cluster.cluster import Cluster
from kseg.cluster.settings import read_server_properties
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS
from kseg.log.selection import PartitionChoice
from kseg.serve.cluster import serve_partitions
from kseg.serve.values import ServeSettings
from tests.log.real_broker import Broker, new_broker
from tests.run import kseg
from tests.serve.group_members import (
    ByAiokafka,
    ByKafkaPython,
    ByLibrdkafka,
    ByLibrdkafkaConsumerProtocol,
    Member,
    members,
    poll_until,
)
from tests.serve.reading import by_kafka_python, by_librdkafka
from tests.serve.recording import Recording, recording
from tests.serve.running import PATIENCE, Running, running_server
from tests.serve.test_clients import by_aiokafka
from tests.serve.test_java_clients import LOGGER, RELEASES, WITH_CONSUMER_PROTOCOL, read
from tests.serve.test_tools_kafka import LEFT_OUT, QUESTIONS, fill, in_order
from tools.kafka_classes import KafkaClasses

pytestmark = [pytest.mark.kafka, pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")]

CLIENT = "org.apache.kafka:kafka-clients"
TOPICS = ("clean", "orders", "pay")
SERVED = (*TOPICS, "__consumer_offsets", "__transaction_state")
"""All but the metadata log, which clients of a broker can't read."""
COMMITTED, OPEN = 205, 5
"""Records outside of transactions or in committed ones; records in an open one."""


class Site(NamedTuple):
    """The topics for clients, and Kafka's classes: consumers by release, and tools."""

    running: Running
    java: Mapping[str, KafkaClasses]
    broker: Broker


def with_java(release: str, site: Site) -> None:
    for isolation in ("read_uncommitted", "read_committed"):
        read(site.java[release], site.running.bootstrap, isolation)
    read(site.java[release], site.running.bootstrap, "read_uncommitted", "classic")
    if release in WITH_CONSUMER_PROTOCOL:
        read(site.java[release], site.running.bootstrap, "read_uncommitted", "consumer")


def with_librdkafka(site: Site) -> None:
    for isolation in ("read_uncommitted", "read_committed"):
        by_librdkafka(site.running, **{"isolation.level": isolation})
    as_member(ByLibrdkafka, site, COMMITTED)
    as_member(ByLibrdkafkaConsumerProtocol, site)


def with_kcat(site: Site) -> None:
    for topic in TOPICS:
        line = ["kcat", "-C", "-b", site.running.bootstrap, "-t", topic, "-o", "beginning", "-e", "-q"]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["kcat", "-L", "-b", site.running.bootstrap], check=True, stdout=subprocess.DEVNULL)


def with_aiokafka(site: Site) -> None:
    asyncio.run(by_aiokafka(site.running))
    as_member(ByAiokafka, site, OPEN)


def with_kafka_python(site: Site) -> None:
    by_kafka_python(site.running)
    as_member(ByKafkaPython, site)


def as_member(kind: Callable[..., Member], site: Site, left: int = 0) -> None:
    """Read the records that earlier members have left, commit, and leave."""
    with members(site.running, kind, 1, TOPICS) as (member,):
        poll_until([member], lambda got: bool(member.assigned_partitions()) and len(got) >= left, [])


def with_tools(site: Site) -> None:
    for name, *options in QUESTIONS.values():
        where = ["--bootstrap-server", site.running.bootstrap]
        line = [*options[:1], *where, *options[1:]] if name.endswith("ClusterTool") else [*where, *options]
        command = site.broker.kafka.command(name, *line, options=[site.broker.tools.QUIET])
        subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE * 3)


CLIENTS: dict[str, Callable[[Site], None]] = {
    **{f"Java {release}": partial(with_java, release) for release in RELEASES},
    "librdkafka": with_librdkafka,
    "kcat": with_kcat,
    "aiokafka": with_aiokafka,
    "kafka-python": with_kafka_python,
    "tools": with_tools,
}


class Difference(NamedTuple):
    """A field that may differ: its API, its name, and the reason. "*" is every API."""

    api: str
    field: str
    why: str


DIFFERENCES = [
    *(Difference("*", field, why) for field, why in LEFT_OUT.items()),
    Difference("*", "memberId", "made up by the server"),
    Difference("*", "sessionId", "made up by the server"),
    Difference("*", "currentLeaderEpoch", "kseg's Metadata tells no leader epochs"),
    Difference("*", "committedLeaderEpoch", "kseg's Metadata tells no leader epochs"),
    Difference("*", "lastFetchedEpoch", "kseg's Metadata tells no leader epochs"),
    Difference("*", "leaderEpoch", "kseg's Metadata tells no leader epochs; a broker that starts leads in a new one"),
    Difference("ApiVersions", "finalizedFeatures", "nothing can be changed here, nor upgraded"),
    Difference("ApiVersions", "finalizedFeaturesEpoch", "nothing can be changed here, nor upgraded"),
    Difference("ApiVersions", "supportedFeatures", "nothing can be changed here, nor upgraded"),
    Difference("ApiVersions", "apiKeys", "kseg answers what reads, and ApiVersions of 4.4"),
    Difference("ConsumerGroupHeartbeat", "heartbeatIntervalMs", "kseg wants them more often"),
    Difference("Fetch", "records", "how many come at once; other tests compare them"),
    Difference("Fetch", "lastStableOffset", "kseg looks for it for those who read what is committed"),
    Difference("DescribeLogDirs", "logDir", "a copy of the directory"),
    Difference("DescribeConfigs", "isSensitive", "kseg has no defaults of what is a broker's alone, some of which are"),
]
APIS_THAT_DIFFER = {
    ("OffsetForLeaderEpoch", 4): "asked where Metadata tells leader epochs",
    ("ApiVersions", 4): "where version 5 is refused",
    ("ApiVersions", 5): "which 4.3.1 refuses",
}
QUESTIONS_THAT_DIFFER = {
    '"resourceType": 4': "a broker's own settings, of which kseg knows those that were set, and not all of their types",
}
"""Texts of requests."""


class Captured(NamedTuple):
    """A client's capture as `kseg protocol -o json` prints it: its frames, and the summary."""

    frames: list[dict[str, Any]]
    summary: dict[str, Any]


Captures = dict[str, Captured]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Captures, Captures]:
    """The captures of each client with a broker, and with kseg."""
    work = tmp_path_factory.mktemp("captures")
    java = {
        release: KafkaClasses(
            [f"org.apache.kafka:kafka-clients:{release}", LOGGER], [], tmp_path_factory.mktemp("java")
        )
        for release in RELEASES
    }
    with recording() as to_broker, recording() as to_kseg:
        settings = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}
        settings |= {"advertised.listeners": f"PLAINTEXT://{to_broker.bootstrap}"}
        broker = new_broker(tmp_path_factory, settings)
        to_broker.target = ("127.0.0.1", broker.port)
        with broker.running("filled"):
            fill(to_broker.bootstrap)
            commit(to_broker.bootstrap)
        copy = work / "logs"
        shutil.copytree(broker.logs, copy)
        static = read_server_properties(broker.work / "server.properties")
        served, told = (
            serve_partitions(
                Cluster([copy]), ServeSettings(), lambda _: None, PartitionChoice(names), server_properties=static
            )
            for names in (SERVED, TOPICS)
        )
        with broker.running("read"):
            of_broker = capture_clients(
                Site(Running(("127.0.0.1", to_broker.port), told), java, broker), to_broker, work
            )
        running = Running(("", 0), served)
        with running_server(running, advertised=("127.0.0.1", to_kseg.port)):
            to_kseg.target = running.address
            of_kseg = capture_clients(Site(Running(("127.0.0.1", to_kseg.port), told), java, broker), to_kseg, work)
    return of_broker, of_kseg


def commit(bootstrap: str) -> None:
    """Commit for a group, so that the topic for groups exists."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "filling"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
    consumer.close()


def capture_clients(site: Site, through: Recording, work: Path) -> Captures:
    """Run all clients, in order."""
    found = {}
    through.write_to(work / "before.pcap")
    for name, run in CLIENTS.items():
        run(site)
        through.write_to(work / "client.pcap")
        lines = kseg(["protocol", "client.pcap", "-o", "json"], work).stdout.splitlines()
        *frames, summary = map(json.loads, lines)
        own = [frame for frame in frames if not str(frame.get("clientId")).startswith("broker-")]
        found[name] = Captured(without_internal(own, internal_ids(own)), summary)
    return found


def internal_ids(frames: Any) -> set[str]:
    """Return the ids of internal topics, which grow while a broker has clients."""
    told = [each for each in frames if each["type"] == "response" and each["api"] == "Metadata"]
    topics = [topic for frame in told for topic in frame["body"]["topics"]]
    return {topic["topicId"] for topic in topics if str(topic["name"]).startswith("__") and "topicId" in topic}


def without_internal(value: Any, ids: set[str]) -> Any:
    """Return the same without list elements about internal topics."""
    if isinstance(value, dict):
        return {name: without_internal(inside, ids) for name, inside in value.items()}
    if isinstance(value, list):
        return [without_internal(each, ids) for each in value if not is_internal(each, ids)]
    return value


def is_internal(value: Any, ids: set[str]) -> bool:
    if not isinstance(value, dict):
        return False
    names = (str(value.get(each)) for each in ("name", "topic", "topicName", "resourceName"))
    return value.get("topicId") in ids or any(name.startswith("__") for name in names)


@pytest.mark.parametrize("client", CLIENTS)
def test_all_frames_are_understood(client: str, captures: tuple[Captures, Captures]) -> None:
    for of in captures:
        frames, summary = of[client]
        assert (summary["problemCount"], summary["damageCount"], summary["lost"]) == (0, 0, 0)
        assert len(frames) > 20
        assert not [frame for frame in frames if "unknown" in frame or any(unknown_fields(frame))]


def unknown_fields(value: Any) -> Iterator[str]:
    """Yield names of fields that no schema has, at any depth."""
    if isinstance(value, dict):
        yield from value.keys() & {UNKNOWN_TAGGED_FIELDS}
        yield from value.get("taggedFields", ())
    for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from unknown_fields(inside)


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_ask_the_same(client: str, captures: tuple[Captures, Captures]) -> None:
    of_broker, of_kseg = (requested_versions(of[client]) for of in captures)
    assert (of_broker ^ of_kseg) <= APIS_THAT_DIFFER.keys()


def requested_versions(of: Captured) -> set[tuple[str, int]]:
    """Return the requested APIs and versions."""
    return {(frame["api"], frame["apiVersion"]) for frame in of.frames if frame["type"] == "request"}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_fields_are_set(client: str, captures: tuple[Captures, Captures]) -> None:
    of_broker, of_kseg = (fields_by_api(of[client]) for of in captures)
    for key in (of_broker.keys() & of_kseg.keys()) - APIS_THAT_DIFFER.keys():
        assert of_kseg[key] == of_broker[key], key


def fields_by_api(of: Captured) -> dict[tuple[str, int], set[str]]:
    """Return the fields that any response of an API sets, by API and version."""
    found = defaultdict[tuple[str, int], set[str]](set)
    for frame in of.frames:
        if frame["type"] == "response":
            found[frame["api"], frame["apiVersion"]] |= set(fields_set(comparable(frame)))
    return found


def fields_set(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that aren't empty, zero, or -1."""
    if isinstance(value, dict):
        for name, inside in value.items():
            yield from fields_set(inside, f"{path}.{name}")
    elif isinstance(value, list):
        for inside in value:
            yield from fields_set(inside, f"{path}[]")
    elif value not in (0, -1, None, "", False):
        yield path


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_requests_get_the_same_answers(client: str, captures: tuple[Captures, Captures]) -> None:
    of_broker, of_kseg = (answers(of[client]) for of in captures)
    both = [key for key in of_broker.keys() & of_kseg.keys() if not any(map(key[2].count, QUESTIONS_THAT_DIFFER))]
    assert len(both) > 10
    for key in both:
        if not any(each in of_broker[key] for each in of_kseg[key]):
            assert (key, of_kseg[key][-1]) == (key, of_broker[key][-1])


def answers(of: Captured) -> dict[tuple[str, int, str], list[Any]]:
    """Return the answers by API, version and request; those of fetches by the request for a partition."""
    asked = {frame["frame"]: frame for frame in of.frames if frame["type"] == "request"}
    found = defaultdict[tuple[str, int, str], list[Any]](list)
    for frame in of.frames:
        key = frame["api"], frame["apiVersion"]
        if frame["type"] == "response" and frame["request"] in asked and key not in APIS_THAT_DIFFER:
            pairs = by_partition if frame["api"] == "Fetch" else as_a_whole
            for question, answer in pairs(comparable(asked[frame["request"]]), comparable(frame)):
                found[*key, json.dumps(question)].append(answer)
    return found


def as_a_whole(request: Any, response: Any) -> Iterator[tuple[Any, Any]]:
    yield request, response


def by_partition(request: Any, response: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each requested partition with its response: sessions omit some."""
    offsets = {place: part["fetchOffset"] for place, part in partitions(request["topics"], "partition")}
    for place, part in partitions(response["responses"], "partitionIndex"):
        if place in offsets:
            yield [place, offsets[place], request["isolationLevel"]], part


def partitions(topics: Any, number: str) -> Iterator[tuple[Any, Any]]:
    for topic in topics:
        for part in topic["partitions"]:
            yield (topic.get("topic") or topic["topicId"], part[number]), part


def comparable(frame: Mapping[str, Any]) -> Any:
    """Return the body of a frame without the fields that may differ, its lists sorted by text."""
    left_out = {each.field for each in DIFFERENCES if each.api in ("*", frame["api"])}
    return in_order(frame["body"], left_out)
