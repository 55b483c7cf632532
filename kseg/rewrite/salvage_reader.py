"""The intact data of one directory of a partition, and its losses."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from kseg import kernel
from kseg.errors import OpenError
from kseg.formats.codes import DELETE_HORIZON_MASK, MAXIMUM_RELATIVE_OFFSET, DamageKind
from kseg.index.header_scan import header_of
from kseg.kernel.contract import MOST, ROW, START
from kseg.kernel.fold_contract import Event
from kseg.log.partition import PartitionLog
from kseg.log.segments import FoundFile
from kseg.reading.batch import Batch, BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile
from kseg.rewrite.salvage_extents import (
    EpochRun,
    Extent,
    ExtentBatches,
    ExtentJoin,
    InnerProblem,
    InnerProblems,
    extent_of,
    intact_runs,
    joined_neighbours,
)
from kseg.rewrite.undone_logs import UndoneLog, UndoneLogs

PENDING = 20_000
"""Most stretches that are kept separately: the distance back at which too high an offset can be found."""
_WATCHED = (
    Event.OFFSET
    | Event.EPOCH
    | Event.SPARSE
    | Event.DELETE_HORIZON
    | Event.CONTROL
    | Event.TRANSACTIONAL
    | Event.RECORDS
)
_NOWHERE = -1
"""Value of position_bound with which the fold stops at the next batch in any case."""


class Loss(NamedTuple):
    """Bytes of a log that hold no intact batch, and the reason."""

    position: int
    size: int
    reason: str
    detail: str


class FoundLoss(NamedTuple):
    """A loss in one of the logs."""

    log: Path
    loss: Loss


class Span(NamedTuple):
    """Offsets from the first to the last one; `last` is None for an unknown end."""

    first: int
    last: int | None


class Replica:
    """The intact data of one directory of a partition.

    extents: in order of segments and positions; without misplaced ones. misplaced: intact batches whose offsets can't
    be right. losses: the rest. inner_problems: problems inside intact batches, which are kept unchanged; batches to be
    dropped are losses. metadata_snapshots: KRaft's intact ones. is_compacted: whether compaction has rewritten it.
    has_transactions: whether a batch belongs to a transaction. lost: the offsets that the losses may have had. undone:
    logs that were changed as text; all facts about them are about their copies.
    """

    def __init__(
        self,
        partition: PartitionLog,
        *,
        keep_cache: bool = True,
        drop_unreadable: bool = False,
        on_read: Callable[[int], None] | None = None,
        undo: UndoneLogs | None = None,
    ) -> None:
        """Read all logs as far as possible; `on_read` takes the size of each.

        undo: takes logs that were changed as text; without it they are lost.
        """
        self.partition = partition
        self.extents: list[Extent] = []
        self.misplaced: list[Extent] = []
        self.losses: list[FoundLoss] = []
        self.has_transactions = False
        self.lost: list[Span] = []
        self.inner_problems: list[tuple[Path, InnerProblem]] = []
        self.undone: list[UndoneLog] = []
        self.is_compacted = partition.was_compacted()
        self._drops_unreadable = drop_unreadable
        follows_loss = False
        for slot, segment in enumerate(partition.segments):
            last = partition.base_offsets[slot + 1] - 1 if slot + 1 < len(partition.segments) else None
            span = Span(segment.base_offset, last)
            try:
                with segment.open_log(keep_cache=keep_cache) as log_file:
                    follows_loss = self._read(log_file, span, undo, follows_loss=follows_loss)
            except OpenError as error:  # it has disappeared meanwhile
                loss = Loss(0, segment.size, DamageKind.UNREADABLE, f"the file {error.message}")
                self.losses.append(FoundLoss(segment.path, loss))
                self.lost.append(span)
                follows_loss = True
            if on_read is not None:
                on_read(segment.size)
        intact = (self._intact(each, undo) for each in partition.metadata_snapshots)
        self.metadata_snapshots = [each for each in intact if each is not None]

    def _read(self, log_file: LogFile, span: Span, undo: UndoneLogs | None, *, follows_loss: bool) -> bool:
        """Add the batches of a log; return whether it ends in a loss. follows_loss: whether the preceding log does."""
        notes: tuple[list[Any], ...] = (self.misplaced, self.losses, self.lost, self.inner_problems)
        counts = tuple(map(len, notes))
        reading = _ReplicaReading(self, log_file, span, drop_unreadable=self._drops_unreadable)
        extents = reading.extents(follows_loss=follows_loss)
        changed = (each.loss for each in self.losses[counts[1] :] if each.loss.reason == DamageKind.CHANGED_AS_TEXT)
        first = None if undo is None else next(changed, None)
        copied = None if undo is None or first is None else undo.copy_of(log_file, first.position)
        if copied is None:
            self.extents += extents
            return reading.ends_in_loss
        as_it_is = [noted[count:] for noted, count in zip(notes, counts, strict=True)]
        for noted, count in zip(notes, counts, strict=True):
            del noted[count:]
        own_count = len(self.extents)
        with LogFile(copied.copy) as before:
            ends_in_loss = self._read(before, span, None, follows_loss=follows_loss)
        if _batch_count(self.extents[own_count:]) >= _batch_count(extents):
            self.undone.append(copied)
            return ends_in_loss
        self.extents[own_count:] = extents
        for noted, count, own in zip(notes, counts, as_it_is, strict=True):
            noted[count:] = own
        return reading.ends_in_loss

    def leave_out(self, end: int, batches: ExtentBatches) -> list[Extent]:
        """Remove and return the batches that don't end below an offset."""
        own: list[Extent] = []
        left_out: list[Extent] = []
        for extent in self.extents:
            parts = (extent,) if extent.last_offset < end or extent.first_offset >= end else batches.of(extent)
            for part in parts:
                (own if part.last_offset < end else left_out).append(part)
        self.extents = own
        self.misplaced = [extent for extent in self.misplaced if extent.last_offset < end]
        return left_out

    def _intact(self, snapshot: FoundFile, undo: UndoneLogs | None) -> FoundFile | None:
        """Return a metadata snapshot if it is completely readable, if need be in its former state.

        The rest is a loss.
        """
        with LogFile.of_directory(snapshot.path, snapshot.size) as log_file:
            losses = [
                FoundLoss(snapshot.path, _loss(item)) for item in intact_runs(log_file) if isinstance(item, Damage)
            ]
            if undo is not None and losses and losses[0].loss.reason == DamageKind.CHANGED_AS_TEXT:
                copied = undo.copy_of(log_file, losses[0].loss.position)
                if copied is not None:
                    self.undone.append(copied)
                    size = copied.copy.stat().st_size
                    return self._intact(snapshot._replace(directory=copied.copy.parent, size=size), None)
        self.losses += losses
        return None if losses else snapshot

    @property
    def batch_count(self) -> int:
        """Intact batches."""
        return sum(extent.batch_count for extent in (*self.extents, *self.misplaced))

    def lost_bytes(self) -> dict[str, int]:
        """Return bytes lost, by reason."""
        counted: Counter[str] = Counter()
        for _, loss in self.losses:
            counted[loss.reason] += loss.size
        return dict(counted)


