"""`salvage`: the intact batches of damaged partitions, put together in a new directory that a broker takes."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from kseg.errors import KsegError, UnreadableError
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAXIMUM_RELATIVE_OFFSET,
    DamageKind,
)
from kseg.formats.names import DirectoryState
from kseg.formats.positions import size_field
from kseg.index.headers import parse_header
from kseg.index.producer_snapshot import build_producer_snapshot
from kseg.index.producer_state import ProducerStates, read_end_marker
from kseg.index.rebuild import rebuild
from kseg.log.checked_batches import InnerProblem
from kseg.log.extents import (
    Extent,
    ExtentBatches,
    FoundLoss,
    Replica,
    credible_epochs,
    joined_neighbours,
    longest_rising,
)
from kseg.log.filling import filled, is_mere_gap, judge_rest, with_strays
from kseg.log.findings import id_of_damage, status_of
from kseg.log.log_dir import LOST_AND_FOUND, Refuse, find_partitions
from kseg.log.partition import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    PartitionLog,
    has_later_segment,
    read_small_file,
)
from kseg.log.side_files import build_metadata
from kseg.log_file import LogFile
from kseg.new_directory import WriteError, copy_file

LARGEST_SEGMENT = 2**31 - 1
"""Bytes that a segment's indexes can address."""
ATTEMPTS = 5
"""How often a partition is planned whose disk loses blocks between planning and writing."""


class Hole(NamedTuple):
    """Offsets that no intact batch has; `last` is None where the end isn't known, `next_good` where nothing follows."""

    first: int
    last: int | None
    next_good: int | None
    reason: str


class OpenTransaction(NamedTuple):
    """A transaction whose end marker isn't among what is intact."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class Salvage:
    """What can be saved of a partition.

    name: the new directory's. extents: what is kept, in order of offsets; `segments` groups them by base offset.
    duplicates: intact batches that are kept already. reordered: batches that were out of order. unplaced: intact
    batches whose offsets fit nowhere.
    """

    name: str
    topic: str | None
    partition: int | None
    replicas: tuple[Replica, ...]
    segments: tuple[tuple[int, tuple[Extent, ...]], ...]
    duplicates: int
    reordered: int
    unplaced: tuple[Extent, ...]
    holes: tuple[Hole, ...]

    @property
    def extents(self) -> Iterator[Extent]:
        """What is kept, in order of offsets."""
        for _, extents in self.segments:
            yield from extents

    @property
    def log_end_offset(self) -> int:
        """The next offset to be written behind what is kept."""
        base, extents = self.segments[-1]
        return extents[-1].last_offset + 1 if extents else base

    @property
    def batch_count(self) -> int:
        """Batches kept in segments."""
        return sum(extent.batch_count for extent in self.extents)

    @property
    def size(self) -> int:
        """Bytes kept in segments."""
        return sum(extent.size for extent in self.extents)

    @property
    def losses(self) -> Iterator[FoundLoss]:
        """Losses of all replicas; those of one may be filled from another."""
        for replica in self.replicas:
            yield from replica.losses

    @property
    def inner_problems(self) -> Iterator[tuple[Path, InnerProblem]]:
        """What is wrong inside batches that are kept as they are: their CRC holds."""
        kept = {extent.log for extent in self.extents}
        for replica in self.replicas:
            yield from ((log, problem) for log, problem in replica.inner_problems if log in kept)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is lost, nothing stays that can't be read, and nothing came twice or out of order."""
        if self.holes or self.unplaced or self.duplicates or self.reordered or any(self.inner_problems):
            return False
        return not any(_is_loss(found) for found in self.losses)


def _is_loss(found: FoundLoss) -> bool:
    """Whether a loss is one: the unwritten end of the last segment is none."""
    reason = found.loss.reason
    if reason in set(DamageKind):
        reason = id_of_damage(DamageKind(reason), is_last=not has_later_segment(found.log))
    return bool(status_of(reason))


def find_replicas(paths: Iterable[Path], refuse: Refuse | None = None) -> dict[str, list[PartitionLog]]:
    """The partitions at some paths, by the name that a broker gives their directory; those being deleted left out.

    `refuse` and what is raised are as for `find_partitions`.
    """
    found: dict[str, list[PartitionLog]] = {}
    for path in paths:
        for partition in find_partitions([path], refuse):
            is_named = partition.path == path
            if partition.state is DirectoryState.DELETE and not is_named:
                continue
            if partition.topic is None:
                name = partition.path.absolute().name
            else:
                name = f"{partition.topic}-{partition.partition}"
            found.setdefault(name, []).append(partition)
    return found


