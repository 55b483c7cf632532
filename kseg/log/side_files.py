"""Small files of a partition: leader epochs, snapshots, partition.metadata; rebuilt where they are missing."""

import os
from collections import deque
from collections.abc import Container, Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.errors import FileError, OpenError
from kseg.formats.codes import TAIL_KINDS
from kseg.formats.file_names import FileKind
from kseg.index.header_scan import FoldWithin, events, header_runs, walk_headers
from kseg.index.producers import (
    KnownProducers,
    ProducerStates,
    build_producer_snapshot,
    end_marker_in,
    snapshot_problem,
)
from kseg.index.rebuild import rebuild
from kseg.kernel.contract import LEAST, MOST
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.committed import read_open_transactions
from kseg.log.lineage import epochs_contradiction, leader_epochs
from kseg.log.partition import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, PartitionLog, read_small_file
from kseg.log.segments import FoundFile, SegmentFiles, read_tail
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.store.location import ObjectStore, StoredObject
from kseg.system.files import open_regular
from kseg.system.placed_path import PlacedPath, RangedBytes
from kseg.tiered.placed_tiers import Choice
from kseg.tiered.remote_segment import RemoteSegment
from kseg.tiered.segment_bytes import LastRead, PrivateKeys, StoredPart, bytes_of


class Reason(StrEnum):
    """The reason why a file is written from the log."""

    MISSING = "missing"
    BROKEN = "broken"
    WRONG = "wrong"


class SideFile(NamedTuple):
    """A file that is missing, broken or wrong, and its correct content, or None if that isn't known.

    detail: the problem, empty if the file is missing.
    """

    name: str
    reason: Reason
    content: bytes | None
    detail: str = ""


def rebuilt_side_files(
    partition: PartitionLog, topic_id: str | None = None, directory: Path | None = None
) -> Iterator[SideFile]:
    """Yield a partition's small files that are missing, broken or wrong; rebuilt in a directory, if one is given.

    Leader epochs are missing if batches have some; producer snapshots if batches have producers and no snapshot is
    usable; `partition.metadata` if the topic's id is known. Epochs and snapshots are wrong if batches contradict them.
    Raises OpenError if a log can't be opened, OSError if a file can't be written.
    """
    for file in chain(_leader_epochs(partition), _snapshots(partition), _metadata(partition, topic_id)):
        if directory is not None and file.content is not None:
            (directory / file.name).write_bytes(file.content)
        yield file


def partition_metadata(partition: PartitionLog, topic_id: str | None = None) -> bytes | None:
    """Return the content of `partition.metadata`: its own if that is readable, otherwise built from the topic id."""
    for file in _metadata(partition, topic_id):
        return file.content
    return read_small_file(partition.path / PARTITION_METADATA)


def build_metadata(topic_id: str) -> bytes:
    """Build the content of `partition.metadata` for a topic id."""
    from kseg.formats.checkpoints import PartitionMetadata, build_partition_metadata

    return build_partition_metadata(PartitionMetadata(0, topic_id))


def _metadata(partition: PartitionLog, topic_id: str | None) -> Iterator[SideFile]:
    content = None if topic_id is None else build_metadata(topic_id)
    try:
        known = partition.read_topic_id()
    except FileError as error:
        yield SideFile(PARTITION_METADATA, Reason.BROKEN, content, error.message)
        return
    if known is None and content is not None:
        yield SideFile(PARTITION_METADATA, Reason.MISSING, content)


def _leader_epochs(partition: PartitionLog) -> Iterator[SideFile]:
    from kseg.formats.checkpoints import EpochStart, LeaderEpochCheckpoint, build_leader_epoch_checkpoint

    found = list(leader_epochs(partition))
    reason, detail = Reason.MISSING, ""
    try:
        entries = partition.read_leader_epochs()
    except FileError as error:
        reason, detail = Reason.BROKEN, error.message
    else:
        if entries is not None:
            is_lost = not entries and bool(found) and _ends_with_epoch(partition)
            reason, detail = Reason.WRONG, "it is empty" if is_lost else epochs_contradiction(entries, found) or ""
            if not detail:
                return
    if detail or found:
        starts = tuple(EpochStart(*start) for start in found)
        content = build_leader_epoch_checkpoint(LeaderEpochCheckpoint(0, starts))
        yield SideFile(LEADER_EPOCH_CHECKPOINT, reason, content, detail)


def _ends_with_epoch(partition: PartitionLog) -> bool:
    """Return True if the last batch has a leader epoch: otherwise a broker has cleared them."""
    tails = (read_tail(segment) for segment in reversed(partition.segments))
    last = next((tail.last for tail in tails if tail.last is not None), None)
    return last is not None and last.partition_leader_epoch >= 0


