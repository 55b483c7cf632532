"""A plan of the data that `salvage` saves, from one directory or from several replicas that fill holes."""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.joined_log import whole_log
from kseg.cluster.replicas import Copy, LeftOut, PartitionReplicas, are_gapless
from kseg.findings.kinds import id_of_damage, status_of
from kseg.formats.codes import MAXIMUM_RELATIVE_OFFSET, DamageKind
from kseg.kernel.contract import MOST
from kseg.log.partition import PartitionLog, was_closed
from kseg.rewrite.lost_markers import LostEnd, lost_ends
from kseg.rewrite.salvage_extents import (
    Extent,
    ExtentBatches,
    ExtentJoin,
    InnerProblem,
    joined_neighbours,
    longest_rising,
)
from kseg.rewrite.salvage_reader import FoundLoss, Replica, Span
from kseg.rewrite.undone_logs import UndoneLog, UndoneLogs

_BLOCK = 512
"""Number of extents that a block of `_Kept` begins with: an insertion moves a block, not all extents."""
_END = -1
_EVERYWHERE = Span(0, None)
_first_offset, _last_offset = attrgetter("first_offset"), attrgetter("last_offset")


def is_mere_gap(before: Extent | None, extent: Extent, *, is_compacted: bool) -> bool:
    """Return True if only compaction removed offsets before an extent."""
    if before is not None and extent.first_offset == before.last_offset + 1:
        return True
    return is_compacted and not extent.follows_loss


def fill_holes(kept: list[Extent], rising: list[Extent], batches: ExtentBatches, lost: Sequence[Span]) -> list[Extent]:
    """Return extents with lost offsets between and after them filled from other extents; all three rise."""
    cutter = _Cutter(rising, batches)
    found = list(kept)
    for span in _common_spans(_holes_between(kept), lost):
        found += cutter.parts(*span)
    return sorted(found, key=_first_offset)


def _holes_between(kept: Iterable[Extent]) -> list[Span]:
    """Return the offsets that no extent has."""
    first = 0
    holes: list[Span] = []
    for extent in kept:
        if extent.first_offset > first:
            holes.append(Span(first, extent.first_offset - 1))
        first = extent.last_offset + 1
    return [*holes, Span(first, None)]


def _common_spans(one: Sequence[Span], other: Sequence[Span]) -> Iterator[Span]:
    """Yield the offsets that two lists of spans share; all rise."""
    at = 0
    for span in one:
        while at < len(other):
            first = max(span.first, other[at].first)
            last = min((each for each in (span.last, other[at].last) if each is not None), default=None)
            if last is None or first <= last:
                yield Span(first, last)
            if other[at].last is None or (span.last is not None and span.last < (other[at].last or 0)):
                break  # it may continue in the next one
            at += 1


def _lost_spans(replica: Replica, chain: Sequence[Extent]) -> list[Span]:
    """Return the offsets that a copy lacks, except compacted ones: in damage, and after its end."""
    bases = replica.partition.base_offsets
    end = max([*bases[-1:], *(extent.last_offset + 1 for extent in chain[-1:])], default=0)
    spans: list[Span] = []
    for first, last in sorted((span.first, end - 1 if span.last is None else span.last) for span in replica.lost):
        start = max(first, (spans[-1].last or 0) + 1) if spans else first
        if start <= min(last, end - 1):
            spans.append(Span(start, min(last, end - 1)))
    return [*spans, Span(end, None)]


def _not_told_by(replica: Replica, chain: Sequence[Extent]) -> list[Span]:
    """Return the offsets about which a further copy shows neither a record nor its removal."""
    bases = replica.partition.base_offsets
    if not bases:
        return [_EVERYWHERE]
    return [*([Span(0, bases[0] - 1)] if bases[0] else []), *_lost_spans(replica, chain)]


