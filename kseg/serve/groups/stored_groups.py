"""Groups as `__consumer_offsets` on the disk has them: what they had committed, of which type they were."""

from collections.abc import Callable, Iterable
from threading import Lock

from kseg.errors import KsegError
from kseg.log.partition.partition_log import PartitionLog
from kseg.serve.groups.group_limits import COMMITS_SECONDS
from kseg.serve.log_end import FileState, state_of
from kseg.views.group import Group
from kseg.views.groups import partition_groups

_PAUSE = 20
"""Times as long as reading took it isn't done again."""
SERVED_TYPES = frozenset({"classic", "consumer"})


class StoredGroups:
    """The groups of partitions of `__consumer_offsets`, read when they are first asked for; for several threads.

    If a broker is writing there, they are read again every now and then.
    """

    def __init__(
        self, partitions: Iterable[PartitionLog], say: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        """Takes one replica of each partition; `say` is called with what can't be read."""
        self._places = [_StoredPartition(each, say) for each in partitions]
        self._clock = clock
        self._found: dict[str, Group] = {}
        self._next_look: float | None = None
        self._lock = Lock()

    def by_name(self) -> dict[str, Group]:
        """Consumers' groups by name. Share groups and those of streams applications aren't served."""
        with self._lock:
            now = self._clock()
            if self._next_look is None or now >= self._next_look:
                found = [group for place in self._places for group in place.groups()]
                self._found = {group.group: group for group in found if group.type in SERVED_TYPES}
                after = self._clock()
                self._next_look = after + max(COMMITS_SECONDS, _PAUSE * (after - now))
            return self._found


class _StoredPartition:
    """A partition of it, read again once it has changed."""

    def __init__(self, partition: PartitionLog, say: Callable[[str], None]) -> None:
        self._partition, self._say = partition, say
        self._state: FileState | None = None
        self._groups: tuple[Group, ...] = ()
        self._told: set[str] = set()

    def groups(self) -> tuple[Group, ...]:
        """Its groups; those that were last read if it can't be read any more."""
        try:
            self._partition = self._partition.as_it_is()
            state = state_of(self._partition)
            if state is None or state != self._state:
                view = partition_groups(self._partition)
                self._groups, self._state = view.groups, state
                for unreadable in view.unreadable:
                    if not unreadable.is_tail:
                        self._tell(f"{unreadable.line()}: commits there aren't served")
        except KsegError as error:
            self._tell(f"{error}: commits there aren't served")
        return self._groups

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line)
