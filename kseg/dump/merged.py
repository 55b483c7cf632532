"""Prints the records of several partitions together, in the order of their times.

Each partition is rendered as it would be alone, a piece of a log at a time, by a program that puts a mark before each
record. The mark is random, so that nobody can have written it into a record. Pieces are cut there, and of all
partitions those records printed before which none can have another one.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from kseg.dump.log_steps import Steps, new_output
from kseg.dump.log_text import summary_lines, text_rendering
from kseg.dump.options import Part
from kseg.dump.record_rows import TableRows, fields_of, json_rendering, note_left_out, rows_rendering
from kseg.dump.selected import (
    directory_of,
    find_logs_tail,
    may_hold,
    note_failures,
    note_findings,
    read_steps,
    selector_of,
)
from kseg.errors import OpenError, UsageError
from kseg.formats.file_names import LOG_KINDS, parse_file_name
from kseg.layouts.record_columns import log_place
from kseg.layouts.template import TIME_END, marked_program
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.dump.options import DumpContext


MOST_PARTITIONS = 256
"""Partitions that are merged at most: some MiB of each are in memory."""
_RANDOM_BYTES = 16


def dump_merged(paths: Sequence[StrPath], context: "DumpContext", refuse: Callable[[OpenError], None]) -> None:
    """Prints the selected records of logs by their times; those of a directory stay in the order of their offsets.

    A record whose time is before that of the one before it in its directory comes right after that one, as does one
    without a time. `refuse` takes the errors of files that can't be read. Raises UsageError for too many directories.
    """
    directories: dict[StrPath, list[StrPath]] = {}
    for path in paths:
        if parse_file_name(path).kind in LOG_KINDS:
            directories.setdefault(directory_of(path), []).append(path)
        else:
            refuse(OpenError("isn't a log: --merge is for logs", path))
    if len(directories) > MOST_PARTITIONS:
        count = f"{len(directories)} partitions are more than the {MOST_PARTITIONS} that can be merged at once"
        raise UsageError(f"--merge: {count}: choose some with --topic and --partition")
    mark = os.urandom(_RANDOM_BYTES).hex().encode()
    streams = [_MergedStream(directory, logs, context, mark, refuse) for directory, logs in directories.items()]
    names = fields_of(context.options, several_files=context.given.are_several_files)
    if context.options.output == "table":
        rows = TableRows(context.table(names), names)
        _print(streams, context.options.selection.limit, lambda text: rows.take(memoryview(text)))
        note_left_out(rows, "of all", context)
    else:
        if context.options.output == "csv":
            context.line_once(",".join(names))
        _print(streams, context.options.selection.limit, context.output.write)


class _MergedStream:
    """The selected records of a directory's logs as they are printed, some at a time.

    times: by which they are merged, none less than the one before. texts: the records'. is_over: no more follow.
    """

    def __init__(
        self,
        directory: StrPath,
        logs: list[StrPath],
        context: "DumpContext",
        mark: bytes,
        refuse: Callable[[OpenError], None],
    ) -> None:
        self.times: list[int] = []
        self.texts: list[bytes] = []
        self.is_over = False
        self._latest = -1
        self._rendered: list[bytes] = []
        self._output = new_output(lambda piece: self._rendered.append(bytes(piece)))
        self._context = context.beside_others(self._output)
        self._mark = mark
        self._refuse = refuse
        self._is_stopped = False
        self._pieces = self._read(directory, logs)

    def fill(self) -> None:
        """Reads on until there is a record, or the end."""
        while not self.texts and not self.is_over:
            piece = next(self._pieces, None)
            self.is_over = piece is None
            if piece:
                parts = [text.partition(TIME_END) for text in piece]
                self.times = list(accumulate((int(time) for time, _, _ in parts), max, initial=self._latest))[1:]
                self.texts = [text for _, _, text in parts]
                self._latest = self.times[-1]

    def cut(self, count: int) -> tuple[list[int], list[bytes]]:
        """Takes the first records out."""
        cut = self.times[:count], self.texts[:count]
        del self.times[:count], self.texts[:count]
        return cut

    def stop(self) -> None:
        """Reads no further, but tells what was found until here."""
        self._is_stopped = True
        for _ in self._pieces:
            pass

    def _read(self, directory: StrPath, logs: list[StrPath]) -> Iterator[list[bytes]]:
        """The records' texts, a time before each, piece by piece."""
        selection = self._context.options.selection
        try:
            part = Part(selector_of(directory, self._context), selection.limit)
        except OpenError as error:
            self._refuse(error)
            return
        self._context.part = part
        if selection.tail is not None:
            tail = find_logs_tail(logs, selection.tail, part.selector, self._context)
            logs, part.start, part.skip = logs[tail.number :], tail.start, tail.skip
        for path in logs:
            if part.left == 0 or self._is_stopped:
                return
            if may_hold(path, part.selector):
                try:
                    yield from self._read_log(path)
                except OpenError as error:
                    self._refuse(error)
            part.start = None

    def _read_log(self, path: StrPath) -> Iterator[list[bytes]]:
        steps, is_over = _log_steps(path, self._context, self._mark), False
        next(steps, None)
        while not is_over:
            self._output.flush()
            _, *texts = b"".join(self._rendered).split(self._mark)
            self._rendered.clear()
            yield texts
            try:
                steps.send(self._is_stopped)
            except StopIteration:
                is_over = True


def _log_steps(path: StrPath, context: "DumpContext", mark: bytes) -> Steps:
    """Prints a log's records, each after the mark and its time; notes what is wrong."""
    is_json, is_text = context.options.output == "json", _is_text(context)
    heading, decoder, on_damage = b"", None, None
    if is_json:
        rendering, decoder, on_damage = json_rendering(path, context)
    elif is_text:
        rendering, decoder = text_rendering(path, context.options)
        place = log_place(path)
        heading = f"topic: {place['topic']} partition: {place['partition']} ".encode()
    else:
        rendering, decoder = rows_rendering(path, context)
    rendering = rendering._replace(program=marked_program(rendering.program, mark, heading))
    summary = yield from read_steps(path, context, rendering, context.output, on_damage)
    note_findings(path, summary, context)
    if summary.damages and not is_json:
        context.found.summaries += summary_lines(path, summary)
    note_failures(path, decoder, context)
    return summary


def _is_text(context: "DumpContext") -> bool:
    options = context.options
    return options.output == "text" and options.template is None and not options.fields


def _print(streams: list[_MergedStream], limit: int | None, write: Callable[[bytes], object]) -> None:
    """Prints records by their times, of equal ones those of an earlier stream first."""
    while limit != 0:
        for stream in streams:
            stream.fill()
        streams = [stream for stream in streams if stream.texts]
        if not streams:
            return
        texts = _first_texts(streams)[:limit]
        write(b"".join(texts))
        limit = None if limit is None else limit - len(texts)
    for stream in streams:
        stream.stop()


def _first_texts(streams: Sequence[_MergedStream]) -> list[bytes]:
    """Takes out all records before which no other one can come from any stream, in order; one stream is empty then."""
    ends = [(stream.times[-1], number) for number, stream in enumerate(streams) if not stream.is_over]
    times: list[int] = []
    texts: list[bytes] = []
    for number, stream in enumerate(streams):
        count = len(stream.times)
        if ends:
            time, last = min(ends)
            count = (bisect_right if number <= last else bisect_left)(stream.times, time)
        more_times, more_texts = stream.cut(count)
        times += more_times
        texts += more_texts
    if len(streams) == 1:
        return texts
    return [texts[place] for place in sorted(range(len(texts)), key=times.__getitem__)]
