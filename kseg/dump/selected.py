"""Prints what a selection takes of logs: directory by directory, and in each log from where it may begin."""

import os
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from kseg.dump.log_steps import LogSummary, Rendering, Steps, finished, log_steps
from kseg.dump.options import Part
from kseg.errors import FileError, OpenError
from kseg.formats.codes import TAIL_KINDS
from kseg.formats.file_names import LOG_KINDS, parse_file_name
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile, Run
from kseg.system.placed_path import StrPath, as_path, folder_of

if TYPE_CHECKING:
    from kseg.decode.record_decoders import RecordDecoder
    from kseg.dump.options import DumpContext
    from kseg.kernel.contract import Output
    from kseg.log.selector import SelectedTail, Selector


def read_log(
    path: StrPath,
    context: "DumpContext",
    rendering: Rendering,
    *,
    output: "Output | None" = None,
    on_damage: Callable[[Damage], None] | None = None,
    finish: Callable[[LogFile, LogSummary], None] | None = None,
) -> LogSummary:
    """Prints a log, or what is selected of it, through the renderer. Raises OpenError if it can't be opened.

    Args:
        path: the log.
        context: of the dump.
        rendering: how to print; its filter is set here.
        output: where to, if not to the context's.
        on_damage: as in `dump_log`.
        finish: is given the log, while it is open, with its summary.
    """
    return finished(read_steps(path, context, rendering, output or context.output, on_damage, finish))


def read_steps(
    path: StrPath,
    context: "DumpContext",
    rendering: Rendering,
    output: "Output",
    on_damage: Callable[[Damage], None] | None = None,
    finish: Callable[[LogFile, LogSummary], None] | None = None,
) -> Steps:
    """The same, step by step."""
    rendering = rendering._replace(redaction=context.options.redaction)
    with context.open_log(path) as log_file:
        if context.part is None:
            source = None
        else:
            rendering, source = _narrowed(log_file, context.part, rendering)
        summary = yield from log_steps(log_file, rendering, output, source, on_damage, context.show_progress)
        if not rendering.is_deep:
            context.unread_batches += summary.batches
        if context.part is not None and rendering.is_deep:
            _count(context.part, summary.records)
        if finish is not None:
            finish(log_file, summary)
    return summary


def note_findings(path: StrPath, summary: LogSummary, context: "DumpContext") -> None:
    """Notes what is wrong in a log; where no release is asked for, also that offsets don't rise."""
    context.found.is_wrong |= summary.is_wrong(path)
    if context.options.like is None and summary.gaps:
        from kseg.findings.kinds import status_of

        context.found.is_wrong |= bool(status_of("offsets-fall"))
        context.found.summaries += [f"kseg: {path}: {line}" for line in summary.falls()]


def note_failures(path: StrPath, decoder: "RecordDecoder | None", context: "DumpContext") -> None:
    """Notes what a decoder couldn't decode: wrong data if that is asked for, or in an internal topic named as one."""
    if decoder is None:
        return
    context.found.summaries += decoder.summary_lines(path)
    if decoder.first_failure is not None:
        is_named = context.options.internal_decoder is not None
        context.found.is_wrong |= context.options.is_strict or (is_named and decoder.has_failed)


def _narrowed(log_file: LogFile, part: Part, rendering: Rendering) -> tuple[Rendering, Iterator[Run | Damage]]:
    """The rendering with a filter, and what there is to print."""
    selection, selector = part.selector.selection, part.selector
    start = part.start if part.start is not None else selector.start_position(log_file)
    part.end, part.last_path = log_file.size, str(log_file.path)
    source = selector.items(log_file, start)
    if part.is_followed:
        source = _without_tail(source, part)
    if not rendering.is_deep:
        return rendering, _counted(source, part)
    wanted = selection.record_filter(skip=part.skip, limit=part.left, last_offset=selector.last_offset(log_file.path))
    return rendering._replace(record_filter=wanted), source


def _count(part: Part, count: int) -> None:
    part.skip = 0
    part.start = None
    if part.left is not None:
        part.left -= count


def _without_tail(items: Iterator[Run | Damage], part: Part) -> Iterator[Run | Damage]:
    for item in items:
        if isinstance(item, Damage) and item.kind in TAIL_KINDS:
            part.end = item.position
            return
        yield item


