"""Compaction into a new directory, like the log cleaner's, and a copy without segments that retention would delete."""

import os
import shutil
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kseg.errors import DamagedError, FileError, KsegError, plural
from kseg.index.header_scan import end_of, events
from kseg.index.producers import ProducerStates, build_producer_snapshot, parse_end_marker
from kseg.index.rebuild import IndexBuilder
from kseg.log.cleaner import CompactSettings
from kseg.log.committed import read_committed
from kseg.log.compaction_plan import (
    Aborted,
    BatchCleaner,
    CleanedTransactions,
    CleaningPlan,
    OffsetMap,
    RemovalReason,
    TombstoneRetention,
    group_segments,
    intact_slices,
    plan_compaction,
    refuse,
    stretches,
)
from kseg.log.listing import ListingSettings, PartitionListing, list_partition
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.segment_listing import SegmentListing
from kseg.log.segments import FoundFile, Retention, RetentionSettings, SegmentFiles
from kseg.log.side_files import rebuilt_side_files, states_at
from kseg.reading.batch import BatchHeader, batch_of
from kseg.reading.bodies import Slice
from kseg.reading.log_file import Run
from kseg.store.target import Paths, new_directory
from kseg.system.new_directory import copy_file, scratch_directory


class CleanedSegment(NamedTuple):
    """A segment after cleaning: its base offset, the bytes of its log, and the base offsets of its source segments."""

    base_offset: int
    size: int
    sources: tuple[int, ...]


@dataclass(slots=True)
class Compacted:
    """The result of cleaning: records and bytes of the cleaned segments, before and after.

    plan: the cleaned range. segments: after cleaning. passes: number of times that the offset map was filled. kept:
    records that stay. gone: removed records, by reason. emptied: batches that stay without records. notes: notes for
    the user.
    """

    plan: CleaningPlan
    segments: list[CleanedSegment] = field(default_factory=list)
    passes: int = 0
    kept: int = 0
    gone: Counter[RemovalReason] = field(default_factory=Counter)
    emptied: int = 0
    bytes_before: int = 0
    bytes_left_alone: int = 0
    notes: tuple[str, ...] = ()

    @property
    def record_count(self) -> int:
        """Records before cleaning, in the segments that are cleaned."""
        return self.kept + self.gone.total()

    @property
    def bytes_after(self) -> int:
        """Bytes of these segments after cleaning."""
        return sum(segment.size for segment in self.segments)


def compact_partition(
    partition: PartitionLog, settings: CompactSettings, directory: Path | None = None, *, topic_id: str | None = None
) -> Compacted:
    """Clean a partition into an existing directory; without one, only count the records to be removed.

    Works in passes like the cleaner: takes as many keys as fit into the offset map, then rewrites all segments up to
    there. Offsets stay; segments that the cleaner skips are copied unchanged. Counting writes nothing if one pass is
    enough; otherwise its passes use the system's temporary directory. topic_id: the topic's, for a partition that has
    lost it.

    Raises:
        DamagedError: if a log to clean is damaged; `salvage` can read it.
        KsegError: if the map has no room for a key.
        OSError: if the system can't read or write.
    """
    plan = plan_compaction(partition, settings)
    isolation = read_committed(partition.segments, partition)
    aborted = [
        Aborted(first, last, producer_id=producer_id)
        for producer_id, spans in isolation.aborted.items()
        for first, last in spans
    ]
    done = Compacted(plan, notes=isolation.notes)
    with ExitStack() as stack:
        work = directory / ".passes" if directory is not None else None
        if work is not None:
            work.mkdir()
            stack.callback(shutil.rmtree, work, ignore_errors=True)
        cleaning = _Cleaning(partition, settings, done, aborted, work)
        stack.callback(cleaning.close)
        cleaned = cleaning.run()
        if directory is not None:
            _write(partition, cleaned, done, directory, topic_id)
    return done


