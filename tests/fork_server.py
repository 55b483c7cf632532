"""Processes that start without an interpreter's start: a server that has imported kseg forks one for each call.

The server is a single-threaded process of the session, and ends with it. Programs run as by `python -c`: a process gets
its own arguments, directory, environment, standard streams, limits and session, and signals have their defaults.
Variables that Python itself reads at its start have no effect.
"""

import array
import atexit
import functools
import gc
import os
import pickle
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

KSEG = "import sys; from kseg.__main__ import run; sys.exit(run())"
"""Program of the script `kseg`."""
ENDING = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
_NUMBER = struct.Struct("i")
_STREAMS = 3
_EXPORT = "kseg.export"
_HEAVY = ("kseg.arrow", "kseg.browse", _EXPORT, "kseg.query", "kseg.spark")
"""Packages whose modules import libraries that take memory and start threads."""


class _Request(NamedTuple):
    """Request to run a program in a forked process."""

    program: str
    arguments: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    limits: Mapping[int, int]


class Forked:
    """A process of the server, with the attributes of `subprocess.Popen`; its group has its number."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.pid = self._number()
        self.returncode: int | None = None

    def poll(self, seconds: float = 0) -> int | None:
        """Return the exit status, if the process has ended or ends within some time."""
        if self.returncode is None and select.select([self._connection], [], [], seconds)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """Return the exit status, negative for a signal."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(self._number())
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it still exists."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill_group(self) -> None:
        """End the process, and the processes that it started, also if it has ended before them."""
        with suppress(ProcessLookupError, PermissionError):  # macOS refuses it for a group of ended processes
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def _number(self) -> int:
        received = self._connection.recv(_NUMBER.size, socket.MSG_WAITALL)
        assert len(received) == _NUMBER.size, "the fork server has ended"
        number: int = _NUMBER.unpack(received)[0]
        return number


@contextmanager
def fork_process(
    arguments: Sequence[str],
    directory: Path,
    streams: tuple[int, int, int],
    *,
    program: str = KSEG,
    environment: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
    with_arrow: bool = False,
) -> Iterator[Forked]:
    """Run a process with the descriptors of stdin, stdout and stderr; kill it if it still runs at the end.

    with_arrow: pyarrow and the exports are imported too, which takes much memory.
    """
    whole = dict(os.environ if environment is None else environment)
    request = _Request(program, list(arguments), str(directory), whole, dict(limits or {}))
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            descriptors = array.array("i", [theirs.fileno(), *streams])
            _server(with_arrow).sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        ours.sendall(pickle.dumps(request))
        ours.shutdown(socket.SHUT_WR)
        process = Forked(ours)
        try:
            yield process
        finally:
            process.kill_group()


@functools.cache
def _server(with_arrow: bool) -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno()), *([_EXPORT] if with_arrow else ())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def stop() -> None:
        ours.close()
        server.wait()

    atexit.register(stop)
    return ours


# --- the server ------------------------------------------------------------------------------------------------------


def _serve(requests: socket.socket) -> socket.socket | None:
    """Fork until the session has ended in any way; then end all remaining processes.

    Returns in each new process, with the connection for the request.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _report_ended(running)
        if requests.fileno() in ready:
            content, descriptors = _receive(requests)
            if not content:
                _kill(running)
                return None
            process = os.fork()
            if not process:
                for each in (requests, *running.values()):
                    each.close()
                os.close(woken)
                os.close(wake)
                return _detach(*descriptors)
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            running[process] = socket.socket(fileno=descriptors[0])


def _receive(requests: socket.socket) -> tuple[bytes, list[int]]:
    try:
        content, descriptors, _, _ = socket.recv_fds(requests, 1, 1 + _STREAMS)
    except ConnectionError:
        return b"", []
    return content, descriptors


def _kill(processes: Iterable[int]) -> None:
    """End processes that have not been waited for, and their groups, which may not exist yet."""
    for process in processes:
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(process, signal.SIGKILL)


def _report_ended(running: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            process, status = ended
            with running.pop(process) as connection, suppress(OSError):  # the client may have closed it
                connection.send(_NUMBER.pack(status))


def _detach(connection: int, *streams: int) -> socket.socket:
    """Return the connection of a new process with its own session and streams, after it has sent its number."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    told = socket.socket(fileno=connection)
    try:
        told.send(_NUMBER.pack(os.getpid()))  # no earlier: the receiver may kill the group
    except OSError:
        os._exit(1)  # the client has closed the connection
    return told


def _request(connection: socket.socket) -> _Request:
    with connection, connection.makefile("rb") as file:
        return _Request(*pickle.load(file))


def _become(request: _Request) -> None:
    """Reset this process to the state of a fresh interpreter."""
    for number in ENDING:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    sys.argv = ["kseg" if request.program == KSEG else "-c", *request.arguments]
    # Like Python's own, which stay open when kseg replaces them.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    for limit, value in request.limits.items():
        resource.setrlimit(limit, (value, value))


def _import_kseg(wanted: Sequence[str]) -> None:
    """Import the modules of commands, including late imports.

    Unwanted packages that take much memory or start threads are skipped.
    """
    import pkgutil
    from importlib import import_module

    import kseg

    for module in pkgutil.walk_packages(kseg.__path__, "kseg.", onerror=lambda _: None):
        if not module.name.startswith(_HEAVY) or module.name.startswith(tuple(wanted)):
            with suppress(ImportError):
                import_module(module.name)


def _run(program: str) -> None:
    """Run a program as the main module, and end the process without cleaning up, which would take long."""
    main = sys.modules["__main__"] = ModuleType("__main__")  # spawned processes would import this file
    status = 0
    try:
        exec(compile(program, "<string>", "exec"), main.__dict__)
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        status = end.code
    if threading.active_count() == 1:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _main() -> None:
    _import_kseg(sys.argv[2:])
    gc.freeze()  # keeps the collector from touching them, so that memory stays shared
    connection = _serve(socket.socket(fileno=int(sys.argv[1])))
    if connection is not None:
        request = _request(connection)
        _become(request)
        _run(request.program)


if __name__ == "__main__":
    _main()
