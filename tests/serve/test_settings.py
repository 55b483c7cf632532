"""Settings of topics and brokers as far as the disks have them; log directories and their sizes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kseg.formats.messages import Fields
from kseg.formats.schemas import message_schema
from tests import golden
from tests.commands.test_plan_move import frame_record
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.run import kseg
from tests.serve.running import Running, serving
from tests.serve.test_server import Connection, open_connection

DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 32, 35
TOPIC, BROKER, LOGGER = 2, 4, 8
OF_TOPIC, OF_BROKER, OF_ALL, STATIC, DEFAULT = 1, 2, 3, 4, 5
BATCH = NewBatch([NewRecord(b"k", b"v", 1_700_000_000_000)])
LOGS = golden.ROOT / "logs"
ROLL = [("log.roll.ms", "7200000", STATIC), ("log.roll.hours", "12", STATIC), ("log.roll.hours", "168", DEFAULT)]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Two topics without metadata; one was compacted. A server.properties is next to the log directory."""
    log_dir = tmp_path / "kafka-logs"
    for name in ("orders-0", "clean-0", "clean-1", "__consumer_offsets-0"):
        write_segment(log_dir / name, [BATCH])
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n1\nclean 1 1\n")
    (log_dir / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=4\n")
    (tmp_path / "server.properties").write_text(
        "node.id=4\nlog.segment.bytes=5000000\nlog.retention.hours=24\nlog.roll.ms=7200000\nlog.roll.hours=12\n"
        "ssl.keystore.password=hunter2\nrsm.config.access.key=hunter3\nnum.partitions=3\n"
    )
    return log_dir


@pytest.fixture
def running(log_dir: Path) -> Iterator[Running]:
    with serving(log_dir, server_properties=log_dir.parent / "server.properties") as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[Connection]:
    with open_connection(running) as connection:
        yield connection


def result(client: Connection, kind: int, name: str, keys: list[str] | None = None, version: int = 4) -> Fields:
    resource = {"resourceType": kind, "resourceName": name, "configurationKeys": keys}
    (found,) = client.ask(DESCRIBE_CONFIGS, version, {"resources": [resource], "includeSynonyms": True})["results"]
    return dict(found)


def setting(client: Connection, kind: int, name: str, key: str) -> tuple[str, int, list[tuple[str, str, int]]]:
    """Return a setting's value, its source, and the synonyms."""
    (found,) = result(client, kind, name, [key])["configs"]
    synonyms = [(each["name"], each["value"], each["source"]) for each in found["synonyms"]]
    return found["value"], found["configSource"], synonyms


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic_has_all_of_kafkas_settings(client: Connection, version: int) -> None:
    configs = result(client, TOPIC, "orders", version=version)["configs"]
    assert len(configs) == 37
    assert all(each["readOnly"] for each in configs)
    (policy,) = (each for each in configs if each["name"] == "cleanup.policy")
    assert policy["value"] == "delete"
    assert version < 3 or policy["configType"] == 7


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("min.insync.replicas", ("1", DEFAULT, [("min.insync.replicas", "1", DEFAULT)])),
        (
            "segment.bytes",
            ("5000000", STATIC, [("log.segment.bytes", "5000000", 4), ("log.segment.bytes", "1073741824", 5)]),
        ),
        ("retention.ms", ("86400000", DEFAULT, [])),
        (
            "segment.ms",
            (
                "7200000",
                STATIC,
                [("log.roll.ms", "7200000", 4), ("log.roll.hours", "12", 4), ("log.roll.hours", "168", 5)],
            ),
        ),
        ("flush.ms", ("9223372036854775807", DEFAULT, [])),
        ("remote.storage.enable", ("false", DEFAULT, [])),
    ],
)
def test_settings_of_the_broker_stand_for_those_of_topics(
    client: Connection, key: str, found: tuple[str, int, list[tuple[str, str, int]]]
) -> None:
    assert setting(client, TOPIC, "orders", key) == found


