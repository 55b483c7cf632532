"""Prints files of all kinds, in the order given: what stands before each, and which module prints it."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath

from kseg.dump.indexes import dump_offset_index, dump_time_index
from kseg.dump.logs import dump_log_file
from kseg.dump.options import DumpContext
from kseg.dump.snapshots import dump_producer_snapshot
from kseg.dump.texts import LINES_OF_KIND, dump_text
from kseg.dump.transactions import dump_transaction_index
from kseg.errors import KsegError, OpenError
from kseg.formats.names import KIND_OF_EXTENSION, FileKind, parse_file_name
from kseg.layouts import kinds as layout
from kseg.releases import Release, at

REPORTED_LINES = 20
"""Lines of each file's report without --like; with it all are given, as that release gives them."""

_DUMPERS: dict[FileKind, Callable[[str, DumpContext], None]] = {
    FileKind.LOG: dump_log_file,
    FileKind.METADATA_SNAPSHOT: dump_log_file,
    FileKind.OFFSET_INDEX: dump_offset_index,
    FileKind.TIME_INDEX: dump_time_index,
    FileKind.TRANSACTION_INDEX: dump_transaction_index,
    FileKind.PRODUCER_SNAPSHOT: dump_producer_snapshot,
    **dict.fromkeys(LINES_OF_KIND, dump_text),
}


def dump_files(paths: Iterable[str], context: DumpContext) -> None:
    """Prints each file, and those of each directory; what can't be opened is said and counted, the rest goes on."""
    for path in map(file_path, paths):
        if not os.path.isdir(path):  # noqa: PTH112  pathlib raises for a name that is too long
            _dump_or_refuse(path, context)
            continue
        found = False
        for inner in files_in(path, context):
            found = True
            _dump_or_refuse(inner, context)
        if not found:
            _refuse(OpenError("holds no files that can be printed", path), context)
    context.output.flush()
    for lines in context.reports.lines(None if context.options.like else REPORTED_LINES):
        context.talk(lines)
    for line in context.summaries:
        context.talk(line)


def file_path(path: str) -> str:
    """The path as java.io.File shows it: slashes that are repeated or at its end are left out, nothing else."""
    path = re.sub("/+", "/", path)
    return path.removesuffix("/") or path


def files_in(directory: str, context: DumpContext) -> Iterator[str]:
    """The files in a directory and below that are of a kind to print, sorted."""

    def refuse(error: OSError) -> None:
        _refuse(OpenError(f"can't be listed: {error.strerror}", error.filename), context)

    for folder, folders, names in os.walk(directory, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            if kind_to_dump(name, context.options.like) is not FileKind.UNKNOWN:
                yield os.path.join(folder, name)  # noqa: PTH118  the text as the user would write it


def _dump_or_refuse(path: str, context: DumpContext) -> None:
    try:
        dump_file(path, context)
    except KsegError as error:
        _refuse(error, context)


def _refuse(error: KsegError, context: DumpContext) -> None:
    context.output.flush()
    context.failed += 1
    context.talk(f"kseg: {error}")


def dump_file(path: str, context: DumpContext) -> None:
    """Prints one file. Raises OpenError if it can't be opened."""
    like = context.options.like
    kind = kind_to_dump(path, like)
    if kind is FileKind.UNKNOWN and like is not None and not at(layout.NAMES_UNKNOWN_FILES, like):
        return
    context.line(layout.DUMPING.format(path=path))
    if kind is not FileKind.UNKNOWN:
        _DUMPERS[kind](path, context)
        return
    if like is None and not Path(path).exists():
        raise OpenError("no such file", path)
    context.output.flush()
    context.talk(layout.IGNORING.format(path=path))


def kind_to_dump(path: str, like: Release | None) -> FileKind:
    """What a file is printed as; UNKNOWN if it isn't printed.

    A release's tool looks at the text behind the last dot alone; kseg knows text files and Kafka's suffixes too.
    """
    if like is None:
        kind = parse_file_name(path).kind
        return kind if kind in _DUMPERS else FileKind.UNKNOWN
    _, dot, extension = PurePath(path).name.rpartition(".")
    kind = KIND_OF_EXTENSION.get(dot + extension, FileKind.UNKNOWN)
    return kind if kind in at(layout.DUMPED_KINDS, like) else FileKind.UNKNOWN