class _Cutter:
    """Yields the parts of ordered extents that are completely between two offsets. Requests must ascend."""

    def __init__(self, rising: list[Extent], batches: ExtentBatches) -> None:
        self._rising = rising
        self._place = 0
        self._batches = batches
        self._left: Iterator[Extent] | None = None
        self._next: Extent | None = None

    def parts(self, first: int, last: int | None) -> Iterator[Extent]:
        """Yield extents, or parts of them, from one offset to another."""
        while self._place < len(self._rising):
            extent = self._rising[self._place]
            if last is not None and extent.first_offset > last:
                return
            if extent.first_offset >= first and (last is None or extent.last_offset <= last):
                yield extent
            elif extent.last_offset >= first:
                yield from self._part(extent, first, last)
                if last is not None and extent.last_offset > last:
                    return  # the rest may lie in a later hole
            self._place, self._left = self._place + 1, None

    def _part(self, extent: Extent, first: int, last: int | None) -> Iterator[Extent]:
        if self._left is None:
            self._left = self._batches.of(extent)
            self._next = next(self._left, None)
        join: ExtentJoin | None = None
        while self._next is not None and (last is None or self._next.last_offset <= last):
            if self._next.first_offset >= first:
                batch = self._next._replace(follows_loss=False)
                join = ExtentJoin(batch) if join is None else join.add(batch)
            self._next = next(self._left, None)
        if join is not None:
            yield join.extent()


def with_strays(kept: list[Extent], strays: Iterable[Extent], batches: ExtentBatches) -> list[Extent]:
    """Return extents, and those out of order in the log that fit into a hole between them or directly after them."""
    if not kept:
        return kept
    room = _Kept(kept)
    for extent in strays:
        room.take(extent, batches)
    return list(room)


class _Kept:
    """Extents in the order of their offsets, without overlaps."""

    def __init__(self, extents: list[Extent]) -> None:
        self._blocks = [extents[at : at + _BLOCK] for at in range(0, len(extents), _BLOCK)]
        self._firsts = [block[0].first_offset for block in self._blocks]

    def __iter__(self) -> Iterator[Extent]:
        for block in self._blocks:
            yield from block

    def take(self, extent: Extent, batches: ExtentBatches) -> None:
        """Add an extent, or those of its batches for which there is room."""
        hole = self._hole(extent)
        if hole is not None and (hole != _END or extent.first_offset == self._end + 1):
            self._add(extent)
        elif extent.batch_count > 1:
            for part in list(self._parts(extent, batches)):
                self._add(part)

    @property
    def _end(self) -> int:
        return self._blocks[-1][-1].last_offset

    def _parts(self, extent: Extent, batches: ExtentBatches) -> Iterator[Extent]:
        """Yield the parts for each hole; after the last extent only directly following parts."""
        join: ExtentJoin | None = None
        joined_in: int | None = None
        for whole in batches.of(extent):
            batch = whole._replace(follows_loss=False)
            hole = self._hole(batch)
            if join is not None and hole == joined_in:
                join.add(batch)
                continue
            if join is not None:
                yield join.extent()
            join, joined_in = (None if hole is None else ExtentJoin(batch)), hole
            if hole == _END and batch.first_offset != self._end + 1:
                return
        if join is not None:
            yield join.extent()

    def _hole(self, extent: Extent) -> int | None:
        """Return the hole for an extent, identified by the first offset after it, or _END; None without a hole."""
        number = bisect_right(self._firsts, extent.first_offset) - 1
        if number < 0:
            following = self._firsts[0]
            return following if extent.last_offset < following else None
        block = self._blocks[number]
        place = bisect_right(block, extent.first_offset, key=_first_offset)
        if block[place - 1].last_offset >= extent.first_offset:
            return None
        if place == len(block) and number + 1 == len(self._blocks):
            return _END
        following = block[place].first_offset if place < len(block) else self._firsts[number + 1]
        return following if extent.last_offset < following else None

    def _add(self, extent: Extent) -> None:
        number = max(bisect_right(self._firsts, extent.first_offset) - 1, 0)
        block = self._blocks[number]
        insort(block, extent, key=_first_offset)
        if len(block) > 2 * _BLOCK:
            self._blocks[number : number + 1] = [block[:_BLOCK], block[_BLOCK:]]
            self._firsts.insert(number + 1, block[_BLOCK].first_offset)
        self._firsts[number] = block[0].first_offset


