"""The path of places from the outermost to the present one."""

from itertools import pairwise
from pathlib import Path

from kseg.browse.log_place import BatchPlace, LogPlace
from kseg.browse.place import BrowsedPlace, Clock
from kseg.browse.places import DirectoryPlace
from kseg.browse.search import Begin
from kseg.errors import KsegError

_END = 1 << 62
"""A position after the end of any log."""


class Way:
    """The open places, the outermost first. cursor: the row of the innermost one, which is `place`."""

    def __init__(self, places: list[BrowsedPlace], clock: Clock) -> None:
        self.clock = clock
        self._places = list(places)
        for place in places:
            place.clock = clock
        self._cursors = [above.number_of(below.path) or 0 for above, below in pairwise(places)]
        self.cursor = 0

    @property
    def place(self) -> BrowsedPlace:
        """The present place."""
        return self._places[-1]

    @property
    def depth(self) -> int:
        """The number of places."""
        return len(self._places)

    @property
    def titles(self) -> list[str]:
        """The titles of the places."""
        return [place.title for place in self._places]

    def push(self, place: BrowsedPlace, cursor: int = 0) -> None:
        """Enter a place."""
        place.clock = self.clock
        self._places.append(place)
        self._cursors.append(self.cursor)
        self.cursor = cursor

    def pop(self) -> None:
        """Leave the innermost place."""
        self._places.pop().close()
        self.cursor = self._cursors.pop()

    def close(self) -> None:
        """Close all places."""
        for place in self._places:
            place.close()

    def go_into(self, log: Path) -> LogPlace:
        """Go to a log: leave places as far as needed, then enter others.

        Raises KsegError if no row leads to it, OpenError if it can't be opened.
        """
        while self.depth > 1 and not self._leads_to(log):
            self.pop()
        while not self._is_at(log):
            number = self.place.number_of(log)
            entered = None if number is None else self.place.enter(number)
            if entered is None or number is None:
                raise KsegError("isn't inside this place", log)
            self.cursor = number
            self.push(entered)
        assert isinstance(self.place, LogPlace)
        return self.place

    def _is_at(self, log: Path) -> bool:
        return isinstance(self.place, LogPlace) and self.place.path == log

    def _leads_to(self, log: Path) -> bool:
        return self._is_at(log) or (isinstance(self.place, DirectoryPlace) and self.place.number_of(log) is not None)

    def begin(self) -> Begin:
        """Return the start of a search from here: at the present batch, or after the present record."""
        log = self._log()
        if log is None:
            directory = self._directories()[-1:]
            number = self.cursor if directory == [self.place] else self._cursors[-1] if self._cursors else 0
            return Begin([path for each in directory for path in each.logs_from(number)])
        number = self._number_in(log)
        after = self.place.offset_of(self.cursor) if isinstance(self.place, BatchPlace) else None
        return Begin([log.path, *self._later_logs(log.path)], log.position(number) if number < log.count else 0, after)

    def begin_before(self) -> Begin:
        """Return the start of a backward search: before the present record or batch, the nearest log first."""
        here, log = self.begin(), self._log()
        if log is not None:
            return here._replace(logs=[log.path, *reversed(self._earlier_logs(log.path))])
        for directory in self._directories()[-1:]:
            all_logs = directory.logs_from(0)
            return Begin(all_logs[: len(all_logs) - len(here.logs)][::-1], _END)
        return here

    def begin_after(self) -> Begin:
        """Return the start of a search after the present batch."""
        here, log = self.begin(), self._log()
        number = 0 if log is None else self._number_in(log)
        return here if log is None or number >= log.count else here._replace(position=log.end_of(number))

    def _log(self) -> LogPlace | None:
        return next((place for place in self._places if isinstance(place, LogPlace)), None)

    def _number_in(self, log: LogPlace) -> int:
        """Return the row of a log that is the present place, or contains it."""
        return [*self._cursors, self.cursor][self._places.index(log)]

    def _directories(self) -> list[DirectoryPlace]:
        return [place for place in self._places if isinstance(place, DirectoryPlace)]

    def _later_logs(self, log: Path) -> list[Path]:
        """Return the logs after a log: of its partition, then of the topics and disks around it."""
        for directory in self._directories():
            number = directory.number_of(log)
            logs = [] if number is None else directory.logs_from(number)
            if log in logs:
                return logs[logs.index(log) + 1 :]
        return []

    def _earlier_logs(self, log: Path) -> list[Path]:
        """Return the logs before a log: of its partition, then of the topics and disks around it."""
        for directory in self._directories():
            logs = directory.logs_from(0)
            if log in logs:
                return logs[: logs.index(log)]
        return []

    def note_wrong(self, log: Path) -> None:
        """Mark a log as damaged in the directories' rows."""
        for directory in self._directories():
            directory.wrong.add(log)
