"""Kafka's own tools print the same with kseg as with a real broker over the same directories. Needs Java and Maven.

DIFFERENCES lists the allowed differences, with reasons.
"""

import json
import re
import socket
import subprocess
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import pytest

from kseg.formats.messages import Fields
from kseg.protocol.messages import read_response
from tests.log.real_broker import PATIENCE, Broker, new_broker
from tests.protocol.packets import frame_message, request
from tests.serve.running import serving

pytestmark = pytest.mark.kafka

TOOLS = "org.apache.kafka.tools"
CONFIGS = "kafka.admin.ConfigCommand"
OPEN = "tx-open"
RECORDS = ("--topic", "pay", "--partition", "0", "--offset", "earliest")
QUESTIONS: dict[str, tuple[str, ...]] = {
    "topics": (f"{TOOLS}.TopicCommand", "--list"),
    "described topics": (f"{TOOLS}.TopicCommand", "--describe"),
    "a described topic": (f"{TOOLS}.TopicCommand", "--describe", "--topic", "clean"),
    "an unknown topic": (f"{TOOLS}.TopicCommand", "--describe", "--topic", "new"),
    "a topic's settings": (CONFIGS, "--describe", "--entity-type", "topics", "--entity-name", "clean"),
    "all of a topic's settings": (CONFIGS, "--describe", "--all", "--entity-type", "topics", "--entity-name", "clean"),
    "topics' settings": (CONFIGS, "--describe", "--entity-type", "topics"),
    "settings of all brokers": (CONFIGS, "--describe", "--entity-type", "brokers", "--entity-default"),
    "a broker's settings": (CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "1"),
    "ends": (f"{TOOLS}.GetOffsetShell",),
    "beginnings": (f"{TOOLS}.GetOffsetShell", "--time", "-2"),
    "largest times": (f"{TOOLS}.GetOffsetShell", "--time", "-3"),
    "local beginnings": (f"{TOOLS}.GetOffsetShell", "--time", "-4"),
    "tiered ends": (f"{TOOLS}.GetOffsetShell", "--time", "-5", "--topic", "orders"),
    "a time": (f"{TOOLS}.GetOffsetShell", "--time", "1", "--topic", "orders"),
    "log directories": (f"{TOOLS}.LogDirsCommand", "--describe"),
    "transactions": (f"{TOOLS}.TransactionsCommand", "list"),
    "producers": (f"{TOOLS}.TransactionsCommand", "describe-producers", "--topic", "pay", "--partition", "0"),
    "hanging transactions": (f"{TOOLS}.TransactionsCommand", "find-hanging", "--broker-id", "1"),
    "the cluster": (f"{TOOLS}.ClusterTool", "cluster-id"),
    "the brokers": (f"{TOOLS}.ClusterTool", "list-endpoints"),
    "reassignments": (f"{TOOLS}.reassign.ReassignPartitionsCommand", "--list"),
    "acls": (f"{TOOLS}.AclCommand", "--list"),
    "records": (f"{TOOLS}.consumer.ConsoleConsumer", *RECORDS, "--timeout-ms", "4000"),
}
AS_A_GROUP = {"a test of speed": (f"{TOOLS}.ConsumerPerformance", "--topic", "orders", "--num-records", "100")}
"""Commands of tools that commit offsets, which a broker writes: they run after kseg has read its disks."""
METADATA, METADATA_API = "__cluster_metadata", 3


class Difference(NamedTuple):
    """A text that may differ, its replacement for the comparison, and the reason."""

    pattern: str
    instead: str
    why: str


DIFFERENCES = [
    Difference(rf"(?m)^[^{{\n]*{METADATA}.*\n", "", "a broker keeps the metadata log to itself, kseg serves it, too"),
    Difference(r"127\.0\.0\.1( *):?\d{4,5}", "HERE", "the address"),
    Difference(r"(?m)^\d{4}-.*, .*, (.*), .*, (\d+), .*, .*, .*, .*, .*$", r"\1 MB of \2 records", "how long it took"),
    Difference(r"SecurityDisabledException: .*", "SecurityDisabledException", "own words"),
    Difference(r", DEFAULT_CONFIG:log\.cleaner\.threads=1", "", "no defaults of what is a broker's alone"),
    Difference(r"(?:SLF4J|\tat ).*\n", "", "how the tool came there"),
]


