"""Checks the objects of a partition in a remote tier: manifests, sizes, unfinished uploads, gaps, overlaps."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from kseg.findings.findings import Finding, Findings
from kseg.log.partition.partition_log import PartitionLog
from kseg.tiered.lineage import Choice, Standing
from kseg.tiered.object_store import place_of
from kseg.tiered.placed_tiers import PlacedPartition, placed_at

_OTHERS_COUNT = (Standing.SUPERSEDED, Standing.DUPLICATE)


def check_tier(partition: PartitionLog, findings: Findings) -> None:
    """What is wrong with the objects that a partition's segments are read from; nothing of a local one."""
    placed = placed_at(partition.path)
    if placed is None:
        return
    for segment in placed.remote.segments:
        for problem in segment.problems:
            offsets = segment.base_offset, segment.end_offset
            findings.add(problem.finding, Path(place_of(placed.store, problem.key)), problem.sentence, offsets=offsets)
    for choice in placed.choices:
        if choice.standing in _OTHERS_COUNT:
            _add_overlap(placed, choice, findings)
    _check_gaps(placed, findings)


def _add_overlap(placed: PlacedPartition, choice: Choice, findings: Findings) -> None:
    """A segment whose offsets others have."""
    why = "of leader epochs that the log didn't go on from"
    if choice.standing is Standing.DUPLICATE:
        why = "which others have too"
    end = choice.segment.end_offset
    sentence = f"offsets {choice.segment.base_offset} to {'?' if end is None else end}, {why}: it isn't used"
    findings.add("remote-overlap", Path(placed.place_of(choice.segment)), sentence)


def _check_gaps(placed: PlacedPartition, findings: Findings) -> None:
    """Offsets that no segment has, by what is known of their ends."""
    for before, after in pairwise(placed.used):
        end, base = before.segment.end_offset, after.segment.base_offset
        if end is not None and end + 1 < base:
            _add_gap(placed, after, (end + 1, base - 1), findings)
    if placed.used and placed.local_start is not None:
        last = placed.used[-1]
        end = last.segment.end_offset
        if end is not None and end + 1 < placed.local_start:
            _add_gap(placed, last, (end + 1, placed.local_start - 1), findings)


def _add_gap(placed: PlacedPartition, choice: Choice, missing: tuple[int, int], findings: Findings) -> None:
    count = missing[1] - missing[0] + 1
    sentence = f"offsets {missing[0]} to {missing[1]}, {count} of them, are in no segment of the tier"
    findings.add("remote-gap", Path(placed.place_of(choice.segment)), sentence, offsets=missing)


def check_end(partition: PartitionLog, base_offset: int, next_offset: int | None, findings: Findings) -> None:
    """Whether a segment's batches go beyond its manifest's end offset."""
    placed = placed_at(partition.path)
    choice = None if placed is None else placed.used_at(base_offset)
    if placed is None or choice is None or next_offset is None or choice.end is not None:
        return
    end = choice.segment.end_offset
    if end is not None and next_offset > end + 1:
        sentence = f"its batches end at offset {next_offset - 1}, by the manifest it is {end}"
        findings.add("remote-end", Path(placed.place_of(choice.segment)), sentence, offsets=(end, next_offset - 1))


def without_misnamed_snapshot(partition: PartitionLog, found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, without those about the last segment's snapshot if its manifest's end, which names it, is wrong."""
    placed = placed_at(partition.path)
    findings = list(found)
    wrong = {each.first_offset for each in findings if each.id == "remote-end"} if placed is not None else set()
    names = {f"{end + 1:020}.snapshot" for end in wrong if end is not None}
    return (each for each in findings if each.file.name not in names)