def _batch_count(extents: Iterable[Extent]) -> int:
    return sum(extent.batch_count for extent in extents)


def _loss(damage: Damage) -> Loss:
    return Loss(damage.position, damage.size, str(damage.kind), damage.detail)


class _ReplicaReading:
    """A log in the process of reading: its problems are noted in its replica.

    A fold passes batches that follow the preceding one, have its leader epoch, and are readable.
    """

    def __init__(self, replica: Replica, log_file: LogFile, span: Span, *, drop_unreadable: bool) -> None:
        self._replica = replica
        self._log_file = log_file
        self._base, self._last = span
        base = self._base
        self._drops_unreadable = drop_unreadable
        self._pending: list[Extent] = []
        self._most_pending = PENDING
        self._join: ExtentJoin | None = None
        self._follows_loss = False
        self._lost_from: int | None = None
        self._last_offset = base - 1
        self._fold = kernel.load().HeaderFold(_WATCHED)
        self._fold.offset_bound = min(base + MAXIMUM_RELATIVE_OFFSET + 1, MOST)
        self._fold.position_bound = _NOWHERE

    @property
    def ends_in_loss(self) -> bool:
        """True if bytes after the last batch can't be read."""
        return self._lost_from is not None

    def extents(self, *, follows_loss: bool) -> list[Extent]:
        """Read the log; `follows_loss`: the preceding log ends in a loss. Raises OpenError if it has disappeared."""
        self._follows_loss = follows_loss
        for item in with_bodies(intact_runs(self._log_file), self._log_file.size):
            if isinstance(item, Damage):
                self._lose(_loss(item))
            else:
                self._read_slice(item)
        if self._lost_from is not None:
            self._note_lost(self._lost_from, self._last)
        return self._pending if self._join is None else [*self._pending, self._join.extent()]

    def _lose(self, loss: Loss) -> None:
        self._replica.losses.append(FoundLoss(self._log_file.path, loss))
        self._begin_extent()

    def _begin_extent(self) -> None:
        """Start a new extent, because the next batch doesn't follow the previous one."""
        self._follows_loss = True
        self._lost_from = self._last_offset + 1 if self._lost_from is None else self._lost_from
        self._fold.position_bound = _NOWHERE

    def _note_lost(self, first: int, last: int | None) -> None:
        """Note the offsets between two offsets as lost; if they fall, one of them is wrong."""
        if last is not None and last < first - 1:
            first = self._base
        if last is None or last >= first:
            self._replica.lost.append(Span(first, last))

    def _read_slice(self, piece: Slice) -> None:
        run, row = piece.run, piece.first
        inside = InnerProblems(self._log_file, piece)
        while True:
            first = row
            row, _ = self._fold.fold(run.buffer, run.rows, row, piece.last, run.position, piece.bodies, piece.first)
            if row > first:
                self._add_passed(run.position + run.rows[first * ROW + START], row - first)
            if row == piece.last:
                return
            header = header_of(run, row)
            self._take(header, inside.of(row, header))
            row += 1

    def _add_passed(self, position: int, batch_count: int) -> None:
        """Add the batches that the fold has passed from a position on."""
        first_offset, epoch = self._last_offset + 1, self._fold.leader_epoch
        epochs = (EpochRun(epoch, first_offset, batch_count),) if epoch >= 0 else ()
        self._last_offset, size = self._fold.last_offset, self._fold.end - position
        log, base = self._log_file.path, self._base
        self._add(Extent(log, base, position, size, batch_count, first_offset, self._last_offset, False, epochs))

    def _take(self, header: BatchHeader, problem: InnerProblem | None) -> None:
        """Add a batch that the fold hasn't passed."""
        replica, base = self._replica, self._base
        if problem is not None and self._drops_unreadable:
            self._lose(Loss(header.position, header.size, problem.id, problem.detail))
            return
        if problem is not None:
            replica.inner_problems.append((self._log_file.path, problem))
        extent = extent_of(self._log_file, header, base, follows_loss=self._follows_loss)
        if header.base_offset is None and extent.first_offset == header.last_offset > self._last_offset + 1:
            extent = _with_offsets_from(self._log_file, header, extent, self._last_offset + 1)
        replica.is_compacted |= _was_compacted(header)
        if header.is_transactional:
            replica.has_transactions = True
            self._fold.watched = _WATCHED & ~Event.TRANSACTIONAL
        if not base <= extent.first_offset <= extent.last_offset <= base + MAXIMUM_RELATIVE_OFFSET:
            replica.misplaced.append(extent)
            self._begin_extent()
            return
        self._add(extent)
        if self._lost_from is not None:
            self._note_lost(self._lost_from, extent.first_offset - 1)
        self._follows_loss, self._lost_from, self._last_offset = False, None, extent.last_offset
        self._fold.next_offset = min(extent.last_offset + 1, MOST)
        self._fold.leader_epoch = header.partition_leader_epoch
        self._fold.position_bound = MOST

    def _add(self, extent: Extent) -> None:
        """Merge an extent with the previous one if they are adjacent."""
        join = self._join
        if join is not None and not self._follows_loss and extent.first_offset == join.last.last_offset + 1:
            join.add(extent)
            return
        self._pending += () if join is None else (join.extent(),)
        self._join = ExtentJoin(extent)
        if len(self._pending) > self._most_pending:
            kept = self._pending[-PENDING // 2 :]
            self._pending = [*joined_neighbours(self._pending[: -PENDING // 2]), *kept]
            self._most_pending = max(PENDING, 2 * len(self._pending))


def _was_compacted(header: BatchHeader) -> bool:
    """Return True if the batch has been rewritten by compaction."""
    if header.magic < 2 or header.base_offset is None or header.records_count is None:
        return False
    is_sparse = header.records_count < header.last_offset - header.base_offset + 1
    return is_sparse or bool(header.attributes & DELETE_HORIZON_MASK)


def _with_offsets_from(log_file: LogFile, header: BatchHeader, extent: Extent, expected: int) -> Extent:
    """Return the extent of a wrapper without readable messages, taken to begin where the preceding batch ends."""
    batch = Batch.parse(log_file.read(header.position, header.size), header.position, is_valid=True)
    return extent._replace(first_offset=expected) if next(batch.records(on_damage="skip"), None) is None else extent
