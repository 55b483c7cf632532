"""A network in this process, with a clock of its own: a schedule says what happens to each request.

Everything runs in one thread, so that a schedule has one outcome, and nothing waits.
"""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NoReturn

import pytest

from kseg.protocol.messages import SIZE_BYTES
from tests.restore.fake_broker import FakeBroker, FakeLog

ADDRESSES = {7: ("seven", 9092), 8: ("eight", 9092)}
REQUEST_SECONDS = 0.001
API_VERSIONS = 18


class Event(Enum):
    """What happens to a request, or with it."""

    LOSE_ANSWER = auto()
    LOSE_REQUEST = auto()
    HOLD_BACK = auto()
    """The connection ends for the client; the broker gets its requests later."""
    SILENCE = auto()
    """No answer comes in time; the broker gets the request later."""
    ELECTION = auto()
    """The other broker becomes the leader of all partitions; the next Metadata answer has no leader yet."""
    RESTART = auto()
    """All connections end with their requests; the broker loads its producers from snapshots."""
    LOST_TAIL = auto()
    """The same, and a replica without the last batch becomes the leader of each partition."""
    LAG = auto()
    """The high watermark stays before the last batch for three answers."""
    LATE = auto()
    """A request of an earlier connection arrives before this one."""
    KILL = auto()
    """The run ends before the request; the broker gets those under way later."""
    KILL_AFTER = auto()
    """The run ends after the request."""
    OTHER_RUN = auto()
    """Another run of the same restore starts, and ends or is killed before this request goes on."""


Schedule = Sequence[tuple[int, Event]]
"""Events, each with the number of requests before it that nothing happens to."""


class KilledError(Exception):
    """Stands for the end of a process."""


