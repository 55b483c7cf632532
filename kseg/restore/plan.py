"""The plan of a restore: topics, partitions with their contents, groups with their offsets in the target."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from kseg.client.brokers import Place
from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import Refuse, pass_over
from kseg.cluster.metadata_copy import partition_count
from kseg.cluster.model import ClusterMetadata
from kseg.coordinators.groups import read_groups
from kseg.coordinators.members import Group
from kseg.errors import OpenError, UsageError, plural
from kseg.formats.codes import INTERNAL_TOPICS
from kseg.log.selection import PartitionChoice
from kseg.restore.job import GROUP_PREFIX, digest
from kseg.restore.source import SourcePartition, Survey, Surveyor, open_source, translate

LEAST_LARGEST = 2 << 20
"""The least `max.message.bytes` of a topic while its records are sent."""
SHARE = "share"
TARGETS_DEFAULT = -1
"""Instead of a number of replicas: the target's default. Source: CreateTopicsRequest.NO_REPLICATION_FACTOR."""


class FinalSettings(Enum):
    """The settings of topics at the end: the source's without retention that would delete, all of them, or none."""

    SAFE = "safe"
    SOURCE = "source"
    NONE = "none"


@dataclass(frozen=True)
class RestoreRequest:
    """A wanted restore.

    topic_map: names in the target by names in the source. group: a glob, None for no groups. end_ms: the first unwanted
    timestamp. appends: topics may have records already. job: the name of its record in the target. rate: bytes per
    second. replication_factor: None for the source's.
    """

    choice: PartitionChoice
    topic_map: Mapping[str, str] = field(default_factory=dict)
    group: str | None = "*"
    end_ms: int | None = None
    keeps_offsets: bool = False
    appends: bool = False
    replication_factor: int | None = None
    final_settings: FinalSettings = FinalSettings.SAFE
    job: str | None = None
    rate: int | None = None


class PlannedTopic(NamedTuple):
    """A topic: its names in source and target, number of partitions, missing ones, own settings, largest batch.

    replicas: of each partition in the target, TARGETS_DEFAULT if that decides.
    """

    source: str
    target: str
    partitions: int
    missing: tuple[int, ...]
    settings: Mapping[str, str]
    largest: int
    replicas: int

    @property
    def most_bytes(self) -> int:
        """The most bytes of a batch while its records are sent."""
        return max(2 * self.largest, LEAST_LARGEST)


class PlannedPartition(NamedTuple):
    """A partition's place in the target, its source, and the contents of that.

    base: the target's offset of its first record. begin: the end of the target's log before the restore: empty records
    fill the offsets from there to the base.
    """

    place: Place
    source: SourcePartition
    survey: Survey
    base: int = 0
    begin: int = 0

    @property
    def name(self) -> str:
        """The name of the target's partition."""
        return f"{self.place[0]}-{self.place[1]}"

    @property
    def first_offset(self) -> int:
        """The source's offset of its first record, or of the next one without any."""
        return self.survey.end_offset if self.survey.first_offset is None else self.survey.first_offset

    @property
    def has_gaps(self) -> bool:
        """True if offsets between its records have none."""
        return self.survey.end_offset - self.first_offset != self.survey.records

    @property
    def is_filled(self) -> bool:
        """True if its records come after empty ones."""
        return self.begin < self.base

    @property
    def end(self) -> int:
        """The target's offset after its last record."""
        return self.base + self.survey.records

    @property
    def keeps_offsets(self) -> bool:
        """True if each record has the same offset in the target."""
        return not self.survey.records or (self.base == self.first_offset and not self.has_gaps)


class GroupOffset(NamedTuple):
    """A group's offset: the partition in the target, the offset in the source and in the target, and the metadata."""

    topic: str
    partition: int
    source_offset: int
    target_offset: int
    metadata: str


class PlannedGroup(NamedTuple):
    """A group with its offsets in restored partitions. left_out: the number of its offsets in other partitions."""

    name: str
    type: str
    offsets: tuple[GroupOffset, ...]
    left_out: int


