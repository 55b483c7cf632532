"""Clients that wait at the end of a log: one look at the logs for all of them, every now and then."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Executor

from kseg.errors import KsegError
from kseg.serve.limits import GROWTH_SECONDS
from kseg.serve.served_partition import ServedPartition


class Growth:
    """Who waits for partitions to grow. While nobody does, nobody looks."""

    def __init__(self, workers: Executor) -> None:
        """Takes the threads that look at files."""
        self._workers = workers
        self._awaited: Counter[ServedPartition] = Counter()
        self._grown = asyncio.Condition()
        self._ends: dict[ServedPartition, int] = {}
        self._watch: asyncio.Task[None] | None = None

    async def wait(self, ends: Mapping[ServedPartition, int], seconds: float) -> None:
        """Waits until one of some partitions goes on after its end so far, or for so long."""
        self._awaited.update(ends.keys())
        if self._watch is None:
            self._watch = asyncio.create_task(self._look_on())
        try:
            async with asyncio.timeout(seconds), self._grown:
                await self._grown.wait_for(lambda: any(self._ends.get(each, 0) > end for each, end in ends.items()))
        except TimeoutError:
            return
        finally:
            self._awaited.subtract(ends.keys())
            self._awaited = +self._awaited

    async def _look_on(self) -> None:
        """Looks at the partitions that somebody waits for, until nobody does."""
        loop = asyncio.get_running_loop()
        while self._awaited:
            await asyncio.sleep(GROWTH_SECONDS)
            found = await loop.run_in_executor(self._workers, _ends_of, list(self._awaited))
            async with self._grown:
                self._ends = found
                self._grown.notify_all()
        self._watch = None
        self._ends = {}

    def stop(self) -> None:
        """Looks no longer."""
        if self._watch is not None:
            self._watch.cancel()


def _ends_of(partitions: list[ServedPartition]) -> dict[ServedPartition, int]:
    found = {}
    for partition in partitions:
        try:
            found[partition] = partition.offsets().high_watermark
        except KsegError:
            continue
    return found
