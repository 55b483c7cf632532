"""Work on many items, such as partitions, here or in processes, with results in the items' order."""

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

from kseg.errors import KsegError

if TYPE_CHECKING:
    from kseg.system.processes import Write

WORTH_PROCESSES = 32 << 20
"""Bytes to read below which starting processes costs more than it gains."""
SMALLEST_COST = 256 << 10
"""The cost of a partition, even an empty one, as bytes to read."""
_BUNDLE_COST = 4 << 20
_BUNDLE_COUNT = 16
_BUNDLES_OF_ONE = 4
"""The least number of bundles per process, if all items are known: one may take much longer than the others."""
FAR_AT_ONCE = 16
"""Items in a store in progress at the same time."""
_MOST_AHEAD = 1024
"""The most items that are examined to judge whether there is enough work."""

Item = TypeVar("Item")
Result = TypeVar("Result")
OnRead = Callable[[int], None]
"""A function that takes the bytes read since the last call."""


@contextmanager
def shared_work(
    work: Callable[[Item, OnRead], Iterable[Result]],
    items: Iterable[Item],
    cost_of: Callable[[Item], int],
    *,
    processes: int | None = None,
    on_read: OnRead | None = None,
    is_far: bool = False,
) -> Iterator[Iterator[tuple[Item, Result]]]:
    """Return each item with each of its results in order; an error also keeps its place.

    Items and results are sent through pipes. Few results wait for an earlier one, whatever their size and number. When
    the context is left, the processes have ended.

    Args:
        work: returns an item's results. It is sent too if the system can't fork: a function of a module, or partial.
        items: the items; taken from a few steps ahead.
        cost_of: the bytes to read for an item.
        processes: the number of processes. None: one per processor, if there is enough to read.
        on_read: takes the bytes that `work` reports as read.
        is_far: whether most of the time is waiting for a store, so that threads do it. Forked processes couldn't use
            the store.

    Raises:
        KsegError: one of the processes was killed.
    """
    on_read = on_read or _ignore
    if is_far and processes != 1:
        found = _results_by_threads(work, items, on_read)
    else:
        found = _results(work, items, cost_of, processes, on_read)
    with closing(found) as results:
        yield results


def processors() -> int:
    """Return the number of processors for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def shared_writing(
    work: Callable[[Item, OnRead, "Write"], Iterable[Result]],
    items: Iterable[Item],
    cost_of: Callable[[Item], int],
    count: int,
) -> Iterator[Iterator[tuple[Item, Result | memoryview]]]:
    """Return the same as `shared_work`, and the bytes that `work` passes to its last argument.

    `count` forked processes work. A process holds a few MiB of written bytes until it is its items' turn. The bytes are
    valid until the next result is taken.

    Raises:
        KsegError: one of the processes was killed.
    """
    from kseg.system.processes import writings_in_turn

    with closing(writings_in_turn(count, work, _bundles(items, cost_of, _BUNDLE_COUNT), _ignore)) as results:
        yield results


def are_worth_processes(costs: Collection[int]) -> bool:
    """Return True if processes gain more than they cost to start, for parts of work with these bytes to read."""
    return len(costs) > 1 and sum(costs) >= WORTH_PROCESSES


def _ignore(_: int) -> None:
    pass


def _results(
    work: Callable[[Item, OnRead], Iterable[Result]],
    items: Iterable[Item],
    cost_of: Callable[[Item], int],
    processes: int | None,
    on_read: OnRead,
) -> Generator[tuple[Item, Result], None, None]:
    wanted = processors() if processes is None else processes
    if wanted < 2:
        yield from _results_here(work, items, on_read)
        return
    source = _BundleSource(items)
    waiting = iter(source)
    ahead = _look_ahead(waiting, cost_of, wanted)
    known = chain(ahead, waiting)
    count = min(wanted, len(ahead))
    if count < 2 or (processes is None and not are_worth_processes([*map(cost_of, ahead)])):
        yield from _results_here(work, known, on_read)
    else:
        from kseg.system.processes import results_in_turn

        most = max(len(ahead) // (_BUNDLES_OF_ONE * count), 1) if source.has_ended else _BUNDLE_COUNT
        yield from results_in_turn(count, work, _bundles(known, cost_of, min(most, _BUNDLE_COUNT)), on_read)
    if source.error is not None:
        raise source.error


def _results_here(
    work: Callable[[Item, OnRead], Iterable[Result]], items: Iterable[Item], on_read: OnRead
) -> Iterator[tuple[Item, Result]]:
    for item in items:
        for result in work(item, on_read):
            yield item, result


def _results_by_threads(
    work: Callable[[Item, OnRead], Iterable[Result]], items: Iterable[Item], on_read: OnRead
) -> Generator[tuple[Item, Result], None, None]:
    """Work on many items at once; the bytes of each are reported in its turn."""
    from kseg.system.run_usage import in_threads

    def done(item: Item) -> tuple[Item, list[Result], list[int]]:
        read: list[int] = []
        return item, list(work(item, read.append)), read

    source = _BundleSource(items)
    for item, results, read in in_threads(done, source, FAR_AT_ONCE, ahead=1):
        on_read(sum(read))
        yield from ((item, result) for result in results)
    if source.error is not None:
        raise source.error


class _BundleSource(Generic[Item]):
    """Items up to an error, which comes after them: `error`. has_ended: whether all were taken."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self.error: Exception | None = None
        self.has_ended = False

    def __iter__(self) -> Iterator[Item]:
        try:
            yield from self._items
        except (KsegError, OSError) as error:
            self.error = error
        self.has_ended = True


def _look_ahead(items: Iterator[Item], cost_of: Callable[[Item], int], wanted: int) -> list[Item]:
    """Return the first items, until there is enough work for `wanted` processes."""
    ahead: list[Item] = []
    cost = 0
    for item in items:
        ahead.append(item)
        cost += cost_of(item)
        if len(ahead) == _MOST_AHEAD or (cost >= WORTH_PROCESSES and len(ahead) > _BUNDLE_COUNT * wanted):
            break
    return ahead


def _bundles(items: Iterable[Item], cost_of: Callable[[Item], int], most: int) -> Iterator[tuple[Item, ...]]:
    """Yield bundles of items for a process: at most `most` items, fewer if they are large."""
    bundle: list[Item] = []
    cost = 0
    for item in items:
        bundle.append(item)
        cost += cost_of(item)
        if len(bundle) == most or cost >= _BUNDLE_COST:
            yield tuple(bundle)
            bundle, cost = [], 0
    if bundle:
        yield tuple(bundle)
