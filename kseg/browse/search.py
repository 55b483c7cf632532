"""Searches through logs: for offsets, times, damage, and text in records."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.browse.log_place import BYTES_BEFORE, is_harmful, is_last_log, start_before, stretches
from kseg.browse.place import Jump
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.replicas import alone
from kseg.errors import KsegError
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.segment_search import SearchTarget, SegmentStep, first_match
from kseg.log.segments import FoundFile, SegmentFiles
from kseg.log.selection import parse_pattern
from kseg.reading.batch import record_lists
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile
from kseg.sizes import human_size


class NotThereError(KsegError):
    """Raised if the record or damage doesn't exist."""

    status = 1


class Watch:
    """The progress of a search, and a flag that the screen sets to stop it."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.line = ""

    def tell(self, log_file: LogFile, position: int) -> None:
        """Report the progress of the search. Raises NotThereError if the search has been stopped."""
        if self.is_stopped:
            raise NotThereError(f"stopped at position {position} of {log_file.path.name}")
        share = 100 * position // max(log_file.size, 1)
        self.line = f"{log_file.path.name}: {human_size(position)}, {share} %; Esc stops"


class Begin(NamedTuple):
    """The start of a search: its logs, the position in the first one, and an offset there.

    The search covers the records after this offset, or, backwards, the records before it.
    """

    logs: list[Path]
    position: int = 0
    offset: int | None = None


class Sought(NamedTuple):
    """A text to search for, as typed, and its pattern."""

    text: str
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> "Sought":
        """Parse a search text.

        Text with capital letters is case-sensitive, and text between slashes is a regular expression.

        Raises UsageError if the expression is invalid.
        """
        if len(text) > len("//") and text[0] == text[-1] == "/":
            return cls(text, parse_pattern(text[1:-1]))
        return cls(text, re.compile(re.escape(text), 0 if text != text.lower() else re.IGNORECASE))

    def is_in(self, text: str) -> bool:
        """Return True if a text has a match."""
        return self.pattern.search(text) is not None

    def is_in_record(self, record: Record) -> bool:
        """Return True if the key, value or headers of a record match when decoded as UTF-8."""
        headers = (part for header in record.headers for part in (header.key.encode(), header.value))
        parts = (record.key, record.value, *headers)
        return any(part is not None and self.is_in(part.decode("utf-8", "surrogateescape")) for part in parts)


def find(log: Path, target: int, *, is_time: bool) -> Jump:
    """Return the record at an offset or the next existing one, or the first record at or after a time.

    Raises NotThereError if there is none, OpenError if a log can't be opened.
    """
    partition = PartitionLog(log.absolute().parent)
    if not any(segment.log is not None and segment.log.name == log.name for segment in partition.segments):
        return _find_in_file(log, target, is_time=is_time)
    answer = look_up_in_copies(alone(partition), target, is_time=is_time)
    directory = log.parent
    if answer.record is not None and answer.batch is not None and answer.step is not None:
        return Jump(directory / answer.step.segment.path.name, answer.batch.position, answer.record.offset)
    if answer.next is not None and answer.step is not None:
        note = f"offset {target}: {answer.absence_text()}; this is the next record"
        return Jump(directory / answer.step.segment.path.name, answer.next.position, answer.next.offset, note)
    raise NotThereError(answer.absence_text())


def _find_in_file(log: Path, target: int, *, is_time: bool) -> Jump:
    """Do the same for a single file that isn't part of a partition in use, such as a snapshot or a deleted log."""
    with LogFile(log) as log_file:
        found = FoundFile(log.parent, log.name, log_file.size, 0)
        wanted = SearchTarget(0, target) if is_time else SearchTarget(target)
        match = first_match(log_file, SegmentStep(SegmentFiles(0, found)), wanted)
    if match is None:
        raise NotThereError("the file has no such record and no later one")
    return Jump(log, match.batch.position, match.record.offset)


def next_damage(begin: Begin, watch: Watch) -> Jump:
    """Return the next damaged range. Raises NotThereError if there is none."""
    for log, start in _logs(begin):
        with LogFile(log) as log_file:
            is_last = is_last_log(log_file)
            for piece in stretches(log_file, start):
                watch.tell(log_file, piece[-1].end)
                for each in piece:
                    if each.damage is not None and is_harmful(each.damage, is_last=is_last):
                        return Jump(log, each.position, note=f"{each.damage.kind}: {each.damage.detail}")
    raise NotThereError("no damage after this place")


def next_match(begin: Begin, sought: Sought, watch: Watch) -> Jump:
    """Return the next record with a match in its key, value or headers. Raises NotThereError if there is none."""
    for log, start in _logs(begin):
        passed = begin.offset if log == begin.logs[0] else None
        with LogFile(log) as log_file:
            for record in _records(log_file, start, watch):
                if passed is not None and record.position == start and record.offset <= passed:
                    continue
                if sought.is_in_record(record):
                    return Jump(log, record.position, record.offset)
    raise NotThereError(f"no match for {sought.text!r} after this place")


class _Limit(NamedTuple):
    """The batch and offset at which a backward search stops."""

    position: int
    offset: int


def previous_match(begin: Begin, sought: Sought, watch: Watch) -> Jump:
    """Return the last match before a record or batch. Raises NotThereError if there is none."""
    limit = _Limit(begin.position, -1 if begin.offset is None else begin.offset)
    for log in begin.logs:
        if log != begin.logs[0] and not log.exists():
            continue
        with LogFile(log) as log_file:
            found = _last_match(log_file, limit._replace(position=min(limit.position, log_file.size)), sought, watch)
        if found is not None:
            return Jump(log, found.position, found.offset)
        limit = _Limit(sys.maxsize, -1)
    raise NotThereError(f"no match for {sought.text!r} before this place")


def _last_match(log_file: LogFile, limit: _Limit, sought: Sought, watch: Watch) -> Record | None:
    """Read sections of a log backwards with the help of the index, or the entire log if there is no index."""
    while True:
        start = start_before(log_file, limit.position - BYTES_BEFORE)
        found = None
        for record in _records(log_file, start, watch):
            if (record.position, record.offset) >= limit:
                break
            if sought.is_in_record(record):
                found = record
        if found is not None or start == 0:
            return found
        limit = _Limit(start, -1)


def _records(log_file: LogFile, start: int, watch: Watch) -> Iterator[Record]:
    for piece in with_bodies(log_file.runs(start), log_file.stored_size):
        if isinstance(piece, Slice):
            for records in record_lists(piece, _pass_over):
                watch.tell(log_file, records[-1].position if records else start)
                yield from records


def _logs(begin: Begin) -> Iterator[tuple[Path, int]]:
    """Yield all logs with the position to start from. Logs that have been deleted are skipped."""
    for number, log in enumerate(begin.logs):
        if number == 0 or log.exists():
            yield log, 0 if number else begin.position


def _pass_over(_: Damage) -> None:
    """Ignore damage, because a search continues after it."""
