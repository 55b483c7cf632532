"""Lookups of an offset or a timestamp: segment, index entries, scan, batch, record."""

import re
from collections.abc import Iterable
from datetime import tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from kseg.errors import KsegError, UsageError
from kseg.formats.codes import NO_TIMESTAMP
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog, RemoteTier
from kseg.log.segment_search import (
    SCANNED,
    Match,
    SearchTarget,
    SegmentStep,
    first_match,
    largest_timestamp,
    last_record_below,
    seek_offset,
    seek_time,
)
from kseg.log.segments import SegmentFiles
from kseg.log.selection import Selection
from kseg.reading.blocks import Damage
from kseg.times import parse_time

if TYPE_CHECKING:
    from kseg.reading.batch import BatchHeader


class SpecialTime(StrEnum):
    """Special lookup targets instead of a timestamp. Source: ListOffsetsRequest."""

    LATEST = "latest"
    EARLIEST = "earliest"
    MAX_TIMESTAMP = "max-timestamp"
    EARLIEST_LOCAL = "earliest-local"
    LATEST_TIERED = "latest-tiered"
    EARLIEST_PENDING_UPLOAD = "earliest-pending-upload"


SPECIAL_TIME_OF_CODE = {
    -1: SpecialTime.LATEST,
    -2: SpecialTime.EARLIEST,
    -3: SpecialTime.MAX_TIMESTAMP,
    -4: SpecialTime.EARLIEST_LOCAL,
    -5: SpecialTime.LATEST_TIERED,
    -6: SpecialTime.EARLIEST_PENDING_UPLOAD,
}
"""Special times by Kafka's codes."""


class Absence(StrEnum):
    """The reason why the target has no record."""

    EMPTY = "empty"
    BELOW_LOG_START = "below-log-start"
    REMOTE = "remote"
    NO_TIER = "no-tier"
    TIER_UNKNOWN = "tier-unknown"
    NOT_COPIED = "not-copied"
    AT_LOG_END = "at-log-end"
    ABOVE_LOG_END = "above-log-end"
    REMOVED = "removed"
    GAP = "gap"
    DAMAGED = "damaged"
    DAMAGED_END = "damaged-end"
    NO_LATER_TIME = "no-later-time"
    NO_TIMES = "no-times"
    NOT_SELECTED = "not-selected"


ABSENCE_TEXTS = {
    Absence.EMPTY: "the partition has no segments",
    Absence.BELOW_LOG_START: (
        "it is below the log start offset {start}, so retention or a deletion of records removed it"
    ),
    Absence.REMOTE: "it is in the remote tier: {tier}",
    Absence.NO_TIER: "no segment of the log is in a remote tier",
    Absence.TIER_UNKNOWN: "__remote_log_metadata next to the partition has no record of segments in the remote tier",
    Absence.NOT_COPIED: "no segment of the log was copied to its remote tier yet",
    Absence.AT_LOG_END: "it is the log end offset, the next to be written",
    Absence.ABOVE_LOG_END: "it is above the log end offset {end}",
    Absence.REMOVED: "its batch exists, but compaction or `slice` removed the record",
    Absence.GAP: "no batch has it, since compaction or `slice` removed its batch, or it is lost",
    Absence.DAMAGED: "it is in a damaged part of the log ({damage}); run `kseg salvage` to keep the intact batches",
    Absence.DAMAGED_END: (
        "it is after the last intact batch, and the end of the log is damaged ({damage}); the log end offset is {end}"
    ),
    Absence.NO_LATER_TIME: "no record has this timestamp or a later one; the largest timestamp is {largest}",
    Absence.NO_TIMES: "no record has a timestamp",
    Absence.NOT_SELECTED: "no record from there on matches the selection",
}


BELOW_LOG_START = "{}: offset {} is below the log start offset {}; it is still in the log, but no broker serves it"


class Candidate(NamedTuple):
    """A segment that was considered; its largest timestamp if the search was by time."""

    segment: SegmentFiles
    largest_timestamp: int | None = None


