"""Columns and text of `kseg metadata --changes` and `--diff`: what changed, from what to what."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.cluster.change_log import MetadataChanges
from kseg.cluster.metadata_changes import Change, Thing, in_order
from kseg.cluster.model import (
    Acl,
    Broker,
    ClusterPartition,
    Config,
    Controller,
    DelegationToken,
    Feature,
    Quota,
    ScramUser,
    Topic,
    Voter,
    entity_text,
)
from kseg.cluster.partitions import UNKNOWN_DIRECTORIES
from kseg.errors import UsageError, plural
from kseg.output.columns import NOT_SHOWN, Column, iso_time_column, listed_column, timestamp_column
from kseg.output.table import Section
from kseg.text import fields
from kseg.text.groups import unless_negative
from kseg.text.metadata import (
    ACLS,
    BROKERS,
    CONFIGS,
    CONTROLLERS,
    FEATURES,
    HIDDEN_VALUE,
    PARTITIONS,
    QUOTAS,
    SCRAM,
    TOKENS,
    VOTERS,
    PartitionRow,
)
from kseg.times import iso_time


def _directories_text(partition: ClusterPartition) -> str:
    return ",".join(UNKNOWN_DIRECTORIES.get(each or "", each or "") or "unknown" for each in partition.directories)


_PLACED = Column[PartitionRow](
    fields.DIRECTORIES, "", lambda row: [*row.partition.directories], lambda row: _directories_text(row.partition)
)
_TOPIC_COLUMNS: tuple[Column[Topic], ...] = (
    Column(fields.TOPIC_ID, "", lambda row: row.topic_id),
    Column(fields.PARTITIONS, "", lambda row: len(row.partitions)),
    Column(fields.REPLICATION_FACTOR, "", lambda row: len(row.partitions[0].replicas) if row.partitions else None),
)
_COLUMNS: Mapping[type, Sequence[Column[Any]]] = MappingProxyType(
    {
        Feature: FEATURES.columns,
        Voter: VOTERS.columns,
        Controller: CONTROLLERS.columns,
        Broker: (*BROKERS.columns, listed_column(fields.CORDONED_LOG_DIRS, "", lambda row: row.cordoned_log_dirs)),
        ClusterPartition: (*(each for each in PARTITIONS.columns if each.field is not fields.DIRECTORIES), _PLACED),
        Config: CONFIGS.columns,
        Acl: ACLS.columns,
        Quota: QUOTAS.columns,
        ScramUser: SCRAM.columns,
        DelegationToken: TOKENS.columns,
    }
)
"""The fields that `kseg metadata` shows of each kind; log directories of a partition by their ids."""
_NOT_COMPARED = (
    fields.TOPIC,
    fields.TOPIC_ID,
    fields.PARTITION,
    fields.PARTITION_EPOCH,
    fields.BROKER_ID,
    fields.CONTROLLER_ID,
    fields.VOTER_ID,
    fields.RESOURCE_TYPE,
    fields.RESOURCE,
    fields.NAME,
    fields.ENTITY,
    fields.USER,
    fields.MECHANISM,
    fields.TOKEN_ID,
    fields.STATE,
    fields.ISSUE_TIME,
    fields.EXPIRATION_TIME,
    fields.MAX_TIME,
)
"""Fields that name the thing, or that say again what others say."""
_COMPARED: Mapping[type, tuple[Column[Any], ...]] = MappingProxyType(
    {
        **{
            kind: tuple(column for column in columns if column.field not in _NOT_COMPARED)
            for kind, columns in _COLUMNS.items()
        },
        Topic: _TOPIC_COLUMNS,
    }
)
"""The fields of each kind that can change."""
_LABELS: Mapping[str, str] = MappingProxyType(
    {"isr": "ISR", "eligibleLeaderReplicas": "ELR", "lastKnownElr": "last known ELR"}
)


def changed_kind(show: str | None) -> str | None:
    """Return the kind of changes for a kind of rows, as --show names it, or None for all.

    Raises UsageError for one that changes only as part of another.
    """
    if show == "directories":
        raise UsageError("a broker's log directories change with its registration; specify --show brokers")
    return None if show is None else show.removesuffix("s")


class ChangeRow(NamedTuple):
    """A change, and the columns in which its thing differs; before and after are the rows that these take."""

    change: Change
    before: Any
    after: Any
    columns: tuple[Column[Any], ...]

    @classmethod
    def of(cls, change: Change) -> "ChangeRow":
        """Compare a thing before and after; all columns stay where what differs isn't shown, such as a password."""
        before, after = _row(change.before), _row(change.after)
        columns = _COMPARED[type(change.thing)]
        if before is not None and after is not None:
            columns = tuple(each for each in columns if each.value(before) != each.value(after)) or columns
        return cls(change, before, after, columns)

    def members(self, row: Any) -> dict[str, object] | None:
        """Return the members of the thing before or after: all if it came or went, otherwise those that differ."""
        if row is None:
            return None
        found = {each.name: each.value(row) for each in self.columns}
        if self.change.configs:
            found["configs"] = {each.name: _shown(each) for each in self.change.configs}
        return found

    def details(self, zone: tzinfo) -> str:
        """Return the change for people: old and new values, or the thing that came or went."""
        columns = [each if each.in_zone is None else each.in_zone(zone) for each in self.columns]
        if self.before is None or self.after is None:
            row = self.before if self.after is None else self.after
            return _describe(self.change, {each.name: each.text(row) for each in columns})
        texts = [(each.name, each.text(self.before) or "none", each.text(self.after) or "none") for each in columns]
        of_name = _name(self.change) if isinstance(self.change.thing, Config | Quota) else None
        lines = [f"{of_name or _label(member)} {old} -> {new}" for member, old, new in texts]
        mechanism = [self.change.thing.mechanism] if isinstance(self.change.thing, ScramUser) else []
        return ", ".join([*mechanism, *lines])


