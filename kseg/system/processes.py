"""Processes that share work: only the process that started them gets signals, and ends them at once.

Each has its own pipe, and they share no lock, so no process waits for anything from one that was killed.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from traceback import format_exc
from typing import Any, Literal, NamedTuple, TypeVar

from kseg.errors import KsegError
from kseg.system.interrupts import ENDING, Uninterrupted
from kseg.system.safe_path import SafeChildren
from kseg.system.scratch import remove_dead

T = TypeVar("T")
Workers = dict[Connection, BaseProcess]


class _Outcome(NamedTuple):
    """The result of an order, or the exception that it raised."""

    result: Any
    error: Exception | None


def results_by_processes(
    count: int, work: Callable[..., T], orders: Sequence[tuple[Any, ...]], start_method: Literal["fork", "spawn"]
) -> Iterator[tuple[int, T]]:
    """Yields the result of `work` for each order, with the order's number, as soon as it is there.

    That many processes share the orders; none of them imports from the current directory. If a signal ends the run, or
    nobody wants more results, they end at once. If an order raises, the orders that have begun are finished.

    Raises:
        KsegError: one of the processes was killed.
    """
    with _workers(count, work, start_method) as workers:
        waiting = iter(enumerate(orders))
        busy = {connection: number for connection in workers if (number := _begin(connection, waiting)) is not None}
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                outcome = _receive(connection)
                number = busy.pop(connection)
                if outcome.error is not None:
                    raise outcome.error
                following = _begin(connection, waiting)
                if following is not None:
                    busy[connection] = following
                yield number, outcome.result


def _begin(connection: Connection, waiting: Iterator[tuple[int, tuple[Any, ...]]]) -> int | None:
    """Sends a process the next order, if there is one; returns its number."""
    number, order = next(waiting, (None, None))
    if order is not None:
        try:
            connection.send(order)
        except OSError as error:
            raise _killed() from error
    return number


def _receive(connection: Connection) -> _Outcome:
    try:
        outcome = connection.recv()
    except (EOFError, OSError) as error:
        raise _killed() from error
    assert isinstance(outcome, _Outcome)
    return outcome


def _killed() -> KsegError:
    return KsegError("a process that shares the work was killed; fewer of them need less memory")


@contextmanager
def _workers(count: int, work: Callable[..., object], start_method: Literal["fork", "spawn"]) -> Iterator[Workers]:
    """Processes that wait for orders, and the pipes to them."""
    workers: Workers = {}
    try:
        with SafeChildren():
            if start_method == "spawn":
                with _without_interrupt():  # otherwise it would start below, and let signals through from then on
                    resource_tracker.ensure_running()
            with _without_interrupt():
                for _ in range(count):
                    _start(workers, work, start_method)
        try:
            yield workers
        except Exception:
            _finish(workers)
            raise
        _finish(workers)
    except (KeyboardInterrupt, GeneratorExit):
        with Uninterrupted():
            for process in workers.values():
                process.kill()
            _finish(workers)
            remove_dead()
        raise


def _start(workers: Workers, work: Callable[..., object], start_method: Literal["fork", "spawn"]) -> None:
    context = get_context("fork") if start_method == "fork" and hasattr(os, "fork") else get_context("spawn")
    ours, theirs = context.Pipe()
    process: BaseProcess = context.Process(target=_work, args=(theirs, work))
    process.start()
    theirs.close()
    workers[ours] = process


def _finish(workers: Workers) -> None:
    """Lets each process finish what it has begun."""
    for connection in workers:
        with suppress(OSError):  # it was killed
            connection.send(None)  # closing the pipe isn't enough: a forked process has those of earlier ones
        connection.close()
    for process in workers.values():
        process.join()


def _work(connection: Connection, work: Callable[..., object]) -> None:
    """Runs in a process: carries out orders until the last one."""
    _end_with_parent()
    try:
        while (order := connection.recv()) is not None:
            try:
                outcome = _Outcome(work(*order), None)
            except Exception as error:  # noqa: BLE001  it is raised again where the order came from
                if not isinstance(error, KsegError):
                    error.add_note(format_exc())
                outcome = _Outcome(None, error)
            connection.send(outcome)
    except (EOFError, OSError):
        return


def _end_with_parent() -> None:
    """Ends this process if the one that started it is gone, for example after SIGKILL."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_leave_after, args=(parent.sentinel,), daemon=True).start()


def _leave_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@contextmanager
def _without_interrupt() -> Iterator[None]:
    """Processes that are started inside get no signals that end a run; for this process, signals wait meanwhile.

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
