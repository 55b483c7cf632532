"""Prints files that need no rules of their own: each entry as the names and values that its format gives it."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kseg.errors import KsegError, OpenError
from kseg.formats import checkpoint
from kseg.formats.header_fields import ENTRY_FIELDS
from kseg.formats.names import FileKind, parse_file_name
from kseg.formats.text_files import TEXT_FILES, Members
from kseg.index.entry_file import EntryFile
from kseg.system.regular_file import read_text_file

if TYPE_CHECKING:
    from kseg.dump.found import Found
    from kseg.dump.options import DumpContext


def dump_entries(path: str, context: "DumpContext") -> None:
    """Prints a file's entries, one a line; of a malformed text file only what is wrong, on stderr.

    Raises OpenError if it can't be opened.
    """
    for line in _lines(path, context.found):
        context.output.write(f"{line}\n".encode())


def check_entries(path: str, found: "Found") -> None:
    """Finds what is wrong with a file. Raises OpenError if it can't be opened."""
    for _ in _lines(path, found):
        pass  # what is wrong with them is noted


def entries(path: str) -> Iterator[Members]:
    """A file's entries; zeros in holes of the file aren't any.

    Raises OpenError if it can't be opened. Raises KsegError if it is malformed: before the first entry of a text file,
    after the last whole one of others.
    """
    kind = parse_file_name(path).kind
    if kind in TEXT_FILES:
        yield from TEXT_FILES[kind].entries(read_text_file(path))
        return
    fields = ENTRY_FIELDS[kind]
    names = [re.sub("_(.)", lambda letter: letter[1].upper(), name) for name in fields.names]
    with EntryFile(path, fields) as file:
        for _, piece in file.stored_pieces():
            for entry in piece:
                yield dict(zip(names, entry, strict=True))
        if file.trailing_problem is not None:
            raise KsegError(file.trailing_problem, path)


def _lines(path: str, found: "Found") -> Iterator[str]:
    """The lines that are printed of a file; what is wrong with it is noted."""
    try:
        if parse_file_name(path).kind is FileKind.META_PROPERTIES:
            yield from _property_lines(read_text_file(path))
        else:
            yield from filter(None, map(_line, entries(path)))
    except OpenError:
        raise
    except KsegError as error:
        found.add_problem(path, error.message)


def _property_lines(content: bytes) -> Iterator[str]:
    """Each property on a line of its own, also one that a later one of the same name replaces."""
    for name, value in checkpoint.parse_meta_properties(content).properties:
        yield f"{name}: {value}"


def _line(members: Members) -> str:
    """An entry's members as `name: value`, in their order; values that aren't text as JSON."""
    return " ".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
        for name, value in members.items()
    )
