"""Processes that share work. Only the process that started them gets signals, and ends them at once.

Each has its own pipe, and they share no lock, so no process waits for a killed one.
"""

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from time import monotonic
from traceback import format_exc
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from kseg.errors import KsegError
from kseg.system.new_directory import remove_dead
from kseg.system.safe_path import SafeChildren
from kseg.system.shared_space import SLOT_SIZE, SharedPiece, SharedSpace
from kseg.system.signals import ENDING, Uninterrupted

MOST_HELD = 8 << 20
"""Bytes of results that wait for earlier ones; at this limit only the process in turn is read."""
_TURNS_OF_ONE = 32
"""The most turns in progress per process, including the first."""
_REPORT_SECONDS = 0.1
_REPORT_SIZE = 64 << 10
"""The time and the size of results after which a process reports; it also does at the end of a turn."""

_PIECES_OF_ONE = 8
"""The most pieces of shared memory in a report."""

Item = TypeVar("Item")
Result = TypeVar("Result")
OnRead = Callable[[int], None]
Write = Callable[[memoryview], None]
Work = Callable[..., Iterable[Any]]


class _Worker(NamedTuple):
    """A process, and the space for the bytes that it writes, if its work writes any."""

    process: BaseProcess
    space: SharedSpace | None


Workers = dict[Connection, _Worker]


class _Report(NamedTuple):
    """A process's report about its turn: bytes read and results since the last report, and whether it is the last.

    results: pickled, each with its item's number in the turn. error: the exception of `work`.
    """

    size: int
    results: tuple[bytes, ...]
    is_last: bool
    error: Exception | None


@dataclass(slots=True)
class _Turn(Generic[Item]):
    """Items that a process was given together, and its results that weren't taken yet."""

    items: tuple[Item, ...]
    space: SharedSpace | None = None
    results: deque[bytes] = field(default_factory=deque)
    is_over: bool = False
    error: Exception | None = None

    def take(self, result: bytes) -> Iterator[tuple[Item, Any]]:
        """Yield a result with its item; written bytes, until the next step frees their space."""
        number, content = _unpickle(result)
        if self.space is None or not isinstance(content, SharedPiece):
            yield self.items[number], content
            return
        yield self.items[number], self.space.contents(content)
        self.space.free(content)

    def add(self, report: _Report) -> None:
        """Take the process's report."""
        self.results.extend(report.results)
        self.is_over, self.error = report.is_last, report.error


def results_by_processes(
    count: int, work: Callable[[Item, OnRead], Iterable[Result]], items: Sequence[Item]
) -> Iterator[Result]:
    """Run `work` on the items in several Python processes and yield the results as they arrive.

    The processes don't import from the current directory. They end at once if a signal ends the run, or the iterator
    is closed. If `work` raises, the items in progress are finished.

    Raises:
        KsegError: one of the processes was killed.
    """
    with _workers(count, work, "spawn") as workers:
        waiting = iter([(item,) for item in items])
        busy = {connection for connection in workers if _begin(connection, waiting) is not None}
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                report = _receive(connection)
                if report.error is not None:
                    raise report.error
                if report.is_last and _begin(connection, waiting) is None:
                    busy.remove(connection)
                for result in report.results:
                    yield _unpickle(result)[1]


