"""A log of a partition's best copy, with its lost batches read from the other copies."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.cluster.replicas import Copy, CopyStatus, PartitionReplicas, are_gapless
from kseg.errors import OpenError, plural
from kseg.kernel.contract import ROW, SIZE, START, VALID, new_rows
from kseg.log.partition import PartitionLog, remote_tier_of
from kseg.log.segment_search import SegmentStep, seek_offset
from kseg.log.selection import Selection
from kseg.reading.batch import Batch, BatchHeader, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.log_file import BUFFER_SIZE, LogFile, Run
from kseg.system.placed_path import StrPath, as_given

if TYPE_CHECKING:
    from kseg.log.selected_records import SelectedLog

Say = Callable[[str], None]
MOST_KEPT, MOST_KEPT_SIZE = 1000, 8 << 20
"""The most damages, and the most bytes of batches with a wrong CRC, that wait for batches of other copies."""


def joined_logs(
    replicas: PartitionReplicas[PartitionLog], selection: Selection, say: Say, left: int | None = None
) -> "Iterator[SelectedLog]":
    """Yield the logs of a partition that may hold selected records, like `logs_of_partition`, with holes filled."""
    from kseg.log.selected_records import logs_of_partition  # a lookup doesn't need it

    listed = relist(replicas)
    if len(listed.copies) == 1:
        yield from logs_of_partition(listed.best, selection, say, left)
        return
    copies = JoinedCopies(listed.copies, say)
    yield from logs_of_partition(copies.whole, selection, say, left, copies.open_log)


def first_offset(replicas: PartitionReplicas[PartitionLog], selection: Selection) -> int | None:
    """Return the offset of the first wanted record in the logs with holes filled, or None if it doesn't exist.

    Raises OpenError if a log can't be opened.
    """
    for log in joined_logs(replicas, selection._replace(limit=1), _say_nothing):
        for piece in log.intact_slices(lambda _: None):
            for record in log.picker.pick(piece):
                return record.offset
    return None


def relist(replicas: PartitionReplicas[PartitionLog]) -> PartitionReplicas[PartitionLog]:
    """Return the copies with the present files of the best one. Raises OpenError if its directory was deleted."""
    best, *others = replicas.copies
    return replace(replicas, copies=(replace(best, place=best.place.relist()), *others))


def whole_log(replicas: PartitionReplicas[PartitionLog]) -> PartitionLog:
    """Return the copy that answers; its logs are opened with the other copies' batches in their holes."""
    return replicas.best if len(replicas.copies) == 1 else JoinedCopies(replicas.copies, _say_nothing).whole


def joined_at(directory: Path, others: Iterable[tuple[StrPath, int | None]]) -> PartitionLog:
    """Return a copy whose logs are opened with the batches of others, by their paths and agreed ends, if found here.

    Raises OpenError if the directory can't be listed.
    """
    own = Copy(PartitionLog(directory), as_given(directory), None, None, CopyStatus.CURRENT)
    copies = [own]
    for path, agreed_end in others:
        with suppress(OpenError):
            place = PartitionLog(path)
            end = place.read_log_end_offset()
            copies.append(Copy(place, path, None, None, CopyStatus.CURRENT, agreed_end, log_end=end))
    return JoinedCopies(copies, _say_nothing).whole if len(copies) > 1 else own.place


