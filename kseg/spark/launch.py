"""Runs spark-submit for the export: what goes wrong is said in a line, and all that Spark says is kept in a file."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyspark

from kseg.errors import ClusterError, KsegError, UsageError
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.talk import talk
from kseg.spark.environment import ENVIRONMENT, PACKED, pack_environment
from kseg.spark.failures import DRIVER_STATUS, NO_RESOURCES, NOTES, cause_in, end_in
from kseg.spark.java import find_java, problem
from kseg.spark.submit import Cluster, submit_command, submit_environment
from kseg.system.interrupts import Uninterrupted
from kseg.system.scratch import scratch_directory, temporary_place

MOST_WARNINGS = 40
"""That no executor has come, one each `spark.starvation.timeout` (15 seconds): then the export is given up."""
SLOW_STARTS = 1
"""Of these warnings: executors that are started take longer than the first."""
MOST_READ = 4 << 20
"""Bytes of Spark's lines in which a cause is looked for, at their beginning and at their end."""
OWN = "kseg: "


def submit(cluster: Cluster, arguments: Sequence[str], *, verbose: bool) -> int:
    """Runs spark-submit; gives the exit status of the export. Its own lines go to stderr too if `verbose`.

    Raises:
        UsageError: there is no Java that can run Spark.
        ClusterError: Spark or the cluster failed; the message names a file with all that Spark said.
        KsegError: as well, if the driver on the cluster couldn't do what it was asked for.
    """
    wrong = problem(find_java(), pyspark.__version__)
    if wrong is not None:
        raise UsageError(wrong)
    with _working_directory(cluster) as directory:
        return _Submission(cluster, verbose=verbose).run(submit_command(cluster, arguments), directory)


@contextmanager
def _working_directory(cluster: Cluster) -> Iterator[str | None]:
    """Where spark-submit runs: with an archive, in a directory that has what is named relative to it; None is here."""
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

    In client mode Spark hands on what the driver says on stderr as standard output, so kseg's own lines are told apart
    by how they begin.
    """

    def __init__(self, cluster: Cluster, *, verbose: bool) -> None:
        self._cluster = cluster
        self._verbose = verbose
        self._noted: set[str] = set()
        self._warnings = 0
        self._is_log_named = False

    def run(self, command: Sequence[str], directory: str | None) -> int:
        """Runs it to its end, and gives the exit status. Raises ClusterError."""
        descriptor, name = tempfile.mkstemp(prefix="kseg-spark-submit-", suffix=".log", dir=temporary_place())
        log = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                status, own = self._run(command, directory, file)
            return self._judged(status, own, log)
        finally:
            if not self._is_log_named:
                log.unlink()

    def _run(self, command: Sequence[str], directory: str | None, log: IO[str]) -> tuple[int, list[str]]:
        """The exit status, and kseg's own lines of the driver."""
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
        """Keeps what Spark says, and says at once what the user should know."""
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

    def _judged(self, status: int, own: list[str], log: Path) -> int:
        """The exit status of the export. Raises ClusterError if it isn't the export that has failed."""
        said = _ends_of(log)
        of_driver = DRIVER_STATUS.findall(said)
        if of_driver and not self._cluster.drives_here:
            status = int(of_driver[-1])
        if self._warnings >= MOST_WARNINGS:
            raise self._error("no executor has come: no worker has the cores and the memory that are asked for", log)
        failed = end_in(said) if self._cluster.drives_here or not of_driver else None
        if status in (0, 1) and failed is None:
            talk(*own)
            return status
        cause = cause_in("\n".join([said, *own]), self._cluster.master)
        talk(*(own if cause is None else own[:-1]))
        if cause is None and own and failed is None and status != ClusterError.status:
            return status
        message = cause or failed or f"spark-submit ended with {status}"
        raise self._error(message, log, KsegError if of_driver and status == KsegError.status else ClusterError)

    def _error(self, message: str, log: Path, kind: type[KsegError] = ClusterError) -> KsegError:
        self._is_log_named = not self._verbose
        return kind(f"{message}; {log} has all that Spark said" if self._is_log_named else message)


def _ends_of(log: Path) -> str:
    """The beginning and the end of a text, or all of it."""
    size = log.stat().st_size
    with log.open("rb") as file:
        said = file.read(MOST_READ)
        if size > 2 * MOST_READ:
            file.seek(size - MOST_READ)
            said += b"\n"
        return (said + file.read()).decode(errors="replace")