def results_in_turn(
    count: int,
    work: Callable[[Item, OnRead], Iterable[Result]],
    bundles: Iterable[tuple[Item, ...]],
    on_read: OnRead,
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with each of its results, in the items' order, from `count` forked processes.

    They end as in `results_by_processes`, and also at once if `work` raises. `on_read` takes the bytes read.

    Raises:
        KsegError: one of the processes was killed.
    """
    with _workers(count, work, "fork") as workers:
        try:
            yield from _in_turn(workers, bundles, on_read)
        except Exception:
            _kill(workers)  # nobody waits for their results
            raise


def writings_in_turn(
    count: int,
    work: Callable[[Item, OnRead, Write], Iterable[Result]],
    bundles: Iterable[tuple[Item, ...]],
    on_read: OnRead,
) -> Generator[tuple[Item, Result | memoryview], None, None]:
    """Yield the same as `results_in_turn`, and among them the bytes that `work` passes to its last argument.

    The bytes are in shared memory, and valid until the next result is taken. A process waits as soon as it has written
    SLOTS pieces that nobody has taken. It needs a system that can fork: see `can_fork`.
    """
    with _workers(count, work, "fork", writes=True) as workers:
        try:
            yield from _in_turn(workers, bundles, on_read)
        except Exception:
            _kill(workers)
            raise


def can_fork() -> bool:
    """Return True if the system can fork processes."""
    return hasattr(os, "fork")


def _in_turn(workers: Workers, bundles: Iterable[tuple[Item, ...]], on_read: OnRead) -> Iterator[tuple[Item, Any]]:
    waiting = iter(bundles)
    idle = list(workers)
    busy: dict[Connection, _Turn[Item]] = {}
    turns: deque[_Turn[Item]] = deque()
    held = 0
    while True:
        for ready, begun in _begin_turns(workers, idle, waiting, _TURNS_OF_ONE * len(workers) - len(turns)):
            turns.append(begun)
            busy[ready] = begun
        if not turns:
            return
        turn = turns[0]
        while turn.results:
            result = turn.results.popleft()
            held -= len(result)
            yield from turn.take(result)
        if turn.error is not None:
            raise turn.error
        if turn.is_over:
            turns.popleft()
            continue
        for connection in wait([each for each in busy if held < MOST_HELD or busy[each] is turn]):
            assert isinstance(connection, Connection)
            report = _receive(connection)
            busy[connection].add(report)
            held += sum(map(len, report.results))
            if report.is_last:
                del busy[connection]
                idle.append(connection)
            if report.size:
                on_read(report.size)


def _begin_turns(
    workers: Workers, idle: list[Connection], waiting: Iterator[tuple[Item, ...]], most: int
) -> Iterator[tuple[Connection, _Turn[Item]]]:
    """Start turns of idle processes, at most `most`; removes these processes from `idle`."""
    for _ in range(min(most, len(idle))):
        bundle = _begin(idle[-1], waiting)
        if bundle is None:
            return
        connection = idle.pop()
        yield connection, _Turn(bundle, workers[connection].space)


def _begin(connection: Connection, waiting: Iterator[Item]) -> Item | None:
    """Send a process the next item, if it exists; return it."""
    following = next(waiting, None)
    if following is not None:
        try:
            connection.send(following)
        except OSError as error:
            raise _killed_error() from error
    return following


def _receive(connection: Connection) -> _Report:
    try:
        report = connection.recv()
    except (EOFError, OSError) as error:
        raise _killed_error() from error
    assert isinstance(report, _Report)
    return report


def _unpickle(result: bytes) -> tuple[int, Any]:
    """Return an item's number and a result, as a process of this run sent them."""
    found: tuple[int, Any] = pickle.loads(result)  # noqa: S301
    return found


def _killed_error() -> KsegError:
    return KsegError("a worker process was killed; run the command with -j 1, which needs less memory")


@contextmanager
def _workers(
    count: int, work: Work, start_method: Literal["fork", "spawn"], *, writes: bool = False
) -> Iterator[Workers]:
    """Start processes that wait for orders; return the pipes to them. writes: whether their work writes bytes."""
    workers: Workers = {}
    try:
        with SafeChildren():
            if start_method == "spawn":
                from multiprocessing import resource_tracker  # a forked process needs none

                with _without_interrupt():  # otherwise it would start below, and let signals through from then on
                    resource_tracker.ensure_running()
            with _without_interrupt():
                _start_some(workers, count, work, start_method, writes=writes)
        try:
            yield workers
        except Exception:
            _finish(workers)
            raise
        _finish(workers)
    except (KeyboardInterrupt, GeneratorExit):
        _kill(workers)
        raise


def _kill(workers: Workers) -> None:
    with Uninterrupted():
        for worker in workers.values():
            worker.process.kill()
        _finish(workers)
        remove_dead()


def _start_some(
    workers: Workers, count: int, work: Work, start_method: Literal["fork", "spawn"], *, writes: bool
) -> None:
    """Start up to `count` processes: systems limit their number. Raises KsegError if none can be started."""
    for _ in range(count):
        try:
            _start(workers, work, start_method, writes=writes)
        except OSError as error:
            if workers:
                return
            raise KsegError(
                f"no worker process can be started: {error.strerror}; run the command with -j 1, which needs none"
            ) from error


def _start(workers: Workers, work: Work, start_method: Literal["fork", "spawn"], *, writes: bool) -> None:
    context = get_context("fork") if start_method == "fork" and can_fork() else get_context("spawn")
    space = SharedSpace() if writes else None
    try:
        ours, theirs = context.Pipe()
        process: BaseProcess = context.Process(target=_work, args=(theirs, work, space))
        process.start()
    except OSError:
        if space is not None:
            space.close()
        raise
    theirs.close()
    workers[ours] = _Worker(process, space)


def _finish(workers: Workers) -> None:
    """Let each process finish its items in progress."""
    for connection in workers:
        with Uninterrupted():  # a signal within `close` would let it close the same descriptor again
            with suppress(OSError):  # it was killed
                connection.send(None)  # closing the pipe isn't enough: a forked process has those of earlier ones
            connection.close()
    for worker in workers.values():
        worker.process.join()
        if worker.space is not None:
            worker.space.close()


def _work(connection: Connection, work: Work, space: SharedSpace | None) -> None:
    """Carry out turns in a process until the last one."""
    _end_with_parent()
    try:
        while (items := connection.recv()) is not None:
            _Reporter(connection, space).carry_out(work, items)
    except (EOFError, OSError):
        return


class _Reporter:
    """A sender of a turn's results, several small ones together."""

    def __init__(self, connection: Connection, space: SharedSpace | None) -> None:
        self._connection, self._space = connection, space
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        self._size = self._results_size = 0
        self._results: list[bytes] = []
        self._since = monotonic()

    def carry_out(self, work: Work, items: tuple[Any, ...]) -> None:
        """Work on the items of a turn. Raises OSError if nobody listens any more."""
        failure = None
        try:
            write = () if self._space is None else (self.write,)
            for self._number, item in enumerate(items):
                for result in work(item, self.add_read, *write):
                    self._add(pickle.dumps((self._number, result)))
        except Exception as error:  # noqa: BLE001  it is raised again in the parent
            if not isinstance(error, KsegError):
                error.add_note(format_exc())
            failure = error
        self._report(is_last=True, error=failure)

    def add_read(self, size: int) -> None:
        """Add a number of read bytes."""
        self._size += size
        self._report_if_due()

    def write(self, piece: memoryview) -> None:
        """Add bytes among the results; these are reported before this process waits for space."""
        assert self._space is not None
        for start in range(0, len(piece), SLOT_SIZE):
            if self._space.is_full or len(self._results) >= _PIECES_OF_ONE:
                self._report()
            shared = self._space.fill(piece[start : start + SLOT_SIZE])
            self._results.append(pickle.dumps((self._number, shared)))

    def _add(self, result: bytes) -> None:
        self._report_if_due()  # before: often the turn ends after this one
        self._results.append(result)
        self._results_size += len(result)

    def _report_if_due(self) -> None:
        if self._results_size > _REPORT_SIZE or monotonic() - self._since > _REPORT_SECONDS:
            self._report()

    def _report(self, *, is_last: bool = False, error: Exception | None = None) -> None:
        self._connection.send(_Report(self._size, tuple(self._results), is_last, error))
        self._begin()


def _end_with_parent() -> None:
    """End this process if its parent is gone, for example after SIGKILL."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_leave_after, args=(parent.sentinel,), daemon=True).start()


def _leave_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@contextmanager
def _without_interrupt() -> Iterator[None]:
    """Start processes inside without signals that end a run; this process's signals wait meanwhile.

    Such signals go to all processes of a terminal or service at once, but only the first process may end the others.
    """
    with Uninterrupted():  # the mask is this thread's alone
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