class Lookup:
    """An answer, and the search that led to it.

    target: the offset, the timestamp in milliseconds, or a special time. offset: Kafka's answer to ListOffsets;
    None if there is none. batch, record: None if the target has no record; then `absence` is the reason, and
    `previous` and `next` are its neighbours, if any. steps: the scanned segments; the answer is in the last one.
    problems: index problems, in words. tier: the partition's remote tier, if it has one; local_start_offset: the first
    offset on this disk.
    """

    def __init__(
        self, partition: PartitionLog, target: int | SpecialTime, *, is_time: bool, tier: RemoteTier | None = None
    ) -> None:
        self.partition = partition
        self.target = target
        self.is_time = is_time
        self.tier = tier
        self.log_start_offset = partition.log_start_offset(tier)
        self.local_start_offset = self.log_start_offset if tier is None else tier.local_start_offset
        self.log_end_offset: int | None = None
        self.offset: int | None = None
        self.batch: BatchHeader | None = None
        self.record: Record | None = None
        self.absence: Absence | None = None
        self.previous: Record | None = None
        self.next: Record | None = None
        self.candidates: list[Candidate] = []
        self.steps: list[SegmentStep] = []
        self.problems: list[str] = []

    def __repr__(self) -> str:
        """Return the answer in a line."""
        found = f"offset {self.offset}" if self.absence is None else self.absence_text()
        return f"Lookup({'time' if self.is_time else 'offset'} {self.target}: {found})"

    @property
    def step(self) -> SegmentStep | None:
        """The search in the segment that has the answer."""
        return self.steps[-1] if self.steps else None

    @property
    def next_good_offset(self) -> int | None:
        """The next offset for a consumer that fails at the target: the next record's, or after the unreadable batch."""
        if self.next is not None:
            return self.next.offset
        if self.absence is not Absence.DAMAGED:
            return None
        own = self._unread_batch()
        return None if own is None else own[1] + 1

    @property
    def damage(self) -> Damage | None:
        """The damage that hides the target: of the batch with its offset, else the last one on the way."""
        own = self._unread_batch()
        last = next((step.damages[-1] for step in reversed(self.steps) if step.damages), None)
        return last if own is None else own[2]

    def _unread_batch(self) -> tuple[int, int, Damage] | None:
        """Return the first and last offset of the unreadable batch with the target's offset, and its damage."""
        if self.is_time:
            return None
        unread = (each for step in self.steps for each in step.unread)
        return next((each for each in unread if each[0] <= int(self.target) <= each[1]), None)

    def take(self, match: Match) -> "Lookup":
        """Set the result."""
        self.batch, self.record = match
        self.offset = match.record.offset
        return self

    def absence_text(self) -> str:
        """Return the reason why the target has no record, in words; empty if it has one."""
        if self.absence is None:
            return ""
        largest = max((candidate.largest_timestamp or NO_TIMESTAMP for candidate in self.candidates), default=-1)
        tier = "" if self.tier is None else self.tier.text()
        damage = "" if self.damage is None else self.damage.brief
        return ABSENCE_TEXTS[self.absence].format(
            damage=damage, start=self.log_start_offset, end=self.log_end_offset, largest=largest, tier=tier
        )


def parse_target_time(text: str, zone: tzinfo) -> int | SpecialTime:
    """Parse a special time, by name or Kafka's code, or a time in milliseconds. Raises UsageError for anything else."""
    if text in list(SpecialTime):
        return SpecialTime(text)
    if re.fullmatch("-[0-9]{1,19}", text):
        if int(text) not in SPECIAL_TIME_OF_CODE:
            codes = ", ".join(f"{code} {special}" for code, special in SPECIAL_TIME_OF_CODE.items())
            raise UsageError(f"{text}: this isn't one of Kafka's special timestamps; specify one of {codes}")
        return SPECIAL_TIME_OF_CODE[int(text)]
    return parse_time(text, zone)


def look_up(
    partition: PartitionLog,
    target: int | SpecialTime,
    selection: Selection,
    *,
    is_time: bool,
    tier: RemoteTier | None = None,
) -> Lookup:
    """Look up an offset or a time; with a selection, the first selected record from there on.

    `tier`: the partition's remote tier, ignored with a selection. Raises OpenError if a log can't be opened.
    """
    if not selection.is_everything:
        return lookup_selected(partition, target, selection, is_time=is_time)
    if is_time:
        return lookup_time(partition, target, tier)
    return lookup_offset(partition, int(target), tier)


def lookup_offset(partition: PartitionLog, offset: int, tier: RemoteTier | None = None) -> Lookup:
    """Look up an offset; `tier`: the partition's remote tier, whose part of the log isn't read.

    Raises OpenError if a log can't be opened.
    """
    answer = Lookup(partition, offset, is_time=False, tier=tier)
    return _look_up(answer, offset, max(offset, answer.local_start_offset))