def _snapshots(partition: PartitionLog) -> Iterator[SideFile]:
    broken = {offset: detail for offset, file in partition.snapshots.items() if (detail := snapshot_problem(file.path))}
    wrong = _wrong_snapshots(partition, broken)
    for offset, detail in sorted((broken | wrong).items()):
        states = states_at(partition, offset, without=wrong)
        if offset in wrong:
            _keep_forgotten(partition, offset, states)
        reason = Reason.WRONG if offset in wrong else Reason.BROKEN
        yield SideFile(partition.snapshots[offset].name, reason, build_producer_snapshot(states), detail)
    if not partition.snapshots:
        end = partition.read_log_end_offset()
        states = states_at(partition, end)
        if states.producers:
            yield SideFile(f"{end:020}.snapshot", Reason.MISSING, build_producer_snapshot(states))


def _wrong_snapshots(partition: PartitionLog, broken: Container[int]) -> dict[int, str]:
    """Return the snapshots that contradict the batches up to their offset, and the contradictions.

    Skips snapshots where batches are missing or unreadable: then the log can't decide.
    """
    left = deque(offset for offset in partition.snapshots if offset not in broken)
    if not left:
        return {}
    known = KnownProducers(partition.base_offsets[0] if partition.base_offsets else 0, partition.log_start_offset())
    fold = kernel.load().HeaderFold(Event.PRODUCER | Event.CONTROL | Event.OFFSET, known.states.producers.table)
    fold.passes_legacy = True
    wrong: dict[int, str] = {}
    for segment in partition.segments:
        with segment.open_log(keep_cache=False) as log_file:
            for item in header_runs(log_file):
                if isinstance(item, Damage):
                    if item.kind not in TAIL_KINDS:
                        return wrong
                    continue
                fold.offset_bound = min(left[0], MOST)
                for header, _ in events(fold, item):
                    wrong.update(_compare_snapshots(partition, known, left, header.first_offset))
                    if not left or _has_gap(fold, header):
                        return wrong
                    known.add(header, end_marker_in(item, log_file, header) if header.is_control else None)
                    fold.offset_bound = min(left[0], MOST)
                    fold.next_offset = LEAST  # the next one follows this batch, whatever was before it
    wrong.update(_compare_snapshots(partition, known, left, fold.last_offset + 1 if fold.batches else None))
    return wrong


def _has_gap(fold: HeaderFold, header: BatchHeader) -> bool:
    """Return True if a batch doesn't begin where the previous one ended, as far as the header shows."""
    return bool(fold.batches) and header.base_offset not in (None, fold.last_offset + 1)


def _compare_snapshots(
    partition: PartitionLog, known: KnownProducers, left: deque[int], offset: int | None
) -> Iterator[tuple[int, str]]:
    """Compare the snapshots up to an offset, and remove them from `left`."""
    while left and offset is not None and left[0] <= offset:
        end = left.popleft()
        states = partition.read_producer_states(end)
        if states is not None and end >= partition.base_offsets[0]:
            for problem in known.contradictions(states.producers.values(), end):
                yield end, problem
                break


def _keep_forgotten(partition: PartitionLog, offset: int, states: ProducerStates) -> None:
    """Add the producers in the snapshot at an offset to states there if retention deleted their batches."""
    stored = partition.read_producer_states(offset) or ProducerStates()
    for entry in stored.producers.values():
        is_gone = entry.last_offset < partition.base_offsets[0] and entry.current_txn_first_offset < 0
        if is_gone and entry.producer_id not in states.producers:
            states.producers.put(entry)


def states_at(partition: PartitionLog, offset: int, *, without: Container[int] = ()) -> ProducerStates:
    """Return the producers at an offset, from the newest usable snapshot up to there and the batches after it.

    The walk over transactions decides which are open: a marker may be lost with damage. `without`: offsets of
    snapshots that must not be used. Raises OpenError if a log can't be opened. Source:
    UnifiedLog.rebuildProducerState.
    """
    start, states = 0, ProducerStates()
    for known in sorted((each for each in partition.snapshots if each <= offset), reverse=True):
        is_usable = known not in without and not snapshot_problem(partition.snapshots[known].path)
        found = partition.read_producer_states(known) if is_usable else None
        if found is not None:
            start, states = known, found
            break
    for segment in partition.segments[partition.floor_slot(start) or 0 :]:
        if segment.base_offset < offset:
            _add_batches(segment, range(start, offset), states)
    opened = read_open_transactions(partition, offset) if states.open_transactions else {}
    return ProducerStates(
        state._replace(current_txn_first_offset=opened.get(state.producer_id, -1))
        for state in states.producers.values()
    )


def _add_batches(segment: SegmentFiles, offsets: range, states: ProducerStates) -> None:
    within = FoldWithin(Event.PRODUCER | Event.CONTROL, offsets, states.producers.table)
    with segment.open_log(keep_cache=False) as log_file:
        for item in header_runs(log_file):
            if isinstance(item, Damage):
                continue
            for header in within.events(item):
                states.add(header, end_marker_in(item, log_file, header) if header.is_control else None)


_EXTENSIONS = {
    FileKind.LOG: ".log",
    FileKind.OFFSET_INDEX: ".index",
    FileKind.TIME_INDEX: ".timeindex",
    FileKind.TRANSACTION_INDEX: ".txnindex",
}


