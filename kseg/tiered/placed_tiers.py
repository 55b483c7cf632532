"""Partitions in remote tiers that directories stand for, and their leader epochs."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from kseg.formats.file_names import MAXIMUM_OFFSET
from kseg.store.location import ObjectStore, place_of
from kseg.system.placed_path import PlacedPath
from kseg.tiered.remote_segment import RemotePartition, RemoteSegment
from kseg.tiered.segment_bytes import PrivateKeys

Epochs = tuple[tuple[int, int], ...]
"""Leader epochs and the offsets that they start at, rising."""


class Standing(StrEnum):
    """What a segment in a remote tier counts for."""

    USED = "used"
    USED_IN_PART = "used in part"
    SUPERSEDED = "superseded"
    DUPLICATE = "duplicate"
    UNFINISHED = "unfinished"
    BROKEN = "broken"
    LOCAL = "also local"


class Choice(NamedTuple):
    """A segment's standing. end: the offset that others begin at, where it is used only below that; else None."""

    segment: RemoteSegment
    standing: Standing
    end: int | None = None

    @property
    def is_used(self) -> bool:
        """Whether the log has records of it."""
        return self.standing in (Standing.USED, Standing.USED_IN_PART)


def lineage_of(histories: Iterable[Epochs], own: Epochs = ()) -> Epochs:
    """The epochs that a log went through, of the histories that its segments know.

    A later epoch takes away what earlier ones have from its start on. own: what the log's own checkpoint has, which is
    right from its first epoch on; what was before may be cut from it. Source: LeaderEpochFileCache.assign.
    """
    starts = dict(own)
    first = own[0][0] if own else None
    for history in histories:
        for epoch, start in history:
            if first is None or epoch <= first:
                starts[epoch] = min(start, starts.get(epoch, start))
    lineage: list[tuple[int, int]] = []
    for epoch, start in sorted(starts.items()):
        while lineage and lineage[-1][1] >= start:
            lineage.pop()
        lineage.append((epoch, start))
    return tuple(lineage)


def last_usable(segment: RemoteSegment, end: int, lineage: Epochs) -> int:
    """The last offset up to which a segment is of a lineage; below its base if it isn't at all.

    end: its last offset.
    """
    if not lineage:
        return end
    starts = dict(lineage)
    ends = dict(zip(starts, [*(start - 1 for _, start in lineage[1:]), MAXIMUM_OFFSET], strict=True))
    following = [*(start for _, start in segment.epochs[1:]), MAXIMUM_OFFSET]
    epochs = [each for each, after in zip(segment.epochs, following, strict=False) if after > each[1]]
    for number, (epoch, first) in enumerate(epochs):
        begins = max(first, segment.base_offset)
        if epoch not in starts or not starts[epoch] <= begins <= ends[epoch]:
            return begins - 1
        last = epochs[number + 1][1] - 1 if number + 1 < len(epochs) else end
        if last > ends[epoch]:
            return ends[epoch]
    return end


def choose(segments: Sequence[RemoteSegment], lineage: Epochs, local_start: int | None = None) -> tuple[Choice, ...]:
    """The standing of each segment, in their order.

    Where several have the same offsets, the one counts that begins latest, then the one that reaches further, then the
    one that was uploaded last, as a broker has it. local_start: where the local log begins, which counts from there on.
    """
    ends = _last_offsets(segments)
    usable = [last_usable(each, end, lineage) for each, end in zip(segments, ends, strict=True)]
    standings: list[Standing | None] = [
        _standing_alone(segment, last, local_start) for segment, last in zip(segments, usable, strict=True)
    ]
    used: list[int] = []

    def rank(slot: int) -> tuple[int, int, int]:
        segment = segments[slot]
        return segment.base_offset, -usable[slot], -(segment.event_timestamp or segment.modified_ms)

    for slot in sorted((slot for slot, standing in enumerate(standings) if standing is None), key=rank):
        if used and usable[slot] <= usable[used[-1]]:
            standings[slot] = Standing.DUPLICATE
        else:
            used.append(slot)
    cuts: dict[int, int] = {}
    for slot, following in zip_longest(used, used[1:]):
        next_base = local_start if following is None else segments[following].base_offset
        end = min(usable[slot] + 1, MAXIMUM_OFFSET if next_base is None else next_base)
        if end <= ends[slot]:
            cuts[slot] = end
    return tuple(
        Choice(each, standing or (Standing.USED_IN_PART if slot in cuts else Standing.USED), cuts.get(slot))
        for slot, (each, standing) in enumerate(zip(segments, standings, strict=True))
    )


def _standing_alone(segment: RemoteSegment, usable: int, local_start: int | None) -> Standing | None:
    """Why a segment isn't used, whatever the others are; None if it may be."""
    if segment.is_unfinished:
        return Standing.UNFINISHED
    if segment.log is None:
        return Standing.BROKEN
    if usable < segment.base_offset:
        return Standing.SUPERSEDED
    return Standing.LOCAL if local_start is not None and segment.base_offset >= local_start else None


def _last_offsets(segments: Sequence[RemoteSegment]) -> list[int]:
    """The last offset of each; where it isn't known, the one before the next segment's first."""
    bases = sorted({each.base_offset for each in segments if each.log is not None})
    following = dict(zip_longest(bases, bases[1:], fillvalue=MAXIMUM_OFFSET))
    return [
        following.get(each.base_offset, MAXIMUM_OFFSET) - 1 if each.end_offset is None else each.end_offset
        for each in segments
    ]


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """A partition in a remote tier that a directory stands for. lineage: its leader epochs, as far as known.

    local_start: where the local log begins that it was joined with; None without one.
    """

    remote: RemotePartition
    store: ObjectStore
    keys: PrivateKeys
    lineage: Epochs
    choices: tuple[Choice, ...]
    local_start: int | None = None

    @property
    def used(self) -> Sequence[Choice]:
        """The segments that are used."""
        return [choice for choice in self.choices if choice.is_used]

    def used_at(self, base_offset: int) -> Choice | None:
        """The segment that is used with a base offset; None if it is none of the tier's."""
        return next((choice for choice in self.used if choice.segment.base_offset == base_offset), None)

    def place_of(self, segment: RemoteSegment) -> str:
        """Where a segment's objects lie, without their suffixes."""
        return place_of(self.store, segment.key)


def are_of_tiers(paths: Iterable[Path]) -> bool:
    """Whether any of some paths leads to what stands for partitions in a tier."""
    return any(isinstance(path, PlacedPath) and any(path.placement.partitions) for path in paths)


def placed_at(directory: Path) -> PlacedPartition | None:
    """The partition in a tier that a directory stands for; None if it is an ordinary one."""
    if not isinstance(directory, PlacedPath):
        return None
    placement = directory.placement
    found = placement.partition if os.fspath(directory) == placement.root else None
    assert found is None or isinstance(found, PlacedPartition)
    return found