class _Cleaning:
    """The passes over the segments of a partition."""

    def __init__(
        self,
        partition: PartitionLog,
        settings: CompactSettings,
        done: Compacted,
        aborted: list[Aborted],
        work: Path | None,
    ) -> None:
        self._partition = partition
        self._settings = settings
        self._done = done
        self._aborted = aborted
        self._met: list[Aborted] = []
        self._origins: dict[int, tuple[int, ...]] = {base: (base,) for base in partition.base_offsets}
        self._work = work
        self._temporary = ExitStack()
        self._offsets = OffsetMap(settings.dedupe_buffer_size)
        if self._offsets.table.is_full:
            raise KsegError(f"an offset map of {plural(settings.dedupe_buffer_size, 'byte')} has no room for a key")

    def close(self) -> None:
        """Remove the passes' files in the temporary directory."""
        self._temporary.close()

    def run(self) -> list[SegmentFiles]:
        """Return the segments after the last pass, which replace all cleaned segments.

        None if there was nothing to clean.
        """
        plan, done = self._done.plan, self._done
        segments = [each for each in self._partition.segments if each.base_offset < plan.end_offset]
        done.bytes_before = sum(each.size for each in segments)
        done.bytes_left_alone = self._partition.size - done.bytes_before
        first_dirty = plan.first_dirty
        if first_dirty >= plan.end_offset:
            done.bytes_before, done.bytes_left_alone = 0, self._partition.size
            return []
        while first_dirty < plan.end_offset:
            end_offset = self._fill_map(segments, first_dirty)
            is_last = end_offset >= plan.end_offset
            self._prepare(is_last=is_last)
            cleaned = [each for each in segments if each.base_offset < end_offset]
            left = self._clean(cleaned, first_dirty)
            self._forget(cleaned)
            others = segments[len(cleaned) :]
            later = [each for each in self._aborted if others and each.last_offset >= others[0].base_offset]
            self._aborted = [*self._met, *later]
            segments = [*left, *others]
            first_dirty = end_offset
        return segments

    def _prepare(self, *, is_last: bool) -> None:
        """Create a directory for a pass; counting passes need one if others follow."""
        self._done.passes += 1
        if self._work is None and not is_last:
            self._work = self._temporary.enter_context(scratch_directory())
        if self._work is not None:
            (self._work / str(self._done.passes)).mkdir()

    # --- the offset map -------------------------------------------------------------------------------------------

    def _fill_map(self, segments: list[SegmentFiles], first_dirty: int) -> int:
        """Add keys from an offset on until the map is full; return the offset after the last one.

        Source: Cleaner.buildOffsetMap.
        """
        self._offsets.clear()
        transactions = CleanedTransactions(each for each in self._aborted if each.last_offset >= first_dirty)
        first_slot = max(sum(each.base_offset <= first_dirty for each in segments) - 1, 0)
        for segment in segments[first_slot:]:
            for piece in intact_slices(segment.path):
                if not self._take_keys(piece, segment.path, transactions, first_dirty):
                    return self._offsets.table.latest_offset + 1
        self._offsets.table.latest_offset = self._done.plan.end_offset - 1
        return self._done.plan.end_offset

    def _take_keys(self, piece: Slice, path: Path, transactions: CleanedTransactions, first_dirty: int) -> bool:
        """Add a slice's keys; return False if there was no room for all."""
        run, table = piece.run, self._offsets.table
        for first, last, header in stretches(piece):
            if header is not None and _is_discarded(run, first, header, transactions):
                if header.last_offset >= first_dirty:
                    table.latest_offset = header.last_offset
                continue
            stop = table.add(run.buffer, run.rows, first, last, piece.bodies, piece.first, first_dirty)
            if stop < last and table.is_full:
                return False
            if stop < last:
                deque(batch_of(run, stop).records(on_damage=partial(refuse, path)), maxlen=0)
        return True

    # --- segments -------------------------------------------------------------------------------------------------

    def _clean(self, segments: list[SegmentFiles], first_dirty: int) -> list[SegmentFiles]:
        """Rewrite segments, some joined into one. Source: Cleaner.doClean, cleanSegments."""
        plan, settings, done = self._done.plan, self._settings, self._done
        transactions = CleanedTransactions(self._aborted)
        retention = TombstoneRetention(settings.now_ms, settings.delete_retention_ms, plan.producers, plan.end_offset)
        cleaner = BatchCleaner(self._offsets, transactions, retention)
        clean = [_modified_ms(each) for each in segments if each.base_offset < first_dirty]
        legacy_horizon_ms = clean[-1] - settings.delete_retention_ms if clean else 0
        states = self._partition.read_producer_states(segments[0].base_offset) or ProducerStates()
        left, done.segments = [], []
        for group in group_segments(segments, settings, plan.end_offset):
            output = _Output(self._path_of(group[0].base_offset), group[0].base_offset, settings, states)
            for segment in group:
                cleaner.keeps_deletes = _modified_ms(segment) > legacy_horizon_ms
                for run in _clean_group(cleaner, segment):
                    output.write(run)
            left.append(output.close(_modified_ms(group[-1])))
            origins = tuple(base for each in group for base in self._origins[each.base_offset])
            self._origins[output.base_offset] = origins
            done.segments.append(CleanedSegment(output.base_offset, output.size, origins))
        done.kept, done.emptied = cleaner.remaining_count, cleaner.emptied
        done.gone += cleaner.removed_counts
        self._met = transactions.kept
        return left

    def _forget(self, segments: list[SegmentFiles]) -> None:
        """Remove the files that an earlier pass wrote for segments that are cleaned again."""
        for file in (file for segment in segments for file in segment.files):
            if file.directory != self._partition.path:
                file.path.unlink()

    def _path_of(self, base_offset: int) -> Path | None:
        return None if self._work is None else self._work / str(self._done.passes) / f"{base_offset:020}.log"


