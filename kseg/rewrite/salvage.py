"""Salvage of partitions: writes logs, indexes, snapshots and epochs, and reports the saved data."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import LOST_AND_FOUND
from kseg.cluster.metadata_copy import TopicIds
from kseg.cluster.replicas import PartitionReplicas, topic_id_of
from kseg.errors import FileError, UnreadableError
from kseg.index.header_scan import events, header_runs
from kseg.index.producers import ProducerStates, build_producer_snapshot, end_marker_in
from kseg.index.rebuild import rebuild
from kseg.kernel.fold_contract import Event
from kseg.log.partition import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, PartitionLog, read_small_file
from kseg.log.selection import PartitionChoice
from kseg.log.side_files import build_metadata
from kseg.log.transaction_snapshots import carried_transactions
from kseg.log.transactions import Outcome
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.rewrite.lost_markers import LostEnd
from kseg.rewrite.salvage_extents import Extent, credible_epochs
from kseg.rewrite.salvage_plan import Salvage, plan_salvage
from kseg.rewrite.undone_logs import UndoneLogs
from kseg.store.target import check_absent, check_outside, new_directory
from kseg.system.new_directory import WriteError, copy_file, write_whole


class OpenTransaction(NamedTuple):
    """A transaction that no kept marker ends; outcome: its outcome by other evidence."""

    producer_id: int
    first_offset: int
    outcome: Outcome


class WrittenFile(NamedTuple):
    """A file that salvage wrote: its name below the new directory, bytes, SHA-256 in hex, and its modification time.

    modified_ms: milliseconds since 1970; of a log, the latest modification of its sources. sources: the files that it
    was copied from; none for a rebuilt file.
    """

    name: str
    size: int
    modified_ms: int
    sha256: str
    sources: tuple[Path, ...]


class Written(NamedTuple):
    """The files that salvage wrote for a partition, and the transactions that stay open in it."""

    files: tuple[WrittenFile, ...] = ()
    transactions: tuple[OpenTransaction, ...] = ()


def open_transactions(plan: Salvage) -> tuple[OpenTransaction, ...]:
    """Return the transactions that stay open in a plan's kept batches.

    Raises OpenError if a log can't be opened or read.
    """
    states = _first_states(plan) if plan.segments else ProducerStates()
    if any(replica.has_transactions for replica in plan.replicas):
        for _, pieces in plan.pieces:
            for log, neighbours in groupby(pieces, key=_log_of):
                if log is None:
                    for lost in neighbours:
                        assert isinstance(lost, LostEnd)
                        states.add(lost.header, lost.marker)
                    continue
                with LogFile(log, keep_cache=False) as log_file:
                    for extent in neighbours:
                        assert isinstance(extent, Extent)
                        _add_producers(log_file, extent, states)
    return _transactions(states, plan)


def _log_of(piece: Extent | LostEnd) -> Path | None:
    return None if isinstance(piece, LostEnd) else piece.log


def _add_producers(log_file: LogFile, extent: Extent, states: ProducerStates) -> None:
    """Add the batches of an extent by their headers: they were read before."""
    fold = kernel.load().HeaderFold(Event.PRODUCER | Event.CONTROL, states.producers.table)
    fold.passes_legacy, fold.position_bound = True, extent.end - 1
    for item in header_runs(log_file, extent.position):
        if isinstance(item, Damage) or item.position >= extent.end:
            return
        for header, _ in events(fold, item):
            if header.position >= extent.end:
                return
            states.add(header, end_marker_in(item, log_file, header) if header.is_control else None)


def _transactions(states: ProducerStates, plan: Salvage) -> tuple[OpenTransaction, ...]:
    known = {(each.producer_id, each.first_offset): each.outcome for each in plan.lost_ends}
    return tuple(OpenTransaction(*each, known.get(each, Outcome.OPEN)) for each in states.open_transactions.items())


def write_salvage(plan: Salvage, directory: Path, *, keep_cache: bool = True, topic_id: str | None = None) -> Written:
    """Write a partition below a directory, and batches that fit nowhere into its lost+found.

    `keep_cache`: leave the source's read data in the page cache. `topic_id`: the topic's, if no replica has it.

    Raises:
        WriteError: if the logs have changed since they were planned.
        UnreadableError: if the disk has lost data since then.
        OSError: if the system can't read or write.
    """
    states = ProducerStates()
    sources: dict[Path, tuple[Path, ...]] = {}
    if plan.segments:
        target = directory / plan.name
        target.mkdir()
        states = _first_states(plan)
        for number, (base, pieces) in enumerate(plan.pieces):
            if number and number + 1 == len(plan.segments):
                _write_snapshot(target, base, states, plan)
            sources[target / f"{base:020}.log"] = _write_log(target / f"{base:020}.log", pieces, keep_cache=keep_cache)
            write_indexes(target / f"{base:020}.log", base, states, target)
        _write_snapshot(target, plan.log_end_offset, states, plan)
        _write_leader_epochs(plan, target)
        sources |= _copy_metadata(plan, target, topic_id)
    for extent in plan.unplaced:
        folder = directory / LOST_AND_FOUND / plan.name
        folder.mkdir(parents=True, exist_ok=True)
        path = _free_name(folder / f"{extent.log.stem}-at-{extent.position}.log")
        sources[path] = _write_log(path, [extent], keep_cache=keep_cache)
    originals = {each.copy: each.log for each in plan.undone}
    sources = {path: tuple(originals.get(each, each) for each in read) for path, read in sources.items()}
    return Written(tuple(_written_files(plan.name, directory, sources)), _transactions(states, plan))


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
    """Return a path that is free: several replicas may have a piece at the same position."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free


