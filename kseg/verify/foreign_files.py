"""Findings in small files with other contents: one finding describes the contents instead of each problem."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kseg.errors import FileError
from kseg.findings.findings import Finding
from kseg.formats.file_names import LOG_KINDS, FileKind, parse_file_name
from kseg.formats.foreign import LARGEST_MARK, is_base64, what_begins_so
from kseg.system.files import read_regular

_OF_CONTENT = frozenset(set(FileKind) - {*LOG_KINDS, FileKind.UNKNOWN, FileKind.LOCK, FileKind.CLEAN_SHUTDOWN})
"""Files whose findings may come from other contents. Files of batches have damages for that."""


def with_likeness(found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings; of those in a file with other known contents, the first one, with a description."""
    looks: dict[Path, str | None] = {}
    reported_paths: set[Path] = set()
    for each in found:
        if parse_file_name(each.file).kind not in _OF_CONTENT:
            yield each
            continue
        if each.file not in looks:
            looks[each.file] = _likeness(each.file)
        what = looks[each.file]
        if what is None:
            yield each
        elif each.file not in reported_paths:
            reported_paths.add(each.file)
            yield replace(each, sentence=f"{each.sentence}; it looks like {what}")


def _likeness(path: Path) -> str | None:
    try:
        first = read_regular(path, LARGEST_MARK)
    except FileError:
        return None
    marked = what_begins_so(first)
    if marked is not None and marked.is_known:
        return marked.text
    return "base64" if is_base64(first) else None
