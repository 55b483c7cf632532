"""A plan of what `salvage` saves, from one directory or from several replicas that fill holes."""

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
"""Extents that a block of `_Kept` begins with: what is put in moves a block, not all."""
_END = -1
_EVERYWHERE = Span(0, None)
_first_offset, _last_offset = attrgetter("first_offset"), attrgetter("last_offset")


def is_mere_gap(before: Extent | None, extent: Extent, *, is_compacted: bool) -> bool:
    """Whether nothing is missing before an extent but what compaction took."""
    if before is not None and extent.first_offset == before.last_offset + 1:
        return True
    return is_compacted and not extent.follows_loss


def filled(kept: list[Extent], rising: list[Extent], batches: ExtentBatches, lost: Sequence[Span]) -> list[Extent]:
    """Extents with lost offsets between them, and after them, filled from others; all three rise."""
    cutter = _Cutter(rising, batches)
    found = list(kept)
    for span in _common_spans(_holes_between(kept), lost):
        found += cutter.parts(*span)
    return sorted(found, key=_first_offset)


def _holes_between(kept: Iterable[Extent]) -> list[Span]:
    """The offsets that no extent has."""
    first = 0
    holes: list[Span] = []
    for extent in kept:
        if extent.first_offset > first:
            holes.append(Span(first, extent.first_offset - 1))
        first = extent.last_offset + 1
    return [*holes, Span(first, None)]


def _common_spans(one: Sequence[Span], other: Sequence[Span]) -> Iterator[Span]:
    """The offsets that are in two lists of spans; all rise."""
    at = 0
    for span in one:
        while at < len(other):
            first = max(span.first, other[at].first)
            last = min((each for each in (span.last, other[at].last) if each is not None), default=None)
            if last is None or first <= last:
                yield Span(first, last)
            if other[at].last is None or (span.last is not None and span.last < (other[at].last or 0)):
                break  # it may go on in the next one
            at += 1


def _lost_spans(replica: Replica, chain: Sequence[Extent]) -> list[Span]:
    """What a copy lacks that no compaction took of it: what damage may have had, and what would follow its end."""
    bases = replica.partition.base_offsets
    end = max([*bases[-1:], *(extent.last_offset + 1 for extent in chain[-1:])], default=0)
    spans: list[Span] = []
    for first, last in sorted((span.first, end - 1 if span.last is None else span.last) for span in replica.lost):
        start = max(first, (spans[-1].last or 0) + 1) if spans else first
        if start <= min(last, end - 1):
            spans.append(Span(start, min(last, end - 1)))
    return [*spans, Span(end, None)]


def _not_told_by(replica: Replica, chain: Sequence[Extent]) -> list[Span]:
    """The offsets of which a further copy tells neither what it was nor that it is gone."""
    bases = replica.partition.base_offsets
    if not bases:
        return [_EVERYWHERE]
    return [*([Span(0, bases[0] - 1)] if bases[0] else []), *_lost_spans(replica, chain)]


class _Cutter:
    """Yields the parts of ordered extents that are completely between two offsets; ask for later ones later."""

    def __init__(self, rising: list[Extent], batches: ExtentBatches) -> None:
        self._rising = rising
        self._place = 0
        self._batches = batches
        self._left: Iterator[Extent] | None = None
        self._next: Extent | None = None

    def parts(self, first: int, last: int | None) -> Iterator[Extent]:
        """Extents, or parts of them, from one offset to another."""
        while self._place < len(self._rising):
            extent = self._rising[self._place]
            if last is not None and extent.first_offset > last:
                return
            if extent.first_offset >= first and (last is None or extent.last_offset <= last):
                yield extent
            elif extent.last_offset >= first:
                yield from self._part(extent, first, last)
                if last is not None and extent.last_offset > last:
                    return  # what follows may lie in a later hole
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
    """Extents, plus those that are out of order in the log but fit into a hole between them or directly after them."""
    if not kept:
        return kept
    room = _Kept(kept)
    for extent in strays:
        room.take(extent, batches)
    return list(room)


class _Kept:
    """Extents in the order of their offsets, none of which overlap."""

    def __init__(self, extents: list[Extent]) -> None:
        self._blocks = [extents[at : at + _BLOCK] for at in range(0, len(extents), _BLOCK)]
        self._firsts = [block[0].first_offset for block in self._blocks]

    def __iter__(self) -> Iterator[Extent]:
        for block in self._blocks:
            yield from block

    def take(self, extent: Extent, batches: ExtentBatches) -> None:
        """Adds an extent, or those of its batches for which there is room."""
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
        """What goes into each hole; after the last extent only what follows it directly."""
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
        """The hole for an extent, named by the first offset after it, or _END; None if there is none."""
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


# --- what is left over ------------------------------------------------------------------------------------------------


def judge_rest(rests: Iterable[list[Extent]], kept: list[Extent], batches: ExtentBatches) -> tuple[int, list[Extent]]:
    """Of intact batches outside the chains: the count of those that are kept elsewhere, and the others."""
    own = _ExtentPositions(kept)
    left = [batch for rest in rests for extent in rest for batch in batches.of(extent) if not own.hold(batch)]
    copies = _copies(left, kept, batches)
    unplaced = [batch for number, batch in enumerate(left) if number not in copies]
    return len(copies), list(joined_neighbours(unplaced))