def _is_discarded(run: Run, row: int, header: BatchHeader, transactions: CleanedTransactions) -> bool:
    """Return True if a batch's keys don't count: it is a marker, or belongs to an aborted transaction."""
    if header.is_control:
        transactions.can_discard(batch_of(run, row))
        return True
    return transactions.is_aborted(header)


def _clean_group(cleaner: BatchCleaner, segment: SegmentFiles) -> Iterator[Run]:
    try:
        for piece in intact_slices(segment.path):
            yield from cleaner.clean_slice(piece)
    except DamagedError:
        raise
    except FileError as error:
        raise FileError(error.message, segment.path, error.position) from error


def _modified_ms(segment: SegmentFiles) -> int:
    return 0 if segment.log is None else segment.log.modified_ms


class _Output:
    """A cleaned segment in progress; without a path it is only measured."""

    def __init__(self, path: Path | None, base_offset: int, settings: CompactSettings, states: ProducerStates) -> None:
        self.base_offset = base_offset
        self._path = path
        self._log: BinaryIO | None = None if path is None else path.open("xb")
        self._indexes = IndexBuilder(base_offset, settings.index_interval_bytes, states)
        self._fold = self._indexes.new_fold()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._indexes.size

    def write(self, run: Run) -> None:
        """Append consecutive batches."""
        indexes, fold, placed = self._indexes, self._fold, run._replace(position=self.size)
        for header, _ in events(fold, placed):
            raw = placed.buffer[header.position - placed.position : header.end - placed.position]
            has_marker = header.is_control and header.producer_id >= 0
            indexes.add_producer(header, parse_end_marker(raw) if has_marker else None)
        indexes.add_passed(fold)
        if self._log is not None:
            self._log.write(run.buffer[: end_of(run) - run.position])

    def close(self, modified_ms: int) -> SegmentFiles:
        """Close the log with the modification time of its last source, and write its indexes."""
        self._indexes.finish()
        contents = {".index": self._indexes.entries.offset_index, ".timeindex": self._indexes.entries.time_index}
        if self._indexes.transaction_index:
            contents[".txnindex"] = bytes(self._indexes.transaction_index)
        directory = Path() if self._path is None else self._path.parent
        stem = f"{self.base_offset:020}"
        if self._path is not None and self._log is not None:
            self._log.close()
            os.utime(self._path, ns=(modified_ms * 1_000_000,) * 2)
            for extension, content in contents.items():
                self._path.with_suffix(extension).write_bytes(content)
        found = {
            extension: FoundFile(directory, stem + extension, len(content), modified_ms)
            for extension, content in contents.items()
        }
        log = FoundFile(directory, f"{stem}.log", self.size, modified_ms)
        return SegmentFiles(self.base_offset, log, found.get(".index"), found.get(".timeindex"), found.get(".txnindex"))


