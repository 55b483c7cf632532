"""Groups of the consumer protocol and their members (KIP-848)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from kseg.protocol.error_codes import ErrorCode
from kseg.serve.groups.classic import ClientName
from kseg.serve.groups.commits import ASSIGNORS, Assignment, GroupKind, Partition, Subscriber
from kseg.serve.values import (
    CONSUMER_SESSION_SECONDS,
    MEMBER_BYTES,
    MOST_MEMBERS,
    ClientPattern,
    GroupError,
    PatternError,
    compile_pattern,
)

JOINS, LEAVES, LEAVES_FOR_NOW = 0, -1, -2
"""Epochs with a special meaning. Source: ConsumerGroupHeartbeatRequest."""
PARTITION_BYTES = 16
NOTHING: frozenset[Partition] = frozenset()


class HeartbeatRequest(NamedTuple):
    """A heartbeat. None, or a negative time, means: unchanged since the previous heartbeat."""

    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    client: ClientName
    rebalance_seconds: float
    topics: frozenset[str] | None
    pattern: str | None
    assignor: str | None
    owned: frozenset[Partition] | None

    @property
    def says_everything(self) -> bool:
        """True if the client sends its complete state, and so expects a complete answer: it may have lost one."""
        is_subscribed = self.topics is not None or self.pattern is not None
        return self.epoch == JOINS or (self.rebalance_seconds >= 0 and is_subscribed and self.owned is not None)

    @property
    def size(self) -> int:
        """The most bytes of it that may be kept."""
        texts = (self.member_id, self.instance_id or "", self.rack_id or "", self.pattern or "", *self.client)
        return MEMBER_BYTES + sum(map(len, texts)) + sum(PARTITION_BYTES + len(topic) for topic in self.topics or ())


class MemberState(StrEnum):
    """The progress of a member towards its target assignment. Source: MemberState."""

    STABLE = "stable"
    UNREVOKED = "still has partitions that it must give back"
    UNRELEASED = "waits for partitions that other members still have"


@dataclass(slots=True)
class ConsumerMember:
    """A member with its subscription, its partitions, and the partitions that it has to give up.

    epoch: of its current assignment; -2 for a static one that left temporarily.
    """

    member_id: str
    wanted: HeartbeatRequest
    rebalance_seconds: float = 0.0
    names: frozenset[str] = frozenset()
    pattern: ClientPattern | None = None
    matched: frozenset[str] = frozenset()
    assignor: str | None = None
    epoch: int = 0
    former_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: frozenset[Partition] = NOTHING
    revoked: frozenset[Partition] = NOTHING
    deadline: float = 0.0
    revocation_deadline: float | None = None

    @property
    def topics(self) -> frozenset[str]:
        """The topics that it subscribes to."""
        return self.names | self.matched

    @property
    def order(self) -> str:
        """Its place in the order of members, which a static member keeps across restarts."""
        return self.wanted.instance_id or self.member_id

    @property
    def size(self) -> int:
        """The size of its state in bytes."""
        topics = sum(PARTITION_BYTES + len(topic) for topic in self.topics)
        return self.wanted.size + topics + PARTITION_BYTES * (len(self.assigned) + len(self.revoked))

    def hear(self, now: float) -> None:
        """Start the session again."""
        self.deadline = now + CONSUMER_SESSION_SECONDS

    def is_silent(self, now: float) -> bool:
        """Return True if its session is over, or its time to give partitions back."""
        return now >= self.deadline or (self.revocation_deadline is not None and now >= self.revocation_deadline)

    def approach(
        self,
        target: frozenset[Partition],
        epoch: int,
        owners: Mapping[Partition, str],
        owned: frozenset[Partition] | None,
        now: float,
    ) -> None:
        """Bring the member as close to a target assignment as the other owners and its own partitions allow.

        Args:
            target: its final partitions.
            epoch: the target's epoch.
            owners: the present owners of partitions.
            owned: the partitions that the client says it has; None if it says nothing.
            now: seconds.

        Source: CurrentAssignmentBuilder.
        """
        if self.state is MemberState.STABLE and self.epoch == epoch:
            return
        if self.state is MemberState.UNREVOKED:
            if owned is None or owned & self.revoked:
                return
            self.revoked, self.revocation_deadline = NOTHING, None
        kept, given_back = self.assigned & target, self.assigned - target
        if given_back and (owned is None or owned & given_back):
            self.assigned, self.revoked, self.state = kept, given_back, MemberState.UNREVOKED
            self.revocation_deadline = now + self.rebalance_seconds
            return
        free = frozenset(each for each in target - kept if owners.get(each, self.member_id) == self.member_id)
        is_all = kept | free == target
        self.assigned, self.state = kept | free, MemberState.STABLE if is_all else MemberState.UNRELEASED
        if self.epoch != epoch:
            self.former_epoch, self.epoch = self.epoch, epoch


DEFAULT_ASSIGNOR = next(iter(ASSIGNORS))


class Beat(NamedTuple):
    """The response to a heartbeat, including the assigned partitions if they have to be sent."""

    member_id: str
    epoch: int
    assigned: frozenset[Partition] | None = None


class ConsumerGroup:
    """A group and its members.

    epoch: increases with each change of members and subscriptions; target_epoch: of `target`, the members' final
    partitions.
    """

    kind = GroupKind("consumer", "consumer")

    def __init__(self, name: str, counts: Mapping[str, int]) -> None:
        """Begin with no members, for topics with these partition counts."""
        self.name, self._counts = name, counts
        self.epoch = self.target_epoch = 1  # so that the first member gets 2, as from a broker
        self.members: dict[str, ConsumerMember] = {}
        self.target: Assignment = {}
        self._instances: dict[str, str] = {}

    @property
    def is_empty(self) -> bool:
        """True without members."""
        return not self.members

    @property
    def size(self) -> int:
        """The size of its members in bytes."""
        return sum(member.size for member in self.members.values())

    @property
    def state(self) -> str:
        """Its state in Kafka's words. Source: ConsumerGroup.maybeUpdateGroupState."""
        if not self.members:
            return "Empty"
        is_stable = all(
            member.state is MemberState.STABLE and member.epoch == self.target_epoch for member in self.members.values()
        )
        return "Stable" if is_stable else "Reconciling"

    @property
    def assignor(self) -> str:
        """The assignor that most members request, or the default."""
        asked = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return asked.most_common(1)[0][0] if asked else DEFAULT_ASSIGNOR

    def heartbeat(self, wanted: HeartbeatRequest, now: float) -> Beat:
        """Add, keep or remove a member. Raises GroupError if the heartbeat is invalid."""
        if wanted.epoch in (LEAVES, LEAVES_FOR_NOW):
            return self._leave(wanted)
        # A subscription is checked completely before it changes anything.
        pattern = _compile_pattern(wanted.pattern) if wanted.pattern else None
        member = self._joining_member(wanted) if wanted.epoch == JOINS else self._existing_member(wanted)
        before = member.assigned
        if self._subscribe(member, wanted, pattern):
            self._retarget()
        member.hear(now)
        target = self.target.get(member.member_id, NOTHING)
        if member.epoch != self.target_epoch or member.state is not MemberState.STABLE:
            member.approach(target, self.target_epoch, self._owners(), wanted.owned, now)
        tells = wanted.says_everything or member.assigned != before
        return Beat(member.member_id, member.epoch, member.assigned if tells else None)

    def _existing_member(self, wanted: HeartbeatRequest) -> ConsumerMember:
        """Return an existing member. Raises GroupError if there is none, or if it isn't of this epoch."""
        if wanted.instance_id is not None:
            if wanted.instance_id not in self._instances:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            if self._instances[wanted.instance_id] != wanted.member_id:
                raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(wanted.member_id)
        if member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        has_missed_answer = wanted.epoch == member.former_epoch and wanted.owned is not None
        if wanted.epoch != member.epoch and not (has_missed_answer and (wanted.owned or NOTHING) <= member.assigned):
            raise GroupError(
                ErrorCode.FENCED_MEMBER_EPOCH, f"the member's epoch is {member.epoch}, not {wanted.epoch}; join again"
            )
        return member

    def _joining_member(self, wanted: HeartbeatRequest) -> ConsumerMember:
        """Return the joining member: a new one, one that joins again, or a static one that comes back."""
        known = self._instances.get(wanted.instance_id or "")
        if known is not None and known != wanted.member_id:
            return self._come_back(self.members[known], wanted)
        member = self.members.get(wanted.member_id)
        if member is None:
            if len(self.members) >= MOST_MEMBERS:
                raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED)
            member = ConsumerMember(wanted.member_id, wanted)
            self.members[wanted.member_id] = member
        else:
            member.epoch, member.former_epoch, member.state = 0, 0, MemberState.STABLE
            member.assigned, member.revoked, member.revocation_deadline = NOTHING, NOTHING, None
        self._take_instance(member, wanted)
        return member

    def _take_instance(self, member: ConsumerMember, wanted: HeartbeatRequest) -> None:
        """Take a member's subscription; it keeps its instance unless the client names another one."""
        former = member.wanted.instance_id
        member.wanted = wanted._replace(instance_id=wanted.instance_id or former)
        if former is not None:
            self._instances.pop(former, None)
        if member.wanted.instance_id is not None:
            self._instances[member.wanted.instance_id] = member.member_id

    def _come_back(self, old: ConsumerMember, wanted: HeartbeatRequest) -> ConsumerMember:
        if old.epoch != LEAVES_FOR_NOW:
            raise GroupError(ErrorCode.UNRELEASED_INSTANCE_ID, f"{wanted.instance_id} is in use by another member")
        member = replace(old, member_id=wanted.member_id, wanted=wanted, epoch=0, former_epoch=0)
        del self.members[old.member_id]
        self.members[member.member_id] = member
        self._instances[str(wanted.instance_id)] = member.member_id
        if old.member_id in self.target:
            self.target[member.member_id] = self.target.pop(old.member_id)
        member.assigned, member.state = NOTHING, MemberState.STABLE
        member.revoked, member.revocation_deadline = NOTHING, None
        return member

    def _subscribe(self, member: ConsumerMember, wanted: HeartbeatRequest, pattern: ClientPattern | None) -> bool:
        """Take a member's subscription; return whether partitions must be assigned again."""
        before = member.topics, member.assignor
        if wanted.rebalance_seconds >= 0:
            member.rebalance_seconds = wanted.rebalance_seconds
        if wanted.topics is not None:
            member.names = wanted.topics
        if wanted.pattern is not None:
            member.pattern = pattern
            member.matched = frozenset(name for name in self._counts if pattern and pattern.fullmatch(name))
        if wanted.assignor is not None:
            member.assignor = wanted.assignor or None
        return before != (member.topics, member.assignor) or member.member_id not in self.target

    def _retarget(self) -> None:
        self.epoch += 1
        subscribers = [
            Subscriber(each.member_id, each.order, each.topics, self.target.get(each.member_id, NOTHING))
            for each in self.members.values()
        ]
        self.target = ASSIGNORS[self.assignor](subscribers, self._counts)
        self.target_epoch = self.epoch

    def _owners(self) -> dict[Partition, str]:
        """Return the owners of partitions, including partitions that must still be given back."""
        return {
            partition: member.member_id
            for member in self.members.values()
            for partition in (*member.assigned, *member.revoked)
        }

    def _leave(self, wanted: HeartbeatRequest) -> Beat:
        instance_id, member_id = wanted.instance_id, wanted.member_id
        if instance_id is not None and self._instances.get(instance_id) != member_id:
            is_known = instance_id in self._instances
            raise GroupError(ErrorCode.FENCED_INSTANCE_ID if is_known else ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if wanted.epoch == LEAVES_FOR_NOW and instance_id is not None:
            member.epoch = LEAVES_FOR_NOW
        else:
            self._remove([member])
        return Beat(member_id, wanted.epoch)

    def remove(self, member_id: str, instance_id: str | None) -> None:
        """Remove a member for an administrator. Raises GroupError if it isn't a member."""
        known = self._instances.get(instance_id or "", member_id)
        if known not in self.members:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        self._remove([self.members[known]])

    def _remove(self, gone: list[ConsumerMember]) -> None:
        for member in gone:
            del self.members[member.member_id]
            if member.wanted.instance_id is not None:
                self._instances.pop(member.wanted.instance_id, None)
        if gone:
            self._retarget()

    def check_epoch(self, member_id: str, epoch: int) -> None:
        """Raise GroupError if the client isn't a member, or isn't of this epoch."""
        if epoch < 0 and not member_id and not self.members:
            return
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member.epoch != epoch:
            raise GroupError(ErrorCode.STALE_MEMBER_EPOCH)

    def pass_time(self, now: float) -> None:
        """Remove members whose time is over: silent ones, and ones that didn't give partitions back in time."""
        self._remove([member for member in self.members.values() if member.is_silent(now)])


def _compile_pattern(text: str) -> ClientPattern:
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, error.message) from error
