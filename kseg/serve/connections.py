"""Connections: shared state, streams, TLS, delayed fetches, and statistics."""

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from time import monotonic
from typing import NamedTuple, Protocol, TypeVar

from kseg.errors import KsegError, UsageError, counted
from kseg.kernel.contract import MOST
from kseg.serve.cluster import ServedCluster
from kseg.serve.login import Logins
from kseg.serve.partition import ServedPartition
from kseg.serve.turns import Room, Turns
from kseg.serve.values import ENCRYPTED_PIECE, GROWTH_SECONDS, HEARD_AT_ONCE, LOOK_REST, PIECE, Address, Limits
from kseg.system.files import read_small

_MOST_UNHEARD = 1 << 20
"""Bytes that such a client may still be sending."""
T = TypeVar("T")


class Stream(Protocol):
    """A connection's bytes. piece: bytes of a log that are sent at once."""

    piece: int

    async def begin(self) -> None:
        """Does what comes before the first request. Raises ssl.SSLError if the client is to be sent away."""

    async def read_exactly(self, size: int) -> bytes:
        """So many bytes. Raises asyncio.IncompleteReadError if the connection ends before."""

    async def write(self, data: bytes) -> None:
        """Sends bytes; ends when the client has taken most of what it was sent."""

    async def send_stored(self, file: FileIO, position: int, size: int) -> int:
        """Sends bytes of a file, and gives how many: fewer if it ends before."""


class PlainStream:
    """The bytes as they are: what is stored goes from the file to the socket by the system, and isn't read."""

    piece = PIECE

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def begin(self) -> None:
        """Nothing comes before the first request."""

    async def read_exactly(self, size: int) -> bytes:
        """See Stream."""
        return await self._reader.readexactly(size)

    async def write(self, data: bytes) -> None:
        """See Stream."""
        self._writer.write(data)
        await self._writer.drain()

    async def send_stored(self, file: FileIO, position: int, size: int) -> int:
        """See Stream."""
        return await asyncio.get_running_loop().sendfile(self._writer.transport, file, position, size)


class TlsStream:
    """The same encrypted. What is stored is read in the event loop's own threads, and encrypted there.

    Not asyncio's own TLS: when that refuses a client's certificate, the client isn't told.
    """

    piece = ENCRYPTED_PIECE

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
        self._reader, self._writer = reader, writer
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_side=True)
        self._plain = bytearray()

    async def begin(self) -> None:
        """Shakes hands. Raises ssl.SSLError if the client can't or may not; it has been told why."""
        try:
            await self._step(self._tls.do_handshake)
        except ssl.SSLError:
            await self._flush()
            raise

    async def read_exactly(self, size: int) -> bytes:
        """See Stream. Raises ssl.SSLError for what isn't TLS."""
        while len(self._plain) < size:
            piece = b""  # also at an end in order
            with suppress(ssl.SSLZeroReturnError, ssl.SSLEOFError):
                piece = await self._step(lambda: self._tls.read(HEARD_AT_ONCE))
            if not piece:
                raise asyncio.IncompleteReadError(bytes(self._plain), size)
            self._plain += piece
        taken = bytes(self._plain[:size])
        del self._plain[:size]
        return taken

    async def write(self, data: bytes) -> None:
        """See Stream."""
        view = memoryview(data)
        for start in range(0, len(data), ENCRYPTED_PIECE):
            part = view[start : start + ENCRYPTED_PIECE]
            await self._step(lambda part=part: self._tls.write(part))  # type: ignore[misc]

    async def send_stored(self, file: FileIO, position: int, size: int) -> int:
        """See Stream."""
        piece = await asyncio.to_thread(os.pread, file.fileno(), size, position)
        await self.write(piece)
        return len(piece)

    async def _step(self, step: Callable[[], T]) -> T:
        """Does something that may need more of the client's bytes, and sends what comes of it."""
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                await self._flush()
                received = await self._reader.read(HEARD_AT_ONCE)
                if received:
                    self._received.write(received)
                else:
                    self._received.write_eof()
            else:
                await self._flush()
                return done

    async def _flush(self) -> None:
        if self._to_send.pending:
            self._writer.write(self._to_send.read())
            await self._writer.drain()