def _row(thing: Thing | None) -> Any:
    """A thing as its columns take it."""
    if isinstance(thing, ClusterPartition):
        return PartitionRow(thing, ())
    return None if thing is None else in_order(thing)


def _shown(config: Config) -> str:
    return HIDDEN_VALUE if config.is_secret else config.value


def _describe(change: Change, texts: Mapping[str, str]) -> str:
    """A thing that came or went."""
    match change.thing:
        case Config(name=name) | Quota(name=name):
            return f"{name}={''.join(texts.values())}"
        case Acl() as acl:
            return f"{acl.permission} {acl.operation} to {acl.principal} from {acl.host}"
        case ScramUser() as user:
            return f"{user.mechanism}, {plural(user.iterations, 'iteration')}"
        case Topic() as topic:
            settings = [f"{each.name}={_shown(each)}" for each in change.configs]
            factor = [f"replication factor {len(topic.partitions[0].replicas)}"] if topic.partitions else []
            return ", ".join([plural(len(topic.partitions), "partition"), *factor, *settings])
    return ", ".join(f"{_label(member)} {text}" for member, text in texts.items() if text not in ("", "no"))


def _label(member: str) -> str:
    """A member name in words."""
    words = re.sub("([A-Z])", r" \1", member).lower()
    return _LABELS.get(member, words.removeprefix("is ").removesuffix(" timestamp"))


def _topic(change: Change) -> str | None:
    match change.thing:
        case ClusterPartition(topic=topic) | Topic(name=topic) | Config(resource_type="topic", resource=topic):
            return topic
    return None


def _name(change: Change) -> str | None:
    """Return the name of a setting, a quota or a feature."""
    thing = change.thing
    return thing.name if isinstance(thing, Config | Quota | Feature) else None


def _resource_type(change: Change) -> str | None:
    return change.thing.resource_type if isinstance(change.thing, Config | Acl) else None


def _resource(change: Change) -> str:
    match change.thing:
        case Config(resource=name) | Acl(resource=name) | Topic(name=name) | Feature(name=name) | ScramUser(user=name):
            return name
        case ClusterPartition() as partition:
            return f"{partition.topic}-{partition.partition}"
        case Quota(entity=entity):
            return entity_text(entity)
        case thing:
            return str(thing[0])


def _resource_text(change: Change) -> str:
    """The resource for people: with its type if several kinds have such names."""
    match change.thing:
        case Config() as config:
            return f"{config.resource_type} {config.resource or '<default>'}"
        case Acl() as acl:
            pattern = "" if acl.pattern_type == "LITERAL" else f"{acl.pattern_type.lower()} "
            return f"{pattern}{acl.resource_type} {acl.resource}"
    return _resource(change)


def _details_column(zone: tzinfo = UTC) -> Column[ChangeRow]:
    return Column(
        fields.DETAILS, "BEFORE -> AFTER", lambda row: row.details(zone), in_zone=_details_column, rank=0,
        is_sentence=True,
    )  # fmt: skip


def _style(row: ChangeRow) -> str:
    change = row.change
    if isinstance(change.after, ClusterPartition) and change.after.leader < 0:
        return "red"
    return "yellow" if change.after is None or change.action in ("fenced", "shutting down") else ""


