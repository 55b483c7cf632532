"""Facts that a report is made of, from a survey of the disk and trials of codecs."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from kseg import kernel
from kseg.cluster.metadata_copy import OnUnread
from kseg.cluster.now import Now
from kseg.cluster.replicas import CopyStatus, PartitionReplicas
from kseg.cluster.settings import SettingSource
from kseg.codecs.bodies import compress
from kseg.doctor.examination import (
    CheckUp,
    ExaminationOrder,
    ExaminationSettings,
    Examined,
    examination_orders,
    examine_partition,
    reading_cost,
    share_orders,
    unreadable_partition,
)
from kseg.doctor.kinds import AHEAD_MS, SuspectTimes
from kseg.errors import FileError, OpenError
from kseg.formats.codes import BATCH_HEADER_SIZE, Codec
from kseg.index.header_scan import header_runs
from kseg.kernel.contract import ROW, SIZE, START, VALID
from kseg.kernel.statistics_contract import BATCH_SIZE
from kseg.log.cleaner import Cleaning
from kseg.log.partition import PartitionLog
from kseg.log.segment_listing import SegmentListing
from kseg.log.segments import RetentionSettings, SegmentFiles
from kseg.log.sizes import FileSizes, sizes_by_kind
from kseg.reading.batch import parse_header
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.report.sums import KeySketch, KeySums, LargeRecord, Sums, sums_of
from kseg.rewrite.compact import Retained, retained_of
from kseg.system.shared_work import OnRead
from kseg.verify.verify import VerificationPlan

if TYPE_CHECKING:
    from kseg.cluster.model import ClusterMetadata
    from kseg.coordinators.members import Group
    from kseg.kernel.statistics_contract import Statistics


MOST_KEYS = 1_000_000
"""Most keys of a partition that are counted separately at once: about 80 MiB."""
FIRST_TIME = 1_000_000_000_000
"""September 2001: earlier timestamps are in other units than milliseconds, or invented."""


class SupersededRecords(NamedTuple):
    """Records whose key was written again before the active segment, which compaction could remove: count and bytes."""

    records: int
    size: int


@dataclass(frozen=True, slots=True)
class PartitionSurvey:
    """The facts about a partition.

    sums: None if no log could be read. files: by kind. superseded: None if records weren't read. own: the topic's own
    settings, by name.
    """

    examined: Examined
    sums: Sums | None
    files: dict[str, FileSizes]
    superseded: SupersededRecords | None
    own: dict[str, str]


def survey(
    plan: VerificationPlan,
    settings: ExaminationSettings,
    *,
    processes: int | None = None,
    on_read: OnRead | None = None,
    on_unread: OnUnread | None = None,
) -> Iterator[PartitionSurvey]:
    """Yield the partitions of a plan in order. The arguments are the same as for `examine`."""
    orders = examination_orders(plan, settings, on_unread=on_unread)
    work = partial(_survey_partition, settings)
    return share_orders(work, orders, reading_cost, processes=processes, on_read=on_read, is_far=plan.cluster.is_far)


def _survey_partition(
    settings: ExaminationSettings, each: ExaminationOrder, on_read: OnRead
) -> Iterator[PartitionSurvey]:
    try:
        partition = PartitionLog(each.order.path, each.order.checkpoints)
        watch = PartitionWatch(partition, each.retention.now_ms)
        if settings.is_quick:
            watch.take_headers(partition, on_read, keep_cache=settings.keep_cache)
        examined = examine_partition(partition, settings, each, on_read=on_read, on_slice=watch.take)
    except OpenError as error:
        if each.order.path.exists():  # otherwise a broker has deleted it meanwhile
            yield PartitionSurvey(unreadable_partition(each, error), None, {}, None, each.own)
        return
    superseded = None if settings.is_quick else watch.superseded_records()
    yield PartitionSurvey(examined, watch.sums(), sizes_by_kind(partition), superseded, each.own)


class PartitionWatch:
    """Sums of the data read from a partition."""

    def __init__(self, partition: PartitionLog, now_ms: int) -> None:
        """Take a partition; timestamps more than an hour after now aren't counted as such."""
        self.statistics: Statistics = kernel.load().Statistics(FIRST_TIME, now_ms + AHEAD_MS, MOST_KEYS)
        self._sketch = KeySketch()
        self._active = partition.segments[-1].base_offset if partition.segments else None
        self._superseded: SupersededRecords | None = None

    def take(self, segment: SegmentFiles, piece: Slice) -> None:
        """Take batches of a segment with their records."""
        if segment.base_offset == self._active and self._superseded is None:
            self._superseded = self._superseded_so_far()
        run = piece.run
        self.statistics.take(run.buffer, run.rows, piece.first, piece.last, piece.bodies, piece.first)
        self._sketch.take_dropped(self.statistics)

    def take_headers(self, partition: PartitionLog, on_read: OnRead, *, keep_cache: bool) -> None:
        """Take the headers of all batches; the caller reports logs that can't be opened."""
        for segment in partition.segments:
            try:
                with segment.open_log(keep_cache=keep_cache) as log_file:
                    for run in header_runs(log_file):
                        if not isinstance(run, Damage):
                            self.statistics.take_headers(run.buffer, run.rows, 0, run.row_count)
            except FileError:
                continue
            finally:
                on_read(segment.size)

    def superseded_records(self) -> SupersededRecords:
        """Return the records that compaction could remove, without the active segment."""
        return self._superseded or self._superseded_so_far()

    def _superseded_so_far(self) -> SupersededRecords:
        return SupersededRecords(self.statistics.superseded, self.statistics.superseded_size)

    def sums(self) -> Sums:
        """Return all sums."""
        sums = sums_of(self.statistics)
        sums.sketches = self._sketch.finish(self.statistics)
        return sums


