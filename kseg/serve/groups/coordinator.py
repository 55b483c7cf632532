"""The coordinator of all groups: finds them by name, enforces limits, and expires members."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from threading import RLock
from time import monotonic
from typing import TypeVar

from kseg.protocol.error_codes import ErrorCode
from kseg.serve.groups.classic import ClassicGroup, JoinOutcome, JoinRequest, MemberName, Synced
from kseg.serve.groups.commits import Commits, Committed, Partition, size_of
from kseg.serve.groups.consumer import JOINS, Beat, ConsumerGroup, HeartbeatRequest
from kseg.serve.values import GROUP_SECONDS, MOST_GROUP_BYTES, MOST_GROUPS, GroupError, shown_text

LiveGroup = ClassicGroup | ConsumerGroup
Seen = TypeVar("Seen")


class GroupCoordinator:
    """Groups with members, and the commits of groups; safe for several threads.

    A group without members is forgotten, its commits aren't. Each request for a group first expires its members.
    """

    def __init__(
        self,
        commits: Commits,
        counts: Mapping[str, int],
        say: Callable[[str], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Begin without groups.

        Args:
            commits: committed offsets.
            counts: assignable partitions of each topic.
            say: called once, at the first commit.
            clock: seconds.
        """
        self._commits, self._counts, self._say, self._clock = commits, counts, say, clock
        self._groups: dict[str, LiveGroup] = {}
        self._sizes: dict[str, int] = {}
        self._size = 0
        self._next_look = 0.0
        self._has_told = False
        self._lock = RLock()

    def join(self, name: str, wanted: JoinRequest) -> Future[JoinOutcome]:
        """Let a client into a classic group. Raises GroupError."""
        with self._lock_group(name, wanted.size) as group:
            if group is None and wanted.member_id:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            if isinstance(group, ConsumerGroup):
                raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            classic = ClassicGroup(name) if group is None else group
            if group is None:
                self._add(classic)
            return classic.join(wanted, self._clock())

    def sync(
        self, name: str, who: MemberName, protocol: tuple[str | None, str | None], assignments: dict[str, bytes]
    ) -> Future[Synced]:
        """Return the assignment of a classic group's member; `protocol`: its type and name. Raises GroupError."""
        with self._lock_group(name, sum(map(len, assignments.values()))) as group:
            return _classic(group).sync(who, protocol, assignments, self._clock())

    def heartbeat(self, name: str, who: MemberName) -> None:
        """Keep a member in a classic group. Raises GroupError."""
        with self._lock_group(name) as group:
            _classic(group).heartbeat(who, self._clock())

    def leave(self, name: str, member_id: str, instance_id: str | None) -> None:
        """Remove a member from a group. Raises GroupError."""
        with self._lock_group(name) as group:
            if isinstance(group, ConsumerGroup):
                group.remove(member_id, instance_id)
            else:
                _classic(group).leave(member_id, instance_id, self._clock())

    def consumer_heartbeat(self, name: str, wanted: HeartbeatRequest) -> Beat:
        """Add, keep or remove a member of a group of the consumer protocol. Raises GroupError."""
        with self._lock_group(name, wanted.size if wanted.says_everything else 0) as group:
            if isinstance(group, ClassicGroup):
                raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {name} uses the classic protocol")
            if group is None and wanted.epoch != JOINS:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            consumer = ConsumerGroup(name, self._counts) if group is None else group
            if group is None:
                self._add(consumer)
            return consumer.heartbeat(wanted, self._clock())

    def commit(self, name: str, who: MemberName, offsets: Mapping[Partition, Committed]) -> None:
        """Keep offsets in memory. Raises GroupError if this client can't commit them."""
        with self._lock_group(name, size_of(offsets)) as group:
            if isinstance(group, ConsumerGroup):
                group.check_epoch(who.member_id, who.epoch)
            elif group is not None:
                group.check_commit(who)
            elif who.epoch >= 0 or who.member_id:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            elif name not in self._commits.new_groups:
                self._require_room_for_group()
            self._commits.take(name, offsets, None if group is None else group.kind)
            if not self._has_told:
                self._has_told = True
                self._say(
                    f"group {shown_text(name)}: commits are kept while this server runs, and not written to the disk"
                )

    def commits_of(self, name: str, member_id: str | None, epoch: int) -> dict[Partition, Committed]:
        """Return a group's commits. Raises GroupError if the client isn't the member that it claims to be."""
        with self._lock_group(name) as group:
            if isinstance(group, ConsumerGroup) and member_id is not None:
                group.check_epoch(member_id, epoch)
            new = self._commits.new_of(name)
        return self._commits.stored_of(name) | new  # outside of the lock: the disk may have to be read

    def see(self, name: str, look: Callable[[LiveGroup], Seen]) -> Seen | None:
        """Return `look`'s view of an unchanging group with members, or None if it doesn't exist."""
        with self._lock_group(name) as group:
            return None if group is None else look(group)

    def live(self, look: Callable[[LiveGroup], Seen]) -> dict[str, Seen]:
        """Return `look`'s views of all groups with members."""
        with self._lock:
            self._pass_time()
            return {name: look(group) for name, group in self._groups.items()}

    @property
    def commits(self) -> Commits:
        """The committed offsets, and the groups that have some."""
        return self._commits

    @property
    def is_look_due(self) -> bool:
        """True if a member's time may be over since the last check."""
        return self._clock() >= self._next_look

    def pass_time(self) -> None:
        """Remove members whose time is over, so that the members waiting for them can continue."""
        with self._lock:
            if self.is_look_due:
                self._pass_time()

    def _pass_time(self) -> None:
        now = self._clock()
        self._next_look = now + GROUP_SECONDS / 2
        for group in list(self._groups.values()):
            group.pass_time(now)
            self._weigh(group)

    @contextmanager
    def _lock_group(self, name: str, size: int = 0) -> Iterator[LiveGroup | None]:
        """Lock the groups, and yield one to change, None without members; `size`: the most bytes that it may grow by.

        Raises GroupError if the limit of all groups would be exceeded.
        """
        with self._lock:
            group = self._groups.get(name)
            if group is not None:
                group.pass_time(self._clock())
                self._weigh(group)
            if size and self._size + self._commits.size + size > MOST_GROUP_BYTES:
                self._pass_time()
                if self._size + self._commits.size + size > MOST_GROUP_BYTES:
                    raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED, "kseg serve has no memory left for groups")
            try:
                yield self._groups.get(name)
            finally:
                changed = self._groups.get(name)
                if changed is not None:
                    self._weigh(changed)

    def _add(self, group: LiveGroup) -> None:
        if group.name not in self._commits.new_groups:
            self._require_room_for_group()
        self._groups[group.name] = group

    def _require_room_for_group(self) -> None:
        if len(self._groups) + len(self._commits.new_groups) < MOST_GROUPS:
            return
        self._pass_time()
        if len(self._groups.keys() | self._commits.new_groups) >= MOST_GROUPS:
            raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"kseg serve allows at most {MOST_GROUPS} groups")

    def _weigh(self, group: LiveGroup) -> None:
        """Note a group's size, or forget the group if it has no members left."""
        size = 0 if group.is_empty else group.size
        self._size += size - self._sizes.get(group.name, 0)
        self._sizes[group.name] = size
        if group.is_empty:
            del self._groups[group.name], self._sizes[group.name]


def _classic(group: LiveGroup | None) -> ClassicGroup:
    if not isinstance(group, ClassicGroup):
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
    return group
