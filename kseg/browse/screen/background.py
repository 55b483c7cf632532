"""Reading that must not hold up the screen: one work after another, in other threads."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from textual.app import App

from kseg.browse.searches import Watch
from kseg.errors import KsegError

T = TypeVar("T")
Work: TypeAlias = Callable[[Watch], Coroutine[Any, Any, None]]


class Background:
    """Does one work at a time; of those that wait for it only the last one is done."""

    def __init__(self, app: App[None], complain: Callable[[str], None], end: Callable[[], None]) -> None:
        """Takes whose screen it is, what says why a work has failed, and what is called after each."""
        self._app, self._complain, self._end = app, complain, end
        self._watch: Watch | None = None
        self._waiting: Work | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being read or searched for."""
        return self._watch is not None

    @property
    def line(self) -> str:
        """How far a search has got; empty if there is nothing to say."""
        return "" if self._watch is None else self._watch.line

    def begin(self, work: Work) -> None:
        """Begins some work; if there is some going on, after that."""
        if self.is_busy:
            self._waiting = work
            return
        self._watch = Watch()
        self._app.run_worker(self._watched(work, self._watch), exit_on_error=True)

    def stop(self) -> None:
        """Stops what is going on as soon as it looks, and what waits for it."""
        self._waiting = None
        if self._watch is not None:
            self._watch.is_stopped = True

    async def in_thread(self, read: Callable[[], T]) -> T:
        """Reads in another thread: a part of a work."""
        return await asyncio.to_thread(read)

    async def _watched(self, work: Work, watch: Watch) -> None:
        try:
            await work(watch)
        except (KsegError, OSError) as error:
            self._complain(error.message if isinstance(error, KsegError) and error.status == 1 else str(error))
        except MemoryError:
            self._complain("there isn't enough memory for this")
        finally:
            self._watch = None
        waiting, self._waiting = self._waiting, None
        if waiting is not None and self._app.is_running:
            self.begin(waiting)
        self._end()
