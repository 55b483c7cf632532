"""The server: listens, lets clients in up to a limit, and ends when it is asked to."""

import asyncio
import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import monotonic
from types import TracebackType
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.serve.address import Address, address_text
from kseg.serve.client import Client
from kseg.serve.figures import Figures
from kseg.serve.growth import Growth
from kseg.serve.limits import HEARD_AT_ONCE, WORKERS, Limits
from kseg.serve.security import Security
from kseg.serve.served_cluster import ServedCluster
from kseg.serve.shared import Shared

_BACKLOG = 512
_OTHER_FILES = 64
"""Open files besides connections and the logs that are being sent."""


class ServeError(KsegError):
    """An address can't be listened at."""


class ServerTalk(NamedTuple):
    """What a server tells: `note` takes a line for each request, `say` what goes wrong on the server's side."""

    note: Callable[[str], None]
    say: Callable[[str], None]


_SILENT = ServerTalk(lambda _: None, lambda _: None)


class Server:
    """Answers clients while it is entered (an asynchronous context).

    address: where it listens. Clients are told `advertised` or, if that is None, the address that they came to.
    figures: what it is doing right now.
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
        """Takes what is served, and where.

        Args:
            served: topics and partitions.
            listen: host and port; port 0 is any free one.
            advertised: what clients are told to connect to.
            limits: what clients may take.
            security: who may connect, and how.
            talk: what takes what it tells.
        """
        self.address = listen
        self.figures = Figures()
        self._say = talk.say
        self._workers = ThreadPoolExecutor(WORKERS, "kseg-serve")
        self._growth = Growth(self._workers)
        self._shared = Shared(
            served=served,
            workers=self._workers,
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
        """Listens. Raises ServeError if that can't be done."""
        asyncio.get_running_loop().set_exception_handler(self._tell_exception)
        try:
            self._listening = await asyncio.start_server(
                self._let_in, *self.address, limit=HEARD_AT_ONCE, backlog=_BACKLOG
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise ServeError(
                f"{address_text(self.address)}: can't be listened at: {reason}; --listen 127.0.0.1:0 takes a free port"
            ) from error
        host, port, *_ = self._listening.sockets[0].getsockname()
        self.address = host, port
        return self

    async def __aexit__(self, *_: BaseException | type[BaseException] | TracebackType | None) -> None:
        """Closes all connections."""
        self._listening.close()
        self._growth.stop()
        tasks = list(self._clients.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= self._most and not self._made_room():
            writer.transport.abort()
            if not self._has_refused:
                self._has_refused = True
                self._say(f"more than {self._most} connections at once: further ones are closed")
            return
        client = Client(reader, writer, self._shared)
        self._clients[client] = task = asyncio.create_task(client.answer_all())
        task.add_done_callback(partial(self._let_out, client))

    def _let_out(self, client: Client, task: asyncio.Task[None]) -> None:
        """Forgets a client. What ended it unexpectedly is said at once, not when the task is collected."""
        self._clients.pop(client, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say(f"a connection was closed: {error!r}")

    def _made_room(self) -> bool:
        """Closes the connection that can best be done without; whether there was one. Source: ConnectionQuotas."""
        leaving = next((client for client in self._clients if client.last_heard is None), None) or self._longest_idle()
        if leaving is None:
            return False
        task = self._clients.pop(leaving)
        leaving.make_way()
        task.cancel()
        return True

    def _longest_idle(self) -> Client | None:
        """Who has asked for nothing for the longest time, and for long enough."""
        heard = {client: client.last_heard or 0.0 for client in self._clients if client.is_answered}
        longest = min(heard, key=heard.__getitem__, default=None)
        if longest is None or monotonic() - heard[longest] < self._shared.limits.spared_seconds:
            return None
        return longest

    def _tell_exception(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Says in a line what asyncio would log with a traceback: mostly a system that is out of files."""
        error = context.get("exception")
        self._say(f"{context.get('message')}{'' if error is None else f': {error!r}'}")


def _allowed_connections(most: int) -> int:
    """So many connections, or what the limit of open files allows; it is raised as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * most + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = max(soft, wanted if hard == resource.RLIM_INFINITY else min(wanted, hard))
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
        return max(min(most, (soft - _OTHER_FILES) // 2), 1)
    return most