LEFT_OUT = {
    "host": "the address",
    "port": "the address",
    "readOnly": "nothing can be changed here",
    "topicAuthorizedOperations": "reading alone is allowed here",
    "clusterAuthorizedOperations": "reading alone is allowed here",
    "totalBytes": "the disk goes on being used",
    "usableBytes": "the disk goes on being used",
    "errorMessage": "own words",
}
"""Fields that may differ, with reasons; also leader epochs in Metadata, which kseg doesn't return."""
PARTS = [{"name": "pay", "partitionIndexes": [0, 1, 7]}, {"name": "new", "partitionIndexes": [0]}]
EPOCHS = [{"partition": 0, "currentLeaderEpoch": -1, "leaderEpoch": epoch} for epoch in (0, 1, 5, -1)]


def offsets_at(timestamp: int, **fields: Any) -> Fields:
    """Return a ListOffsets request; a broker refuses several for one partition."""
    parts = [{"partitionIndex": number, "timestamp": timestamp} for number in (0, 1, 7)]
    return {"replicaId": -1, "topics": [{"name": "pay", "partitions": parts}], **fields}


def fetch_request(isolation: int) -> Fields:
    """Return a Fetch request for missing records."""
    parts = [
        {"partition": number, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
        for number, offset in ((0, 1 << 40), (1, -3), (7, 0))
    ]
    topics = [{"topic": "pay", "partitions": parts}]
    return {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1 << 20, "isolationLevel": isolation, "topics": topics}


RESOURCES = [
    {"resourceType": kind, "resourceName": name, "configurationKeys": None}
    for kind, name in ((2, "clean"), (2, "orders"), (2, "new"), (4, ""), (4, "7"), (8, "7"))
]
REQUESTS: dict[str, tuple[int, range, Fields]] = {
    "Metadata": (METADATA_API, range(1, 14), {"topics": None}),
    "ends": (2, range(1, 12), offsets_at(-1)),
    "committed ends": (2, range(2, 12), offsets_at(-1, isolationLevel=1)),
    "beginnings": (2, range(1, 12), offsets_at(-2)),
    "largest times": (2, range(7, 12), offsets_at(-3)),
    "a time": (2, range(1, 12), offsets_at(1)),
    "no such time": (2, range(1, 12), offsets_at(1 << 60)),
    "OffsetForLeaderEpoch": (23, range(2, 5), {"replicaId": -1, "topics": [{"topic": "pay", "partitions": EPOCHS}]}),
    "Fetch": (1, range(4, 13), fetch_request(0)),
    "Fetch what is committed": (1, range(4, 13), fetch_request(1)),
    "DescribeConfigs": (32, range(1, 5), {"resources": RESOURCES, "includeSynonyms": True}),
    "DescribeLogDirs": (35, range(1, 6), {"topics": None}),
    "ListPartitionReassignments": (46, range(1), {"topics": None}),
    "DescribeCluster": (60, range(3), {"includeClusterAuthorizedOperations": True, "endpointType": 1}),
    "no controllers": (60, range(1, 3), {"endpointType": 2}),
    "DescribeProducers": (61, range(1), {"topics": PARTS}),
    "DescribeTransactions": (65, range(1), {"transactionalIds": [OPEN, "tx-committed", "tx-aborted", "new", ""]}),
    "ListTransactions": (66, range(3), {"stateFilters": ["Ongoing", "Lost"], "producerIdFilters": []}),
    "DescribeTopicPartitions": (75, range(1), {"topics": [{"name": name} for name in ("orders", "new", "pay")]}),
    "the first topics": (75, range(1), {"topics": [{"name": "clean"}, {"name": "pay"}], "responsePartitionLimit": 3}),
}
"""Requests of some versions, whose answers are equal except for LEFT_OUT."""


class Asked(NamedTuple):
    """The tools' output by command, and the answers to single requests."""

    said: dict[str, list[str]]
    answers: Mapping[tuple[str, int], Any]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Asked, Asked]:
    """The output for a broker, and for kseg over the same directories."""
    second = tmp_path_factory.mktemp("disks") / "disk2"
    settings = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}
    broker = new_broker(tmp_path_factory, settings, log_dirs=[second])
    with broker.running("filled"):
        fill(f"127.0.0.1:{broker.port}")
    with broker.running("asked"):
        of_broker = ask_server(broker, broker.port)
    with serving(broker.logs, second, server_properties=broker.work / "server.properties") as running:
        of_kseg = ask_server(broker, running.address[1])
        of_kseg.said.update({name: tool_lines(broker, running.address[1], words) for name, words in AS_A_GROUP.items()})
    with broker.running("read"):
        of_broker.said.update({name: tool_lines(broker, broker.port, words) for name, words in AS_A_GROUP.items()})
    return of_broker, of_kseg