# --- remaining batches ------------------------------------------------------------------------------------------------


def judge_rest(rests: Iterable[list[Extent]], kept: list[Extent], batches: ExtentBatches) -> tuple[int, list[Extent]]:
    """Return the number of intact batches outside the chains that are kept elsewhere, and the other batches."""
    own = _ExtentPositions(kept)
    left = [batch for rest in rests for extent in rest for batch in batches.of(extent) if not own.hold(batch)]
    copies = _copies(left, kept, batches)
    unplaced = [batch for number, batch in enumerate(left) if number not in copies]
    return len(copies), list(joined_neighbours(unplaced))


class _ExtentPositions:
    """The kept bytes of each log."""

    def __init__(self, kept: list[Extent]) -> None:
        self._ends: dict[object, list[tuple[int, int]]] = defaultdict(list)
        for extent in kept:
            self._ends[extent.log].append((extent.position, extent.end))
        for ends in self._ends.values():
            ends.sort()

    def hold(self, batch: Extent) -> bool:
        """Return True if a batch is among them."""
        ends = self._ends.get(batch.log, [])
        place = bisect_right(ends, (batch.position, batch.end)) - 1
        later = ends[place + 1] if place + 1 < len(ends) else None
        is_first = later is not None and later[0] == batch.position
        return is_first or (place >= 0 and batch.position < ends[place][1])


def _copies(left: list[Extent], kept: list[Extent], batches: ExtentBatches) -> set[int]:
    """Return indices of the batches that a kept batch with the same last offset equals, byte for byte."""
    by_extent: dict[int, list[int]] = defaultdict(list)
    for number in sorted(range(len(left)), key=lambda number: left[number].last_offset):
        place = bisect_right(kept, left[number].last_offset, key=_first_offset) - 1
        if place >= 0 and left[number].last_offset <= kept[place].last_offset:
            by_extent[place].append(number)
    found: set[int] = set()
    for place, numbers in by_extent.items():
        asked: dict[int, list[int]] = defaultdict(list)
        for number in numbers:
            asked[left[number].last_offset].append(number)
        for batch in batches.of(kept[place]):
            same = [number for number in asked.get(batch.last_offset, ()) if left[number].size == batch.size]
            if same:
                raw = batches.read(batch)
                found.update(number for number in same if batches.read(left[number]) == raw)
    return found


LARGEST_SEGMENT = 2**31 - 1
"""Most bytes that a segment's indexes can address."""


