"""Prints files of all kinds, in the order given: what stands before each, and which module prints it."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path

from kseg.dump.log_steps import new_output
from kseg.dump.options import KCAT, DumpContext, DumpOptions, GivenPaths, check_options
from kseg.errors import OpenError, UnreadableError
from kseg.formats.file_names import KIND_OF_EXTENSION, LOG_KINDS, FileKind, parse_file_name
from kseg.layouts import template as layout
from kseg.output.progress import ProgressBar
from kseg.output.streams import flush_stdout, write_stdout
from kseg.releases import Release, value_in
from kseg.system.placed_path import StrPath, as_path, entry_path, folder_of

REPORTED_LINES = 20
"""Lines of each file's report without --like; with it all are given, as that release gives them."""

_DUMPERS: dict[FileKind, tuple[str, str]] = {
    FileKind.LOG: ("kseg.dump.log_text", "dump_log_file"),
    FileKind.METADATA_SNAPSHOT: ("kseg.dump.log_text", "dump_log_file"),
    FileKind.OFFSET_INDEX: ("kseg.dump.entry_lines", "dump_offset_index"),
    FileKind.TIME_INDEX: ("kseg.dump.entry_lines", "dump_time_index"),
    FileKind.TRANSACTION_INDEX: ("kseg.dump.entry_lines", "dump_transaction_index"),
    FileKind.PRODUCER_SNAPSHOT: ("kseg.dump.entry_lines", "dump_producer_snapshot"),
}
"""Kinds of files that have a module and function of their own; it is imported when a file of its kind is met."""
_ENTRIES_DUMPER = ("kseg.dump.entry_lines", "dump_entries")
_ROWS_DUMPER = ("kseg.dump.record_rows", "dump_log_as_rows")
_RECORD_DUMPERS = {"json": ("kseg.dump.record_rows", "dump_log_as_json"), KCAT: ("kseg.dump.kcat", "dump_log_as_kcat")}
"""Forms of output that have a way of their own to print records."""
_OBJECTS_DUMPER = ("kseg.dump.objects", "dump_objects")


def _dumper(place: tuple[str, str]) -> Callable[[StrPath, DumpContext], None]:
    module, name = place
    dumper: Callable[[StrPath, DumpContext], None] = getattr(import_module(module), name)
    return dumper


def dump_files(
    paths: Iterable[StrPath],
    options: DumpOptions,
    *,
    talk: Callable[..., None],
    quiet: bool = False,
    progress: bool | None = None,
) -> int:
    """Prints files, and those in directories, on standard output; reports what can't be opened, and goes on.

    Args:
        paths: files and directories.
        options: what to print.
        talk: takes a line or several for stderr, without their line feeds.
        quiet: say only what couldn't be opened; no bar.
        progress: a bar on stderr; None leaves it to the terminal.

    Returns:
        The exit status: 2 if something couldn't be opened, 1 if something is wrong in the data.

    Raises:
        UsageError: for options that don't go together, or if none of the partitions is there that are meant, before
            anything is printed.
    """
    check_options(options, talk)
    if options.key_decoder is not None or options.value_decoder is not None:
        from kseg.decode.record_decoders import check_decoders

        check_decoders(options.decoding)
    paths = [file_path(path) for path in paths]
    if not options.choice.is_everything:
        from kseg.cluster.directories import require_choice

        require_choice(paths, options.choice)
    output = new_output(write_stdout)
    with ProgressBar(False if quiet else progress) as bar:
        several = len(paths) > 1 or os.path.isdir(paths[0])  # noqa: PTH112  pathlib raises for a name that is too long
        given = GivenPaths(frozenset(map(str, paths)), several, several and _are_several_partitions(paths))
        context = DumpContext(options, output, talk, bar.show, given)
        if given.are_several_partitions and options.like is None and not options.all_replicas:
            _join_copies(paths, context)
        try:
            _dump_all(paths, context)
        finally:
            output.flush()
            flush_stdout()
    if not quiet:
        if context.unread_batches and options.like is None:
            talk(layout.UNREAD_RECORDS.format(count=context.unread_batches))
        for lines in context.found.reports.lines(None if options.like else REPORTED_LINES):
            talk(*lines.split("\n"))
        for line in context.found.summaries:
            talk(line)
    return 2 if context.failed else int(context.found.is_wrong)


def _are_several_partitions(paths: list[StrPath]) -> bool:
    """Whether paths mean, or may mean, more than one partition: a log directory does, however many are in it."""
    from kseg.cluster.directories import is_partition

    directories = set()
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112
            path = folder_of(path)
        elif not is_partition(as_path(path)):
            return True
        directories.add(os.path.abspath(path))  # noqa: PTH100
    return len(directories) > 1


