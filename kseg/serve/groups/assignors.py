"""The assignors of the consumer protocol: which member is to read which partitions.

Source: KIP-848, UniformAssignor, RangeAssignor. What they promise is kept, not the very same choice.
"""

from collections.abc import Callable, Iterator, Mapping
from heapq import heapreplace
from typing import NamedTuple

Partition = tuple[str, int]
"""A topic's name and a partition's number."""
Assignment = dict[str, frozenset[Partition]]
"""Partitions by member."""


class Subscriber(NamedTuple):
    """A member as an assignor sees it: the topics that it wants, what it has, and what its place among others is."""

    member_id: str
    order: str
    topics: frozenset[str]
    owned: frozenset[Partition]


def assign_uniform(subscribers: list[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """As many partitions for each member as for any other, if subscriptions allow it; who has one mostly keeps it."""
    target: dict[str, set[Partition]] = {each.member_id: set() for each in subscribers}
    readers = {topic: names for topic, names in _readers(subscribers, counts) if names}
    taken: set[Partition] = set()
    for each in subscribers:
        for partition in sorted(each.owned - taken):
            topic, number = partition
            if topic in each.topics and number < counts.get(topic, 0):
                target[each.member_id].add(partition)
                taken.add(partition)
    queues: dict[tuple[str, ...], _Queue] = {}
    for topic, names in readers.items():
        queue = queues.setdefault(tuple(names), [(0, member_id) for member_id in names])
        for number in range(counts[topic]):
            if (topic, number) not in taken:
                target[_next_in(queue, target)].add((topic, number))
    while _level(target, readers):
        continue
    return {member_id: frozenset(partitions) for member_id, partitions in target.items()}


_Queue = list[tuple[int, str]]
"""A heap of members and how many partitions they had when that was last looked at."""


def _next_in(queue: _Queue, target: Mapping[str, set[Partition]]) -> str:
    """The member that has the fewest partitions."""
    while (count := len(target[queue[0][1]])) != queue[0][0]:
        heapreplace(queue, (count, queue[0][1]))
    return queue[0][1]


def _level(target: dict[str, set[Partition]], readers: Mapping[str, list[str]]) -> bool:
    """Moves partitions from members with more to ones with at least two fewer; whether one was moved."""
    has_moved = False
    for giver in sorted(target, key=lambda member_id: -len(target[member_id])):
        if len(target[giver]) - min(map(len, target.values())) < _WORTH_A_MOVE:
            continue
        for partition in sorted(target[giver], reverse=True):
            taker = _least(readers[partition[0]], target)
            if len(target[giver]) - len(target[taker]) >= _WORTH_A_MOVE:
                target[giver].remove(partition)
                target[taker].add(partition)
                has_moved = True
    return has_moved


_WORTH_A_MOVE = 2
"""How many more partitions a member has to have."""


def _least(names: list[str], target: Mapping[str, set[Partition]]) -> str:
    return min(names, key=lambda member_id: len(target[member_id]))


def assign_range(subscribers: list[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Of each topic a run of partitions for each member: the same numbers of topics with as many partitions."""
    target: dict[str, set[Partition]] = {each.member_id: set() for each in subscribers}
    for topic, names in _readers(sorted(subscribers, key=lambda each: each.order), counts):
        start = 0
        for place, member_id in enumerate(names):
            size = counts[topic] // len(names) + (place < counts[topic] % len(names))
            target[member_id].update((topic, number) for number in range(start, start + size))
            start += size
    return {member_id: frozenset(partitions) for member_id, partitions in target.items()}


def _readers(subscribers: list[Subscriber], counts: Mapping[str, int]) -> Iterator[tuple[str, list[str]]]:
    """Topics that are here, and who wants each."""
    wanted = frozenset[str]().union(*(each.topics for each in subscribers))
    for topic in sorted(wanted & counts.keys()):
        yield topic, [each.member_id for each in subscribers if topic in each.topics]


ASSIGNORS: dict[str, Callable[[list[Subscriber], Mapping[str, int]], Assignment]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}
"""By name, the default first. Source: group.consumer.assignors."""
