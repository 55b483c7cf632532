"""A coordinator's loading of the groups in a partition of `__consumer_offsets`, which fails at some tombstones.

The cleaner may remove one of several tombstones that belong together, and leave the others (KAFKA-21102).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from kseg.errors import plural, quote
from kseg.formats.codes import VERSION
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import OFFSETS_KEYS
from kseg.kernel.record import Record

NONE = -1
"""The epoch of a target assignment after its tombstone."""


class Unloadable(NamedTuple):
    """A record at which a coordinator fails; offset: the record's; sentence: the reason."""

    offset: int
    sentence: str


@dataclass(slots=True)
class _LoadedGroup:
    """The state of a group that decides about tombstones.

    members: each with whether it has left; targets: members with a target.
    """

    members: dict[str, bool] = field(default_factory=dict)
    targets: set[str] = field(default_factory=set)
    target_epoch: int = 0


class GroupLoading:
    """A replay of the records of a partition in order, like a coordinator's.

    unloadable: the first record at which it fails. Source: GroupMetadataManager.replay, of consumer, share and streams
    groups; ModernGroup.
    """

    def __init__(self) -> None:
        """Start without groups."""
        self.unloadable: Unloadable | None = None
        self._groups: dict[str, _LoadedGroup] = {}

    def take(self, record: Record) -> None:
        """Replay the next record."""
        key = record.key
        if key is None or len(key) < VERSION.size or self.unloadable is not None:
            return
        replay = _replays().get(VERSION.read(key))
        if replay is None:
            return
        try:
            fields = parse_message(OFFSETS_KEYS[VERSION.read(key)], 0, key, VERSION.end).value
        except MessageError:
            return
        name = fields["groupId"]
        group = self._groups.get(name)
        if group is None:
            if record.value is None:
                return
            group = self._groups[name] = _LoadedGroup()
        problem = replay(group, fields, record.value)
        if problem is not None:
            self.unloadable = Unloadable(record.offset, f"group {quote(name)}: {problem}")
        elif record.value is None and replay is _replay_group:
            del self._groups[name]


Replay = Callable[[_LoadedGroup, Fields, bytes | None], str | None]
"""Changes a group by a key and a value; returns the reason if a coordinator fails there."""


def _replay_group(group: _LoadedGroup, _: Fields, value: bytes | None) -> str | None:
    if value is not None:
        return None
    if group.members:
        return f"its tombstone comes while it still has {plural(len(group.members), 'member')}"
    if group.targets:
        members = plural(len(group.targets), "member")
        return f"its tombstone comes while the target assignment of {members} is still there"
    if group.target_epoch != NONE:
        return "its tombstone comes without a tombstone of its target assignment"
    return None


def _replay_member(group: _LoadedGroup, key: Fields, value: bytes | None) -> str | None:
    member = key["memberId"]
    if value is not None:
        group.members.setdefault(member, False)
        return None
    if member not in group.members:
        return None
    if not group.members[member]:
        return f"the tombstone of member {quote(member)} comes without a tombstone of its current assignment"
    if member in group.targets:
        return f"the tombstone of member {quote(member)} comes without a tombstone of its target assignment"
    del group.members[member]
    return None


def _replay_current(group: _LoadedGroup, key: Fields, value: bytes | None) -> str | None:
    member = key["memberId"]
    if value is not None or member in group.members:
        group.members[member] = value is None
    return None


def _replay_target(group: _LoadedGroup, _: Fields, value: bytes | None) -> str | None:
    if value is None and group.targets:
        members = plural(len(group.targets), "member")
        return f"the tombstone of its target assignment comes while that of {members} is still there"
    group.target_epoch = NONE if value is None else 0
    return None


def _replay_target_member(group: _LoadedGroup, key: Fields, value: bytes | None) -> str | None:
    if value is None:
        group.targets.discard(key["memberId"])
    else:
        group.targets.add(key["memberId"])
    return None


_BY_NAME: dict[str, Replay] = {
    "GroupMetadataKey": _replay_group,
    "GroupMemberMetadataKey": _replay_member,
    "GroupCurrentMemberAssignmentKey": _replay_current,
    "GroupTargetAssignmentMetadataKey": _replay_target,
    "GroupTargetAssignmentMemberKey": _replay_target_member,
}


@cache
def _replays() -> dict[int, Replay]:
    """Return the replay functions by the key's type."""
    return {
        number: replay
        for number, message in OFFSETS_KEYS.items()
        for name, replay in _BY_NAME.items()
        if message.name in (f"Consumer{name}", f"Share{name}", f"Streams{name}")
    }