class VirtualClock:
    """A clock that goes on when somebody sleeps. It takes the place of the module `time`."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the seconds since the clock began."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@dataclass(eq=False)
class Process:
    """A run of the restore."""

    is_alive: bool = True


@dataclass(eq=False)
class FakeSocket:
    """A client's end of a connection. requests: those that the broker hasn't got; answers: those that nobody read."""

    network: "FakeNetwork"
    node: int
    process: Process
    requests: deque[bytes] = field(default_factory=deque)
    answers: bytearray = field(default_factory=bytearray)
    is_ended: bool = False
    is_silent: bool = False

    def setsockopt(self, *_: int) -> None:
        """Do nothing."""

    settimeout = setsockopt

    def sendall(self, content: bytes | memoryview) -> None:
        """Take a request."""
        self._check()
        if self.is_ended:
            raise BrokenPipeError
        self.requests.append(bytes(content[SIZE_BYTES:]))

    def recv_into(self, target: memoryview) -> int:
        """Give bytes of the next answer."""
        self._check()
        self._advance()
        if self.is_silent:
            raise TimeoutError
        count = min(len(target), len(self.answers))
        target[:count] = self.answers[:count]
        del self.answers[:count]
        return count

    def fileno(self) -> int:
        """Return a descriptor that can be read if there is an answer, or the connection has ended."""
        self._check()
        self._advance()
        if self.is_silent:
            self.network.clock.sleep(60)
        return self.network.idle if self.is_silent else self.network.ready

    def close(self) -> None:
        """End the connection; the broker gets the requests that are under way later."""
        self.network.leave(self)

    def _check(self) -> None:
        if not self.process.is_alive:
            raise KilledError

    def _advance(self) -> None:
        if not self.answers and not self.is_ended and not self.is_silent:
            self.network.handle_next(self)


class FakeNetwork:
    """Two brokers with the same logs, and everything that is under way to them.

    handled: the number of requests. has_lost_tail: acknowledged batches were lost since the last run began
    that wasn't within another one.
    """

    def __init__(self, schedule: Schedule, other_run: Callable[["FakeNetwork"], None]) -> None:
        """Take what happens, and what starts another run."""
        self.clock = VirtualClock()
        self.broker = FakeBroker(ADDRESSES, self.clock.monotonic)
        self.handled = 0
        self.has_lost_tail = False
        self.ready, self.idle = -1, -1
        self._events = deque(schedule)
        self._until_event = self._events[0][0] if self._events else 0
        self._other_run = other_run
        self._processes: list[Process] = []
        self._sockets: list[FakeSocket] = []
        self._late: deque[tuple[int, deque[bytes]]] = deque()

    @contextmanager
    def connected(self, monkeypatch: pytest.MonkeyPatch) -> Iterator["FakeNetwork"]:
        """Let kseg's client use this network and its clock until the context ends."""
        ends = [os.pipe(), os.pipe()]
        self.idle, self.ready = ends[0][0], ends[1][0]
        os.write(ends[1][1], b"x")
        with monkeypatch.context() as patch:
            patch.setattr(socket, "create_connection", self._connect)
            patch.setattr("kseg.client.brokers.time", self.clock)
            patch.setattr("kseg.restore.send.time", self.clock)
            patch.setattr("kseg.restore.send.ANSWER_SECONDS", 0)
            try:
                yield self
            finally:
                for each in sum(ends, ()):
                    os.close(each)

    @property
    def runs(self) -> int:
        """The number of runs at once."""
        return len(self._processes)

    def run(self, start: Callable[[], None]) -> bool:
        """Start a run; return whether it came to its end without being killed."""
        if not self._processes:
            self.has_lost_tail = False
        process = Process()
        self._processes.append(process)
        try:
            start()
        except KilledError:
            return False
        finally:
            self._processes.remove(process)
            process.is_alive = False
        return True

    def deliver_all(self) -> None:
        """Let the broker get everything that is late."""
        while self._late:
            self._deliver()

    def _connect(self, address: tuple[str, int], _: float) -> FakeSocket:
        process = self._processes[-1]
        if not process.is_alive:
            raise KilledError
        node = next(node for node, own in ADDRESSES.items() if own == address)
        opened = FakeSocket(self, node, process)
        self._sockets.append(opened)
        return opened

    def leave(self, end: FakeSocket) -> None:
        """Keep the requests of a connection that ends; they come later."""
        if end.requests and not end.is_ended:
            self._late.append((end.node, end.requests))
        end.requests, end.is_ended = deque(), True
        if end in self._sockets:
            self._sockets.remove(end)

    def handle_next(self, end: FakeSocket) -> None:
        """Let the broker answer a connection's next request, after an event of the schedule or instead of it."""
        if not end.requests:
            end.is_silent = True
            return
        event = self._next_event(end.requests[0])
        self.clock.sleep(REQUEST_SECONDS)
        if event in HAPPENS_BEFORE:
            HAPPENS_BEFORE[event](self, end)
        if end.is_ended or end.is_silent:
            return
        answer = self.broker.answer(end.requests.popleft(), end.node)
        self.handled += 1
        if event is Event.KILL_AFTER:
            self._kill(end)
        elif answer is None or event is Event.LOSE_ANSWER:
            self.leave(end)
        else:
            end.answers += answer

    def _next_event(self, request: bytes) -> Event | None:
        if not self._events or int.from_bytes(request[:2], "big") == API_VERSIONS:
            return None
        if self._until_event:
            self._until_event -= 1
            return None
        _, event = self._events.popleft()
        self._until_event = self._events[0][0] if self._events else 0
        return event

    def _deliver(self, _: FakeSocket | None = None) -> None:
        """Let the broker get a request of an earlier connection."""
        if self._late:
            node, requests = self._late.popleft()
            self.broker.answer(requests.popleft(), node)
            self.handled += 1
            if requests:
                self._late.append((node, requests))

    def _kill(self, end: FakeSocket) -> NoReturn:
        end.process.is_alive = False
        raise KilledError

    def _lose_request(self, end: FakeSocket) -> None:
        end.requests.clear()
        self.leave(end)

    def _silence(self, end: FakeSocket) -> None:
        end.is_silent = True

    def _run_another(self, _: FakeSocket) -> None:
        self._other_run(self)

    def _elect(self, _: FakeSocket) -> None:
        nodes = [*ADDRESSES]
        for log in self._logs():
            log.leader = nodes[1 - nodes.index(log.leader)]
        self.broker.elections = 1

    def _lag(self, _: FakeSocket) -> None:
        for log in self._logs():
            log.lag = 3

    def _restart(self, _: FakeSocket) -> None:
        self._late.clear()
        for each in [*self._sockets]:
            self._lose_request(each)
        for log in self._logs():
            log.restart()

    def _lose_tail(self, end: FakeSocket) -> None:
        self._restart(end)
        for log in self._logs():
            log.lose_tail()
        self.has_lost_tail = True

    def _logs(self) -> Iterator[FakeLog]:
        for own in self.broker.logs.values():
            yield from own


HAPPENS_BEFORE: Mapping[Event | None, Callable[[FakeNetwork, FakeSocket], None]] = {
    Event.LOSE_REQUEST: FakeNetwork._lose_request,
    Event.HOLD_BACK: FakeNetwork.leave,
    Event.SILENCE: FakeNetwork._silence,
    Event.ELECTION: FakeNetwork._elect,
    Event.RESTART: FakeNetwork._restart,
    Event.LOST_TAIL: FakeNetwork._lose_tail,
    Event.LAG: FakeNetwork._lag,
    Event.LATE: FakeNetwork._deliver,
    Event.KILL: FakeNetwork._kill,
    Event.OTHER_RUN: FakeNetwork._run_another,
}
"""What happens before the broker gets a request, or instead."""
