"""Completeness of carved partitions: offsets that are missing inside, and at the ends by old checkpoints."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from operator import ne
from typing import NamedTuple

from kseg.carve.chains import CarvedPartition, Rows, first_header, last_header
from kseg.carve.checkpoint_names import CheckpointOffset
from kseg.carve.runs import Runs


class OldEnds(NamedTuple):
    """The smallest and the largest offset that old checkpoints have for a partition.

    A checkpoint doesn't say whether it has high watermarks, recovery points or log starts. All of them are at least the
    log start of their time, and at most the log end.
    """

    first: int
    last: int


class Completeness(NamedTuple):
    """Offsets without a batch: between the first and the last one, in how many gaps, and at least before and after.

    before, after: None if no checkpoint of the partition's name was found.
    """

    inside: int
    gaps: int
    before: int | None
    after: int | None


def old_ends(offsets: Iterable[CheckpointOffset]) -> dict[str, OldEnds]:
    """Return the ends of partitions by the names of their directories. offsets: those of checkpoints, in order."""
    found: dict[str, OldEnds] = {}
    for offset, directory in offsets:
        found[directory] = OldEnds(found[directory].first if directory in found else offset, offset)
    return found


def completeness_of(runs: Runs, partition: CarvedPartition, ends: Mapping[str, OldEnds]) -> Completeness:
    """Return the offsets that a partition lacks. The log cleaner also leaves gaps."""
    parts = partition.parts
    first, last = first_header(runs, parts[0]).first_offset, last_header(runs, parts[-1]).last_offset
    between = [
        first_header(runs, after).first_offset - last_header(runs, before).last_offset - 1
        for before, after in pairwise(parts)
    ]
    inside, gaps = sum(between), sum(map(bool, between))
    for part in parts:
        if isinstance(part, Rows):
            firsts = runs.batches.column("base_offset", part.first + 1, part.last)
            lasts = runs.batches.column("last_offset", part.first, part.last - 1)
            inside += sum(firsts) - sum(lasts) - len(firsts)
            gaps += sum(map(ne, firsts, map((1).__add__, lasts)))
    known = ends.get(partition.name)
    if known is None:
        return Completeness(inside, gaps, None, None)
    return Completeness(inside, gaps, max(first - known.first, 0), max(known.last - last - 1, 0))
