"""Findings that another finding explains: who follows the advice about the cause needs none about them."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from kseg.findings.findings import Finding
from kseg.formats.file_names import parse_file_name
from kseg.log.partition import PartitionLog

_DAMAGE = frozenset({"cut-segment", "unclean-tail", "unclean-zeros", "bad-length", "bad-magic", "bad-crc"})
_BEYOND_DAMAGE = frozenset({"index-entry", "time-index-entry", "transaction-unfounded"})
"""Of indexes: what points into the part of a log that can't be read."""
_MISSING = frozenset({"orphan-index", "leftover-log", "cut-segment"})
"""Where the log of a segment is gone, all of it or its end."""
_HOLES = frozenset({"offsets-lost", "offsets-missing"})


def without_consequences(partition: PartitionLog, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings in a partition, without those that others explain."""
    damage = {each.file: each for each in findings if each.id in _DAMAGE}
    starts = {start for each in findings if each.id in _MISSING and (start := _start_of(each)) is not None}
    offsets = sorted((*partition.base_offsets, *starts)) if starts else []
    for each in findings:
        cause = damage.get(each.file.with_suffix(".log"))
        is_beyond = each.id in _BEYOND_DAMAGE and cause is not None and _is_after(each, cause)
        is_hole = each.id in _HOLES and _last_before(each, offsets) in starts
        if not (is_beyond or is_hole):
            yield each


def _is_after(finding: Finding, cause: Finding) -> bool:
    last = finding.last_offset if finding.last_offset is not None else finding.first_offset
    return cause.first_offset is None or last is None or last >= cause.first_offset


def _start_of(finding: Finding) -> int | None:
    """The first offset that is missing."""
    return parse_file_name(finding.file).base_offset if finding.first_offset is None else finding.first_offset


def _last_before(hole: Finding, offsets: Sequence[int]) -> int | None:
    """The last of some ascending offsets that isn't after a hole's beginning."""
    slot = 0 if hole.first_offset is None else bisect_right(offsets, hole.first_offset)
    return offsets[slot - 1] if slot else None
