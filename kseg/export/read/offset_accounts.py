"""Accounts of offsets in an order: records, duplicates, gaps, and borders between orders."""

import os
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import numbers
from kseg.errors import KsegError, plural
from kseg.export.coverage import Coverage
from kseg.export.read.header_offsets import HeaderOffsets
from kseg.export.results import LostOffsets, Result, Tally
from kseg.export.settings import Mode, OffsetRange
from kseg.findings.kinds import id_of_damage, status_of
from kseg.formats.codes import DamageKind
from kseg.index.header_scan import header_of
from kseg.kernel.contract import LEAST, MOST, ROW, START, VALID
from kseg.kernel.entry_points import Columns
from kseg.log.partition import was_closed
from kseg.reading.batch import BatchHeader, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice
from kseg.reading.log_file import Run
from kseg.system.placed_path import StrPath, as_path


class OffsetSet:
    """A set of offsets, stored as runs of consecutive offsets with 16 bytes per run."""

    def __init__(self) -> None:
        self._firsts, self._lasts = array("q"), array("q")

    def __contains__(self, offset: int) -> bool:
        place = bisect_right(self._firsts, offset) - 1
        return place >= 0 and offset <= self._lasts[place]

    def add(self, first: int, last: int) -> None:
        """Add all offsets from `first` to `last`, inclusive."""
        low = bisect_left(self._lasts, max(first - 1, LEAST))
        high = bisect_right(self._firsts, min(last + 1, MOST), low)
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._firsts[low:high], self._lasts[low:high] = array("q", [first]), array("q", [last])

    def meets(self, first: int, last: int) -> bool:
        """Return True if the set contains any of the offsets."""
        place = bisect_left(self._lasts, first)
        return place < len(self._firsts) and self._firsts[place] <= last

    def next_after_run_below(self, offset: int) -> int | None:
        """Return the offset after the last member below the given one, or None without such a member."""
        place = bisect_left(self._firsts, offset) - 1
        return None if place < 0 else min(self._lasts[place] + 1, offset)

    def ranges(self, first: int, end: int) -> Iterator[OffsetRange]:
        """Yield the runs that overlap a range of offsets."""
        for place in range(bisect_left(self._lasts, first), bisect_left(self._firsts, end)):
            yield OffsetRange(self._firsts[place], self._lasts[place] + 1)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Return the first and last offsets of the runs."""
        return zip(self._firsts, self._lasts, strict=True)

    @property
    def first(self) -> int | None:
        """The lowest offset."""
        return self._firsts[0] if self._firsts else None


class LeaderEpochs:
    """The highest leader epoch, for each offset, of the batches whose ranges contain it."""

    def __init__(self) -> None:
        self._firsts, self._lasts, self._epochs = array("q"), array("q"), array("q")

    def add(self, first: int, last: int, epoch: int) -> None:
        """Add a batch's range; the last offset is included."""
        low, high = bisect_left(self._lasts, first), bisect_right(self._firsts, last)
        parts: list[tuple[int, int, int]] = []
        at = first
        for place in range(low, high):
            known_first, known_last, known = self._firsts[place], self._lasts[place], self._epochs[place]
            if known_first < first:
                parts.append((known_first, first - 1, known))
            if at < known_first:
                parts.append((at, known_first - 1, epoch))
            parts.append((max(known_first, first), min(known_last, last), max(known, epoch)))
            if known_last > last:
                parts.append((last + 1, known_last, known))
            at = known_last + 1
        if at <= last:
            parts.append((at, last, epoch))
        if low == high == len(self._firsts) and low and self._continues(first, epoch):
            self._lasts[-1] = last
            return
        for column, values in zip((self._firsts, self._lasts, self._epochs), zip(*parts, strict=True), strict=True):
            column[low:high] = array("q", values)

    def _continues(self, first: int, epoch: int) -> bool:
        return self._lasts[-1] + 1 == first and self._epochs[-1] == epoch

    def highest(self, offset: int) -> int:
        """Return the highest epoch of an offset, or -1 if unknown."""
        place = bisect_left(self._lasts, offset)
        is_there = place < len(self._firsts) and self._firsts[place] <= offset
        return self._epochs[place] if is_there else -1


