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
from kseg.errors import KsegError, counted
from kseg.export.coverage import Coverage
from kseg.export.results import LostOffsets, Result, Tally
from kseg.export.settings import Mode, OffsetRange
from kseg.findings.kinds import id_of_damage, status_of
from kseg.formats.codes import DamageKind
from kseg.kernel.contract import LEAST, MOST, ROW, START, VALID, Columns
from kseg.log.partition import was_closed
from kseg.reading.batch import BatchHeader, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice
from kseg.system.placed_path import StrPath, as_path


class OffsetSet:
    """A set of offsets, kept as runs of consecutive ones: 16 bytes for each run."""

    def __init__(self) -> None:
        self._firsts, self._lasts = array("q"), array("q")

    def __contains__(self, offset: int) -> bool:
        place = bisect_right(self._firsts, offset) - 1
        return place >= 0 and offset <= self._lasts[place]

    def add(self, first: int, last: int) -> None:
        """Adds the offsets from one to another, the second included."""
        low = bisect_left(self._lasts, max(first - 1, LEAST))
        high = bisect_right(self._firsts, min(last + 1, MOST), low)
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._firsts[low:high], self._lasts[low:high] = array("q", [first]), array("q", [last])

    def meets(self, first: int, last: int) -> bool:
        """Whether one of the offsets is in the set."""
        place = bisect_left(self._lasts, first)
        return place < len(self._firsts) and self._firsts[place] <= last

    def next_after_run_below(self, offset: int) -> int | None:
        """The offset after the last one in the set that is below the given one; None if there is none."""
        place = bisect_left(self._firsts, offset) - 1
        return None if place < 0 else min(self._lasts[place] + 1, offset)

    def ranges(self, first: int, end: int) -> Iterator[OffsetRange]:
        """The runs that share offsets with a range."""
        for place in range(bisect_left(self._lasts, first), bisect_left(self._firsts, end)):
            yield OffsetRange(self._firsts[place], self._lasts[place] + 1)

    def runs(self) -> Iterator[tuple[int, int]]:
        """The first and last offsets of its runs."""
        return zip(self._firsts, self._lasts, strict=True)

    @property
    def first(self) -> int | None:
        """The lowest offset."""
        return self._firsts[0] if self._firsts else None


class LeaderEpochs:
    """For each offset the highest leader epoch of a batch that has it in its range."""

    def __init__(self) -> None:
        self._firsts, self._lasts, self._epochs = array("q"), array("q"), array("q")

    def add(self, first: int, last: int, epoch: int) -> None:
        """Takes a batch's range, the last offset included."""
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
        """The highest epoch of an offset; -1 if none is known."""
        place = bisect_left(self._lasts, offset)
        is_there = place < len(self._firsts) and self._firsts[place] <= offset
        return self._epochs[place] if is_there else -1


class EachOnce:
    """Which records count: of those with one offset that of the highest leader epoch, of equal ones the first.

    `note` takes all batches before the first question.
    """

    def __init__(self) -> None:
        self._epochs = LeaderEpochs()
        self.taken = OffsetSet()

    def note(self, first: int, last: int, epoch: int) -> None:
        """Takes the range of a batch that is intact."""
        first, last = max(first, LEAST), min(last, MOST)
        if first <= last:
            self._epochs.add(first, last, epoch)

    def take(self, offset: int, epoch: int) -> bool:
        """Whether a record is the one of its offset; then it is taken."""
        if epoch < self._epochs.highest(offset) or offset in self.taken:
            return False
        self.taken.add(offset, offset)
        return True


class FileOrder:
    """Offsets that batches as they stand in the file explain: those in their ranges, and those that compaction took.

    Compaction may have taken what lies between a batch and the one after it, if that is higher, and no record lies in
    between anywhere else.
    """

    def __init__(self) -> None:
        self._ranges = OffsetSet()
        self._between = array("q"), array("q")
        self._next: int | None = None

    def add(self, header: BatchHeader, *, is_damaged: bool) -> None:
        """Takes the next batch of the file; is_damaged: there is damage before it."""
        first, last = max(header.first_offset, LEAST), min(header.last_offset, MOST)
        if first > last:
            return
        if self._next is not None and self._next < first and not is_damaged:
            self._between[0].append(self._next)
            self._between[1].append(first - 1)
        self._ranges.add(first, last)
        self._next = last + 1

    def explained(self, taken: OffsetSet) -> OffsetSet:
        """The offsets, and `taken`, which are those of all records. Nothing can be added after that."""
        for first, last in zip(*self._between, strict=True):
            if not taken.meets(first, last):
                self._ranges.add(first, last)
        for first, last in taken.runs():
            self._ranges.add(first, last)
        return self._ranges


