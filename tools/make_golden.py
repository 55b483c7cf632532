"""Makes golden data with a real broker and its real tool: `--release 4.3.1 --out DIR`; 3.3 or later.

Maven fetches the release's jars; its broker (KRaft, on 127.0.0.1) is started, WriteTopics.java fills topics, the broker
is stopped; its log directory goes to DIR/logs/WRITER, and DumpLogSegments prints every file with the usual options.

`--again 2.0.1` starts no broker: the release's tool, of any release, is run as 2.0.1's was for golden/.

Needs Java 17 with its compiler, and Maven. `tools/arrange_golden.py DIR golden` then adds the data to golden/.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import golden_store as store
from golden_store import Case
from kafka_classes import KafkaClasses

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
SCALA = (((0,), "2.11"), ((2,), "2.12"), ((2, 5), "2.13"))
"""Scala versions of the classes, by release."""
# Declared by Kafka in all of these releases; a system property decides whether it prints.
SLF4J = "1.7.36"
START_SECONDS = 60
CLEAN_SECONDS = 60
POLL_SECONDS = 0.2
WARNINGS = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
# Tools up to 2.x close their indexes explicitly, and log by log4j 1.
OLD_OPTIONS = (
    *(
        f"--add-exports=java.base/{name}=ALL-UNNAMED"
        for name in ("sun.nio.ch", "jdk.internal.ref", "jdk.internal.misc")
    ),
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
)

# Locks, and the mark of a clean stop: they belong to the running broker, not to its data.
NOT_KEPT = {".lock", ".kafka_cleanshutdown"}

LOG_OPTIONS = (
    (),
    ("--deep-iteration",),
    ("--print-data-log",),
    ("--deep-iteration", "--print-data-log"),
    ("--print-data-log", "--skip-record-metadata"),
)
INDEX_OPTIONS = ((), ("--verify-index-only",), ("--index-sanity-check",))
# By suffix: the kind of the case, and the options of each run.
OPTIONS = {
    ".log": ("log", LOG_OPTIONS),
    ".index": ("index", INDEX_OPTIONS),
    ".timeindex": ("timeindex", INDEX_OPTIONS),
    ".txnindex": ("txnindex", ((),)),
    ".snapshot": ("snapshot", ((),)),
    ".checkpoint": ("checkpoint", (("--cluster-metadata-decoder",),)),
}
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}


class Dump(NamedTuple):
    """A planned run of the tool: its file and its options."""

    path: str
    kind: str
    options: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command line after the program's name."""
        return (*self.options, "--files", self.path)


class Printed(NamedTuple):
    """The end of a run, and its output."""

    status: int
    stdout: bytes
    stderr: bytes


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.3.1", help="Kafka's release, 3.3 or later (%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="a new directory")
    parser.add_argument("--writer", help="the folder's name under logs/ (RELEASE-made)")
    parser.add_argument("--again", metavar="PRINTER", help="run this release's tool like PRINTER's in golden/")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="with --again: only every Nth healthy run")
    arguments = parser.parse_args()
    if arguments.again:
        return print_again(arguments.release, arguments.again, arguments.every, arguments.out)
    if store.release_order(arguments.release) < (3, 3):
        parser.error("releases before 3.3 have no KRaft broker for production")
    if arguments.out.exists():
        parser.error(f"{arguments.out} is there already")
    writer = arguments.writer or f"{arguments.release}-made"
    with tempfile.TemporaryDirectory() as work:
        say(arguments.out, make(arguments.release, arguments.out, writer, Path(work)))
    return 0


def say(out: Path, cases: list[Case]) -> None:
    """Print a summary of the created data."""
    print(f"{out}: {len(cases)} cases, {sum(case.group == 'died' for case in cases)} of which killed the tool")