@pytest.mark.parametrize(
    ("topic", "policy"), [("orders", "delete"), ("clean", "compact"), ("__consumer_offsets", "compact")]
)
def test_a_topic_that_was_compacted_is_no_other_one(client: Connection, topic: str, policy: str) -> None:
    assert setting(client, TOPIC, topic, "cleanup.policy")[0] == policy


def test_it_is_said_that_there_are_no_metadata(client: Connection, running: Running) -> None:
    for _ in range(2):
        result(client, TOPIC, "orders")
    assert running.said[1:] == ["__cluster_metadata isn't here, so clients get Kafka's defaults as settings of topics"]


def test_secrets_of_a_broker_are_hidden(client: Connection) -> None:
    configs = {each["name"]: each for each in result(client, BROKER, "4")["configs"]}
    hidden = {name for name, each in configs.items() if each["isSensitive"]}
    assert hidden == {"ssl.keystore.password", "rsm.config.access.key"}
    assert all(configs[name]["value"] is None for name in hidden)
    assert all(synonym["value"] is None for name in hidden for synonym in configs[name]["synonyms"])
    assert (configs["num.partitions"]["value"], configs["node.id"]["value"]) == ("3", "4")


def test_log_dirs_are_those_that_are_served(client: Connection, log_dir: Path) -> None:
    assert setting(client, BROKER, "4", "log.dirs")[0] == str(log_dir)


def test_a_server_properties_that_is_not_given_is_not_used(log_dir: Path) -> None:
    shutil.copy(log_dir.parent / "server.properties", log_dir)
    with serving(log_dir) as running, open_connection(running) as client:
        assert setting(client, TOPIC, "orders", "segment.bytes")[0] == "1073741824"


def test_a_server_properties_names_the_broker_if_the_directory_does_not(log_dir: Path) -> None:
    (log_dir / "meta.properties").unlink()
    with serving(log_dir, server_properties=log_dir.parent / "server.properties") as running:
        assert running.served.node_id == 4


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """A controller, 1, with metadata, and the brokers 4 and 5, each with a setting of its own."""
    for node in (1, 4, 5):
        write_segment(tmp_path / str(node) / ("orders-0" if node > 1 else "__cluster_metadata-0"), [BATCH])
        (tmp_path / str(node) / "meta.properties").write_text(f"version=1\ncluster.id=abc\nnode.id={node}\n")
        (tmp_path / f"{node}.properties").write_text(f"node.id={node}\n")
    of_broker = {"resourceType": 4, "name": "log.segment.bytes"}
    records = [
        *(frame_record(message_schema("RegisterBrokerRecord"), {"brokerId": broker}) for broker in (4, 5)),
        frame_record(message_schema("TopicRecord"), {"name": "orders", "topicId": "cJFU-m2vQ6uCEEqPGgnDXw"}),
        *(
            frame_record(message_schema("ConfigRecord"), {**of_broker, "resourceName": name, "value": value})
            for name, value in (("", "3000000"), ("4", "4000000"), ("5", "5000000"))
        ),
    ]
    write_segment(tmp_path / "1" / "__cluster_metadata-0", [NewBatch(records)])
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "properties", "node", "size"),
    [
        (("1", "4"), None, 4, "4000000"),
        (("1", "4"), "5.properties", 5, "5000000"),
        (("1", "4", "5"), None, 4, "3000000"),
        (("1", "4", "5"), "5.properties", 5, "5000000"),
        (("1",), None, 1, "3000000"),
    ],
)
def test_the_broker_is_the_one_that_other_commands_take(
    disks: Path, paths: tuple[str, ...], properties: str | None, node: int, size: str
) -> None:
    given = () if properties is None else ("--server-properties", properties)
    ran = kseg(["metadata", "--settings", "-o", "json", *paths, *given], disks)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [row["value"] for row in rows if row.get("name") == "segment.bytes"] == [size]
    static = None if properties is None else disks / properties
    with serving(*(disks / path for path in paths), server_properties=static) as running:
        assert running.served.node_id == node
        with open_connection(running) as client:
            assert setting(client, BROKER, str(node), "log.segment.bytes")[0] == size
            if len(paths) > 1:
                assert setting(client, TOPIC, "orders", "segment.bytes")[0] == size


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [(TOPIC, "new", 3), (BROKER, "7", 42), (BROKER, "x", 42), (LOGGER, "7", 42), (LOGGER, "4", 0), (99, "x", 42)],
)
def test_what_is_not_here_has_no_settings(client: Connection, kind: int, name: str, error: int) -> None:
    found = result(client, kind, name)
    assert (found["errorCode"], found["configs"]) == (error, [])


