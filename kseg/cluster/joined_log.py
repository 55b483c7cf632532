"""A log of the best copy of a partition, read together with the others: what it lost comes from them, in its place."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from kseg.cluster.replicas import Copy, PartitionReplicas
from kseg.errors import OpenError, counted
from kseg.kernel.contract import ROW, SIZE, START, VALID, new_rows
from kseg.log.partition import PartitionLog
from kseg.log.segment_search import SegmentStep, seek_offset
from kseg.log.segments import SegmentFiles
from kseg.log.selected_records import SelectedLog, logs_of_partition
from kseg.log.selection import Selection
from kseg.reading.batch import Batch, BatchHeader, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.log_file import BUFFER_SIZE, LogFile, Run

Say = Callable[[str], None]


def joined_logs(
    replicas: PartitionReplicas[PartitionLog], selection: Selection, say: Say, left: int | None = None
) -> Iterator[SelectedLog]:
    """The logs of a partition that may hold selected records, as in `logs_of_partition`, with holes filled."""
    if len(replicas.copies) == 1:
        yield from logs_of_partition(replicas.best.as_it_is(), selection, say, left)
        return
    best, *others = replicas.copies
    copies = JoinedCopies((replace(best, place=best.place.as_it_is()), *others), say)
    yield from logs_of_partition(copies.place, selection, say, left, copies.open_log)


class JoinedCopies:
    """The copies that answer for a partition, the best one first, each of whose logs can be opened as if it were whole.

    Batches come from another copy only where the best one has damage, or lacks offsets between its batches or segments
    that compaction didn't take; and only as far as the copies agree.
    """

    def __init__(self, copies: Sequence[Copy[PartitionLog]], say: Say) -> None:
        """Reads nothing yet. `say` is called with what a log lost, and where it was read instead."""
        self._copies = copies
        self.place = copies[0].place
        self._say = say
        self._said: set[str] = set()

    @cached_property
    def is_compacted(self) -> bool:
        """Whether offsets may be missing that nothing was lost at."""
        return any(copy.place.was_compacted() for copy in self._copies)

    @cached_property
    def _others(self) -> "JoinedCopies | None":
        return JoinedCopies(self._copies[1:], _say_nothing) if len(self._copies) > 1 else None

    @cached_property
    def _further_end(self) -> int:
        """The offset up to which any of the others goes, as far as it agrees; -1 if none is known."""
        ends = ((copy.log_end, copy.agreed_end) for copy in self._copies[1:])
        return max((min(end, end if agreed is None else agreed) for end, agreed in ends if end is not None), default=-1)

    def open_log(self, path: Path, limit: int | None = None, *, buffer_size: int = BUFFER_SIZE) -> LogFile:
        """A log of the best copy; one that isn't of its segments as it is. Raises OpenError as LogFile does."""
        slot = next((n for n, each in enumerate(self.place.segments) if each.path.name == path.name), None)
        if slot is None or self._others is None:
            return LogFile(path, limit, buffer_size=buffer_size)
        log_file = _JoinedLog.of_directory(path, self.place.segments[slot].size, limit, buffer_size=buffer_size)
        log_file.join(self, slot)
        return log_file

    def say_once(self, line: str) -> None:
        """Says what was read instead of a log that may be read several times."""
        if line not in self._said:
            self._said.add(line)
            self._say(line)

    def bounds(self, slot: int) -> tuple[int, int | None]:
        """The first and the last offset for which a segment stands; None for the last one's end."""
        bases = self.place.base_offsets
        first = bases[slot] if slot else min(0, *bases[:1])
        return first, bases[slot + 1] - 1 if slot + 1 < len(bases) else None

    def instead(self, hole: "_Hole") -> Iterator[Run | Damage]:
        """What the others have of a hole; then the damage that is there, unless all of it was found."""
        others = self._others
        assert others is not None
        target = self._further_end - 1 if hole.last is None else hole.last
        following = hole.first
        is_whole = target >= following
        for item in others._runs_between(hole.first, target) if is_whole else ():
            if isinstance(item, Damage):
                is_whole &= not self.is_compacted
                continue
            is_whole &= self.is_compacted or _first_offset(item) == following
            following = _last_header(item).last_offset + 1
            yield item
        hole.end = following
        if not (is_whole and (self.is_compacted or following > target)):
            yield from hole.found

    def _runs_between(self, first: int, last: int) -> Iterator[Run | Damage]:
        """The intact batches from one offset to another, and damages on the way; each batch in a run of its own."""
        agreed = self._copies[0].agreed_end
        last = last if agreed is None else min(last, agreed - 1)
        start = max(bisect_right(self.place.base_offsets, first) - 1, 0)
        for segment in self.place.segments[start:]:
            if segment.base_offset > last:
                return
            try:
                log_file = self.open_log(segment.path)
            except OpenError:
                continue
            with log_file:
                yield from _runs_within(log_file, segment, first, last)