def plan_salvage(
    name: str,
    partitions: Sequence[PartitionLog],
    *,
    keep_cache: bool = True,
    drop_unreadable: bool = False,
    on_read: Callable[[int], None] | None = None,
) -> Salvage:
    """What can be saved of a partition, of one directory or of several replicas; nothing is written.

    Of several the one with the most intact batches comes first; the others fill its holes. `drop_unreadable`: batches
    whose CRC holds, but not all of whose records can be read, are lost too. `on_read` is told the size of each log that
    was read. Raises OpenError if a log can't be opened.
    """
    replicas = [
        Replica(partition, keep_cache=keep_cache, drop_unreadable=drop_unreadable, on_read=on_read)
        for partition in partitions
    ]
    replicas.sort(key=lambda replica: -replica.batch_count)
    is_compacted = any(replica.is_compacted for replica in replicas)
    kept: list[Extent] = []
    rests: list[list[Extent]] = []
    with ExtentBatches() as batches:
        for replica in replicas:
            chain = longest_rising(replica.extents)
            kept = filled(kept, chain, batches, is_compacted=is_compacted) if kept else chain
            chosen = set(chain)
            rests.append([extent for extent in replica.extents if extent not in chosen])
            kept = with_strays(kept, rests[-1], batches)
            rests[-1] += replica.misplaced
        holes = tuple(_holes(kept, replicas, is_compacted=is_compacted))
        kept = list(joined_neighbours(kept))
        stray_count = sum(extent.batch_count for rest in rests for extent in rest)
        duplicates, unplaced = judge_rest(rests, kept, batches)
    partition = partitions[0]
    return Salvage(
        name,
        partition.topic,
        partition.partition,
        tuple(replicas),
        (*_segments(kept), *_empty_segment(kept, replicas)),
        duplicates,
        stray_count - duplicates - sum(extent.batch_count for extent in unplaced),
        tuple(unplaced),
        holes,
    )


def _segments(kept: list[Extent]) -> Iterator[tuple[int, tuple[Extent, ...]]]:
    """What is kept, by segments: those of the source, cut where indexes couldn't follow."""
    base, size, group = 0, 0, list[Extent]()
    for extent in kept:
        is_new = group and extent.segment_base > group[-1].last_offset
        is_full = size + extent.size > LARGEST_SEGMENT or extent.last_offset - base > MAXIMUM_RELATIVE_OFFSET
        if not group or is_new or is_full:
            if group:
                yield base, tuple(group)
            base = extent.first_offset if group and not is_new else extent.segment_base
            size, group = 0, []
        group.append(extent)
        size += extent.size
    if group:
        yield base, tuple(group)


def _empty_segment(kept: list[Extent], replicas: Sequence[Replica]) -> Iterator[tuple[int, tuple[Extent, ...]]]:
    """An active segment without batches: its base offset is the log end offset, which must not fall."""
    end = kept[-1].last_offset + 1 if kept else 0
    bases = [base for base in map(_empty_base, replicas) if base is not None and base >= end]
    if bases:
        yield max(bases), ()


def _empty_base(replica: Replica) -> int | None:
    active = replica.partition.active_segment
    return None if active is None or active.size else active.base_offset


def _holes(kept: list[Extent], replicas: Sequence[Replica], *, is_compacted: bool) -> Iterator[Hole]:
    start = min(replica.partition.log_start_offset() for replica in replicas)
    if kept and not is_mere_gap(None, kept[0], is_compacted=is_compacted) and kept[0].first_offset > start:
        yield Hole(start, kept[0].first_offset - 1, kept[0].first_offset, _reason(kept[0]))
    for before, extent in pairwise(kept):
        if not is_mere_gap(before, extent, is_compacted=is_compacted):
            yield Hole(before.last_offset + 1, extent.first_offset - 1, extent.first_offset, _reason(extent))
    yield from _hole_at_end(kept, replicas, start)


def _reason(extent: Extent) -> str:
    return "damage" if extent.is_behind_loss else "missing"


def _hole_at_end(kept: list[Extent], replicas: Sequence[Replica], start: int) -> Iterator[Hole]:
    """What is lost behind the last batch, as far as a checkpoint says what was there, or a loss shows it."""
    end = kept[-1].last_offset + 1 if kept else start
    known = [each for replica in replicas for each in replica.partition.checkpoints()[:2] if each is not None]
    if not any(replica.is_compacted for replica in replicas):
        known += [base for base in map(_empty_base, replicas) if base is not None]
    last = max(known, default=0) - 1
    if last >= end:
        yield Hole(end, last, None, "damage" if any(map(_is_loss, replicas[0].losses)) else "missing")
        return
    losses = [found for found in replicas[0].losses if _is_loss(found)]
    if losses and (not kept or (losses[-1].log == kept[-1].log and losses[-1].loss.position >= kept[-1].end)):
        yield Hole(end, None, None, "damage")


# --- writing ----------------------------------------------------------------------------------------------------------