def _write(
    partition: PartitionLog, cleaned: list[SegmentFiles], done: Compacted, directory: Path, topic_id: str | None
) -> None:
    """Put cleaned and unchanged segments into the directory; rebuild missing and broken files.

    Skips producer snapshots at the start of segments that were joined to others; a broker deletes them too.
    """
    for segment in cleaned:
        for file in segment.files:
            file.path.replace(directory / file.name)
    is_cleaned = {base for segment in done.segments for base in segment.sources}
    joined = is_cleaned - {segment.base_offset for segment in cleaned}
    alone = [segment for segment in partition.segments if segment.base_offset not in is_cleaned]
    files = [file for segment in alone for file in segment.files]
    files += [file for offset, file in partition.snapshots.items() if offset not in joined]
    for file in (*files, *partition.metadata_snapshots, *partition.others):
        copy_file(file.path, directory / file.name)
    for made in rebuilt_side_files(partition, topic_id):
        is_joined = made.name in {f"{base:020}.snapshot" for base in joined}
        if made.content is not None and not is_joined:
            (directory / made.name).write_bytes(made.content)


@dataclass(frozen=True, slots=True)
class Retained:
    """A segment, its fate under retention, and the time (milliseconds) when it expires by age, or None if never."""

    segment: SegmentListing
    expires_ms: int | None

    @property
    def is_kept(self) -> bool:
        """True if retention keeps it."""
        return self.segment.retention is None or not self.segment.retention.is_deletion


def retain_partition(partition: PartitionLog, settings: RetentionSettings) -> list[Retained]:
    """Return every segment of a partition, oldest first, with the effect of `cleanup.policy=delete`.

    A segment expires when it is older than retention.ms and all preceding segments are deleted. Source:
    UnifiedLog.deleteOldSegments.
    """
    return retained_of(list_partition(partition, ListingSettings(settings)), settings)


def retained_of(listing: PartitionListing, settings: RetentionSettings) -> list[Retained]:
    """Return the same for a partition that was listed with these settings."""
    retained, latest = [], 0
    for segment in listing.segments:
        latest = max(latest, segment.age_timestamp + settings.retention_ms + 1)
        has_age = listing.partition.topic != METADATA_TOPIC and segment.retention not in (None, Retention.COMPACTED)
        has_end = settings.retention_ms >= 0 and has_age and segment.size > 0
        expires = latest if has_end else None
        retained.append(Retained(segment, expires))
    return retained


class RetainedCopy(NamedTuple):
    """A copy: base offsets of its segments; `rolled`: base offset of a new empty segment, None without one."""

    base_offsets: tuple[int, ...]
    rolled: int | None


def copy_retained(
    partition: PartitionLog, retained: list[Retained], directory: Path, inputs: Paths = ()
) -> RetainedCopy:
    """Copy a partition without its deleted segments into a new directory.

    If all are deleted, there is an empty segment at the log end offset, with the producers there: a broker rolls before
    it deletes the others. Skips producer snapshots below the first remaining segment, which a broker deletes too;
    copies other files unchanged. Raises UsageError if the directory exists and isn't empty, OSError if the system can't
    read or write. Source: UnifiedLog.deleteSegments.
    """
    with new_directory(directory, inputs) as unfinished:
        return _copy(partition, retained, unfinished)


def _copy(partition: PartitionLog, retained: list[Retained], directory: Path) -> RetainedCopy:
    gone = {each.segment.base_offset for each in retained if not each.is_kept}
    kept = [segment for segment in partition.segments if segment.base_offset not in gone]
    rolled = partition.read_log_end_offset() if gone and not kept else None
    first = kept[0].base_offset if kept else rolled
    files = [file for segment in kept for file in segment.files]
    files += [file for offset, file in partition.snapshots.items() if first is None or offset >= first]
    files += [*partition.metadata_snapshots, *partition.others]
    for file in files:
        copy_file(file.path, directory / file.name)
    if rolled is None:
        return RetainedCopy(tuple(segment.base_offset for segment in kept), None)
    _roll(partition, rolled, directory)
    return RetainedCopy((rolled,), rolled)


def _roll(partition: PartitionLog, offset: int, directory: Path) -> None:
    """Write an empty segment and the producers at its start, if there are any or snapshots were kept."""
    for extension in (".log", ".index", ".timeindex"):
        (directory / f"{offset:020}{extension}").touch()
    if offset in partition.snapshots:
        return
    states = states_at(partition, offset)
    if partition.snapshots or states.producers:
        (directory / f"{offset:020}.snapshot").write_bytes(build_producer_snapshot(states))
