"""Listings of segments and partitions for `kseg ls`: from a quick look, or from every header."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from kseg import kernel
from kseg.codecs.bodies import decompress
from kseg.codecs.limits import DEFAULT_LIMIT
from kseg.errors import FileError, KsegError, OpenError, plural
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    DELETE_HORIZON_MASK,
    NO_TIMESTAMP,
    TAIL_KINDS,
    UNLIMITED,
    Codec,
    DamageKind,
    wrapper_value,
)
from kseg.formats.file_names import parse_file_name
from kseg.formats.header_fields import TRANSACTION_INDEX_ENTRY_FIELDS
from kseg.formats.messages import parse_message
from kseg.formats.schemas import message_schema
from kseg.index.entries import TimeIndex
from kseg.index.header_scan import events, first_header, header_runs, is_intact
from kseg.index.producers import ProducerState
from kseg.kernel.fold_contract import Event
from kseg.log.cleaner import Cleaning, CleaningSettings, cleaned_by_ms, cleaning_of, cleaning_offsets, dirty_segment
from kseg.log.lineage import UNKNOWN, latest_epoch
from kseg.log.partition import (
    COMPACTED_TOPICS,
    LEADER_EPOCH_CHECKPOINT,
    METADATA_TOPIC,
    PARTITION_METADATA,
    PartitionEnd,
    PartitionLog,
    RemoteTier,
)
from kseg.log.segment_listing import (
    OK,
    SegmentListing,
    TierSums,
    listing_by_manifest,
    retained_segments,
    tier_facts,
    tier_sums,
    unused_listings,
)
from kseg.log.segments import (
    ClosedSegment,
    FoundFile,
    IndexEnd,
    NextAppend,
    RetainedSegment,
    Retention,
    RetentionSettings,
    RollReason,
    RollSettings,
    SegmentFiles,
    Tail,
    read_index_end,
    retention_of,
    tail_of,
    why_rolled,
)
from kseg.reading.batch import Batch, BatchHeader, scan_log
from kseg.reading.blocks import TRUSTED_SIZE, Damage
from kseg.reading.bodies import BodyBounds
from kseg.reading.log_file import LogFile
from kseg.system.page_cache import cached_size

METADATA_RETENTION_BYTES = 100 << 20
"""`metadata.max.retention.bytes`."""
METADATA_RETENTION_MS = 604_800_000
"""`metadata.max.retention.ms`."""


class _Snapshot(NamedTuple):
    """A snapshot: its end offset, its bytes, and the timestamp of its last record, or None if it can't be read."""

    end_offset: int
    size: int
    timestamp: int | None


def metadata_log_start(
    partition: PartitionLog, segments: Sequence[RetainedSegment], log_start_offset: int, now_ms: int
) -> int:
    """Return the log start offset of `__cluster_metadata` after a pass of its broker, by Kafka's default settings.

    Deletes a snapshot, and the log before the next one, while snapshots and log together are too large, or the
    snapshot is too old; the newest one stays.
    """
    cleaning = _SnapshotCleaning(_snapshots(partition), list(segments), log_start_offset)
    cleaning.clean(lambda _: cleaning.size > METADATA_RETENTION_BYTES)
    cleaning.clean(lambda each: each.timestamp is not None and now_ms - each.timestamp > METADATA_RETENTION_MS)
    return cleaning.log_start_offset


class _SnapshotCleaning:
    def __init__(self, snapshots: list[_Snapshot], segments: list[RetainedSegment], log_start_offset: int) -> None:
        self._snapshots = snapshots
        self._segments = segments
        self.log_start_offset = log_start_offset

    @property
    def size(self) -> int:
        """Bytes of the remaining snapshots and segments."""
        return sum(each.size for each in self._snapshots) + sum(each.size for each in self._segments)

    def clean(self, is_to_go: Callable[[_Snapshot], bool]) -> None:
        """Delete the oldest snapshots while this is true for them."""
        while len(self._snapshots) > 1 and is_to_go(self._snapshots[0]):
            following = self._snapshots[1]
            if following.end_offset <= self.log_start_offset:
                return
            del self._snapshots[0]
            self.log_start_offset = following.end_offset
            while len(self._segments) > 1 and self._segments[0].end_offset <= self.log_start_offset:
                del self._segments[0]


