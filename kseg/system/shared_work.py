"""Work on many things, such as partitions, here or by processes: the results come in the things' order either way."""

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from typing import Generic, TypeVar

from kseg.errors import KsegError

WORTH_PROCESSES = 32 << 20
"""Bytes to read below which starting processes costs more than it gains."""
SMALLEST_COST = 256 << 10
"""A partition costs as much as reading so many bytes, even an empty one."""
_BUNDLE_COST = 4 << 20
_BUNDLE_COUNT = 16
_BUNDLES_OF_ONE = 4
"""Each process gets at least so many bundles, if all things are known: one may take much longer than the others."""
FAR_AT_ONCE = 16
"""Things in a store that are worked on at the same time."""
_MOST_AHEAD = 1024
"""Things that are looked at to judge whether there is enough to do."""

Item = TypeVar("Item")
Result = TypeVar("Result")
OnRead = Callable[[int], None]
"""Takes how many bytes were read since the last call."""


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
    """Each thing with each of its results, as if one after another was worked on; an error comes in its place too.

    Things and results are sent through pipes. Few results wait for an earlier one, whatever their size and number.
    When the context is left, the processes have ended.

    Args:
        work: gives a thing's results. It is sent too, where the system can't fork: a function of a module, or partial.
        items: the things; taken from a few steps ahead.
        cost_of: how many bytes it takes to read a thing.
        processes: how many work at once. None: as many as there are processors, if there is enough to read.
        on_read: takes the bytes that `work` says it has read.
        is_far: whether most of the time is waiting for a store: threads do it then. A process that was forked couldn't
            ask the store.

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
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def are_worth_processes(costs: Collection[int]) -> bool:
    """Whether processes gain more than they cost to start, for work that reads so many bytes in each of its parts."""
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
    """Has many things under way at once; what they have read is told when it is their turn."""
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
    """Things up to an error, which has its place after them: `error`. has_ended: whether all were taken."""

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
    """The first things, until there is enough to do for so many processes."""
    ahead: list[Item] = []
    cost = 0
    for item in items:
        ahead.append(item)
        cost += cost_of(item)
        if len(ahead) == _MOST_AHEAD or (cost >= WORTH_PROCESSES and len(ahead) > _BUNDLE_COUNT * wanted):
            break
    return ahead


def _bundles(items: Iterable[Item], cost_of: Callable[[Item], int], most: int) -> Iterator[tuple[Item, ...]]:
    """Things to send to a process together: at most so many, and small ones."""
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