def _look_up(answer: Lookup, offset: int, wanted: int) -> Lookup:
    """Answer with the record of an offset; if there is none, search its neighbour from the wanted offset on."""
    partition = answer.partition
    if not partition.segments:
        answer.absence = Absence.EMPTY
        return answer
    slot = partition.floor_slot(wanted) or 0
    match = _search_offset(answer, partition.segments[slot:], wanted)
    if match is not None and match.record.offset == offset:
        return answer.take(match)
    answer.next = None if match is None else match.record
    answer.previous = _previous_record(partition, slot, offset, answer.local_start_offset)
    answer.absence = _offset_absence(answer, offset)
    return answer


def _search_offset(answer: Lookup, segments: Iterable[SegmentFiles], offset: int) -> Match | None:
    """Return the first record at or above an offset."""
    wanted = SearchTarget(offset)
    for segment in segments:
        answer.candidates.append(Candidate(segment))
        step = SegmentStep(segment)
        answer.steps.append(step)
        with segment.open_log() as log_file:
            seek_offset(log_file, step, offset, answer.problems)
            match = first_match(log_file, step, wanted)
        if match is not None:
            return match
    return None


def _offset_absence(answer: Lookup, offset: int) -> Absence:
    if offset < answer.log_start_offset:
        return Absence.BELOW_LOG_START
    if offset < answer.local_start_offset:
        return Absence.REMOTE
    if any(first <= offset <= last for step in answer.steps for first, last, _ in step.unread):
        return Absence.DAMAGED
    if any(first <= offset <= last for step in answer.steps for first, last in step.opened):
        return Absence.REMOVED
    is_damaged = any(step.is_blocked for step in answer.steps)
    if answer.next is not None:
        return Absence.DAMAGED if is_damaged else Absence.GAP
    answer.log_end_offset = answer.partition.read_log_end_offset()
    if is_damaged:
        return Absence.DAMAGED_END
    return Absence.AT_LOG_END if offset == answer.log_end_offset else Absence.ABOVE_LOG_END


def _previous_record(partition: PartitionLog, slot: int, offset: int, log_start_offset: int) -> Record | None:
    for segment in reversed(partition.segments[: slot + 1]):
        record = last_record_below(segment, offset)
        if record is not None:
            return record if record.offset >= log_start_offset else None
    return None


def lookup_time(partition: PartitionLog, timestamp: int | SpecialTime, tier: RemoteTier | None = None) -> Lookup:
    """Look up the first record in offset order with this or a later timestamp; or the record of a special time.

    Unlike Kafka, the search continues in the next segment if no record above the log start offset has the promised
    timestamp. If the partition has a remote tier, only its local part is searched, and a problem reports this. Raises
    OpenError if a log can't be opened.
    """
    answer = Lookup(partition, timestamp, is_time=True, tier=tier)
    is_search = not isinstance(timestamp, SpecialTime) or timestamp is SpecialTime.MAX_TIMESTAMP
    if is_search and tier is not None and tier.has_remote_part:
        answer.problems.append(f"{partition.path}: {tier.text()}: only the local part was searched")
    if isinstance(timestamp, SpecialTime):
        return _SPECIAL_LOOKUPS[timestamp](answer)
    if not partition.segments:
        answer.absence = Absence.EMPTY
        return answer
    match = _search_time(answer, timestamp)
    if match is not None:
        return answer.take(match)
    has_times = any(candidate.largest_timestamp != NO_TIMESTAMP for candidate in answer.candidates)
    answer.absence = Absence.NO_LATER_TIME if has_times else Absence.NO_TIMES
    return answer


def _readable_segments(answer: Lookup) -> tuple[SegmentFiles, ...]:
    """Return the segments from the log start offset on."""
    return answer.partition.segments[answer.partition.floor_slot(answer.local_start_offset) or 0 :]


def _search_time(answer: Lookup, timestamp: int) -> Match | None:
    for segment in _readable_segments(answer):
        largest = _largest_timestamp(answer, segment)
        answer.candidates.append(Candidate(segment, largest))
        if largest < timestamp:
            continue
        match = _search_segment(answer, segment, timestamp, answer.local_start_offset)
        if match is not None:
            return match
    return None


