"""A member of a group of the consumer protocol, and how it comes to what it is to read."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kseg.serve.client_pattern import ClientPattern
from kseg.serve.groups.assignors import Partition
from kseg.serve.groups.classic_member import ClientName
from kseg.serve.groups.group_limits import CONSUMER_SESSION_SECONDS, MEMBER_BYTES

JOINS, LEAVES, LEAVES_FOR_NOW = 0, -1, -2
"""Epochs that mean something else. Source: ConsumerGroupHeartbeatRequest."""
PARTITION_BYTES = 16
NOTHING: frozenset[Partition] = frozenset()


class HeartbeatWanted(NamedTuple):
    """A heartbeat. What is None hasn't changed since the one before; so is a negative time."""

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
        """Whether the client tells all about itself, and so wants to hear all: it may have lost an answer."""
        is_subscribed = self.topics is not None or self.pattern is not None
        return self.epoch == JOINS or (self.rebalance_seconds >= 0 and is_subscribed and self.owned is not None)

    @property
    def size(self) -> int:
        """Bytes that may be kept of it."""
        texts = (self.member_id, self.instance_id or "", self.rack_id or "", self.pattern or "", *self.client)
        return MEMBER_BYTES + sum(map(len, texts)) + sum(PARTITION_BYTES + len(topic) for topic in self.topics or ())


class MemberState(StrEnum):
    """Whether a member has what it is to have. Source: MemberState."""

    STABLE = "stable"
    UNREVOKED = "has partitions that it is to give back first"
    UNRELEASED = "is to have partitions that others still have"


@dataclass(slots=True)
class ConsumerMember:
    """A member: what it wants, what it has, and what it is to give back.

    epoch: of the assignment that it has; -2 for a static one that left for now.
    """

    member_id: str
    wanted: HeartbeatWanted
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
        """All topics that it subscribes to."""
        return self.names | self.matched

    @property
    def order(self) -> str:
        """Its place among others, which a static member keeps when it is started again."""
        return self.wanted.instance_id or self.member_id

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        topics = sum(PARTITION_BYTES + len(topic) for topic in self.topics)
        return self.wanted.size + topics + PARTITION_BYTES * (len(self.assigned) + len(self.revoked))

    def hear(self, now: float) -> None:
        """Starts the session again."""
        self.deadline = now + CONSUMER_SESSION_SECONDS

    def is_silent(self, now: float) -> bool:
        """Whether its session is over, or the time in which it was to give partitions back."""
        return now >= self.deadline or (self.revocation_deadline is not None and now >= self.revocation_deadline)

    def approach(
        self,
        target: frozenset[Partition],
        epoch: int,
        owners: Mapping[Partition, str],
        owned: frozenset[Partition] | None,
        now: float,
    ) -> None:
        """Goes as near to a target assignment as others and the member's own partitions allow.

        Args:
            target: what it is to have in the end.
            epoch: that of the target.
            owners: who has which partition at present.
            owned: what the client says that it has; None if it says nothing.
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
