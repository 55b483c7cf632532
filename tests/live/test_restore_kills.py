"""Restores whose runs, brokers and connections end at any moment: each record arrives once, in order.

KILLS in the environment is the number of such ends, SEED repeats a course; both are shown. Needs Java and Maven.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.live.cluster import NODES, Cluster
from tests.live.cut_proxy import CutProxy
from tests.live.test_restore import assert_all_arrived, make_topic_with_records, write_partition
from tests.log.real_broker import RELEASE, Broker, new_broker

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "8"))
PARTITIONS, RECORDS = 3, 30_000
LATE = 100_000
"""The first offset of a log that begins late."""
LONGEST_RUN = 300
KILLED_AT_END = 0.6
"""The share of runs that are killed after another end."""
SETTINGS = {"auto.create.topics.enable": "false", "log.initial.task.delay.ms": 200}
REPLICATED = {"offsets.topic.replication.factor": 3, "min.insync.replicas": 2, "default.replication.factor": 3}
GAVE_UP = b"run the command again"


class Course:
    """Restores of the same disks into one topic after another, until enough was killed.

    Of three topics, one has records already, and one gets a log that begins late, with its offsets. counts: by kind of
    end.
    """

    def __init__(self, disks: Path, bootstrap: str, random: Random) -> None:
        self._disks, self._bootstrap, self.random = disks, bootstrap, random
        self.counts: Counter[str] = Counter()
        self.topics = 0
        self._runs: list[subprocess.Popen[bytes]] = []

    @property
    def topic(self) -> str:
        """The present topic."""
        return f"kills-{self.topics}"

    @property
    def earlier(self) -> int:
        """The number of records that each partition of the present topic had before."""
        return 10 if self.topics % 3 == 1 else 0

    @property
    def is_late(self) -> bool:
        """Whether the present topic's records keep the offsets of a log that begins late."""
        return self.topics % 3 == 2

    @property
    def kills(self) -> int:
        """The number of all ends."""
        return self.counts.total()

    def start(self) -> subprocess.Popen[bytes]:
        """Start a run of the restore into the present topic."""
        command = [str(Path(sys.executable).with_name("kseg")), "restore", str(self._disks), "--yes", "-q"]
        for address in self._bootstrap.split(","):
            command += ["--bootstrap", address]
        source = "late" if self.is_late else "large"
        command += ["--topic", source, "--topic-map", f"{source}={self.topic}", "--job", self.topic, "--rate", "1MiB"]
        command += ["--append"] if self.earlier else ["--offsets", "keep"] if self.is_late else []
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._runs.append(run)
        return run

    def wait(self) -> None:
        """Let some time pass: a run starts, sends, or reads back."""
        time.sleep(self.random.uniform(0.3, 3))

    def kill(self, run: subprocess.Popen[bytes]) -> None:
        """Kill a run, unless it has ended."""
        if run.poll() is None:
            run.kill()
            run.wait()
            self.counts["runs"] += 1

    def end_runs(self) -> bool:
        """Kill some of the runs, and wait for the others; return whether one has restored everything."""
        for run in self._runs:
            if self.random.random() < KILLED_AT_END:
                self.wait()
                self.kill(run)
        ends = [(run.communicate(timeout=LONGEST_RUN)[1], run.returncode) for run in self._runs]
        self._runs.clear()
        for stderr, status in ends:
            assert status in (0, -signal.SIGKILL) or (status == 3 and GAVE_UP in stderr), stderr.decode()
            self.counts["gave up"] += status == 3
        return any(status == 0 for _, status in ends)

    def check(self, port: int) -> None:
        """Check that the present topic has each record once, and go on to the next one."""
        assert_all_arrived(port, self.topic, self.earlier, LATE if self.is_late else 0)
        self.topics += 1
        if self.earlier:
            make_topic_with_records(self._bootstrap, self.topic)

    def end(self, port: int) -> None:
        """Restore the present topic to its end, and check it."""
        while not self.end_runs():
            self.start()
        self.check(port)


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("disks")
    for partition in range(PARTITIONS):
        write_partition(root / f"large-{partition}", Random(partition), RECORDS)
        write_partition(root / f"late-{partition}", Random(partition), RECORDS, first=LATE, gaps=0)
    return root