class JoinedCopies:
    """The valid copies of a partition, best copy first. Every log can be opened as if it were complete.

    Batches come from another copy only where the best one has damage, or lacks offsets between its batches or segments
    that compaction didn't remove; and only as far as the copies agree.
    """

    def __init__(
        self, copies: Sequence[Copy[PartitionLog]], say: Say, of: Sequence[Copy[PartitionLog]] | None = None
    ) -> None:
        """Read nothing yet. `say` is called with a log's losses, and the copies that replaced them.

        of: all copies of the partition, if the first ones aren't among `copies`.
        """
        self._copies, self._all = copies, of or copies
        self.place = copies[0].place
        self._say = say
        self._reported_lines: set[str] = set()

    @cached_property
    def whole(self) -> PartitionLog:
        """The best copy, whose logs are opened together with the others'."""
        whole = copy(self.place)
        whole.open_whole = self.open_log
        return whole

    @cached_property
    def is_compacted(self) -> bool:
        """True if offsets may be missing without any loss."""
        return not are_gapless(self._all)

    @cached_property
    def first_kept(self) -> int:
        """Return the first offset that the broker kept on its disk."""
        tier = remote_tier_of(self.place, None)
        return 0 if tier is None else tier.local_start_offset

    @cached_property
    def _others(self) -> "JoinedCopies | None":
        return JoinedCopies(self._copies[1:], _say_nothing, self._all) if len(self._copies) > 1 else None

    @cached_property
    def further_end(self) -> int:
        """The largest end of the others, as far as they agree, or -1 if none is known."""
        ends = ((copy.log_end, copy.agreed_end) for copy in self._copies[1:])
        return max((min(end, end if agreed is None else agreed) for end, agreed in ends if end is not None), default=-1)

    def open_log(self, path: Path, limit: int | None = None, *, buffer_size: int = BUFFER_SIZE) -> LogFile:
        """Open a log of the best copy. Other logs are opened unchanged.

        Raises OpenError like LogFile.
        """
        slot = self._slots.get(path.name)
        if slot is None or self._others is None:
            return LogFile(path, limit, buffer_size=buffer_size)
        log_file = _JoinedLog.of_directory(path, self.place.segments[slot].size, limit, buffer_size=buffer_size)
        log_file.join(self, self._others, slot)
        return log_file

    @cached_property
    def _slots(self) -> dict[str, int]:
        return {segment.path.name: slot for slot, segment in enumerate(self.place.segments)}

    def say_once(self, line: str) -> None:
        """Report a replacement of a log that may be read several times, once."""
        if line not in self._reported_lines:
            self._reported_lines.add(line)
            self._say(line)

    def bounds(self, slot: int) -> tuple[int, int | None]:
        """Return the first and last offset of a segment. The last offset of the last segment is None.

        The first segment's range includes earlier offsets only if nothing was compacted.
        """
        bases = self.place.base_offsets
        first = bases[slot] if slot or bases[slot] <= 0 or self.is_compacted else 0
        return first, bases[slot + 1] - 1 if slot + 1 < len(bases) else None

    def batches_from(self, first: int) -> Iterator[Run | Damage]:
        """Yield the intact batches from about an offset on, each in its own run, and damages.

        Other copies give the batches before the first one's log, and after the end of its agreement, while they agree.
        """
        bases, others = self.place.base_offsets, self._others
        following = first
        if others is not None and bases and first < bases[0] and self.is_compacted:
            for item in others.batches_from(first):
                if not isinstance(item, Damage):
                    following = _last_header(item).last_offset + 1
                    if following > bases[0]:
                        break
                yield item
        for item in self._own_batches_from(first):
            if not isinstance(item, Damage):
                following = _last_header(item).last_offset + 1
            yield item
        if others is not None and (not bases or self._copies[0].agreed_end is not None):
            for item in others.batches_from(following):
                if isinstance(item, Damage) or _first_offset(item) >= following:
                    yield item

    def _own_batches_from(self, first: int) -> Iterator[Run | Damage]:
        """Yield the same of the first copy, with the others' batches in its holes."""
        agreed = self._copies[0].agreed_end
        start = max(bisect_right(self.place.base_offsets, first) - 1, 0)
        for segment in self.place.segments[start:]:
            if agreed is not None and segment.base_offset >= agreed:
                return
            try:
                log_file = self.open_log(segment.path)
            except OpenError:
                continue
            with log_file:
                step = SegmentStep(segment)
                if segment.base_offset < first:
                    seek_offset(log_file, step, first, [])
                for item in _batches(log_file, step.scan_position):
                    if agreed is not None and not isinstance(item, Damage) and _last_header(item).last_offset >= agreed:
                        return
                    yield item


class _OtherBatches:
    """The batches of other copies in ranges of offsets, each above the previous one: the copies are read once."""

    def __init__(self, others: JoinedCopies, first: int) -> None:
        self._items = others.batches_from(first)
        self._ahead: Run | None = None
        self._following = -1

    def batches_between(self, first: int, last: int) -> Iterator[Run | Damage]:
        """Yield the batches from one offset to another, and damages that may have held some of these."""
        while (item := self._ahead or next(self._items, None)) is not None:
            self._ahead = None
            if isinstance(item, Damage):
                if self._following >= first:
                    yield item
                continue
            following = _last_header(item).last_offset + 1
            if following > last + 1:
                self._ahead = item
                return
            self._following = following
            if _first_offset(item) >= first:
                yield item

    def close(self) -> None:
        """Close the log that is being read."""
        if isinstance(self._items, Generator):
            self._items.close()


class _Hole:
    """The part between two intact batches of a log: damages, and runs of batches with a wrong CRC.

    is_open: there was any. found: the items not yielded so far.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.found: list[Run | Damage] = []
        self._size = 0

    def take(self, item: Run | Damage) -> Iterator[Run | Damage]:
        """Keep an item until the others' batches in its place are known; yield items beyond the limit."""
        self.is_open = True
        if not isinstance(item, Damage):
            start, size = item.rows[START], item.rows[SIZE]
            content = memoryview(bytes(item.buffer[start : start + size]))
            item = item._replace(buffer=content, position=item.position + start, rows=array("q", (0, size, 0)))
            self._size += size
        self.found.append(item)
        if len(self.found) == MOST_KEPT or self._size > MOST_KEPT_SIZE:
            yield from self.found
            self.found.clear()
            self._size = 0