async def until_closed(reader: asyncio.StreamReader, seconds: float) -> None:
    """Waits until a client that is sent away has gone by itself: some don't read a last answer before the end."""
    with suppress(OSError):
        async with asyncio.timeout(seconds):
            unheard = 0
            while unheard < _MOST_UNHEARD and (piece := await reader.read(HEARD_AT_ONCE)):
                unheard += len(piece)


@dataclass(eq=False, slots=True)
class _Awaiting:
    """A client that waits until one of some partitions goes on after its end so far.

    is_new: nobody has looked since it came.
    """

    ends: Mapping[ServedPartition, int]
    grown: asyncio.Future[None]
    is_new: bool = True


class Growth:
    """Who waits for partitions to grow. While nobody does, nobody looks."""

    def __init__(self, workers: Executor) -> None:
        """Takes the threads that look at files, and find who waited for what has grown."""
        self._workers = workers
        self._awaiting: set[_Awaiting] = set()
        self._ends: Mapping[ServedPartition, int] = {}
        self._watch: asyncio.Task[None] | None = None

    async def wait(self, ends: Mapping[ServedPartition, int], seconds: float) -> None:
        """Waits until one of some partitions goes on after its end so far, or for so long."""
        awaiting = _Awaiting(ends, asyncio.get_running_loop().create_future())
        self._awaiting.add(awaiting)
        if self._watch is None:
            self._watch = asyncio.create_task(self._look_on())
        try:
            async with asyncio.timeout(seconds):
                await awaiting.grown
        except TimeoutError:
            return
        finally:
            self._awaiting.discard(awaiting)

    async def _look_on(self) -> None:
        """Looks at the partitions that somebody waits for, until nobody does; seldom if a look takes long."""
        loop, took = asyncio.get_running_loop(), 0.0
        while self._awaiting:
            await asyncio.sleep(max(GROWTH_SECONDS, LOOK_REST * took))
            started = monotonic()
            served, self._ends = await loop.run_in_executor(self._workers, _look, list(self._awaiting), self._ends)
            took = monotonic() - started
            for each in served:
                if not each.grown.done():
                    each.grown.set_result(None)
        self._watch = None
        self._ends = {}

    def stop(self) -> None:
        """Looks no longer."""
        if self._watch is not None:
            self._watch.cancel()


def _look(
    awaiting: Sequence[_Awaiting], before: Mapping[ServedPartition, int]
) -> tuple[list[_Awaiting], Mapping[ServedPartition, int]]:
    """Who has waited for partitions that have grown, and the ends of all; `before`: those of the look before."""
    ends: dict[ServedPartition, int] = {}
    for partition in {partition for each in awaiting for partition in each.ends}:
        with suppress(KsegError):
            ends[partition] = partition.offsets().high_watermark
    changed = {partition: end for partition, end in ends.items() if end != before.get(partition)}
    served = []
    for each in awaiting:
        looked_at = each.ends if each.is_new else changed
        each.is_new = False
        if any(ends.get(partition, 0) > each.ends.get(partition, MOST) for partition in looked_at):
            served.append(each)
    return served, ends


SHOWN_EVERY_SECONDS = 1.0
_MIB = 1 << 20


@dataclass(slots=True)
class Figures:
    """Connections now, bytes of records sent so far, and the directory that the last ones came from."""

    clients: int = 0
    sent_bytes: int = 0
    reading: str = ""

    def line(self, bytes_per_second: float) -> str:
        """The figures in a line."""
        clients = counted(self.clients, "client")
        rate = f"{bytes_per_second / _MIB:.1f} MiB/s"
        return f"{clients}, {rate}, {self.reading}" if bytes_per_second else f"{clients}, {rate}"


async def show_figures(figures: Figures, show: Callable[[str], None]) -> None:
    """Shows a line of figures every second, for ever."""
    before, sent = monotonic(), figures.sent_bytes
    while True:
        await asyncio.sleep(SHOWN_EVERY_SECONDS)
        now = monotonic()
        show(figures.line((figures.sent_bytes - sent) / (now - before)))
        before, sent = now, figures.sent_bytes


