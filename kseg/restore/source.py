"""A partition to restore: its committed batches, in the order of its log, without markers and deleted records."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.cluster.joined_log import relist, whole_log
from kseg.cluster.replicas import PartitionReplicas
from kseg.findings.kinds import id_of_damage, status_of
from kseg.formats.codes import DamageKind
from kseg.index.header_scan import header_of
from kseg.kernel.contract import LEAST, MOST, ROW, SIZE, START, VALID, RecordFilter
from kseg.kernel.entry_points import Columns, Contents
from kseg.kernel.fold_contract import Event
from kseg.log.committed import ReadCommitted, read_committed, read_open_transactions
from kseg.log.partition import PartitionLog, was_closed
from kseg.reading.batch import BatchHeader, damages_of
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run

CHECKPOINT_SIZE = 1 << 22
"""Bytes of log between two checkpoints: the most that is read again to find an offset."""
NO_CONTENTS = Contents(0)


class LeftOut(Enum):
    """Reasons to leave records out."""

    ABORTED = "aborted"
    OPEN = "open"
    CONTROL = "control"
    DELETED = "deleted"


class SourceDamage(NamedTuple):
    """Damage of a log, in the segment at a path."""

    path: Path
    damage: Damage


class Checkpoint(NamedTuple):
    """A batch in a log, its first offset in the source, of a wrapper the last; and its first record's in the target."""

    slot: int
    position: int
    source_offset: int
    target_offset: int


@dataclass(frozen=True)
class SourcePartition:
    """A partition's log, the transactions in it, and the first unwanted timestamp (MOST without one)."""

    topic: str
    partition: int
    log: PartitionLog
    first_offset: int
    committed: ReadCommitted
    opened: Mapping[int, int]
    end_ms: int = MOST

    @property
    def name(self) -> str:
        """The name of its directories on a broker."""
        return f"{self.topic}-{self.partition}"

    def filter_of(self, piece: Slice) -> RecordFilter | None:
        """Return the filter that a slice's records need; None if all are wanted."""
        run = piece.run
        columns = kernel.load().header_columns(run.buffer, run.rows, piece.first, piece.last, run.position)
        first = LEAST if self.first_offset <= 0 else self.first_offset
        begins_before = first > LEAST and (columns.has_wrappers or _least(columns.column("base_offset")) < first)
        ends_after = self.end_ms < MOST and _most(columns.column("max_timestamp")) >= self.end_ms
        if not begins_before and not ends_after:
            return None
        return RecordFilter(first_offset=first, last_timestamp=self.end_ms - 1 if self.end_ms < MOST else MOST)


def open_source(replicas: PartitionReplicas[PartitionLog], end_ms: int | None = None) -> SourcePartition:
    """Return a partition of known number, ready to read. Raises OpenError if a log can't be opened."""
    log = whole_log(relist(replicas))
    return SourcePartition(
        replicas.topic,
        replicas.partition or 0,
        log,
        log.log_start_offset(),
        read_committed(log.segments, log),
        read_open_transactions(log),
        MOST if end_ms is None else end_ms,
    )


