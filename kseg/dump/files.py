"""Prints files of all kinds: plans them, and has one form print each, in order."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from kseg.dump.forms import Form, Printing, Problems
from kseg.dump.log_steps import new_output
from kseg.dump.options import DumpOptions, check_options
from kseg.dump.plan import DumpedDirectory, DumpPlan, file_path, kind_to_dump, plan_dump
from kseg.dump.reader import DirectoryReader
from kseg.errors import OpenError, UnreadableError
from kseg.formats.file_names import LOG_KINDS, FileKind, parse_file_name
from kseg.layouts import template as layout
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_stdout
from kseg.system.placed_path import PlacedPath, StrPath, as_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kseg.dump.log_parts import SplitLogs
    from kseg.releases import Release

REPORTED_LINES = 20
"""Most lines of each file's report without --like; with it all lines are printed, like that release's."""


def _text() -> type[Form]:
    from kseg.dump.text_form import TextForm

    return TextForm


def _lines() -> type[Form]:
    from kseg.dump.record_forms import LineForm

    return LineForm


def _json() -> type[Form]:
    from kseg.dump.record_forms import JsonForm

    return JsonForm


def _csv() -> type[Form]:
    from kseg.dump.record_forms import CsvForm

    return CsvForm


def _sheet() -> type[Form]:
    from kseg.dump.record_forms import SheetForm

    return SheetForm


def _table() -> type[Form]:
    from kseg.dump.record_forms import TableForm

    return TableForm


def _kcat() -> type[Form]:
    from kseg.dump.kcat import KcatForm

    return KcatForm


FORMS: dict[str, Callable[[], type[Form]]] = {"text": _text, "json": _json, "csv": _csv, "table": _table, "kcat": _kcat}
"""Functions that import a form, by its name in `-o`."""


def _new_form(printing: Printing) -> Form:
    """Return the requested form.

    Text includes lines of fields or of a template; CSV includes a sheet.
    """
    options = printing.options
    if options.output == "text" and options.is_of_records:
        return _lines()(printing)
    return (_sheet if options.csv.needs_cells else FORMS[options.output])()(printing)


def dump_files(paths: "Iterable[StrPath]", options: DumpOptions, talk: Talk) -> None:
    """Print files, and those in directories, on standard output; report unreadable ones and continue.

    The exit status is 2 if something couldn't be opened, 1 if the data has a problem.

    Raises:
        UsageError: for options that exclude each other, or if none of the chosen partitions exists, before anything is
            printed.
    """
    with talk.bar() as bar, ExitStack() as stack:
        check_options(options, talk.say)
        if options.key_decoder is not None or options.value_decoder is not None:
            from kseg.decode.record_decoders import check_decoders

            check_decoders(options.decoding)
        problems = Problems(options.release)
        plan = plan_dump([file_path(path) for path in paths], options, problems)
        table_output = None
        if options.output == "table" and not options.selection.is_followed:
            from kseg.output.pager import open_pager

            table_output = stack.enter_context(open_pager())
        several = plan.has_several_files, plan.has_several_partitions
        printing = Printing(options, new_output(write_stdout), problems, talk, bar.show, *several, table_output)
        try:
            for error in plan.refused:
                _refuse(error, plan, talk)
            _print(plan, _new_form(printing))
        finally:
            printing.output.flush()
            flush_stdout()
    if not talk.is_quiet:
        _note_no_match(plan, options, problems)
        _tell(problems, options, talk)
    talk.end_with(problems.is_wrong)


def _note_no_match(plan: DumpPlan, options: DumpOptions, problems: Problems) -> None:
    """Note that no record was selected, and the searched places."""
    searched = [each.path or "." for each in plan.directories if each.logs]
    if options.selection.is_everything or problems.selected or not searched:
        return
    from kseg.text.selected import no_match_line

    problems.note(no_match_line(options.selection, searched, options.zone))


def _tell(problems: Problems, options: DumpOptions, talk: Talk) -> None:
    if problems.unread_batches and options.like is None:
        talk.say(layout.UNREAD_RECORDS.format(count=problems.unread_batches))
    for lines in problems.reports.lines(None if options.like else REPORTED_LINES):
        talk.say(*lines.split("\n"))
    for line in problems.lines:
        talk.say(line)


def _print(plan: DumpPlan, form: Form) -> None:
    refuse = partial(_refuse_flushed, plan, form.printing)
    if form.options.is_merged:
        from kseg.dump.merged import print_merged

        print_merged(plan.directories, form, refuse)
    else:
        readers = _print_directories(plan, form, refuse)
        if form.options.selection.is_followed:
            from kseg.dump.follow import follow

            follow(readers, form.printing.output, partial(_print_log, form, refuse))
    form.finish()


def _print_directories(plan: DumpPlan, form: Form, refuse: Callable[[OpenError], None]) -> list[DirectoryReader]:
    """Print the files of all directories, and return the log readers to which the selection was applied."""
    left = form.options.selection.limit
    readers: list[DirectoryReader] = []
    with _parts_of_logs(plan, form) as parts:
        for each in plan.directories:
            reader = DirectoryReader(each, form.printing, parts=parts)
            reader.left = left
            if _print_directory(each, reader, form, refuse):
                readers.append(reader)
            left = reader.left
    return readers


def _parts_of_logs(plan: DumpPlan, form: Form) -> "AbstractContextManager[SplitLogs | None]":
    """Have processes render the logs, if they can: complete local logs, whose rendered text is the output."""
    options = form.options
    if options.processes == 1 or not form.prints_unchanged or not options.may_share_work:
        return nullcontext()
    from kseg.dump.log_parts import parts_of, split_logs
    from kseg.system.processes import can_fork

    parted = parts_of([*_sized_logs(plan, options)])
    count = min(options.processes, sum(map(len, parted)))
    return split_logs(parted, form, count) if count > 1 and can_fork() else nullcontext()


def _sized_logs(plan: DumpPlan, options: DumpOptions) -> "Iterator[tuple[StrPath, int]]":
    """Yield the printed logs, with their sizes, except logs in stores and logs joined from several copies."""
    for directory in plan.directories:
        for path in directory.files if directory.copies is None else ():
            if isinstance(path, PlacedPath) or not _is_printed_log(path, options.like):
                continue
            try:
                size = os.stat(path).st_size  # noqa: PTH116  quicker
            except OSError:
                continue  # reported when it is opened
            yield path, size if options.max_bytes is None else min(size, options.max_bytes)


def _print_directory(
    directory: DumpedDirectory, reader: DirectoryReader, form: Form, refuse: Callable[[OpenError], None]
) -> bool:
    """Print the files of a directory in their order; with a selection, other files come before the logs.

    Returns:
        Whether the selection was applied to logs.
    """
    is_everything = form.options.selection.is_everything
    for path in directory.files if is_everything else directory.others:
        _print_file(path, reader, form, refuse)
    if is_everything or not directory.logs or reader.left == 0:
        return False
    try:
        for path in reader.logs():
            _print_log(form, refuse, path, reader)
    except OpenError as error:
        refuse(error)
        return False
    return True


def _print_file(path: StrPath, reader: DirectoryReader, form: Form, refuse: Callable[[OpenError], None]) -> None:
    if _is_printed_log(path, form.options.like):
        _print_log(form, refuse, path, reader)
        return
    kind = kind_to_dump(path, form.options.like)
    try:
        if kind is FileKind.UNKNOWN or kind in LOG_KINDS:
            form.pass_over(path)
        else:
            form.print_file(path, kind)
    except OpenError as error:
        refuse(_as_written(error, path))


def _is_printed_log(path: StrPath, like: "Release | None") -> bool:
    """Return True if a file is printed as a log of Kafka's; without --like, programs' own logs aren't."""
    kind = kind_to_dump(path, like)
    return kind in LOG_KINDS and not (kind is FileKind.LOG and like is None and _is_other_log(path))


