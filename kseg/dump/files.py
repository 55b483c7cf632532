"""Prints files of all kinds, in the order given: what stands before each, and which module prints it."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kseg.dump.logs import dump_log_file
from kseg.dump.options import DumpContext
from kseg.errors import KsegError, OpenError
from kseg.formats.names import FileKind, parse_file_name

_DUMPERS: dict[FileKind, Callable[[str, DumpContext], None]] = {
    FileKind.LOG: dump_log_file,
    FileKind.METADATA_SNAPSHOT: dump_log_file,
}


def dump_files(paths: Iterable[str], context: DumpContext) -> None:
    """Prints each file, and those of each directory; what can't be opened is said and counted, the rest goes on."""
    for path in expand(paths):
        try:
            dump_file(path, context)
        except KsegError as error:
            context.output.flush()
            context.failed += 1
            context.talk(f"kseg: {error}")
    context.output.flush()
    for line in context.reports.lines():
        context.talk(line)
    for line in context.summaries:
        context.talk(line)


def expand(paths: Iterable[str]) -> Iterator[str]:
    """The files to print: those given, and of directories all that are of a known kind, sorted."""
    for path in paths:
        if not Path(path).is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                if parse_file_name(name).kind in _DUMPERS:
                    yield os.path.join(folder, name)  # noqa: PTH118  the text as the user would write it


def dump_file(path: str, context: DumpContext) -> None:
    """Prints one file. Raises OpenError if it can't be opened."""
    kind = parse_file_name(path).kind
    context.line(f"Dumping {path}")
    if kind not in _DUMPERS:
        if not Path(path).exists():
            raise OpenError("no such file", path)
        context.output.flush()
        context.talk(f"Ignoring unknown file {path}")
        return
    _DUMPERS[kind](path, context)
