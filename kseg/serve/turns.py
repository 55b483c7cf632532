"""Turns at the workers and room in memory: no client takes so much of either that others wait long."""

import asyncio
from bisect import insort
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from time import monotonic, thread_time
from typing import NamedTuple, Protocol, TypeVar

from kseg.serve.values import (
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
    """How far an answer is: its bytes that are in memory, and whether it may be begun again without harm."""

    size: int = 0
    may_begin_again: bool = True


Steps = Generator[Step, None, T]
"""Work in steps of which none takes long, and what comes of it."""


def in_steps(work: Generator[None, None, T]) -> Steps[T]:
    """Work that can be begun again without harm, and holds nothing that counts."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
        yield Step()


def finished(steps: Steps[T]) -> T:
    """What comes of work that is done at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outcome: T = end.value
            return outcome


class Usage:
    """The work of a client's connection lately: seconds at the workers, each of which counts less as time goes by."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Of a client that has just come: those that asked for little go before it."""
        self._clock = clock
        self._seconds, self._since = NEWCOMER_SECONDS, clock()

    @property
    def seconds(self) -> float:
        """What counts now."""
        return float(self._seconds * 0.5 ** ((self._clock() - self._since) / WORK_HALVES_SECONDS))

    def add(self, seconds: float) -> None:
        """Counts more work."""
        self._seconds, self._since = self.seconds + seconds, self._clock()


_Rank = tuple[float, float]
"""Seconds that a request took so far, and those of its client lately."""


class _Gate:
    """Lets so many in at once; of those that wait, the one of the lowest rank goes first."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._numbers = count()
        self._waiting: list[tuple[_Rank, int, asyncio.Future[None]]] = []

    def enter_at_once(self) -> bool:
        """Enters if nobody has to leave first; whether it could."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def enter(self, rank: _Rank) -> None:
        """Enters, if need be after others have left."""
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
        """Makes room for another one."""
        while self._waiting:
            *_, called = heappop(self._waiting)
            if not called.done():
                called.set_result(None)
                return
        self._free += 1


class _Outcome(NamedTuple):
    """What a turn has come to, its last step or what comes of all of them; and how long it took."""

    step: Step
    seconds: float
    is_done: bool
    value: object = None


def _take_turn(steps: Steps[T], usage: Usage, length: float) -> _Outcome:
    """Goes on with some work until its turn is over. The time that others have the interpreter doesn't count."""
    started = thread_time()
    try:
        while True:
            step = next(steps)
            if (seconds := thread_time() - started) >= length:
                return _Outcome(step, seconds, is_done=False)
    except StopIteration as end:
        return _Outcome(Step(), thread_time() - started, is_done=True, value=end.value)
    finally:
        usage.add(thread_time() - started)


class Asker(Protocol):
    """Who work is done for."""

    usage: Usage

    def is_gone(self) -> bool:
        """Whether nobody waits for what comes of it."""

    async def hold(self, size: int) -> None:
        """Counts the bytes that the work holds, each time that it is interrupted; waits until there is room."""


class Turns:
    """The workers, shared fairly: work goes on for a moment, then other work that has had less of them.

    Clients that had much lately, and those with large or long requests, are busy ones: all together they never have all
    workers, and of few of their requests more than the bytes is in memory. Others of them wait unread.
    """

    def __init__(self, workers: Executor) -> None:
        """Takes the threads, WORKERS or more."""
        self._workers = workers
        self._turns, self._busy_turns = _Gate(WORKERS), _Gate(MOST_BUSY_TURNS)
        self._short, self._begun = _Gate(MOST_SHORT), _Gate(MOST_BEGUN)

    async def finish(self, begin: Callable[[], Steps[T]], asker: Asker, *, is_large: bool) -> T:
        """What comes of a client's work, given by what begins it, which may be called several times.

        Raises ConnectionAbortedError if the client has gone while it waited.
        """
        usage, seconds, place = asker.usage, 0.0, None
        steps: Steps[T] | None = None
        try:
            while True:
                if place is None and steps is None and (is_large or usage.seconds >= BUSY_SECONDS):
                    await self._begun.enter((0.0, usage.seconds))
                    place = self._begun
                    if asker.is_gone():
                        raise ConnectionAbortedError
                steps = begin() if steps is None else steps
                is_busy = place is self._begun or usage.seconds >= BUSY_SECONDS
                outcome = await self._take_turn(steps, usage, seconds, is_busy=is_busy)
                if outcome.is_done:
                    value: T = outcome.value  # type: ignore[assignment]
                    return value
                seconds += outcome.seconds
                place = self._next_place(place, seconds)
                if place is None and outcome.step.may_begin_again:
                    steps, is_large = None, True
                await asker.hold(0 if steps is None else outcome.step.size)
        finally:
            if place is not None:
                place.leave()

    def _next_place(self, place: _Gate | None, seconds: float) -> _Gate | None:
        """The place of work that has taken so long, among short or long ones; None if there is none."""
        wanted = self._begun if seconds >= SHORT_SECONDS else self._short
        if place is wanted or place is self._begun:
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
    """What holds bytes, and can be made to give them up."""

    def make_way(self, why: str) -> None:
        """Ends; gives back what it holds soon."""


class _Waiting(NamedTuple):
    """Who waits for room: the bytes that are wanted, a number, and what is set when it is worth another look."""

    size: int
    number: int
    called: asyncio.Event


class Room:
    """Bytes that connections hold together. Where there is no more room, the one that has held some the longest goes.

    Those whose work the server itself has to go on with are kept as long as there are others. Of those that wait, the
    one that wants the fewest bytes goes first. It alone looks: if hundreds did, clients would wait for them.
    """

    def __init__(self, most: int, spared_seconds: float, what: str, clock: Callable[[], float] = monotonic) -> None:
        """Takes how many bytes there may be, how long nobody has to go, and what the bytes are of."""
        self._most, self._spared, self._what, self._clock = most, spared_seconds, what, clock
        self.held = 0
        self._sizes: dict[Holder, int] = {}
        self._since: dict[Holder, float] = {}
        self._kept: set[Holder] = set()
        self._numbers = count()
        self._waiting: list[_Waiting] = []

    async def take(self, holder: Holder, size: int) -> None:
        """Makes a holder's bytes so many, once there is room."""
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
        """Closes the one that has held bytes the longest, if it has for too long; seconds until there is another."""
        oldest = self._oldest(besides)
        left = self._spared if oldest is None else self._since[oldest] + self._spared - self._clock()
        if oldest is None or left > 0:
            return left
        self.give_back(oldest)
        oldest.make_way(f"took long with {self._what}, for which others had no room")
        return 0.0

    def _oldest(self, besides: Holder) -> Holder | None:
        others = [each for each in self._since if each is not besides]
        return min(others, key=lambda each: (each in self._kept, self._since[each]), default=None)

    def keep(self, holder: Holder) -> None:
        """From now on it isn't for the holder to give its bytes back."""
        self._kept.add(holder)

    def leave_alone(self, holder: Holder) -> None:
        """From now on it is."""
        self._kept.discard(holder)
        if holder in self._since:
            self._since[holder] = self._clock()

    def give_back(self, holder: Holder) -> None:
        """Takes back all bytes of a holder."""
        self._kept.discard(holder)
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