def _is_other_log(path: StrPath) -> bool:
    """Return True if a file without an offset in its name is a program's log, such as a broker's server.log."""
    if parse_file_name(path).base_offset is not None:
        return False
    from kseg.reading.other_files import is_other_log

    return is_other_log(path)


def _print_log(form: Form, refuse: Callable[[OpenError], None], path: StrPath, reader: DirectoryReader) -> None:
    """Print the part of a log that a reader takes; report a log that can't be opened."""
    try:
        output = form.begin_log(path, is_continued=reader.is_following)
        log = form.rendering(path)
        with reader.open_rendered(path, log.rendering, output) as rendered:
            for damage in rendered.events():
                if damage is not None:
                    form.damage(damage)
        form.note_problems(path, log, rendered.summary)
        form.finish_log(path, rendered.summary, is_continued=reader.is_following)
    except OpenError as error:
        refuse(_as_written(error, path))


def _as_written(error: OpenError, path: StrPath) -> OpenError:
    """Return the error with the path as the user wrote it; pathlib drops `./`."""
    if error.path == str(as_path(path)):
        error.path = str(path)
    return error


def _refuse_flushed(plan: DumpPlan, printing: Printing, error: OpenError) -> None:
    printing.output.flush()
    _refuse(error, plan, printing.talk)


def _refuse(error: OpenError, plan: DumpPlan, talk: Talk) -> None:
    """Report an error; only an error of a given path is more than damage."""
    if error.path not in plan.given and not isinstance(error, UnreadableError):
        error = UnreadableError(error.message, error.path, error.position)
    talk.refuse(error)
