"""Findings that another finding explains: the advice about the cause is enough."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from kseg.findings.at_start import BAD_BYTES
from kseg.findings.findings import Finding
from kseg.formats.file_names import parse_file_name
from kseg.log.partition import PartitionLog

_DAMAGE = frozenset({"cut-segment", "unclean-tail", "unclean-zeros", *BAD_BYTES}) - {"unreadable"}
_BEYOND_DAMAGE = frozenset({"index-entry", "time-index-entry", "transaction-unfounded"})
"""Findings of indexes that point into the unreadable part of a log."""
_MISSING = frozenset({"orphan-index", "leftover-log", "cut-segment", "emptied-files"})
"""Findings where a segment's log, or its end, is missing."""
_HOLES = frozenset({"offsets-lost", "offsets-missing"})
_OF_EMPTY = frozenset({"snapshot-unreadable", "cut-segment", "index-entry", "index-unsorted", "time-index-entry"})
"""Findings in empty files, or in indexes of empty logs."""
_OF_OFFSETS = frozenset(
    {"offsets-fall", "duplicate-batch", "offset-below-base", "offset-too-far", "segment-overlap", "leader-epoch-falls"}
)
"""Findings of a log converted as text: extra bytes before offsets, which the CRC doesn't cover, cause them."""
_BEYOND_END = frozenset({"log-end-lost", "checkpoint-beyond-end", "snapshot-beyond-end", "leader-epoch-beyond-end"})
"""Findings about a log that ends earlier than other files show."""


def without_consequences(partition: PartitionLog, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield a partition's findings without the ones that others explain."""
    damage = {each.file: each for each in findings if each.id in _DAMAGE}
    changed = {each.file: each for each in reversed(findings) if each.id == "changed-as-text"}
    starts = {start for each in findings if each.id in _MISSING and (start := _start_of(each)) is not None}
    offsets = sorted((*partition.base_offsets, *starts)) if starts else []
    last = partition.active_segment
    is_emptied = any(each.id == "emptied-files" for each in findings)
    emptied = set(_without_bytes(partition)) if is_emptied else set()
    others = {each.file for each in findings if each.id == "foreign-content"}
    no_log = {*others, *changed, *emptied}
    for each in findings:
        cause = damage.get(each.file.with_suffix(".log"))
        is_beyond = each.id in _BEYOND_DAMAGE and cause is not None and _is_after(each, cause)
        is_hole = each.id in _HOLES and _last_before(each, offsets) in starts
        is_end = last is not None and last.path in no_log and each.id in _BEYOND_END
        is_more = each.id == "changed-as-text" and each is not changed[each.file]
        is_shifted = each.id in _OF_OFFSETS | _HOLES and each.file in changed
        is_other = each.file in others and each.id in _DAMAGE and each.id != "foreign-content"
        is_empty = each.id in _OF_EMPTY and (each.file in emptied or each.file.with_suffix(".log") in emptied)
        if not (is_beyond or is_hole or is_end or is_more or is_shifted or is_other or is_empty):
            yield each


def _without_bytes(partition: PartitionLog) -> Iterator[Path]:
    yield from (each.path for each in partition.segments if not each.size)
    yield from (each.path for each in partition.snapshots.values() if not each.size)


def _is_after(finding: Finding, cause: Finding) -> bool:
    last = finding.last_offset if finding.last_offset is not None else finding.first_offset
    return cause.first_offset is None or last is None or last >= cause.first_offset


def _start_of(finding: Finding) -> int | None:
    """Return the first missing offset."""
    return parse_file_name(finding.file).base_offset if finding.first_offset is None else finding.first_offset


def _last_before(hole: Finding, offsets: Sequence[int]) -> int | None:
    """Return the last of some ascending offsets up to a hole's beginning."""
    slot = 0 if hole.first_offset is None else bisect_right(offsets, hole.first_offset)
    return offsets[slot - 1] if slot else None