def _largest_timestamp(answer: Lookup, segment: SegmentFiles) -> int:
    """Return a segment's largest timestamp, read only once per listed partition."""
    known = answer.partition.largest_timestamps
    if segment.base_offset not in known:
        problems: list[str] = []
        if segment.time_index is None and segment.size and answer.partition.has_time_indexes:
            problems.append(f"{segment.path.with_suffix('.timeindex')}: missing: {SCANNED}")
        known[segment.base_offset] = largest_timestamp(segment, problems), tuple(problems)
    largest, found = known[segment.base_offset]
    answer.problems += found
    return largest


def _search_segment(answer: Lookup, segment: SegmentFiles, timestamp: int, first_offset: int) -> Match | None:
    step = SegmentStep(segment)
    answer.steps.append(step)
    wanted = SearchTarget(first_offset, timestamp)
    with segment.open_log() as log_file:
        seek_time(log_file, step, timestamp, first_offset, answer.problems)
        return first_match(log_file, step, wanted)


def _lookup_earliest(answer: Lookup) -> Lookup:
    """Answer with the log start offset and the first record, unless it is in the remote tier."""
    if answer.tier is None or not answer.tier.has_remote_part:
        return _take_first(answer, answer.local_start_offset)
    answer.offset = answer.log_start_offset
    answer.problems.append(f"{answer.partition.path}: {answer.tier.text()}")
    return answer


def _lookup_earliest_local(answer: Lookup) -> Lookup:
    return _take_first(answer, max(answer.local_start_offset, answer.partition.disk_start_offset))


def _take_first(answer: Lookup, offset: int) -> Lookup:
    """Answer with an offset, and the first record from there on."""
    answer.offset = offset
    segments = answer.partition.segments[answer.partition.floor_slot(offset) or 0 :]
    match = _search_offset(answer, segments, offset)
    if match is not None:
        answer.batch, answer.record = match
    return answer


def _lookup_latest_tiered(answer: Lookup) -> Lookup:
    """Answer with the highest offset that was copied to the remote tier."""
    if answer.tier is None:
        answer.absence = Absence.NO_TIER
        return answer
    highest = answer.tier.highest_offset
    if highest is None or highest < 0:
        answer.absence = Absence.TIER_UNKNOWN if highest is None else Absence.NOT_COPIED
        return answer
    answer.offset = highest
    return answer


def _lookup_earliest_pending_upload(answer: Lookup) -> Lookup:
    """Answer with the first offset that isn't in the remote tier yet.

    A broker never answers the log end offset here. Source: UnifiedLog.fetchEarliestPendingUploadOffset.
    """
    if answer.tier is None:
        answer.absence = Absence.NO_TIER
        return answer
    pending = answer.tier.first_not_copied
    if pending is None:
        answer.absence = Absence.TIER_UNKNOWN
        return answer
    answer.log_end_offset = max(answer.partition.read_log_end_offset(), answer.log_start_offset)
    if pending >= answer.log_end_offset:
        answer.absence = Absence.AT_LOG_END
        return answer
    return _take_first(answer, pending)


def _lookup_latest(answer: Lookup) -> Lookup:
    """Answer with the log end offset, which has no record yet.

    In an empty log it is the log start offset, as on a broker.
    """
    end = max(answer.partition.read_log_end_offset(), answer.log_start_offset)
    answer.offset = answer.log_end_offset = end
    active = answer.partition.active_segment
    if active is not None:
        answer.candidates.append(Candidate(active))
    return answer


def _lookup_max_timestamp(answer: Lookup) -> Lookup:
    """Answer with the first record with the largest timestamp, in the first segment that has it.

    Brokers ignore the log start offset here; they search all segments on their own disk, but none in a remote tier.
    Source: UnifiedLog.fetchOffsetByTimestamp.
    """
    segments = answer.partition.disk_segments
    if not segments:
        answer.absence = Absence.EMPTY
        return answer
    for segment in segments:
        answer.candidates.append(Candidate(segment, _largest_timestamp(answer, segment)))
    largest = max(answer.candidates, key=lambda candidate: candidate.largest_timestamp or 0, default=None)
    if largest is None or largest.largest_timestamp is None or largest.largest_timestamp == NO_TIMESTAMP:
        answer.absence = Absence.NO_TIMES
        return answer
    match = _search_segment(answer, largest.segment, largest.largest_timestamp, segments[0].base_offset)
    if match is None:
        answer.absence = Absence.NO_TIMES
        return answer
    found = answer.take(match)
    if found.offset is not None and found.offset < answer.log_start_offset:
        answer.problems.append(BELOW_LOG_START.format(answer.partition.path, found.offset, answer.log_start_offset))
    return found