def _runs_within(log_file: LogFile, segment: SegmentFiles, first: int, last: int) -> Iterator[Run | Damage]:
    step = SegmentStep(segment)
    seek_offset(log_file, step, first, [])
    following = segment.base_offset
    for item in log_file.runs(step.scan_position):
        if isinstance(item, Damage) or not item.rows[VALID]:
            if following >= first:
                yield _as_damage(log_file, item)
            continue
        for row in range(item.row_count):
            run = _only_row(item, row)
            following = _last_header(run).last_offset + 1
            if following > last + 1:
                return
            if _first_offset(run) >= first:
                yield run


class _Hole:
    """What lies between two intact batches of a log: damages, and runs of batches whose CRC is wrong.

    first, last: the offsets that are missing; None if no batch follows. end: up to which others had them.
    """

    def __init__(self) -> None:
        self.first = self.end = 0
        self.last: int | None = None
        self.found: list[Run | Damage] = []


class _JoinedLog(LogFile):
    """A log of the best copy; where it has lost batches, those of others come in their place."""

    def join(self, joined: JoinedCopies, slot: int) -> None:
        """Takes the copies, and which of the best one's segments this is."""
        self._joined, self._slot = joined, slot
        self._filled: set[tuple[int, int]] = set()

    def close(self) -> None:
        """Closes the file, and says what was read instead of it."""
        super().close()
        if self._filled:
            count = sum(end - first for first, end in self._filled)
            offsets = counted(count, "offset")
            self._joined.say_once(f"{self.path}: {offsets} that it has lost are read from other copies")

    def runs(self, start: int = 0) -> Iterator[Run | Damage]:
        """As a log's, with what other copies have of its holes. Positions in them are those of the other log."""
        expected, last = self._joined.bounds(self._slot)
        is_known = start == 0
        hole = _Hole()
        for item in super().runs(start):
            if isinstance(item, Damage) or not item.rows[VALID]:
                hole.found.append(_kept(item))
                continue
            first = _first_offset(item)
            if hole.found and not is_known:
                expected = max(expected, self._offset_at(start))
            if hole.found or (is_known and first > expected and not self._joined.is_compacted):
                yield from self._instead(hole, expected, first - 1)
                hole = _Hole()
            yield item
            expected, is_known = _last_header(item).last_offset + 1, True
        if self.size < self.file_size or not (is_known or hole.found):
            yield from hole.found
            return
        if not is_known:
            expected = max(expected, self._offset_at(start))
        if hole.found or last is None or (last >= expected and not self._joined.is_compacted):
            yield from self._instead(hole, expected, last)

    def _instead(self, hole: _Hole, first: int, last: int | None) -> Iterator[Run | Damage]:
        hole.first, hole.last = first, last
        yield from self._joined.instead(hole)
        if hole.end > first:
            self._filled.add((first, hole.end))

    def _offset_at(self, start: int) -> int:
        """The offset after the intact batches before a position; -1 if there are none."""
        end = -1
        for item in super().runs():
            if isinstance(item, Run) and item.rows[VALID]:
                for row in range(item.row_count):
                    header = _header(item, row)
                    if header.position >= start:
                        return end
                    end = header.last_offset + 1
        return end


def _kept(item: Run | Damage) -> Run | Damage:
    """An item that stays as it is while others are read: a run's buffer doesn't."""
    if isinstance(item, Damage):
        return item
    return item._replace(buffer=memoryview(bytes(item.buffer)), rows=item.rows[: item.row_count * ROW])


def _as_damage(log_file: LogFile, item: Run | Damage) -> Damage:
    if isinstance(item, Damage):
        return item
    return log_file.crc_damage(item.position + item.rows[START], item.rows[SIZE])


def _only_row(run: Run, row: int) -> Run:
    rows = new_rows(0)
    rows.extend(run.rows[row * ROW : (row + 1) * ROW])
    return run._replace(rows=rows, row_count=1)


def _header(run: Run, row: int) -> BatchHeader:
    start = run.rows[row * ROW + START]
    return parse_header(run.buffer, start, run.position + start)


def _last_header(run: Run) -> BatchHeader:
    return _header(run, run.row_count - 1)


def _first_offset(run: Run) -> int:
    """The first offset of a run's first batch; a wrapper's own is in its messages."""
    header = _header(run, 0)
    if header.base_offset is not None:
        return header.base_offset
    start = run.rows[START]
    raw = bytes(run.buffer[start : start + run.rows[SIZE]])
    first = Batch.parse(raw, header.position, is_valid=True).base_offset
    return header.last_offset if first is None else first


def _say_nothing(_: str) -> None:
    """What a further copy lost is said of the best one."""
