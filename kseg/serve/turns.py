"""Turns at the workers and room in memory, so that no client makes others wait long."""

import asyncio
from bisect import insort
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from time import monotonic, thread_time
from typing import NamedTuple, Protocol, TypeVar, cast

from kseg.serve.values import (
    AT_ONCE_SECONDS,
    BUSY_SECONDS,
    FIRST_TURN_SECONDS,
    MOST_BEGUN,
    MOST_BUSY_TURNS,
    MOST_SHORT,
    NEWCOMER_SECONDS,
    SHORT_SECONDS,
    TURN_SECONDS,
    WORK_HALVES_SECONDS,
    WORKERS,
)

T = TypeVar("T")


class Step(NamedTuple):
    """The state of a response: its size in memory, and whether it can be restarted.

    needs_worker: what follows may read from a disk or take long.
    """

    size: int = 0
    may_begin_again: bool = True
    needs_worker: bool = False


AT_WORKER = Step(needs_worker=True)
"""The step before work for a worker."""
_SAFE = Step()


Steps = Generator[Step, None, T]
"""Work in short steps, and its result."""


def in_steps(work: Generator[Step | None, None, T]) -> Steps[T]:
    """Wrap work that can safely be started again and holds no counted bytes."""
    while True:
        try:
            step = next(work)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
        yield step or _SAFE


def run_at_once(steps: Steps[T]) -> T:
    """Run work to its end at once, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outcome: T = end.value
            return outcome


class Usage:
    """The recent CPU time of a connection. Older work has less weight."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Begin as a new client; clients with little use go first."""
        self._clock = clock
        self._seconds, self._since = NEWCOMER_SECONDS, clock()

    @property
    def seconds(self) -> float:
        """The seconds that count now."""
        return float(self._seconds * 0.5 ** ((self._clock() - self._since) / WORK_HALVES_SECONDS))

    def add(self, seconds: float) -> None:
        """Add work."""
        self._seconds, self._since = self.seconds + seconds, self._clock()


_Rank = tuple[float, float]
"""A request's seconds so far, and its client's recent seconds."""


class _Gate:
    """A gate for a limited number of works; of the waiting ones, the one with the lowest rank enters first."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._numbers = count()
        self._waiting: list[tuple[_Rank, int, asyncio.Future[None]]] = []

    def enter_at_once(self) -> bool:
        """Enter if there is room; return whether there was."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def enter(self, rank: _Rank) -> None:
        """Enter, after others have left if needed."""
        if self.enter_at_once():
            return
        called = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank, next(self._numbers), called))
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Leave, and make room for another one."""
        while self._waiting:
            *_, called = heappop(self._waiting)
            if not called.done():
                called.set_result(None)
                return
        self._free += 1


class _Outcome(NamedTuple):
    """The outcome of a turn: the last step or the result, and the time it took."""

    step: Step
    seconds: float
    is_done: bool
    value: object = None


def _take_turn(steps: Steps[T], usage: Usage, length: float, *, is_at_worker: bool = True) -> _Outcome:
    """Run some work until its turn is over. Time during which other threads hold the interpreter doesn't count."""
    started, ends = thread_time(), monotonic() + length
    try:
        while True:
            step = next(steps)
            # CPU time takes a system call, and never passes faster than the clock.
            is_over = monotonic() >= ends and thread_time() - started >= length
            if is_over or (step.needs_worker and not is_at_worker):
                return _Outcome(step, thread_time() - started, is_done=False)
    except StopIteration as end:
        return _Outcome(_SAFE, thread_time() - started, is_done=True, value=end.value)
    finally:
        usage.add(thread_time() - started)


class Asker(Protocol):
    """The client of some work."""

    usage: Usage

    def is_gone(self) -> bool:
        """Return True if nobody waits for the result."""

    async def hold(self, size: int) -> None:
        """Count the bytes that the work holds, at each interruption; wait until there is room."""