@dataclass(frozen=True)
class Plan:
    """The work of a restore. cluster_id: the source's; None if unknown. notes: unknown facts about the source.

    knows_settings: the source's settings are known. has_others: the source has ACLs, quotas, users, or settings of
    brokers or groups, which a restore doesn't bring.
    """

    cluster_id: str | None
    topics: tuple[PlannedTopic, ...]
    partitions: tuple[PlannedPartition, ...]
    groups: tuple[PlannedGroup, ...]
    notes: tuple[str, ...]
    knows_settings: bool = True
    has_others: bool = False

    @property
    def bases(self) -> dict[Place, int]:
        """The target's offset of each partition's first record."""
        return {each.place: each.base for each in self.partitions}

    def append_to(self, ends: Mapping[Place, int]) -> "Plan":
        """Return a plan whose partitions begin where some logs of the target end."""
        return self._move({place: (end, end) for place, end in ends.items()})

    def fill(self) -> "Plan":
        """Return a plan in which empty records keep the offsets of logs that begin later than at 0."""
        return self._move({each.place: (0, each.first_offset) for each in self.partitions})

    def _move(self, places: Mapping[Place, tuple[int, int]]) -> "Plan":
        """Return a plan with other begins and bases, by place."""
        begins = {place: begin for place, (begin, _) in places.items()}
        bases = {place: base for place, (_, base) in places.items()}
        partitions = tuple(
            each._replace(begin=begins.get(each.place, 0), base=bases.get(each.place, 0)) for each in self.partitions
        )
        groups = tuple(
            each._replace(
                offsets=tuple(
                    own._replace(target_offset=own.target_offset + bases.get((own.topic, own.partition), 0))
                    for own in each.offsets
                )
            )
            for each in self.groups
        )
        return replace(self, partitions=partitions, groups=groups)

    def limit_replicas(self, brokers: int) -> "Plan":
        """Return a plan in which no topic has more replicas than the target has brokers."""
        topics = tuple(each._replace(replicas=min(each.replicas, brokers)) for each in self.topics)
        if topics == self.topics:
            return self
        note = f"the target has {plural(brokers, 'broker')}, so some topics get fewer replicas than in the source"
        return replace(self, topics=topics, notes=(*self.notes, note))

    @property
    def records(self) -> int:
        """The number of all records."""
        return sum(each.survey.records for each in self.partitions)

    @property
    def size(self) -> int:
        """The bytes of all batches."""
        return sum(each.survey.size for each in self.partitions)

    @property
    def has_damage(self) -> bool:
        """True if any log has damage."""
        return any(each.survey.damages for each in self.partitions)

    @property
    def is_incomplete(self) -> bool:
        """True if something of the source isn't here, or can't be read."""
        return self.has_damage or any(topic.missing for topic in self.topics)

    @property
    def source_digest(self) -> str:
        """A digest of the restored records' places: other disks have another one."""
        return digest(
            [
                (each.source.name, each.survey.first_offset, each.survey.end_offset, each.survey.records)
                for each in self.partitions
            ]
        )


def options_digest(request: RestoreRequest) -> str:
    """Return a digest of the options that decide which record gets which offset."""
    return digest([sorted(request.topic_map.items()), request.end_ms, request.appends, request.keeps_offsets])


