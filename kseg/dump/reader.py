"""Reads the logs of a directory for a dump, in order: in full, or a selection of each."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kseg.dump.log_steps import RenderedLog, Rendering
from kseg.errors import FileError
from kseg.formats.codes import TAIL_KINDS
from kseg.reading.blocks import Damage
from kseg.reading.log_file import BUFFER_SIZE, LogFile, Run
from kseg.system.placed_path import StrPath, as_path

if TYPE_CHECKING:
    from kseg.dump.forms import Printing
    from kseg.dump.log_parts import SplitLog, SplitLogs
    from kseg.dump.plan import DumpedDirectory
    from kseg.kernel.entry_points import Output
    from kseg.log.selector import Selector

SMALL_BUFFER_SIZE = 1 << 17
"""Bytes of each log that are read at once if many logs are read concurrently."""


class DirectoryReader:
    """The logs of a directory, the part of each to read, and the number of selected records so far.

    left: number of records still to read, None for all; batches if only batches are printed. end: the position up to
    which the last log was read. last_path: its path. is_followed: the torn or zero tail of a log isn't written yet.
    is_following: the following data was written after the logs were first printed.
    """

    def __init__(
        self,
        directory: "DumpedDirectory",
        printing: "Printing",
        *,
        buffer_size: int = BUFFER_SIZE,
        parts: "SplitLogs | None" = None,
    ) -> None:
        """Take the directory, without reading. parts: of the logs that processes render."""
        self.directory = directory
        self.left = printing.options.selection.limit
        self.end = 0
        self.last_path: str | None = None
        self.is_followed = printing.options.selection.is_followed
        self.is_following = False
        self._options, self._problems = printing.options, printing.problems
        self._show_progress = printing.show_progress
        self._buffer_size = buffer_size
        self._parts = parts
        self._start: int | None = None
        self._skip = 0
        self._selector: Selector | None = None

    @property
    def selector(self) -> "Selector":
        """The decision about which logs and batches are read. Raises OpenError if the directory can't be listed."""
        if self._selector is None:
            from kseg.log.partition import PartitionLog
            from kseg.log.selector import Selector

            path, copies = as_path(self.directory.path), self.directory.copies
            listed = PartitionLog(path, names=self.directory.names) if copies is None else copies.whole
            self._selector = Selector(self._options.selection, path, self._problems.note, listed)
        return self._selector

    @property
    def is_full(self) -> bool:
        """True if no more records are needed."""
        return self.left == 0 or (self._selector is not None and self._selector.is_done)

    def logs(self) -> Iterator[StrPath]:
        """Yield the logs that may have needed records, as long as any are needed. Raises OpenError as `selector`."""
        logs = self.directory.logs
        if self._options.selection.is_everything:
            yield from logs
            return
        selector = self.selector
        if self._options.selection.tail is not None:
            number, self._start, self._skip = self._find_tail(logs, self._options.selection.tail)
            logs = logs[number:]
        for path in logs:
            if self.left == 0:
                return
            if _may_hold(path, selector):
                yield path
            self._start = None

    def start_at(self, position: int) -> None:
        """Read the next log from a position on."""
        self._start = position

    @contextmanager
    def open_rendered(
        self, path: StrPath, rendering: Rendering, output: "Output"
    ) -> "Iterator[RenderedLog | SplitLog]":
        """Open a log to print its selected part, for `with`. Raises OpenError if it can't be opened.

        Args:
            path: the log.
            rendering: the form of its records; its filter is set here.
            output: the destination.
        """
        rendering = rendering._replace(redaction=self._options.redaction)
        number = None if self._parts is None else self._parts.begin(path)
        with self._open(path) as log_file:
            if self._parts is not None and number is not None:
                yield self._parts.open_log(number, log_file, rendering, output)
                return
            source: Iterator[Run | Damage] | None = None
            if not self._options.selection.is_everything:
                rendering, source = self._narrow(log_file, rendering)
            log = RenderedLog(log_file, rendering, output, source, self._show_progress)
            yield log
            records = log.summary.records
            if source is not None and records is not None:
                self._count(records)

    def _open(self, path: StrPath) -> LogFile:
        """Open a log, with lost parts from other copies that have them."""
        if self.directory.copies is None:
            return LogFile(path, self._options.max_bytes, buffer_size=self._buffer_size)
        return self.directory.copies.open_log(as_path(path), self._options.max_bytes, buffer_size=self._buffer_size)

    def _narrow(self, log_file: LogFile, rendering: Rendering) -> tuple[Rendering, Iterator[Run | Damage]]:
        """Return the rendering with a filter, and the parts to print."""
        selector = self.selector
        start = self._start if self._start is not None else selector.start_position(log_file)
        self.end, self.last_path = log_file.size, str(log_file.path)
        source = selector.items(log_file, start)
        if self.is_followed:
            source = self._drop_tail(source)
        if not rendering.is_deep:
            return rendering, self._limit_batches(source)
        last_offset = selector.last_offset(log_file.path)
        wanted = self._options.selection.record_filter(skip=self._skip, limit=self.left, last_offset=last_offset)
        return rendering._replace(record_filter=wanted), source

    def _count(self, count: int) -> None:
        self._skip = 0
        self._start = None
        if self.left is not None:
            self.left -= count

    def _drop_tail(self, items: Iterator[Run | Damage]) -> Iterator[Run | Damage]:
        for item in items:
            if isinstance(item, Damage) and item.kind in TAIL_KINDS:
                self.end = item.position
                return
            yield item

    def _limit_batches(self, items: Iterator[Run | Damage]) -> Iterator[Run | Damage]:
        """Yield batches without skipped ones, up to the limit: if records aren't read, batches count."""
        self._start = None
        for item in items:
            if isinstance(item, Damage):
                yield item
                continue
            first = min(self._skip, item.row_count)
            self._skip -= first
            run = item.rest(first) if first else item
            if self.left is not None:
                run = run._replace(row_count=min(run.row_count, self.left))
                self.left -= run.row_count
            if run.row_count or not item.row_count:
                yield run
            if self.left == 0:
                return

    def _find_tail(self, logs: list[StrPath], count: int) -> tuple[int, int | None, int]:
        """Return where the last records begin, or the last batches if only batches are printed."""
        from kseg.log.selected_records import count_selected
        from kseg.log.selector import find_tail

        selector = self.selector

        def count_from(log_file: LogFile, start: int) -> int:
            if self._options.counts_batches:
                return sum(item.row_count for item in selector.items(log_file, start) if isinstance(item, Run))
            return count_selected(selector, log_file, start)

        return find_tail([as_path(path) for path in logs], count, selector, self._open, count_from)


def _may_hold(path: StrPath, selector: "Selector") -> bool:
    """Return True if a log may have selected data, or True if that is unknown."""
    try:
        return selector.may_hold(as_path(path))
    except FileError:
        return True  # reported when it is opened
