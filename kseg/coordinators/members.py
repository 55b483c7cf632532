"""Members of groups, share groups, and plans that reset offsets."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from kseg.cluster.now import Now
from kseg.cluster.partitions import AdjacentPartitions, LogEnd, UnknownEnd, UnreadableOffset
from kseg.coordinators.departures import Departure
from kseg.coordinators.share_progress import ShareBatch, first_unfinished
from kseg.decode.internal_records import EARLY_SHARE_STATE_VALUES
from kseg.errors import FileError, plural
from kseg.formats.codes import NO_TIMESTAMP, VERSION
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import SHARE_STATE_KEYS, SHARE_STATE_VALUES, version_range
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.replay import Unreadable, partition_batches, unreadable_batch
from kseg.reading.batch import Batch
from kseg.reading.blocks import Damage


class Presence(NamedTuple):
    """The readers of a group.

    members: None for a group that only committed, without known membership. last_left: of a group without members, the
    last departure, if known. now: the current time; None for none.
    """

    members: int | None = None
    last_left: Departure | None = None
    now: Now | None = None


class OffsetCommit(NamedTuple):
    """An offset that a group committed for a partition: the next one to read.

    Timestamps are milliseconds since 1970. Fields that a version doesn't have are -1, None for `topic_id`.
    `record_offset`: the commit's own place in its partition of `__consumer_offsets`. `producer_id`: of its
    transaction, not ended yet; None if it counts. `log_end`: of the partition, or the reason why it is unknown; None
    at an earlier time. `presence`: of its group. `unreadable`: why its consumer can't read on from it; None if it can.
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
    log_end: LogEnd | UnknownEnd | None = None
    presence: Presence = Presence()
    unreadable: UnreadableOffset | None = None

    @property
    def known_end(self) -> LogEnd | None:
        """The end of the partition's log, or None if unknown."""
        return self.log_end if isinstance(self.log_end, LogEnd) else None

    @property
    def lag(self) -> int | None:
        """The number of offsets that the group still has to read, as in kafka-consumer-groups.sh.

        Below 0 for an offset beyond the log's end. None if that end is unknown, or the commit doesn't count yet.
        """
        if self.known_end is None or self.producer_id is not None or self.offset < 0:
            return None
        return self.known_end.log_end_offset - self.offset


class LagSum(NamedTuple):
    """The total lag of some commits or share-partitions, and the number of lags that the sum omits.

    lag: without negative ones; None without any. beyond_end: those with a negative lag, whose offset is beyond
    the log's end: they don't reduce the others' lag. unknown: those with an unknown lag.
    """

    lag: int | None
    beyond_end: int
    unknown: int

    @classmethod
    def of(cls, lags: Iterable[int | None]) -> "LagSum":
        """Return the sum of lags."""
        found = list(lags)
        known = [lag for lag in found if lag is not None]
        counting = [lag for lag in known if lag >= 0]
        return cls(sum(counting) if counting else None, len(known) - len(counting), len(found) - len(known))

    def text(self, what: str) -> str:
        """Return the sum, a dash without any, and its omissions. what: the noun for an item with a lag."""
        parts = ["-" if self.lag is None else str(self.lag)]
        if self.beyond_end:
            parts.append(f"{plural(self.beyond_end, what)} beyond the log end")
        if self.unknown and (self.beyond_end or self.lag is not None):
            parts.append(f"{self.unknown} of unknown lag")
        return ", ".join(parts)


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

    `epoch` is -1 in classic groups. `assignment` is None if unknown, or not of the consumer protocol; `target` is the
    member's future assignment, None in classic groups. Members of streams groups have `tasks` and `target_tasks`
    instead. `assignor`: the one that the member requests, None for none.
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
    """A partition that a share group reads, and its progress.

    `start_offset`: as stored, no record before it is unfinished; `delivery_complete_count`: finished records after it
    (from 4.2 on); `first_unfinished`: the first record that the group delivers next, or again;
    `leader_epoch`: of the partition's leader at that write. None for unknown fields, and if nothing was read so far.
    `log_end` as in OffsetCommit.
    """

    group: str
    topic: str
    topic_id: str
    partition: int
    start_offset: int | None = None
    delivery_complete_count: int | None = None
    first_unfinished: int | None = None
    leader_epoch: int | None = None
    log_end: LogEnd | UnknownEnd | None = None
    presence: Presence = Presence()

    @property
    def known_end(self) -> LogEnd | None:
        """The end of the partition's log, or None if unknown."""
        return self.log_end if isinstance(self.log_end, LogEnd) else None

    @property
    def lag(self) -> int | None:
        """The number of records that the group still has to finish, as in kafka-share-groups.sh, or None if unknown.

        Source: GroupCoordinatorService.computeShareGroupLagAndBuildResponse.
        """
        if self.known_end is None or self.start_offset is None or self.delivery_complete_count is None:
            return None
        return self.known_end.log_end_offset - self.start_offset - self.delivery_complete_count


