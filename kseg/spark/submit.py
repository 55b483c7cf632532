"""Submission of an export through spark-submit, and explanations of its failures."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple

import pyspark

from kseg.errors import ClusterError, KsegError, UsageError
from kseg.output.progress import talk
from kseg.output.streams import flush_stdout, write_line
from kseg.spark.environment import ENVIRONMENT, PACKED, pack_environment
from kseg.spark.java import find_java, problem
from kseg.system.new_directory import scratch_directory, temporary_place
from kseg.system.safe_path import SAFE_PATH
from kseg.system.signals import Uninterrupted

SAFE_SETTINGS = tuple(
    (f"{place}.{SAFE_PATH}", "1")
    for place in ("spark.executorEnv", "spark.yarn.appMasterEnv", "spark.kubernetes.driverEnv")
)
"""Settings that keep Spark's Python processes from importing modules from their current directory."""
IMAGE_PYTHON = "/opt/kseg/bin/python"
"""The Python of the image that docs/kubernetes/Containerfile describes."""
IMAGE_APPLICATION = "local:///opt/kseg/application.py"
"""The application in that image, as a driver in a pod finds it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster of a job, in spark-submit's options.

    archive: a packed environment for the executors. ships_environment: whether this environment is packed as PACKED.
    """

    master: str
    deploy_mode: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()
    archive: str | None = None
    ships_environment: bool = False

    @property
    def drives_here(self) -> bool:
        """True if the driver runs on this machine."""
        return self.deploy_mode != "cluster"

    @property
    def runs_image(self) -> bool:
        """True if Python comes with an image."""
        return self.master.startswith("k8s://") and self.sent_archive is None

    @property
    def sent_archive(self) -> str | None:
        """The archive that spark-submit sends."""
        return PACKED if self.ships_environment else self.archive

    @property
    def links_environment(self) -> bool:
        """True if a local driver uses the same relative path to its environment as executors.

        Spark plans with Python on the driver through that path, which must lead to this environment.
        """
        return self.sent_archive is not None and self.drives_here


def submit_command(cluster: Cluster, arguments: Sequence[str]) -> list[str]:
    """Return the command line of spark-submit; `arguments` are those of `kseg spark-export`."""
    command = [str(_spark_home() / "bin" / "spark-submit"), "--master", cluster.master]
    if cluster.deploy_mode is not None:
        command += ["--deploy-mode", cluster.deploy_mode]
    if cluster.packages:
        command += ["--packages", ",".join(cluster.packages)]
    if cluster.sent_archive is not None:
        command += ["--archives", f"{cluster.sent_archive}#{ENVIRONMENT}"]
    for name, value in (*SAFE_SETTINGS, *_image_settings(cluster), *cluster.settings):
        command += ["--conf", f"{name}={value}"]
    return [*command, _application(cluster), *arguments]


def _image_settings(cluster: Cluster) -> tuple[tuple[str, str], ...]:
    if not cluster.runs_image:
        return ()
    python = ("spark.pyspark.python", IMAGE_PYTHON)
    return (python, ("spark.pyspark.driver.python", sys.executable)) if cluster.drives_here else (python,)


def submit_environment(cluster: Cluster) -> dict[str, str]:
    """Return the variables of spark-submit, which name the Python of driver and executors."""
    if cluster.runs_image:
        return {SAFE_PATH: "1"}
    python = f"./{ENVIRONMENT}/bin/python" if cluster.sent_archive is not None else sys.executable
    driver = sys.executable if cluster.drives_here else python
    pythons = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", python), "PYSPARK_DRIVER_PYTHON": driver}
    return {**pythons, SAFE_PATH: "1"}


def _spark_home() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _application(cluster: Cluster) -> str:
    if cluster.runs_image and not cluster.drives_here:
        return IMAGE_APPLICATION
    found = find_spec("kseg.spark.application")
    assert found is not None
    assert found.origin is not None
    return found.origin


