"""The effect of a broker's next start on a partition's findings: it repairs some of them, and fails at some.

The kind of the last stop decides, if it is known. A node that was stopped cleanly leaves `.kafka_cleanshutdown`, and
trusts its files. One that was killed recovers each log from its recovery point on. `golden/start` has measured rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kseg.errors import OpenError
from kseg.findings.findings import Finding
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.index.entries import OffsetIndex
from kseg.index.header_scan import checked_headers
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.reading.blocks import Damage
from kseg.verify.stops import Stop, stop_of

_INDEXES = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
_END_WITNESSES = frozenset({"checkpoint-beyond-end", "snapshot-beyond-end"})
_UNJUDGED = frozenset({"orphan-index", "index-unreadable", "leftover-file", "unreadable"})
"""Findings of indexes that a start doesn't repair, or that aren't a segment's."""
_UNREAD_END = 17
"""The bytes at a log's end that a broker ignores, zeros too. Source: FileLogInputStream.nextBatch."""


def judged_at_start(partition: PartitionLog, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield a partition's findings with the effects of a start."""
    stop = stop_of(partition)
    findings = list(found)
    witnesses = [each for each in findings if each.id in _END_WITNESSES]
    is_end_lost = len({each.file for each in witnesses}) > 1
    if is_end_lost:
        findings = [each for each in findings if each not in witnesses]
        yield _lost_end(partition, witnesses)
    recovered = recovered_from(partition)
    empty = _empty_logs(partition)
    emptied: set[Path] = set()
    for each in findings:
        kind = parse_file_name(each.file).kind
        log = each.file.with_suffix(".log")
        if kind in _INDEXES and each.counts and log in empty:
            if log not in emptied:
                yield Finding("cut-segment", log, f"the file is empty, but {each.file.name} has entries")
            emptied.add(log)
        elif kind in _INDEXES and partition.segments and each.id not in _UNJUDGED:
            yield _index(partition, each, stop, recovered)
        elif each.id in ("torn-tail", "zero-tail") and stop is Stop.CLEAN:
            yield replace(each, id=_unclean(partition, each))
        else:
            yield each


def _unclean(partition: PartitionLog, finding: Finding) -> str:
    """Return the id of the finding about the end of a log after a clean stop."""
    size = partition.active_segment.size if partition.active_segment else 0
    is_read = size - (finding.position or 0) > _UNREAD_END
    return "unclean-zeros" if finding.id == "zero-tail" and is_read else "unclean-tail"


def _lost_end(partition: PartitionLog, witnesses: Sequence[Finding]) -> Finding:
    name = f"{partition.path.name}: "
    sentences = "; ".join(f"{each.file.name}: {each.sentence.removeprefix(name)}" for each in witnesses)
    file = partition.active_segment.path if partition.active_segment else partition.path
    first = min(each.first_offset for each in witnesses if each.first_offset is not None)
    last = max(each.last_offset for each in witnesses if each.last_offset is not None)
    return Finding("log-end-lost", file, sentences, first_offset=first, last_offset=last)


def _empty_logs(partition: PartitionLog) -> set[Path]:
    """Return logs that had batches if their indexes have entries; the last one may have been cut on purpose."""
    return {segment.path for segment in partition.segments[:-1] if not segment.size}


def recovered_from(partition: PartitionLog) -> int | None:
    """Return the base offset of the first segment that a start recovers, or None if it trusts the log.

    Source: LogLoader.recoverLog.
    """
    if stop_of(partition) is not Stop.KILLED:
        return None
    slot = partition.floor_slot(partition.checkpoints().recovery_point or 0)
    return partition.base_offsets[slot or 0] if partition.base_offsets else 0


def _index(partition: PartitionLog, finding: Finding, stop: Stop, recovered: int | None) -> Finding:
    """Return an index's finding with the start's effect: a recovery rebuilds indexes of the segments that it reads.

    A start also recovers a segment without an offset index, and creates its transaction index. Source:
    LogLoader.loadSegmentFiles.
    """
    name = parse_file_name(finding.file)
    base, kind = name.base_offset or 0, name.kind
    segment = partition.segments[partition.floor_slot(base) or 0]
    is_recovered = (recovered is not None and base >= recovered) or (
        stop is not Stop.UNKNOWN
        and kind is FileKind.TRANSACTION_INDEX
        and segment.base_offset == base
        and segment.offset_index is None
    )
    if is_recovered and finding.counts:
        return replace(finding, id="index-rebuilt", sentence=f"{finding.id}: {finding.sentence}")
    is_first, is_last = base == partition.base_offsets[0], base == partition.base_offsets[-1]
    match finding.id:
        case "index-preallocated" if stop is Stop.CLEAN and is_last and kind is not FileKind.TRANSACTION_INDEX:
            return replace(finding, id="unclean-index")
        case "index-preallocated" if kind is FileKind.TIME_INDEX:
            return replace(finding, id="time-index-zeros" if is_first else "time-index-ends-early")
        case "index-unsorted" if kind is FileKind.TIME_INDEX:
            return replace(finding, id="time-index-entry")
        case "index-entry" | "index-unsorted" if not _misleads(segment, is_appended=is_last):
            return replace(finding, id="index-inexact")
        case "transaction-unfounded" if finding.last_offset is not None and finding.last_offset < base:
            return replace(finding, id="index-rebuilt", sentence=f"{finding.id}: {finding.sentence}")
        case _:
            return finding


def _misleads(segment: SegmentFiles, *, is_appended: bool) -> bool:
    """Return True if a lookup by the offset index misses the batch at or before the one that has the offset.

    is_appended: the broker will append to the segment, and look up the appended offsets.
    """
    if segment.offset_index is None:
        return False
    try:
        with OffsetIndex(segment.offset_index.path, segment.base_offset) as index, segment.open_log() as log_file:
            starts, last_offset = {0}, segment.base_offset - 1
            for header in checked_headers(log_file):
                if isinstance(header, Damage):
                    return True
                starts.add(header.position)
                last_offset = header.last_offset
                position = index.lookup(last_offset).position
                if position > header.position or position not in starts:
                    return True
            return is_appended and any(entry.offset > last_offset for entry in index.entries())
    except OpenError:
        return True
