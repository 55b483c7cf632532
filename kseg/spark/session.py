"""Spark, started and stopped quietly: its own lines go to a file, which is shown if Spark can't start."""

import io
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

from kseg.errors import ClusterError
from kseg.spark.class_archive import QUICK_START, ClassArchive
from kseg.spark.java import prepare_java
from kseg.spark.messages import message_of
from kseg.system.interrupts import Uninterrupted
from kseg.system.safe_path import SAFE_PATH, SafeChildren
from kseg.system.scratch import scratch_directory

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
"""For a JVM to end by itself, which writes an archive of classes at its end if it is asked to; then it is killed."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}
ONE_MACHINE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@contextmanager
def open_context(
    master: str | None, settings: Mapping[str, str] | None = None, *, verbose: bool = False
) -> Iterator[SparkContext]:
    """Spark without a session, which takes as long again to start; it is stopped at the end.

    Args:
        master: `local[N]`, for a JVM on this machine that starts as quickly as it can; None where spark-submit has set
            up another one.
        settings: Spark's configuration. Java options in it replace those that make the start quick.
        verbose: let Spark talk to stderr.

    Raises:
        UsageError: if there is no Java that can run Spark.
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
    """Ends Spark and its JVM, also one that has ended already, or whose JVM was ended by the same signal."""
    with Uninterrupted(), _quiet_python(), redirect_stderr(io.StringIO()):
        _leave_accumulators(context)
        with suppress(PySparkException, Py4JError, OSError):
            context.stop()
        _stop_gateway()


@contextmanager
def open_server(url: str) -> "Iterator[SparkSession]":
    """A session of a Spark Connect server (sc://…), ended at the end. Raises ClusterError if it doesn't answer."""
    from pyspark.sql import SparkSession

    try:
        with _own_interrupts():
            session = SparkSession.builder.remote(url).appName("kseg").getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        raise ClusterError(f"Spark Connect doesn't answer: {message_of(error)}", url) from error
    try:
        with _quiet_python():
            yield session
    finally:
        with Uninterrupted(), _quiet_python(), suppress(PySparkException, OSError):
            session.stop()


def parallelism_of(session: "SparkSession") -> int:
    """Tasks that a Spark Connect server runs at once, as far as it says."""
    return int(session.conf.get("spark.default.parallelism", None) or os.cpu_count() or 1)


@contextmanager
def _own_variables() -> Iterator[None]:
    """Undoes at the end what Spark's start sets: a spark-submit from this process would take it for the user's wish."""
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
    """A home for Spark that has what its start needs; None if the user has given one.

    It lacks the zipped pyspark of Spark's own home, so that local workers take pyspark from where this process has it:
    each of them would compile that again, some three CPU seconds of a start.
    """
    if "SPARK_HOME" in os.environ:
        return None
    if archive is not None and archive.is_there:
        return archive.spark_home
    link_spark_home(scratch / "spark-home")
    return scratch / "spark-home"


def link_spark_home(home: Path) -> None:
    """Makes a home for Spark, of links into pyspark, unless it is there."""
    home.mkdir(exist_ok=True)
    for name in ("bin", "jars"):
        with suppress(FileExistsError):
            (home / name).symlink_to(Path(pyspark.__file__).parent / name)


def _quiet_log(scratch: Path) -> str:
    file = scratch / "log4j2.properties"
    file.write_text(LOG_SETTINGS, encoding="utf-8")
    return f"-Dlog4j2.configurationFile=file:{file}"


def _start(wanted: Mapping[str, str], home: Path | None, log: IO[bytes], *, verbose: bool) -> SparkContext:
    """Starts Spark with its output going to a file: the JVM keeps it so, this process has its own back."""
    try:
        with SafeChildren(), spark_home_at(home), _own_interrupts(), nullcontext() if verbose else _output_into(log):
            return SparkContext.getOrCreate(SparkConf().setAll([*wanted.items()]))
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        message = message_of(error)  # while its JVM is there
        with Uninterrupted(), _quiet_python():
            _stop_gateway()
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()[-LAST_LINES:]
        words = f"; it said: {' | '.join(lines)}" if lines else ""
        raise ClusterError(f"Spark doesn't start: {message}{words}") from error


@contextmanager
def spark_home_at(home: Path | None) -> Iterator[None]:
    """A context in which Spark is started from this home; None means as the environment says."""
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
    """Keeps Ctrl-C as it is: Spark would take it over."""
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
    """Drops what py4j logs, and its threads print, of a JVM that has gone or an answer that wasn't waited for."""
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
    """Lets the server of accumulators, of which kseg has none, end by itself: Spark would wait a second for it."""
    server = getattr(context, "_accumulatorServer", None)
    if server is None or isinstance(server.server_address, str):  # a socket in a file must be removed
        return
    del context._accumulatorServer
    server.handle_error = lambda *_: None  # the JVM hangs up
    threading.Thread(target=server.shutdown, name="kseg-accumulators", daemon=True).start()


def _stop_gateway() -> None:
    """Ends the JVM, so that the next context of this process gets the settings that it asks for."""
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