def quote_command(cluster: Cluster, arguments: Sequence[str]) -> str:
    """Return the shell command that is run: its directory, its archive, variables, the command line."""
    steps = []
    if cluster.sent_archive is not None:
        steps.append('cd "$(mktemp -d)"')
    if cluster.ships_environment:
        steps.append(shlex.join([sys.executable, "-m", "kseg.spark.environment", PACKED]))
    if cluster.links_environment:
        steps.append(shlex.join(["ln", "-s", sys.prefix, ENVIRONMENT]))
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in submit_environment(cluster).items())
    return " && ".join([*steps, f"{variables} {shlex.join(submit_command(cluster, arguments))}"])


class Cause(NamedTuple):
    """A known cause: a pattern of Spark's lines, and an explanation; {1} is the first group, {master} the master."""

    pattern: re.Pattern[str]
    says: str

    def line(self, said: re.Match[str], master: str) -> str:
        """Return the explanation for a matching line."""
        return self.says.format(said[0], *said.groups(default=""), master=master)


def _cause(pattern: str, says: str) -> Cause:
    return Cause(re.compile(pattern, re.MULTILINE), says)


_PYTHON_HOW = "send this environment with --ship-env, or set PYSPARK_PYTHON to a Python that all machines have"
_K8S_CAUSE = r"KubernetesClientException.*\n(?:.*\n){0,60}?Caused by: java\.(?:io|net)\.\w*Exception: (.*)"

CAUSES = (
    _cause(
        r"either HADOOP_CONF_DIR or YARN_CONF_DIR must be set",
        "--master yarn needs Hadoop's configuration; set HADOOP_CONF_DIR to the directory with yarn-site.xml and"
        " core-site.xml",
    ),
    _cause(
        r"Master must either be yarn or start with|Could not parse Master URL|Invalid master URL",
        "{master} isn't a valid master; specify spark://HOST:PORT, yarn, k8s://https://HOST:PORT or local[N]",
    ),
    _cause(
        r"Cluster deploy mode is currently not supported for python applications on standalone clusters",
        "a standalone cluster can't run a driver in Python; omit --deploy-mode cluster",
    ),
    _cause(
        r"JAVA_HOME is not set",
        "spark-submit finds no Java; set JAVA_HOME to Java 17 or later",
    ),
    _cause(
        r"All masters are unresponsive",
        "no master answers at {master}; check that it runs, and that its web page shows this address",
    ),
    _cause(
        r"Must specify the (?:driver|executor) container image",
        "Kubernetes needs an image with kseg; specify --conf spark.kubernetes.container.image=… as in"
        " docs/how-to/spark.md",
    ),
    _cause(
        _K8S_CAUSE,
        "the Kubernetes API server at {master} can't be used: {1}; find its address with `kubectl cluster-info`",
    ),
    _cause(
        r"Call From \S+ to (\S+) failed on connection exception",
        "{1} from Hadoop's configuration doesn't answer; check that it runs, and that HADOOP_CONF_DIR is for this"
        " cluster",
    ),
    _cause(
        r"Required (?:executor|AM) memory.*is above the max threshold.*",
        "{0}",
    ),
    _cause(
        r'Cannot run program "([^"]+)".*(?:error=2|No such file)',
        f"executors can't run {{1}}; {_PYTHON_HOW}",
    ),
    _cause(
        r"^(?:\S*/)?(\S*python\S*): (?:No such file or directory|command not found|cannot execute)",
        f"the driver can't run {{1}}; {_PYTHON_HOW}",
    ),
    _cause(
        r"ModuleNotFoundError: No module named '(kseg|pyarrow)",
        f"the executors' Python has no {{1}}; {_PYTHON_HOW}",
    ),
    _cause(
        r"PYTHON_VERSION_MISMATCH.*",
        f"driver and executors run different versions of Python; {_PYTHON_HOW}",
    ),
    _cause(
        r"kseg\.errors\.OpenError: (.*[Nn]o such file or directory.*)",
        "an executor failed: {1}; make sources and destination reachable under the same names on all machines",
    ),
    _cause(
        r"^kseg: (.*): exists here, but not on the machine that reads it",
        "executors can't find {1}; make sources and destination reachable under the same names on all machines",
    ),
    _cause(
        r"Master removed our application: (\w+)",
        "the master gave up the export ({1}), because executors end as soon as they start; read their output on the"
        " workers' web pages",
    ),
    _cause(
        r"(ExecutorLostFailure .*)",
        "executors were lost: {1}",
    ),
    _cause(
        r"User application exited with (?:status )?(\d+)[\s\S]*?(application_\w+) finished with",
        "the driver on the cluster ended with status {1}; read its output with `yarn logs -applicationId {2}`",
    ),
    _cause(
        r"(application_\w+) finished with (?:failed|killed) status|Application (application_\w+) is killed",
        "the driver on the cluster was stopped; read its log with `yarn logs -applicationId {1}{2}`",
    ),
)
"""Known causes; the first match is the cause, since others may follow from it."""

