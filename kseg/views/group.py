"""A group as values: its members, its commits, and the share-partitions of a share group."""

from dataclasses import dataclass
from typing import NamedTuple

from kseg.formats.codes import NO_TIMESTAMP
from kseg.views.partitions_beside import LogEnd


class OffsetCommit(NamedTuple):
    """An offset that a group committed for a partition: the next one that it is to read.

    Timestamps are milliseconds since 1970. What a version doesn't have is -1, None for `topic_id`. `record_offset` is
    the commit's own place in its partition of `__consumer_offsets`. `producer_id`: of the transaction, not ended yet,
    that it belongs to; None if it counts. `log_end`: of the partition, where it is known.
    """

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: str | None
    record_offset: int
    producer_id: int | None = None
    log_end: LogEnd | None = None

    @property
    def lag(self) -> int | None:
        """How many offsets the group has still to read, as kafka-consumer-groups.sh has it.

        Below 0 for an offset beyond the log's end. None if that end isn't known, or the commit doesn't count yet.
        """
        if self.log_end is None or self.producer_id is not None or self.offset < 0:
            return None
        return self.log_end.log_end_offset - self.offset


class AssignedTopic(NamedTuple):
    """Partitions of a topic that a member has; newer groups know the topic by id, classic ones by name."""

    topic: str | None
    topic_id: str | None
    partitions: tuple[int, ...]


class AssignedTasks(NamedTuple):
    """Tasks of a streams application that a member has: active, standby or warmup ones of a subtopology."""

    kind: str
    subtopology_id: str
    partitions: tuple[int, ...]


class GroupMember(NamedTuple):
    """A member of a group.

    `epoch` is -1 in classic groups. `assignment` None if it isn't known, or not of the consumer protocol; `target` is
    what the member is to have, None in classic groups. Members of streams groups have `tasks` and `target_tasks`
    instead. `assignor`: the one that the member asks its coordinator for, None for none.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack: str | None
    epoch: int
    subscribed_topics: tuple[str, ...]
    subscribed_regex: str | None
    assignment: tuple[AssignedTopic, ...] | None
    target: tuple[AssignedTopic, ...] | None = None
    tasks: tuple[AssignedTasks, ...] | None = None
    target_tasks: tuple[AssignedTasks, ...] | None = None
    assignor: str | None = None


class SharePartition(NamedTuple):
    """A partition that a share group reads, and how far it got.

    `start_offset`: the first offset that isn't done with; `delivery_complete_count`: records above it that are (from
    4.2 on); `leader_epoch`: of the partition's leader when that was written. None for what isn't known, or not there
    yet: nothing was read so far. `log_end` as in OffsetCommit.
    """

    group: str
    topic: str
    topic_id: str
    partition: int
    start_offset: int | None = None
    delivery_complete_count: int | None = None
    leader_epoch: int | None = None
    log_end: LogEnd | None = None

    @property
    def lag(self) -> int | None:
        """How many records the group has still to finish, as kafka-share-groups.sh has it; None if that isn't known.

        Source: GroupCoordinatorService.computeShareGroupLagAndBuildResponse.
        """
        if self.log_end is None or self.start_offset is None or self.delivery_complete_count is None:
            return None
        return self.log_end.log_end_offset - self.start_offset - self.delivery_complete_count


@dataclass(frozen=True, slots=True)
class Group:
    """A group as its coordinator would load it.

    `type`: classic, consumer, share, streams. `state`: Empty, Stable; of newer groups also Assigning, Reconciling, of
    streams groups NotReady. `epoch`: the generation of a classic group; -1 for one that only committed.
    `assignment_epoch`: of the target assignment, -1 in classic groups. `assignor`: the coordinator's, by its default if
    no member asks for one; None where there is none. `state_timestamp`: -1 if not known.
    `commits` count; `pending_commits` belong to transactions that have not ended. `share_partitions`: of share groups,
    those that its coordinator has initialized.
    """

    group: str
    coordinator_partition: int | None
    type: str = "classic"
    state: str = "Empty"
    protocol_type: str = ""
    protocol: str | None = None
    epoch: int = -1
    leader: str | None = None
    state_timestamp: int = NO_TIMESTAMP
    members: tuple[GroupMember, ...] = ()
    commits: tuple[OffsetCommit, ...] = ()
    pending_commits: tuple[OffsetCommit, ...] = ()
    assignment_epoch: int = -1
    assignor: str | None = None
    share_partitions: tuple[SharePartition, ...] = ()

    @property
    def lag(self) -> int | None:
        """The lags of its commits or share-partitions in all; None if one of them isn't known, or there are none."""
        lags = [*(each.lag for each in self.commits), *(each.lag for each in self.share_partitions)]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if known and len(known) == len(lags) else None
