"""`slice`: copies complete batches of a partition unchanged; can omit single records."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from kseg.errors import DamagedError
from kseg.formats.codes import NO_TIMESTAMP, DamageKind
from kseg.index.header_scan import walk_headers
from kseg.index.producers import EndMarker, ProducerStates, read_end_marker
from kseg.log.partition import PARTITION_METADATA, PartitionLog
from kseg.log.segments import RollReason, SegmentFiles
from kseg.log.side_files import partition_metadata, states_at
from kseg.log.writer import NEVER, PartitionSettings, PartitionWriter, WrittenSegment
from kseg.reading.batch import Batch, BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.writer.cleaned import without_records


@dataclass(frozen=True, slots=True)
class SliceSettings:
    """The range of offsets and timestamps to keep. The upper bounds are exclusive.

    Timestamps are milliseconds; None: no bound. A marker has its broker's time, which is unrelated to the producer's:
    with bounds of time, markers that end transactions of the piece are kept. drop_offsets, drop_keys: records to omit;
    their batches are rewritten, all others stay the same.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    drop_offsets: frozenset[int] = frozenset()
    drop_keys: frozenset[bytes] = frozenset()


@dataclass(slots=True)
class Sliced:
    """The result: segments, copied batches, rebuilt batches, and records omitted from these.

    missed_offsets, missed_keys: requested omissions that no record had. open_transactions: first offsets by producer id
    of transactions whose markers are beyond the piece, or missing in the log. holes: offsets between copied batches, of
    batches without the requested timestamps, since records aren't in the order of their times.
    """

    segments: list[WrittenSegment] = field(default_factory=list)
    copied: int = 0
    rebuilt: int = 0
    dropped: int = 0
    missed_offsets: set[int] = field(default_factory=set)
    missed_keys: set[bytes] = field(default_factory=set)
    open_transactions: dict[int, int] = field(default_factory=dict)
    holes: list[range] = field(default_factory=list)

    @property
    def has_missed(self) -> bool:
        """True if some of the records to omit weren't found."""
        return bool(self.missed_offsets or self.missed_keys)


def slice_partition(
    partition: PartitionLog, directory: Path, settings: SliceSettings, topic_id: str | None = None
) -> Sliced:
    """Write a part of a partition into an existing directory; offsets stay.

    Leader epochs and producers come from the batches; topic_id: the topic's, for a partition that has lost it.

    Reads only headers, and batches that may have records to drop; copies all others inside the kernel.

    Raises:
        DamagedError: if a needed log is damaged; `salvage` can read it.
        OSError: if the system can't read or write.
    """
    work = _Slice(partition, directory, settings)
    with ExitStack() as files:
        for segment in _select_segments(partition, settings):
            work.take_segment(files.enter_context(segment.open_log()), segment)
        work.finish()
    content = partition_metadata(partition, topic_id)
    if content is not None and work.sliced.segments:
        (directory / PARTITION_METADATA).write_bytes(content)
    return work.sliced


def _select_segments(partition: PartitionLog, settings: SliceSettings) -> list[SegmentFiles]:
    """Return the segments that can have the requested offsets."""
    segments = list(partition.segments)
    if settings.to_offset is not None:
        segments = [segment for segment in segments if segment.base_offset < settings.to_offset]
    if settings.from_offset is not None:
        first = partition.floor_slot(settings.from_offset)
        segments = segments[first or 0 :]
    return segments