def _first_states(plan: Salvage) -> ProducerStates:
    """Return the producers before the first segment, from the snapshot there if one of the replicas has it.

    Of its transactions from before the log, only those are open that the walk considers open.
    """
    for replica in plan.replicas:
        try:
            states = replica.partition.read_producer_states(plan.segments[0][0])
        except FileError:
            continue
        if states is not None:
            carried = carried_transactions(replica.partition)
            doubtful = carried.begun.keys() - carried.confirmed
            return ProducerStates(
                state._replace(current_txn_first_offset=-1) if state.producer_id in doubtful else state
                for state in states.producers.values()
            )
    return ProducerStates()


def _write_log(path: Path, pieces: Iterable[Extent | LostEnd], *, keep_cache: bool) -> tuple[Path, ...]:
    """Copy extents and new markers into a log, with the latest modification time of its sources.

    Returns these sources.
    """
    sources: dict[Path, int] = {}
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        for log, neighbours in groupby(pieces, key=_log_of):
            if log is None:
                write_whole(target, b"".join(piece.content for piece in neighbours if isinstance(piece, LostEnd)))
                continue
            sources[log] = log.stat().st_mtime_ns
            with LogFile(log, keep_cache=keep_cache) as source:
                for piece in neighbours:
                    assert isinstance(piece, Extent)
                    source.copy_to(target, piece.position, piece.size)
        if sources:
            os.utime(target, ns=(max(sources.values()),) * 2)
    finally:
        os.close(target)
    return tuple(sources)


def write_indexes(log: Path, base: int, states: ProducerStates, directory: Path) -> None:
    """Rebuild the indexes of a segment like a broker would. Raises WriteError if the log isn't intact."""
    with LogFile(log) as log_file:
        indexes = rebuild(log_file, base, states=states)
        if indexes.damage is not None:
            raise WriteError(f"changed while kseg was reading it: {indexes.damage.detail}; run the command again", log)
    stem = directory / f"{base:020}"
    stem.with_suffix(".index").write_bytes(indexes.offset_index)
    stem.with_suffix(".timeindex").write_bytes(indexes.time_index)
    if indexes.transaction_index:
        stem.with_suffix(".txnindex").write_bytes(indexes.transaction_index)


def _write_snapshot(target: Path, offset: int, states: ProducerStates, plan: Salvage) -> None:
    """Write the producers at an offset, if there are any or a broker kept snapshots before."""
    if not states.producers and not any(replica.partition.snapshots for replica in plan.replicas):
        return
    (target / f"{offset:020}.snapshot").write_bytes(build_producer_snapshot(states))


def _write_leader_epochs(plan: Salvage, target: Path) -> None:
    """Write the epochs of the batches, with start offsets from a replica's checkpoint where these match."""
    from kseg.formats.checkpoints import EpochStart, LeaderEpochCheckpoint, build_leader_epoch_checkpoint

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
        except FileError:
            continue
        if epochs:
            return dict(epochs)
    return {}


def _copy_metadata(plan: Salvage, target: Path, known_id: str | None) -> dict[Path, tuple[Path, ...]]:
    """Copy the topic id and intact metadata snapshots.

    The id comes from the first readable file of a replica; otherwise it is the known one. Returns the copied files with
    their sources.
    """
    sources: dict[Path, tuple[Path, ...]] = {}
    for replica in plan.replicas:
        for snapshot in replica.metadata_snapshots:
            if not (target / snapshot.name).exists():
                copy_file(snapshot.path, target / snapshot.name)
                sources[target / snapshot.name] = (snapshot.path,)
    for replica in plan.replicas:
        if topic_id_of(replica.partition) is None:
            continue
        content = read_small_file(replica.partition.path / PARTITION_METADATA)
        if content is not None:
            (target / PARTITION_METADATA).write_bytes(content)
            sources[target / PARTITION_METADATA] = (replica.partition.path / PARTITION_METADATA,)
            return sources
    if known_id is not None:
        (target / PARTITION_METADATA).write_bytes(build_metadata(known_id))
    return sources