class _ExtentPositions:
    """Which bytes of which log are kept."""

    def __init__(self, kept: list[Extent]) -> None:
        self._ends: dict[object, list[tuple[int, int]]] = defaultdict(list)
        for extent in kept:
            self._ends[extent.log].append((extent.position, extent.end))
        for ends in self._ends.values():
            ends.sort()

    def hold(self, batch: Extent) -> bool:
        """Whether a batch is among them."""
        ends = self._ends.get(batch.log, [])
        place = bisect_right(ends, (batch.position, batch.end)) - 1
        later = ends[place + 1] if place + 1 < len(ends) else None
        is_first = later is not None and later[0] == batch.position
        return is_first or (place >= 0 and batch.position < ends[place][1])


def _copies(left: list[Extent], kept: list[Extent], batches: ExtentBatches) -> set[int]:
    """Numbers of the batches of which a kept one is a copy, byte for byte: it has the same last offset."""
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
"""Bytes that a segment's indexes can address."""


class Hole(NamedTuple):
    """Offsets that no intact batch has; `last` is None where the end isn't known, `next_good` where nothing follows."""

    first: int
    last: int | None
    next_good: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Salvage:
    """What can be saved of a partition.

    name: the new directory's. extents: what is kept, in order of offsets; `segments` groups them by base offset.
    duplicates: intact batches that are kept already. reordered: batches that were out of order. unplaced: intact
    batches whose offsets fit nowhere. inner_problems: what is wrong inside batches that are kept as they are, since
    their CRC holds, each with its log. abandoned: batches that the cluster went on without, of each copy that has some.
    set_aside: directories of the partition's name that aren't its. lost_ends: what is known of transactions whose
    markers aren't kept; the markers of some are written anew.
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
        """What is written: the base offsets of segments, and their extents and new markers, in order of offsets."""
        markers = sorted((each for each in self.lost_ends if each.marker is not None), key=attrgetter("offset"))
        for number, (base, extents) in enumerate(self.segments):
            end = self.segments[number + 1][0] if number + 1 < len(self.segments) else MOST
            new = [each for each in markers if base <= each.offset < end]
            yield base, sorted([*extents, *new], key=_first_of)

    @property
    def extents(self) -> Iterator[Extent]:
        """What is kept, in order of offsets."""
        for _, extents in self.segments:
            yield from extents

    @property
    def log_end_offset(self) -> int:
        """The next offset to write after what is kept."""
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
        """Losses of all replicas; those of one may be filled from another."""
        for replica in self.replicas:
            yield from replica.losses

    @property
    def is_foreign(self) -> bool:
        """Whether nothing is kept, since the logs are other files: pointers to them, for example."""
        reasons = {found.loss.reason for found in self.losses}
        return not self.batch_count and reasons == {DamageKind.FOREIGN_CONTENT}

    @property
    def undone(self) -> tuple[UndoneLog, ...]:
        """Logs of all replicas that were changed as text, and are read as they were before."""
        return tuple(each for replica in self.replicas for each in replica.undone)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is lost, and nothing stays that can't be read."""
        return not (self.holes or self.unplaced or self.inner_problems or self.has_losses)

    @property
    def has_losses(self) -> bool:
        """Whether bytes of a copy are no batches; the unwritten end of the last segment is no loss."""
        return any(_is_loss(found) for found in self.losses)


def _first_of(piece: Extent | LostEnd) -> int:
    return piece.offset if isinstance(piece, LostEnd) else piece.first_offset


class AbandonedBatches(NamedTuple):
    """Batches of a copy whose lineage the cluster abandoned, as they can be kept apart."""

    copy: Copy[PartitionLog]
    batches: Salvage

    @property
    def owner(self) -> str:
        """Names the copy, in a file system too."""
        broker = self.copy.broker
        return self.copy.place.log_dir.name if broker is None else f"broker-{broker}"


def _is_loss(found: FoundLoss) -> bool:
    """Whether a loss is one: the unwritten end of the last segment is none."""
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
    """What can be saved of a partition; nothing is written, but copies of logs that `undo` takes.

    The best copy's batches are kept, and the others fill its holes, as far as they agree with it. `drop_unreadable`:
    batches whose CRC holds, but not all of whose records can be read, are lost too. `on_read` takes the size of each
    log that was read. Raises OpenError if a log can't be opened.
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
        return _joined(partition, replicas, batches, tuple(abandoned))


def _of_abandoned(partition: PartitionReplicas[PartitionLog], replica: Replica, extents: list[Extent]) -> Salvage:
    """The batches of an abandoned lineage, as a partition of their own."""
    kept = list(joined_neighbours(longest_rising(extents)))
    return Salvage(partition.name, partition.topic, partition.partition, (replica,), tuple(_segments(kept)))


def _joined(
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
            kept = filled(kept, chain, batches, lost)
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
    """What is known of lost markers; the walk for it is made only where bytes of a log are lost."""
    may_be_lost = any(each.has_transactions for each in replicas) and any(each.losses for each in replicas)
    return lost_ends(whole_log(partition), kept) if may_be_lost else []


def _problems_inside(kept: Iterable[Extent], replicas: Sequence[Replica]) -> Iterator[tuple[Path, InnerProblem]]:
    """What is wrong inside batches that are kept; of one that is left out, as a duplicate say, nothing."""
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
    return "damage" if extent.follows_loss else "missing"


def _hole_at_end(kept: list[Extent], replicas: Sequence[Replica], start: int) -> Iterator[Hole]:
    """What is lost after the last batch, as far as a checkpoint says what was there, or a loss shows it."""
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