def _snapshots(partition: PartitionLog) -> list[_Snapshot]:
    found = []
    for file in partition.metadata_snapshots:
        end_offset = parse_file_name(file.path).base_offset
        if end_offset is not None:
            found.append(_Snapshot(end_offset, file.size, _timestamp(file)))
    return sorted(found, key=lambda each: each.end_offset)


def _timestamp(file: FoundFile) -> int | None:
    """Return the timestamp of the last record in a snapshot, from its header."""
    try:
        with LogFile(file.path) as log_file:
            first = next((item for item in scan_log(log_file) if isinstance(item, Batch)), None)
            record = None if first is None else next(first.records(), None)
        if record is None or record.value is None:
            return None
        return int(
            parse_message(message_schema("SnapshotHeaderRecord"), 0, record.value).value["lastContainedLogTimestamp"]
        )
    except FileError:
        return None


@dataclass(frozen=True, slots=True)
class PartitionListing:
    """A partition's line, and its segments' lines.

    problems: files that can't be read, in words. Values that neither the log directory nor the partition's small files
    have are None. tier: the remote tier, if it has one; then the log may start below the first segment. cleaning: the
    cleaner's next step, None if it doesn't clean the topic. cleaned_by_ms: the time of the cleaner's checkpoint; since
    then the cleaner has cleaned no partition of this log directory. tier_sums: sums of segments that were read from a
    remote tier; unused: stored segments that the log doesn't have. topic_id_source: the evidence for the topic's id:
    `partition.metadata` or, if the cluster was asked, its answer. cluster_id: of its log directory, None if unknown.
    """

    partition: PartitionLog
    segments: tuple[SegmentListing, ...]
    log_end_offset: int
    topic_id: str | None = None
    topic_id_source: str | None = None
    cluster_id: str | None = None
    leader_epoch: int | None = None
    problems: tuple[str, ...] = ()
    tier: RemoteTier | None = None
    cleaning: Cleaning | None = None
    cleaned_by_ms: int | None = None
    tier_sums: TierSums | None = None
    unused: tuple[SegmentListing, ...] = ()

    @property
    def name(self) -> str:
        """The directory name."""
        return self.partition.path.absolute().name

    @property
    def log_start_offset(self) -> int:
        """The first readable offset, in the remote tier if it exists."""
        return self.partition.log_start_offset(self.tier)

    @property
    def topic(self) -> str:
        """The topic; the directory name if that isn't a partition's."""
        return self.partition.topic or self.name

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(segment.size for segment in self.segments)

    @property
    def last_offset(self) -> int | None:
        """The last offset, or None if it doesn't exist."""
        return self.log_end_offset - 1 if self.log_end_offset > self.log_start_offset else None

    @property
    def segments_to_delete(self) -> list[SegmentListing]:
        """The segments that retention would delete."""
        return [each for each in self.segments if each.retention is not None and each.retention.is_deletion]

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of all segments, -1 if there is none."""
        return max((segment.largest_timestamp for segment in self.segments), default=NO_TIMESTAMP)

    @property
    def records(self) -> int | None:
        """Records of all segments, or None if the headers weren't read."""
        counts = [segment.records for segment in self.segments]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def selected_records(self) -> int | None:
        """Selected records of all segments, or None if there is no selection."""
        if not self.segments or self.segments[0].selected is None:
            return None
        return sum(segment.selected.records for segment in self.segments if segment.selected is not None)


@dataclass(frozen=True, slots=True)
class ListingSettings:
    """The depth of a listing (every header or a quick look), and the topics' settings.

    cleaning: None for a topic that isn't compacted. is_in_use: a broker would delete segments there. cache: measure
    the logs' share in the page cache. keep_cache: leave there what kseg reads.
    """

    retention: RetentionSettings
    roll: RollSettings = field(default_factory=RollSettings)
    deep: bool = False
    cache: bool = False
    keep_cache: bool = True
    cleaning: CleaningSettings | None = None
    is_in_use: bool = True


