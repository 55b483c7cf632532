"""The trail of places, and searches through logs."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kseg.browse.log_place import BatchPlace, LogPlace, is_harmful, is_last_log, stretches
from kseg.browse.place import BrowsedPlace, Jump
from kseg.browse.places import DirectoryPlace
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.replicas import alone
from kseg.errors import KsegError
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.segment_search import SegmentStep, Wanted, first_match
from kseg.log.segments import FoundFile, SegmentFiles
from kseg.output.rows import human_size
from kseg.reading.batch import record_lists
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile


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
    answer = look_up_in_copies(alone(partition), target, is_time=is_time)
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


class Way:
    """Places, the outermost first. cursor: the row of the innermost one, which is `place`."""

    def __init__(self, places: list[BrowsedPlace]) -> None:
        self._places = list(places)
        self._cursors = [above.number_of(below.path) or 0 for above, below in pairwise(places)]
        self.cursor = 0

    @property
    def place(self) -> BrowsedPlace:
        """Where one is."""
        return self._places[-1]

    @property
    def depth(self) -> int:
        """How many places there are."""
        return len(self._places)

    @property
    def titles(self) -> list[str]:
        """What the places are called."""
        return [place.title for place in self._places]

    def push(self, place: BrowsedPlace, cursor: int = 0) -> None:
        """Goes into a place."""
        self._places.append(place)
        self._cursors.append(self.cursor)
        self.cursor = cursor

    def pop(self) -> None:
        """Goes back out."""
        self._places.pop().close()
        self.cursor = self._cursors.pop()

    def close(self) -> None:
        """Closes all places."""
        for place in self._places:
            place.close()

    def go_into(self, log: Path) -> LogPlace:
        """Goes to a log, out as far as needed and in again.

        Raises KsegError if no row leads to it, OpenError if it can't be opened.
        """
        while self.depth > 1 and not self._leads_to(log):
            self.pop()
        while not self._is_at(log):
            number = self.place.number_of(log)
            entered = None if number is None else self.place.enter(number)
            if entered is None or number is None:
                raise KsegError("isn't below this place", log)
            self.cursor = number
            self.push(entered)
        assert isinstance(self.place, LogPlace)
        return self.place

    def _is_at(self, log: Path) -> bool:
        return isinstance(self.place, LogPlace) and self.place.path == log

    def _leads_to(self, log: Path) -> bool:
        return self._is_at(log) or (isinstance(self.place, DirectoryPlace) and self.place.number_of(log) is not None)

    def begin(self) -> Begin:
        """Where a search from here on begins: at the batch that one is at, after the record that one is at."""
        log = self._log()
        if log is None:
            directory = self._directories()[-1:]
            number = self.cursor if directory == [self.place] else self._cursors[-1] if self._cursors else 0
            return Begin([path for each in directory for path in each.logs_from(number)])
        number = self._number_in(log)
        after = self.place.offset_of(self.cursor) if isinstance(self.place, BatchPlace) else None
        return Begin([log.path, *self._later_logs(log.path)], log.position(number) if number < log.count else 0, after)

    def begin_after(self) -> Begin:
        """The same after the batch that one is at."""
        here, log = self.begin(), self._log()
        number = 0 if log is None else self._number_in(log)
        return here if log is None or number >= log.count else here._replace(position=log.end_of(number))

    def _log(self) -> LogPlace | None:
        return next((place for place in self._places if isinstance(place, LogPlace)), None)

    def _number_in(self, log: LogPlace) -> int:
        """The row of a log that one is at, or in."""
        return [*self._cursors, self.cursor][self._places.index(log)]

    def _directories(self) -> list[DirectoryPlace]:
        return [place for place in self._places if isinstance(place, DirectoryPlace)]

    def _later_logs(self, log: Path) -> list[Path]:
        """The logs after one: of its partition, and of the topics and disks around it."""
        for directory in self._directories():
            number = directory.number_of(log)
            logs = [] if number is None else directory.logs_from(number)
            if log in logs:
                return logs[logs.index(log) + 1 :]
        return []

    def note_wrong(self, log: Path) -> None:
        """Lets the directories show that a log has damage."""
        for directory in self._directories():
            directory.wrong.add(log)
