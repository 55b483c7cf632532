"""A client's connection: reads its requests one at a time, and sends their answers in order."""

import asyncio
import errno
import os
import ssl
from collections.abc import Callable
from io import FileIO
from time import monotonic

from kseg.errors import KsegError, OpenError, plural, quote
from kseg.protocol.messages import SIZE_BYTES
from kseg.serve.answer import Answered, AnsweredLater, Asking, Piece, RefusedError, answer_request
from kseg.serve.connections import PlainStream, ServerState, Stream, TlsStream, until_closed
from kseg.serve.deadline import Deadline
from kseg.serve.fetch_batches import StoredRange
from kseg.serve.login import Login, Logins
from kseg.serve.stored_records import StoredRecords, open_same, stored_log
from kseg.serve.turns import Steps, Usage
from kseg.serve.values import (
    AWAITED_BYTES,
    ENCRYPTED_PIECE,
    GROUP_SECONDS,
    KEPT_BACK,
    LARGEST_LOGIN_REQUEST,
    LARGEST_REQUEST,
    SMALL_ANSWER,
    SMALL_REQUEST,
)
from kseg.system.addresses import Address, address_text
from kseg.system.placed_path import RangedBytes
from kseg.system.tls import tls_reason

_DISK_ERRORS = (errno.EIO, errno.ESTALE)
"""Errors of disks, which connections don't fail with."""