class EachOnce:
    """A choice of one record per offset: the one with the highest leader epoch, and the first among equals.

    Call `note` for all batches before the first question.
    """

    def __init__(self) -> None:
        self._epochs = LeaderEpochs()
        self.taken = OffsetSet()

    def note(self, first: int, last: int, epoch: int) -> None:
        """Note the range of an intact batch."""
        first, last = max(first, LEAST), min(last, MOST)
        if first <= last:
            self._epochs.add(first, last, epoch)

    def take(self, offset: int, epoch: int) -> bool:
        """Return True if a record is the chosen one of its offset, and mark the offset as taken."""
        if epoch < self._epochs.highest(offset) or offset in self.taken:
            return False
        self.taken.add(offset, offset)
        return True


class FileOrder:
    """Offsets explained by batches in file order: offsets in the batches' ranges, and offsets that compaction removed.

    Compaction may have removed the offsets between a batch and a higher next one, unless a record elsewhere has one of
    them.
    """

    def __init__(self) -> None:
        self._ranges = OffsetSet()
        self._between = array("q"), array("q")
        self._next: int | None = None

    def add(self, header: BatchHeader, *, is_damaged: bool) -> None:
        """Add the next batch of the file; is_damaged: whether damage precedes it."""
        first, last = max(header.first_offset, LEAST), min(header.last_offset, MOST)
        if first > last:
            return
        if self._next is not None and self._next < first and not is_damaged:
            self._between[0].append(self._next)
            self._between[1].append(first - 1)
        self._ranges.add(first, last)
        self._next = last + 1

    def explained_offsets(self, taken: OffsetSet) -> OffsetSet:
        """Return the explained offsets together with `taken`, the offsets of all records; call this last."""
        for first, last in zip(*self._between, strict=True):
            if not taken.meets(first, last):
                self._ranges.add(first, last)
        for first, last in taken.runs():
            self._ranges.add(first, last)
        return self._ranges


def joined_at_seams(results: Iterable[Result]) -> list[Result]:
    """Return the results, with damage at the start of orders corrected.

    If an index was wrong, an order began in the middle of a batch that the previous order has read to its end: that is
    no damage. For real damage, the lost offsets begin at the end of the previous order.
    """
    readers: dict[str, list[tuple[int, int, Result]]] = defaultdict(list)
    results = list(results)
    for result in results:
        for source in result.sources:
            readers[source.path].append((source.start, source.end, result))
    return [_correct_start(result, readers) for result in results]


def _correct_start(result: Result, readers: dict[str, list[tuple[int, int, Result]]]) -> Result:
    if not result.tally.losses:
        return result
    losses = []
    for loss in result.tally.losses:
        readers_here = readers[loss.segment]
        if not _is_read_by_another(loss, readers_here):
            first = _offset_before(loss.position, readers_here) if loss.first is None else loss.first
            losses.append(replace(loss, first=first))
    return replace(result, tally=replace(result.tally, losses=losses))


def _is_read_by_another(loss: LostOffsets, readers: list[tuple[int, int, Result]]) -> bool:
    """Return True if the damage begins at an order's start, and the previous order has read the same bytes."""
    start, end = loss.position, loss.position + loss.size
    if loss.size == 0 or all(first != start for first, _, _ in readers):
        return False
    return any(first < start < last and end <= last for first, last, _ in readers)


def _offset_before(position: int, readers: list[tuple[int, int, Result]]) -> int | None:
    return next((result.tally.next_offset for _, end, result in readers if end == position), None)


def disordered_keys(results: Iterable[Result]) -> frozenset[tuple[str, int | None]]:
    """Return the partitions in which offsets don't rise, within an order or from one to the next.

    Considers the first result of each order. Orders that are marked as disordered have exported each offset once.
    """
    found = set()
    seen: dict[tuple[str, int | None, str, OffsetRange], list[tuple[int, int]]] = defaultdict(list)
    for result in results:
        if result.tally.disordered:
            found.add((result.topic, result.partition))
        first, end = result.tally.first_offset, result.tally.next_offset
        if first is not None and end is not None:
            seen[result.topic, result.partition, result.replica, result.wanted].append((first, end))
    for (topic, partition, _, _), spans in seen.items():
        if any(end > first for (_, end), (first, _) in pairwise(sorted(spans))):
            found.add((topic, partition))
    return frozenset(found)


FOREVER = 1 << 63
"""An offset above all others."""


