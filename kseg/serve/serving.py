"""A server from its start to its end: until a signal comes, or until the command that it runs for has ended."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kseg.serve.address import Address, address_text, is_loopback
from kseg.serve.command_beside import run_beside
from kseg.serve.figures import show_figures
from kseg.serve.security import Security
from kseg.serve.served_cluster import ServedCluster
from kseg.serve.server import Server, ServerTalk
from kseg.system.interrupts import ENDING
from kseg.system.scratch import scratch_directory

_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not listened at
"""Where a server is reached from this machine if it listens at all addresses."""


@dataclass(frozen=True, slots=True)
class Serving:
    """Where a server listens, what clients are told instead, and the command that it runs for (none: until a signal).

    `announce` is called with the address, `note` with a line for each request, `say` with what should be known, `show`
    with figures every second unless there is a command. Only those connect whom `security` lets in.
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
        """Serves; gives the exit status: the command's, or 0.

        Raises ServeError if nobody can listen there, UsageError if the command can't be started.
        """
        if self.security.warning is not None and not is_loopback(self.listen[0]):
            self.say(f"{address_text(self.listen)}: {self.security.warning}")
        return asyncio.run(self._run(served))

    async def _run(self, served: ServedCluster) -> int:
        ended = asyncio.Event()
        talk = ServerTalk(self.note, self.say)
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
                    return await run_beside(self.command, settings, directory, signals.take)


class _Signals:
    """What is called with the number of a signal that asks for the end."""

    def __init__(self) -> None:
        self.call: Callable[[int], None] = lambda _: None

    def come(self, number: int) -> None:
        """Calls it."""
        self.call(number)

    def take(self, call: Callable[[int], None]) -> None:
        """Calls something else from now on."""
        self.call = call


@contextmanager
def _signals() -> Iterator[_Signals]:
    """Lets the event loop have the signals that ask for the end, but those that are ignored."""
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
