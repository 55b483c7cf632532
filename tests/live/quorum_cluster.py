"""A real cluster of separate controllers and brokers, for tests marked `kafka`. Needs Java and Maven."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests import golden

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
import make_golden as tools

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
PATIENCE = 300
CONTROLLERS = (3001, 3002, 3003)
BROKERS = (1, 2, 3)
HEAP = {"controller": "-Xmx200m", "broker": "-Xmx280m"}
DIRECTORY_IDS = {number: f"{'A' * 18}{number}" for number in (*CONTROLLERS, 3011, 3012)}


class Node(NamedTuple):
    """A controller or a broker."""

    id: int
    role: str
    port: int
    directory: Path

    @property
    def logs(self) -> Path:
        """Its log directory."""
        return self.directory / "logs"

    @property
    def properties(self) -> Path:
        """The file of its settings."""
        return self.directory / "server.properties"

    @property
    def address(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self.port}"


class QuorumCluster:
    """Three controllers and three brokers, each started and stopped separately.

    nodes: by id. is_dynamic: whether the metadata have the voters (KIP-853). The output of each is in `said.txt`.
    """

    def __init__(self, release: str, work: Path, *, is_dynamic: bool) -> None:
        """Prepare log directories; nothing runs yet."""
        self._work = work
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.is_dynamic = is_dynamic
        (work / "classes").mkdir(parents=True)
        self._kafka = tools.kafka_classes(release, work / "classes")
        self.nodes: dict[int, Node] = {}
        for number in CONTROLLERS:
            self.add(number, "controller")
        for number in BROKERS:
            self.add(number, "broker")
        self.configure(CONTROLLERS)
        for number in (*CONTROLLERS, *BROKERS):
            self.format(number)

    def add(self, number: int, role: str) -> Node:
        """Add a node without settings and directory."""
        directory = self._work / f"node-{number}"
        directory.mkdir()
        self.nodes[number] = Node(number, role, tools.free_port(), directory)
        return self.nodes[number]

    def of_role(self, role: str) -> list[Node]:
        """Return all controllers, or all brokers."""
        return [node for node in self.nodes.values() if node.role == role]

    def configure(self, controllers: Iterable[int]) -> None:
        """Write the settings of all nodes, with these controllers as the quorum."""
        voters = [self.nodes[number] for number in controllers]
        for node in self.nodes.values():
            settings = _settings(node)
            if self.is_dynamic:
                settings["controller.quorum.bootstrap.servers"] = ",".join(voter.address for voter in voters)
            else:
                settings["controller.quorum.voters"] = ",".join(f"{voter.id}@{voter.address}" for voter in voters)
            node.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def format(self, number: int, *, is_first: bool = True) -> None:
        """Format a node's log directory, as one of the first voters or as a later node."""
        node = self.nodes[number]
        words = ["format", "-t", CLUSTER_ID, "-c", str(node.properties)]
        if self.is_dynamic and node.role == "controller" and is_first:
            voters = (f"{each}@{self.nodes[each].address}:{DIRECTORY_IDS[each]}" for each in CONTROLLERS)
            words += ["--initial-controllers", ",".join(voters)]
        elif self.is_dynamic:
            words += ["--no-initial-controllers"]
        self.run("kafka.tools.StorageTool", *words)

    def run(self, main_class: str, *arguments: str) -> str:
        """Run one of Kafka's tools; return its output."""
        command = self._kafka.command(main_class, *arguments, options=[tools.QUIET])
        ran = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
        assert ran.returncode == 0, (ran.stdout + ran.stderr).decode()[-3000:]
        return ran.stdout.decode()

    def start(self, *numbers: int) -> None:
        """Start nodes, and wait until they listen."""
        for number in numbers:
            self._launch(number)
        for number in numbers:
            port, process = self.nodes[number].port, self._running[number]
            tools.wait_until(lambda port=port: tools.is_listening(port), PATIENCE, f"node {number} is down", process)

    def start_until(self, number: int, condition: Callable[[], bool]) -> None:
        """Start a node, and kill it once a condition is true, whether it is up or not."""
        self._launch(number)
        tools.wait_until(condition, PATIENCE, f"node {number} doesn't come so far", self._running[number])
        self.kill(number)

    def _launch(self, number: int) -> None:
        node = self.nodes[number]
        options = [tools.WARNINGS, HEAP[node.role]]
        with (node.directory / "said.txt").open("ab") as said:
            command = self._kafka.command("kafka.Kafka", str(node.properties), options=options)
            self._running[number] = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)

    def kill(self, *numbers: int) -> None:
        """Kill nodes, as a power cut does."""
        for number in numbers:
            process = self._running.pop(number)
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Stop all nodes."""
        self.kill(*self._running)

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(node.address for node in self.of_role("broker"))


def _settings(node: Node) -> dict[str, object]:
    listener = "CONTROLLER" if node.role == "controller" else "PLAINTEXT"
    own: dict[str, object] = {
        "process.roles": node.role,
        "node.id": node.id,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener}://{node.address}",
        "log.dirs": node.logs,
        "metadata.log.max.record.bytes.between.snapshots": 7000,
    }
    if node.role == "broker":
        own |= {
            "advertised.listeners": f"PLAINTEXT://{node.address}",
            "offsets.topic.num.partitions": 3,
            "group.initial.rebalance.delay.ms": 0,
            "min.insync.replicas": 2,
        }
    return own
