"""Processes that share work: signals are for the one that started them, which then ends them at once."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread

from kseg.errors import KsegError
from kseg.interrupts import ENDING, Uninterrupted
from kseg.safe_path import SafeChildren
from kseg.scratch import remove_dead


@contextmanager
def process_pool(count: int, start_method: str | None = None) -> Iterator[ProcessPoolExecutor]:
    """A pool of so many processes; submit to it inside `without_interrupt`.

    If the block ends by a signal, or since nobody wants its results any more, what runs is ended; by another exception,
    what hasn't begun. No process of it imports from the current directory. Raises KsegError if one of them is killed.
    """
    others = active_children()
    with SafeChildren(), without_interrupt():
        pool = ProcessPoolExecutor(count, get_context(start_method), initializer=_end_with_parent)
    try:
        with SafeChildren():
            yield pool
    except (KeyboardInterrupt, GeneratorExit):
        with Uninterrupted():
            for process in active_children():
                if process not in others:
                    process.kill()
            pool.shutdown()
            remove_dead()
        raise
    except BrokenProcessPool as error:
        raise KsegError("a process that shares the work was killed; fewer of them need less memory") from error
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        pool.shutdown()


def _end_with_parent() -> None:
    """Runs in a process of the pool: it ends if the one that started it has gone, by SIGKILL for one."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_leave_after, args=(parent.sentinel,), daemon=True).start()


def _leave_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@contextmanager
def without_interrupt() -> Iterator[None]:
    """Processes that are started inside get none of the signals that end a run; for this one they wait until then.

    They come to all processes of a terminal or service at once: who started the others ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