class _JoinedLog(LogFile):
    """A log of the best copy with missing batches filled in from other copies."""

    is_joined = True

    def join(self, joined: JoinedCopies, others: JoinedCopies, slot: int) -> None:
        """Take the copies, and the slot of the best one's segment."""
        self._joined_copies, self._others, self._slot = joined, others, slot
        self._filled_ranges: set[tuple[int, int]] = set()

    def close(self) -> None:
        """Close the file, and report its replacements."""
        super().close()
        lost = [(first, end) for first, end in self._filled_ranges if first >= self._joined_copies.first_kept]
        if lost:
            offsets = plural(sum(end - first for first, end in lost), "offset")
            self._joined_copies.say_once(f"{self.path}: has lost {offsets}, which kseg reads from other copies")

    def runs(self, start: int = 0) -> Iterator[Run | Damage]:
        """Yield the runs of a log with other copies' batches in its holes.

        Their positions are those of the other log.
        """
        with _Filling(self._joined_copies, self._others, self._filled_ranges) as filling:
            yield from self._filled_runs(start, filling)

    def _filled_runs(self, start: int, filling: "_Filling") -> Iterator[Run | Damage]:
        expected, last = self._joined_copies.bounds(self._slot)
        is_known = start == 0
        hole = _Hole()
        for item in super().runs(start):
            if isinstance(item, Damage) or not item.rows[VALID]:
                yield from hole.take(item)
                continue
            first = _first_offset(item)
            if hole.is_open and not is_known:
                expected = max(expected, self._offset_at(start))
            if hole.is_open or (is_known and first > expected and not self._joined_copies.is_compacted):
                yield from filling.instead(hole, expected, first - 1)
                hole = _Hole()
            yield item
            expected, is_known = _last_header(item).last_offset + 1, True
        if self.size < self.file_size or not (is_known or hole.is_open):
            yield from hole.found
            return
        if not is_known:
            expected = max(expected, self._offset_at(start))
        if hole.is_open or last is None or (last >= expected and not self._joined_copies.is_compacted):
            yield from filling.instead(hole, expected, self._joined_copies.further_end - 1 if last is None else last)

    def _offset_at(self, start: int) -> int:
        """Return the offset after the intact batches before a position, or -1 if there are none."""
        end = -1
        for item in super().runs():
            if isinstance(item, Run) and item.rows[VALID]:
                for row in range(item.row_count):
                    header = _header(item, row)
                    if header.position >= start:
                        return end
                    end = header.last_offset + 1
        return end


class _Filling:
    """The other copies' batches for a log's holes, from its beginning to its end; a context manager.

    filled: collects the ranges of offsets that were found, each with its end.
    """

    def __init__(self, joined: JoinedCopies, others: JoinedCopies, filled: set[tuple[int, int]]) -> None:
        self._joined_copies, self._others, self._filled_ranges = joined, others, filled
        self._batches: _OtherBatches | None = None

    def __enter__(self) -> "_Filling":
        return self

    def __exit__(self, *_: object) -> None:
        if self._batches is not None:
            self._batches.close()

    def instead(self, hole: _Hole, first: int, last: int) -> Iterator[Run | Damage]:
        """Yield the other copies' batches of a range of offsets.

        Then the hole's own items, unless all offsets were found.
        """
        is_compacted = self._joined_copies.is_compacted if last >= first else False
        is_whole, following = last >= first, first
        for item in self._batches_between(first, last):
            if isinstance(item, Damage):
                is_whole &= not is_compacted
                continue
            is_whole &= is_compacted or _first_offset(item) == following
            following = _last_header(item).last_offset + 1
            yield item
        if following > first:
            self._filled_ranges.add((first, following))
        if not (is_whole and (is_compacted or following > last)):
            yield from hole.found

    def _batches_between(self, first: int, last: int) -> Iterator[Run | Damage]:
        if last < first:
            return iter(())
        if self._batches is None:
            self._batches = _OtherBatches(self._others, first)
        return self._batches.batches_between(first, last)


def _batches(log_file: LogFile, start: int) -> Iterator[Run | Damage]:
    for item in log_file.runs(start):
        if isinstance(item, Damage):
            yield item
        elif not item.rows[VALID]:
            yield log_file.crc_damage(item.position + item.rows[START], item.rows[SIZE])
        else:
            yield from (_only_row(item, row) for row in range(item.row_count))


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
    """Return the first offset of a run's first batch; a wrapper's own is in its messages."""
    header = _header(run, 0)
    if header.base_offset is not None:
        return header.base_offset
    start = run.rows[START]
    raw = bytes(run.buffer[start : start + run.rows[SIZE]])
    first = Batch.parse(raw, header.position, is_valid=True).base_offset
    return header.last_offset if first is None else first


def _say_nothing(_: str) -> None:
    """Report nothing, because the losses of the best copy include those of other copies."""