class Hole(NamedTuple):
    """Offsets that no intact batch has; `last` is None for an unknown end, `next_good` if nothing follows."""

    first: int
    last: int | None
    next_good: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Salvage:
    """The data of a partition that can be saved.

    name: the new directory's. extents: the kept extents, in order of offsets; `segments` groups them by base offset.
    duplicates: intact batches that are kept already. reordered: batches that were out of order. unplaced: intact
    batches whose offsets fit nowhere. inner_problems: problems inside kept batches with a right CRC, each with its log.
    abandoned: batches that the cluster continued without, of each copy that has some. set_aside: directories with the
    partition's name that belong to another. lost_ends: transactions whose markers aren't kept; some markers are written
    again.
    """

    name: str
    topic: str | None
    partition: int | None
    replicas: tuple[Replica, ...]
    segments: tuple[tuple[int, tuple[Extent, ...]], ...]
    duplicates: int = 0
    reordered: int = 0
    unplaced: tuple[Extent, ...] = ()
    holes: tuple[Hole, ...] = ()
    inner_problems: tuple[tuple[Path, InnerProblem], ...] = ()
    abandoned: "tuple[AbandonedBatches, ...]" = ()
    set_aside: tuple[LeftOut, ...] = ()
    lost_ends: tuple[LostEnd, ...] = ()

    @property
    def pieces(self) -> Iterator[tuple[int, list[Extent | LostEnd]]]:
        """The data to write: the base offsets of segments, and their extents and new markers, in order of offsets."""
        markers = sorted((each for each in self.lost_ends if each.marker is not None), key=attrgetter("offset"))
        for number, (base, extents) in enumerate(self.segments):
            end = self.segments[number + 1][0] if number + 1 < len(self.segments) else MOST
            new = [each for each in markers if base <= each.offset < end]
            yield base, sorted([*extents, *new], key=_first_of)

    @property
    def extents(self) -> Iterator[Extent]:
        """The kept extents, in order of offsets."""
        for _, extents in self.segments:
            yield from extents

    @property
    def log_end_offset(self) -> int:
        """The next offset to write after the kept batches."""
        base, extents = self.segments[-1]
        end = extents[-1].last_offset + 1 if extents else base
        return max(end, *(each.offset + 1 for each in self.lost_ends)) if self.lost_ends else end

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
        """Losses of all replicas; another replica may fill them."""
        for replica in self.replicas:
            yield from replica.losses

    @property
    def is_foreign(self) -> bool:
        """True if nothing is kept, since the logs are other files, for example pointers to them."""
        reasons = {found.loss.reason for found in self.losses}
        return not self.batch_count and reasons == {DamageKind.FOREIGN_CONTENT}

    @property
    def undone(self) -> tuple[UndoneLog, ...]:
        """Logs of all replicas that were changed as text, and are read in their former state."""
        return tuple(each for replica in self.replicas for each in replica.undone)

    @property
    def is_whole(self) -> bool:
        """True if nothing is lost, and no unreadable data stays."""
        return not (self.holes or self.unplaced or self.inner_problems or self.has_losses)

    @property
    def has_losses(self) -> bool:
        """True if bytes of a copy aren't batches. The unwritten end of the last segment isn't a loss."""
        return any(_is_loss(found) for found in self.losses)


def _first_of(piece: Extent | LostEnd) -> int:
    return piece.offset if isinstance(piece, LostEnd) else piece.first_offset


class AbandonedBatches(NamedTuple):
    """Batches of a copy whose lineage the cluster abandoned, as they can be kept separately."""

    copy: Copy[PartitionLog]
    batches: Salvage

    @property
    def owner(self) -> str:
        """The name of the copy, valid in a file system."""
        broker = self.copy.broker
        return self.copy.place.log_dir.name if broker is None else f"broker-{broker}"


def _is_loss(found: FoundLoss) -> bool:
    """Return True if a loss is real. Unwritten space at the end of the last segment isn't."""
    reason = found.loss.reason
    if reason in set(DamageKind):
        reason = id_of_damage(DamageKind(reason), is_last=not was_closed(found.log))
    return bool(status_of(reason))


def plan_salvage(
    partition: PartitionReplicas[PartitionLog],
    *,
    keep_cache: bool = True,
    drop_unreadable: bool = False,
    on_read: Callable[[int], None] | None = None,
    undo: UndoneLogs | None = None,
) -> Salvage:
    """Plan the salvage of a partition; nothing is written, except copies of logs that `undo` takes.

    The best copy's batches are kept, and the others fill its holes, as far as they agree with it. `drop_unreadable`:
    batches with a right CRC and unreadable records are lost too. `on_read` takes the size of each log that was read.
    Raises OpenError if a log can't be opened.
    """
    replicas = [
        Replica(place, keep_cache=keep_cache, drop_unreadable=drop_unreadable, on_read=on_read, undo=undo)
        for place in partition.places
    ]
    abandoned: list[AbandonedBatches] = []
    with ExtentBatches() as batches:
        for replica, copy in zip(replicas, partition.copies, strict=True):
            if copy.agreed_end is not None:
                left_out = replica.leave_out(copy.agreed_end, batches)
                abandoned.append(AbandonedBatches(copy, _of_abandoned(partition, replica, left_out)))
        return _join_replicas(partition, replicas, batches, tuple(abandoned))


