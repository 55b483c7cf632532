"""Processes that share work: Ctrl-C is for the one that started them, which then ends them at once."""

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context


@contextmanager
def process_pool(count: int, start_method: str | None = None) -> Iterator[ProcessPoolExecutor]:
    """A pool of so many processes; submit to it inside `without_interrupt`.

    If the block ends by Ctrl-C, or since nobody wants its results any more, what runs is ended; by another exception,
    what hasn't begun.
    """
    others = active_children()
    pool = ProcessPoolExecutor(count, get_context(start_method))
    try:
        yield pool
    except (KeyboardInterrupt, GeneratorExit):
        for process in active_children():
            if process not in others:
                process.terminate()
        raise
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        pool.shutdown()


@contextmanager
def without_interrupt() -> Iterator[None]:
    """Processes that are started inside get no SIGINT, ever; for this one it waits until the block ends."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
