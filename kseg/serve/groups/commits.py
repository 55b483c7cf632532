"""What groups have committed: on the disk, and to this server, which keeps it in memory."""

from collections.abc import Mapping
from typing import NamedTuple

from kseg.serve.groups.assignors import Partition
from kseg.serve.groups.group_limits import COMMIT_BYTES
from kseg.serve.groups.stored_groups import StoredGroups
from kseg.views.group import Group


class Committed(NamedTuple):
    """An offset that a group committed, and what it noted beside it."""

    offset: int
    leader_epoch: int
    metadata: str


class GroupKind(NamedTuple):
    """Of which type a group is, and what its members call their protocol: empty if it never had any."""

    type: str = "classic"
    protocol_type: str = ""


class Commits:
    """Committed offsets by group. Newer ones, made here, come before those of the disk."""

    def __init__(self, stored: StoredGroups) -> None:
        """Takes the groups on the disk."""
        self._stored = stored
        self._new: dict[str, dict[Partition, Committed]] = {}
        self._kinds: dict[str, GroupKind] = {}
        self.size = 0

    def stored(self, group: str) -> Group | None:
        """A group as the disk has it."""
        return self._stored.by_name().get(group)

    def stored_of(self, group: str) -> dict[Partition, Committed]:
        """What a group had committed to the disk. Commits of transactions that haven't ended don't count."""
        known = self.stored(group)
        return {
            (each.topic, each.partition): Committed(each.offset, each.leader_epoch, each.metadata)
            for each in (() if known is None else known.commits)
        }

    def new_of(self, group: str) -> dict[Partition, Committed]:
        """What a group has committed to this server."""
        return dict(self._new.get(group, {}))

    def take(self, group: str, offsets: Mapping[Partition, Committed], kind: GroupKind | None) -> None:
        """Keeps what a group commits; `kind`: if it has members, None otherwise."""
        if kind is not None:
            self._kinds[group] = kind
        kept = self._new.setdefault(group, {})
        for partition, committed in offsets.items():
            before = kept.get(partition)
            self.size += _size_of(partition, committed) - (0 if before is None else _size_of(partition, before))
            kept[partition] = committed

    @property
    def new_groups(self) -> frozenset[str]:
        """Groups that have committed to this server."""
        return frozenset(self._new)

    def kinds(self) -> dict[str, GroupKind]:
        """Of which kind groups were when they last had members, by name."""
        stored = {name: GroupKind(group.type, group.protocol_type) for name, group in self._stored.by_name().items()}
        return {**dict.fromkeys(list(self._new), GroupKind()), **stored, **self._kinds}


def size_of(offsets: Mapping[Partition, Committed]) -> int:
    """Bytes that some commits take."""
    return sum(_size_of(partition, committed) for partition, committed in offsets.items())


def _size_of(partition: Partition, committed: Committed) -> int:
    return COMMIT_BYTES + len(partition[0]) + len(committed.metadata)