@dataclass(frozen=True, slots=True)
class Group:
    """A group as its coordinator would load it.

    `type`: classic, consumer, share, streams. `state`: Empty, Stable; of newer groups also Assigning, Reconciling, of
    streams groups NotReady. `epoch`: the generation of a classic group; -1 for one that only committed.
    `assignment_epoch`: of the target assignment, -1 in classic groups. `assignor`: the coordinator's, by its default
    if no member requests one; None where there is none. `state_timestamp`: -1 if unknown. `commits` count;
    `pending_commits` belong to transactions that have not ended. `share_partitions`: of share groups, those that its
    coordinator has initialized. `last_left`: the end of its last membership, if records still have it.
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
    last_left: Departure | None = None

    @property
    def presence(self) -> Presence:
        """The group's readers."""
        only_committed = self.type == "classic" and self.epoch < 0 and not self.members
        return Presence(None if only_committed else len(self.members), None if self.members else self.last_left)

    @property
    def lags(self) -> LagSum:
        """The total lag of its commits or share-partitions."""
        return LagSum.of((*(each.lag for each in self.commits), *(each.lag for each in self.share_partitions)))

    @property
    def lag(self) -> int | None:
        """The sum of its known lags that aren't negative, or None if there are none. `lags` has the omissions."""
        return self.lags.lag


def commits_beyond_end(groups: Iterable[Group]) -> Iterator[OffsetCommit]:
    """Yield the commits whose offset is beyond the end of the partition's log."""
    return (commit for group in groups for commit in group.commits if commit.lag is not None and commit.lag < 0)


def beyond_end_sentence(commit: OffsetCommit) -> str:
    """Return the sentence with the commit's offset and the end of the log."""
    end = "" if commit.known_end is None else f" {commit.known_end.log_end_offset}"
    place = f"{commit.topic}-{commit.partition}"
    return f"group {commit.group}: {place}: committed offset {commit.offset} is beyond the log end{end}"


TOPIC = "__share_group_state"
UPDATE = (1).to_bytes(VERSION.size, "big")
"""The beginning of the keys of records with changes since the share-partition's last snapshot."""
UNSET = -1
"""In an update: unchanged. In a snapshot: unknown so far."""
ShareKey = tuple[str, str, int]
"""Group, topic id, partition."""


class ShareState(NamedTuple):
    """The state of a share-partition as stored by the share coordinator. Unknown fields are -1."""

    start_offset: int
    delivery_complete_count: int
    leader_epoch: int
    batches: tuple[ShareBatch, ...] = ()

    def apply_update(self, update: "ShareState") -> "ShareState":
        """Return the state after an update. Source: ShareCoordinatorShard.merge."""
        return ShareState(
            self.start_offset if update.start_offset == UNSET else update.start_offset,
            update.delivery_complete_count,
            self.leader_epoch if update.leader_epoch == UNSET else update.leader_epoch,
            (*self.batches, *update.batches),
        )