def _counted(items: Iterator[Run | Damage], part: Part) -> Iterator[Run | Damage]:
    """Batches without those to be skipped, up to the limit: where no records are looked at, batches count."""
    part.start = None
    for item in items:
        if isinstance(item, Damage):
            yield item
            continue
        first = min(part.skip, item.row_count)
        part.skip -= first
        run = _rows_from(item, first) if first else item
        if part.left is not None:
            run = run._replace(row_count=min(run.row_count, part.left))
            part.left -= run.row_count
        if run.row_count or not item.row_count:
            yield run
        if part.left == 0:
            return


def _rows_from(run: Run, first: int) -> Run:
    from kseg.kernel.contract import ROW

    return run._replace(rows=run.rows[first * ROW :], row_count=run.row_count - first)


def directory_of(path: StrPath) -> StrPath:
    """The directory of a file, in one spelling."""
    directory = folder_of(path)
    return (
        os.path.normpath(directory) if isinstance(directory, str) else directory
    )  # `a.log` and `./b.log` are neighbours


def dump_selection(
    paths: list[StrPath], context: "DumpContext", dump_one: Callable[[StrPath, "DumpContext"], None]
) -> list[Part]:
    """Prints the selected records of some files; returns the progress of each directory.

    Args:
        paths: files; logs of a directory stand together, in the order of their offsets.
        context: of the dump.
        dump_one: prints a file, by the context's `part` if it has one.

    Raises:
        KsegError: a schema, a decoder or a field is wrong.
    """
    selection = context.options.selection
    left = selection.limit
    parts: list[Part] = []
    for directory, names in groupby(paths, directory_of):
        files = list(names)
        logs = [path for path in files if parse_file_name(path).kind in LOG_KINDS]
        for path in files:
            if path not in logs:
                dump_one(path, context)
        if not logs or left == 0:
            continue
        try:
            part = Part(selector_of(directory, context), left=left)
        except OpenError:
            for path in logs:
                dump_one(path, context)  # which says what is wrong
            continue
        part.is_followed = selection.is_followed
        _dump_part(logs, part, context, dump_one)
        left = part.left
        parts.append(part)
    return parts


def selector_of(directory: StrPath, context: "DumpContext") -> "Selector":
    """What reads the logs of a directory for the selection. Raises OpenError if it can't be listed."""
    from kseg.log.selector import Selector

    joined = context.joined_at(directory)
    listed = None if joined is None else joined.whole
    return Selector(context.options.selection, as_path(directory), notes_to(context), listed)


def notes_to(context: "DumpContext") -> Callable[[str], None]:
    """What takes a line for stderr, to be told after all that is printed."""

    def say(line: str) -> None:
        context.found.summaries.append(f"kseg: {line}")

    return say


def _dump_part(
    logs: list[StrPath], part: Part, context: "DumpContext", dump_one: Callable[[StrPath, "DumpContext"], None]
) -> None:
    """Prints the logs of one directory."""
    if part.selector.selection.tail is not None:
        tail = find_logs_tail(logs, part.selector.selection.tail, part.selector, context)
        logs, part.start, part.skip = logs[tail.number :], tail.start, tail.skip
    context.part = part
    try:
        for path in logs:
            if part.left == 0:
                break
            if may_hold(path, part.selector):
                dump_one(path, context)
            part.start = None
    finally:
        context.part = None


def find_logs_tail(logs: list[StrPath], count: int, selector: "Selector", context: "DumpContext") -> "SelectedTail":
    """Where the last records begin; the last batches where only these are printed."""
    from kseg.log.selected_records import count_selected
    from kseg.log.selector import find_tail

    counts_batches = context.options.shallow or context.options.only == "batches"

    def counted(log_file: LogFile, start: int) -> int:
        if counts_batches:
            return sum(item.row_count for item in selector.items(log_file, start) if isinstance(item, Run))
        return count_selected(selector, log_file, start)

    return find_tail([as_path(path) for path in logs], count, selector, context.open_log, counted)


def may_hold(path: StrPath, selector: "Selector") -> bool:
    """Whether a log may have anything that is selected; True if that can't be found out."""
    try:
        return selector.may_hold(as_path(path))
    except FileError:
        return True  # reported when it is opened