_WHAT = (
    Column[ChangeRow](fields.KIND, "KIND", lambda row: row.change.kind),
    Column[ChangeRow](fields.ACTION, "CHANGE", lambda row: row.change.action, rank=0),
    Column[ChangeRow](fields.TOPIC, NOT_SHOWN, lambda row: _topic(row.change)),
    Column[ChangeRow](
        fields.PARTITION,
        NOT_SHOWN,
        lambda row: row.change.thing.partition if isinstance(row.change.thing, ClusterPartition) else None,
    ),
    Column[ChangeRow](fields.RESOURCE_TYPE, NOT_SHOWN, lambda row: _resource_type(row.change)),
    Column[ChangeRow](
        fields.RESOURCE, "OF", lambda row: _resource(row.change), lambda row: _resource_text(row.change), rank=0
    ),
    Column[ChangeRow](fields.NAME, NOT_SHOWN, lambda row: _name(row.change)),
    _details_column(),
    Column[ChangeRow](fields.OLD, NOT_SHOWN, lambda row: row.members(row.before)),
    Column[ChangeRow](fields.NEW, NOT_SHOWN, lambda row: row.members(row.after)),
)
CHANGES: Section[ChangeRow] = Section(
    "change",
    "Changes",
    (
        iso_time_column(fields.TIME, lambda row: row.change.timestamp, "TIME"),
        timestamp_column(fields.TIMESTAMP, NOT_SHOWN, lambda row: row.change.timestamp),
        Column(fields.OFFSET, "OFFSET", lambda row: row.change.offset),
        *_WHAT,
    ),
    _style,
)
DIFFERENCES: Section[ChangeRow] = Section("change", "Differences", _WHAT, _style)
SUMMARY: Section[MetadataChanges] = Section(
    "changes",
    None,
    (
        Column(fields.CHANGES, "CHANGES", lambda row: row.count),
        Column(fields.FIRST_OFFSET, "FIRST", lambda row: None if row.reach is None else row.reach.first_offset),
        Column(fields.LAST_OFFSET, "LAST", lambda row: None if row.reach is None else row.reach.last_offset),
        iso_time_column(fields.FIRST_TIME, lambda row: None if row.reach is None else row.reach.first_timestamp),
        iso_time_column(fields.LAST_TIME, lambda row: None if row.reach is None else row.reach.last_timestamp),
        Column(fields.CHECKPOINT, "CHECKPOINT", lambda row: None if row.base is None else row.base.name),
        iso_time_column(fields.KNOWN_SINCE, lambda row: None if row.base is None else row.base.last_timestamp),
        Column(fields.MISSING_BEFORE, "MISSING BEFORE", lambda row: row.end_state.missing_before),
        Column(fields.UNAPPLIED, "UNAPPLIED", lambda row: row.end_state.unapplied),
        Column(fields.COMMITTED_END, "COMMITTED END", lambda row: row.committed_end),
        Column(fields.UNCOMMITTED, "UNCOMMITTED", lambda row: row.uncommitted),
    ),
)
"""The files that were searched for changes, only in JSON."""


def summary(changes: MetadataChanges, from_ms: int | None, zone: tzinfo) -> str:
    """A line about what was looked through, and before when nothing is known."""
    text = f"{_count_text(changes, zone)}{_unknown_text(changes, from_ms, zone)}"
    found = changes.end_state
    if changes.reach is None and found.offset >= 0:
        text += f"; the log ends at offset {found.offset}, {iso_time(unless_negative(found.timestamp), zone)}"
    return text


def _count_text(changes: MetadataChanges, zone: tzinfo) -> str:
    many = plural(changes.count, "change") if changes.count else "no changes"
    if changes.reach is None and changes.end_state.offset < 0:
        return "the log has no records here, so changes are unknown; compare checkpoints with --diff"
    if changes.reach is None:
        return f"{many}: no record is from that time"
    first, first_ms, last, last_ms = changes.reach
    times = f"from {iso_time(first_ms, zone)} to {iso_time(last_ms, zone)}"
    return f"{many} {times}, in offsets {first} to {last}"


def _unknown_text(changes: MetadataChanges, from_ms: int | None, zone: tzinfo) -> str:
    base = changes.base
    if base is None or (from_ms is not None and base.last_timestamp < from_ms):
        return ""
    since = iso_time(base.last_timestamp, zone)
    return f"; changes before {since} are unknown: the log begins with a snapshot at offset {base.end_offset}"


def change_notes(changes: MetadataChanges) -> Iterator[str]:
    """Yield notes about unread records and changes that may be undone."""
    yield from changes.end_state.notes()
    if changes.uncommitted:
        many = plural(changes.uncommitted, "change is", "changes are")
        yield (
            f"{many} at offset {changes.committed_end} or later, which most voters don't have: the cluster may drop"
            " them"
        )
