"""Differences between copies of partitions, and whether the copies of a cluster are complete, as text and JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, NamedTuple

from kseg.diff.copies import ClusterCopies, ClusterCopy, CopiesVerdict, PartitionCopies
from kseg.diff.cursor import FoundDamage
from kseg.diff.differences import BatchAt, ComparedCopy, DiffVerdict, EpochRecords, PartitionDiff, Truncation
from kseg.doctor.steps import ranges
from kseg.errors import plural
from kseg.formats.header_fields import PRODUCER_NAMES, camel_case
from kseg.log.lineage import Rule
from kseg.output.columns import Column
from kseg.output.forms import Form, TableForm, TextForm
from kseg.output.rows import CsvWriter
from kseg.output.streams import write_line, write_lines, write_stdout
from kseg.output.table import rich_fitting, write_rich_table
from kseg.text import fields
from kseg.times import time_text

if TYPE_CHECKING:
    from pathlib import Path


def diff_object(diff: PartitionDiff) -> dict[str, object]:
    """Return a partition for JSON."""
    members: dict[str, object] = {
        "type": "partition",
        "topic": diff.topic,
        "partition": diff.partition,
        "topicId": diff.topic_id,
        "verdict": str(diff.verdict),
        "comparedFrom": diff.compared_from if diff.copies else None,
        "firstDifference": diff.first_difference,
        "epochsDifferFrom": diff.epochs_differ_from,
        "absentFrom": [str(path) for path in diff.absent_from],
        "copies": [_copy_object(copy) for copy in diff.copies],
        "divergence": None,
        "onlyIn": [{"path": str(copy.path), **_epoch_object(each)} for copy in diff.copies for each in copy.only_here],
    }
    if diff.divergence is not None:
        members["divergence"] = {
            "offset": diff.divergence.offset,
            "leaderEpoch": diff.divergence.leader_epoch,
            "batches": [_batch_object(batch) for batch in diff.divergence.batches],
        }
    if diff.leader is not None or diff.lacks_leader:
        members["leaderPath"] = None if diff.leader is None else str(diff.leader)
        members["lostRecords"] = diff.lost_records
        members["truncations"] = [_truncation_object(each) for each in diff.truncations]
    return members


def _copy_object(copy: ComparedCopy) -> dict[str, object]:
    return {
        "path": str(copy.path),
        "logStartOffset": copy.log_start_offset,
        "localStartOffset": copy.tier and copy.tier.local_start_offset,
        "logEndOffset": copy.log_end_offset,
        "highWatermark": copy.high_watermark,
        "lastEpoch": copy.last_epoch,
        "records": copy.records,
        "missing": copy.missing,
        "superseded": copy.superseded,
        "unjudged": copy.unjudged,
        "damageCount": copy.damage_count,
        "damages": [_damage_object(damage) for damage in copy.damages],
    }


def _damage_object(damage: FoundDamage) -> dict[str, object]:
    return {
        "id": damage.id,
        "file": str(damage.log),
        "position": damage.position,
        "size": damage.size,
        "detail": damage.detail,
    }


def _epoch_object(records: EpochRecords) -> dict[str, object]:
    return {
        "leaderEpoch": records.leader_epoch,
        "records": records.records,
        "controlRecords": records.control_records,
        "ranges": [{"from": first, "to": last} for first, last in records.ranges],
        "rangesLeftOut": records.ranges_left_out,
    }


def _batch_object(batch: BatchAt) -> dict[str, object]:
    header = batch.header
    return {
        "path": str(batch.path),
        "file": batch.log.name,
        "position": header.position,
        "baseOffset": header.first_offset,
        "lastOffset": header.last_offset,
        "leaderEpoch": header.partition_leader_epoch,
        **dict(zip(map(camel_case, PRODUCER_NAMES), header.producer, strict=True)),
        "firstTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp,
        "crc": header.crc,
    }


def _truncation_object(truncation: Truncation) -> dict[str, object]:
    return {
        "path": str(truncation.path),
        "toOffset": truncation.to_offset,
        "rule": str(truncation.rule),
        "lostRecords": truncation.lost_records,
        "lostByEpoch": [_epoch_object(each) for each in truncation.lost],
        "keptRecords": truncation.kept_records,
        "keptByEpoch": [_epoch_object(each) for each in truncation.kept],
    }


class DiffSummary:
    """Counts of partitions by verdict, and of the records lost under a leader."""

    def __init__(self) -> None:
        self._verdicts: Counter[DiffVerdict] = Counter()
        self._alone = 0
        self._lost_records = 0

    def add(self, diff: PartitionDiff) -> None:
        """Count a partition."""
        self._verdicts[diff.verdict] += 1
        self._alone += diff.verdict is DiffVerdict.IDENTICAL and len(diff.copies) == 1
        self._lost_records += diff.lost_records

    @property
    def is_identical(self) -> bool:
        """True if no partition differs."""
        return self._verdicts.total() == self._verdicts[DiffVerdict.IDENTICAL]

    def as_object(self) -> dict[str, object]:
        """Return the summary for JSON."""
        counts = {str(verdict): self._verdicts[verdict] for verdict in _WORDS}
        return {
            "type": "summary",
            "partitions": self._verdicts.total(),
            "verdicts": counts,
            "lostRecords": self._lost_records,
        }

    def line(self) -> str:
        """Return the summary for people."""
        compared = self._verdicts - Counter({DiffVerdict.IDENTICAL: self._alone})
        counts = [f"{compared[verdict]} {words}" for verdict, words in _WORDS.items() if compared[verdict]]
        counts += [f"{self._alone} with only one copy"] if self._alone else []
        lost = f"; {plural(self._lost_records, 'record')} lost under the leader" if self._lost_records else ""
        return f"{plural(self._verdicts.total(), 'partition')}: {', '.join(counts) or 'nothing to compare'}{lost}"


_WORDS = {
    DiffVerdict.IDENTICAL: "identical",
    DiffVerdict.AHEAD: "ahead",
    DiffVerdict.DIVERGED: "diverged",
    DiffVerdict.HOLES: "with holes",
    DiffVerdict.ONLY_HERE: "missing on a side",
    DiffVerdict.MISSING: "missing on all sides",
}


SHOWN = 5
"""Most ranges of offsets, and damages of a copy, that the text lists."""
_RULES = {
    Rule.LEADER_EPOCHS: "by leader epochs",
    Rule.HIGH_WATERMARK: "to its high watermark, because it has no leader epochs",
    Rule.LOG_START: "at the leader's log start",
}


class DiffReport:
    """Write partitions as they come, and their sums; for people at the end, most severe loss first.

    summary: the sums.
    """

    def __init__(
        self,
        form: Form,
        *,
        quiet: bool = False,
        verbose: bool = False,
        record_fields: Sequence[str] = (),
    ) -> None:
        """Take the form.

        quiet: omit identical partitions and the sums. verbose: print each missing partition. record_fields: the columns
        of CSV with records.
        """
        self.summary = DiffSummary()
        self._form = form
        self._quiet = quiet
        self._verbose = verbose
        self._waiting: list[PartitionDiff] = []
        self._comes_as_found = bool(record_fields) or form.has_objects or form.has_one_kind
        self._has_only_records = form.has_one_kind and bool(record_fields)
        names = record_fields or [column.name for column in COLUMNS]
        self._csv = CsvWriter(names, form.csv) if form.has_one_kind else None

    def take(self, diff: PartitionDiff | bytes) -> None:
        """Add a partition, or lines of records that only some copies have. Such lines are written at once."""
        if isinstance(diff, bytes):
            write_stdout(diff)
            return
        self.summary.add(diff)
        if self._has_only_records or (self._quiet and diff.verdict is DiffVerdict.IDENTICAL):
            return
        if not self._comes_as_found or isinstance(self._form, TableForm):
            self._waiting.append(diff)
        elif self._form.has_objects:
            self._form.write_object(diff_object(diff))
        elif self._csv is not None:
            for row in _copy_rows(diff):
                self._csv.write(column.value(row) for column in COLUMNS)
        else:
            write_lines(diff_lines(diff, self._form.zone))

    def finish(self) -> None:
        """Write the end of the report."""
        waiting = sorted(self._waiting, key=_rank)
        if isinstance(self._form, TableForm):
            rows = [row for diff in waiting for row in _copy_rows(diff)]
            fitting = rich_fitting(COLUMNS, self._form.room, has_choice=False)
            write_rich_table(COLUMNS, rows, color=self._form.color, fitting=fitting)
        else:
            grouped = [] if self._verbose else [diff for diff in waiting if _is_briefly_missing(diff)]
            write_lines(_missing_topics(grouped))
            for diff in waiting:
                if diff not in grouped:
                    write_lines(diff_lines(diff, self._form.zone))
        if self._quiet:
            return
        if self._form.has_objects:
            self._form.write_object(self.summary.as_object())
        elif isinstance(self._form, TextForm):
            write_line(self.summary.line())


def _rank(diff: PartitionDiff) -> tuple[bool, int, int, int, bool]:
    """Return the rank of a partition, most severe first: lost records, records that may be lost, unreadable records."""
    most = max((max(copy.missing, copy.records) for copy in diff.copies), default=0)
    damages = sum(copy.damage_count for copy in diff.copies)
    is_missing = diff.verdict is DiffVerdict.MISSING
    return not is_missing, -diff.lost_records, -most, -damages, diff.verdict is DiffVerdict.IDENTICAL


def _is_briefly_missing(diff: PartitionDiff) -> bool:
    """Return True for a partition that some sides lack, if it has nothing else to report."""
    is_missing = diff.verdict in (DiffVerdict.ONLY_HERE, DiffVerdict.MISSING) and diff.partition is not None
    return is_missing and not diff.lacks_leader and not any(copy.damage_count for copy in diff.copies)


def _missing_topics(diffs: Sequence[PartitionDiff]) -> Iterator[str]:
    """Yield one line per topic and lacking sides."""
    numbers: dict[tuple[str, tuple[Path, ...]], list[int]] = {}
    for diff in diffs:
        if diff.partition is not None:
            numbers.setdefault((diff.topic or diff.name, diff.absent_from), []).append(diff.partition)
    for (topic, absent_from), found in sorted(numbers.items()):
        noun = "partition" if len(found) == 1 else "partitions"
        yield f"{topic}: {noun} {ranges(found)} missing in {', '.join(map(str, absent_from))}"


def diff_lines(diff: PartitionDiff, zone: tzinfo) -> Iterator[str]:
    """Yield the lines about a partition for people."""
    yield f"{diff.name}: {_verdict_text(diff)}"
    if diff.epochs_differ_from is not None:
        yield f"  the same records, but different leader epochs, from offset {diff.epochs_differ_from} on"
    batches = {} if diff.divergence is None else {batch.path: batch for batch in diff.divergence.batches}
    for copy in diff.copies:
        if diff.verdict is DiffVerdict.IDENTICAL and not _is_worth_telling(diff, copy):
            continue
        yield f"  {copy.path}: {_extent_text(copy)}"
        if copy.path in batches:
            yield f"    {_batch_text(batches[copy.path], zone)}"
        if copy.only_here:
            yield f"    only here: {_records_text(copy.only_here)}"
        yield from _missing_lines(copy)
    yield from (f"  not in {path}" for path in diff.absent_from)
    yield from _leader_lines(diff)


def _ahead_text(end: int | None, start: int) -> str:
    """Return the range in which copies are equal, from the start of the comparison to the end of the shortest copy."""
    if end is None:
        return f"ahead: nothing in common, because one copy begins at offset {start} and another ends there or earlier"
    if end <= start:
        return "ahead: nothing in common, because the shortest copy is empty"
    return f"ahead: identical up to offset {end}, where the shortest copy ends"


def _verdict_text(diff: PartitionDiff) -> str:
    match diff.verdict:
        case DiffVerdict.IDENTICAL:
            end = max(copy.log_end_offset for copy in diff.copies)
            offsets = f"offsets {diff.compared_from} to {end - 1}" if end > diff.compared_from else "without records"
            if len(diff.copies) == 1:
                return f"not compared, because it has only one copy, {offsets}"
            return f"identical, {plural(len(diff.copies), 'copy', 'copies')}, {offsets}"
        case DiffVerdict.ONLY_HERE:
            return f"only in {', '.join(str(copy.path) for copy in diff.copies)}"
        case DiffVerdict.MISSING:
            return "missing on all sides, but in the cluster metadata"
        case DiffVerdict.AHEAD:
            return _ahead_text(diff.first_difference, diff.compared_from)
        case DiffVerdict.HOLES if diff.first_difference is None:
            return "unreadable bytes in the same places"
        case DiffVerdict.HOLES:
            return f"holes, the first at offset {diff.first_difference}"
        case DiffVerdict.DIVERGED:
            assert diff.divergence is not None
            return f"diverged at offset {diff.divergence.offset} in leader epoch {diff.divergence.leader_epoch}"


def _is_worth_telling(diff: PartitionDiff, copy: ComparedCopy) -> bool:
    """Return True if an identical copy has parts that aren't compared.

    Such parts are records below the other copies' start, and records that have been removed.
    """
    start = copy.log_start_offset if copy.tier is None else copy.tier.local_start_offset
    return start < diff.compared_from or bool(copy.superseded or copy.unjudged)


def _extent_text(copy: ComparedCopy) -> str:
    mark = "unknown" if copy.high_watermark is None else copy.high_watermark
    offsets = f"offsets {copy.log_start_offset} to {copy.log_end_offset - 1}"
    if copy.log_end_offset == copy.log_start_offset:
        offsets = f"no offsets from {copy.log_start_offset} on"
    tier = "" if copy.tier is None or not copy.tier.has_remote_part else f", {copy.tier.text()}"
    return f"{offsets}, high watermark {mark}, last leader epoch {copy.last_epoch}{tier}"


def _batch_text(batch: BatchAt, zone: tzinfo) -> str:
    header = batch.header
    producer_id, epoch, sequence = header.producer
    producer = f"producer {producer_id} epoch {epoch} sequence {sequence}"
    times = f"{time_text(header.base_timestamp, zone, 'none')} to {time_text(header.max_timestamp, zone, 'none')}"
    return (
        f"batch at position {header.position} of {batch.log.name}: offsets {header.first_offset} to"
        f" {header.last_offset}, leader epoch {header.partition_leader_epoch}, {producer}, {times},"
        f" crc {header.crc:#010x}"
    )


def _missing_lines(copy: ComparedCopy) -> Iterator[str]:
    if copy.missing:
        yield f"    lacks {plural(copy.missing, 'record')} that another copy has"
    if copy.superseded:
        yield f"    lacks {plural(copy.superseded, 'record')} that compaction removes"
    if copy.unjudged:
        yield f"    lacks {plural(copy.unjudged, 'record')} that compaction may have removed: too many keys to check"
    for damage in copy.damages[:SHOWN]:
        yield f"    {_damage_text(damage)}"
    if copy.damage_count > SHOWN:
        yield f"    and {copy.damage_count - SHOWN} more places that weren't compared"


def _damage_text(damage: FoundDamage) -> str:
    return f"not compared: {damage.log.name} at position {damage.position}: {damage.id}: {damage.detail}"


def _records_text(records: Sequence[EpochRecords]) -> str:
    return "; ".join(map(_epoch_text, records))


def _epoch_text(records: EpochRecords) -> str:
    ranges = [f"{first}-{last}" if last > first else str(first) for first, last in records.ranges[:SHOWN]]
    more = ", …" if len(records.ranges) > SHOWN or records.ranges_left_out else ""
    count = plural(records.records, "record")
    if records.control_records:
        count += f" and {plural(records.control_records, 'control record')}"
    epoch = "without a leader epoch" if records.leader_epoch < 0 else f"with leader epoch {records.leader_epoch}"
    noun = "offset" if ranges[0].isdigit() and len(ranges) == 1 else "offsets"
    return f"{count} {epoch} ({noun} {', '.join(ranges)}{more})"


def _leader_lines(diff: PartitionDiff) -> Iterator[str]:
    if diff.lacks_leader:
        yield "  the side of the leader has no copy"
    if diff.leader is None:
        return
    yield f"  under the leader {diff.leader}:"
    for truncation in diff.truncations:
        yield f"    {_truncation_text(truncation)}"
        if truncation.kept:
            yield f"      keeps {_records_text(truncation.kept)} that the leader lacks: consumers don't get them"


def _truncation_text(truncation: Truncation) -> str:
    if truncation.to_offset is None:
        return (
            f"{truncation.path} would truncate to its high watermark, which is unknown: it has no leader epochs, and"
            " its log directory has no replication-offset-checkpoint"
        )
    lost = f"loses {_records_text(truncation.lost)}" if truncation.lost else "loses nothing"
    return f"{truncation.path} truncates to offset {truncation.to_offset} {_RULES[truncation.rule]}, and {lost}"


class _CopyRow(NamedTuple):
    """A row for a copy of a partition, or for a partition without copies."""

    diff: PartitionDiff
    copy: ComparedCopy | None

    @property
    def path(self) -> str | None:
        return None if self.copy is None else str(self.copy.path)

    @property
    def truncation(self) -> Truncation | None:
        return next((each for each in self.diff.truncations if str(each.path) == self.path), None)


def _copy_rows(diff: PartitionDiff) -> list[_CopyRow]:
    return [_CopyRow(diff, copy) for copy in diff.copies or (None,)]


def _to_offset(row: _CopyRow) -> int | None:
    return None if row.truncation is None else row.truncation.to_offset


def _lost_count(row: _CopyRow) -> int | None:
    return None if row.truncation is None else row.truncation.lost_records


def _divergence(row: _CopyRow) -> int | None:
    return None if row.diff.divergence is None else row.diff.divergence.offset


COLUMNS: tuple[Column[_CopyRow], ...] = (
    Column(fields.TOPIC, "topic", lambda row: row.diff.topic or row.diff.name),
    Column(fields.PARTITION, "partition", lambda row: row.diff.partition),
    Column(fields.VERDICT, "verdict", lambda row: str(row.diff.verdict)),
    Column(fields.PATH, "copy", lambda row: row.path),
    Column(fields.LOG_START_OFFSET, "log start", lambda row: row.copy and row.copy.log_start_offset),
    Column(fields.LOG_END_OFFSET, "log end", lambda row: row.copy and row.copy.log_end_offset),
    Column(fields.HIGH_WATERMARK, "high watermark", lambda row: row.copy and row.copy.high_watermark),
    Column(fields.LAST_EPOCH, "last epoch", lambda row: row.copy and row.copy.last_epoch),
    Column(fields.RECORDS, "only here", lambda row: row.copy and row.copy.records),
    Column(fields.MISSING, "missing", lambda row: row.copy and row.copy.missing),
    Column(fields.FIRST_DIFFERENCE, "differs from", lambda row: row.diff.first_difference),
    Column(fields.DIVERGENCE_OFFSET, "diverged at", _divergence),
    Column(fields.TO_OFFSET, "truncates to", _to_offset),
    Column(fields.LOST_RECORDS, "loses", _lost_count),
)
"""One row per copy of a partition."""


_COPIES = {
    CopiesVerdict.ENOUGH: "recoverable",
    CopiesVerdict.GAPS: "with gaps",
    CopiesVerdict.BEHIND: "without an in-sync copy",
    CopiesVerdict.MISSING: "without any copy",
}


def write_copies(copies: ClusterCopies, form: Form, *, verbose: bool) -> None:
    """Write the copies as JSON; as text only if `verbose`."""
    if form.has_objects:
        for partition in copies.partitions:
            form.write_object(_cluster_partition_object(partition))
    elif verbose:
        _write_copies_as_text(copies)


def _write_copies_as_text(copies: ClusterCopies) -> None:
    """Write one line per partition and one line per copy, starting with the longest copy."""
    for partition in copies.partitions:
        write_line(f"{partition.name}: {partition.verdict}")
        for copy in partition.copies:
            write_line(f"  {copy.path}: {copy.text()}")


def copies_line(copies: ClusterCopies) -> str:
    """Return one line with the sums, and the metadata that they rest on."""
    counts = Counter(partition.verdict for partition in copies.partitions)
    sums = ", ".join(f"{counts[verdict]} {words}" for verdict, words in _COPIES.items() if counts[verdict])
    metadata = copies.metadata
    known = f"metadata up to offset {metadata.offset} from {time_text(metadata.timestamp, none='an unknown time')}"
    return f"{plural(len(copies.partitions), 'partition')} in the {known}: {sums or 'none'}"


def _cluster_partition_object(partition: PartitionCopies) -> dict[str, object]:
    expected = partition.expected
    return {
        "type": "partition",
        "topic": expected.topic,
        "partition": expected.partition,
        "topicId": expected.topic_id,
        "verdict": str(partition.verdict),
        "replicas": list(expected.replicas),
        "isr": list(expected.isr),
        "elr": list(expected.elr),
        "leader": expected.leader,
        "absent": list(partition.absent),
        "copies": [_cluster_copy_object(copy) for copy in partition.copies],
        "otherTopics": [_cluster_copy_object(copy) for copy in partition.strangers],
        "missingOffsets": [{"from": first, "to": last} for first, last in partition.gaps],
    }


def _cluster_copy_object(copy: ClusterCopy) -> dict[str, object]:
    return {
        "path": str(copy.path),
        "broker": copy.broker,
        "topicId": copy.topic_id,
        "logStartOffset": copy.log_start_offset,
        "localStartOffset": copy.tier and copy.tier.local_start_offset,
        "logEndOffset": copy.log_end_offset,
        "lastEpoch": copy.last_epoch,
        "agreedEndOffset": copy.agreed_end,
    }