class Walk:
    """A walk over a partition's batches from a place on: runs of wanted batches, and damages.

    left_out: numbers of records by the reason why they are left out. missing: offsets between batches, if counted.
    """

    def __init__(
        self, source: SourcePartition, start: Checkpoint | None = None, *, counts_missing: bool = False
    ) -> None:
        """Read nothing yet; start: a checkpoint of the same log."""
        self._source, self._start = source, start
        self.left_out: Counter[LeftOut] = Counter()
        self.missing = 0
        offsets = Event.OFFSET if counts_missing else Event.FALL  # a compacted log has a gap before most batches
        self._fold = kernel.load().HeaderFold(Event.CONTROL | Event.TRANSACTIONAL | offsets)
        self._fold.passes_legacy = True
        self._fold.offset_floor = source.first_offset
        if start is not None:
            self._fold.next_offset = start.source_offset

    def logs(self) -> Iterator[tuple[int, LogFile, Iterator[Run | Damage]]]:
        """Yield each log with its slot and its items, open until the next one. Raises OpenError."""
        log = self._source.log
        first = log.floor_slot(self._source.first_offset) or 0 if self._start is None else self._start.slot
        for slot, segment in enumerate(log.segments[first:], first):
            with log.open_log(segment) as log_file:
                position = self._start.position if self._start is not None and slot == first else 0
                yield slot, log_file, self._items(log_file, position)

    def _items(self, log_file: LogFile, position: int) -> Iterator[Run | Damage]:
        for item in log_file.runs(position):
            if isinstance(item, Damage):
                yield item
            elif not item.rows[VALID]:
                yield log_file.crc_damage(item.position + item.rows[START], item.rows[SIZE])
            else:
                yield from self._select(item)

    def _select(self, run: Run) -> Iterator[Run | Damage]:
        """Yield the wanted parts of a run, and a damage for each batch whose offsets fall."""
        row = first = 0
        while row < run.row_count:
            row, events = self._fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
            if row == run.row_count:
                break
            header = header_of(run, row)
            if events & Event.GAP and not header.is_legacy:
                expected = max(self._fold.next_offset, self._source.first_offset)
                self.missing += max(header.first_offset - expected, 0)
            if events & Event.FALL and header.last_offset >= self._source.first_offset:
                yield from part_of(run, first, row)
                expected = self._fold.next_offset
                detail = f"offsets {header.first_offset} to {header.last_offset} come after offset {expected - 1}"
                yield Damage(DamageKind.BAD_RECORD, header.position, header.size, detail)
                first = row + 1
            elif (reason := self._reason_of(header)) is not None:
                self.left_out[reason] += header.records_count or 0
                yield from part_of(run, first, row)
                first = row + 1
                self._fold.take(header)
            else:
                self._fold.take(header)
            row += 1
        yield from part_of(run, first, run.row_count)

    def _reason_of(self, header: BatchHeader) -> LeftOut | None:
        if header.last_offset < self._source.first_offset:
            return LeftOut.DELETED
        if header.is_control:
            return LeftOut.CONTROL
        if not header.is_transactional:
            return None
        if self._source.committed.is_aborted(header.producer_id, header.first_offset):
            return LeftOut.ABORTED
        began = self._source.opened.get(header.producer_id)
        return LeftOut.OPEN if began is not None and began <= header.first_offset else None


def part_of(run: Run, first: int, last: int) -> Iterator[Run]:
    """Yield the rows first … last - 1 of a run, unless there are none."""
    if last > first:
        is_whole = last - first == run.row_count
        yield run if is_whole else run._replace(rows=run.rows[first * ROW : last * ROW], row_count=last - first)


@dataclass(frozen=True)
class Survey:
    """The contents of a source partition, found by reading all of it.

    size: bytes of the wanted batches. first_offset: of the first wanted record, None without any; end_offset: after the
    last one. largest: bytes of the largest batch. rebuilt: slots and positions of batches that can't be sent as they
    are stored: damaged ones, and those whose records don't have the offsets that the header says. missing: offsets
    between batches, which were compacted or lost.
    """

    records: int
    size: int
    first_offset: int | None
    end_offset: int
    largest: int
    left_out: Mapping[LeftOut, int]
    damages: tuple[SourceDamage, ...]
    checkpoints: tuple[Checkpoint, ...]
    rebuilt: frozenset[tuple[int, int]]
    missing: int = 0

    def checkpoint_at(self, target_offset: int) -> Checkpoint | None:
        """Return the last checkpoint at or before an offset of the target; None without any."""
        found = bisect_right(self.checkpoints, target_offset, key=_target_offset)
        return self.checkpoints[found - 1] if found else None


def _target_offset(checkpoint: Checkpoint) -> int:
    return checkpoint.target_offset


def _source_offset(checkpoint: Checkpoint) -> int:
    return checkpoint.source_offset


@dataclass
class _Sums:
    """The sums of a survey that has not ended."""

    records: int = 0
    size: int = 0
    first_offset: int | None = None
    end_offset: int = 0
    largest: int = 0
    since_checkpoint: int = CHECKPOINT_SIZE
    checkpoints: list[Checkpoint] = field(default_factory=list)
    damages: list[SourceDamage] = field(default_factory=list)
    rebuilt: set[tuple[int, int]] = field(default_factory=set)