class Client:
    """A connection. Its next request is read after the previous answer was sent, so that a slow reader waits alone.

    last_heard: the monotonic time of its last request; None before the first one after the log-in. is_answered:
    whether no request is in progress. usage: its recent work.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, shared: ServerState) -> None:
        """Take the connection, and the state that connections share."""
        self._reader, self._writer, self._shared = reader, writer, shared
        tls = shared.security.tls
        plain = PlainStream(reader, writer)
        self._stream: Stream = plain if tls is None else TlsStream(reader, writer, tls.context)
        peer, own = (writer.get_extra_info(name) or ("?", 0) for name in ("peername", "sockname"))
        self._address: Address = shared.advertised or (own[0], own[1])
        self._host = str(peer[0])
        self._name = address_text((peer[0], peer[1]))
        self.usage = Usage()
        self._task: asyncio.Task[None] | None = None
        self.last_heard: float | None = None
        self.is_answered = True

    async def answer_all(self) -> None:
        """Answer requests until the client leaves or breaks the rules."""
        self._shared.figures.clients += 1
        self._task = asyncio.current_task()
        deadline = self._deadline = Deadline()
        try:
            await self._begin()
            while (frame := await self._next_frame(LARGEST_REQUEST)) is not None:
                self.last_heard, self.is_answered = monotonic(), False
                await self._answer_one(frame)
                self.is_answered = True
        except KsegError as error:  # the request gets no answer, or a log or its disk fails
            self._shared.note(f"{self._name} {error}: closed")
        except TimeoutError:
            self._shared.note(f"{self._name} too slow, or idle: closed")
        except ssl.SSLError as error:
            self._shared.note(f"{self._name} TLS: {tls_reason(error)}: closed")
        except OSError:
            return  # the client has gone
        finally:
            self._shared.figures.clients -= 1
            self._shared.requests.give_back(self)
            self._shared.answers.give_back(self)
            self._writer.transport.abort()
            deadline.close()
            self._task = None  # it refers to the exception that ended it, and thus to this client and its bytes

    def make_way(self, why: str) -> None:
        """Close the connection in favour of another one."""
        self._shared.note(f"{self._name} {why}: closed for another client")
        self._writer.transport.abort()
        if self._task is not None:
            self._task.cancel()

    async def _begin(self) -> None:
        """Finish the stream's start, such as the TLS handshake, before the first request."""
        async with asyncio.timeout(self._shared.limits.login_seconds):
            try:
                await self._stream.begin()
            except ssl.SSLError:
                await until_closed(self._reader, self._shared.limits.leaving_seconds)
                raise
            if self._shared.security.logins is not None:
                await self._log_in(self._shared.security.logins)

    async def _log_in(self, logins: Logins) -> None:
        """Answer only requests of the log-in until it succeeds. Raises RefusedError if it fails."""
        login = Login(logins, self._host)
        while login.user is None:
            frame = await self._next_frame(LARGEST_LOGIN_REQUEST)
            if frame is None:
                raise ConnectionAbortedError
            if not login.takes(frame):
                await self._answer_one(frame)
                continue
            step = login.step(frame)
            if step.failure is not None:
                async with logins.failures.delay(self._host, self._shared.limits.failed_login_seconds):
                    await self._stream.write(step.answer)
                await until_closed(self._reader, self._shared.limits.leaving_seconds)
                raise RefusedError(step.failure)
            await self._stream.write(step.answer)
        self._shared.note(f"{self._name} logged in as {quote(login.user)} by {login.mechanism}")

    async def _answer_one(self, frame: bytes) -> None:
        """Answer a request, and note it."""
        started = monotonic()
        rooms = self._shared.requests, self._shared.answers
        for room in rooms:
            room.keep(self)
        answered = await self._answer(frame, started)
        if await self._has_changed(answered):
            answered = await self._answer(frame, started)
        await self.hold(sum(len(piece) for piece in answered.pieces if isinstance(piece, bytes)))
        for room in rooms:
            room.leave_alone(self)
        for piece in answered.pieces:
            await self._send(piece)
        for room in rooms:
            room.give_back(self)
        self._shared.note(f"{self._name} {answered.line}; {(monotonic() - started) * 1000:.0f} ms")

    async def _next_frame(self, most: int) -> bytes | None:
        """Return the next request without its size, or None if the client has closed the connection.

        Raises RefusedError if it has more than `most` bytes.
        """
        try:
            with self._deadline.within(self._shared.limits.idle_seconds):
                size = int.from_bytes(await self._stream.read_exactly(SIZE_BYTES), "big", signed=True)
            if not 0 < size <= most:
                raise RefusedError(
                    f"a request of {plural(size, 'byte')} is above the limit of {most}, or isn't a Kafka request"
                )
            with self._deadline.within(self._shared.limits.request_seconds):
                if size > SMALL_REQUEST:
                    await self._shared.requests.take(self, size)
                return await self._stream.read_exactly(size)
        except asyncio.IncompleteReadError:
            return None

    async def _answer(self, frame: bytes, started: float) -> Answered:
        """Return the answer to a request; an answer without records may wait for some."""
        rooms = self._shared.requests, self._shared.answers
        answered = await self._work_on(frame, is_last_try=False)
        if answered.later is not None:
            return await self._answer_later(answered.later)
        while answered.wait_seconds:
            left = started + answered.wait_seconds - monotonic()
            if left > 0:
                await self.hold(len(answered.awaited) * AWAITED_BYTES)
                for room in rooms:
                    room.leave_alone(self)
                await self._shared.growth.wait(answered.awaited, left)
                for room in rooms:
                    room.keep(self)
            answered = await self._work_on(frame, is_last_try=monotonic() - started >= answered.wait_seconds)
        return answered

    async def _answer_later(self, later: AnsweredLater) -> Answered:
        """Return an answer that waits for other clients, unless this one leaves first.

        Raises RefusedError if it leaves. While it waits, it lets time pass for all groups, so that no member waits for
        a silent one.
        """
        loop = asyncio.get_running_loop()
        outcome = asyncio.wrap_future(later.outcome)
        outcome.add_done_callback(lambda each: each.cancelled() or each.exception())  # asyncio would log the exception
        try:
            while not outcome.done():
                await asyncio.wait({outcome}, timeout=GROUP_SECONDS)
                if self._reader.at_eof():
                    raise RefusedError("left while it waited for other members of its group")
                if self._shared.served.groups.is_look_due:
                    await loop.run_in_executor(self._shared.workers, self._shared.served.groups.pass_time)
            return await self._finish(later.answer, is_large=False)
        finally:
            outcome.cancel()

    async def _work_on(self, frame: bytes, *, is_last_try: bool) -> Answered:
        asking = Asking(self._address, is_last_try, self._host, self._shared.limits.answer)
        is_large = len(frame) > SMALL_REQUEST
        return await self._finish(lambda: answer_request(frame, self._shared.served, asking), is_large=is_large)

    async def _finish(self, begin: Callable[[], Steps[Answered]], *, is_large: bool) -> Answered:
        """Return the result of some work after enough turns."""
        return await self._shared.turns.finish(begin, self, is_large=is_large)

    def is_gone(self) -> bool:
        """Return True if the connection has ended. A half-closed connection looks the same as a closed one."""
        return self._writer.transport.is_closing() or self._reader.at_eof()

    async def hold(self, size: int) -> None:
        """Count bytes of an answer; wait until there is room for them."""
        await self._shared.answers.take(self, size if size > SMALL_ANSWER else 0)

    async def _send(self, piece: Piece) -> None:
        if isinstance(piece, StoredRecords):
            await self._send_stored(piece)
            return
        with self._deadline.within(self._shared.limits.stalled_seconds):
            await self._stream.write(piece)

    async def _has_changed(self, answered: Answered) -> bool:
        """Return True if a log has changed since an answer from it was planned. Raises OpenError."""
        for piece in answered.pieces:
            if isinstance(piece, StoredRecords):
                state = stored_log(piece.log.path).state
                if state is not None and not await self._is_there(piece, is_same=state == piece.log.state):
                    return True
        return False

    async def _is_there(self, records: StoredRecords, *, is_same: bool) -> bool:
        """Return True if a log still contains the records of a response."""
        return is_same or await asyncio.get_running_loop().run_in_executor(self._shared.workers, records.are_there)

    async def _send_stored(self, records: StoredRecords) -> None:
        """Send ranges of a log. The last bytes are held back until the bytes before them are known to be right.

        Raises OpenError if the log was removed, replaced, truncated or overwritten since the answer was planned.
        """
        self._shared.figures.reading = records.log.path
        with open_same(records.log) as file:
            state = _state_of(file)
            *stored, last = records.pieces()
            for each in stored:
                await self._send_stretch(records, file, each)
            kept = b""
            if not isinstance(last, bytes) and isinstance(file, FileIO):
                size = min(last.size, KEPT_BACK)
                kept = os.pread(file.fileno(), size, last.end - size)
                last = StoredRange(last.position, last.size - len(kept))
            await self._send_stretch(records, file, last)
            if not await self._is_there(records, is_same=_state_of(file) == state):
                raise OpenError("was truncated or rewritten while kseg was sending it", records.log.path)
            await self._send(kept)

    async def _send_stretch(
        self, records: StoredRecords, file: FileIO | RangedBytes, stored: StoredRange | bytes
    ) -> None:
        """Send a stretch of a log, or its replacement. Raises OpenError if it is gone."""
        if isinstance(stored, bytes):
            await self._send(stored)
            return
        for position in range(stored.position, stored.end, self._stream.piece):
            size = min(self._stream.piece, stored.end - position)
            with self._deadline.within(self._shared.limits.stalled_seconds):
                sent = await self._send_piece(records, file, position, size)
            self._shared.figures.sent_bytes += sent
            if sent != size:
                raise OpenError("was truncated while kseg was sending it", records.log.path)

    async def _send_piece(self, records: StoredRecords, file: FileIO | RangedBytes, position: int, size: int) -> int:
        """Send a piece of a log, and return its size. Raises OpenError if the disk can't read it."""
        try:
            if isinstance(file, FileIO):
                return await self._stream.send_stored(file, position, size)
            return await self._send_fetched(file, position, size)
        except OSError as error:
            if error.errno not in _DISK_ERRORS:
                raise
            raise OpenError(f"can't be read: {error.strerror}", records.log.path) from error

    async def _send_fetched(self, source: RangedBytes, position: int, size: int) -> int:
        """Send bytes of a store other than the local disk, which the system can't send from a file."""
        sent = 0
        while sent < size:
            part = await asyncio.to_thread(source.read, position + sent, min(ENCRYPTED_PIECE, size - sent))
            if not part:
                break
            await self._stream.write(part)
            sent += len(part)
        return sent


def _state_of(file: FileIO | RangedBytes) -> tuple[int, int] | None:
    """Return size and modification time of an open log, or None for one outside of the local disk."""
    if not isinstance(file, FileIO):
        return None
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns
