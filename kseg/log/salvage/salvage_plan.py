"""What `salvage` can save of a damaged partition, put together from one directory or several replicas."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kseg.findings.finding_kinds import id_of_damage, status_of
from kseg.formats.codes import MAXIMUM_RELATIVE_OFFSET, DamageKind
from kseg.formats.names import DirectoryState
from kseg.log.partition.closed_segment import was_closed
from kseg.log.partition.log_dir import Refuse, find_partitions
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.replicas import require_one_topic
from kseg.log.salvage.extents import Extent, ExtentBatches, joined_neighbours, longest_rising
from kseg.log.salvage.filling import filled, is_mere_gap, judge_rest, with_strays
from kseg.log.salvage.inner_problems import InnerProblem
from kseg.log.salvage.replica import FoundLoss, Replica

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
    their CRC holds, each with its log.
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
    inner_problems: tuple[tuple[Path, InnerProblem], ...]

    @property
    def extents(self) -> Iterator[Extent]:
        """What is kept, in order of offsets."""
        for _, extents in self.segments:
            yield from extents

    @property
    def log_end_offset(self) -> int:
        """The next offset to write after what is kept."""
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
    def is_whole(self) -> bool:
        """Whether nothing is lost, nothing stays that can't be read, and nothing came twice or out of order."""
        if self.holes or self.unplaced or self.duplicates or self.reordered or self.inner_problems:
            return False
        return not any(_is_loss(found) for found in self.losses)


def _is_loss(found: FoundLoss) -> bool:
    """Whether a loss is one: the unwritten end of the last segment is none."""
    reason = found.loss.reason
    if reason in set(DamageKind):
        reason = id_of_damage(DamageKind(reason), is_last=not was_closed(found.log))
    return bool(status_of(reason))


def find_replicas(
    paths: Iterable[Path], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> dict[str, list[PartitionLog]]:
    """The partitions at some paths, by the name that a broker gives their directory; those being deleted left out.

    `refuse`, `choice` and what is raised are as for `find_partitions`; also UsageError for replicas of different
    topics.
    """
    given = set(paths := list(paths))
    found: dict[str, list[PartitionLog]] = {}
    for partition in find_partitions(paths, refuse, choice):
        if partition.state is DirectoryState.DELETE and partition.path not in given:
            continue
        own = partition.path.absolute().name
        name = own if partition.topic is None else f"{partition.topic}-{partition.partition}"
        found.setdefault(name, []).append(partition)
    for partitions in found.values():
        require_one_topic(partitions)
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
    whose CRC holds, but not all of whose records can be read, are lost too. `on_read` takes the size of each log that
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
        name=name,
        topic=partition.topic,
        partition=partition.partition,
        replicas=tuple(replicas),
        segments=(*_segments(kept), *_empty_segment(kept, replicas)),
        duplicates=duplicates,
        reordered=stray_count - duplicates - sum(extent.batch_count for extent in unplaced),
        unplaced=tuple(unplaced),
        holes=holes,
        inner_problems=tuple(_problems_inside(kept, replicas)),
    )


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
