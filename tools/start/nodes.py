"""Processes whose starts are measured: a combined node, or a broker and its controller or ZooKeeper."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import make_golden as tools
from kafka_classes import KafkaClasses
from start import base
from start.leftovers import second_directory
from start.served import Reader

from tests.log.real_broker import FIRST_WITHOUT_ZOOKEEPER, INFO, zookeeper_broker_properties

USER, GROUP_ID = 65534, 65534
"""User nobody, which can't read root's files."""
START_SECONDS = 20
ROLES = ("combined", "broker", "controller")
HALVES = {"combined": (), "broker": ("controller",), "controller": ("broker",)}
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
BROKER_ID, CONTROLLER_ID = 1, 2
BROKER, ZOOKEEPER = "kafka.Kafka", "org.apache.zookeeper.server.ZooKeeperServerMain"


class AsNobody(NamedTuple):
    """Kafka's classes, run by nobody if the tool runs as root."""

    kafka: KafkaClasses

    def command(self, main_class: str, *arguments: str, options: Iterable[str] = ()) -> list[str]:
        """Return the command line that runs one of the classes."""
        user = ["setpriv", f"--reuid={USER}", f"--regid={GROUP_ID}", "--clear-groups"] if is_root() else []
        return [*user, *self.kafka.command(main_class, *arguments, options=options)]

    def start_command(self, process: "Process", shared: Path) -> list[str]:
        """Return the command line that runs a process, in half the time after one has stopped cleanly.

        shared: a file for classes as Java has loaded them. Java archives them only if all are in jars.
        """
        option = "SharedArchiveFile" if shared.exists() else "ArchiveClassesAtExit"
        command = self.command(process.main, str(process.properties), options=[INFO, f"-XX:{option}={shared}"])
        class_path = command.index("-cp") + 1
        _, _, command[class_path] = command[class_path].partition(os.pathsep)
        return command


class Process(NamedTuple):
    """A Java process: its class, its configuration, its log directory, and the port that shows it is up."""

    role: str
    main: str
    properties: Path
    disk: Path
    port: int