TRIED = (Codec.LZ4, Codec.ZSTD, Codec.SNAPPY, Codec.GZIP)
SAMPLE_SIZE = 512 << 10
"""Most bytes of records in a sample."""
_SEGMENTS = 8
"""Number of segments whose beginnings a sample has."""


class Trial(NamedTuple):
    """The result of a codec for a sample: bytes with the batches' headers, as batched, and joined to full batches.

    speed: uncompressed bytes per second, None if not measured.
    """

    codec: Codec
    size: int
    joined_size: int
    speed: float | None


class Sample(NamedTuple):
    """Batches of a partition: their number, their uncompressed bodies in bytes, their stored bytes; and trials."""

    batches: int
    uncompressed_size: int
    stored_size: int
    trials: tuple[Trial, ...]


def try_codecs(partition: PartitionLog, *, is_timed: bool) -> Sample | None:
    """Return a sample of a partition's data, compressed by each codec at Kafka's level.

    None without v2 batches of data.
    """
    bodies: list[bytes] = []
    stored = 0
    for body, size in _bodies(partition):
        bodies.append(body)
        stored += size
    if not bodies:
        return None
    joined = _join(bodies)
    return Sample(
        len(bodies), sum(map(len, bodies)), stored, tuple(_trial(each, bodies, joined, is_timed) for each in TRIED)
    )


def _trial(codec: Codec, bodies: list[bytes], joined: list[bytes], is_timed: bool) -> Trial:
    started = perf_counter()
    size = _compress(codec, bodies)
    took = perf_counter() - started
    speed = sum(map(len, bodies)) / took if is_timed and took > 0 else None
    return Trial(codec, size, _compress(codec, joined), speed)


def _compress(codec: Codec, bodies: list[bytes]) -> int:
    return sum(len(compress(codec, body)) + BATCH_HEADER_SIZE for body in bodies)


def _join(bodies: list[bytes]) -> list[bytes]:
    """Return bodies joined up to the default `batch.size`."""
    joined: list[bytes] = []
    for body in bodies:
        if joined and len(joined[-1]) + len(body) <= BATCH_SIZE:
            joined[-1] += body
        else:
            joined.append(body)
    return joined


def _bodies(partition: PartitionLog) -> Iterator[tuple[bytes, int]]:
    """Yield bodies of batches of data, and the batches' sizes."""
    filled = [segment for segment in partition.segments if segment.size]
    step = max(len(filled) / _SEGMENTS, 1.0)
    chosen = [filled[int(place * step)] for place in range(min(len(filled), _SEGMENTS))]
    for segment in chosen:
        left = SAMPLE_SIZE // len(chosen)
        with suppress(FileError):
            for body, size in _of_segment(segment):
                if len(body) > left:
                    break
                left -= len(body)
                yield body, size


