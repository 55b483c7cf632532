"""Parts of logs that several processes render; joined in order, their texts equal the text of one process.

A part begins at the first intact batch at or after its nominal start. It ends before the first batch at or after the
next part's nominal start, or before damage. It is used only if it begins where the preceding part ended. After damage,
one process renders the rest of the log, since the search for its end depends on everything before it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from kseg.dump.decoders import InternalDecoder
from kseg.dump.forms import Form, Printing
from kseg.dump.log_steps import LogSummary, RenderedLog, Rendering, new_output, render_item, rendered_items, walk_log
from kseg.errors import KsegError, OpenError
from kseg.kernel.contract import MOST, ROW, SIZE, START, VALID
from kseg.output.streams import flush_stdout, write_stdout
from kseg.reading.blocks import TRUSTED_SIZE, Damage
from kseg.reading.log_file import LogFile, Ring, Run
from kseg.system.placed_path import StrPath
from kseg.system.shared_work import OnRead, shared_writing

if TYPE_CHECKING:
    from kseg.decode.record_decoders import RecordDecoder
    from kseg.kernel.entry_points import Output
    from kseg.system.processes import Write

PART_SIZE = 4 << 20
"""Bytes of a part: its text usually fits into what a process may hold until it is the part's turn."""
_SEARCHED = (64 << 10, TRUSTED_SIZE)
"""Sizes of the ranges in which kseg looks for a part's first batch, tried in this order."""


class LogPart(NamedTuple):
    """A part of a log: the log's number and path, and the nominal start; the end is the next part's, None for the last.

    cost: the bytes to read.
    """

    number: int
    path: StrPath
    start: int
    end: int | None
    cost: int


class _PartStart(NamedTuple):
    """The first result of a part: the position of its first batch, and the bytes of the log."""

    position: int
    size: int


class _PartEnd(NamedTuple):
    """The last result of a part: the position where it ended, and its counts as in LogSummary.

    compared_offset: as in Renderer. decoded: counts of the log's decoder.
    """

    position: int
    batches: int
    records: int
    gaps: list[tuple[int, int]]
    compared_offset: int | None
    decoded: Any


def parts_of(logs: Sequence[tuple[StrPath, int]]) -> list[list[LogPart]]:
    """Return the parts of each log, from their paths and sizes."""
    split = []
    for number, (path, size) in enumerate(logs):
        starts = [*range(0, max(size, 1), PART_SIZE), None]
        ends = pairwise(starts)
        split.append([LogPart(number, path, start or 0, end, min(PART_SIZE, size)) for start, end in ends])
    return split


@contextmanager
def split_logs(split: Sequence[Sequence[LogPart]], form: Form, processes: int) -> Iterator["SplitLogs"]:
    """Start processes that render the parts of logs, when the first text is needed, and end them."""
    logs = SplitLogs(split, form.printing)
    with shared_writing(PartRenderer(form), logs.remaining(), lambda part: part.cost, processes) as results:
        logs.take(results)
        yield logs


class PartRenderer:
    """Renders parts in a process; consecutive parts of a log share its opened file and its rendering."""

    def __init__(self, form: Form) -> None:
        """Take the form, which decides the rendering of each log."""
        self._form = form
        self._number = -1
        self._ring = Ring([], [])
        self._log_file: LogFile | None = None
        self._rendering: Rendering | None = None

    def __call__(self, part: LogPart, _: OnRead, write: "Write") -> Iterator[_PartStart | Damage | _PartEnd]:
        """Write the text of a part, and yield the damages in it at their places.

        Nothing is yielded if it has no first batch, or if the log can't be opened: then the parent meets the error.
        """
        try:
            log_file, rendering = self._open(part)
            start = _first_batch(log_file, part.start)
        except KsegError:
            return
        if start is not None:
            yield _PartStart(start, log_file.size)
            yield from _render_part(log_file, rendering, start, part.end, write)

    def _open(self, part: LogPart) -> tuple[LogFile, Rendering]:
        if self._log_file is None or self._rendering is None or part.number != self._number:
            if self._log_file is not None:
                self._log_file.close()
            options = self._form.options
            rendering = self._form.rendering(part.path).rendering
            self._rendering = rendering._replace(redaction=options.redaction, in_threads=False)
            self._log_file = LogFile(part.path, options.max_bytes, ring=self._ring)
            self._number = part.number
        return self._log_file, self._rendering


