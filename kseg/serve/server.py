"""The server: its start and end, and the child command."""

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import NamedTuple

from kseg.errors import KsegError, UsageError, plural
from kseg.serve.client import Client
from kseg.serve.cluster import ServedCluster
from kseg.serve.connections import Figures, Growth, Security, ServerState, show_figures
from kseg.serve.turns import Room, Turns
from kseg.serve.values import (
    COLLECT_SECONDS,
    HEARD_AT_ONCE,
    RECEIVED_AT_ONCE,
    SWITCH_SECONDS,
    WORKERS,
    Limits,
    is_loopback,
)
from kseg.system.addresses import Address, address_text
from kseg.system.new_directory import scratch_directory
from kseg.system.signals import ENDING

_BACKLOG = 512
"""Connections that the system queues until they are accepted."""
_LET_IN_AT_ONCE = 1
"""Connections accepted at once, so that hundreds of new ones don't delay other clients."""
_OTHER_FILES = 64
"""Open files besides connections and logs that are being sent."""


class ServeError(KsegError):
    """A server can't listen at its address."""


class ServerTalk(NamedTuple):
    """Receivers of the messages of a server: `note` takes a line per request, `say` problems of the server."""

    note: Callable[[str], None]
    say: Callable[[str], None]


_SILENT = ServerTalk(lambda _: None, lambda _: None)