class Accounts:
    """The tally of the wanted offsets, and the damage that no batch has followed yet.

    end: the first offset above the wanted ones. path: the current log's; base_offset: the segment's, while its
    beginning is read; read_to: as in ByteRange. each_once: the choice of records if offsets don't rise.
    """

    def __init__(
        self,
        offsets: OffsetRange,
        mode: Mode,
        *,
        begins: bool,
        missed: int = 0,
        each_once: EachOnce | None = None,
        is_gapless: bool = False,
    ) -> None:
        """Prepare accounts; `begins`: whether they start at the first offset, rather than where the log starts."""
        self.tally = Tally(first_offset=offsets.first, next_offset=offsets.first) if begins else Tally()
        if missed and self.tally.next_offset is not None:
            self.tally.next_offset += missed
            self.tally.missed = missed
        self.first = -FOREVER if offsets.first is None else offsets.first
        self.end = FOREVER if offsets.end is None else offsets.end
        self.path: StrPath = ""
        self.base_offset: int | None = None
        self.read_to: int | None = None
        self._mode = mode
        self._each_once = each_once
        self._is_gapless = is_gapless
        self._pending: list[LostOffsets] = []
        self._claimed: int | None = None
        self._has_jumped = False
        self._order = FileOrder()

    @property
    def _has_mere_gaps(self) -> bool:
        """True if missing offsets between batches don't count as lost."""
        return not self._is_gapless and self._each_once is None

    def begin_range(self, path: StrPath, base_offset: int | None, read_to: int | None) -> None:
        """Continue with another log, or at a later position; the arguments are the attributes of these names."""
        self.path, self.base_offset, self.read_to = path, base_offset, read_to
        if base_offset is not None and self._has_mere_gaps:
            self._settle(base_offset)  # the segment's start bounds earlier damage

    @property
    def is_done(self) -> bool:
        """True if the end of the wanted offsets is reached, and no wanted ones can follow."""
        return self.has_reached_end and not self._has_jumped and self._each_once is None

    @property
    def has_reached_end(self) -> bool:
        """True if an offset at or above the end of the wanted ones was met."""
        return self.tally.next_offset is not None and self.tally.next_offset >= self.end

    @property
    def _next(self) -> int:
        return -FOREVER if self.tally.next_offset is None else self.tally.next_offset

    def add_damage(self, damage: Damage, claimed: int | None = None) -> None:
        """Add damage; `claimed` is the next offset according to a trustworthy header.

        Raises KsegError if the mode is failfast and the damage isn't harmless.
        """
        if self.has_reached_end:
            return
        if self.base_offset is not None and (self.tally.next_offset is None or self._has_mere_gaps):
            self.tally.pass_to(min(self.base_offset, self.end))
        finding_id = id_of_damage(damage.kind, is_last=not was_closed(as_path(self.path)))
        harmless = not status_of(finding_id)
        if self._mode is Mode.FAILFAST and not harmless:
            raise KsegError(f"{damage.kind}: {damage.detail}", self.path, damage.position)
        first = self.tally.next_offset
        loss = LostOffsets(os.fspath(self.path), damage.position, damage.size, finding_id, damage.detail, first)
        if harmless:
            loss.end = first
        else:
            self._pending.append(loss)
        self.tally.losses.append(loss)
        self._claimed = claimed

    def finish(self) -> None:
        """Account for damage at the end, as far as its header tells; sum up if offsets don't rise."""
        self.tally.check_epochs()
        if self._claimed is not None:
            self._settle(self._claimed)
        if self._each_once is not None:
            self._sum_up(self._each_once.taken)

    def _sum_up(self, taken: OffsetSet) -> None:
        """Count lost offsets, and offsets without a record, from the taken offsets."""
        tally = self.tally
        if tally.next_offset is None:
            return
        lowest = [offset for offset in (tally.first_offset, taken.first) if offset is not None]
        tally.first_offset = min(lowest)
        if tally.missed and taken.first is not None:
            tally.missed = min(tally.missed, taken.first - tally.first_offset)
        tally.losses = list(_without_taken(tally.losses, taken))
        lost = tally.lost_offsets.union()
        explained = self._order.explained_offsets(taken)
        span = OffsetRange(tally.first_offset + tally.missed, tally.next_offset)
        holes = (Coverage(tuple(explained.ranges(LEAST, MOST))) + lost).missing(span)
        tally.holes, tally.lost = list(holes.ranges), lost.count
        known = tally.read + tally.lost + tally.missed + holes.count
        tally.gaps = tally.next_offset - tally.first_offset - known

    def add_slice(self, columns: Columns, piece: Slice) -> pa.Array | None:
        """Add a slice, and return a mask of the counted records, None if all count.

        Counted records are intact and wanted; if offsets don't rise, only one record of each offset counts.
        """
        if columns.count and self._is_sound(columns, piece) and self._add_whole(columns, piece):
            return None
        return pa.array(self._add_rows(columns, piece), pa.bool_())

    @staticmethod
    def _is_sound(columns: Columns, piece: Slice) -> bool:
        if columns.problems or piece.damages or b"\0" in bytes(columns.valid):
            return False
        valid = piece.run.rows[piece.first * ROW + VALID : piece.last * ROW : ROW]
        return all(valid)

    def _add_whole(self, columns: Columns, piece: Slice) -> bool:
        """Add a slice whose offsets rise from the next expected one on; return False for other slices."""
        if self._each_once is not None:
            return False
        count = columns.count
        offsets = numbers(columns.offsets, pa.int64(), count)
        last = _header(piece, piece.last - 1)
        last_offset = last.last_offset
        if last_offset >= self.end:
            return False
        first = offsets[0].as_py()
        if first < max(self._next, self.first) or last_offset < offsets[count - 1].as_py():
            return False
        if count > 1 and not pc.all(pc.greater(offsets[1:], offsets[:-1])).as_py():
            return False
        self._pass_whole(piece, first, last, count)
        return True

    def takes_whole(self, run: Run) -> bool:
        """Return True if all offsets of the batches of a run are wanted, and none is below preceding ones."""
        first, last = header_of(run, 0), header_of(run, run.row_count - 1)
        return first.first_offset >= max(self._next, self.first) and last.last_offset < self.end

    def add_offsets(self, found: HeaderOffsets) -> bool:
        """Add all records of a run; return False if some are unwanted, or below preceding ones."""
        piece = found.piece
        if not self.takes_whole(piece.run):
            return False
        first, last = _header(piece, piece.first), _header(piece, piece.last - 1)
        self._pass_whole(piece, first.first_offset, last, found.record_count + found.control_count)
        return True

    def _pass_whole(self, piece: Slice, first: int, last: BatchHeader, count: int) -> None:
        """Count the records of a slice; `first` is the lowest offset, `last` the header of the last batch."""
        header = _header(piece, piece.first)
        self._begin_batch(header, first)
        self.tally.note_epoch(header.partition_leader_epoch, first)
        if last.partition_leader_epoch != header.partition_leader_epoch:
            for each in (_header(piece, row) for row in range(piece.first, piece.last)):
                self.tally.note_epoch(each.partition_leader_epoch, each.first_offset)
        self.tally.read += count
        self.tally.gaps += last.last_offset + 1 - self._next - count
        self.tally.next_offset = last.last_offset + 1

    def _begin_batch(self, header: BatchHeader, first: int | None) -> None:
        base = header.base_offset if header.base_offset is not None else first
        if base is not None:
            self._settle(base)
            if self.tally.next_offset is None:
                self.tally.pass_to(base)
            if self._is_gapless and self._each_once is None:
                self._note_hole(base)

    def _note_hole(self, base: int) -> None:
        """Note missing offsets before a batch without damage in their place."""
        base = min(base, self.end)
        if base > max(self._next, self.first):
            self.tally.holes.append(OffsetRange(self._next, base))
            self.tally.next_offset = base

    def _settle(self, offset: int) -> None:
        """Count offsets before the given one that have no record as lost to the pending damage."""
        if not self._pending:
            return
        offset = min(offset, self.end)
        for loss in self._pending:
            if self._each_once is not None and (loss.first is None or loss.first > offset):
                loss.first = self._each_once.taken.next_after_run_below(offset)
            loss.end = offset if loss.first is None else max(offset, loss.first)
            if offset <= self.first:
                self.tally.losses.remove(loss)  # it ends below the wanted offsets
        self.tally.pass_to(offset, is_lost=True)
        self._pending.clear()
        self._claimed = None

    def _add_rows(self, columns: Columns, piece: Slice) -> list[bool]:
        """Add a slice that is damaged or partly unwanted, batch by batch and record by record."""
        offsets, valid = memoryview(columns.offsets).cast("q"), memoryview(columns.valid).cast("b")
        rows = memoryview(columns.rows).cast("i")
        damages = dict(piece.damages)
        problems = {problem.position: problem for problem in columns.problems}
        mask: list[bool] = []
        for row in range(piece.first, piece.last):
            start = piece.run.rows[row * ROW + START]
            header = _header(piece, row)
            first, last = bisect_left(rows, row), bisect_left(rows, row + 1)
            if not piece.run.rows[row * ROW + VALID]:
                mask += self._add_invalid(header, offsets[first:last], valid[first:last])
                continue
            if self._each_once is not None:
                self._order.add(header, is_damaged=bool(self._pending))
            self._begin_batch(header, offsets[first] if last > first else None)
            if header.first_offset < self.end and header.last_offset >= self.first:
                self.tally.note_epoch(header.partition_leader_epoch, header.first_offset)
            mask += self._add_records(header, offsets[first:last], valid[first:last])
            problem = problems.get(piece.run.position + start)
            if row in damages:
                self.add_damage(damages[row], header.last_offset + 1)
            elif problem is not None:
                detail = f"only {plural(problem.records_read, 'record')} can be read"
                kind = DamageKind(problem.problem.name.lower().replace("_", "-"))
                self.add_damage(Damage(kind, header.position, 0, detail), header.last_offset + 1)
            elif header.last_offset >= self.first:
                self._pass_wanted(header.last_offset + 1, header)
        return mask

    def _add_invalid(self, header: BatchHeader, offsets: memoryview, valid: memoryview) -> list[bool]:
        """Add a batch with a wrong CRC; the messages of a wrapper with their own CRCs may be intact."""
        damage = Damage(DamageKind.BAD_CRC, header.position, header.size, "the CRC is wrong")
        mask = [False] * len(valid)
        if any(valid):
            self._begin_batch(header._replace(base_offset=None), offsets[0])
            mask = self._add_records(header, offsets, valid)
        self.add_damage(damage)
        return mask

    def _add_records(self, header: BatchHeader, offsets: memoryview, valid: memoryview) -> list[bool]:
        """Add the records of a batch, and return a mask of the counted ones; each invalid record is damage."""
        mask = [False] * len(offsets)
        for place, (offset, is_valid) in enumerate(zip(offsets, valid, strict=True)):
            if offset < self.first:
                is_new = self.read_to is not None and header.position >= self.read_to
                self.tally.disordered += is_new  # no new record may be below the first offset
                continue
            self._pass_wanted(offset, header)
            if offset >= self.end:
                continue
            if not is_valid:
                self._lose_message(header.position, offset)
                continue
            self.tally.disordered += offset < self._next
            if self._each_once is not None and not self._each_once.take(offset, header.partition_leader_epoch):
                self.tally.passed_over += 1
                continue
            mask[place] = True
            self.tally.read += 1
            self.tally.next_offset = max(self._next, offset + 1)
        return mask

    def _pass_wanted(self, offset: int, header: BatchHeader) -> None:
        """Account for the wanted offsets below a given one; a batch above their end may be out of order."""
        if header.first_offset >= self.end > self._next:
            self._has_jumped = True
        self.tally.pass_to(min(offset, self.end))

    def _lose_message(self, position: int, offset: int) -> None:
        """Add the damage of a wrapper's message whose own CRC is wrong."""
        damage = Damage(DamageKind.BAD_CRC, position, 0, f"the CRC of the message at offset {offset} is wrong")
        self.add_damage(damage)
        self._settle(offset + 1)


def _without_taken(losses: Iterable[LostOffsets], taken: OffsetSet) -> Iterator[LostOffsets]:
    """Yield losses without the offsets that have a record elsewhere; a loss may be split."""
    for loss in losses:
        if loss.first is None or loss.end is None or loss.first >= loss.end:
            yield loss
            continue
        lost = Coverage(tuple(taken.ranges(loss.first, loss.end))).missing(OffsetRange(loss.first, loss.end))
        for part in lost.ranges or [OffsetRange(loss.first, loss.first)]:
            yield replace(loss, first=part.first, end=part.end)


def _header(piece: Slice, row: int) -> BatchHeader:
    start = piece.run.rows[row * ROW + START]
    return parse_header(piece.run.buffer, start, piece.run.position + start)