def _of_segment(segment: SegmentFiles) -> Iterator[tuple[bytes, int]]:
    with segment.open_log() as log_file:
        for piece in with_bodies(log_file.runs(), log_file.stored_size):
            if not isinstance(piece, Damage):
                yield from _of_slice(piece)


def _of_slice(piece: Slice) -> Iterator[tuple[bytes, int]]:
    run = piece.run
    for row in range(piece.first, piece.last):
        start, size, is_valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
        header = parse_header(run.buffer, start, run.position + start, bool(is_valid))
        if not is_valid or header.is_legacy or header.is_control:
            continue
        if header.codec == Codec.NONE:
            yield bytes(run.buffer[start + BATCH_HEADER_SIZE : start + size]), size
        elif piece.bodies is not None and (body := piece.bodies[row - piece.first]) is not None:
            yield body, size


MOST_TOPIC_KEYS = 512


class Choices(NamedTuple):
    """The requested contents of a report.

    now: the time used as now. days: length of the forecast of retention. shows_keys: hot keys unchanged; redact_key:
    key of their substitutes, None for numbers. times_codecs: measure the speed of codecs. price: per GiB of disk and
    month, None without; replicas: number of copies of each partition.
    """

    now: Now
    zone: tzinfo = UTC
    is_quick: bool = False
    days: int = 14
    shows_keys: bool = False
    redact_key: bytes | None = None
    times_codecs: bool = False
    price: float | None = None
    replicas: int = 1

    @property
    def now_ms(self) -> int:
        """The time used as now, in milliseconds since 1970."""
        return self.now.ms


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The facts about a partition directory.

    status: the role of the directory for its partition. files: by kind. records: data records, batches: without control
    batches. retained: each segment with its end. last_time: the largest plausible timestamp, -1 for none. superseded:
    None if records weren't read. own: the topic's own settings. local_start_offset: None without a remote tier.
    """

    topic: str
    name: str
    path: Path
    log_dir: Path
    partition: PartitionLog
    status: CopyStatus
    files: dict[str, FileSizes]
    size: int
    records: int
    batches: int
    last_time: int
    log_start_offset: int
    local_start_offset: int | None
    log_end_offset: int
    leader_epoch: int | None
    retention: RetentionSettings
    time_source: SettingSource
    retained: tuple[Retained, ...]
    cleaning: Cleaning | None
    superseded: SupersededRecords | None
    suspects: tuple[SuspectTimes, ...]
    own: dict[str, str]

    @property
    def is_in_use(self) -> bool:
        """True if a broker uses it."""
        return self.status in (CopyStatus.CURRENT, CopyStatus.DUPLICATE)

    @property
    def segments(self) -> Iterator[SegmentListing]:
        """The listings of its segments."""
        return (each.segment for each in self.retained)

    @property
    def disk_size(self) -> int:
        """Bytes of disk allocated for all its files."""
        return sum(each.allocated for each in self.files.values())


class PlacedRecord(NamedTuple):
    """A large record, and its partition."""

    record: LargeRecord
    partition: PartitionFacts


class PlacedKey(NamedTuple):
    """A key with many records, and the partition that contains most of them."""

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
    def first(self) -> PartitionFacts:
        """The partition whose settings represent the topic; the choice doesn't depend on the order of paths."""
        return min(self.partitions, key=lambda each: each.path)

    @property
    def size(self) -> int:
        """Bytes of its logs."""
        return sum(each.size for each in self.partitions)

    @property
    def disk_size(self) -> int:
        """Bytes of disk allocated for all its files."""
        return sum(each.disk_size for each in self.partitions)

    def add(self, partition: PartitionFacts, sums: Sums | None) -> None:
        """Add a partition."""
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


