"""Work that waits for others, as for answers of a store: several things at once, in threads of this process."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

AT_ONCE = 8
"""Things that are worked on at the same time."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], at_once: int = AT_ONCE) -> Iterator[Result]:
    """What `work` gives for each thing, in their order. If one fails, or no more is wanted, no other is begun."""
    pool = ThreadPoolExecutor(at_once)
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)