def print_again(release: str, printer: str, every: int, out: Path) -> int:
    """Run a release's tool over golden/ as another release's was run; return the exit status."""
    wanted = [case for case in store.read_cases(GOLDEN) if case.printer == printer and case.group == "healthy"][::every]
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        logger = [f"org.slf4j:slf4j-simple:{SLF4J}"] if store.release_order(release) >= (3,) else []
        kafka = KafkaClasses([*tool_artifacts(release), *logger], [], work)
        root = work / "copy"
        for folder in store.DATA_FOLDERS:
            shutil.copytree(GOLDEN / folder, root / folder)
        for path, size in store.read_sizes(GOLDEN).items():
            os.truncate(root / path, size)
        cases = []
        for case in wanted:
            alone = kafka.command(dump_class(release), *case.arguments, options=tool_options(release, work))
            printed = printed_alone(alone, root)
            stderr = printed.stderr.replace(os.fsencode(root) + b"/", b"<ROOT>/")
            again = case._replace(id=store.case_id(release, case.arguments), printer=release, status=printed.status)
            group = "healthy" if printed.status == 0 else "died"
            cases.append(again._replace(group=group, exit=(), note=None, stdout=printed.stdout, stderr=stderr))
    write(out, cases, {})
    say(out, cases)
    return 0


def write(out: Path, cases: list[Case], sizes: dict[str, int]) -> None:
    """Write the cases, and the indexes of all created files."""
    store.write_cases(out, cases)
    store.write_sizes(out, sizes)
    store.write_counts(out, cases)
    store.write_manifest(out, cases)


def make(release: str, out: Path, writer: str, work: Path) -> list[Case]:
    """Make a release's data and cases; return the cases. `work` is scratch."""
    kafka = kafka_classes(release, work)
    logs = work / "broker-logs"
    with running_broker(kafka, logs, work) as bootstrap:
        subprocess.run(kafka.command("WriteTopics", bootstrap, options=[QUIET]), check=True)
        wait_until(lambda: is_compacted(logs), CLEAN_SECONDS, "the cleaner has not compacted the topic")
    shutil.copytree(logs, out / "logs" / writer, ignore=lambda _, names: NOT_KEPT.intersection(names))
    cases = print_all(kafka, release, out, work)
    write(out, cases, store.cut_zero_tails(out))
    return cases


def kafka_classes(release: str, work: Path) -> KafkaClasses:
    """Return the classes of a release's broker, clients and tools."""
    artifacts = [*tool_artifacts(release), f"org.slf4j:slf4j-simple:{SLF4J}"]
    return KafkaClasses(artifacts, ["WriteTopics", "RunDumps"], work)


def tool_artifacts(release: str) -> list[str]:
    """Return the artifacts of a release's broker and tool; from 4.0 on, the tool has an artifact of its own."""
    scala = [name for since, name in SCALA if store.release_order(release) >= since][-1]
    artifacts = [f"org.apache.kafka:kafka_{scala}:{release}"]
    if store.release_order(release) >= (4,):
        artifacts.append(f"org.apache.kafka:kafka-tools:{release}")
    return artifacts


def tool_options(release: str, work: Path) -> list[str]:
    """Return Java's options for the tool alone, which keep it from logging."""
    if store.release_order(release) >= (3,):
        return [QUIET]
    logging = work / "log4j.properties"
    logging.write_text("log4j.rootLogger=OFF\n")
    return [*OLD_OPTIONS, f"-Dlog4j.configuration=file:{logging}"]


def dump_class(release: str) -> str:
    """Return the class of a release's DumpLogSegments."""
    is_java = store.release_order(release) >= (4, 3)
    return "org.apache.kafka.tools.DumpLogSegments" if is_java else "kafka.tools.DumpLogSegments"


