"""A real broker for tests marked `kafka`, started on partitions in its log directory."""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests import golden

if TYPE_CHECKING:
    from confluent_kafka import Message

RELEASE = "4.3.1"
FIRST_WITHOUT_ZOOKEEPER = (3, 3)
PATIENCE = 60
INFO = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"

ServedRecord = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key, value."""


class Broker(NamedTuple):
    """A broker with its classes, files and ports; ZooKeeper's if it needs it.

    patience: seconds that a start may take.
    """

    tools: Any
    kafka: Any
    work: Path
    logs: Path
    port: int
    zookeeper_port: int | None = None
    patience: float = PATIENCE

    @contextmanager
    def running(self, name: str, *, is_killed: bool = False) -> Iterator[Path]:
        """Run the broker; yield the file with its output. At the end it is stopped, or killed."""
        said = self.work / f"{name}.txt"
        with ExitStack() as stack:
            if self.zookeeper_port is not None:
                main = ("org.apache.zookeeper.server.ZooKeeperServerMain", str(self.work / "zookeeper.properties"))
                stack.enter_context(self._process(main, self.work / f"{name}-zookeeper.txt", self.zookeeper_port))
            main = ("kafka.Kafka", str(self.work / "server.properties"))
            stack.enter_context(self._process(main, said, self.port, is_killed=is_killed))
            yield said

    @contextmanager
    def _process(self, main: Sequence[str], said: Path, port: int, *, is_killed: bool = False) -> Iterator[None]:
        """Run a class until the end; the context begins when the port accepts connections."""
        with said.open("wb") as output:
            command = self.kafka.command(*main, options=[INFO])
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            try:
                self.tools.wait_until(lambda: self.tools.is_listening(port), self.patience, f"no {main[0]}", process)
                yield
            finally:
                (process.kill if is_killed else process.terminate)()
                process.wait()


def new_broker(
    tmp_path_factory: pytest.TempPathFactory,
    settings: Mapping[str, object] | None = None,
    release: str = RELEASE,
    *,
    log_dirs: Iterable[Path] = (),
    is_dynamic: bool = False,
) -> Broker:
    """Return a broker with an empty log directory, and settings in addition to those of tools/make_golden.py.

    `log_dirs`: more log directories. `is_dynamic`: its quorum is dynamic (KIP-853).
    """
    sys.path.insert(0, str(golden.ROOT.parent / "tools"))
    import make_golden as tools
    from kafka_classes import KafkaClasses

    work = tmp_path_factory.mktemp("broker")
    port, logs = tools.free_port(), work / "logs"
    properties = work / "server.properties"
    all_settings = {**(settings or {}), "log.dirs": ",".join(map(str, (logs, *log_dirs)))}
    own = "".join(f"{key}={value}\n" for key, value in all_settings.items())
    if tools.store.release_order(release) < FIRST_WITHOUT_ZOOKEEPER:
        artifacts = [*tools.tool_artifacts(release), f"org.slf4j:slf4j-simple:{tools.SLF4J}"]
        zookeeper_port = tools.free_port()
        (work / "zookeeper.properties").write_text(
            f"dataDir={work / 'zookeeper'}\nclientPort={zookeeper_port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n"
        )
        properties.write_text(zookeeper_broker_properties(port, zookeeper_port, logs) + own)
        return Broker(tools, KafkaClasses(artifacts, [], work), work, logs, port, zookeeper_port)
    kafka = tools.kafka_classes(release, work)
    text = tools.server_properties(port, tools.free_port(), logs) + own
    storage = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties)]
    if is_dynamic:
        text = text.replace("controller.quorum.voters=1@", "controller.quorum.bootstrap.servers=")
        storage.append("--standalone")
    properties.write_text(text)
    subprocess.run(kafka.command(*storage, options=[tools.QUIET]), check=True, stdout=subprocess.DEVNULL)
    return Broker(tools, kafka, work, logs, port)


def zookeeper_broker_properties(port: int, zookeeper_port: int, logs: Path) -> str:
    """Return a configuration for one small broker of a release that needs ZooKeeper."""
    settings = {
        "broker.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
        "log.dirs": logs,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def served_records(port: int, topic: str, isolation_level: str = "read_uncommitted") -> list[ServedRecord]:
    """Return the records of a consumer of a topic's only partition; aborted ones too with read_uncommitted."""
    return [
        (message.offset(), message.timestamp()[1], message.key(), message.value())
        for message in served_messages(port, topic, isolation_level)
    ]


def served_messages(port: int, topic: str, isolation_level: str) -> list["Message"]:
    """Return the same as the client's own messages, which have headers too."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "test",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    served: list[Message] = []
    while (message := consumer.poll(PATIENCE)) is not None:
        error = message.error()
        if error is None:
            served.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            break  # others are temporary: the broker has no leader yet
    consumer.close()
    return served


def make_topics(port: int, topics: Iterable[str], settings: Mapping[str, Mapping[str, str]] | None = None) -> None:
    """Create topics of one partition, without retention by time unless their own settings have it."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    own = settings or {}
    wanted = [NewTopic(name, 1, 1, config={"retention.ms": "-1", **own.get(name, {})}) for name in topics]
    made = admin.create_topics(wanted)
    for future in made.values():
        future.result(PATIENCE)


def put_in_place(source: Path, place: Path) -> None:
    """Replace an empty topic's files by a partition's, but keep its id; the broker is stopped."""
    for path in place.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in source.iterdir():
        if path.name != "partition.metadata":
            shutil.copy2(path, place)
