"""The job of an export on Spark: its session, and the class archive for a faster start."""

import io
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from itertools import accumulate, count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

from kseg.errors import ClusterError, KsegError, OpenError, UsageError
from kseg.export.commit.order import Execute, Job
from kseg.export.plan import WorkOrder, balance
from kseg.export.results import Result
from kseg.spark.class_archive import QUICK_START, ClassArchive
from kseg.spark.java import Java, find_java, prepare_java, problem
from kseg.spark.tasks import Round, error_of, message_of
from kseg.system.new_directory import scratch_directory
from kseg.system.safe_path import SAFE_PATH, SafeChildren
from kseg.system.signals import Uninterrupted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOG_SETTINGS = """\
rootLogger.level=error
rootLogger.appenderRef.e.ref=e
appender.e.type=Console
appender.e.name=e
appender.e.target=SYSTEM_ERR
appender.e.layout.type=PatternLayout
appender.e.layout.pattern=%p %c{1}: %m%n%ex{0}
"""
LAST_LINES = 5
STOP_SECONDS = 300
"""Seconds for a JVM to end, during which it may write a class archive; then it is killed."""
CONNECT_SECONDS = 60
"""Seconds to reach a Spark Connect server."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}
ONE_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "kseg.spark.worker_daemon",
}


@contextmanager
def open_context(
    master: str | None, settings: Mapping[str, str] | None = None, *, verbose: bool = False
) -> Iterator[SparkContext]:
    """Yield a Spark context without a session, which takes as long again to start; stop it at the end.

    Args:
        master: `local[N]`, for a JVM on this machine with the quickest start; None for the one of spark-submit.
        settings: Spark's configuration. Java options in it replace those of the quick start.
        verbose: let Spark write to stderr.

    Raises:
        UsageError: if no Java can run Spark.
        ClusterError: if Spark can't start; with its own last lines.
    """
    with scratch_directory() as scratch, _own_variables(), (scratch / "spark.err").open("w+b") as log:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        own = {"spark.app.name": "kseg", f"spark.executorEnv.{SAFE_PATH}": "1"} | QUIET
        home = None
        if master is not None:
            archive = ClassArchive.of(prepare_java(pyspark.__version__, scratch))
            own |= ONE_MACHINE | {"spark.master": master, JAVA_OPTIONS: archive.options if archive else QUICK_START}
            home = _spark_home(archive, scratch)
        wanted = own | dict(settings or {})
        if master is not None and not verbose:
            wanted[JAVA_OPTIONS] = f"{_quiet_log(scratch)} {wanted[JAVA_OPTIONS]}".strip()
        context = _start(wanted, home, log, verbose=verbose)
        try:
            with nullcontext() if verbose else _quiet_python():
                yield context
        finally:
            stop_context(context)


def stop_context(context: SparkContext) -> None:
    """End Spark and its JVM, even if it has already ended or the same signal has ended its JVM."""
    with Uninterrupted(), _quiet_python(), redirect_stderr(io.StringIO()):
        _leave_accumulators(context)
        with suppress(PySparkException, Py4JError, OSError):
            context.stop()
        _stop_gateway()


@contextmanager
def open_server(url: str) -> "Iterator[SparkSession]":
    """Yield a session of a Spark Connect server (sc://…), and end it afterwards.

    Raises ClusterError if the server doesn't answer.
    """
    from pyspark.sql import SparkSession

    try:
        with _own_interrupts():
            _connect(url)
            session = SparkSession.builder.remote(url).appName("kseg").getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        raise ClusterError(f"Spark Connect doesn't answer: {message_of(error)}", url) from error
    try:
        with _quiet_python():
            yield session
    finally:
        with Uninterrupted(), _quiet_python(), suppress(PySparkException, OSError):
            session.stop()


def _connect(url: str) -> None:
    """Wait for a gRPC server. Raises OSError without one; pyspark itself would retry for ten minutes."""
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel = DefaultChannelBuilder(url).toChannel()
    try:
        import grpc

        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECONDS)
    except grpc.FutureTimeoutError as error:
        raise TimeoutError(f"no connection within {CONNECT_SECONDS} s") from error
    finally:
        channel.close()


def parallelism_of(session: "SparkSession") -> int:
    """Return the number of tasks that a Spark Connect server runs concurrently, as far as it says."""
    return int(session.conf.get("spark.default.parallelism", None) or os.cpu_count() or 1)


@contextmanager
def _own_variables() -> Iterator[None]:
    """Restore the environment variables that starting Spark sets, because spark-submit would use them as settings."""
    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "JAVA_HOME")}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _spark_home(archive: ClassArchive | None, scratch: Path) -> Path | None:
    """Return a home with the files that Spark's start needs, or None if the user has set one.

    It lacks the zipped pyspark of Spark's own home, so that local workers import this process's pyspark. Otherwise each
    of them would compile the zipped one again, which costs three CPU seconds per start.
    """
    if "SPARK_HOME" in os.environ:
        return None
    if archive is not None and archive.is_there:
        return archive.spark_home
    link_spark_home(scratch / "spark-home")
    return scratch / "spark-home"


def link_spark_home(home: Path) -> None:
    """Make a home for Spark from links into pyspark, unless it exists."""
    home.mkdir(exist_ok=True)
    for name in ("bin", "jars"):
        with suppress(FileExistsError):
            (home / name).symlink_to(Path(pyspark.__file__).parent / name)


def _quiet_log(scratch: Path) -> str:
    file = scratch / "log4j2.properties"
    file.write_text(LOG_SETTINGS, encoding="utf-8")
    return f"-Dlog4j2.configurationFile=file:{file}"


def _start(wanted: Mapping[str, str], home: Path | None, log: IO[bytes], *, verbose: bool) -> SparkContext:
    """Start Spark with its output in a file, for the JVM only: this process gets its own output back."""
    try:
        with SafeChildren(), spark_home_at(home), _own_interrupts(), nullcontext() if verbose else _output_into(log):
            return SparkContext.getOrCreate(SparkConf().setAll([*wanted.items()]))
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        message = message_of(error)  # before its JVM is stopped
        with Uninterrupted(), _quiet_python():
            _stop_gateway()
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()[-LAST_LINES:]
        words = f"; its last lines: {' | '.join(lines)}" if lines else ""
        raise ClusterError(f"Spark doesn't start: {message}{words}") from error


@contextmanager
def spark_home_at(home: Path | None) -> Iterator[None]:
    """Set the home from which Spark starts; None leaves the environment unchanged."""
    if home is None:
        yield
        return
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C, which Spark would replace."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _output_into(log: IO[bytes]) -> Iterator[None]:
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {stream: os.dup(stream) for stream in (1, 2)}
    for stream in kept:
        os.dup2(log.fileno(), stream)
    try:
        yield
    finally:
        for stream, own in kept.items():
            os.dup2(own, stream)
            os.close(own)


@contextmanager
def _quiet_python() -> Iterator[None]:
    """Drop py4j's log lines and thread messages about a stopped JVM or an abandoned answer."""
    root = logging.getLogger()
    nothing = logging.NullHandler()
    root.addHandler(nothing)
    logger = logging.getLogger("py4j")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
        root.removeHandler(nothing)


def _leave_accumulators(context: SparkContext) -> None:
    """Let the server of accumulators, which kseg doesn't use, end on its own: Spark would wait a second for it."""
    server = getattr(context, "_accumulatorServer", None)
    if server is None or isinstance(server.server_address, str):  # a socket file must be removed
        return
    del context._accumulatorServer
    server.handle_error = lambda *_: None  # the JVM disconnects
    threading.Thread(target=server.shutdown, name="kseg-accumulators", daemon=True).start()


def _stop_gateway() -> None:
    """End the JVM, so that the next context of this process gets its own settings."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    SparkContext._gateway = SparkContext._jvm = None


TASKS_PER_SLOT = 3
POLL_SECONDS = 0.2

TaskProgress = Callable[[int, int, int], object]
"""A function that is called with the numbers of finished tasks, of all tasks, and of failed attempts."""
ByteProgress = Callable[[int, int, int], object]
"""A function that is called with the approximate bytes read, the bytes in total, and the number of failed attempts."""
_Run = Callable[[Round, int, TaskProgress | None], list[Result]]
"""A function that executes a round with a number of tasks."""


def by_context(context: "SparkContext", parallelism: int, progress: ByteProgress | None = None) -> Execute:
    """Execute orders in the tasks of a job, largest first. Raises KsegError with the task's own message.

    No session is needed: Spark's SQL takes longer to load than everything else, here and in each Python worker. Of a
    task's attempts, one passes its results to the job; the results and files of the others are dropped.
    """

    def run(wanted: Round, tasks: int, watch: TaskProgress | None) -> list[Result]:
        rows = context.parallelize(range(tasks), tasks).mapPartitions(wanted.execute)
        # A separate thread waits for the JVM's answer: after an interrupt, pyspark would assign it to another call.
        with ThreadPoolExecutor(1) as pool:
            answer: Future[list[Result]] = pool.submit(rows.collect)
            try:
                with _poll_progress(context, watch) if watch is not None else nullcontext():
                    return answer.result()
            except KeyboardInterrupt:
                stop_context(context)  # before its tasks' files are removed
                raise

    return _in_rounds(run, parallelism, progress)


def by_server(session: Any, parallelism: int, progress: ByteProgress | None = None) -> Execute:
    """Execute orders as `by_context` does, through a data source's writer: Spark Connect has no jobs of plain rows."""
    from kseg.spark.data_source import KsegSource

    def run(wanted: Round, tasks: int, watch: TaskProgress | None) -> list[Result]:
        session.dataSource.register(KsegSource)
        rows = session.range(0, tasks, 1, tasks).write.format(KsegSource.name()).mode("append")
        try:
            with _report_progress(session, watch) if watch is not None else nullcontext():
                rows.options(**wanted._asdict()).save()
        except KeyboardInterrupt:
            session.stop()
            raise
        return wanted.read_results()

    return _in_rounds(run, parallelism, progress)


def _in_rounds(run: _Run, parallelism: int, progress: ByteProgress | None) -> Execute:
    numbers = count()

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
        tasks = balance(orders, min(len(orders), parallelism * TASKS_PER_SLOT))
        wanted = Round(job.destination, job.id, str(next(numbers))).with_orders(job, tasks)
        try:
            results = run(wanted, len(tasks), in_bytes(tasks, progress))
        except (PySparkException, Py4JError) as error:
            raise error_of(error) from error
        if len(results) != len(orders):
            wrong = f"Spark returned {len(results)} results for {len(orders)} work orders; run the command again"
            raise KsegError(wrong, job.destination)
        return results

    return execute


def in_bytes(tasks: Sequence[Sequence[WorkOrder]], progress: ByteProgress | None) -> TaskProgress | None:
    """Convert progress in tasks to approximate bytes: tasks start in this order, and end roughly in it."""
    if progress is None:
        return None
    sums = [0, *accumulate(sum(order.size for order in task) for task in tasks)]
    return lambda done, _, failed: progress(sums[min(done, len(tasks))], sums[-1], failed)


@contextmanager
def _poll_progress(context: "SparkContext", progress: TaskProgress) -> Iterator[None]:
    """Poll Spark's status tracker while the job runs."""
    tracker = context.statusTracker()
    done = threading.Event()

    def poll() -> None:
        while not done.wait(POLL_SECONDS):
            stages = [
                stage
                for job in tracker.getActiveJobsIds()
                if (running := tracker.getJobInfo(job)) is not None
                for number in running.stageIds
                if (stage := tracker.getStageInfo(number)) is not None
            ]
            if stages:
                progress(
                    sum(stage.numCompletedTasks for stage in stages),
                    sum(stage.numTasks for stage in stages),
                    sum(stage.numFailedTasks for stage in stages),
                )

    thread = threading.Thread(target=poll, name="kseg-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _report_progress(session: Any, progress: TaskProgress) -> Iterator[None]:
    """Report the progress that Spark Connect sends."""

    def tell(stages: Any = None, **_: object) -> None:
        if stages:
            progress(sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages), 0)

    session.registerProgressHandler(tell)
    try:
        yield
    finally:
        session.removeProgressHandler(tell)


def make_class_archive(master: str, settings: Mapping[str, str], *, verbose: bool = False) -> ClassArchive:
    """Run a job without orders, whose JVM writes its loaded classes to a new archive.

    Raises:
        UsageError: if no Java can run this Spark, or Spark's classes aren't pyspark's.
        KsegError: if Spark can't start, the JVM writes no archive, or the cache directory can't be written.
    """
    java = find_java()
    wrong = problem(java, pyspark.__version__)
    if java is None or wrong is not None:
        raise UsageError(wrong or "no Java was found")
    archive = ClassArchive.of(java)
    if archive is None:
        raise UsageError(
            "--prepare-jvm needs pyspark's own Spark and a user's cache directory; unset SPARK_HOME, and set HOME"
        )
    try:
        _make(archive, java, (master, settings), verbose=verbose)
    except OSError as error:
        raise OpenError(error.strerror or str(error), archive.folder) from error
    return archive


def _make(archive: ClassArchive, java: Java, place: tuple[str, Mapping[str, str]], *, verbose: bool) -> None:
    archive.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with scratch_directory(archive.folder, ".new-") as scratch:
        link_spark_home(archive.spark_home)
        _make_basic(java, scratch / "basic").replace(archive.basic)
        made = scratch / "classes"
        master, settings = place
        wanted = {**settings, JAVA_OPTIONS: archive.options_to_make(made)}
        with spark_home_at(archive.spark_home), open_context(master, wanted, verbose=verbose) as context:
            context.parallelize(range(context.defaultParallelism)).mapPartitions(_no_results).collect()
        if not made.exists():
            raise KsegError(f"Java {java.version} wrote no class archive", str(java.home))
        made.replace(archive.path)
    for path in archive.folder.glob("*.jsa"):
        if path not in (archive.path, archive.basic):
            path.unlink(missing_ok=True)


def _make_basic(java: Java, path: Path) -> Path:
    command = [str(java.program), "-Xlog:disable", "-Xshare:dump", f"-XX:SharedArchiveFile={path}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode or not path.exists():
        said = " | ".join((ran.stderr + ran.stdout).split("\n"))
        raise KsegError(f"Java {java.version} wrote no class archive: {said}", str(java.home))
    return path


def _no_results(tasks: Iterable[int]) -> Iterator[int]:
    yield from tasks