ATTEMPTS = 5
"""Most attempts to plan a partition whose disk loses blocks between planning and writing."""


class SalvageOrder(NamedTuple):
    """A partition to salvage, and its topic id if its copies may have lost it."""

    partition: PartitionReplicas[PartitionLog]
    topic_id: str | None

    @property
    def size(self) -> int:
        """Bytes of all copies' logs."""
        return sum(place.size for place in self.partition.places)


class SalvageTargets(NamedTuple):
    """New directories: for saved data, and for data that the cluster had abandoned; None: not written."""

    directory: Path | None
    diverged: Path | None = None


class Salvaged(NamedTuple):
    """The data of a partition that can be saved, and the files written for it."""

    plan: Salvage
    written: Written

    @property
    def is_whole(self) -> bool:
        """True if nothing is lost, and no unreadable data stays."""
        return self.plan.is_whole


def salvage_orders(
    partitions: Iterable[PartitionReplicas[PartitionLog]], topic_ids: TopicIds | None
) -> Iterator[SalvageOrder]:
    """Yield the orders for the partitions that have a copy; topic_ids: None if nothing is written."""
    for each in partitions:
        if each.copies:
            yield SalvageOrder(each, None if topic_ids is None else topic_ids.lost_by(each.best))


def salvage_order(
    order: SalvageOrder,
    targets: SalvageTargets,
    *,
    drop_unreadable: bool,
    keep_cache: bool = True,
    on_read: Callable[[int], None] | None = None,
) -> Salvaged:
    """Plan as `plan_salvage` does, and write below directories; without the first nothing is written.

    If a block was readable for the plan and isn't any more, the partition is planned again: disks continue to fail.
    Raises as `plan_salvage` and `write_salvage`.
    """
    with UndoneLogs() as undo:

        def make_plan(told: Callable[[int], None] | None) -> Salvage:
            return plan_salvage(
                order.partition, keep_cache=keep_cache, drop_unreadable=drop_unreadable, on_read=told, undo=undo
            )

        return _salvage_once(order, targets, make_plan, keep_cache=keep_cache, on_read=on_read)


def _salvage_once(
    order: SalvageOrder,
    targets: SalvageTargets,
    planned: Callable[[Callable[[int], None] | None], Salvage],
    *,
    keep_cache: bool,
    on_read: Callable[[int], None] | None,
) -> Salvaged:
    directory = targets.directory
    if directory is None:
        plan = planned(on_read)
        return Salvaged(plan, Written((), open_transactions(plan)))
    for attempt in range(ATTEMPTS):
        plan = planned(None if attempt else on_read)
        try:
            written = write_salvage(plan, directory, keep_cache=keep_cache, topic_id=order.topic_id)
            if targets.diverged is not None:
                for each in plan.abandoned:
                    apart = targets.diverged / each.owner
                    apart.mkdir(exist_ok=True)
                    write_salvage(each.batches, apart, keep_cache=keep_cache, topic_id=order.topic_id)
            return Salvaged(plan, written)
        except UnreadableError:
            for folder in _written_for(plan, targets):
                shutil.rmtree(folder, ignore_errors=True)
            if attempt + 1 == ATTEMPTS:
                raise
    raise AssertionError


def _written_for(plan: Salvage, targets: SalvageTargets) -> Iterator[Path]:
    """Yield the directories to create for a partition."""
    if targets.directory is not None:
        yield from (targets.directory / plan.name, targets.directory / LOST_AND_FOUND / plan.name)
    if targets.diverged is not None:
        yield from (targets.diverged / each.owner / plan.name for each in plan.abandoned)


def salvage_into(
    paths: Sequence[Path], directory: Path | None, *, choice: PartitionChoice, drop_unreadable: bool
) -> tuple[Salvaged, ...]:
    """Salvage the chosen partitions at the given paths into a new directory; without one nothing is written.

    Raises:
        UsageError: the directory exists, or is inside an input.
        OpenError: a path can't be listed, or a file can't be opened.
        WriteError: something can't be written; the directory is then removed.
    """
    if directory is not None:
        check_absent(directory)
        check_outside(directory, paths)
    cluster = Cluster(paths)
    partitions = cluster.partitions(choice)
    with nullcontext() if directory is None else new_directory(directory, paths) as unfinished:
        orders, targets = salvage_orders(partitions, TopicIds(cluster)), SalvageTargets(unfinished)
        return tuple(salvage_order(order, targets, drop_unreadable=drop_unreadable) for order in orders)
