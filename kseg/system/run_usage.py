"""Resources used by a run, and work that waits in threads."""

import math
import platform
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

from kseg.errors import plural

AT_ONCE = 8
"""The number of items in progress at the same time."""
_AHEAD = 8
_AWAKE_SECONDS = 0.2
"""The interval of waiting for a lock: the system may hand Ctrl-C to another thread, which doesn't end the wait."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def result_of(begun: Future[Result], seconds: float = math.inf) -> Result:
    """Return another thread's result. Signals end the wait, whichever thread gets them.

    Raises TimeoutError if there is none after `seconds`, and the exceptions of the work.
    """
    last = time.monotonic() + seconds
    while not wait([begun], _AWAKE_SECONDS).done:
        if time.monotonic() > last:
            raise TimeoutError
    return begun.result()


def in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], at_once: int = AT_ONCE, ahead: int = _AHEAD
) -> Iterator[Result]:
    """Yield the results of `work` for each item in order. After an error, or when closed, starts no others.

    ahead: the number of items per thread that are started before the first is done. Items are taken on demand, so
    there may be any number of them.
    """
    pool = ThreadPoolExecutor(at_once)
    begun: deque[Future[Result]] = deque()
    is_waited_for = True
    try:
        for item in items:
            begun.append(pool.submit(work, item))
            if len(begun) > ahead * at_once:
                yield result_of(begun.popleft())
        while begun:
            yield result_of(begun.popleft())
    except KeyboardInterrupt:
        is_waited_for = False  # a store may make this wait long
        raise
    finally:
        pool.shutdown(is_waited_for, cancel_futures=True)


_READ = Path("/proc/self/io")
_KIB = 1 if sys.platform == "darwin" else 1024
"""The unit of `ru_maxrss`."""


class Usage:
    """A counter of resources since its creation; memory counts for the process and its finished children."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._processors = _processor_seconds()
        self._read = _bytes_read()

    def line(self) -> str:
        """Return the used resources so far."""
        parts = [
            f"{time.monotonic() - self._start:.2f} s",
            f"{_processor_seconds() - self._processors:.2f} s CPU",
            f"{_largest_memory() >> 20} MiB peak memory",
        ]
        read = _bytes_read()
        if read is not None and self._read is not None:
            parts.append(f"{plural(read - self._read, 'byte')} read")
        return ", ".join(parts)


def system_name() -> str:
    """Return the system, its release, and the machine's architecture."""
    return f"{sys.platform} {platform.release()} {platform.machine()}"


def _processor_seconds() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def _largest_memory() -> int:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(used.ru_maxrss for used in both) * _KIB


def _bytes_read() -> int | None:
    """Return the bytes that this process has read, as Linux counts them; None on other systems."""
    try:
        counted = dict(line.split(": ") for line in _READ.read_text(encoding="ascii").splitlines())
        return int(counted["rchar"])
    except (OSError, ValueError, KeyError):
        return None
