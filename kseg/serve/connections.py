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
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from kseg.errors import KsegError, plural
from kseg.kernel.contract import MOST
from kseg.serve.cluster import ServedCluster
from kseg.serve.login import Logins
from kseg.serve.partition import ServedPartition
from kseg.serve.turns import Room, Turns
from kseg.serve.values import ENCRYPTED_PIECE, GROWTH_SECONDS, HEARD_AT_ONCE, LOOK_REST, PIECE, Limits
from kseg.system.addresses import Address
from kseg.system.tls import load_certificate, load_roots

if TYPE_CHECKING:
    import socket

_MOST_UNHEARD = 1 << 20
"""The most bytes that a rejected client may still be sending."""
T = TypeVar("T")


class Stream(Protocol):
    """A connection's bytes. piece: the number of the bytes of a log that are sent at once."""

    piece: int

    async def begin(self) -> None:
        """Finish the stream's start before the first request. Raises ssl.SSLError if the client is rejected."""

    async def read_exactly(self, size: int) -> bytes:
        """Read exactly `size` bytes. Raises asyncio.IncompleteReadError if the connection ends before."""

    async def write(self, data: bytes) -> None:
        """Send bytes; return when the client has taken most of the sent bytes."""

    async def send_stored(self, file: FileIO, position: int, size: int) -> int:
        """Send bytes of a file; return their number, which is lower if the file ends before."""


class PlainStream:
    """Unencrypted bytes. The system copies stored bytes from the file to the socket; kseg doesn't read them."""

    piece = PIECE

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._socket: socket.socket = writer.get_extra_info("socket")

    async def begin(self) -> None:
        """Do nothing."""

    async def read_exactly(self, size: int) -> bytes:
        """See Stream."""
        return await self._reader.readexactly(size)

    async def write(self, data: bytes) -> None:
        """See Stream."""
        self._writer.write(data)
        await self._writer.drain()

    async def send_stored(self, file: FileIO, position: int, size: int) -> int:
        """See Stream."""
        sent = self._send_at_once(file, position, size)
        if sent < size:
            rest = position + sent, size - sent
            sent += await asyncio.get_running_loop().sendfile(self._writer.transport, file, *rest)
        return sent

    def _send_at_once(self, file: FileIO, position: int, size: int) -> int:
        """Send the bytes for which the system has room now; return their number. asyncio reports errors afterwards.

        asyncio's own way takes several more system calls.
        """
        transport = self._writer.transport
        if transport.is_closing() or transport.get_write_buffer_size():
            return 0
        try:
            return os.sendfile(self._socket.fileno(), file.fileno(), position, size)
        except OSError:
            return 0


class TlsStream:
    """Encrypted bytes. Threads of the event loop read and encrypt stored bytes.

    Does not use asyncio's TLS, which doesn't tell clients that their certificate is rejected.
    """

    piece = ENCRYPTED_PIECE

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
        self._reader, self._writer = reader, writer
        self._incoming, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._to_send, server_side=True)
        self._plain = bytearray()

    async def begin(self) -> None:
        """Shake hands.

        Raises ssl.SSLError if this fails or the client is rejected; the client knows the reason then.
        """
        try:
            await self._step(self._tls.do_handshake)
        except ssl.SSLError:
            await self._flush()
            raise

    async def read_exactly(self, size: int) -> bytes:
        """Read as described in Stream. Raises ssl.SSLError for bytes that aren't TLS."""
        while len(self._plain) < size:
            piece = b""  # also at a regular end
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
        """Run a step that may need more of the bytes of the client, and send its output."""
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                await self._flush()
                received = await self._reader.read(HEARD_AT_ONCE)
                if received:
                    self._incoming.write(received)
                else:
                    self._incoming.write_eof()
            else:
                await self._flush()
                return done

    async def _flush(self) -> None:
        if self._to_send.pending:
            self._writer.write(self._to_send.read())
            await self._writer.drain()


async def until_closed(reader: asyncio.StreamReader, seconds: float) -> None:
    """Wait until a rejected client closes the connection: some clients don't read a last answer before its end."""
    with suppress(OSError):
        async with asyncio.timeout(seconds):
            unheard = 0
            while unheard < _MOST_UNHEARD and (piece := await reader.read(HEARD_AT_ONCE)):
                unheard += len(piece)


@dataclass(eq=False, slots=True)
class _Awaiting:
    """A client that waits until one of the given partitions grows beyond its end so far.

    is_new: no check has run since it came.
    """

    ends: Mapping[ServedPartition, int]
    grown: asyncio.Future[None]
    is_new: bool = True


class Growth:
    """Clients that wait for partitions to grow. Without such clients nothing is checked."""

    def __init__(self, workers: Executor) -> None:
        """Take the threads that check files and find the clients whose partitions have grown."""
        self._workers = workers
        self._awaiting: set[_Awaiting] = set()
        self._ends: Mapping[ServedPartition, int] = {}
        self._watch: asyncio.Task[None] | None = None

    async def wait(self, ends: Mapping[ServedPartition, int], seconds: float) -> None:
        """Wait until one of the given partitions grows beyond its end so far, or until the time is over."""
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
        """Check the awaited partitions while any client waits, less often if a check takes long."""
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
        """Stop checking."""
        if self._watch is not None:
            self._watch.cancel()


def _look(
    awaiting: Sequence[_Awaiting], before: Mapping[ServedPartition, int]
) -> tuple[list[_Awaiting], Mapping[ServedPartition, int]]:
    """Return the clients whose partitions have grown, and the ends of all; `before`: the ends at the previous check."""
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
    """The number of connections, the bytes of records sent so far, and the log of the latest ones."""

    clients: int = 0
    sent_bytes: int = 0
    reading: Path | None = None

    def line(self, bytes_per_second: float) -> str:
        """Return the figures as a line."""
        clients = plural(self.clients, "client")
        rate = f"{bytes_per_second / _MIB:.1f} MiB/s"
        if not bytes_per_second or self.reading is None:
            return f"{clients}, {rate}"
        return f"{clients}, {rate}, {self.reading.parent.name}"


async def show_figures(figures: Figures, show: Callable[[str], None]) -> None:
    """Show a line of figures every second, without end."""
    before, sent = monotonic(), figures.sent_bytes
    while True:
        await asyncio.sleep(SHOWN_EVERY_SECONDS)
        now = monotonic()
        show(figures.line((figures.sent_bytes - sent) / (now - before)))
        before, sent = now, figures.sent_bytes


class ServerTls(NamedTuple):
    """The settings of encrypted connections.

    root: a file with the root of the server's certificate, as far as it is here; None if clients know the root.
    asks_certificate: clients must show a certificate.
    """

    context: ssl.SSLContext
    root: Path | None
    asks_certificate: bool


def server_tls(certificate: Path, key: Path | None = None, clients: Path | None = None) -> ServerTls:
    """Return a TLS context for TLS 1.2 or later.

    Args:
        certificate: a PEM file with the server's certificate, and those between it and its root.
        key: a PEM file with its private key; None if it is in the same file.
        clients: a PEM file with the roots of clients' certificates; None if clients need none.

    Raises:
        OpenError: a file can't be opened.
        UsageError: a file has the wrong contents.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, certificate, key or certificate)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        load_roots(context, clients)
    root = next((path for path in (certificate, clients) if path is not None and _has_root(path)), None)
    return ServerTls(context, root, clients is not None)


def _has_root(path: Path) -> bool:
    """Return True if one of a file's certificates is its own issuer."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(path)
    return any(each.get("subject") == each.get("issuer") for each in trusting.get_ca_certs())


@dataclass(frozen=True, slots=True)
class Security:
    """TLS and authentication settings. Both are off by default."""

    tls: ServerTls | None = None
    logins: Logins | None = None

    @property
    def warning(self) -> str | None:
        """The risk from others that reach the server, with its cause, or None if the server is protected."""
        is_open = self.logins is None and not (self.tls is not None and self.tls.asks_certificate)
        if is_open:
            why = "kseg asks for no password" + (", and encrypts nothing" if self.tls is None else "")
            return f"anyone who reaches this address can read all served records: {why}"
        return (
            None
            if self.tls
            else ("anyone on the network path to this address can read all records, since nothing is encrypted")
        )

    def client_settings(self, *, is_here: bool) -> dict[str, str]:
        """Return librdkafka's settings for a client.

        is_here: the client connects to an address of this machine. Few certificates have it, so it isn't verified.
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
class ServerState:
    """The state that connections share: the served cluster, workers, and limits.

    advertised: the address in answers to clients; None for the address that they came to. turns: the
    workers' schedule. requests, answers: the memory for large ones. figures: the current figures. note: receives a
    line per request, and the reason if a client causes the end of its connection.
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
