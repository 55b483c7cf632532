"""Partitions in remote tiers that local directories represent, and their leader epochs."""

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
"""Leader epochs and their start offsets, rising."""


class Standing(StrEnum):
    """The role of a remote segment in its partition's log."""

    USED = "used"
    USED_IN_PART = "used in part"
    SUPERSEDED = "superseded"
    DUPLICATE = "duplicate"
    UNFINISHED = "unfinished"
    BROKEN = "broken"
    LOCAL = "also local"


class Choice(NamedTuple):
    """A segment and its standing.

    end: the first offset that other segments provide, if the segment is used in part; else None.
    """

    segment: RemoteSegment
    standing: Standing
    end: int | None = None

    @property
    def is_used(self) -> bool:
        """True if the log has records of the segment."""
        return self.standing in (Standing.USED, Standing.USED_IN_PART)


def lineage_of(histories: Iterable[Epochs], own: Epochs = ()) -> Epochs:
    """Return the epochs that a log went through, from the histories that its segments know.

    A later epoch removes the offsets of earlier ones from its start on. own: the log's own checkpoint, which is
    complete from its first epoch on; earlier epochs may be missing in it. Source: LeaderEpochFileCache.assign.
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
    """Return the last offset up to which a segment belongs to a lineage; an offset below its base if it doesn't.

    end: the segment's last offset.
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
    """Return the standing of each segment, in the same order.

    Of segments with the same offsets, the one that begins last takes precedence. Next come the one that ends last, and
    the one that was uploaded last, as on a broker. local_start: the first offset of the local log, which takes
    precedence from there on.
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
    """Return the reason why a segment isn't used, regardless of the others, or None if it may be used."""
    if segment.is_unfinished:
        return Standing.UNFINISHED
    if segment.log is None:
        return Standing.BROKEN
    if usable < segment.base_offset:
        return Standing.SUPERSEDED
    return Standing.LOCAL if local_start is not None and segment.base_offset >= local_start else None


def _last_offsets(segments: Sequence[RemoteSegment]) -> list[int]:
    """Return the last offset of each segment; if unknown, the offset before the next segment's first."""
    bases = sorted({each.base_offset for each in segments if each.log is not None})
    following = dict(zip_longest(bases, bases[1:], fillvalue=MAXIMUM_OFFSET))
    return [
        following.get(each.base_offset, MAXIMUM_OFFSET) - 1 if each.end_offset is None else each.end_offset
        for each in segments
    ]


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """A partition in a remote tier that a directory represents. lineage: its leader epochs, as far as known.

    local_start: the first offset of the local log that it was joined with; None without a local log.
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
        """Return the used segment with a base offset, or None if the tier doesn't have one."""
        return next((choice for choice in self.used if choice.segment.base_offset == base_offset), None)

    def place_of(self, segment: RemoteSegment) -> str:
        """Return the location of a segment's objects, without their suffixes."""
        return place_of(self.store, segment.key)


def are_of_tiers(paths: Iterable[Path]) -> bool:
    """Return True if any path leads to a directory that represents partitions of a tier."""
    return any(isinstance(path, PlacedPath) and any(path.placement.partitions) for path in paths)


def placed_at(directory: Path) -> PlacedPartition | None:
    """Return the partition of a tier that a directory represents, or None for an ordinary directory."""
    if not isinstance(directory, PlacedPath):
        return None
    placement = directory.placement
    found = placement.partition if os.fspath(directory) == placement.root else None
    assert found is None or isinstance(found, PlacedPartition)
    return found
