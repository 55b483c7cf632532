"""All partitions of a report put together: each with what is known of it, and topics with their partitions' sums."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.formats.names import DirectoryState
from kseg.log.partition.cleaning import Cleaning
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.roll import RetentionSettings
from kseg.log.partition.segment_listing import SegmentListing
from kseg.log.retain import Retained, retained_of
from kseg.report.partition_sums import KeySums, LargeRecord, Sums
from kseg.report.survey import FileSizes, SupersededRecords, Surveyed
from kseg.views.doctor.suspect_times import SuspectTimes
from kseg.views.doctor.trouble import CheckUp

if TYPE_CHECKING:
    from kseg.report.codec_trial import Sample
    from kseg.views.cluster import ClusterMetadata
    from kseg.views.group import Group

MOST_TOPIC_KEYS = 512


class Choices(NamedTuple):
    """What a report is asked to show.

    now_ms: the time that all is judged by; has_given_time: whether it isn't the clock's. days: how far ahead retention
    is foretold. shows_keys: hot keys as they are; redact_key: or what stands for them, None for numbers. times_codecs:
    measure how fast codecs are. price: of a GiB of disk a month, None without; replicas: copies of what is here.
    """

    now_ms: int
    zone: tzinfo = UTC
    has_given_time: bool = False
    is_quick: bool = False
    days: int = 14
    shows_keys: bool = False
    redact_key: bytes | None = None
    times_codecs: bool = False
    price: float | None = None
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What is known of a partition.

    files: by kind. records: data records, batches: without control batches. retained: each segment with its end.
    last_time: the largest time that can be right, -1 for none. superseded: None if records weren't read. own: what the
    topic sets itself.
    """

    topic: str
    name: str
    path: Path
    log_dir: Path
    partition: PartitionLog
    state: DirectoryState | None
    files: dict[str, FileSizes]
    size: int
    records: int
    batches: int
    last_time: int
    log_start_offset: int
    log_end_offset: int
    topic_id: str | None
    leader_epoch: int | None
    retention: RetentionSettings
    has_own_time: bool
    retained: tuple[Retained, ...]
    cleaning: Cleaning | None
    superseded: SupersededRecords | None
    late: int
    suspects: tuple[SuspectTimes, ...]
    own: dict[str, str]

    @property
    def segments(self) -> Iterator[SegmentListing]:
        """Its segments."""
        return (each.segment for each in self.retained)

    @property
    def disk_size(self) -> int:
        """Bytes of all its files."""
        return sum(each.size for each in self.files.values())


class PlacedRecord(NamedTuple):
    """A large record, and its partition."""

    record: LargeRecord
    partition: PartitionFacts


class PlacedKey(NamedTuple):
    """A key with many records, and the partition that has most of them."""

    key: KeySums
    partition: PartitionFacts


@dataclass(slots=True)
class TopicFacts:
    """A topic: its partitions in use, and their sums."""

    name: str
    partitions: list[PartitionFacts] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)
    largest: list[PlacedRecord] = field(default_factory=list)
    keys: dict[int, PlacedKey] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of its logs."""
        return sum(each.size for each in self.partitions)

    @property
    def disk_size(self) -> int:
        """Bytes of all its files."""
        return sum(each.disk_size for each in self.partitions)

    def add(self, partition: PartitionFacts, sums: Sums | None) -> None:
        """Takes a partition."""
        self.partitions.append(partition)
        if sums is None:
            return
        self.sums.add(sums)
        placed = [PlacedRecord(record, partition) for record in sums.largest]
        self.largest = sorted([*self.largest, *placed], key=lambda each: -each.record.size)[:10]
        for key in sums.keys.values():
            self._add_key(key, partition)
        if len(self.keys) > 2 * MOST_TOPIC_KEYS:
            kept = sorted(self.keys.values(), key=lambda each: -each.key.records)[:MOST_TOPIC_KEYS]
            self.keys = {each.key.hash: each for each in kept}

    def _add_key(self, key: KeySums, partition: PartitionFacts) -> None:
        known = self.keys.get(key.hash)
        if known is None:
            self.keys[key.hash] = PlacedKey(key, partition)
            return
        first = known if known.key.records >= key.records else PlacedKey(key, partition)
        records, size = known.key.records + key.records, known.key.size + key.size
        self.keys[key.hash] = PlacedKey(first.key._replace(records=records, size=size), first.partition)


class Gathered:
    """All that is known.

    partitions: those in use and others. topics: by name, of those in use. all: sums of all of these. check_up: what the
    doctor found. cluster: its metadata, groups: those of `__consumer_offsets`; None if they aren't here.
    samples: of topics, compressed by each codec.
    """

    def __init__(self, choices: Choices) -> None:
        """Starts with nothing."""
        self.choices = choices
        self.partitions: list[PartitionFacts] = []
        self.topics: dict[str, TopicFacts] = {}
        self.all = Sums()
        self.check_up = CheckUp((), (), (), 0, 0, 0, choices.is_quick)
        self.cluster: ClusterMetadata | None = None
        self.groups: tuple[Group, ...] | None = None
        self.samples: dict[str, Sample] = {}

    def take(self, found: Surveyed) -> None:
        """Takes a partition."""
        facts = _facts(found)
        if facts is None:
            return
        self.partitions.append(facts)
        if facts.state is None:
            self.topics.setdefault(facts.topic, TopicFacts(facts.topic)).add(facts, found.sums)
            if found.sums is not None:
                self.all.add(found.sums)

    @property
    def in_use(self) -> list[PartitionFacts]:
        """The partitions in use."""
        return [each for each in self.partitions if each.state is None]

    @property
    def by_size(self) -> list[TopicFacts]:
        """Topics, the largest first."""
        return sorted(self.topics.values(), key=lambda topic: (-topic.size, topic.name))

    @property
    def log_dirs(self) -> list[Path]:
        """Directories that partitions are in."""
        return list(dict.fromkeys(each.log_dir for each in self.partitions))


def _parent(partition: PartitionLog) -> Path:
    """The directory that a partition is in, as it was given."""
    path = partition.path
    return path.parent if path.name not in ("", "..") else partition.log_dir


def _facts(found: Surveyed) -> PartitionFacts | None:
    listing, sums = found.examined.listing, found.sums
    if listing is None:
        return None
    partition = listing.partition
    return PartitionFacts(
        topic=listing.topic,
        name=listing.name,
        path=partition.path,
        log_dir=_parent(partition),
        partition=partition,
        state=partition.state,
        files=found.files,
        size=listing.size,
        records=0 if sums is None else sums["records"],
        batches=0 if sums is None else sums["batches"],
        last_time=-1 if sums is None else sums.largest_timestamp,
        log_start_offset=listing.log_start_offset,
        log_end_offset=listing.log_end_offset,
        topic_id=listing.topic_id,
        leader_epoch=listing.leader_epoch,
        retention=found.examined.retention,
        has_own_time=found.examined.has_own_time,
        retained=tuple(retained_of(listing, found.examined.retention)),
        cleaning=listing.cleaning,
        superseded=found.superseded,
        late=0 if sums is None else sums["late"],
        suspects=found.examined.suspects,
        own=found.own,
    )