class WrittenFile(NamedTuple):
    """A file that salvage wrote: its name below the new directory, bytes, SHA-256 in hex, and its time.

    modified_ms: milliseconds since 1970; of a log, when the last of its sources was modified. sources: the files that
    it was copied from; none for one that was rebuilt.
    """

    name: str
    size: int
    modified_ms: int
    sha256: str
    sources: tuple[Path, ...]


class Written(NamedTuple):
    """What salvage wrote of a partition, and the transactions that are left open in it."""

    files: tuple[WrittenFile, ...] = ()
    transactions: tuple[OpenTransaction, ...] = ()


def salvage_partition(
    name: str,
    partitions: Sequence[PartitionLog],
    directory: Path,
    *,
    keep_cache: bool = True,
    drop_unreadable: bool = False,
    topic_id: str | None = None,
    on_read: Callable[[int], None] | None = None,
) -> tuple[Salvage, Written]:
    """Plans as `plan_salvage` does, and writes below a directory.

    Where a block that could be read for the plan can't be any more, the partition is planned again: disks go on
    failing.
    Raises as `plan_salvage` and `write_salvage` do.
    """
    for attempt in range(ATTEMPTS):
        told = None if attempt else on_read
        plan = plan_salvage(name, partitions, keep_cache=keep_cache, drop_unreadable=drop_unreadable, on_read=told)
        try:
            return plan, write_salvage(plan, directory, keep_cache=keep_cache, topic_id=topic_id)
        except UnreadableError:
            for written in (directory / name, directory / LOST_AND_FOUND / name):
                shutil.rmtree(written, ignore_errors=True)
            if attempt + 1 == ATTEMPTS:
                raise
    raise AssertionError


def open_transactions(plan: Salvage) -> tuple[OpenTransaction, ...]:
    """The transactions that stay open in what a plan keeps. Raises OpenError if a log can't be opened or read."""
    states = _first_states(plan) if plan.segments else ProducerStates()
    if any(replica.has_transactions for replica in plan.replicas):
        for log, extents in groupby(plan.extents, key=lambda extent: extent.log):
            with LogFile(log, keep_cache=False) as log_file:
                for extent in extents:
                    _add_producers(log_file, extent, states)
    return _transactions(states)


def _add_producers(log_file: LogFile, extent: Extent, states: ProducerStates) -> None:
    """Takes the batches of an extent by the beginnings of their headers: they were read before."""
    position = extent.position
    while position < extent.end:
        raw = log_file.read(position, BATCH_HEADER_SIZE)
        if raw[MAGIC_POSITION] >= 2:
            header = parse_header(raw, 0, position, is_valid=True)
            states.add(header, read_end_marker(log_file, header) if header.is_control else None)
        position += LOG_OVERHEAD + size_field(raw, 0)


def _transactions(states: ProducerStates) -> tuple[OpenTransaction, ...]:
    return tuple(OpenTransaction(*each) for each in states.open_transactions.items())


def write_salvage(plan: Salvage, directory: Path, *, keep_cache: bool = True, topic_id: str | None = None) -> Written:
    """Writes a partition below a directory, and what fits nowhere into its lost+found.

    `keep_cache`: leave what is read of the source in the page cache. `topic_id`: the topic's, where no replica has it.

    Raises:
        WriteError: if the logs don't hold what they held when they were read.
        UnreadableError: if the disk doesn't give any more what it gave then.
        OSError: if the system can't read or write.
    """
    states = ProducerStates()
    sources: dict[Path, tuple[Path, ...]] = {}
    if plan.segments:
        target = directory / plan.name
        target.mkdir()
        states = _first_states(plan)
        for number, (base, extents) in enumerate(plan.segments):
            if number and number + 1 == len(plan.segments):
                _write_snapshot(target, base, states, plan)
            sources[target / f"{base:020}.log"] = _write_log(target / f"{base:020}.log", extents, keep_cache=keep_cache)
            write_indexes(target / f"{base:020}.log", base, states, target)
        _write_snapshot(target, plan.log_end_offset, states, plan)
        _write_leader_epochs(plan, target)
        sources |= _copy_metadata(plan, target, topic_id)
    for extent in plan.unplaced:
        folder = directory / LOST_AND_FOUND / plan.name
        folder.mkdir(parents=True, exist_ok=True)
        path = _free_name(folder / f"{extent.log.stem}-at-{extent.position}.log")
        sources[path] = _write_log(path, [extent], keep_cache=keep_cache)
    return Written(tuple(_written_files(plan.name, directory, sources)), _transactions(states))