class Node(NamedTuple):
    """The process whose disk gets faults, which is the first, and the processes that it needs.

    shared: a directory that processes of all nodes share. port: of clients.
    """

    kafka: AsNobody
    reader: Reader
    release: str
    work: Path
    shared: Path
    port: int
    processes: tuple[Process, ...]

    @property
    def role(self) -> str:
        """Role of the process whose disk gets faults."""
        return self.processes[0].role

    @property
    def disk(self) -> Path:
        """Log directory that gets faults."""
        return self.processes[0].disk

    def output(self, name: str, process: Process) -> Path:
        """Return the file with a process's output."""
        return self.work / f"{name}-{process.role}.txt"

    def is_listening(self) -> bool:
        """Return True if all processes accept connections."""
        return all(tools.is_listening(process.port) for process in self.processes)

    def format(self) -> None:
        """Format the log directories of a new cluster."""
        for process in self.processes:
            process.disk.mkdir()
            if process.main == BROKER and is_kraft(self.release):
                storage = ("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(process.properties))
                command = self.kafka.kafka.command(*storage, options=[tools.QUIET])
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            give_away(process.disk)

    @contextmanager
    def running(self, name: str, *, is_killed: bool = False) -> Iterator[None]:
        """Start all processes, and wait for their ports; at the end they are stopped cleanly, or killed."""
        running: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for process in reversed(self.processes):
                offer_directories(process)
                running[process.role] = self._start(name, process)
            self._wait(running)
            yield
        finally:
            for _, child in sorted(running.items()):  # a broker needs the other process for a clean stop
                (child.kill if is_killed else child.terminate)()
                child.wait()

    def _start(self, name: str, process: Process) -> subprocess.Popen[bytes]:
        command = self.kafka.start_command(process, self.shared / f"{process.role}.jsa")
        with self.output(name, process).open("wb") as output:
            return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def _wait(self, running: Mapping[str, subprocess.Popen[bytes]]) -> None:
        def is_decided() -> bool:
            return self.is_listening() or any(child.poll() is not None for child in running.values())

        tools.wait_until(is_decided, START_SECONDS, "no open port")
        if not self.is_listening():
            raise SystemExit("start_matrix: a process has ended")


def node_for(release: str, role: str, work: Path) -> Node:
    """Return a node of a release with empty disks."""
    work.chmod(0o755)
    artifacts = [*tools.tool_artifacts(release), f"org.slf4j:slf4j-simple:{tools.SLF4J}"]
    kafka = AsNobody(KafkaClasses(artifacts, ["ReadDamaged"], work))
    shared = work / "shared"
    shared.mkdir()
    give_away(shared)
    return new_node(kafka, release, role, work, shared)


def node_beside(node: Node, name: str) -> Node:
    """Return a node of the same classes, which can run at the same time as the other."""
    work = node.work / name
    work.mkdir(mode=0o755)
    return new_node(node.kafka, node.release, node.role, work, node.shared)


def new_node(kafka: AsNobody, release: str, role: str, work: Path, shared: Path) -> Node:
    """Return a node with ports and directories of its own."""
    port, other_port = tools.free_port(), tools.free_port()
    if is_kraft(release):
        roles = (role, *HALVES[role])
        processes = tuple(_kraft_process(each, work, port, other_port) for each in roles)
    elif role == "broker":
        processes = _zookeeper_processes(work, port, other_port)
    else:
        raise SystemExit(f"start_matrix: {release} has no {role}; use --role broker")
    reader = Reader(kafka.command("ReadDamaged", options=[tools.QUIET]))
    return Node(kafka, reader, release, work, shared, port, processes)


def is_kraft(release: str) -> bool:
    """Return True if a release's brokers run without ZooKeeper here."""
    return tools.store.release_order(release) >= FIRST_WITHOUT_ZOOKEEPER


def _kraft_process(role: str, work: Path, port: int, controller_port: int) -> Process:
    disk = work / role
    lines = tools.server_properties(port, controller_port, disk).splitlines()
    settings = dict(line.split("=", 1) for line in lines) | {name: str(value) for name, value in base.SETTINGS.items()}
    if role != "combined":
        settings["process.roles"] = role
        settings["controller.quorum.voters"] = f"{CONTROLLER_ID}@127.0.0.1:{controller_port}"
        client, controller = settings["listeners"].split(",")
        settings["listeners"] = client if role == "broker" else controller
    if role == "controller":
        settings["node.id"] = str(CONTROLLER_ID)
        del settings["advertised.listeners"]
    main_port = controller_port if role == "controller" else port
    return Process(role, BROKER, _write(work / f"{role}.properties", settings), disk, main_port)


def _zookeeper_processes(work: Path, port: int, zookeeper_port: int) -> tuple[Process, Process]:
    disk, other = work / "broker", work / "zookeeper"
    lines = zookeeper_broker_properties(port, zookeeper_port, disk).splitlines()
    broker = dict(line.split("=", 1) for line in lines) | {name: str(value) for name, value in base.SETTINGS.items()}
    zookeeper = {
        "dataDir": str(other),
        "clientPort": str(zookeeper_port),
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
        "tickTime": "500",
        "preAllocSize": "64",
    }
    broker |= {
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "zookeeper.session.timeout.ms": str(base.SETTINGS["broker.session.timeout.ms"]),
    }
    return (
        Process("broker", BROKER, _write(work / "broker.properties", broker), disk, port),
        Process("zookeeper", ZOOKEEPER, _write(work / "zookeeper.properties", zookeeper), other, zookeeper_port),
    )


def _write(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def offer_directories(process: Process) -> None:
    """Configure the second log directory if it exists."""
    dirs = [str(path) for path in (process.disk, second_directory(process.disk)) if path.exists()]
    text = process.properties.read_text()
    process.properties.write_text(re.sub(r"(?m)^log\.dirs=.*", f"log.dirs={','.join(dirs)}", text))


def is_root() -> bool:
    """Return True if processes can run as another user than the files' owner."""
    return os.geteuid() == 0


def directories(disk: Path) -> tuple[Path, ...]:
    """Return a log directory, the second one, and the destination of links; some may not exist."""
    return (disk, second_directory(disk), disk.parent / f"{disk.name}-elsewhere")


def give_away(disk: Path) -> None:
    """Make nobody the owner of a disk, except of unreadable files, if that is possible."""
    for directory in directories(disk) if is_root() else ():
        for path in (directory, *directory.rglob("*")):
            if directory.exists() and path.lstat().st_mode & 0o777:
                os.chown(path, USER, GROUP_ID, follow_symlinks=False)
