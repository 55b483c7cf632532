"""One client's connection: its requests in order, one at a time, and what goes back for each."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor
from time import monotonic

from kseg.errors import OpenError
from kseg.serve.groups.group_limits import GROUP_SECONDS
from kseg.serve.growth import Growth
from kseg.serve.limits import IDLE_SECONDS, LARGEST_REQUEST, PIECE, REQUEST_SECONDS, STALLED_SECONDS
from kseg.serve.request_answer import Answered, AnsweredLater, Piece, RefusedError, answer_request
from kseg.serve.served_cluster import ServedCluster
from kseg.serve.served_partition import StoredRecords
from kseg.system.regular_file import open_regular

_SIZE_BYTES = 4
Address = tuple[str, int]
"""Host and port."""


class Client:
    """A connection. Its next request is read when the one before is answered, so that a slow reader waits alone."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        served: ServedCluster,
        workers: Executor,
        growth: Growth,
        advertised: Address | None,
        note: Callable[[str], None],
    ) -> None:
        """Takes the connection, what is served, who works for it, and what is told to clients as the broker's address.

        `note` is called with a line for each request, and with why the connection is closed, if that is the client's
        doing.
        """
        self._reader, self._writer = reader, writer
        self._served, self._workers, self._growth = served, workers, growth
        peer, own = (writer.get_extra_info(name) or ("?", 0) for name in ("peername", "sockname"))
        self._address: Address = advertised or (own[0], own[1])
        self._name = address_text((peer[0], peer[1]))
        self._peer_host: str = peer[0]
        self._note = note

    async def answer_all(self) -> None:
        """Answers requests until the client leaves, or does what no client should."""
        try:
            while (frame := await self._next_frame()) is not None:
                started = monotonic()
                answered = await self._answer(frame, started)
                for piece in answered.pieces:
                    await self._send(piece)
                self._note(f"{self._name} {answered.line}; {(monotonic() - started) * 1000:.0f} ms")
        except RefusedError as error:
            self._note(f"{self._name} {error}: closed")
        except TimeoutError:
            self._note(f"{self._name} too slow, or idle: closed")
        except OpenError as error:
            self._note(f"{self._name} {error}: closed")
        except OSError:
            return  # the client has gone
        finally:
            self._writer.transport.abort()

    async def _next_frame(self) -> bytes | None:
        """The next request without its size; None if the client has closed the connection.

        Raises RefusedError if its size is beyond LARGEST_REQUEST.
        """
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                size = int.from_bytes(await self._reader.readexactly(_SIZE_BYTES), "big", signed=True)
            if not 0 < size <= LARGEST_REQUEST:
                raise RefusedError(
                    f"a request of {size} bytes, or no request of Kafka's; the limit is {LARGEST_REQUEST}"
                )
            async with asyncio.timeout(REQUEST_SECONDS):
                return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return None

    async def _answer(self, frame: bytes, started: float) -> Answered:
        """The answer to a request; one without records may wait until there are some."""
        answered = await self._work_on(frame, is_last_try=False)
        if answered.later is not None:
            return await self._answer_later(answered.later)
        while answered.wait_seconds:
            left = started + answered.wait_seconds - monotonic()
            if left > 0:
                await self._growth.wait(answered.awaited, left)
            answered = await self._work_on(frame, is_last_try=monotonic() - started >= answered.wait_seconds)
        return answered

    async def _answer_later(self, later: AnsweredLater) -> Answered:
        """The answer that waits for other clients, unless this one leaves before.

        Raises RefusedError then. Who waits makes time pass for all groups, so that no member waits for a silent one.
        """
        loop = asyncio.get_running_loop()
        outcome = asyncio.wrap_future(later.outcome)
        outcome.add_done_callback(lambda each: each.cancelled() or each.exception())  # which asyncio would log
        try:
            while not outcome.done():
                await asyncio.wait({outcome}, timeout=GROUP_SECONDS)
                if self._reader.at_eof():
                    raise RefusedError("left while it waited for others of its group")
                if self._served.groups.is_look_due:
                    await loop.run_in_executor(self._workers, self._served.groups.pass_time)
            return await loop.run_in_executor(self._workers, later.answer)
        finally:
            outcome.cancel()

    async def _work_on(self, frame: bytes, *, is_last_try: bool) -> Answered:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._workers,
            lambda: answer_request(
                frame, self._served, self._address, is_last_try=is_last_try, client_host=self._peer_host
            ),
        )

    async def _send(self, piece: Piece) -> None:
        if isinstance(piece, StoredRecords):
            await self._send_stored(piece)
            return
        self._writer.write(piece)
        async with asyncio.timeout(STALLED_SECONDS):
            await self._writer.drain()

    async def _send_stored(self, records: StoredRecords) -> None:
        """Sends ranges of a log without reading them: the system copies from the file to the socket.

        Raises OpenError if the log has gone or become shorter since the answer was planned.
        """
        loop = asyncio.get_running_loop()
        descriptor, _ = open_regular(records.path)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            for stored in records.ranges:
                for position in range(stored.position, stored.end, PIECE):
                    size = min(PIECE, stored.end - position)
                    async with asyncio.timeout(STALLED_SECONDS):
                        sent = await loop.sendfile(self._writer.transport, file, position, size)
                    if sent != size:
                        raise OpenError("has become shorter while it was sent", records.path)


def address_text(address: Address) -> str:
    """HOST:PORT, an IPv6 address in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