class StandingFiles:
    """Files that stand for bytes in a store."""

    def __init__(self, keys: PrivateKeys) -> None:
        """Take the keys of encrypted segments."""
        self._keys, self._read_cache = keys, LastRead()
        self._paths: list[PlacedPath] = []

    def fetch_all(self) -> None:
        """Fetch all bytes of the placed files. Raises OpenError if they aren't available."""
        for path in self._paths:
            descriptor, _ = open_regular(path)
            os.close(descriptor)

    def measure(self, store: ObjectStore, segment: RemoteSegment, directory: PlacedPath) -> RemoteSegment:
        """Return a segment with its last offset and largest timestamp, read through files in a directory."""
        directory.mkdir()
        try:
            tail = read_tail(self._files(store, segment, directory))
        except OpenError:
            return segment
        if tail.last is None:
            return segment
        return replace(segment, end_offset=tail.last.last_offset, max_timestamp=tail.max_timestamp)

    def _files(self, store: ObjectStore, segment: RemoteSegment, directory: PlacedPath) -> SegmentFiles:
        """Return files that stand for a segment's log and offset index."""
        found = {}
        for kind in (FileKind.LOG, FileKind.OFFSET_INDEX):
            part = segment.files.get(kind)
            if part is not None:
                name = f"{segment.base_offset:020}{_EXTENSIONS[kind]}"
                self._let_stand(directory / name, self._bytes_of(store, part))
                found[kind] = FoundFile(directory, name, part.size, segment.modified_ms)
        return SegmentFiles(segment.base_offset, found.get(FileKind.LOG), found.get(FileKind.OFFSET_INDEX))

    def place_segment(self, store: ObjectStore, choice: Choice, target: PlacedPath) -> None:
        """Create the files of a segment. A partly used one ends before the first unwanted batch."""
        segment, stem = choice.segment, target / f"{choice.segment.base_offset:020}"
        is_cut = choice.end is not None and self._cut(store, segment, choice.end, stem)
        kinds = (FileKind.LOG,) if is_cut else tuple(_EXTENSIONS)
        for kind in kinds:
            part = segment.files.get(kind)
            path = stem.with_suffix(_EXTENSIONS[kind])
            if part is not None and not path.exists():
                self._let_stand(path, self._bytes_of(store, part))
                _set_time(path, segment)

    def place_snapshot(self, store: ObjectStore, choice: Choice, target: PlacedPath, next_base: int | None) -> None:
        """Create the producer snapshot of a segment's end: at the next base offset, else after its last offset."""
        part = choice.segment.files.get(FileKind.PRODUCER_SNAPSHOT)
        if part is None or not part.size or choice.end is not None:
            return
        end = choice.segment.end_offset
        offset = next_base if next_base is not None else None if end is None else end + 1
        path = target / f"{offset or 0:020}.snapshot"
        if offset is not None and not path.exists():
            self._let_stand(path, self._bytes_of(store, part))

    def _cut(self, store: ObjectStore, segment: RemoteSegment, end: int, stem: PlacedPath) -> bool:
        """Create the log of a segment below an offset, and its indexes; return whether it has batches from there on."""
        assert segment.log is not None
        whole, path = stem.with_suffix(".whole"), stem.with_suffix(".log")
        whole.let_stand_for(self._bytes_of(store, segment.log))
        try:
            with LogFile(whole) as log_file:
                headers = (item for item in walk_headers(log_file) if not isinstance(item, Damage))
                position = next((item.position for item in headers if item.last_offset >= end), None)
        except OpenError:  # without the key
            position = None
        finally:
            whole.unlink()
        if position is None:
            return False
        self._let_stand(path, self._bytes_of(store, segment.log, position))
        with LogFile(path) as log_file:
            indexes = rebuild(log_file, segment.base_offset, states=ProducerStates())
        stem.with_suffix(".index").write_bytes(indexes.offset_index)
        stem.with_suffix(".timeindex").write_bytes(indexes.time_index)
        if indexes.transaction_index:
            stem.with_suffix(".txnindex").write_bytes(indexes.transaction_index)
        for suffix in (".log", ".index", ".timeindex"):
            _set_time(stem.with_suffix(suffix), segment)
        return True

    def place_object(self, store: ObjectStore, found: StoredObject, path: PlacedPath) -> None:
        """Create the file of an object that is stored unchanged."""
        part = StoredPart(found.key, 0, found.size, object_size=found.size)
        self._let_stand(path, self._bytes_of(store, part))
        os.utime(path, ns=(found.modified_ms * 1_000_000,) * 2)

    def _bytes_of(self, store: ObjectStore, part: StoredPart, size: int | None = None) -> RangedBytes:
        return bytes_of(store, part, self._keys, self._read_cache, size)

    def _let_stand(self, path: PlacedPath, source: RangedBytes) -> None:
        path.let_stand_for(source)
        self._paths.append(path)


def _set_time(path: Path, segment: RemoteSegment) -> None:
    os.utime(path, ns=(segment.modified_ms * 1_000_000,) * 2)