class Turns:
    """The workers, shared fairly: each work runs for a moment, then work with fewer turns so far.

    Busy clients are those with much recent work, and those with large or long requests. Together they never have all
    workers, and only a few of their requests have more than their bytes in memory. Their other requests wait unread.
    """

    def __init__(self, workers: Executor) -> None:
        """Take the threads, WORKERS or more."""
        self._workers = workers
        self._turns, self._busy_turns = _Gate(WORKERS), _Gate(MOST_BUSY_TURNS)
        self._short, self._long = _Gate(MOST_SHORT), _Gate(MOST_BEGUN)

    async def finish(self, begin: Callable[[], Steps[T]], asker: Asker, *, is_large: bool) -> T:
        """Finish a client's work, which `begin` starts, possibly several times.

        If the client isn't busy, its work begins without a worker. Handing it over would take longer than an answer
        from memory. Raises ConnectionAbortedError if the client has gone while it waited.
        """
        usage, seconds, place = asker.usage, 0.0, None
        steps: Steps[T] | None = None
        if not is_large and usage.seconds < BUSY_SECONDS:
            steps = begin()
            outcome = _take_turn(steps, usage, AT_ONCE_SECONDS, is_at_worker=False)
            if outcome.is_done:
                return cast(T, outcome.value)
            seconds = outcome.seconds
        try:
            while True:
                if place is None and steps is None and (is_large or usage.seconds >= BUSY_SECONDS):
                    await self._long.enter((0.0, usage.seconds))
                    place = self._long
                    if asker.is_gone():
                        raise ConnectionAbortedError
                steps = begin() if steps is None else steps
                is_busy = place is self._long or usage.seconds >= BUSY_SECONDS
                outcome = await self._take_turn(steps, usage, seconds, is_busy=is_busy)
                if outcome.is_done:
                    return cast(T, outcome.value)
                seconds += outcome.seconds
                place = self._next_place(place, seconds)
                if place is None and outcome.step.may_begin_again:
                    steps, is_large = None, True
                await asker.hold(0 if steps is None else outcome.step.size)
        finally:
            if place is not None:
                place.leave()

    def _next_place(self, place: _Gate | None, seconds: float) -> _Gate | None:
        """Return the gate of work after some seconds, for short or for long work, or None if it is full."""
        wanted = self._long if seconds >= SHORT_SECONDS else self._short
        if place is wanted or place is self._long:
            return place
        if place is not None:
            place.leave()
        return wanted if wanted.enter_at_once() else None

    async def _take_turn(self, steps: Steps[T], usage: Usage, seconds: float, *, is_busy: bool) -> _Outcome:
        rank, length = (seconds, usage.seconds), TURN_SECONDS if is_busy else FIRST_TURN_SECONDS
        if is_busy:
            await self._busy_turns.enter((0.0, usage.seconds))
        try:
            await self._turns.enter(rank)
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._workers, _take_turn, steps, usage, length)
            finally:
                self._turns.leave()
        finally:
            if is_busy:
                self._busy_turns.leave()


class Holder(Protocol):
    """The owner of counted bytes, which can be made to give them up."""

    def make_way(self, why: str) -> None:
        """End, and specify the bytes back soon."""


class _Waiting(NamedTuple):
    """A waiting holder: the bytes that it wants, a number, and an event for another attempt."""

    size: int
    number: int
    called: asyncio.Event


class Room:
    """The memory used by all connections. When the limit is reached, the largest one is closed.

    Holders that wait for the server itself are spared while there are others. Of the waiting holders, the one that
    wants the fewest bytes goes first. It alone checks: hundreds of checks would delay clients.
    """

    def __init__(self, most: int, spared_seconds: float, what: str, clock: Callable[[], float] = monotonic) -> None:
        """Take the most bytes, the seconds for which a holder is spared, and the description of the bytes."""
        self._most, self._spared_seconds, self._what, self._clock = most, spared_seconds, what, clock
        self.held = 0
        self._sizes: dict[Holder, int] = {}
        self._since: dict[Holder, float] = {}
        self._spared_holders: set[Holder] = set()
        self._numbers = count()
        self._waiting: list[_Waiting] = []

    async def take(self, holder: Holder, size: int) -> None:
        """Set the bytes of a holder, once there is room."""
        if not size:
            self._free(holder)
            return
        waiting = _Waiting(size, next(self._numbers), asyncio.Event())
        insort(self._waiting, waiting)
        try:
            while not ((is_first := self._waiting[0] is waiting) and self._has_room(holder, size)):
                waiting.called.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._close_oldest(holder) if is_first else None):
                        await waiting.called.wait()
        finally:
            self._waiting.remove(waiting)
            self._call_first()
        self.held += size - self._sizes.get(holder, 0)
        self._sizes[holder] = size
        self._since.setdefault(holder, self._clock())

    def _has_room(self, holder: Holder, size: int) -> bool:
        others = self.held - self._sizes.get(holder, 0)
        return others <= 0 or others + size <= self._most

    def _close_oldest(self, besides: Holder) -> float:
        """Close the longest holder, if its time is over; return the seconds until the next one's is."""
        oldest = self._oldest(besides)
        left = self._spared_seconds if oldest is None else self._since[oldest] + self._spared_seconds - self._clock()
        if oldest is None or left > 0:
            return left
        self.give_back(oldest)
        oldest.make_way(f"took long with {self._what}, which left no room for other clients")
        return 0.0

    def _oldest(self, besides: Holder) -> Holder | None:
        others = [each for each in self._since if each is not besides]
        return min(others, key=lambda each: (each in self._spared_holders, self._since[each]), default=None)

    def keep(self, holder: Holder) -> None:
        """Note that a holder now waits for the server."""
        self._spared_holders.add(holder)

    def leave_alone(self, holder: Holder) -> None:
        """Note that the server now waits for the holder."""
        self._spared_holders.discard(holder)
        if holder in self._since:
            self._since[holder] = self._clock()

    def give_back(self, holder: Holder) -> None:
        """Take back all bytes of a holder."""
        self._spared_holders.discard(holder)
        self._free(holder)

    def _free(self, holder: Holder) -> None:
        size = self._sizes.pop(holder, 0)
        self._since.pop(holder, None)
        if not size:
            return
        self.held -= size
        self._call_first()

    def _call_first(self) -> None:
        if self._waiting:
            self._waiting[0].called.set()
