"""A connection's bytes, plain or encrypted by TLS: requests that are read, answers and logs that are sent."""

import asyncio
import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from typing import Protocol, TypeVar

from kseg.serve.limits import ENCRYPTED_PIECE, HEARD_AT_ONCE, PIECE

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
