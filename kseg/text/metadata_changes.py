"""Columns and text of `kseg metadata --changes` and `--diff`: what changed, from what to what."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from types import MappingProxyType
from typing import Any

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
from kseg.errors import UsageError, counted
from kseg.output.columns import NOT_SHOWN, Column, iso_time_column, timestamp_column
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

_SECTIONS: Mapping[type, Section[Any]] = MappingProxyType(
    {
        Feature: FEATURES,
        Voter: VOTERS,
        Controller: CONTROLLERS,
        Broker: BROKERS,
        ClusterPartition: PARTITIONS,
        Config: CONFIGS,
        Acl: ACLS,
        Quota: QUOTAS,
        ScramUser: SCRAM,
        DelegationToken: TOKENS,
    }
)
"""What `kseg metadata` shows of each kind; of a topic it counts the partitions."""
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
    fields.DIRECTORIES,
    fields.ISSUE_TIME,
    fields.EXPIRATION_TIME,
    fields.MAX_TIME,
)
"""Members that name the thing, or that say again what others say."""
_LABELS: Mapping[str, str] = MappingProxyType(
    {"isr": "ISR", "eligibleLeaderReplicas": "ELR", "lastKnownElr": "last known ELR"}
)


def changed_kind(show: str | None) -> str | None:
    """Return the kind of changes for a kind of rows, as --show names it; None for all.

    Raises UsageError for one that changes only as part of another.
    """
    if show == "directories":
        raise UsageError("a broker's log directories change with its registration: give --show brokers")
    return None if show is None else show.removesuffix("s")


def _members(thing: Thing | None, zone: tzinfo) -> dict[str, tuple[object, str]]:
    """What can change of a thing by names: values, and texts for people."""
    if thing is None:
        return {}
    if isinstance(thing, Topic):
        return _topic_members(thing)
    row = PartitionRow(thing, ()) if isinstance(thing, ClusterPartition) else in_order(thing)
    columns = _SECTIONS[type(thing)].in_zone(zone).columns
    found = {each.name: (each.value(row), each.text(row)) for each in columns if each.field not in _NOT_COMPARED}
    if isinstance(thing, Broker) and thing.cordoned_log_dirs:
        found["cordonedLogDirs"] = [*thing.cordoned_log_dirs], ",".join(thing.cordoned_log_dirs)
    if isinstance(thing, ClusterPartition) and thing.directories:
        places = ",".join(UNKNOWN_DIRECTORIES.get(each or "", each or "") or "unknown" for each in thing.directories)
        found["directories"] = [*thing.directories], places
    return found


def _topic_members(topic: Topic) -> dict[str, tuple[object, str]]:
    found: dict[str, tuple[object, str]] = {"topicId": (topic.topic_id, topic.topic_id)}
    if topic.partitions:
        factor = len(topic.partitions[0].replicas)
        found["partitions"] = len(topic.partitions), str(len(topic.partitions))
        found["replicationFactor"] = factor, str(factor)
    return found


def _differing(change: Change, zone: tzinfo = UTC) -> dict[str, tuple[tuple[object, str], tuple[object, str]]]:
    """The members that differ, before and after; all of them where what differs isn't shown, such as a password."""
    before, after = _members(change.before, zone), _members(change.after, zone)
    nothing: tuple[object, str] = (None, "")
    pairs = {name: (before.get(name, nothing), after.get(name, nothing)) for name in {**before, **after}}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]} or pairs


def _object(change: Change, side: int) -> dict[str, object] | None:
    """What JSON has of a thing before (0) or after (1) its change: all of one that came or went, else what differs."""
    thing = (change.before, change.after)[side]
    if thing is None:
        return None
    found = {name: pair[side][0] for name, pair in _differing(change).items()}
    if change.configs:
        found["configs"] = {each.name: HIDDEN_VALUE if each.is_secret else each.value for each in change.configs}
    return found


def _details(change: Change, zone: tzinfo) -> str:
    """What changed, for people: from what to what, or what it is that came or went."""
    name = _name(change)
    pairs = _differing(change, zone)
    if change.before is None or change.after is None:
        side = 0 if change.after is None else 1
        return _described(change, {member: pair[side][1] for member, pair in pairs.items() if pair[side][1]})
    if isinstance(change.thing, Config | Quota):
        ((old, new),) = ([text for _, text in pair] for pair in pairs.values())
        return f"{name} {old} -> {new}"
    texts = [f"{_label(member)} {old or 'none'} -> {new or 'none'}" for member, ((_, old), (_, new)) in pairs.items()]
    if isinstance(change.thing, ScramUser):
        return ", ".join((change.thing.mechanism, *texts))
    return ", ".join(texts)