def list_partition(
    partition: PartitionLog, settings: ListingSettings, on_read: Callable[[int], None] | None = None
) -> PartitionListing:
    """Return a partition's listing; its problems name segments that vanish or can't be opened.

    `on_read` is called with the size of each log that was read.
    """
    problems: list[str] = []
    listed: list[_ListedSegment] = []
    for found in _segments(partition, settings, problems):
        listed.append(found)
        if on_read is not None:
            on_read(found.row.size)
    rows = [each.row for each in listed]
    if settings.deep and any(row.producer_ids for row in rows):
        rows = _with_open_transactions(partition, rows, problems)
    if rows and rows[-1].damage is not None and rows[-1].damage.kind in TAIL_KINDS:
        rows[-1] = rows[-1]._replace(damage=None)
    end = _log_end(partition, listed)
    firsts = [each.first for each in listed]
    rolled = [
        _why_rolled(row, first, following, settings.roll)
        for row, (first, following) in zip(rows, pairwise(firsts), strict=False)
    ]
    rows = [row._replace(rolled=reason) for row, reason in zip(rows, (*rolled, RollReason.ACTIVE), strict=False)]
    if settings.is_in_use and partition.state is None and partition.topic not in COMPACTED_TOPICS:
        rows = _with_retention(partition, rows, settings.retention, end.offset)
    cleaning = None
    if settings.cleaning is not None:
        dirty = [dirty_segment(row, first) for row, first in zip(rows, firsts, strict=True)]
        cleaning = cleaning_of(dirty, cleaning_offsets(partition, rows, end.offset), settings.cleaning)
    topic_id = _topic_id(partition, problems)
    return PartitionListing(
        partition=partition,
        segments=tuple(rows),
        log_end_offset=end.offset,
        topic_id=topic_id,
        topic_id_source=None if topic_id is None else PARTITION_METADATA,
        leader_epoch=_leader_epoch(partition, end, problems),
        problems=tuple(problems),
        cleaning=cleaning,
        cleaned_by_ms=None if cleaning is None else cleaned_by_ms(partition),
        tier_sums=tier_sums(partition),
        unused=unused_listings(partition),
    )


class _ListedSegment(NamedTuple):
    """A segment's line, and the headers of its first and last batch; is_read: they were looked for."""

    row: SegmentListing
    first: BatchHeader | None = None
    last: BatchHeader | None = None
    is_read: bool = True


def _segments(partition: PartitionLog, settings: ListingSettings, problems: list[str]) -> Iterator[_ListedSegment]:
    cached = {each.base_offset: cached_size(each.path) for each in partition.segments} if settings.cache else {}
    for segment in partition.segments:
        by_manifest = listing_by_manifest(partition, segment, is_deep=settings.deep)
        if by_manifest is not None:
            yield _ListedSegment(by_manifest, is_read=False)
            continue
        try:
            index = read_index_end(segment)
            with segment.open_log(keep_cache=settings.keep_cache) as log_file:
                tail = tail_of(log_file, index)
                first = first_header(log_file) if tail.first_position else tail.first
            row = _glance(segment, index, tail, first, has_time_indexes=partition.has_time_indexes)
            row = row._replace(tier=tier_facts(partition, segment.base_offset))
            if tail.damage is not None and tail.damage.kind is DamageKind.UNREADABLE:
                problems.append(f"{segment.path}: at position {tail.damage.position}: {tail.damage.detail}")
            if settings.deep:
                row = _read_headers(segment, row, keep_cache=settings.keep_cache)
        except OpenError as error:
            problems.append(str(error))
            continue
        row = row if not cached else row._replace(cached_size=cached.get(segment.base_offset))
        yield _ListedSegment(row, first, tail.last)


