"""A member of a classic group, and what it asked for when it joined."""

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from kseg.serve.groups.group_error import GroupError
from kseg.serve.groups.group_limits import MEMBER_BYTES

Outcome = TypeVar("Outcome")


class ClientName(NamedTuple):
    """Who a client says it is, and where it came from."""

    client_id: str
    host: str


class MemberName(NamedTuple):
    """Who a request comes from, as it says; `epoch` is a generation, or a member's epoch."""

    member_id: str
    instance_id: str | None
    epoch: int


class Protocol(NamedTuple):
    """An assignor that a member knows, and what it tells the leader about itself for that one."""

    name: str
    metadata: bytes


class JoinWanted(NamedTuple):
    """A request to join. `needs_known_id`: a client without an id gets one first, and joins with it."""

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
        """Bytes that are kept of it."""
        texts = (self.member_id, self.instance_id or "", self.client.client_id, self.protocol_type)
        protocols = sum(len(each.name) + len(each.metadata) for each in self.protocols)
        return MEMBER_BYTES + sum(map(len, texts)) + protocols


class JoinedMember(NamedTuple):
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinOutcome(NamedTuple):
    """What a member is told once everybody has joined; `members`: all of them for the leader, otherwise none."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[JoinedMember, ...] = ()
    skips_assignment: bool = False


class Synced(NamedTuple):
    """What a member is told once the leader has assigned partitions."""

    protocol_type: str
    protocol: str
    assignment: bytes


@dataclass(slots=True)
class ClassicMember:
    """A member: what it joined with, what it waits for, and when its session ends if nothing is heard of it."""

    member_id: str
    wanted: JoinWanted
    deadline: float = 0.0
    assignment: bytes = b""
    joining: Future[JoinOutcome] | None = None
    syncing: Future[Synced] | None = None
    protocols: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        """Notes what it joined with."""
        self.update(self.wanted)

    def update(self, wanted: JoinWanted) -> None:
        """Takes what a later request to join says; it stays the instance that it was, though the client says none."""
        instance_id = wanted.instance_id or self.wanted.instance_id
        self.wanted = wanted._replace(instance_id=instance_id)
        self.protocols = {each.name: each.metadata for each in wanted.protocols}

    def is_same(self, wanted: JoinWanted) -> bool:
        """Whether a request to join says what is known already."""
        return self.wanted.protocols == wanted.protocols

    def hear(self, now: float) -> None:
        """Starts the session again."""
        self.deadline = now + self.wanted.session_seconds

    def is_silent(self, now: float) -> bool:
        """Whether its session is over. It isn't while the client waits for an answer."""
        return now >= self.deadline and not any(each and not each.done() for each in (self.joining, self.syncing))

    def join_with(self, outcome: "JoinOutcome | GroupError") -> None:
        """Answers its request to join, if it waits for that."""
        joining, self.joining = self.joining, None
        if joining is not None:
            settle(joining, outcome)

    def sync_with(self, outcome: "Synced | GroupError") -> None:
        """Answers its request to sync, if it waits for that."""
        syncing, self.syncing = self.syncing, None
        if syncing is not None:
            settle(syncing, outcome)

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return self.wanted.size + len(self.assignment)


def settle(waiting: Future[Outcome], outcome: Outcome | GroupError) -> None:
    """Answers whoever waits, unless the client has gone."""
    with suppress(InvalidStateError):
        if isinstance(outcome, GroupError):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)
