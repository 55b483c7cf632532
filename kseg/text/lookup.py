"""A lookup as text, and as the object of `-o json`."""

from collections.abc import Iterator
from datetime import tzinfo

from kseg.errors import plural
from kseg.formats.header_fields import OffsetIndexEntry, TimeIndexEntry
from kseg.log.lookup import Candidate, Lookup
from kseg.log.segment_search import IndexView, SegmentStep
from kseg.times import time_text

SHOWN_CANDIDATES = 5
"""Most considered segments that are shown: the last few, and those around the segment with the answer."""


def lookup_object(lookup: Lookup, record: object) -> dict[str, object]:
    """Return the answer for JSON; `record` is the record's object, or None."""
    step, batch = lookup.step, lookup.batch
    entry = None if step is None else step.index_entry
    return {
        "target": lookup.target,
        "by": "timestamp" if lookup.is_time else "offset",
        "offset": lookup.offset,
        **({} if lookup.tier is None else {"localStartOffset": lookup.local_start_offset}),
        "segment": None if step is None else str(step.segment.path),
        "indexEntry": None if entry is None else {"offset": entry.offset, "position": entry.position},
        "scanPosition": None if step is None else step.scan_position,
        "batch": None
        if batch is None
        else {"position": batch.position, "baseOffset": batch.base_offset, "lastOffset": batch.last_offset},
        "record": record,
        "absence": None if lookup.absence is None else str(lookup.absence),
        "previousOffset": None if lookup.previous is None else lookup.previous.offset,
        "nextOffset": None if lookup.next is None else lookup.next.offset,
        "nextGoodOffset": lookup.next_good_offset,
    }


def lookup_lines(lookup: Lookup, zone: tzinfo) -> Iterator[str]:
    """Yield one line per step up to the batch; the caller prints the record's own line after them."""
    tier = "" if lookup.tier is None or not lookup.tier.has_remote_part else f", {lookup.tier.text()}"
    start = f"log start offset {lookup.log_start_offset}{tier}"
    yield f"Looking for {_target_text(lookup, zone)} in {lookup.partition.path}, {start}"
    yield from _segment_lines(lookup, zone)
    for step in lookup.steps:
        yield from _step_lines(step, lookup, zone)


def _target_text(lookup: Lookup, zone: tzinfo) -> str:
    target = lookup.target
    if not lookup.is_time:
        return f"offset {target}"
    return f"timestamp {time_text(target, zone, 'none') if isinstance(target, int) else target}"


def _segment_lines(lookup: Lookup, zone: tzinfo) -> Iterator[str]:
    yield f"Segments: {len(lookup.partition.segments)}"
    scanned = [step.segment.base_offset for step in lookup.steps]
    segments = lookup.partition.segments
    known = {candidate.segment.base_offset: candidate for candidate in lookup.candidates}
    slots = [slot for slot, segment in enumerate(segments) if segment.base_offset in known] or [len(segments) - 1]
    first, last = max(slots[0] - 1, slots[-1] - SHOWN_CANDIDATES, 0), min(slots[-1] + 2, len(segments))
    if first:
        yield f"  … {first} earlier"
    for segment in segments[first:last]:
        candidate = known.get(segment.base_offset, Candidate(segment))
        largest = candidate.largest_timestamp
        time = "" if largest is None else f", largest timestamp {time_text(largest, zone, 'none')}"
        mark = "  <- used" if scanned and segment.base_offset == scanned[-1] else ""
        if not mark and segment.base_offset in scanned:
            mark = "  <- searched, nothing found"
        yield f"  base offset {segment.base_offset}, {plural(segment.size, 'byte')}{time}{mark}"
    if last < len(segments):
        yield f"  … {len(segments) - last} later"


def _step_lines(step: SegmentStep, lookup: Lookup, zone: tzinfo) -> Iterator[str]:
    yield f"Segment {step.segment.path.name}"
    if step.time_view is not None:
        yield from _index_lines("Time index", step.time_view, step.time_entry, zone)
    if step.offset_view is not None:
        yield from _index_lines("Offset index", step.offset_view, step.index_entry, zone)
    yield f"  Scan from position {step.scan_position}"
    if step.passed_count > len(step.passed):
        yield f"    … {plural(step.passed_count - len(step.passed), 'batch', 'batches')} passed"
    for batch in step.passed:
        first = "" if batch.base_offset is None else f"{batch.base_offset} "
        yield f"    passed: position {batch.position}, offsets {first}to {batch.last_offset}"
    found = lookup.batch
    if found is not None and step is lookup.step:
        yield f"    found:  position {found.position}, offsets {found.base_offset} to {found.last_offset}"


def _index_lines(
    name: str, view: IndexView, taken: OffsetIndexEntry | TimeIndexEntry | None, zone: tzinfo
) -> Iterator[str]:
    lower, upper = view.slots
    yield f"  {name}: {plural(view.entries_count, 'entry', 'entries')}, lower slot {lower}, upper slot {upper}"
    for slot, entry in view.around:
        mark = "  <- floor" if slot == lower and entry == taken else ""
        if slot == lower and not mark:
            mark = "  <- floor, doesn't match the log"
        yield f"    [{slot}] {_entry_text(entry, zone)}{mark}"


def _entry_text(entry: OffsetIndexEntry | TimeIndexEntry, zone: tzinfo) -> str:
    if isinstance(entry, TimeIndexEntry):
        return f"timestamp: {time_text(entry.timestamp, zone, 'none')} offset: {entry.offset}"
    return f"offset: {entry.offset} position: {entry.position}"


def absence_line(lookup: Lookup, zone: tzinfo) -> str:
    """Return a line that names the missing offset or time, the reason, and the neighbours."""
    around = [
        f"{word} {record.offset}"
        for word, record in (("the previous record is", lookup.previous), ("the next record is", lookup.next))
        if record is not None
    ]
    if lookup.next is None and lookup.next_good_offset is not None:
        around.append(f"consumers that fail there can continue at offset {lookup.next_good_offset}")
    return "; ".join([f"{_target_text(lookup, zone)} not found: {lookup.absence_text()}", *around])