LARGEST_PEM = 1 << 20
"""Bytes of a file with certificates or a key."""


class ServerTls(NamedTuple):
    """What connections are encrypted with.

    root: a file with the root that the server's certificate goes back to, as far as it is here; None for one that
    clients are taken to know. asks_certificate: clients must show one of their own.
    """

    context: ssl.SSLContext
    root: Path | None
    asks_certificate: bool


def server_tls(certificate: Path, key: Path | None = None, clients: Path | None = None) -> ServerTls:
    """TLS from 1.2 on.

    Args:
        certificate: a PEM file with the server's certificate, and those between it and its root.
        key: a PEM file with its private key; None: it is in the same file.
        clients: a PEM file with the roots of clients' certificates; None: clients need none.

    Raises:
        OpenError: a file can't be opened.
        UsageError: a file isn't what it should be.
    """
    for path in (certificate, key, clients):
        if path is not None:
            read_small(path, LARGEST_PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=lambda: _refuse_passphrase(key or certificate))
    except ssl.SSLError as error:
        raise UsageError(f"{certificate}: no certificate with its private key in PEM: {tls_reason(error)}") from error
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(clients)
        except ssl.SSLError as error:
            raise UsageError(f"{clients}: no certificates in PEM: {tls_reason(error)}") from error
    root = next((path for path in (certificate, clients) if path is not None and _has_root(path)), None)
    return ServerTls(context, root, clients is not None)


def _refuse_passphrase(path: Path) -> str:
    raise UsageError(f"{path}: its key has a passphrase; `openssl pkey -in {path}` writes it without one")


def _has_root(path: Path) -> bool:
    """Whether one of a file's certificates is its own issuer."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(path)
    return any(each.get("subject") == each.get("issuer") for each in trusting.get_ca_certs())


def tls_reason(error: ssl.SSLError) -> str:
    """What OpenSSL found wrong, in a few words."""
    return (error.reason or str(error)).replace("_", " ").lower()


@dataclass(frozen=True, slots=True)
class Security:
    """How connections are encrypted, and who must log in; by default they aren't, and nobody."""

    tls: ServerTls | None = None
    logins: Logins | None = None

    @property
    def warning(self) -> str | None:
        """What others can do if they reach the server, and why; None if nothing is missing."""
        is_open = self.logins is None and not (self.tls is not None and self.tls.asks_certificate)
        if is_open:
            why = "nobody is asked for a password" + (", and nothing is encrypted" if self.tls is None else "")
            return f"whoever reaches this address reads all that is served: {why}"
        return None if self.tls else "whoever listens on the way to this address reads along: nothing is encrypted"

    def client_settings(self, *, is_here: bool) -> dict[str, str]:
        """Librdkafka's settings for who connects.

        is_here: to an address of this machine, which is in few certificates: then it isn't looked for in there.
        """
        if self.tls is None and self.logins is None:
            return {}
        encryption = "plaintext" if self.tls is None else "ssl"
        settings = {"security.protocol": encryption if self.logins is None else f"sasl_{encryption}"}
        if self.tls is not None and self.tls.root is not None:
            settings["ssl.ca.location"] = str(self.tls.root.resolve())
        if self.tls is not None and is_here:
            settings["ssl.endpoint.identification.algorithm"] = "none"
        return settings | ({} if self.logins is None else self.logins.client_settings())


@dataclass(frozen=True, slots=True)
class Shared:
    """What is served, who works for clients, and what they may take.

    advertised: what clients are told to connect to; None: the address that they came to.
    turns: who works when. requests, answers: the memory that large ones take.
    figures: what clients get right now.
    note: called with a line for each request, and with why a connection is closed, if that is the client's doing.
    """

    served: ServedCluster
    workers: Executor
    turns: Turns
    requests: Room
    answers: Room
    growth: Growth
    advertised: Address | None
    limits: Limits
    figures: Figures
    security: Security
    note: Callable[[str], None]