class Planning:
    """A plan in the making: all logs are read, which takes time.

    is_empty: there is no topic to restore. size: bytes that will be read.
    """

    def __init__(self, cluster: Cluster, request: RestoreRequest, paths: Sequence[Path], refuse: Refuse) -> None:
        """List the partitions. Raises UsageError if a name is wrong, or options exclude each other."""
        if request.appends and request.keeps_offsets:
            raise UsageError("--append gives records new offsets; leave out --offsets keep")
        self._cluster, self._request, self._paths, self._refuse = cluster, request, paths, refuse
        replicas = [
            each
            for each in cluster.partitions(request.choice)
            if each.topic not in INTERNAL_TOPICS and each.partition is not None and each.copies
        ]
        self.is_empty = not replicas
        _check_map(request.topic_map, {each.topic for each in replicas})
        self._sources = [open_source(each, request.end_ms) for each in replicas]
        self.size = sum(segment.size for each in self._sources for segment in each.log.segments)
        self._planned: list[PlannedPartition] = []

    def read(self) -> Iterator[int]:
        """Read all logs; yield the number of bytes after each piece. Raises OpenError."""
        for source in self._sources:
            surveyor = Surveyor(source)
            yield from surveyor.read()
            name = self._request.topic_map.get(source.topic, source.topic)
            self._planned.append(PlannedPartition((name, source.partition), source, surveyor.survey()))

    def plan(self) -> Plan:
        """Return the plan, after all was read. Raises UsageError if offsets can't be kept as the request says."""
        metadata = self._cluster.own_metadata
        topics = tuple(self._topics(metadata))
        if self._request.keeps_offsets:
            for each in self._planned:
                if each.has_gaps:
                    raise UsageError(
                        f"{each.source.name}: --offsets keep: its log has gaps, and kseg fills none; use --offsets"
                        " translate"
                    )
        notes = []
        if metadata is None:
            notes.append(
                "PATHS have no readable __cluster_metadata, so topics get no settings of the source, and the target's"
                " number of replicas"
            )
        groups = tuple(self._groups(notes))
        has_others = metadata is not None and _has_others(metadata)
        plan = Plan(
            self._cluster.cluster_id,
            topics,
            tuple(self._planned),
            groups,
            tuple(notes),
            metadata is not None,
            has_others,
        )
        return plan.fill() if self._request.keeps_offsets else plan

    def _topics(self, metadata: ClusterMetadata | None) -> Iterator[PlannedTopic]:
        own: dict[str, list[PlannedPartition]] = defaultdict(list)
        for each in self._planned:
            own[each.source.topic].append(each)
        settings: dict[str, dict[str, str]] = defaultdict(dict)
        for config in () if metadata is None else metadata.configs:
            if config.resource_type == "topic":
                settings[config.resource][config.name] = config.value
        for name, partitions in own.items():
            numbers = [each.source.partition for each in partitions]
            count = max(partition_count(metadata, name, numbers) or 0, max(numbers) + 1)
            missing = tuple(sorted({*range(count)} - {*numbers}))
            largest = max(each.survey.largest for each in partitions)
            replicas = self._request.replication_factor or _replicas_of(metadata, name)
            yield PlannedTopic(name, partitions[0].place[0], count, missing, settings[name], largest, replicas)

    def _groups(self, notes: list[str]) -> Iterator[PlannedGroup]:
        pattern = self._request.group
        if pattern is None:
            return
        try:
            view = read_groups(self._paths, self._request.end_ms, pass_over)
        except OpenError:
            notes.append("PATHS have no __consumer_offsets, so no group is restored")
            return
        notes += [*(each.line() for each in view.unreadable), *view.notes]
        places = {(each.source.topic, each.source.partition): each for each in self._planned}
        for group in view.groups:
            if fnmatchcase(group.group, pattern) and not group.group.startswith(GROUP_PREFIX):
                planned = _planned_group(group, places)
                if planned.offsets or planned.left_out:
                    yield planned


def _has_others(metadata: ClusterMetadata) -> bool:
    settings = any(each.resource_type != "topic" for each in metadata.configs)
    return bool(settings or metadata.acls or metadata.quotas or metadata.scram)


def _replicas_of(metadata: ClusterMetadata | None, topic: str) -> int:
    """Return the most replicas that a partition of a topic has in the source."""
    found = None if metadata is None else metadata.topic(topic)
    return max((len(each.replicas) for each in found.partitions), default=TARGETS_DEFAULT) if found else TARGETS_DEFAULT


def _planned_group(group: Group, places: Mapping[Place, PlannedPartition]) -> PlannedGroup:
    if group.type == SHARE:
        stored = [(each.topic, each.partition, each.first_unfinished, "") for each in group.share_partitions]
    else:
        stored = [(each.topic, each.partition, each.offset, each.metadata) for each in group.commits]
    offsets, left_out = [], 0
    for topic, partition, offset, metadata in stored:
        found = places.get((topic, partition))
        if found is None or offset is None or offset < 0:
            left_out += 1
            continue
        target = translate(found.source, found.survey, offset)
        offsets.append(GroupOffset(found.place[0], partition, offset, target, metadata))
    return PlannedGroup(group.group, group.type, tuple(offsets), left_out)


def _check_map(topic_map: Mapping[str, str], topics: set[str]) -> None:
    """Raise UsageError for a name that isn't restored, and for two topics that would become one."""
    unknown = sorted(topic_map.keys() - topics)
    if unknown:
        raise UsageError(f"--topic-map: {unknown[0]} isn't among the restored topics")
    names = [topic_map.get(topic, topic) for topic in topics]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"--topic-map: two topics would become {twice[0]}; specify each another name")