def _join_copies(paths: list[StrPath], context: DumpContext) -> None:
    """Finds which copy of each partition is printed, and what is left out: further copies, and what isn't theirs."""
    from kseg.cluster.cluster import Cluster
    from kseg.cluster.directories import pass_over
    from kseg.cluster.joined_log import JoinedCopies, listed_copies
    from kseg.cluster.taken import taken_of
    from kseg.dump.selected import notes_to

    directories = [path for path in paths if os.path.isdir(path)]  # noqa: PTH112
    if not directories:
        return
    cluster = Cluster(directories, pass_over)
    replicas = cluster.places(context.options.choice)
    notes, say = context.found.summaries, notes_to(context)
    several = [listed_copies(each) for each in replicas if len(each.copies) > 1]
    joined = [JoinedCopies(each, say) for each in several if len(each) > 1]
    further = [copy.path for each in several for copy in each[1:]]
    taken = taken_of(replicas)
    notes += [f"kseg: {line}" for line in taken.sentences(verbose=context.options.is_verbose)]
    if further:
        notes.append("kseg: each record is printed once; --all-replicas prints each copy")
    aside = [each.path for each in taken.left_out if each.offsets is None]
    unprinted = frozenset(os.path.realpath(path) for path in (*further, *aside))
    context.given = context.given._replace(left_out=unprinted)
    context.walked = set()
    context.listed = {each.path: each for each in cluster.found if not each.is_partition}
    context.joined = {os.path.abspath(each.place.path): each for each in joined}  # noqa: PTH100


def _dump_all(paths: list[StrPath], context: DumpContext) -> None:
    with ExitStack() as stack:
        if context.options.output == "table" and not context.options.selection.is_followed:
            from kseg.output.pager import paged

            context.table_output = stack.enter_context(paged())
        if context.options.is_merged:
            from kseg.dump.merged import dump_merged

            files = [file for path in paths for file in _files_of(path, context)]
            dump_merged(files, context, partial(_refuse, context=context))
        elif context.options.selection.is_everything and not _prints_records(context.options):
            for path in paths:
                for file in _files_at(path, context):
                    _dump_or_refuse(file, context)
        elif context.options.selection.is_everything:
            for file in [file for path in paths for file in _files_of(path, context)]:
                _dump_or_refuse(file, context)
        else:
            from kseg.dump.selected import dump_selection

            files = [file for path in paths for file in _files_of(path, context)]
            parts = dump_selection(files, context, _dump_or_refuse)
            if context.options.selection.is_followed:
                from kseg.dump.follow import follow

                follow(parts, context, _dump_or_refuse)
        context.end_table()
        if context.script is not None:
            from kseg.dump.kcat import note_sent

            note_sent(context.script, context)


def _prints_records(options: DumpOptions) -> bool:
    """Whether only what logs hold is asked for: of directories only logs are printed then."""
    if options.only is not None:
        return True
    return options.output in ("csv", "table", KCAT) or bool(options.fields) or options.template is not None


def _files_of(path: StrPath, context: DumpContext) -> list[StrPath]:
    """The file itself, or the logs of a directory."""
    files = list(_files_at(path, context))
    if not os.path.isdir(path):  # noqa: PTH112  pathlib raises for a name that is too long
        return files
    found = [file for file in files if parse_file_name(file).kind in LOG_KINDS]
    if files and not found and not _has_left_out(path, context):
        _refuse(OpenError("holds no logs", path), context)
    if context.options.output == KCAT:
        from kseg.dump.kcat import logs_to_send

        return logs_to_send(path, found, context)
    return found


def _files_at(path: StrPath, context: DumpContext) -> Iterator[StrPath]:
    """The file itself, or those in a directory, of partitions that are meant; refuses a directory without any."""
    choice, found = context.options.choice, _has_left_out(path, context)
    if not os.path.isdir(path):  # noqa: PTH112
        if choice.takes_directory(folder_of(path)):
            yield path
        return
    for file in files_in(path, context):
        found = True
        yield file
    if not found and (choice.is_everything or not _has_partitions(path)):
        _refuse(_empty(path), context)


def _has_left_out(path: StrPath, context: DumpContext) -> bool:
    """Whether a directory is one of those that aren't printed, or has one in it."""
    own = os.path.realpath(path) if context.given.left_out else ""
    return any(each == own or each.startswith(f"{own}/") for each in context.given.left_out)


def _has_partitions(path: StrPath) -> bool:
    from kseg.cluster.directories import partition_directories

    return bool(partition_directories(path))


def _empty(directory: StrPath) -> OpenError:
    """What is wrong with a directory without files to print; all commands say the same of one without partitions."""
    from kseg.cluster.directories import NoPartitionError, is_partition

    return OpenError("holds no files", directory) if is_partition(as_path(directory)) else NoPartitionError(directory)


def file_path(path: StrPath) -> StrPath:
    """The path as java.io.File shows it: slashes that are repeated or at its end are left out, nothing else."""
    if not isinstance(path, str):
        return path
    path = re.sub("/+", "/", path)
    return path.removesuffix("/") or path


