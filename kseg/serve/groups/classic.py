"""Classic consumer groups and their members."""

from collections import Counter
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar
from uuid import uuid4

from kseg.protocol.error_codes import ErrorCode
from kseg.serve.groups.commits import GroupKind
from kseg.serve.values import FIRST_JOIN_SECONDS, MEMBER_BYTES, MOST_MEMBERS, GroupError

Outcome = TypeVar("Outcome")


class ClientName(NamedTuple):
    """A client's own name, and its host."""

    client_id: str
    host: str


class MemberName(NamedTuple):
    """A member as named in a request; `epoch` is a generation, or a member's epoch."""

    member_id: str
    instance_id: str | None
    epoch: int


class Protocol(NamedTuple):
    """An assignor supported by a member, and the metadata that the member sends to the leader."""

    name: str
    metadata: bytes


class JoinRequest(NamedTuple):
    """A request to join. `needs_known_id`: a client without an id gets one first, then joins with it."""

    member_id: str
    instance_id: str | None
    client: ClientName
    session_seconds: float
    rebalance_seconds: float
    protocol_type: str
    protocols: tuple[Protocol, ...]
    needs_known_id: bool = False
    may_skip_assignment: bool = False

    @property
    def size(self) -> int:
        """The number of kept bytes."""
        texts = (self.member_id, self.instance_id or "", self.client.client_id, self.protocol_type)
        protocols = sum(len(each.name) + len(each.metadata) for each in self.protocols)
        return MEMBER_BYTES + sum(map(len, texts)) + protocols


class JoinedMember(NamedTuple):
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinOutcome(NamedTuple):
    """The answer to a join once all members have joined; `members`: all of them for the leader, otherwise none."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[JoinedMember, ...] = ()
    skips_assignment: bool = False


class Synced(NamedTuple):
    """The answer to a sync once the leader has assigned partitions."""

    protocol_type: str
    protocol: str
    assignment: bytes


@dataclass(slots=True)
class ClassicMember:
    """A member: its request to join, its pending requests, and the end of its session."""

    member_id: str
    wanted: JoinRequest
    deadline: float = 0.0
    assignment: bytes = b""
    joining: Future[JoinOutcome] | None = None
    syncing: Future[Synced] | None = None
    protocols: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Take the request to join."""
        self.update(self.wanted)

    def update(self, wanted: JoinRequest) -> None:
        """Take a later request to join; the member keeps its instance even if the client doesn't name it."""
        instance_id = wanted.instance_id or self.wanted.instance_id
        self.wanted = wanted._replace(instance_id=instance_id)
        self.protocols = {each.name: each.metadata for each in wanted.protocols}

    def is_same(self, wanted: JoinRequest) -> bool:
        """Return True if a request to join has no news."""
        return self.wanted.protocols == wanted.protocols

    def hear(self, now: float) -> None:
        """Start the session again."""
        self.deadline = now + self.wanted.session_seconds

    def is_silent(self, now: float) -> bool:
        """Return True if its session is over, which can't happen while the client waits for an answer."""
        return now >= self.deadline and not any(each and not each.done() for each in (self.joining, self.syncing))

    def join_with(self, outcome: "JoinOutcome | GroupError") -> None:
        """Answer its pending request to join, if it exists."""
        joining, self.joining = self.joining, None
        if joining is not None:
            settle(joining, outcome)

    def sync_with(self, outcome: "Synced | GroupError") -> None:
        """Answer its pending request to sync, if it exists."""
        syncing, self.syncing = self.syncing, None
        if syncing is not None:
            settle(syncing, outcome)

    @property
    def size(self) -> int:
        """The size of its request to join and its assignment in bytes."""
        return self.wanted.size + len(self.assignment)


def settle(waiting: Future[Outcome], outcome: Outcome | GroupError) -> None:
    """Answer a pending request, unless the client has gone."""
    with suppress(InvalidStateError):
        if isinstance(outcome, GroupError):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)