def fill(server: str) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

    admin = AdminClient({"bootstrap.servers": server})
    compacted = {"cleanup.policy": "compact", "segment.bytes": "2097152"}
    topics = [NewTopic("orders", 3, 1), NewTopic("clean", 2, 1, config=compacted), NewTopic("pay", 2, 1)]
    cleaner = ConfigResource("BROKER", "1")
    entry = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
    cleaner.add_incremental_config(entry)
    for done in (*admin.create_topics(topics).values(), *admin.incremental_alter_configs([cleaner]).values()):
        done.result(PATIENCE)
    producer = Producer({"bootstrap.servers": server})
    for number in range(200):
        topic, partition = ("orders", "clean")[number % 2], number % 4 // 2
        producer.produce(topic, b"%d" % number, b"%d" % (number % 9), partition)
    producer.flush(PATIENCE)
    for name in ("tx-committed", "tx-aborted", OPEN):
        producer = Producer({"bootstrap.servers": server, "transactional.id": name, "transaction.timeout.ms": 600_000})
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
        for number in range(5):
            producer.produce("pay", b"x", b"y", number % 2)
        producer.flush(PATIENCE)
        if name != OPEN:
            (producer.commit_transaction if name == "tx-committed" else producer.abort_transaction)(PATIENCE)


def ask_server(broker: Broker, port: int) -> Asked:
    return Asked(
        {name: tool_lines(broker, port, words) for name, words in QUESTIONS.items()},
        {(name, version): answer(port, *REQUESTS[name], version) for name in REQUESTS for version in REQUESTS[name][1]},
    )


def tool_lines(broker: Broker, port: int, words: tuple[str, ...]) -> list[str]:
    """Return the lines of a tool, sorted: some come from hash tables."""
    name, *options = words
    where = ["--bootstrap-server", f"127.0.0.1:{port}"]
    # One of them has its command before its options, another one after.
    line = [*options[:1], *where, *options[1:]] if name == f"{TOOLS}.ClusterTool" else [*where, *options]
    command = broker.kafka.command(name, *line, options=[broker.tools.QUIET])
    ran = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE * 3)
    text = (ran.stdout + ran.stderr).decode()
    for each in DIFFERENCES:
        text = re.sub(each.pattern, each.instead, text)
    return sorted(
        json.dumps(in_order(json.loads(each))) if each[0] == "{" else each for each in text.splitlines() if each
    )


def answer(port: int, api_key: int, _: range, body: Fields, version: int) -> Any:
    """Return the answer to a request, without the fields that may differ."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client, client.makefile("rb") as stream:
        client.sendall(frame_message(request(api_key, version, body)))
        size = int.from_bytes(stream.read(4), "big")
        message = read_response(stream.read(size), api_key, version)
    assert message.body is not None
    return in_order(message.body, LEFT_OUT.keys() | ({"leaderEpoch"} if api_key == METADATA_API else set()))


def in_order(value: Any, left_out: Set[str] = frozenset()) -> Any:
    """Return a value with sorted lists, without the metadata log and some fields."""
    if isinstance(value, dict):
        return {name: in_order(each, left_out) for name, each in value.items() if name not in left_out}
    if isinstance(value, list):
        return sorted((in_order(each, left_out) for each in value if not is_metadata(each)), key=repr)
    return value


def is_metadata(value: Any) -> bool:
    """Return True if it describes the metadata log."""
    return isinstance(value, dict) and METADATA in str(value.get("name") or value.get("partition"))


@pytest.mark.parametrize("question", [*QUESTIONS, *AS_A_GROUP])
def test_tools_say_the_same_as_of_a_broker(both: tuple[Asked, Asked], question: str) -> None:
    of_broker, of_kseg = both
    assert of_kseg.said[question] == of_broker.said[question]
    assert of_broker.said[question] or question == "tiered ends"


@pytest.mark.parametrize(("name", "version"), [(name, version) for name in REQUESTS for version in REQUESTS[name][1]])
def test_answers_are_those_of_a_broker(both: tuple[Asked, Asked], name: str, version: int) -> None:
    of_broker, of_kseg = both
    assert of_kseg.answers[name, version] == of_broker.answers[name, version]
