"""Files that a command can't take: their types by their first bytes, and the commands that read them."""

import os
import re
import shlex
from collections.abc import Callable
from typing import NamedTuple

from kseg.errors import FileError
from kseg.formats.file_names import LOG_KINDS, FileKind, parse_file_name
from kseg.formats.foreign import LARGEST_MARK, is_text, what_begins_so
from kseg.formats.header_fields import BATCH_HEADER_FIELDS, struct_of
from kseg.system.files import read_regular

NO_SUCH_FILES = "kseg doesn't read such files"
_DUMP = "run `kseg dump {path}`"
_START = struct_of(*map(BATCH_HEADER_FIELDS.field, ("base_offset", "length", "magic")))
_MAGIC, _MOST_OFFSET, _MOST_LENGTH = 2, 1 << 56, 1 << 30
"""Limits of a batch that is trusted without its CRC."""


class OtherFile(NamedTuple):
    """A type of file that isn't Kafka's: its beginning, its description, and the next step."""

    is_one: Callable[[bytes], bool]
    what: str
    next_step: str = NO_SUCH_FILES


def _begins(*marks: bytes) -> Callable[[bytes], bool]:
    return lambda first: first.startswith(marks)


def _matches(pattern: bytes) -> Callable[[bytes], bool]:
    return lambda first: re.search(pattern, first, re.MULTILINE) is not None


def _is_batch(first: bytes) -> bool:
    """Return True if bytes begin like a Kafka batch: with a plausible base offset, length and magic."""
    if len(first) < _START.size:
        return False
    base_offset, length, magic = _START.unpack_from(first)
    return bool(magic == _MAGIC and 0 <= base_offset < _MOST_OFFSET and 0 < length < _MOST_LENGTH)


_RENAMED_LOG = OtherFile(_is_batch, "a log under another name", "run `kseg dump - < {path}`")
OTHER_FILES = (
    OtherFile(lambda first: not first, "an empty file"),
    OtherFile(lambda first: not any(first), "zeros, as a failed copy leaves them"),
    OtherFile(
        _begins(*map(bytes.fromhex, ("d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "0a0d0d0a"))),
        "a network capture",
        "run `kseg protocol {path}`",
    ),
    OtherFile(_begins(b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8"), "a picture"),
    OtherFile(_begins(b"%PDF-"), "a PDF document"),
    OtherFile(_begins(b"JAVA PROFILE"), "a Java heap dump"),
    OtherFile(_begins(b"\xca\xfe\xba\xbe"), "a Java class"),
    OtherFile(
        _matches(rb"\A(?:.*\n){0,3}\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "),
        "a broker's text log",
        "run `kseg doctor --broker-log {path}`",
    ),
    OtherFile(
        _matches(rb'\A\s*\{(?s:.)*"partitions"'),
        "a plan of reassignments",
        "kseg doesn't read such files, but `kseg plan-move` writes them",
    ),
    OtherFile(_matches(rb"\A\s*(?:\{\s*[\"}]|\[\s*[\[{\"\d\]])"), "JSON"),
    OtherFile(
        _matches(rb"^(?:log\.dirs?|broker\.id|node\.id|process\.roles)\s*="),
        "a broker's settings",
        "specify the directories that its log.dirs lists, as in `kseg retain --server-properties {path} DIR`",
    ),
    OtherFile(_matches(rb"\A(?:[ \t\r]*(?:#[^\n]*)?\n)*[\w.]+[ \t]*[=:]"), "a file of settings"),
    _RENAMED_LOG,
)
"""The types of other files; the first match counts."""
_KAFKAS = {
    FileKind.LOG: "a log segment",
    FileKind.METADATA_SNAPSHOT: "a metadata snapshot",
    FileKind.OFFSET_INDEX: "an offset index",
    FileKind.TIME_INDEX: "a time index",
    FileKind.TRANSACTION_INDEX: "a transaction index",
    FileKind.PRODUCER_SNAPSHOT: "a producer snapshot",
}


def other_file(path: str | os.PathLike[str]) -> OtherFile | None:
    """Return the type of a file by its first bytes, or None if it is unknown, may be Kafka's, or can't be read."""
    try:
        first = read_regular(path, LARGEST_MARK)
    except FileError:
        return None
    known = next((each for each in OTHER_FILES if each.is_one(first)), None)
    if known is not None:
        return known
    marked = what_begins_so(first)
    if marked is not None and marked.is_known:
        what, has_step, step = marked.text.partition(": ")
        return OtherFile(bool, what, step if has_step else NO_SUCH_FILES)
    return OtherFile(bool, "text") if is_text(first) else None


def is_other_log(path: str | os.PathLike[str]) -> bool:
    """Return True if a file is named `.log` and holds the messages of a program, as a broker's `server.log` does."""
    name = parse_file_name(path)
    if name.kind is not FileKind.LOG or name.base_offset is not None:
        return False
    found = other_file(path)
    return found in OTHER_FILES and found is not _RENAMED_LOG and found is not None and not found.is_one(b"")


def refusal_of(path: str | os.PathLike[str], unknown_step: str = "specify a partition or log directory") -> str:
    """Return a file's type and the next step, for a command that can't take it.

    unknown_step: the next step for unknown bytes.
    """
    if parse_file_name(path).kind is FileKind.LOCK:
        return _refusal("empty, and only locks the directory while a broker runs", unknown_step, path)
    kafkas = _kafkas_file(path)
    if kafkas is not None:
        return _refusal(f"{kafkas}, where a directory is expected", _DUMP, path)
    found = other_file(path)
    if found is None:
        return _refusal("not a file that kseg knows by name or content", unknown_step, path)
    return _refusal(found.what, found.next_step, path)


def refusal_of_bytes(path: str | os.PathLike[str], expected: str) -> str | None:
    """Return the same for a command that expects another type of file: None for text, and for unknown types."""
    kafkas = _kafkas_file(path)
    if kafkas is not None:
        return _refusal(f"{kafkas}, where {expected} are expected", _DUMP, path)
    found = other_file(path)
    if found is None or b"\0" not in read_regular(path, LARGEST_MARK):
        return None
    return _refusal(found.what, found.next_step, path)


def _kafkas_file(path: str | os.PathLike[str]) -> str | None:
    """Return the type of a Kafka file by its name."""
    name = parse_file_name(path)
    is_kafkas = name.kind in LOG_KINDS or name.kind in _KAFKAS
    if is_kafkas and (name.base_offset is not None or name.kind is FileKind.METADATA_SNAPSHOT):
        return _KAFKAS[name.kind]
    is_small = name.kind is not FileKind.UNKNOWN and name.kind is not FileKind.LOG
    return "one of Kafka's small files" if is_small else None


def _refusal(what: str, next_step: str, path: str | os.PathLike[str]) -> str:
    return f"can't be used here: it is {what}; {next_step.format(path=shlex.quote(os.fspath(path)))}"
