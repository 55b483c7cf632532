"""Evidence of reading commands (`--evidence`): inputs are hashed before and after the run, and compared."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from kseg.commands.inputs import Given, sources_of
from kseg.errors import UsageError
from kseg.output.evidence import (
    compare_inputs,
    compared_lines,
    compared_object,
    current_circumstances,
    hash_inputs,
    input_lines,
    input_object,
)
from kseg.output.forms import OBJECT_FORMS, form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_lines
from kseg.store.location import is_remote
from kseg.system.placed_path import StrPath
from kseg.tiered.places import url_of


@contextmanager
def evidence_of(given: Given, parameters: Sequence[str], talk: Talk) -> Iterator[None]:
    """Write the hashes of a command's inputs before and after it.

    parameters: the options and arguments with paths to read. talk: ends with 1 if an input changes. Raises UsageError
    for inputs that aren't on a disk, and for forms of output that have no room for evidence.
    """
    if given["output"] not in OBJECT_FORMS:
        raise UsageError(f"--evidence excludes -o {given['output']}; specify -o text or -o json")
    form = form_named(given["output"])
    paths = [_file_at(path) for name in parameters for path in sources_of(name, given)] or [Path()]
    circumstances = current_circumstances(_arguments(given))
    before = hash_inputs(paths)
    if form.has_objects:
        for number, found in enumerate(before):
            form.write_object(input_object(number, found, circumstances))
    else:
        write_lines(input_lines(before, circumstances))
    flush_stdout()
    yield
    after = compare_inputs(before, hash_inputs(paths))
    if form.has_objects:
        for number, compared in enumerate(after):
            form.write_object(compared_object(number, compared))
    else:
        write_lines(compared_lines(after))
    flush_stdout()
    talk.end_with(not all(each.is_unchanged for each in after))


def _file_at(path: StrPath) -> Path:
    """Return the path of a file or directory; for a path inside an archive, the archive's."""
    url = url_of(os.fspath(path))
    if url == "-" or is_remote(url):
        raise UsageError(f"--evidence: {url} isn't a file; copy it to a disk first")
    found = Path(path)
    return next((each for each in (found, *found.parents) if each.exists()), found)


def _arguments(given: Given) -> Iterator[str]:
    """Yield the arguments of the command line, without the key of --redact."""
    key = given.get("redact_key")
    for argument in click.get_current_context().find_root().obj or ():
        yield argument.replace(key, "…") if key else argument