class Server:
    """A server that answers clients while it is entered (an asynchronous context).

    address: the address that it listens at. Answers to clients contain `advertised` or, if that is None, the
    address that they came to. figures: its current figures.
    """

    def __init__(
        self,
        served: ServedCluster,
        listen: Address,
        advertised: Address | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008  frozen
        security: Security = Security(),  # noqa: B008  frozen
        talk: ServerTalk = _SILENT,
    ) -> None:
        """Take the served cluster and the address.

        Args:
            served: topics and partitions.
            listen: host and port; port 0 is any free one.
            advertised: the address in answers to clients.
            limits: limits of clients.
            security: encryption and log-in.
            talk: receivers of messages.
        """
        self.address = listen
        self.figures = Figures()
        self._say = talk.say
        self._workers = ThreadPoolExecutor(WORKERS + 1, "kseg-serve")  # one checks whether logs have grown
        self._growth = Growth(self._workers)
        self._shared = ServerState(
            served=served,
            workers=self._workers,
            turns=Turns(self._workers),
            requests=Room(limits.request_bytes, limits.held_seconds, "a request"),
            answers=Room(limits.answer_bytes, limits.held_seconds, "an answer"),
            growth=self._growth,
            advertised=advertised,
            limits=limits,
            figures=self.figures,
            security=security,
            note=talk.note,
        )
        self._clients: dict[Client, asyncio.Task[None]] = {}
        self._most = _allowed_connections(limits.connections)
        self._has_refused = False

    async def __aenter__(self) -> "Server":
        """Listen. Raises ServeError if that fails."""
        asyncio.get_running_loop().set_exception_handler(self._report_exception)
        try:
            self._listening = await asyncio.start_server(
                self._let_in, *self.address, limit=HEARD_AT_ONCE, backlog=_LET_IN_AT_ONCE
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise ServeError(
                f"{address_text(self.address)}: kseg can't listen there: {reason}; use --listen 127.0.0.1:0"
                f" for a free port"
            ) from error
        for listening in self._listening.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_AT_ONCE)
            with socket.socket(fileno=os.dup(listening.fileno())) as same:
                same.listen(_BACKLOG)  # asyncio accepts as many at once as this backlog
        host, port, *_ = self._listening.sockets[0].getsockname()
        self.address = host, port
        return self

    async def __aexit__(self, *_: BaseException | type[BaseException] | TracebackType | None) -> None:
        """Close all connections."""
        self._listening.close()
        self._growth.stop()
        tasks = list(self._clients.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= self._most and not self._close_for_room():
            writer.transport.abort()
            if not self._has_refused:
                self._has_refused = True
                self._say(f"more than {plural(self._most, 'connection')} are open, so kseg closes new connections")
            return
        client = Client(reader, writer, self._shared)
        self._clients[client] = task = asyncio.create_task(client.answer_all())
        task.add_done_callback(partial(self._forget_client, client))

    def _forget_client(self, client: Client, task: asyncio.Task[None]) -> None:
        """Forget a client. Its unexpected exceptions are reported at once, not when its task is collected."""
        self._clients.pop(client, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say(f"a connection was closed: {error!r}")

    def _close_for_room(self) -> bool:
        """Close the most dispensable connection; return whether there was one. Source: ConnectionQuotas."""
        leaving = next((client for client in self._clients if client.last_heard is None), None) or self._longest_idle()
        if leaving is None:
            return False
        self._clients.pop(leaving)
        leaving.make_way("silent" if leaving.last_heard is None else "idle")
        return True

    def _longest_idle(self) -> Client | None:
        """Return the client that has been idle the longest, if for long enough."""
        heard = {client: client.last_heard or 0.0 for client in self._clients if client.is_answered}
        longest = min(heard, key=heard.__getitem__, default=None)
        if longest is None or monotonic() - heard[longest] < self._shared.limits.spared_seconds:
            return None
        return longest

    def _report_exception(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Report in a line what asyncio would log with a traceback, mostly too many open files."""
        error = context.get("exception")
        self._say(f"{context.get('message')}{'' if error is None else f': {error!r}'}")


def _allowed_connections(most: int) -> int:
    """Return the maximum number of connections, after raising the limit of open files if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * most + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = max(soft, wanted if hard == resource.RLIM_INFINITY else min(wanted, hard))
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
        return max(min(most, (soft - _OTHER_FILES) // 2), 1)
    return most


PLACEHOLDER = "{bootstrap}"
"""The placeholder of HOST:PORT in the command's arguments."""
_STATUS_OF_SIGNAL = 128


async def run_child(
    words: Sequence[str],
    settings: Mapping[str, str],
    directory: Path,
    on_signal: Callable[[Callable[[int], None]], None],
) -> int:
    """Run a command, and return its exit status: 128 plus the signal's number if a signal ended it.

    Args:
        words: the command and its arguments.
        settings: librdkafka's settings for the server, including its address.
        directory: a directory for the command's configuration.
        on_signal: receives the function that passes a signal on to the command.

    Raises:
        UsageError: the command can't be started.
    """
    configuration = directory / "kcat.conf"
    lines = (f"{name}={value}\n" for name, value in settings.items())
    configuration.write_text("".join(lines), encoding="utf-8")
    bootstrap = settings["bootstrap.servers"]
    environment = child_environment(os.environ, bootstrap, configuration)
    try:
        process = await asyncio.create_subprocess_exec(
            *(word.replace(PLACEHOLDER, bootstrap) for word in words), env=environment
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{words[0]}: can't be run: {reason}") from error

    def pass_on(number: int) -> None:
        if number != signal.SIGINT:  # a terminal sends it to both
            with suppress(ProcessLookupError):
                process.send_signal(number)

    on_signal(pass_on)
    status = await process.wait()
    return status if status >= 0 else _STATUS_OF_SIGNAL - status


def child_environment(own: Mapping[str, str], bootstrap: str, configuration: Path) -> dict[str, str]:
    """Return the command's environment: KSEG_BOOTSTRAP, and a configuration file that kcat reads by default."""
    return {**own, "KSEG_BOOTSTRAP": bootstrap, "KCAT_CONFIG": str(configuration)}


_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not listened at
"""Local addresses of servers that listen at all addresses."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The server's address, the advertised address, and its child command (without one it runs until a signal).

    `announce` receives the address, `note` a line per request, `say` messages, and `show` figures every second unless
    there is a command. `security` decides who may connect.
    """

    listen: Address
    advertised: Address | None
    command: Sequence[str]
    announce: Callable[[str], None]
    note: Callable[[str], None]
    say: Callable[[str], None]
    show: Callable[[str], None]
    security: Security

    def run(self, served: ServedCluster) -> int:
        """Run the server and return the exit status.

        Raises ServeError if the address can't be listened at, UsageError if the command can't be started.
        """
        if self.security.warning is not None and not is_loopback(self.listen[0]):
            self.say(f"{address_text(self.listen)}: {self.security.warning}")
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()
        gc.freeze()  # the served data stay: traversing them at each collection would delay clients
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)  # the same applies to large requests; see _collect_seldom
        try:
            return asyncio.run(self._run(served))
        finally:
            gc.set_threshold(young, middle, old)

    async def _run(self, served: ServedCluster) -> int:
        ended = asyncio.Event()
        talk = ServerTalk(self.note, self.say)
        _collect_seldom(asyncio.get_running_loop())
        async with Server(served, self.listen, self.advertised, security=self.security, talk=talk) as server:
            host, port = server.address
            bootstrap = address_text(self.advertised or (_HERE.get(host, host), port))
            with _signals() as signals:
                if not self.command:
                    signals.call = lambda _: ended.set()
                    self.announce(bootstrap)
                    showing = asyncio.create_task(show_figures(server.figures, self.show))
                    await ended.wait()
                    showing.cancel()
                    return 0
                of_security = self.security.client_settings(is_here=self.advertised is None)
                with scratch_directory() as directory:
                    settings = {"bootstrap.servers": bootstrap, **of_security}
                    return await run_child(self.command, settings, directory, signals.take)


_NEVER = 1 << 30
"""A threshold of Python's garbage collector that is never reached."""


def _collect_seldom(loop: asyncio.AbstractEventLoop) -> None:
    """Collect garbage at long intervals; Python's own collections would follow each large request."""
    gc.collect()
    loop.call_later(COLLECT_SECONDS, _collect_seldom, loop)


class _Signals:
    """A switchable target of the signals that ask the server to end."""

    def __init__(self) -> None:
        self.call: Callable[[int], None] = lambda _: None

    def come(self, number: int) -> None:
        """Call the target."""
        self.call(number)

    def take(self, call: Callable[[int], None]) -> None:
        """Set the target."""
        self.call = call


@contextmanager
def _signals() -> Iterator[_Signals]:
    """Take over the signals that ask the server to end, except for ignored ones."""
    loop = asyncio.get_running_loop()
    signals = _Signals()
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, known in before.items():
        if known is not signal.SIG_IGN:
            loop.add_signal_handler(number, signals.come, number)
    try:
        yield signals
    finally:
        for number, known in before.items():
            if known is not signal.SIG_IGN:
                loop.remove_signal_handler(number)
                signal.signal(number, known)