@contextmanager
def shown(capsys: pytest.CaptureFixture[str], name: str, disks: Path, bootstrap: str) -> Iterator[Course]:
    """Yield a course with the seed; show it, and the counts at the end."""
    seed = int(os.environ.get("SEED") or time.time_ns() % 1_000_000)
    course = Course(disks, bootstrap, Random(seed))
    try:
        yield course
    finally:
        with capsys.disabled():
            print(f"\n{name}: SEED={seed} KILLS={KILLS}: {course.topics} topics, {dict(course.counts)}")  # noqa: T201


class LoneBroker:
    """A broker behind a proxy, which clients use."""

    def __init__(self, broker: Broker, proxy: CutProxy) -> None:
        self._broker, self.proxy = broker, proxy
        self._running = ExitStack()
        self._starts = 0

    def start(self) -> None:
        """Start the broker."""
        self._starts += 1
        self._running.enter_context(self._broker.running(f"run-{self._starts}", is_killed=True))

    def kill(self) -> None:
        """Kill the broker."""
        self._running.close()


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneBroker]:
    import make_golden as tools

    port = tools.free_port()
    broker = new_broker(tmp_path_factory, {**SETTINGS, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    with CutProxy(port, broker.port).running() as proxy:
        running = LoneBroker(broker, proxy)
        running.start()
        yield running
        running.kill()


def kill_a_run(course: Course, lone: LoneBroker) -> None:
    run = course.start()
    course.wait()
    course.kill(run)


def kill_one_of_two(course: Course, lone: LoneBroker) -> None:
    first = course.start()
    course.wait()
    course.start()
    course.wait()
    course.kill(first)


def hold_back_a_killed_run(course: Course, lone: LoneBroker) -> None:
    """The broker gets the last request of a killed run only when another run has begun."""
    run = course.start()
    course.wait()
    lone.proxy.hold_back()
    time.sleep(0.2)
    course.kill(run)
    course.counts["held back"] += 1
    course.start()
    course.wait()
    lone.proxy.release()


def let_a_run_sleep(course: Course, lone: LoneBroker) -> None:
    """A run goes on after others have sent its records."""
    run = course.start()
    course.wait()
    run.send_signal(signal.SIGSTOP)
    course.counts["stopped"] += 1
    course.start()
    course.wait()
    run.send_signal(signal.SIGCONT)


def cut_connections(course: Course, lone: LoneBroker) -> None:
    course.start()
    for _ in range(3):
        course.wait()
        lone.proxy.cut()
        course.counts["cut"] += 1


def kill_the_broker(course: Course, lone: LoneBroker) -> None:
    course.start()
    course.wait()
    lone.kill()
    course.counts["brokers"] += 1
    lone.start()
    course.start()  # a run had perhaps deleted empty records before, and the broker hadn't stored that


ENDS = (kill_a_run, kill_one_of_two, hold_back_a_killed_run, let_a_run_sleep, cut_connections, kill_the_broker)
WEIGHTS = (10, 4, 4, 2, 2, 1)


def test_ends_at_any_moment_lose_and_double_nothing(
    disks: Path, lone: LoneBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown(capsys, "one broker", disks, f"127.0.0.1:{lone.proxy.port}") as course:
        while course.kills < KILLS:
            (end,) = course.random.choices(ENDS, WEIGHTS)
            end(course, lone)
            if course.end_runs():
                course.check(lone.proxy.port)
        course.end(lone.proxy.port)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(RELEASE, tmp_path_factory.mktemp("cluster"), {**SETTINGS, **REPLICATED}, controllers=(4,))
    started.start(4, *NODES)
    yield started
    started.stop()


def test_leaders_that_are_killed_lose_and_double_nothing(
    disks: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown(capsys, "three brokers", disks, cluster.bootstrap) as course:
        while course.kills < max(KILLS // 5, 4):
            run = course.start()
            course.wait()
            if course.random.random() < 0.5:
                course.kill(run)
            else:
                node = course.random.choice(NODES)
                cluster.kill(node)
                course.counts["brokers"] += 1
                course.wait()
                cluster.start(node)
            if course.end_runs():
                course.check(cluster.nodes[1].port)
        course.end(cluster.nodes[1].port)