def _of_abandoned(partition: PartitionReplicas[PartitionLog], replica: Replica, extents: list[Extent]) -> Salvage:
    """Return the batches of an abandoned lineage, as a partition of their own."""
    kept = list(joined_neighbours(longest_rising(extents)))
    return Salvage(partition.name, partition.topic, partition.partition, (replica,), tuple(_segments(kept)))


def _join_replicas(
    partition: PartitionReplicas[PartitionLog],
    replicas: Sequence[Replica],
    batches: ExtentBatches,
    abandoned: "tuple[AbandonedBatches, ...]",
) -> Salvage:
    is_compacted = any(replica.is_compacted for replica in replicas)
    has_gaps = is_compacted or not are_gapless(partition.copies)
    kept: list[Extent] = []
    rests: list[list[Extent]] = []
    lost: list[Span] = []
    for number, replica in enumerate(replicas):
        chain = longest_rising(replica.extents)
        if number == 0:
            kept, lost = chain, _lost_spans(replica, chain) if has_gaps else [_EVERYWHERE]
        else:
            kept = fill_holes(kept, chain, batches, lost)
            lost = list(_common_spans(lost, _not_told_by(replica, chain))) if has_gaps else lost
        chosen = set(chain)
        rests.append([extent for extent in replica.extents if extent not in chosen])
        kept = with_strays(kept, rests[-1], batches)
        rests[-1] += replica.misplaced
    holes = tuple(_holes(kept, replicas, is_compacted=is_compacted))
    kept = list(joined_neighbours(kept))
    stray_count = sum(extent.batch_count for rest in rests for extent in rest)
    duplicates, unplaced = judge_rest(rests, kept, batches)
    return Salvage(
        name=partition.name,
        topic=partition.best.topic,
        partition=partition.partition,
        replicas=tuple(replicas),
        segments=(*_segments(kept), *_empty_segment(kept, replicas)),
        duplicates=duplicates,
        reordered=stray_count - duplicates - sum(extent.batch_count for extent in unplaced),
        unplaced=tuple(unplaced),
        holes=holes,
        inner_problems=tuple(_problems_inside(kept, replicas)),
        abandoned=abandoned,
        set_aside=tuple(each for each in partition.left_out if each.offsets is None),
        lost_ends=tuple(_lost_ends(partition, replicas, kept)),
    )


def _lost_ends(
    partition: PartitionReplicas[PartitionLog], replicas: Sequence[Replica], kept: Sequence[Extent]
) -> list[LostEnd]:
    """Return the lost ends of transactions; they are only searched if bytes of a log are lost."""
    may_be_lost = any(each.has_transactions for each in replicas) and any(each.losses for each in replicas)
    return lost_ends(whole_log(partition), kept) if may_be_lost else []


def _problems_inside(kept: Iterable[Extent], replicas: Sequence[Replica]) -> Iterator[tuple[Path, InnerProblem]]:
    """Yield the problems inside kept batches; omitted batches, such as duplicates, don't count."""
    ranges: defaultdict[Path, list[tuple[int, int]]] = defaultdict(list)
    for extent in kept:
        ranges[extent.log].append((extent.position, extent.end))
    for found in ranges.values():
        found.sort()
    for replica in replicas:
        for log, problem in replica.inner_problems:
            place = bisect_right(ranges[log], problem.position, key=_start_of)
            if place and problem.position < ranges[log][place - 1][1]:
                yield log, problem


def _start_of(positions: tuple[int, int]) -> int:
    return positions[0]


def _segments(kept: list[Extent]) -> Iterator[tuple[int, tuple[Extent, ...]]]:
    """Yield the kept extents by segments: those of the source, split if indexes couldn't address them."""
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
    """Yield an active segment without batches: its base offset is the log end offset, which must not decrease."""
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
    return "damage" if extent.follows_loss else "missing"


def _hole_at_end(kept: list[Extent], replicas: Sequence[Replica], start: int) -> Iterator[Hole]:
    """Yield the offsets lost after the last batch, as far as a checkpoint or a loss shows them."""
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
