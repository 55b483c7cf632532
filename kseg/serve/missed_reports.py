"""Reports of the bytes of a partition that clients don't get, each once."""

from collections.abc import Callable, Iterable
from time import time
from typing import TYPE_CHECKING

from kseg.errors import KsegError
from kseg.log.segments import SegmentFiles
from kseg.serve.fetch_batches import Missed

if TYPE_CHECKING:
    from kseg.serve.intact_end import FileState

SETTLED_SECONDS = 10.0
"""The age of a log's last change before its end counts as damaged: it may be in the middle of a write."""
_WHOLE = ("", 0)
"""The key of a report about the whole partition."""


class MissedReports:
    """The reports about a partition. active: the state of its active log, as far as known."""

    def __init__(self, name: str, say: Callable[[str], None], *, is_strict: bool) -> None:
        """Take the partition's name and the receiver; is_strict: clients get an error at damage."""
        self._name, self._say, self._is_strict = name, say, is_strict
        self._told: set[tuple[str, int]] = set()
        self.active: FileState | None = None

    def __len__(self) -> int:
        return len(self._told)

    def report_unreadable(self, error: KsegError) -> None:
        """Report that the partition can't be read: clients only see an error that makes them try again."""
        if _WHOLE not in self._told:
            self._told.add(_WHOLE)
            self._say(f"{self._name}: can no longer be read, so clients get an error: {error}")

    def report_skipped(self, segment: SegmentFiles, missed: Iterable[Missed]) -> None:
        """Report skipped bytes of a segment."""
        for each in missed:
            is_active = self.active is not None and str(segment.path) == self.active[0]
            self._report(segment, each, is_active=is_active)

    def report_tail(self, segment: SegmentFiles, missed: Missed) -> None:
        """Report bytes after the last intact batch of the partition, unless a broker may still be writing them."""
        self._report(segment, missed, is_active=True)

    def _report(self, segment: SegmentFiles, missed: Missed, *, is_active: bool) -> None:
        key = (segment.path.name, missed.position)
        is_tail = missed.next_offset is None
        if key in self._told or (is_active and is_tail and self._may_be_written()):
            return
        self._told.add(key)
        done = "clients get an error there" if self._is_strict and not is_tail else "kseg passes over it"
        self._say(f"{segment.path}: position {missed.position}: {missed.detail}: {_lost_text(missed)}; {done}")

    def _may_be_written(self) -> bool:
        return self.active is not None and time() - self.active[2] / 1e9 < SETTLED_SECONDS


def _lost_text(missed: Missed) -> str:
    """Return the text about unreadable offsets."""
    if missed.next_offset is None:
        return f"offsets from {missed.first_offset} on"
    last = missed.next_offset - 1
    if last < missed.first_offset:
        return "no offset is missing"
    return f"offset {last}" if last == missed.first_offset else f"offsets {missed.first_offset} to {last}"