def _written_files(name: str, directory: Path, sources: dict[Path, tuple[Path, ...]]) -> Iterator[WrittenFile]:
    for folder in (directory / name, directory / LOST_AND_FOUND / name):
        for path in sorted(folder.iterdir()) if folder.exists() else ():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            status = path.stat()
            yield WrittenFile(
                path.relative_to(directory).as_posix(),
                status.st_size,
                status.st_mtime_ns // 1_000_000,
                digest,
                sources.get(path, ()),
            )


def _free_name(path: Path) -> Path:
    """Several replicas may have a piece at the same position."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free


def _first_states(plan: Salvage) -> ProducerStates:
    """The producers before the first segment, of the snapshot there if one of the replicas has it."""
    for replica in plan.replicas:
        try:
            states = replica.partition.read_producer_states(plan.segments[0][0])
        except KsegError:
            continue
        if states is not None:
            return states
    return ProducerStates()


def _write_log(path: Path, extents: Iterable[Extent], *, keep_cache: bool) -> tuple[Path, ...]:
    """Copies extents into a new log, which gets the latest of its sources' times; gives these sources."""
    sources: dict[Path, int] = {}
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        for log, neighbours in groupby(extents, key=lambda extent: extent.log):
            sources[log] = log.stat().st_mtime_ns
            with LogFile(log, keep_cache=keep_cache) as source:
                for extent in neighbours:
                    source.copy_to(target, extent.position, extent.size)
        if sources:
            os.utime(target, ns=(max(sources.values()),) * 2)
    finally:
        os.close(target)
    return tuple(sources)


def write_indexes(log: Path, base: int, states: ProducerStates, directory: Path) -> None:
    """Writes a segment's indexes as a broker rebuilds them. Raises WriteError if the log isn't intact."""
    with LogFile(log) as log_file:
        indexes = rebuild(log_file, base, states=states)
        if indexes.damage is not None:
            raise WriteError(f"isn't what it was when it was read: {indexes.damage.detail}", log)
    stem = directory / f"{base:020}"
    stem.with_suffix(".index").write_bytes(indexes.offset_index)
    stem.with_suffix(".timeindex").write_bytes(indexes.time_index)
    if indexes.transaction_index:
        stem.with_suffix(".txnindex").write_bytes(indexes.transaction_index)


def _write_snapshot(target: Path, offset: int, states: ProducerStates, plan: Salvage) -> None:
    """The producers at an offset, if there are any or a broker kept snapshots before."""
    if not states.producers and not any(replica.partition.snapshots for replica in plan.replicas):
        return
    (target / f"{offset:020}.snapshot").write_bytes(build_producer_snapshot(states))


def _write_leader_epochs(plan: Salvage, target: Path) -> None:
    """The epochs of the batches, with the start offsets of a replica's checkpoint where it bears them out."""
    from kseg.formats.checkpoint import EpochStart, LeaderEpochCheckpoint, build_leader_epoch_checkpoint

    runs = credible_epochs([run for extent in plan.extents for run in extent.epochs])
    if not runs:
        return
    known = _known_epochs(plan)
    first = plan.segments[0][0]
    starts: list[EpochStart] = []
    for run in runs:
        start = min(run.first_offset, known.get(run.epoch, run.first_offset))
        start = max(start, first, starts[-1].start_offset + 1 if starts else first)
        if start <= run.first_offset:
            starts.append(EpochStart(run.epoch, start))
    content = build_leader_epoch_checkpoint(LeaderEpochCheckpoint(0, tuple(starts)))
    (target / LEADER_EPOCH_CHECKPOINT).write_bytes(content)


def _known_epochs(plan: Salvage) -> dict[int, int]:
    for replica in plan.replicas:
        try:
            epochs = replica.partition.read_leader_epochs()
        except KsegError:
            continue
        if epochs:
            return dict(epochs)
    return {}


def _copy_metadata(plan: Salvage, target: Path, known_id: str | None) -> dict[Path, tuple[Path, ...]]:
    """The topic's id, of the first replica whose file can be read, else the one known; intact metadata snapshots.

    Gives what was copied, and from where.
    """
    sources: dict[Path, tuple[Path, ...]] = {}
    for replica in plan.replicas:
        for snapshot in replica.metadata_snapshots:
            if not (target / snapshot.name).exists():
                copy_file(snapshot.path, target / snapshot.name)
                sources[target / snapshot.name] = (snapshot.path,)
    for replica in plan.replicas:
        try:
            topic_id = replica.partition.read_topic_id()
        except KsegError:
            continue
        content = read_small_file(replica.partition.path / PARTITION_METADATA)
        if topic_id is not None and content is not None:
            (target / PARTITION_METADATA).write_bytes(content)
            sources[target / PARTITION_METADATA] = (replica.partition.path / PARTITION_METADATA,)
            return sources
    if known_id is not None:
        (target / PARTITION_METADATA).write_bytes(build_metadata(known_id))
    return sources