class Surveyor:
    """Reads a partition completely, and yields the bytes that it has read."""

    def __init__(self, source: SourcePartition) -> None:
        """Read nothing yet."""
        self._source = source
        self._walk = Walk(source, counts_missing=True)
        self._sums = _Sums(end_offset=source.first_offset)

    def read(self) -> Iterator[int]:
        """Read the logs; yield the number of bytes after each piece. Raises OpenError."""
        for slot, log_file, items in self._walk.logs():
            for item in with_bodies(items, log_file.stored_size):
                if isinstance(item, Damage):
                    self._meet(log_file.path, item)
                else:
                    yield self._add(slot, log_file, item)

    def survey(self) -> Survey:
        """Return the contents, after all was read."""
        sums = self._sums
        return Survey(
            sums.records,
            sums.size,
            sums.first_offset,
            sums.end_offset,
            sums.largest,
            dict(self._walk.left_out),
            tuple(sums.damages),
            tuple(sums.checkpoints),
            frozenset(sums.rebuilt),
            self._walk.missing,
        )

    def _meet(self, path: Path, damage: Damage) -> None:
        """Note damage, unless it is harmless, as the zeros of a preallocated file are."""
        if status_of(id_of_damage(damage.kind, is_last=not was_closed(path))):
            self._sums.damages.append(SourceDamage(path, damage))

    def _add(self, slot: int, log_file: LogFile, piece: Slice) -> int:
        sums = self._sums
        columns = columns_of(piece, self._source.filter_of(piece))
        for damage in damages_of(piece, columns):
            sums.damages.append(SourceDamage(log_file.path, damage))
            sums.rebuilt.add((slot, damage.position))
        offsets = memoryview(columns.offsets).cast("B").cast("q")
        sizes = piece.run.rows[piece.first * ROW + SIZE : piece.last * ROW : ROW]
        size = sum(sizes)
        if columns.count:
            position = piece.run.position + piece.run.rows[piece.first * ROW + START]
            if sums.since_checkpoint >= CHECKPOINT_SIZE:
                at = 0 if log_file.is_joined else position  # a joined log has positions of several files
                if not log_file.is_joined or not sums.checkpoints or sums.checkpoints[-1].slot != slot:
                    begins = header_of(piece.run, piece.first).first_offset
                    sums.checkpoints.append(Checkpoint(slot, at, begins, sums.records))
                    sums.since_checkpoint = 0
            sums.first_offset = offsets[0] if sums.first_offset is None else sums.first_offset
            sums.end_offset = max(sums.end_offset, offsets[-1] + 1)
            sums.rebuilt.update((slot, odd) for odd in _odd_batches(piece, columns))
            sums.largest = max(sums.largest, *sizes)
            sums.size += size
        sums.since_checkpoint += size
        sums.records += columns.count
        return size


def _odd_batches(piece: Slice, columns: Columns) -> Iterator[int]:
    """Yield the positions of v2 batches without gaps whose records have other offsets than the header says.

    A broker doesn't look at the offsets in uncompressed batches, and consumers would get wrong ones.
    """
    run = piece.run
    headers = kernel.load().header_columns(run.buffer, run.rows, piece.first, piece.last, run.position)
    if headers.has_wrappers:
        return  # v0 and v1 entries are always encoded again
    spans = [*zip(*map(_numbers, map(headers.column, ("base_offset", "last_offset", "records_count"))), strict=True)]
    offsets = memoryview(columns.offsets).cast("B").cast("q")
    expected = array("q", chain.from_iterable(range(base, base + count) for base, _, count in spans))
    if expected.tobytes() == offsets.tobytes():
        return
    at = 0
    for row, (base, last, count) in enumerate(spans, piece.first):
        begins = at
        while at < len(offsets) and at < begins + count and base <= offsets[at] <= last:
            at += 1
        is_dense = count == last - base + 1
        if is_dense and offsets[begins:at].tolist() != list(range(base, last + 1)):
            yield run.position + run.rows[row * ROW + START]


def columns_of(piece: Slice, wanted: RecordFilter | None) -> Columns:
    """Return the offsets and timestamps of a slice's records, without their contents."""
    run = piece.run
    return kernel.load().columns(
        run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, wanted, piece.first, NO_CONTENTS
    )


def translate(source: SourcePartition, survey: Survey, offset: int) -> int:
    """Return the offset in the target of the first restored record at or after an offset; else the target's end.

    Reads at most one stretch between two checkpoints. Raises OpenError.
    """
    if offset >= survey.end_offset:
        return survey.records
    if survey.first_offset is None or offset <= survey.first_offset:
        return 0
    found = bisect_right(survey.checkpoints, offset, key=_source_offset)
    start = survey.checkpoints[found - 1] if found else None
    target = 0 if start is None else start.target_offset
    for _, log_file, items in Walk(source, start).logs():
        for piece in with_bodies(items, log_file.stored_size):
            if isinstance(piece, Damage):
                continue
            wanted = (source.filter_of(piece) or RecordFilter())._replace(last_offset=offset - 1)
            target += columns_of(piece, wanted).count
            if header_of(piece.run, piece.last - 1).last_offset >= offset - 1:
                return target
    return target


def _numbers(column: object) -> list[int]:
    return memoryview(column).cast("B").cast("q").tolist()  # type: ignore[arg-type]


def _least(column: object) -> int:
    return min(_numbers(column))


def _most(column: object) -> int:
    return max(_numbers(column))
