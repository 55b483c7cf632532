"""Searches through logs: an offset, a time, the next damage, the next record with a match."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.browse.log_walk import is_harmful, is_last_log, stretches
from kseg.browse.place import Jump
from kseg.errors import KsegError, UsageError
from kseg.kernel.record import Record
from kseg.log.lookup.lookup import look_up
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import FoundFile, SegmentFiles
from kseg.log.partition.segment_search import SegmentStep, Wanted, first_match
from kseg.output.sizes import human_size
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile
from kseg.reading.scan import record_lists
from kseg.selection import Selection


class NotThereError(KsegError):
    """What was searched for isn't there."""

    status = 1


class Watch:
    """How far a search has got, and whether it is to stop: set by the screen, looked at by the search."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.line = ""

    def tell(self, log_file: LogFile, position: int) -> None:
        """Says how far the search has got. Raises NotThereError if it is to stop."""
        if self.is_stopped:
            raise NotThereError(f"stopped at position {position} of {log_file.path.name}")
        share = 100 * position // max(log_file.size, 1)
        self.line = f"{log_file.path.name}: {human_size(position)}, {share} %; Esc stops"


class Begin(NamedTuple):
    """Where a search begins: the logs that it goes through, the position in the first one, an offset to be passed."""

    logs: list[Path]
    position: int = 0
    after_offset: int | None = None


def find(log: Path, target: int, *, is_time: bool) -> Jump:
    """The record with an offset, or the first with a time or a later one; of an offset that is gone the next one.

    Raises NotThereError if there is none, OpenError if a log can't be opened.
    """
    partition = PartitionLog(log.absolute().parent)
    if not any(segment.log is not None and segment.log.name == log.name for segment in partition.segments):
        return _find_in_file(log, target, is_time=is_time)
    answer = look_up(partition, target, Selection(), is_time=is_time)
    directory = log.parent
    if answer.record is not None and answer.batch is not None and answer.step is not None:
        return Jump(directory / answer.step.segment.path.name, answer.batch.position, answer.record.offset)
    if answer.next is not None and answer.step is not None:
        note = f"offset {target}: {answer.absence_text()}; this is the next record"
        return Jump(directory / answer.step.segment.path.name, answer.next.position, answer.next.offset, note)
    raise NotThereError(answer.absence_text())


def _find_in_file(log: Path, target: int, *, is_time: bool) -> Jump:
    """The same in one file that is no segment in use: a snapshot, a deleted log."""
    with LogFile(log) as log_file:
        found = FoundFile(log.parent, log.name, log_file.size, 0)
        wanted = Wanted(0, target) if is_time else Wanted(target)
        match = first_match(log_file, SegmentStep(SegmentFiles(0, found)), wanted)
    if match is None:
        raise NotThereError("no record of the file has this or comes after it")
    return Jump(log, match.batch.position, match.record.offset)


def next_damage(begin: Begin, watch: Watch) -> Jump:
    """The next damage from a position on. Raises NotThereError if there is none."""
    for log, start in _logs(begin):
        with LogFile(log) as log_file:
            is_last = is_last_log(log_file)
            for piece in stretches(log_file, start):
                watch.tell(log_file, piece[-1].end)
                for each in piece:
                    if each.damage is not None and is_harmful(each.damage, is_last=is_last):
                        return Jump(log, each.position, note=f"{each.damage.kind}: {each.damage.detail}")
    raise NotThereError("no damage from here on")


def next_match(begin: Begin, pattern: re.Pattern[str], watch: Watch) -> Jump:
    """The next record with a match in its key or value. Raises NotThereError if there is none."""
    for log, start in _logs(begin):
        passed = begin.after_offset if log == begin.logs[0] else None
        with LogFile(log) as log_file:
            for record in _records(log_file, start, watch):
                if passed is not None and record.position == start and record.offset <= passed:
                    continue
                if _matches(pattern, record.key) or _matches(pattern, record.value):
                    return Jump(log, record.position, record.offset)
    raise NotThereError(f"no match for {pattern.pattern!r} from here on")


def _records(log_file: LogFile, start: int, watch: Watch) -> Iterator[Record]:
    for piece in with_bodies(log_file.runs(start), log_file.stored_size):
        if isinstance(piece, Slice):
            for records in record_lists(piece, _pass_over):
                watch.tell(log_file, records[-1].position if records else start)
                yield from records


def _logs(begin: Begin) -> Iterator[tuple[Path, int]]:
    """Each log, and where to begin in it; those that have vanished are passed over, the first one isn't."""
    for number, log in enumerate(begin.logs):
        if number == 0 or log.exists():
            yield log, 0 if number else begin.position


def _matches(pattern: re.Pattern[str], text: bytes | None) -> bool:
    """As `--grep` does: in the text as UTF-8."""
    return text is not None and pattern.search(text.decode("utf-8", "surrogateescape")) is not None


def _pass_over(_: Damage) -> None:
    """Damage: a search for records goes on after it."""


def parse_pattern(text: str) -> re.Pattern[str]:
    """A regular expression. Raises UsageError if it is none."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{text}: {error}") from error