def _glance(
    segment: SegmentFiles, index: IndexEnd, tail: Tail, first: BatchHeader | None, *, has_time_indexes: bool
) -> SegmentListing:
    """Return the line that names, sizes, indexes, and the first and last batches give."""
    health = [tail.index_problem] if tail.index_problem else []
    _judge_index(segment, index, health)
    time_entries, largest = _time_entries(segment, health, is_expected=has_time_indexes)
    ends = [header for header in (first, tail.last) if header is not None]
    aborted = 0 if segment.transaction_index is None else segment.transaction_index.size
    return SegmentListing(
        segment.base_offset,
        segment.size,
        last_offset=None if tail.last is None else tail.last.last_offset,
        first_timestamp=NO_TIMESTAMP if first is None else _first_timestamp(first),
        largest_timestamp=max(largest, tail.max_timestamp, *(header.max_timestamp for header in ends), NO_TIMESTAMP),
        modified_ms=NO_TIMESTAMP if segment.log is None else segment.log.modified_ms,
        codecs=tuple(sorted({header.codec for header in ends})),
        magics=tuple(sorted({header.magic for header in ends})),
        index_entries=index.entries,
        time_index_entries=time_entries,
        index_health="; ".join(health) or OK,
        aborted_transactions=aborted // TRANSACTION_INDEX_ENTRY_FIELDS.struct.size,
        damage=tail.damage,
    )


def _first_timestamp(first: BatchHeader) -> int:
    """Return the first batch's base timestamp (a v0 or v1 entry's own); the largest if the base has another meaning."""
    has_own_base = first.magic >= 2 and not first.attributes & DELETE_HORIZON_MASK and not first.is_log_append_time
    return first.base_timestamp if has_own_base and first.base_timestamp >= 0 else first.max_timestamp


def _judge_index(segment: SegmentFiles, index: IndexEnd, health: list[str]) -> None:
    if segment.offset_index is None:
        if segment.size:
            health.append("no index")
    elif index.error is not None:
        health.append(index.error.message)
    elif index.has_trailing:
        health.append(f"index of {plural(index.size, 'byte')}")


def _time_entries(segment: SegmentFiles, health: list[str], *, is_expected: bool) -> tuple[int, int]:
    """Return the number of entries of the time index, and its last timestamp."""
    if segment.time_index is None:
        if segment.size and is_expected:
            health.append("no time index")
        return 0, NO_TIMESTAMP
    try:
        with TimeIndex(segment.time_index.full_name, segment.base_offset) as index:
            if index.trailing:
                health.append(f"time index of {plural(index.size, 'byte')}")
            return index.count, index.last_entry().timestamp
    except OpenError as error:
        health.append(error.message)
        return 0, NO_TIMESTAMP


def _with_open_transactions(
    partition: PartitionLog, rows: Sequence[SegmentListing], problems: list[str]
) -> list[SegmentListing]:
    """Return the lines with the number of open transactions at their segments' ends."""
    from kseg.log.committed import open_at_ends  # a quick look doesn't need it

    try:
        opened = open_at_ends(partition)
    except OpenError as error:
        problems.append(str(error))
        return list(rows)
    counts = dict(zip(partition.base_offsets, opened.counts, strict=True))
    rows = [row._replace(open_transactions=counts[row.base_offset]) for row in rows]
    return [*rows[:-1], rows[-1]._replace(first_open_offset=opened.first_offset)]


def _read_headers(segment: SegmentFiles, row: SegmentListing, *, keep_cache: bool) -> SegmentListing:
    """Complete a line from every header; compressed bodies are read for their ratio, and wrappers for their count."""
    stops = corrections = stored = whole = 0
    damage = row.damage
    magics, producer_ids, in_segment = set[int](), set[int](), kernel.load().ProducerTable()
    fold = kernel.load().HeaderFold(Event.PRODUCER | Event.COMPRESSED, in_segment)
    with segment.open_log(keep_cache=keep_cache) as log_file:
        bounds = BodyBounds(log_file.stored_size, DEFAULT_LIMIT)
        for item in header_runs(log_file):
            if isinstance(item, Damage) and (damage is None or item.position < damage.position):
                damage = item
            for header, _ in () if isinstance(item, Damage) else events(fold, item):
                stops += 1
                magics.add(header.magic)
                if header.producer_id >= 0:
                    producer_ids.add(header.producer_id)
                    in_segment.put(ProducerState(header.producer_id, header.producer_epoch, current_txn_first_offset=0))
                if header.codec != Codec.NONE:
                    count, compressed_size, size = _measure_compressed(log_file, header, bounds)
                    corrections += count - (header.records_count or 0)
                    stored, whole = stored + compressed_size, whole + size
    if fold.batches > stops:
        magics.add(2)
    return row._replace(
        records=fold.records + corrections,
        batches=fold.batches,
        codecs=tuple(codec for codec in range(CODEC_MASK + 1) if fold.codecs >> codec & 1),
        magics=tuple(sorted(magics)),
        largest_timestamp=fold.max_timestamp,
        ratio=whole / stored if stored else None,
        producer_ids=tuple(sorted(producer_ids)),
        open_transactions=0,
        damage=damage,
    )