def _first_batch(log_file: LogFile, start: int) -> int | None:
    if start == 0:
        return 0
    found = (log_file.next_batch(start, min(start + size, log_file.size)) for size in _SEARCHED)
    return next((position for position in found if position is not None), None)


def _render_part(
    log_file: LogFile, rendering: Rendering, start: int, end: int | None, write: "Write"
) -> Iterator[Damage | _PartEnd]:
    if start > 0:
        rendering = rendering._replace(last_offset=MOST, is_continued=True)  # so that the first offset is noted
    output = new_output(write)
    renderer = rendering.renderer(output, log_file.base_offset)
    walk = _CleanWalk(log_file, rendering, start, end)
    batches = 0
    for item in rendered_items(log_file, rendering, walk.runs()):
        assert not isinstance(item, Damage)
        if item.damages:
            walk.position = item.run.position + item.run.rows[item.first * ROW + START]
            break
        batches += item.last - item.first
        for damage in render_item(renderer, log_file, item):
            output.flush()
            yield damage
    output.flush()
    decoder = _counting_decoder(rendering)
    decoded = None if decoder is None else decoder.take_counts()
    yield _PartEnd(walk.position, batches, renderer.records, renderer.gaps, renderer.compared_offset, decoded)


def _counting_decoder(rendering: Rendering) -> "InternalDecoder | RecordDecoder | None":
    """Return the decoder of a log if it counts failures."""
    if rendering.decode is None:
        return None
    from kseg.decode.record_decoders import RecordDecoder

    return rendering.decode if isinstance(rendering.decode, InternalDecoder | RecordDecoder) else None


class _CleanWalk:
    """The intact batches of a part.

    position: the end of those yielded. A larger batch than TRUSTED_SIZE ends it, too: later ones are judged by it.
    """

    def __init__(self, log_file: LogFile, rendering: Rendering, start: int, end: int | None) -> None:
        self.position = start
        self._end = end
        self._items = walk_log(log_file, rendering, start)

    def runs(self) -> Iterator[Run]:
        """Yield the runs of these batches."""
        for item in self._readable_items():
            if isinstance(item, Damage) or not item.rows[VALID] or len(item.buffer) > TRUSTED_SIZE:
                return
            count = item.row_count
            if self._end is not None:
                starts = item.rows[START : count * ROW : ROW]
                count = bisect_left(starts, self._end - item.position)
            if count == 0:
                return
            last = (count - 1) * ROW
            self.position = item.position + item.rows[last + START] + item.rows[last + SIZE]
            yield item._replace(row_count=count)
            if count < item.row_count:
                return

    def _readable_items(self) -> Iterator[Run | Damage]:
        """Yield the items until one can't be read: the parent meets the error there."""
        try:
            yield from self._items
        except OpenError:
            return


class SplitLogs:
    """Logs whose parts processes render; the text is written here, in order."""

    def __init__(self, split: Sequence[Sequence[LogPart]], printing: Printing) -> None:
        """Take the parts of each log in the order of printing."""
        self._split = split
        self._printing = printing
        self._results: Iterator[tuple[LogPart, Any]] = iter(())
        self._next: tuple[LogPart, Any] | None = None
        self._number = 0

    def remaining(self) -> Iterator[LogPart]:
        """Yield the parts of all logs, without those of logs that were printed meanwhile."""
        return (part for parts in self._split for part in parts if part.number >= self._number)

    def take(self, results: Iterator[tuple[LogPart, Any]]) -> None:
        """Take the results of the remaining parts, in order."""
        self._results = self._after_flush(results)

    def _after_flush(self, results: Iterator[tuple[LogPart, Any]]) -> Iterator[tuple[LogPart, Any]]:
        """Yield the results after a flush: forked processes would write buffered text a second time."""
        self._printing.output.flush()
        flush_stdout()
        yield from results

    def begin(self, path: StrPath) -> int | None:
        """Start a log; return its number, or None if its parts aren't rendered by processes."""
        for parts in self._split[self._number :]:
            if parts[0].path == path:
                self._number = parts[0].number
                return self._number
        return None

    def open_log(self, number: int, log_file: LogFile, rendering: Rendering, output: "Output") -> "SplitLog":
        """Return the log with a number, to print it."""
        return SplitLog(self, number, log_file, rendering, output, self._printing.show_progress)

    def end(self, number: int) -> None:
        """Finish a log: its remaining parts aren't needed."""
        self._number = number + 1

    def results(self, number: int) -> Iterator[Any]:
        """Yield the results of a log's parts."""
        while True:
            if self._next is None:
                self._next = next(self._results, None)
            if self._next is None or self._next[0].number > number:
                return
            (part, result), self._next = self._next, None
            if part.number == number:
                yield result

    def write(self, text: memoryview) -> None:
        """Write rendered text."""
        self._printing.output.flush()
        write_stdout(text)