class ReportFacts:
    """All gathered facts.

    partitions: those in use and others. topics: by name, of those in use. all: sums of all of these. check_up: the
    doctor's findings. cluster: its metadata, groups: those of `__consumer_offsets`; None if they weren't read. samples:
    of topics, compressed by each codec. replicas: the directories used for each partition.
    """

    def __init__(self, choices: Choices, replicas: Iterable[PartitionReplicas[PartitionLog]]) -> None:
        """Take the choices, and the cluster's directories, including those that aren't chosen."""
        self.choices = choices
        self._replicas = tuple(replicas)
        copies = (copy for each in self._replicas for copy in (*each.copies, *each.set_aside))
        self._statuses = {copy.place.path.absolute(): copy.status for copy in copies}
        self.partitions: list[PartitionFacts] = []
        self.topics: dict[str, TopicFacts] = {}
        self.all = Sums()
        self.check_up = CheckUp((), (), (), 0, 0, 0, choices.is_quick, choices.now)
        self.cluster: ClusterMetadata | None = None
        self.groups: tuple[Group, ...] | None = None
        self.samples: dict[str, Sample] = {}
        self._by_path: dict[Path, PartitionFacts] = {}

    def take(self, found: PartitionSurvey) -> None:
        """Add a partition."""
        facts = self._facts(found)
        if facts is None:
            return
        self.partitions.append(facts)
        if facts.is_in_use:
            self.topics.setdefault(facts.topic, TopicFacts(facts.topic)).add(facts, found.sums)
            if found.sums is not None:
                self.all.add(found.sums)

    def _facts(self, found: PartitionSurvey) -> PartitionFacts | None:
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
            status=self._statuses.get(partition.path.absolute(), CopyStatus.CURRENT),
            files=found.files,
            size=listing.size,
            records=0 if sums is None else sums["records"],
            batches=0 if sums is None else sums["batches"],
            last_time=-1 if sums is None else sums.largest_timestamp,
            log_start_offset=listing.log_start_offset,
            local_start_offset=listing.tier and listing.tier.local_start_offset,
            log_end_offset=listing.log_end_offset,
            leader_epoch=listing.leader_epoch,
            retention=found.examined.retention,
            time_source=found.examined.time_source,
            retained=tuple(retained_of(listing, found.examined.retention)),
            cleaning=listing.cleaning,
            superseded=found.superseded,
            suspects=found.examined.suspects,
            own=found.own,
        )

    def facts_of(self, path: Path) -> PartitionFacts | None:
        """Return the facts about a directory, or None if it isn't in the report."""
        if len(self._by_path) != len(self.partitions):
            self._by_path = {each.path.absolute(): each for each in self.partitions}
        return self._by_path.get(path.absolute())

    @cached_property
    def replicas(self) -> list[PartitionReplicas[PartitionLog]]:
        """The directories used for each partition of the report."""
        return [
            each
            for each in self._replicas
            if any(self.facts_of(copy.place.path) for copy in (*each.copies, *each.set_aside))
        ]

    def answering(self, topic: TopicFacts) -> list[PartitionFacts]:
        """Return one copy of every partition of a topic."""
        found = [self._first_copy(each) for each in self.replicas if each.topic == topic.name]
        return [facts for facts in found if facts is not None]

    def _first_copy(self, replicas: PartitionReplicas[PartitionLog]) -> PartitionFacts | None:
        known = (self.facts_of(copy.place.path) for copy in replicas.copies)
        return next((facts for facts in known if facts is not None and facts.is_in_use), None)

    @property
    def in_use(self) -> list[PartitionFacts]:
        """The partitions in use."""
        return [each for each in self.partitions if each.is_in_use]

    @property
    def not_in_use(self) -> list[PartitionFacts]:
        """Directories that no broker uses: stray, stale, or being moved or deleted."""
        return [each for each in self.partitions if not each.is_in_use]

    @property
    def by_size(self) -> list[TopicFacts]:
        """Topics, largest first."""
        return sorted(self.topics.values(), key=lambda topic: (-topic.size, topic.name))

    @property
    def log_dirs(self) -> list[Path]:
        """Directories that contain at least one partition."""
        return list(dict.fromkeys(each.log_dir for each in self.partitions))


def _parent(partition: PartitionLog) -> Path:
    """Return the directory that contains a partition, as it was given."""
    path = partition.path
    return path.parent if path.name not in ("", "..") else partition.log_dir