def _measure_compressed(log_file: LogFile, header: BatchHeader, bounds: BodyBounds) -> tuple[int, int, int]:
    """Return records, stored bytes and decompressed bytes of a compressed batch.

    If it is damaged, nothing is decompressed.
    """
    if header.size > TRUSTED_SIZE and not is_intact(log_file, header):
        return 0, 0, 0
    raw = log_file.read(header.position, header.size)
    compressed = raw[BATCH_HEADER_SIZE:] if header.magic >= 2 else wrapper_value(memoryview(raw))
    if compressed is None:
        return 0, 0, 0
    body = decompress(header.codec, header.magic, memoryview(compressed), bounds.limit, bounds.free)
    bounds.note(0 if body.failure is None else len(body.data))
    count = header.records_count
    if count is None:
        count = Batch.parse(raw, header.position, is_valid=True).count
    return count, len(compressed), len(body.data)


def _why_rolled(
    row: SegmentListing, first: BatchHeader | None, next_first: BatchHeader | None, settings: RollSettings
) -> RollReason:
    waited_from = NO_TIMESTAMP if first is None else first.max_timestamp
    closed = ClosedSegment(row.base_offset, row.size, waited_from, row.index_entries, row.time_index_entries)
    append = (
        None if next_first is None else NextAppend(next_first.size, next_first.last_offset, next_first.max_timestamp)
    )
    return why_rolled(closed, append, settings)


def _with_retention(
    partition: PartitionLog,
    rows: list[SegmentListing],
    settings: RetentionSettings,
    end: int,
) -> list[SegmentListing]:
    decisions = _decisions(partition, retained_segments(rows, end), settings)
    return [row._replace(retention=decision) for row, decision in zip(rows, decisions, strict=True)]


def _decisions(
    partition: PartitionLog, retained: list[RetainedSegment], settings: RetentionSettings
) -> list[Retention]:
    start = partition.log_start_offset()
    high_watermark = partition.checkpoints().high_watermark
    if partition.topic != METADATA_TOPIC and not settings.is_policy_unknown:
        return retention_of(retained, settings, start, high_watermark)
    unlimited = replace(settings, retention_ms=UNLIMITED, retention_bytes=UNLIMITED)
    if partition.topic == METADATA_TOPIC:
        start = metadata_log_start(partition, retained, start, settings.now_ms)
        return retention_of(retained, unlimited, start)
    below_start = retention_of(retained, unlimited, start, high_watermark)
    return [each if each.is_deletion else Retention.COMPACTED for each in below_start]


def _log_end(partition: PartitionLog, listed: Sequence[_ListedSegment]) -> PartitionEnd:
    """Return the log's end like `PartitionLog.read_end`; by the listed segments, if that can't be read any more."""
    try:
        return partition.read_end({each.row.base_offset: each.last for each in listed if each.is_read})
    except FileError:
        return PartitionEnd(listed[-1].row.base_offset if listed else 0, None)


def _topic_id(partition: PartitionLog, problems: list[str]) -> str | None:
    try:
        return partition.read_topic_id()
    except FileError as error:
        problems.append(f"{partition.path / PARTITION_METADATA}: {error.message}")
        return None


def _leader_epoch(partition: PartitionLog, end: PartitionEnd, problems: list[str]) -> int | None:
    unread: list[KsegError] = []
    epoch = latest_epoch(partition, end, unread)
    problems += (f"{partition.path / LEADER_EPOCH_CHECKPOINT}: {error.message}" for error in unread)
    return None if epoch == UNKNOWN else epoch