NOTES = (
    _cause(
        r"Initial job has not accepted any resources",
        "no executor has started yet: the cluster is busy, or no worker has the requested cores and memory"
        " (spark.executor.cores, spark.executor.memory)",
    ),
    _cause(
        r"Failed to connect to master (\S+)",
        "the master at {1} doesn't answer; Spark retries for a minute",
    ),
    _cause(
        r"Retrying connect to server: (?:\S+/)?([\w.-]+:\d+)",
        "{1} from Hadoop's configuration doesn't answer; Spark retries",
    ),
)
"""Explanations that are printed while Spark continues."""

NO_RESOURCES = NOTES[0].pattern
_ENDS = (
    re.compile(r'^Exception in thread "main" [\w.$]+: (.*)', re.MULTILINE),
    re.compile(r"^Error: (.*)", re.MULTILINE),
)
"""Patterns of spark-submit's own failures, before a driver's or without one."""
DRIVER_STATUS = re.compile(r"User application exited with (?:status )?(\d+)")
"""Pattern of a cluster's message about a driver that ended on its own."""


def cause_in(said: str, master: str) -> str | None:
    """Return the cause of a failure, from all of Spark's lines, or None if it is unknown."""
    for cause in CAUSES:
        found = cause.pattern.search(said)
        if found is not None:
            return cause.line(found, master)
    return None


def end_in(said: str) -> str | None:
    """Return the words of spark-submit's own failure, or None if it ended as the driver did."""
    found = [match[1] for pattern in _ENDS for match in pattern.finditer(said)]
    return found[-1] if found else None


MOST_WARNINGS = 40
"""The most warnings that no executor has come, one per `spark.starvation.timeout` (15 s), before giving up."""
SLOW_STARTS = 1
"""The number of these warnings that a slow start of executors may cause."""
MOST_READ = 4 << 20
"""Bytes at the start and at the end of Spark's lines that are searched for a cause."""
OWN = "kseg: "


def submit(cluster: Cluster, arguments: Sequence[str], *, verbose: bool) -> int:
    """Run spark-submit, and return the exit status of the export. `verbose` shows its own lines on stderr.

    Raises:
        UsageError: no Java can run Spark.
        ClusterError: Spark or the cluster failed; the message names a file with all of Spark's lines.
        KsegError: the driver on the cluster failed.
    """
    wrong = problem(find_java(), pyspark.__version__)
    if wrong is not None:
        raise UsageError(wrong)
    with _working_directory(cluster) as directory:
        return _Submission(cluster, verbose=verbose).run(submit_command(cluster, arguments), directory)


@contextmanager
def _working_directory(cluster: Cluster) -> Iterator[str | None]:
    """Yield spark-submit's directory: with an archive, one with the files of relative names; None: the current one."""
    if cluster.sent_archive is None:
        yield None
        return
    with scratch_directory() as directory:
        if cluster.ships_environment:
            pack_environment(directory / PACKED)
        if cluster.links_environment:
            (directory / ENVIRONMENT).symlink_to(sys.prefix)
        yield str(directory)


