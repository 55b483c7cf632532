"""A session that says nothing: Spark's own lines go to a file, which is shown if Spark can't start."""

import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from pathlib import Path
from typing import IO

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kseg.errors import KsegError
from kseg.spark.java import prepare_java
from kseg.system.interrupts import Uninterrupted
from kseg.system.safe_path import SAFE_PATH, SafeChildren
from kseg.system.scratch import scratch_directory

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
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}
QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For a JVM on this machine that only hands out work orders: it starts with two thirds of the CPU time."""
ONE_MACHINE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@contextmanager
def open_session(
    master: str | None, settings: Mapping[str, str] | None = None, *, remote: str | None = None, verbose: bool = False
) -> Iterator[SparkSession]:
    """A session, stopped at the end.

    Args:
        master: where Spark is to run; None where spark-submit has said it.
        settings: Spark's configuration.
        remote: URL of a Spark Connect server (sc://…), in place of a master.
        verbose: let Spark talk to stderr.

    Raises:
        UsageError: if there is no Java that can run Spark.
        KsegError: if Spark can't start; with its own last lines.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with scratch_directory() as scratch:
        if remote is not None:
            builder = SparkSession.builder.remote(remote)
        else:
            builder = _builder(master, settings or {}, scratch, verbose=verbose)
        with (scratch / "spark.err").open("w+b") as log:
            try:
                with SafeChildren(), _spark_home(master, scratch):
                    spark = _start(builder, None if verbose or remote else log)
            except (PySparkException, RuntimeError, OSError) as error:
                log.seek(0)
                lines = log.read().decode(errors="replace").splitlines()[-LAST_LINES:]
                raise KsegError(f"Spark doesn't start: {error}; it said: {' | '.join(lines)}") from error
            try:
                with nullcontext() if verbose else _quiet_python():
                    yield spark
            finally:
                stop_session(spark)


def stop_session(spark: SparkSession) -> None:
    """Ends a session and its JVM, also one that has ended already, or whose JVM was ended by the same signal."""
    with Uninterrupted(), _quiet_python(), redirect_stderr(io.StringIO()):
        with suppress(PySparkException, Py4JError, OSError):
            spark.stop()
        _stop_gateway()


def parallelism_of(spark: SparkSession) -> int:
    """Tasks that run at once."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return int(spark.conf.get("spark.default.parallelism", None) or os.cpu_count() or 1)
    return int(spark.sparkContext.defaultParallelism)


def _builder(master: str | None, settings: Mapping[str, str], scratch: Path, *, verbose: bool) -> SparkSession.Builder:
    builder = SparkSession.builder.appName("kseg")
    wanted = QUIET | {f"spark.executorEnv.{SAFE_PATH}": "1"}
    if master is not None:
        prepare_java(pyspark.__version__, scratch)
        builder = builder.master(master)
        if master.startswith("local"):
            wanted |= ONE_MACHINE
    if not verbose:
        file = scratch / "log4j2.properties"
        file.write_text(LOG_SETTINGS, encoding="utf-8")
        options = settings.get("spark.driver.extraJavaOptions", "")
        wanted["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile=file:{file} {options}".strip()
        settings = {name: value for name, value in settings.items() if name != "spark.driver.extraJavaOptions"}
    for name, value in (wanted | dict(settings)).items():
        builder = builder.config(name, value)
    return builder


@contextmanager
def _spark_home(master: str | None, scratch: Path) -> Iterator[None]:
    """Lets local workers take pyspark from where this process has it, and not from the archive in Spark's home.

    Each of them compiles that again: some three CPU seconds of a session's start.
    """
    if master is None or not master.startswith("local") or "SPARK_HOME" in os.environ:
        yield
        return
    package = Path(pyspark.__file__).parent
    home = scratch / "spark-home"
    home.mkdir()
    for name in ("bin", "jars"):
        (home / name).symlink_to(package / name)
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _start(builder: SparkSession.Builder, log: IO[bytes] | None) -> SparkSession:
    """Starts Spark with stderr going to a file: the JVM keeps it so, this process has its own back."""
    with _own_interrupts():
        if log is None:
            return builder.getOrCreate()
        with _stderr_into(log):
            return builder.getOrCreate()


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
def _stderr_into(log: IO[bytes]) -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


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


def _stop_gateway() -> None:
    """Ends the JVM, so that the next session of this process gets the settings that it asks for."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        with suppress(OSError):
            process.stdin.close()
        process.wait(30)
    SparkContext._gateway = SparkContext._jvm = None
