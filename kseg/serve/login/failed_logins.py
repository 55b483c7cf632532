"""Log-ins that failed: their answers are held back, and few of one host at once, so that guessing takes its time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MOST_OF_A_HOST = 16
"""Failed log-ins of one host whose answers are held back; while there are so many, nobody there is let in."""


class Failures:
    """Whose failed log-ins are being held back. Used on the event loop alone."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    def bars(self, host: str) -> bool:
        """Whether a host has failed too often just now."""
        return self._held[host] >= MOST_OF_A_HOST

    @asynccontextmanager
    async def held(self, host: str, seconds: float) -> AsyncIterator[None]:
        """Begins after so many seconds; others aren't held up."""
        self._held[host] += 1
        try:
            await asyncio.sleep(seconds)
            yield
        finally:
            self._held[host] -= 1
            self._held += Counter()  # forgets hosts without any