def test_settings_come_from_the_metadata_log() -> None:
    (metadata,) = (LOGS / "4.3.1").rglob("__cluster_metadata-0")
    with serving(metadata.parent) as running, open_connection(running) as client:
        found = result(client, TOPIC, "__consumer_offsets")
    own = {each["name"]: each["value"] for each in found["configs"] if each["configSource"] == OF_TOPIC}
    assert own == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "index.interval.bytes": "500",
        "internal.segment.bytes": "6000",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.bytes": "1048576",
    }


def test_who_asks_again_and_again_is_answered_once(client: Connection) -> None:
    resources = [{"resourceType": TOPIC, "resourceName": "orders", "configurationKeys": None}] * 5000
    assert len(client.ask(DESCRIBE_CONFIGS, 4, {"resources": resources})["results"]) == 1


def log_dirs(client: Connection, version: int = 5, topics: list[Fields] | None = None) -> list[Fields]:
    return list(client.ask(DESCRIBE_LOG_DIRS, version, {"topics": topics})["results"])


@pytest.mark.parametrize("version", range(1, 6))
def test_log_directories_have_their_partitions_with_their_sizes(
    client: Connection, log_dir: Path, version: int
) -> None:
    (found,) = log_dirs(client, version)
    parts = {(topic["name"], part["partitionIndex"]): part for topic in found["topics"] for part in topic["partitions"]}
    assert (found["logDir"], found["errorCode"]) == (str(log_dir), 0)
    assert {key: part["partitionSize"] for key, part in parts.items()} == dict.fromkeys(
        [("orders", 0), ("clean", 0), ("clean", 1), ("__consumer_offsets", 0)], len(batch_bytes(BATCH))
    )
    usage = shutil.disk_usage(log_dir)
    assert version < 4 or found["totalBytes"] == usage.total


def test_a_log_directory_at_a_relative_path_is_listed_once(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log_dir.parent)
    with serving(Path(log_dir.name)) as running, open_connection(running) as client:
        found = [(each["logDir"], len(each["topics"])) for each in log_dirs(client)]
    assert found == [(str(log_dir), 3)]


def test_only_the_partitions_that_are_asked_for_are_listed(client: Connection) -> None:
    (found,) = log_dirs(client, topics=[{"topic": "clean", "partitions": [1, 9]}, {"topic": "new", "partitions": [0]}])
    assert [(topic["name"], len(topic["partitions"])) for topic in found["topics"]] == [("clean", 1)]


def test_a_log_that_grows_is_larger_when_asked_again(client: Connection, log_dir: Path) -> None:
    with (log_dir / "orders-0" / f"{0:020}.log").open("ab") as log:
        log.write(batch_bytes(BATCH._replace(base_offset=1)))
    (found,) = log_dirs(client, topics=[{"topic": "orders", "partitions": [0]}])
    assert found["topics"][0]["partitions"][0]["partitionSize"] == 2 * len(batch_bytes(BATCH))


def test_a_log_directory_that_has_gone_is_an_error(client: Connection, log_dir: Path) -> None:
    shutil.rmtree(log_dir)
    assert [each["errorCode"] for each in log_dirs(client)] == [56]