@contextmanager
def running_broker(kafka: KafkaClasses, logs: Path, work: Path) -> Iterator[str]:
    """Start a broker that is its own controller; yield its address. It is stopped cleanly at the end."""
    port, controller_port = free_port(), free_port()
    properties = work / "server.properties"
    properties.write_text(server_properties(port, controller_port, logs))
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    format_storage = ("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties))
    subprocess.run(kafka.command(*format_storage, options=[QUIET]), check=True, stdout=subprocess.DEVNULL)
    broker = subprocess.Popen(kafka.command("kafka.Kafka", str(properties), options=[WARNINGS]))
    try:
        wait_until(lambda: is_listening(port), START_SECONDS, "the broker has not come up", broker)
        yield f"127.0.0.1:{port}"
    finally:
        broker.terminate()
        broker.wait()


def server_properties(port: int, controller_port: int, logs: Path) -> str:
    """Return a configuration for one small, impatient broker."""
    internal = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": logs,
        **{f"{topic}.replication.factor": 1 for topic in internal},
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.min.isr": 1,
        **{f"{topic}.num.partitions": 2 for topic in internal},
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.backoff.ms": 500,
        "log.initial.task.delay.ms": 500,
        "log.segment.delete.delay.ms": 200,
        "metadata.log.max.record.bytes.between.snapshots": 1000,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int) -> bool:
    """Return True if something accepts connections at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_compacted(logs: Path) -> bool:
    """Return True if the cleaner has processed the compacted topic, by its own checkpoint."""
    path = logs / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return any(line.startswith("compacted 0 ") and not line.endswith(" 0") for line in lines)


def wait_until(
    condition: Callable[[], bool], seconds: float, complaint: str, process: subprocess.Popen[bytes] | None = None
) -> None:
    """Wait for a condition; end the program with the complaint if it never holds, or the process ends."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            raise SystemExit(f"make_golden: {complaint}")
        time.sleep(POLL_SECONDS)


def print_all(kafka: KafkaClasses, release: str, out: Path, work: Path) -> list[Case]:
    """Run the release's DumpLogSegments over every file; on a copy, since it creates missing indexes."""
    root = work / "copy"
    shutil.copytree(out / "logs", root / "logs")
    dumps = [dump for path in sorted(store.listed_files(root)) for dump in dumps_of(path)]
    runs, results = work / "runs", work / "results"
    results.mkdir()
    runs.write_text("".join("\t".join(dump.arguments) + "\n" for dump in dumps))
    subprocess.run(kafka.command("RunDumps", str(runs), str(results), options=[QUIET]), cwd=root, check=True)
    cases = []
    for number, dump in enumerate(dumps):
        printed = printed_by_run(results / str(number))
        # The trace of a tool that died has the frames of its caller, so it runs again on its own.
        alone = kafka.command(dump_class(release), *dump.arguments, options=[QUIET])
        cases.append(case_of(release, dump, printed if printed.status == 0 else printed_alone(alone, root), root))
    return cases


def dumps_of(path: str) -> Iterator[Dump]:
    """Yield the runs for a file; none for a kind that the tool doesn't know."""
    kind, options = OPTIONS.get(Path(path).suffix, ("", ()))
    for option in options:
        yield Dump(path, kind, option)
    decoder = DECODERS.get(Path(path).parent.name.rpartition("-")[0])
    if kind == "log" and decoder:
        yield Dump(path, "log-decoded", (decoder,))
        yield Dump(path, "log-decoded", (decoder, "--skip-record-metadata"))


def printed_by_run(result: Path) -> Printed:
    """Return the output that RunDumps kept of a run."""
    stdout, stderr, status = (result.with_suffix(suffix).read_bytes() for suffix in (".out", ".err", ".status"))
    return Printed(int(status), stdout, stderr)


def printed_alone(command: list[str], root: Path) -> Printed:
    """Return the output of a run in a process of its own."""
    ran = subprocess.run(command, cwd=root, capture_output=True, check=False)
    return Printed(ran.returncode, ran.stdout, ran.stderr)


def case_of(release: str, dump: Dump, printed: Printed, root: Path) -> Case:
    """Return the case of a run; machine-dependent directories are removed from its reports."""
    return Case(
        id=store.case_id(release, dump.arguments),
        printer=release,
        arguments=dump.arguments,
        files=(dump.path,),
        kind=dump.kind,
        group="healthy" if printed.status == 0 else "died",
        status=printed.status,
        exit=(),
        order=None,
        note=None,
        stdout=printed.stdout,
        stderr=printed.stderr.replace(os.fsencode(root) + b"/", b"<ROOT>/"),
    )


if __name__ == "__main__":
    sys.exit(main())