_SPECIAL_LOOKUPS = {
    SpecialTime.EARLIEST: _lookup_earliest,
    SpecialTime.LATEST: _lookup_latest,
    SpecialTime.MAX_TIMESTAMP: _lookup_max_timestamp,
    SpecialTime.EARLIEST_LOCAL: _lookup_earliest_local,
    SpecialTime.LATEST_TIERED: _lookup_latest_tiered,
    SpecialTime.EARLIEST_PENDING_UPLOAD: _lookup_earliest_pending_upload,
}


def lookup_selected(
    partition: PartitionLog, target: int | SpecialTime, selection: Selection, *, is_time: bool
) -> Lookup:
    """Look up the first selected record at or after a target.

    Special times: `earliest` is the first selected record, `latest` the last one, `max-timestamp` the first with the
    largest timestamp. Like dumps and exports, it also finds records below the log start offset, which a problem
    reports. Raises OpenError if a log can't be opened.
    """
    answer = Lookup(partition, target, is_time=is_time)
    offset = _selected_offset(partition, target, selection, answer.problems, is_time=is_time)
    if offset is None:
        answer.absence = Absence.NOT_SELECTED if partition.segments else Absence.EMPTY
        return answer
    if offset < answer.log_start_offset:
        answer.problems.append(BELOW_LOG_START.format(partition.path, offset, answer.log_start_offset))
    return _look_up(answer, offset, offset)


def _selected_offset(
    partition: PartitionLog, target: int | SpecialTime, selection: Selection, problems: list[str], *, is_time: bool
) -> int | None:
    from kseg.log.selected_records import first_selected, last_selected, latest_selected

    if isinstance(target, SpecialTime):
        search = {SpecialTime.LATEST: last_selected, SpecialTime.MAX_TIMESTAMP: latest_selected}.get(
            target, first_selected
        )
        return search(partition.path, selection, problems.append)
    if is_time:
        wanted = selection._replace(from_time=max(target, selection.from_time or 0))
    else:
        wanted = selection._replace(from_offset=max(target, selection.first_offset))
    return first_selected(partition.path, wanted, problems.append)


_HEADER = "header:"


class AbsentError(KsegError):
    """The record or field doesn't exist, or the field is null."""

    status = 1


class RecordField(NamedTuple):
    """A field of records, as `--field` names it. header: a header name; then `part` is `header`."""

    part: str
    header: str = ""

    def __str__(self) -> str:
        """Return the name that `parse_field` takes."""
        return f"{_HEADER}{self.header}" if self.part == "header" else self.part


def parse_field(text: str) -> RecordField:
    """Parse a field name: `key`, `value` or `header:NAME`. Raises UsageError for anything else."""
    if text in ("key", "value"):
        return RecordField(text)
    if text.startswith(_HEADER):
        return RecordField("header", text.removeprefix(_HEADER))
    raise UsageError(f"--field {text!r}: no such field; specify key, value or header:NAME")


def record_bytes(answer: Lookup, field: RecordField) -> bytes:
    """Return the bytes of a field of the found record; of several headers with the name, the last one's, like Kafka.

    Raises AbsentError if there is no such record or header, or the field is null.
    """
    if answer.record is None:
        raise AbsentError(f"offset {answer.target} isn't there: {answer.absence_text()}", answer.partition.path)
    try:
        return _field_bytes(answer.record, field)
    except AbsentError as error:
        error.path = str(answer.partition.path)
        raise


def _field_bytes(record: Record, field: RecordField) -> bytes:
    if field.part == "header":
        content = _header_value(record, field)
    else:
        content = record.key if field.part == "key" else record.value
    if content is None:
        raise AbsentError(f"offset {record.offset}: {field} is null")
    return content


def _header_value(record: Record, field: RecordField) -> bytes | None:
    for header in reversed(record.headers):
        if header.key == field.header:
            return header.value
    names = ", ".join(dict.fromkeys(header.key or "null" for header in record.headers))
    raise AbsentError(
        f"offset {record.offset}: the record has no header {field.header}; it has {names or 'no headers'}"
    )