class ShareStates:
    """The states of share-partitions in the available partitions of `__share_group_state`; read when first needed.

    unreadable: their unreadable parts. A partition with one gives no state: newer states may have been there.
    """

    def __init__(self, beside: AdjacentPartitions, at_ms: int | None = None) -> None:
        """Take the available partitions, and a time: milliseconds since 1970, None for the logs' ends."""
        self._partitions_beside = beside
        self._at_ms = at_ms
        self.unreadable: list[Unreadable] = []

    def complete(self, partition: SharePartition) -> SharePartition:
        """Return a share-partition with its state, if it exists and anything was read."""
        state = self._states.get((partition.group, partition.topic_id, partition.partition))
        if state is None or state.start_offset == UNSET:
            return partition
        count = state.delivery_complete_count
        return partition._replace(
            start_offset=state.start_offset,
            delivery_complete_count=None if count == UNSET else count,
            first_unfinished=first_unfinished(state.start_offset, state.batches),
            leader_epoch=state.leader_epoch,
        )

    @cached_property
    def _states(self) -> dict[ShareKey, ShareState]:
        found: dict[ShareKey, ShareState] = {}
        for place in self._partitions_beside.of_topic(TOPIC):
            states, unreadable = partition_states(place, self._at_ms)
            self.unreadable += unreadable
            if all(each.is_tail for each in unreadable):
                found |= states
        return found


def partition_states(
    place: PartitionLog, at_ms: int | None = None
) -> tuple[dict[ShareKey, ShareState], list[Unreadable]]:
    """Return the states in one partition, and its unreadable parts. Source: ShareCoordinatorShard.replay."""
    latest: dict[bytes, list[Record]] = {}
    unreadable: list[Unreadable] = []
    states: dict[ShareKey, ShareState] = {}
    try:
        for record in _records_in(place, unreadable):
            if at_ms is None or record.timestamp <= at_ms:
                _note(record, latest)
        for records in latest.values():
            states[_share_key(records[0])] = _state_after(records)
    except FileError as error:
        unreadable.append(Unreadable(place.directory_name, None, error.message))
    return states, unreadable


def _records_in(place: PartitionLog, unreadable: list[Unreadable]) -> Iterator[Record]:
    """Yield the records of a partition; add unreadable parts."""

    def note_damage(batch: Batch, damage: Damage) -> None:
        unreadable.append(unreadable_batch(place.directory_name, batch, damage))

    for item in partition_batches(place):
        if isinstance(item, Unreadable):
            unreadable.append(item)
        elif not item.is_control:
            yield from item.records(on_damage=partial(note_damage, item))


def _note(record: Record, latest: dict[bytes, list[Record]]) -> None:
    """Note the last snapshot of each share-partition, and the updates after it."""
    key = record.key or b""
    name = key[VERSION.end :]
    if not key.startswith(UPDATE):
        latest.pop(name, None)
    if record.value is not None:
        latest.setdefault(name, []).append(record)


def _state_after(records: Iterable[Record]) -> ShareState:
    first, *updates = map(_state_in, records)
    for update in updates:
        first = first.apply_update(update)
    return first


def _share_key(record: Record) -> ShareKey:
    fields = parse_message(SHARE_STATE_KEYS[_type_of(record)], 0, record.key or b"", VERSION.end).value
    return fields["groupId"], fields["topicId"], fields["partition"]


def _state_in(record: Record) -> ShareState:
    """Return a record's state. Raises MessageError."""
    number, value = _type_of(record), record.value or b""
    if len(value) < VERSION.size or VERSION.read(value) not in version_range(SHARE_STATE_VALUES[number].versions):
        raise MessageError("a state of unknown version")
    fields = _share_fields(number, value)
    return ShareState(
        fields["startOffset"],
        fields.get("deliveryCompleteCount", UNSET),
        fields["leaderEpoch"],
        tuple(map(ShareBatch.of, fields["stateBatches"])),
    )