class ClassicState(StrEnum):
    """The states of a group, in Kafka's words."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicGroup:
    """A group and its members. All times are seconds of one clock, including `now`.

    generation: counts rebalances; protocol: the assignor that all members support, None before the first rebalance.
    """

    def __init__(self, name: str) -> None:
        """Begin with no members."""
        self.name, self.state, self.generation = name, ClassicState.EMPTY, 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self._promised_ids: dict[str, float] = {}
        """Ids given to clients that haven't joined with them yet, with their expiry times."""
        self._instances: dict[str, str] = {}
        """Static members' ids by instance."""
        self._unsynced_ids: set[str] = set()
        self._join_deadline = self._sync_deadline = self._first_join_end = 0.0

    @property
    def kind(self) -> GroupKind:
        """Its type and its members' protocol type."""
        return GroupKind("classic", self.protocol_type or "")

    @property
    def is_empty(self) -> bool:
        """True without members, and without clients that are about to join."""
        return not self.members and not self._promised_ids

    @property
    def size(self) -> int:
        """The size of its members in bytes."""
        return sum(member.size for member in self.members.values()) + MEMBER_BYTES * len(self._promised_ids)

    def join(self, wanted: JoinRequest, now: float) -> Future[JoinOutcome]:
        """Let a client join or rejoin the group. The result is available when all members have joined.

        Raises GroupError if it can't join.
        """
        self._require_protocols(wanted)
        if not wanted.member_id:
            return self._join_first(wanted, now)
        if wanted.member_id in self._promised_ids:
            del self._promised_ids[wanted.member_id]
            return self._add(wanted, wanted.member_id, now)
        member = self._member(wanted.member_id, wanted.instance_id)
        is_known = member.is_same(wanted)
        if self.state is ClassicState.PREPARING or not is_known or self._is_leader_of_all(member):
            return self._rejoin(member, wanted, now)
        member.hear(now)
        return _completed_future(self._join_outcome(member))

    def _is_leader_of_all(self, member: ClassicMember) -> bool:
        """Return True if a member's new join makes all others join, as a leader's does: it may know new partitions."""
        return self.state is ClassicState.STABLE and member.member_id == self.leader

    def _join_first(self, wanted: JoinRequest, now: float) -> Future[JoinOutcome]:
        instance = wanted.instance_id
        member_id = f"{wanted.client.client_id if instance is None else instance}-{uuid4()}"
        if instance is not None and instance in self._instances:
            return self._replace(self.members[self._instances[instance]], wanted, member_id, now)
        if instance is None and wanted.needs_known_id:
            self._require_room()
            self._promised_ids[member_id] = now + wanted.session_seconds
            raise GroupError(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        return self._add(wanted, member_id, now)

    def _require_room(self) -> None:
        if len(self.members) + len(self._promised_ids) >= MOST_MEMBERS:
            raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED)

    def _require_protocols(self, wanted: JoinRequest) -> None:
        names = {each.name for each in wanted.protocols}
        if not names or not wanted.protocol_type:
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self.members:
            common = names.intersection(*(member.protocols for member in self.members.values()))
            if wanted.protocol_type != self.protocol_type or not common:
                raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _add(self, wanted: JoinRequest, member_id: str, now: float) -> Future[JoinOutcome]:
        self._require_room()
        if not self.members:
            self.protocol_type = wanted.protocol_type
        member = ClassicMember(member_id, wanted)
        self.members[member_id] = member
        if wanted.instance_id is not None:
            self._instances[wanted.instance_id] = member_id
        self.leader = self.leader or member_id
        if now < self._first_join_end:
            self._first_join_end = min(now + FIRST_JOIN_SECONDS, self._join_deadline)
        return self._rejoin(member, wanted, now)

    def _rejoin(self, member: ClassicMember, wanted: JoinRequest, now: float) -> Future[JoinOutcome]:
        member.update(wanted)
        member.hear(now)
        member.join_with(GroupError(ErrorCode.REBALANCE_IN_PROGRESS))  # an earlier request of a client that has gone
        waiting = member.joining = Future()
        self._rebalance(now)
        return waiting

    def _replace(self, old: ClassicMember, wanted: JoinRequest, member_id: str, now: float) -> Future[JoinOutcome]:
        """Replace a static member that was restarted by its new self, mostly without a rebalance."""
        fenced = GroupError(ErrorCode.FENCED_INSTANCE_ID)
        old.join_with(fenced)
        old.sync_with(fenced)
        former_leader, is_same = self.leader, old.is_same(wanted)
        member = ClassicMember(member_id, wanted, assignment=old.assignment)
        self.members = {member_id if key == old.member_id else key: each for key, each in self.members.items()}
        self.members[member_id] = member
        self._instances[str(wanted.instance_id)] = member_id
        self._unsynced_ids.discard(old.member_id)
        if former_leader == old.member_id:
            self.leader = member_id
        if self.state is not ClassicState.STABLE or not (is_same or self._chosen_protocol() == self.protocol):
            return self._rejoin(member, wanted, now)
        member.hear(now)
        if wanted.may_skip_assignment:
            return _completed_future(self._join_outcome(member)._replace(skips_assignment=self.leader == member_id))
        # An older client would assign partitions again if told that it leads, and nobody would take them.
        return _completed_future(self._join_outcome(member)._replace(leader=former_leader or member_id, members=()))

    def sync(
        self, who: MemberName, protocol: tuple[str | None, str | None], assignments: dict[str, bytes], now: float
    ) -> Future[Synced]:
        """Return a member's assignment, ready once the leader has sent it in its own request to sync.

        `protocol`: the client's protocol type and name, None if not given. Raises GroupError if it isn't a member, or
        not of this generation.
        """
        member = self._member(who.member_id, who.instance_id)
        self._require_generation(who.epoch)
        if self.state is ClassicState.PREPARING:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        own = (self.protocol_type, self.protocol)
        if any(said not in (None, known) for said, known in zip(protocol, own, strict=True)):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        member.hear(now)
        self._unsynced_ids.discard(member.member_id)
        if self.state is ClassicState.STABLE:
            return _completed_future(self._sync_outcome(member))
        member.sync_with(GroupError(ErrorCode.REBALANCE_IN_PROGRESS))
        waiting = member.syncing = Future()
        if member.member_id == self.leader:
            self._assign(assignments, now)
        return waiting

    def _assign(self, assignments: dict[str, bytes], now: float) -> None:
        self.state = ClassicState.STABLE
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.syncing is not None:
                member.hear(now)
            member.sync_with(self._sync_outcome(member))

    def heartbeat(self, who: MemberName, now: float) -> None:
        """Keep a member's session alive. Raises GroupError if it isn't a member, or must join again."""
        member = self._member(who.member_id, who.instance_id)
        self._require_generation(who.epoch)
        member.hear(now)
        if self.state is ClassicState.PREPARING:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)

    def leave(self, member_id: str, instance_id: str | None, now: float) -> None:
        """Remove a member; a static one also by its instance alone. Raises GroupError if it isn't a member."""
        if instance_id is None and self._promised_ids.pop(member_id, None) is not None:
            self._complete_if_all(now)
            return
        if instance_id is not None and not member_id:
            member_id = self._instances.get(instance_id, "")
        self._remove(self._member(member_id, instance_id))
        self._rebalance(now)

    def check_commit(self, who: MemberName) -> None:
        """Raise GroupError if this client can't commit an offset, or not now."""
        if who.epoch < 0 and not self.members:
            return
        self._member(who.member_id, who.instance_id)
        self._require_generation(who.epoch)
        if self.state is ClassicState.COMPLETING:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)

    def pass_time(self, now: float) -> None:
        """Remove members whose time is over: silent ones, and ones that didn't join or sync in time."""
        late = [member_id for member_id, deadline in self._promised_ids.items() if now >= deadline]
        for member_id in late:
            del self._promised_ids[member_id]
        gone = [member for member in self.members.values() if member.is_silent(now)]
        if self.state in (ClassicState.COMPLETING, ClassicState.STABLE) and now >= self._sync_deadline:
            gone += [self.members[each] for each in self._unsynced_ids if self.members[each] not in gone]
        for member in gone:
            self._remove(member)
        if gone:
            self._rebalance(now)
        self._complete_if_all(now)
        if self.state is ClassicState.PREPARING and now >= self._join_deadline:
            self._complete(now)

    def _member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Return a member. Raises GroupError if there is none, or if another client has taken its instance."""
        if instance_id is not None:
            if instance_id not in self._instances:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            if self._instances[instance_id] != member_id:
                raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def _require_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)

    def _remove(self, member: ClassicMember) -> None:
        gone = GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        member.join_with(gone)
        member.sync_with(gone)
        del self.members[member.member_id]
        self._unsynced_ids.discard(member.member_id)
        if member.wanted.instance_id is not None:
            del self._instances[member.wanted.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def _rebalance(self, now: float) -> None:
        """Start a rebalance, which ends when all members have joined again."""
        if self.state is not ClassicState.PREPARING:
            for member in self.members.values():
                member.sync_with(GroupError(ErrorCode.REBALANCE_IN_PROGRESS))
            self._first_join_end = now + FIRST_JOIN_SECONDS if self.state is ClassicState.EMPTY else now
            self.state = ClassicState.PREPARING
            self._unsynced_ids.clear()
            self._join_deadline = now + self._longest_rebalance()
        self._complete_if_all(now)

    def _longest_rebalance(self) -> float:
        return max((member.wanted.rebalance_seconds for member in self.members.values()), default=0.0)

    def _complete_if_all(self, now: float) -> None:
        is_all = not self._promised_ids and all(member.joining is not None for member in self.members.values())
        if self.state is ClassicState.PREPARING and is_all and now >= self._first_join_end:
            self._complete(now)

    def _complete(self, now: float) -> None:
        """Begin a generation with the members that have joined, and static members, which may come back."""
        for member in [each for each in self.members.values() if each.joining is None]:
            if member.wanted.instance_id is None:
                self._remove(member)
        joined = [member for member in self.members.values() if member.joining is not None]
        if self.members and not joined:
            self._join_deadline = now + self._longest_rebalance()
            return
        self.generation += 1
        if not self.members:
            self.state, self.protocol, self.leader = ClassicState.EMPTY, None, None
            return
        if self.leader not in {member.member_id for member in joined}:
            self.leader = joined[0].member_id
        self.state, self.protocol = ClassicState.COMPLETING, self._chosen_protocol()
        self._sync_deadline = now + self._longest_rebalance()
        self._unsynced_ids = {member.member_id for member in joined}
        for member in joined:
            member.hear(now)
            member.join_with(self._join_outcome(member))

    def _chosen_protocol(self) -> str:
        """Return the protocol with the most votes that all members support."""
        known = [list(member.protocols) for member in self.members.values()]
        common = set(known[0]).intersection(*known)
        votes = Counter(next(name for name in names if name in common) for names in known)
        return votes.most_common(1)[0][0]

    def _join_outcome(self, member: ClassicMember) -> JoinOutcome:
        name, leader = self.protocol or "", self.leader or ""
        members: tuple[JoinedMember, ...] = ()
        if leader == member.member_id:
            members = tuple(
                JoinedMember(each.member_id, each.wanted.instance_id, each.protocols[name])
                for each in self.members.values()
            )
        return JoinOutcome(self.generation, self.protocol_type or "", name, leader, member.member_id, members)

    def _sync_outcome(self, member: ClassicMember) -> Synced:
        return Synced(self.protocol_type or "", self.protocol or "", member.assignment)


def _completed_future(outcome: Outcome) -> Future[Outcome]:
    known: Future[Outcome] = Future()
    settle(known, outcome)
    return known