def files_in(directory: StrPath, context: DumpContext) -> Iterator[StrPath]:
    """The files of partitions that are meant, in a directory and below it where all commands look for partitions."""
    try:
        for folder in _folders(directory, context):
            if _is_meant(folder, context.options) and _is_new(folder, context):
                yield from _files_to_print(folder, context)
    except OpenError as error:  # of the directory itself
        error.path = str(directory)
        _refuse(error, context)


def _folders(directory: StrPath, context: DumpContext) -> Iterator[Path]:
    """The directories in which Kafka's files may lie, as they were listed if copies were joined."""
    from kseg.cluster.directories import is_partition, walk_down

    refuse, here = partial(_refuse, context=context), as_path(directory)
    listed = context.listed.get(here)
    if listed is None and is_partition(here):
        yield here
        return
    for problem in () if listed is None else listed.problems:
        refuse(problem)
    for each in walk_down(here, refuse) if listed is None else listed.walked:
        yield from (each.path, *each.directories)


def _is_meant(directory: Path, options: DumpOptions) -> bool:
    if options.choice.is_everything:
        return True
    from kseg.cluster.directories import is_partition

    return options.choice.takes_directory(directory) and is_partition(directory)


def _is_new(directory: Path, context: DumpContext) -> bool:
    """Whether a directory isn't left out, and wasn't printed before; looked at only where copies are joined."""
    if context.walked is None:
        return True
    try:
        status = os.stat(directory)  # noqa: PTH116  quicker
    except OSError:  # whoever lists it says so
        return True
    own = status.st_dev, status.st_ino
    if own in context.walked or (context.given.left_out and os.path.realpath(directory) in context.given.left_out):
        return False
    context.walked.add(own)
    return True


def _files_to_print(directory: Path, context: DumpContext) -> list[StrPath]:
    like = context.options.like
    try:
        with os.scandir(directory) as entries:
            files = [each for each in entries if kind_to_dump(each.name, like) is not FileKind.UNKNOWN]
            return sorted((entry_path(directory, each) for each in files if not each.is_dir()), key=os.fspath)
    except OSError as error:
        _refuse(UnreadableError(f"can't be listed: {error.strerror}", directory), context)
        return []


def _dump_or_refuse(path: StrPath, context: DumpContext) -> None:
    try:
        dump_file(path, context)
    except OpenError as error:
        if error.path == str(as_path(path)):
            error.path = str(path)  # as the user wrote it: `./` is nothing to pathlib
        _refuse(error, context)


def _refuse(error: OpenError, context: DumpContext) -> None:
    context.output.flush()
    context.talk(f"kseg: {error}")
    if error.path in context.given.paths and not isinstance(error, UnreadableError):
        context.failed += 1
    else:
        context.found.is_wrong = True


def dump_file(path: StrPath, context: DumpContext) -> None:
    """Prints one file. Raises OpenError if it can't be opened."""
    like = context.options.like
    kind = kind_to_dump(path, like)
    if kind is FileKind.UNKNOWN and like is not None and not value_in(like, layout.NAMES_UNKNOWN_FILES):
        return
    if context.options.output == "json" or _prints_records(context.options):
        _dump_rows(path, kind, context)
        return
    if context.is_following:
        _dumper(_DUMPERS.get(kind, _ENTRIES_DUMPER))(path, context)
        return
    context.line(layout.DUMPING.format(path=context.shown(path)))
    if kind is not FileKind.UNKNOWN:
        _dumper(_DUMPERS.get(kind, _ENTRIES_DUMPER))(path, context)
        return
    if like is None:
        _check_existence(path)
    context.output.flush()
    context.talk(layout.IGNORING.format(path=path))


def _check_existence(path: StrPath) -> None:
    try:
        os.stat(path)  # noqa: PTH116  an empty path is none, to pathlib it is the current directory
    except OSError as error:
        raise OpenError(f"can't be opened: {error.strerror}", path) from error


def _dump_rows(path: StrPath, kind: FileKind, context: DumpContext) -> None:
    """Prints a file as objects or rows; for an unknown kind too it reports if it can't be opened."""
    if kind is FileKind.UNKNOWN:
        _check_existence(path)
        context.talk(layout.IGNORING.format(path=path))
    elif kind not in LOG_KINDS:
        _dumper(_OBJECTS_DUMPER)(path, context)
    else:
        _dumper(_RECORD_DUMPERS.get(context.options.output, _ROWS_DUMPER))(path, context)


def kind_to_dump(path: StrPath, like: Release | None) -> FileKind:
    """What a file is printed as; UNKNOWN if it isn't printed.

    A release's tool looks only at the text after the last dot; kseg knows text files and Kafka's suffixes too.
    """
    if like is None:
        kind = parse_file_name(path).kind
        return FileKind.UNKNOWN if kind is FileKind.LOCK else kind  # it is always empty
    _, dot, extension = as_path(path).name.rpartition(".")
    kind = KIND_OF_EXTENSION.get(dot + extension, FileKind.UNKNOWN)
    return kind if kind in value_in(like, layout.DUMPED_KINDS) else FileKind.UNKNOWN