class _Slice:
    """Writes the new partition."""

    def __init__(self, partition: PartitionLog, directory: Path, settings: SliceSettings) -> None:
        self.sliced = Sliced(missed_offsets=set(settings.drop_offsets), missed_keys=set(settings.drop_keys))
        self._partition = partition
        self._directory = directory
        self._settings = settings
        self._states: ProducerStates | None = None
        self._writer: PartitionWriter | None = None
        self._passed: range | None = None
        """Offsets of left out batches since the last copied one."""

    def take_segment(self, log_file: LogFile, segment: SegmentFiles) -> None:
        """Copy the wanted part of a segment. Raises DamagedError at damage."""
        if self._states is None:
            self._states = states_at(self._partition, segment.base_offset)
        is_new = True
        next_offset = segment.base_offset
        for item in walk_headers(log_file):
            if isinstance(item, Damage):
                _refuse(item, log_file)
                break
            first = next_offset if item.base_offset is None else item.base_offset
            marker = _marker(log_file, item)
            if not self._is_wanted(item, first, marker):
                if self._writer is None:
                    self._states.add(item, marker)
                elif not item.is_control:
                    self._passed = range(first if self._passed is None else self._passed.start, item.last_offset + 1)
            else:
                if self._passed is not None and not item.is_control:
                    self.sliced.holes.append(self._passed)
                    self._passed = None
                if is_new:
                    self._begin_segment(segment.base_offset if item.position == 0 else first)
                    is_new = False
                self._check_rises(log_file, item, first)
                raw = self._with_dropped(log_file, item, first)
                self._take_batch(raw, log_file, item, marker)
            next_offset = item.last_offset + 1

    def _check_rises(self, log_file: LogFile, header: BatchHeader, first_offset: int) -> None:
        assert self._writer is not None
        if first_offset < self._writer.next_offset:
            detail = f"offset {first_offset} doesn't increase; run `kseg salvage` to put batches in order"
            raise DamagedError(detail, log_file.path, header.position)

    def _begin_segment(self, base_offset: int) -> None:
        if self._writer is None:
            settings = PartitionSettings(roll=NEVER)
            self._writer = PartitionWriter(self._directory, base_offset, settings, self._states)
        else:
            self._writer.roll(RollReason.UNKNOWN, base_offset)

    def _is_wanted(self, header: BatchHeader, first_offset: int, marker: EndMarker | None) -> bool:
        wanted = self._settings
        has_times = wanted.from_ms is not None or wanted.to_ms is not None
        if wanted.from_offset is not None and header.last_offset < wanted.from_offset:
            return False
        if wanted.to_offset is not None and first_offset >= wanted.to_offset:
            return False
        if marker is not None and has_times:
            assert self._states is not None
            return self._writer is not None and header.producer_id in self._states.open_transactions
        if wanted.from_ms is not None and header.max_timestamp < wanted.from_ms:
            return False
        return wanted.to_ms is None or _first_timestamp(header) < wanted.to_ms

    def _take_batch(self, raw: bytes | None, log_file: LogFile, header: BatchHeader, marker: EndMarker | None) -> None:
        """Add a batch's new bytes or, if there are none, those in the file."""
        assert self._writer is not None
        if raw is None:
            self._writer.copy(log_file, header, marker)
            self.sliced.copied += 1
        elif raw:
            self._writer.append(raw)
            self.sliced.rebuilt += 1

    def _with_dropped(self, log_file: LogFile, header: BatchHeader, first_offset: int) -> bytes | None:
        """Return the batch without the records to drop, empty if all are dropped, or None if it stays the same."""
        offsets, keys = self._settings.drop_offsets, self._settings.drop_keys
        if not offsets and not keys:
            return None
        has_offset = any(first_offset <= offset <= header.last_offset for offset in offsets)
        if header.is_control or not (keys or has_offset):
            return None
        batch = Batch.parse(log_file.read(header.position, header.size), header.position, is_valid=True)
        records = batch.records(on_damage=lambda damage: _refuse(damage, log_file))
        dropped = {record.offset: record.key for record in records if record.offset in offsets or record.key in keys}
        if not dropped:
            return None
        self.sliced.missed_offsets.difference_update(dropped)
        self.sliced.missed_keys.difference_update(key for key in dropped.values() if key is not None)
        self.sliced.dropped += len(dropped)
        return without_records(batch, set(dropped))

    def finish(self) -> None:
        """Close the last segment."""
        if self._writer is not None:
            self._writer.close()
            self.sliced.segments = self._writer.segments
            self.sliced.open_transactions = dict(self._writer.states.open_transactions)


def _refuse(damage: Damage, log_file: LogFile) -> None:
    if damage.kind is not DamageKind.ZERO_TAIL:
        raise DamagedError(
            f"{damage.detail}; run `kseg salvage` to keep the intact batches", log_file.path, damage.position
        )


def _marker(log_file: LogFile, header: BatchHeader) -> EndMarker | None:
    if not header.is_control or header.producer_id < 0:
        return None
    return read_end_marker(log_file, header)


def _first_timestamp(header: BatchHeader) -> int:
    """Return the first record timestamp if the header has it; otherwise the batch's largest."""
    is_base = header.magic >= 2 and not header.is_log_append_time and header.base_timestamp > NO_TIMESTAMP
    return header.base_timestamp if is_base else header.max_timestamp
