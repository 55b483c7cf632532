"""Commits of groups, groups stored on disk, and assignors."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapreplace
from threading import Lock
from typing import NamedTuple

from kseg.cluster.joined_log import relist, whole_log
from kseg.cluster.replicas import PartitionReplicas
from kseg.coordinators.groups import partition_groups
from kseg.coordinators.members import Group
from kseg.errors import KsegError, pass_once
from kseg.log.partition import PartitionLog
from kseg.serve.intact_end import FileState, state_of
from kseg.serve.values import COMMIT_BYTES, COMMITS_SECONDS

_PAUSE = 20
"""The pause after reading groups, as a multiple of the time that it took."""
SERVED_TYPES = frozenset({"classic", "consumer"})


class StoredGroups:
    """The groups in partitions of `__consumer_offsets`, read on first use; safe for several threads.

    If a broker writes there, they are read again from time to time.
    """

    def __init__(
        self,
        partitions: Iterable[PartitionReplicas[PartitionLog]],
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        """Take the copies of each partition; `say` receives problems while reading."""
        self._places = [_StoredPartition(each, say) for each in partitions]
        self._clock = clock
        self._found: dict[str, Group] = {}
        self._next_look: float | None = None
        self._lock = Lock()

    def by_name(self) -> dict[str, Group]:
        """Return consumers' groups by name, without share groups and streams groups."""
        with self._lock:
            now = self._clock()
            if self._next_look is None or now >= self._next_look:
                found = [group for place in self._places for group in place.groups()]
                self._found = {group.group: group for group in found if group.type in SERVED_TYPES}
                after = self._clock()
                self._next_look = after + max(COMMITS_SECONDS, _PAUSE * (after - now))
            return self._found


class _StoredPartition:
    """A partition of `__consumer_offsets`, read again once it has changed."""

    def __init__(self, replicas: PartitionReplicas[PartitionLog], say: Callable[[str], None]) -> None:
        self._replicas, self._say = replicas, pass_once(say)
        self._state: FileState | None = None
        self._groups: tuple[Group, ...] = ()

    def groups(self) -> tuple[Group, ...]:
        """Return its groups; the last known ones if it can't be read any more."""
        try:
            self._replicas = relist(self._replicas)
            state = state_of(self._replicas.best)
            if state is None or state != self._state:
                view = partition_groups(whole_log(self._replicas))
                self._groups, self._state = view.groups, state
                for unreadable in view.unreadable:
                    if not unreadable.is_tail:
                        self._say(f"{unreadable.line()}: commits there aren't served")
        except KsegError as error:
            self._say(f"{error}: commits there aren't served")
        return self._groups


Partition = tuple[str, int]
"""A topic's name and a partition's number."""
Assignment = dict[str, frozenset[Partition]]
"""Partitions by member."""


class Subscriber(NamedTuple):
    """A member as an assignor sees it: its subscribed topics, its partitions, and its place in the order."""

    member_id: str
    order: str
    topics: frozenset[str]
    owned: frozenset[Partition]


def assign_uniform(subscribers: list[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Assign members equal numbers of partitions, as far as subscriptions allow; they mostly keep theirs."""
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
"""A heap of members and their partition counts at the last check."""


def _next_in(queue: _Queue, target: Mapping[str, set[Partition]]) -> str:
    """Return the member with the fewest partitions."""
    while (count := len(target[queue[0][1]])) != queue[0][0]:
        heapreplace(queue, (count, queue[0][1]))
    return queue[0][1]


def _level(target: dict[str, set[Partition]], readers: Mapping[str, list[str]]) -> bool:
    """Move a partition from a member to one with at least two fewer; return whether one was moved."""
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
"""The difference in partitions that is worth a move."""


def _least(names: list[str], target: Mapping[str, set[Partition]]) -> str:
    return min(names, key=lambda member_id: len(target[member_id]))


def assign_range(subscribers: list[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Assign each member a range of each topic; topics with equal partition counts get the same ranges."""
    target: dict[str, set[Partition]] = {each.member_id: set() for each in subscribers}
    for topic, names in _readers(sorted(subscribers, key=lambda each: each.order), counts):
        start = 0
        for place, member_id in enumerate(names):
            size = counts[topic] // len(names) + (place < counts[topic] % len(names))
            target[member_id].update((topic, number) for number in range(start, start + size))
            start += size
    return {member_id: frozenset(partitions) for member_id, partitions in target.items()}


def _readers(subscribers: list[Subscriber], counts: Mapping[str, int]) -> Iterator[tuple[str, list[str]]]:
    """Yield available topics with their subscribers."""
    wanted = frozenset[str]().union(*(each.topics for each in subscribers))
    for topic in sorted(wanted & counts.keys()):
        yield topic, [each.member_id for each in subscribers if topic in each.topics]


ASSIGNORS: dict[str, Callable[[list[Subscriber], Mapping[str, int]], Assignment]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}
"""The assignors by name, the default first. Source: group.consumer.assignors."""


class Committed(NamedTuple):
    """A committed offset with its metadata."""

    offset: int
    leader_epoch: int
    metadata: str


class GroupKind(NamedTuple):
    """A group's type, and its members' protocol type: empty if it never had members."""

    type: str = "classic"
    protocol_type: str = ""


class Commits:
    """Committed offsets by group. Commits made here override those on the disk."""

    def __init__(self, stored: StoredGroups) -> None:
        """Take the groups on the disk."""
        self._stored = stored
        self._new: dict[str, dict[Partition, Committed]] = {}
        self._kinds: dict[str, GroupKind] = {}
        self.size = 0

    def stored_group(self, group: str) -> Group | None:
        """Return a group as stored on the disk."""
        return self._stored.by_name().get(group)

    def stored_of(self, group: str) -> dict[Partition, Committed]:
        """Return the commits of a group that are on disk, except those in open transactions."""
        known = self.stored_group(group)
        return {
            (each.topic, each.partition): Committed(each.offset, each.leader_epoch, each.metadata)
            for each in (() if known is None else known.commits)
        }

    def new_of(self, group: str) -> dict[Partition, Committed]:
        """Return a group's commits to this server."""
        return dict(self._new.get(group, {}))

    def take(self, group: str, offsets: Mapping[Partition, Committed], kind: GroupKind | None) -> None:
        """Keep a group's commits; `kind`: the group's kind if it has members, None otherwise."""
        if kind is not None:
            self._kinds[group] = kind
        kept = self._new.setdefault(group, {})
        for partition, committed in offsets.items():
            before = kept.get(partition)
            self.size += _size_of(partition, committed) - (0 if before is None else _size_of(partition, before))
            kept[partition] = committed

    @property
    def new_groups(self) -> frozenset[str]:
        """The groups that have committed to this server."""
        return frozenset(self._new)

    def kinds(self) -> dict[str, GroupKind]:
        """Return the kinds of groups when they last had members, by name."""
        stored = {name: GroupKind(group.type, group.protocol_type) for name, group in self._stored.by_name().items()}
        return {**dict.fromkeys(list(self._new), GroupKind()), **stored, **self._kinds}


def size_of(offsets: Mapping[Partition, Committed]) -> int:
    """Return the size of some commits in bytes."""
    return sum(_size_of(partition, committed) for partition, committed in offsets.items())


def _size_of(partition: Partition, committed: Committed) -> int:
    return COMMIT_BYTES + len(partition[0]) + len(committed.metadata)