def _type_of(record: Record) -> int:
    key = record.key or b""
    number = VERSION.read(key) if len(key) >= VERSION.size else None
    if number is None or number not in SHARE_STATE_KEYS:
        raise MessageError(f"key of unknown type {number}")
    return number


def _share_fields(number: int, value: bytes) -> Fields:
    version = VERSION.read(value)
    try:
        return parse_message(SHARE_STATE_VALUES[number], version, value, VERSION.end).value
    except MessageError:
        # 4.0 wrote other fields under the same version.
        return parse_message(EARLY_SHARE_STATE_VALUES[number], version, value, VERSION.end).value


LINE_END = "\n"
"""The line end at which Kafka's tool splits the file before it looks for quotes."""
_TOOL = "kafka-consumer-groups.sh --bootstrap-server localhost:9092"
_PLAIN = re.compile("[A-Za-z0-9._-]+")


class ResetPlan(NamedTuple):
    """Lines of the file, and its omissions, in words."""

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The file."""
        return "".join(f"{line}{LINE_END}" for line in self.lines)


def reset_plan(groups: Sequence[Group], *, names_groups: bool) -> ResetPlan:
    """Return the plan that resets groups to their commits.

    `names_groups`: each line begins with the group, for several of them; without, it is the form of one group, which
    tools before 2.4 take too. Source: OffsetsUtils.parseResetPlan.
    """
    commits = [commit for group in groups for commit in group.commits]
    kept = [commit for commit in commits if LINE_END not in f"{commit.group}{commit.topic}"]
    lines = tuple(",".join(_csv_fields(commit, names_groups=names_groups)) for commit in kept)
    whose = " ".join(map(group_option, dict.fromkeys(commit.group for commit in kept)))
    use = (f"try it: {_TOOL} {whose} --reset-offsets --from-file FILE --dry-run",) if lines else ()
    return ResetPlan(lines, (*_omitted_groups(groups), *_omitted_details(commits, kept), *use))


def _csv_fields(commit: OffsetCommit, *, names_groups: bool) -> Iterator[str]:
    for name in (commit.group, commit.topic) if names_groups else (commit.topic,):
        yield name if _PLAIN.fullmatch(name) else _quote(name)
    yield str(commit.partition)
    yield str(commit.offset)


def group_option(name: str) -> str:
    """Return the option that selects a group, because --all-groups ignores groups that don't exist yet."""
    return f"--group{'=' if name.startswith('-') else ' '}{_shell_word(name)}"


def _shell_word(name: str) -> str:
    """Return a name as a word of bash, of characters that a terminal shows."""
    if name.isprintable():
        return shlex.quote(name)
    return f"$'{''.join(map(_escape, name))}'"


def _escape(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _quote(name: str) -> str:
    """Return a field of CSV in quotes, as in RFC 4180."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _omitted_groups(groups: Iterable[Group]) -> Iterator[str]:
    """Yield the groups without a line, as the tool doesn't reset them."""
    for group in groups:
        if group.type == "share":
            yield f"{group.group} is omitted, since a share group has no commits; reset it with kafka-share-groups.sh"
        if group.pending_commits:
            yield (
                f"{group.group}: commits of transactions that haven't ended are omitted: {len(group.pending_commits)}"
            )


def _omitted_details(commits: Sequence[OffsetCommit], kept: Sequence[OffsetCommit]) -> Iterator[str]:
    """Yield the details of commits that the lines omit."""
    if len(kept) < len(commits):
        yield f"commits are omitted, since the CSV can't hold a name with a line feed: {len(commits) - len(kept)}"
    with_metadata = sum(bool(commit.metadata) for commit in kept)
    with_epochs = sum(commit.leader_epoch >= 0 for commit in kept)
    for count, what in ((with_metadata, "metadata"), (with_epochs, "leader epochs")):
        if count:
            yield (
                f"the CSV holds only offsets: {count} of {plural(len(kept), 'commit has', 'commits have')} {what},"
                " which it can't hold"
            )