class SplitLog:
    """A log that is printed from its parts, and from the first damage on by this process.

    It has the same events and summary as RenderedLog.
    """

    def __init__(
        self,
        parts: SplitLogs,
        number: int,
        log_file: LogFile,
        rendering: Rendering,
        output: "Output",
        show_progress: Callable[[str, int, int], None],
    ) -> None:
        """Take all parts, the log's number, the log and its rendering, and the output for the rest."""
        self._parts, self._number = parts, number
        self._log_file, self._rendering, self._output = log_file, rendering, output
        self._show_progress = show_progress
        self._compared: int | None = None
        self.summary = LogSummary(0, 0 if rendering.is_deep else None, log_file.size, [], [])

    def events(self) -> Iterator[Damage | None]:
        """Print part after part; yield each damage at its place in the output, and None after a piece."""
        position, is_accepted = 0, False
        for result in self._parts.results(self._number):
            match result:
                case _PartStart(start, size):
                    if start > position:
                        break  # there is damage between, and no later part begins at this position either
                    is_accepted = start == position
                    self._show_progress(self._log_file.path.name, start, size)
                case _ if not is_accepted:
                    continue
                case memoryview():
                    self._parts.write(result)
                    yield None
                case Damage():
                    self.summary.damages.append(result)
                    yield result
                case _PartEnd():
                    self._add(result, is_first=position == 0)
                    position = result.position
                    if position >= self._log_file.size:
                        break
        self._parts.end(self._number)
        if position < self._log_file.size or position == 0:
            yield from self._print_rest(position)

    def _add(self, part: _PartEnd, *, is_first: bool) -> None:
        """Add a part's counts to the summary; the gap before its first offset depends on the preceding part."""
        gaps = part.gaps
        if not is_first and gaps and gaps[0][0] == MOST:
            (_, offset), *gaps = gaps
            if self._compared is not None and self._rendering.gap_rule.is_gap(self._compared, offset):
                gaps = [(self._compared, offset), *gaps]
        if is_first or part.compared_offset != MOST:
            self._compared = part.compared_offset
        decoder = _counting_decoder(self._rendering)
        if decoder is not None:
            decoder.add_counts(part.decoded)
        size = max(self.summary.size, part.position)
        self.summary = self.summary.followed_by(LogSummary(part.batches, part.records, size, [], gaps))

    def _print_rest(self, position: int) -> Iterator[Damage | None]:
        rendering = self._rendering
        if position > 0:
            rendering = rendering._replace(last_offset=self._compared, is_continued=True)
        items = _items_from(walk_log(self._log_file, rendering), position)
        rest = RenderedLog(self._log_file, rendering, self._output, items, self._show_progress)
        yield from rest.events()
        self.summary = self.summary.followed_by(rest.summary)


def _items_from(items: Iterator[Run | Damage], position: int) -> Iterator[Run | Damage]:
    """Yield the items from a position on: the search after damage depends on the walk up to it."""
    for item in items:
        if isinstance(item, Damage):
            yield item
            continue
        starts = item.rows[START : item.row_count * ROW : ROW]
        first = bisect_left(starts, position - item.position)
        if first < item.row_count:
            yield item.rest(first) if first else item