def _described(change: Change, texts: Mapping[str, str]) -> str:
    """A thing that came or went."""
    match change.thing:
        case Config(name=name) | Quota(name=name):
            return f"{name}={''.join(texts.values())}"
        case Acl() as acl:
            return f"{acl.permission} {acl.operation} to {acl.principal} from {acl.host}"
        case ScramUser() as user:
            return f"{user.mechanism}, {counted(user.iterations, 'iteration')}"
        case Topic() as topic:
            settings = [f"{each.name}={HIDDEN_VALUE if each.is_secret else each.value}" for each in change.configs]
            factor = [f"replication factor {len(topic.partitions[0].replicas)}"] if topic.partitions else []
            return ", ".join([counted(len(topic.partitions), "partition"), *factor, *settings])
    return ", ".join(f"{_label(member)} {text}" for member, text in texts.items() if text != "no")


def _label(member: str) -> str:
    """A member's name in words."""
    words = re.sub("([A-Z])", r" \1", member).lower()
    return _LABELS.get(member, words.removeprefix("is ").removesuffix(" timestamp"))


def _topic(change: Change) -> str | None:
    match change.thing:
        case ClusterPartition(topic=topic) | Topic(name=topic) | Config(resource_type="topic", resource=topic):
            return topic
    return None


def _name(change: Change) -> str | None:
    """The name of a setting, a quota or a feature."""
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


def _details_column(zone: tzinfo = UTC) -> Column[Change]:
    return Column(
        fields.DETAILS, "BEFORE -> AFTER", lambda row: _details(row, zone), in_zone=_details_column, rank=0,
        is_sentence=True,
    )  # fmt: skip


def _style(change: Change) -> str:
    if isinstance(change.after, ClusterPartition) and change.after.leader < 0:
        return "red"
    return "yellow" if change.after is None or change.action in ("fenced", "shutting down") else ""


_WHAT = (
    Column[Change](fields.KIND, "KIND", lambda row: row.kind),
    Column[Change](fields.ACTION, "CHANGE", lambda row: row.action, rank=0),
    Column[Change](fields.TOPIC, NOT_SHOWN, _topic),
    Column[Change](
        fields.PARTITION,
        NOT_SHOWN,
        lambda row: row.thing.partition if isinstance(row.thing, ClusterPartition) else None,
    ),
    Column[Change](fields.RESOURCE_TYPE, NOT_SHOWN, _resource_type),
    Column[Change](fields.RESOURCE, "OF", _resource, _resource_text, rank=0),
    Column[Change](fields.NAME, NOT_SHOWN, _name),
    _details_column(),
    Column[Change](fields.OLD, NOT_SHOWN, lambda row: _object(row, 0)),
    Column[Change](fields.NEW, NOT_SHOWN, lambda row: _object(row, 1)),
)
CHANGES: Section[Change] = Section(
    "change",
    "Changes",
    (
        iso_time_column(fields.TIME, lambda row: row.timestamp, "TIME"),
        timestamp_column(fields.TIMESTAMP, NOT_SHOWN, lambda row: row.timestamp),
        Column(fields.OFFSET, "OFFSET", lambda row: row.offset),
        *_WHAT,
    ),
    _style,
)
DIFFERENCES: Section[Change] = Section("change", "Differences", _WHAT, _style)
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
        Column(fields.MISSING_BEFORE, "MISSING BEFORE", lambda row: row.found.missing_before),
        Column(fields.UNAPPLIED, "UNAPPLIED", lambda row: row.found.unapplied),
        Column(fields.COMMITTED_END, "COMMITTED END", lambda row: row.committed_end),
        Column(fields.UNCOMMITTED, "UNCOMMITTED", lambda row: row.uncommitted),
    ),
)
"""What was looked through for the changes, only in JSON."""


def summary(changes: MetadataChanges, from_ms: int | None, zone: tzinfo) -> str:
    """A line about what was looked through, and before when nothing is known."""
    text = f"{_count_text(changes, zone)}{_unknown_text(changes, from_ms, zone)}"
    found = changes.found
    if changes.reach is None and found.offset >= 0:
        text += f"; the log ends at offset {found.offset}, {iso_time(unless_negative(found.timestamp), zone)}"
    return text


def _count_text(changes: MetadataChanges, zone: tzinfo) -> str:
    many = counted(changes.count, "change") if changes.count else "nothing changed"
    if changes.reach is None:
        return f"{many}: there is no record of that time"
    first, first_ms, last, last_ms = changes.reach
    times = f"from {iso_time(first_ms, zone)} to {iso_time(last_ms, zone)}"
    return f"{many} {times}, in offsets {first} to {last}"


def _unknown_text(changes: MetadataChanges, from_ms: int | None, zone: tzinfo) -> str:
    base = changes.base
    if base is None or (from_ms is not None and base.last_timestamp < from_ms):
        return ""
    since = iso_time(base.last_timestamp, zone)
    return f"; before {since} nothing is known: the log begins with a snapshot at offset {base.end_offset}"


def change_notes(changes: MetadataChanges) -> Iterator[str]:
    """What couldn't be read, and which changes may be undone."""
    yield from changes.found.notes()
    if changes.uncommitted:
        many = counted(changes.uncommitted, "change is", "changes are")
        yield (
            f"{many} at offset {changes.committed_end} or later, which most of the voters don't have:"
            " the cluster may go on without them"
        )
