"""The time limit of a connection's waits."""

import asyncio
from math import inf
from types import TracebackType


class Deadline:
    """The time limit of the current task's waits, one at a time; a context that raises TimeoutError.

    One timer serves many waits, because a new limit usually ends after the timer. asyncio.timeout makes a timer for
    each wait; that costs more than most waits, whose bytes have already arrived.
    """

    def __init__(self) -> None:
        """Begin without a limit."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._ends = inf
        self._timer: asyncio.TimerHandle | None = None
        self._cancelled_before = 0
        self._has_passed = False

    def within(self, seconds: float) -> "Deadline":
        """Set the limit of the wait that is entered next."""
        self._ends = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._ends:
            self._set_timer()
        return self

    def close(self) -> None:
        """Drop the timer and the task: the exception of the task refers to its data."""
        self._ends, self._task = inf, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def __enter__(self) -> None:
        if self._task is not None:
            self._cancelled_before = self._task.cancelling()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._ends = inf
        if self._has_passed and self._task is not None:
            self._has_passed = False
            is_alone = self._task.uncancel() <= self._cancelled_before
            if is_alone and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._ends, self._expire)

    def _expire(self) -> None:
        """Cancel the wait if its time has passed; otherwise, set the timer again."""
        self._timer = None
        if self._ends == inf:
            return
        if self._loop.time() < self._ends:
            self._set_timer()
        elif self._task is not None:
            self._has_passed = True
            self._ends = inf
            self._task.cancel()