class _Submission:
    """A run of spark-submit.

    In client mode Spark passes the driver's stderr on as standard output, so kseg's own lines are identified by their
    prefix.
    """

    def __init__(self, cluster: Cluster, *, verbose: bool) -> None:
        self._cluster = cluster
        self._verbose = verbose
        self._noted: set[str] = set()
        self._warnings = 0
        self._is_log_named = False

    def run(self, command: Sequence[str], directory: str | None) -> int:
        """Run the command, and return its exit status. Raises ClusterError."""
        descriptor, name = tempfile.mkstemp(prefix="kseg-spark-submit-", suffix=".log", dir=temporary_place())
        log = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                status, own = self._run(command, directory, file)
            return self._judge(status, own, log)
        finally:
            if not self._is_log_named:
                log.unlink()

    def _run(self, command: Sequence[str], directory: str | None, log: IO[str]) -> tuple[int, list[str]]:
        """Return the exit status, and kseg's own lines of the driver."""
        own: list[str] = []
        environment = {**os.environ, **submit_environment(self._cluster)}
        with subprocess.Popen(  # noqa: S603
            command,
            env=environment,
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as ran:
            assert ran.stdout is not None
            listener = threading.Thread(target=self._listen, args=(ran, log), name="kseg-spark-submit", daemon=True)
            listener.start()
            try:
                for line in ran.stdout:
                    if line.startswith(OWN):
                        own.append(line.rstrip("\n"))
                    else:
                        write_line(line.rstrip("\n"))
                ran.wait()
                listener.join()
            except BaseException:
                with Uninterrupted():
                    ran.terminate()
                    ran.wait()
                raise
        flush_stdout()
        return ran.returncode, own

    def _listen(self, ran: "subprocess.Popen[str]", log: IO[str]) -> None:
        """Keep Spark's lines, and print lines for the user at once."""
        assert ran.stderr is not None
        for line in ran.stderr:
            log.write(line)
            if self._verbose:
                talk(line.rstrip("\n"))
            is_warning = NO_RESOURCES.search(line) is not None
            self._warnings += is_warning
            if not is_warning or self._warnings > SLOW_STARTS:
                self._note(line)
            if self._warnings == MOST_WARNINGS:
                ran.terminate()

    def _note(self, line: str) -> None:
        for note in NOTES:
            found = note.pattern.search(line)
            if found is not None and note.says not in self._noted:
                self._noted.add(note.says)
                talk(f"{OWN}{note.line(found, self._cluster.master)}")

    def _judge(self, status: int, own: list[str], log: Path) -> int:
        """Return the exit status of the export. Raises ClusterError for other failures."""
        said = _ends_of(log)
        of_driver = DRIVER_STATUS.findall(said)
        if of_driver and not self._cluster.drives_here:
            status = int(of_driver[-1])
        if self._warnings >= MOST_WARNINGS:
            raise self._error("no executor has started: no worker has the requested cores and memory", log)
        failed = end_in(said) if self._cluster.drives_here or not of_driver else None
        if status in (0, 1) and failed is None:
            talk(*own)
            return status
        cause = cause_in("\n".join([said, *own]), self._cluster.master)
        talk(*(own if cause is None else own[:-1]))
        if cause is None and own and failed is None and status != ClusterError.status:
            return status
        message = cause or failed or f"spark-submit ended with status {status}"
        raise self._error(message, log, KsegError if of_driver and status == KsegError.status else ClusterError)

    def _error(self, message: str, log: Path, kind: type[KsegError] = ClusterError) -> KsegError:
        self._is_log_named = not self._verbose
        return kind(f"{message}; read Spark's complete output in {log}" if self._is_log_named else message)


def _ends_of(log: Path) -> str:
    """Return the beginning and the end of a text, or all of it."""
    size = log.stat().st_size
    with log.open("rb") as file:
        said = file.read(MOST_READ)
        if size > 2 * MOST_READ:
            file.seek(size - MOST_READ)
            said += b"\n"
        return (said + file.read()).decode(errors="replace")
