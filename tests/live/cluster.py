"""A real cluster of three brokers with two log directories each, for tests marked `kafka`. Needs Java and Maven.

The brokers are controllers too, or the controller is a process of its own, so that any broker may be down.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests import golden

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
import make_golden as tools
from kafka_classes import KafkaClasses

CLIENT_RELEASE = "4.3.1"
"""The release of tools and clients: newer ones may not be released yet."""
NODES = (1, 2, 3)
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
PATIENCE = 90
INTERNAL_TOPICS = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


class Node(NamedTuple):
    """A process of the cluster. port: its port once it is up."""

    id: int
    roles: tuple[str, ...]
    port: int
    controller_port: int
    log_dirs: tuple[Path, Path]
    properties: Path


class Cluster:
    """Three brokers, started and stopped one by one.

    nodes: by id. The output of each is in `said.txt` next to its log directories.
    """

    def __init__(
        self, release: str, work: Path, settings: dict[str, object], controllers: tuple[int, ...] = NODES
    ) -> None:
        """Prepare empty log directories of a release's brokers; nothing runs yet.

        controllers: ids of the voters; voters that aren't brokers are processes of their own.
        """
        self._work = work
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        brokers, clients = work / "brokers", work / "clients"
        brokers.mkdir()
        clients.mkdir()
        self._brokers = tools.kafka_classes(release, brokers)
        artifacts = tools.tool_artifacts(CLIENT_RELEASE)
        artifacts += [f"org.apache.kafka:kafka-streams:{CLIENT_RELEASE}", f"org.slf4j:slf4j-simple:{tools.SLF4J}"]
        self._clients = KafkaClasses(artifacts, [], clients)
        source = Path(__file__).with_name("Workload.java")
        compiled = ["javac", "-nowarn", "-cp", f"{clients / 'jars'}/*", "-d", str(clients / "classes"), str(source)]
        subprocess.run(compiled, check=True, stderr=subprocess.DEVNULL)
        self.nodes = {number: self._prepare(number, controllers) for number in sorted({*NODES, *controllers})}
        voters = ",".join(f"{number}@127.0.0.1:{self.nodes[number].controller_port}" for number in controllers)
        for node in self.nodes.values():
            _write_properties(node, voters, settings)
            storage = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(node.properties))
            formatted = self._brokers.command(*storage, options=[tools.QUIET])
            subprocess.run(formatted, check=True, stdout=subprocess.DEVNULL)

    def _prepare(self, number: int, controllers: tuple[int, ...]) -> Node:
        directory = self._work / f"node-{number}"
        directory.mkdir()
        log_dirs = directory / "disk-1", directory / "disk-2"
        roles = ("broker",) * (number in NODES) + ("controller",) * (number in controllers)
        controller_port = tools.free_port()
        port = tools.free_port() if number in NODES else controller_port
        return Node(number, roles, port, controller_port, log_dirs, directory / "server.properties")

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"127.0.0.1:{self.nodes[number].port}" for number in NODES)

    def run(self, main_class: str, *arguments: str) -> str:
        """Run one of Kafka's tools, or the workload, to its end; return its output."""
        command = self._clients.command(main_class, *arguments, options=[tools.QUIET])
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def start(self, *numbers: int) -> None:
        """Start brokers, and wait for them."""
        for number in numbers:
            node = self.nodes[number]
            with (self._work / f"node-{number}" / "said.txt").open("ab") as said:
                command = self._brokers.command("kafka.Kafka", str(node.properties), options=[tools.WARNINGS])
                self._running[number] = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        for number in numbers:
            port, process = self.nodes[number].port, self._running[number]
            tools.wait_until(lambda port=port: tools.is_listening(port), PATIENCE, f"no broker {number}", process)

    def kill(self, number: int) -> None:
        """Kill a broker, as a power cut does."""
        process = self._running.pop(number)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Stop all brokers cleanly, in order."""
        for process in self._running.values():
            process.terminate()
            process.wait()
        self._running.clear()

    @contextmanager
    def working(self) -> Iterator[subprocess.Popen[str]]:
        """Run the workload's members and open transactions until the context ends."""
        command = self._clients.command("Workload", self.bootstrap, "live", options=[tools.QUIET])
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                yield process
            finally:
                process.kill()


def _listeners(node: Node) -> dict[str, object]:
    clients, controllers = f"PLAINTEXT://127.0.0.1:{node.port}", f"CONTROLLER://127.0.0.1:{node.controller_port}"
    if "broker" not in node.roles:
        return {"listeners": controllers}
    every = f"{clients},{controllers}" if "controller" in node.roles else clients
    return {"listeners": every, "advertised.listeners": clients}


def _write_properties(node: Node, voters: str, own: dict[str, object]) -> None:
    settings: dict[str, object] = {
        "process.roles": ",".join(node.roles),
        "node.id": node.id,
        "controller.listener.names": "CONTROLLER",
        **_listeners(node),
        "controller.quorum.voters": voters,
        "log.dirs": ",".join(map(str, node.log_dirs)),
        **{f"{topic}.num.partitions": 3 for topic in INTERNAL_TOPICS},
        "controlled.shutdown.enable": "false",  # the last brokers have no quorum to ask
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.backoff.ms": 500,
        "log.initial.task.delay.ms": 500,
        "log.segment.delete.delay.ms": 200,
        "log.retention.check.interval.ms": 500,
        "log.flush.start.offset.checkpoint.interval.ms": 500,
        "metadata.log.max.record.bytes.between.snapshots": 7000,
        **own,
    }
    node.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