def joined_at_seams(results: Iterable[Result]) -> list[Result]:
    """The results, with what orders say of damage at their start set right.

    Where an index was wrong, an order began in the middle of a batch that the order before has read to its end: that is
    no damage. Where it is one, the offsets lost begin where the order before ended.
    """
    readers: dict[str, list[tuple[int, int, Result]]] = defaultdict(list)
    results = list(results)
    for result in results:
        for source in result.sources:
            readers[source.path].append((source.start, source.end, result))
    return [_joined(result, readers) for result in results]


def _joined(result: Result, readers: dict[str, list[tuple[int, int, Result]]]) -> Result:
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
    """Whether the damage begins where an order does, and the order before has read the same bytes."""
    start, end = loss.position, loss.position + loss.size
    if loss.size == 0 or all(first != start for first, _, _ in readers):
        return False
    return any(first < start < last and end <= last for first, last, _ in readers)


def _offset_before(position: int, readers: list[tuple[int, int, Result]]) -> int | None:
    return next((result.tally.next_offset for _, end, result in readers if end == position), None)


def disordered_keys(results: Iterable[Result]) -> frozenset[tuple[str, int | None]]:
    """The partitions in which offsets don't rise, by the first results of their orders: in one, or from one to another.

    Orders that say so themselves have taken each offset once.
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
"""Above all offsets."""


class Accounts:
    """The tally of the offsets wanted, and what is known of damage that no batch has followed yet.

    end: offsets from there on aren't looked at. path: of the log that goes by; base_offset: the segment's, while its
    beginning is read; read_to: as in ByteRange. each_once: where offsets don't rise, decides which record counts.
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
        """Accounts for offsets; `begins`: from the first of them on, else from where the log takes it up."""
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
        """Whether offsets that are missing between batches aren't taken for lost."""
        return not self._is_gapless and self._each_once is None

    def begin_range(self, path: StrPath, base_offset: int | None, read_to: int | None) -> None:
        """Goes on with another log, or further on in one; arguments are the attributes of these names."""
        self.path, self.base_offset, self.read_to = path, base_offset, read_to
        if base_offset is not None and self._has_mere_gaps:
            self._settle(base_offset)  # what damage took before it ends there

    @property
    def is_done(self) -> bool:
        """Whether the end of the offsets wanted is reached, and none of them can follow."""
        return self.has_reached_end and not self._has_jumped and self._each_once is None

    @property
    def has_reached_end(self) -> bool:
        """Whether an offset was met that lies at the end of those wanted, or above."""
        return self.tally.next_offset is not None and self.tally.next_offset >= self.end

    @property
    def _next(self) -> int:
        return -FOREVER if self.tally.next_offset is None else self.tally.next_offset

    def add_damage(self, damage: Damage, claimed: int | None = None) -> None:
        """Takes a damage; `claimed` is the offset that a trustworthy header says to come next.

        Raises KsegError if damage is to end the reading.
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
        """Accounts for damage that nothing followed, as far as its header tells; sums up where offsets don't rise."""
        self.tally.check_epochs()
        if self._claimed is not None:
            self._settle(self._claimed)
        if self._each_once is not None:
            self._sum_up(self._each_once.taken)

    def _sum_up(self, taken: OffsetSet) -> None:
        """Counts what was lost, and what no record had, by the offsets that were taken in the end."""
        tally = self.tally
        if tally.next_offset is None:
            return
        lowest = [offset for offset in (tally.first_offset, taken.first) if offset is not None]
        tally.first_offset = min(lowest)
        if tally.missed and taken.first is not None:
            tally.missed = min(tally.missed, taken.first - tally.first_offset)
        tally.losses = list(_without_taken(tally.losses, taken))
        lost = tally.lost_offsets.union()
        explained = self._order.explained(taken)
        span = OffsetRange(tally.first_offset + tally.missed, tally.next_offset)
        holes = (Coverage(tuple(explained.ranges(LEAST, MOST))) + lost).missing(span)
        tally.holes, tally.lost = list(holes.ranges), lost.count
        known = tally.read + tally.lost + tally.missed + holes.count
        tally.gaps = tally.next_offset - tally.first_offset - known

    def add_slice(self, columns: Columns, piece: Slice) -> pa.Array | None:
        """Takes a slice; gives a mask of the records that count, None if all do.

        Those are intact and wanted; where offsets don't rise, no other one has the same offset.
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
        """Takes a slice whose offsets rise, from the next one expected on; False if they don't."""
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
        header = _header(piece, piece.first)
        self._begin_batch(header, first)
        self.tally.note_epoch(header.partition_leader_epoch, first)
        if last.partition_leader_epoch != header.partition_leader_epoch:
            for each in (_header(piece, row) for row in range(piece.first, piece.last)):
                self.tally.note_epoch(each.partition_leader_epoch, each.first_offset)
        self.tally.read += count
        self.tally.gaps += last_offset + 1 - self._next - count
        self.tally.next_offset = last_offset + 1
        return True

    def _begin_batch(self, header: BatchHeader, first: int | None) -> None:
        base = header.base_offset if header.base_offset is not None else first
        if base is not None:
            self._settle(base)
            if self.tally.next_offset is None:
                self.tally.pass_to(base)
            if self._is_gapless and self._each_once is None:
                self._note_hole(base)

    def _note_hole(self, base: int) -> None:
        """Notes the offsets before a batch that the log has lost, with no damage left in their place."""
        base = min(base, self.end)
        if base > max(self._next, self.first):
            self.tally.holes.append(OffsetRange(self._next, base))
            self.tally.next_offset = base

    def _settle(self, offset: int) -> None:
        """What lies before the offset and had no record is lost to the damage that was met."""
        if not self._pending:
            return
        offset = min(offset, self.end)
        for loss in self._pending:
            if self._each_once is not None and (loss.first is None or loss.first > offset):
                loss.first = self._each_once.taken.next_after_run_below(offset)
            loss.end = offset if loss.first is None else max(offset, loss.first)
            if offset <= self.first:
                self.tally.losses.remove(loss)  # it ends below what is wanted
        self.tally.pass_to(offset, is_lost=True)
        self._pending.clear()
        self._claimed = None

    def _add_rows(self, columns: Columns, piece: Slice) -> list[bool]:
        """Takes a slice batch by batch, record by record: one that is damaged, or not wholly wanted."""
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
                detail = f"{counted(problem.records_read, 'record')} can be read"
                kind = DamageKind(problem.problem.name.lower().replace("_", "-"))
                self.add_damage(Damage(kind, header.position, 0, detail), header.last_offset + 1)
            elif header.last_offset >= self.first:
                self._pass_wanted(header.last_offset + 1, header)
        return mask

    def _add_invalid(self, header: BatchHeader, offsets: memoryview, valid: memoryview) -> list[bool]:
        """Takes a batch whose CRC is wrong. A wrapper's messages have CRCs of their own: some may be intact."""
        damage = Damage(DamageKind.BAD_CRC, header.position, header.size, "the CRC is wrong")
        mask = [False] * len(valid)
        if any(valid):
            self._begin_batch(header._replace(base_offset=None), offsets[0])
            mask = self._add_records(header, offsets, valid)
        self.add_damage(damage)
        return mask

    def _add_records(self, header: BatchHeader, offsets: memoryview, valid: memoryview) -> list[bool]:
        """Takes the records of a batch, and tells which count; each that is invalid is a damage of its own."""
        mask = [False] * len(offsets)
        for place, (offset, is_valid) in enumerate(zip(offsets, valid, strict=True)):
            if offset < self.first:
                is_new = self.read_to is not None and header.position >= self.read_to
                self.tally.disordered += is_new  # offsets that were read before begin above
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
        """Accounts for the offsets wanted below one that was met; a batch above their end may be out of order."""
        if header.first_offset >= self.end > self._next:
            self._has_jumped = True
        self.tally.pass_to(min(offset, self.end))

    def _lose_message(self, position: int, offset: int) -> None:
        """A message of a wrapper whose own CRC is wrong."""
        damage = Damage(DamageKind.BAD_CRC, position, 0, f"the CRC of the message at offset {offset} is wrong")
        self.add_damage(damage)
        self._settle(offset + 1)


def _without_taken(losses: Iterable[LostOffsets], taken: OffsetSet) -> Iterator[LostOffsets]:
    """Losses without the offsets that a record elsewhere has; one may fall into several."""
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
