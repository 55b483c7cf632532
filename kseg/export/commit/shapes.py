"""Shapes of JSON from a destination, which may be anybody's: types, bounds, names of files."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kseg.errors import KsegError, plural
from kseg.export.undecoded import PLURALS
from kseg.export.write.parquet import ATTEMPT, ATTEMPTS

Shape = Callable[[Any], None]
"""A check that raises UnfitError if a value doesn't have the shape."""

INT32, INT64 = (1 << 31) - 1, (1 << 63) - 1
_LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
WIDE = 1 << 65
"""A bound for sums of offsets, which may exceed 64 bits if headers are damaged."""
SHOWN = 40
"""The most characters of a value in a message."""


class UnfitError(Exception):
    """Raised if a value doesn't have the expected shape. The message contains the path of the value."""

    def __init__(self, expected: str, value: object) -> None:
        super().__init__(expected)
        self.expected, self.value, self.where = expected, value, ""

    def within(self, step: str) -> "UnfitError":
        """Return the error for a member or an element of the value."""
        self.where = step + self.where
        return self


def parse_json(content: bytes, name: str, most: int) -> Any:
    """Parse a JSON file of up to `most` bytes. Raises KsegError if it is larger or isn't JSON."""
    if len(content) > most:
        raise KsegError(f"the file has more than {plural(most, 'byte')}, so kseg didn't write it", name)
    try:
        return json.loads(content.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise KsegError("the file isn't UTF-8: it was damaged, or kseg didn't write it", name) from error
    except (ValueError, RecursionError) as error:
        raise KsegError("the file isn't JSON: it was cut or damaged, or kseg didn't write it", name) from error


def require_shape(value: Any, shape: Shape, name: str) -> None:
    """Raise KsegError with the file and the path in it if a value doesn't have the shape."""
    try:
        shape(value)
    except UnfitError as unfit:
        where = f"{unfit.where.lstrip('.')} " if unfit.where else ""
        raise KsegError(f"{where}is {brief(unfit.value)}, expected {unfit.expected}", name) from unfit


def brief(value: object) -> str:
    """Return a value as a message shows it."""
    shown = ascii(value) if not isinstance(value, list | dict) else type(value).__name__
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def text(value: Any) -> None:
    """Require a text that a file name or a table can hold."""
    if not isinstance(value, str) or "\0" in value:
        raise UnfitError("a text", value)
    if not value.isascii():
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise UnfitError("a text", value) from error


def flag(value: Any) -> None:
    """Require a boolean."""
    if not isinstance(value, bool):
        raise UnfitError("true or false", value)


def number(least: int = -WIDE, most: int = WIDE) -> Shape:
    """Return the shape of an integer within bounds."""

    def check(value: Any) -> None:
        if type(value) is not int or not least <= value <= most:
            raise UnfitError(f"a whole number from {least} to {most}", value)

    return check


def seconds(value: Any) -> None:
    """Require a duration."""
    if type(value) not in (int, float) or not 0 <= value < INT64 or not math.isfinite(value):
        raise UnfitError("a number of seconds", value)


def optional(shape: Shape) -> Shape:
    """Return the shape of a value or null."""

    def check(value: Any) -> None:
        if value is not None:
            shape(value)

    return check


def list_of(shape: Shape, count: int | None = None) -> Shape:
    """Return the shape of a list whose elements have a shape; count: its length."""

    def check(value: Any) -> None:
        if not isinstance(value, list) or count not in (None, len(value)):
            raise UnfitError("a list" if count is None else f"a list of {count}", value)
        for place, each in enumerate(value):
            try:
                shape(each)
            except UnfitError as unfit:
                raise unfit.within(f"[{place}]") from None

    return check


def anything(value: Any) -> None:
    """Accept any value; other code checks it."""


def members(required: Mapping[str, Shape], allowed: Mapping[str, Shape] | None = None) -> Shape:
    """Return the shape of an object with the required members, the allowed ones, and no others."""
    known = {**required, **(allowed or {})}

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise UnfitError("an object", value)
        for name in required:
            if name not in value:
                raise UnfitError(f"an object with the member {name}", value)
        for name, each in value.items():
            if name not in known:
                raise UnfitError(f"one of {', '.join(known)}", name)
            try:
                known[name](each)
            except UnfitError as unfit:
                raise unfit.within(f".{name}") from None

    return check


def of_a_version(value: Any) -> None:
    """Require an object with a version."""
    if not isinstance(value, dict) or "version" not in value:
        raise UnfitError("a manifest, an object with a version", value)


def _path_of_a_file(value: Any) -> None:
    """Require a file name of an export: folders of columns, then the name of a part."""
    text(value)
    *folders, name = value.split("/")
    is_part = name.startswith("part-") and name.endswith(".parquet")
    if not is_part or not all("=" in folder and not folder.startswith("_") for folder in folders):
        raise UnfitError("the path of a file of an export", value)


def _attempt(value: Any) -> None:
    text(value)
    folder, _, name = value.rpartition("/")
    if folder != ATTEMPTS:
        _path_of_a_file(value)
    elif not ATTEMPT.fullmatch(name):
        raise UnfitError("the name of an attempt", value)


def _results(value: Any) -> None:
    """Require a list of results. A file belongs to one result, or is shared by several, each with its own rows."""
    list_of(_RESULT)(value)
    for file in (file for result in value for file in result["files"]):
        if file["folder"] != file["path"].rpartition("/")[0]:
            raise UnfitError(f"the folder of {brief(file['path'])}", file["folder"])
    _require_whole_files(value, ("path", "attempt"))


def _finished_results(value: Any) -> None:
    """Require a list of results of finished orders, with complete files."""
    list_of(_UNNAMED_RESULT)(value)
    _require_whole_files(value, ("attempt",))


def _require_whole_files(results: Any, names: Sequence[str]) -> None:
    """Require that files with the same name are parts of one file, which together are all of its rows."""
    whole: dict[str, tuple[Any, ...]] = {}
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for file in (file for result in results for file in result["files"]):
        facts = tuple(file.get(name) for name in _OF_WHOLE)
        for name in names:
            if whole.setdefault(file[name], facts) != facts:
                raise UnfitError("a name that occurs only once", file[name])
        rows[file[names[0]]].append((file.get("firstRow", 0), file["rows"]))
    for path, parts in rows.items():
        end = 0
        for first, count in sorted(parts):
            if first != end or (count == 0 and len(parts) > 1):
                raise UnfitError("a name that occurs once, or once for each part of its rows", path)
            end = first + count


def _source(value: Any) -> None:
    _SOURCE(value)
    if value["start"] > value["end"]:
        raise UnfitError("a value at or after its start", value["end"]).within(".end")


_COUNT, _SIZE, _OFFSET, _MAYBE_OFFSET = number(0), number(0, INT64), number(), optional(number())
_LOSS = members(
    {
        "segment": text,
        "position": _SIZE,
        "size": _SIZE,
        "kind": text,
        "detail": text,
        "first": _MAYBE_OFFSET,
        "end": _MAYBE_OFFSET,
    }
)
_COUNTS = (
    *("read", "written", "control", "aborted", "superseded", "unselected", "passed_over"),
    *("gaps", "lost", "missed", "disordered", "undecoded", "undecoded_records", "without_time"),
)
_DECODED = members(
    {
        "part": text,
        "total": _COUNT,
        "undecoded": _COUNT,
        "firstOffset": _MAYBE_OFFSET,
        "lastOffset": _MAYBE_OFFSET,
        "reason": text,
    }
)


def _check_decoded(value: Any) -> None:
    """Require the counts of keys or of values."""
    _DECODED(value)
    if value["part"] not in PLURALS:
        raise UnfitError("key or value", value["part"]).within(".part")
    if (value["firstOffset"] is None or value["lastOffset"] is None) != (value["undecoded"] == 0):
        raise UnfitError("offsets of undecoded records", value["firstOffset"]).within(".firstOffset")


_WITHHELD = members(
    {
        "first_offset": _OFFSET,
        "end_offset": _OFFSET,
        "records": _COUNT,
        "producer_id": _MAYBE_OFFSET,
        "since_ms": _MAYBE_OFFSET,
        "is_unknown": flag,
    }
)
_TALLY = members(
    {"first_offset": _MAYBE_OFFSET, "next_offset": _MAYBE_OFFSET, "losses": list_of(_LOSS)},
    {
        "open_from": _MAYBE_OFFSET,
        "withheld": optional(_WITHHELD),
        "notes": list_of(text),
        "holes": list_of(list_of(_OFFSET, 2)),
        "epochs": list_of(list_of(_OFFSET, 2)),
        "decoded": list_of(_check_decoded),
        **dict.fromkeys(_COUNTS, _COUNT),
    },
)
_SOURCE = members(
    {
        "path": text,
        "size": _SIZE,
        "modifiedMs": _OFFSET,
        "start": _SIZE,
        "end": _SIZE,
        "crc": optional(number(0, (1 << 32) - 1)),
    },
    {"isCleaned": flag},
)
_FILE_MEMBERS = {
    "attempt": _attempt,
    "folder": text,
    "name": text,
    "firstOffset": _OFFSET,
    "lastOffset": _OFFSET,
    "rows": _SIZE,
    "size": _SIZE,
}
_MAYBE_OF_A_FILE = {
    "firstRow": _SIZE,
    "firstTime": optional(number(-INT64, INT64)),
    "lastTime": optional(number(-INT64, INT64)),
}
_OF_WHOLE = ("path", "attempt", "name", "size")
"""Fields that all parts of a file share."""
_FILE = members({**_FILE_MEMBERS, "path": _path_of_a_file}, _MAYBE_OF_A_FILE)
_UNNAMED_FILE = members(_FILE_MEMBERS, _MAYBE_OF_A_FILE)


def _unnamed_file(value: Any) -> None:
    """Require a file without a final name, or a part of one."""
    _UNNAMED_FILE(value)
    folder = f"{value['folder']}/" if value["folder"] else ""
    _path_of_a_file(f"{folder}{value['name']}.parquet")


_RESULT_MEMBERS = {
    "topic": text,
    "partition": optional(number(0, INT32)),
    "replica": text,
    "wanted": list_of(_MAYBE_OFFSET, 2),
    "sources": list_of(_source),
    "tally": _TALLY,
    "seconds": seconds,
}
_RESULT = members(
    {**_RESULT_MEMBERS, "files": list_of(_FILE)},
    {"topicId": optional(text), "earlierFiles": _COUNT, "isPartlyGone": flag},
)
_UNNAMED_RESULT = members({**_RESULT_MEMBERS, "files": list_of(_unnamed_file)}, {"topicId": optional(text)})
TASK_RESULT = members(
    {**_RESULT_MEMBERS, "files": list_of(_unnamed_file)}, {"topicId": optional(text), "hasChanged": flag}
)
FINISHED = members({"read": anything, "files": anything, "results": _finished_results})
_SPAN = members({"partition": optional(number(0, INT32)), "fromOffset": _OFFSET, "toOffset": _OFFSET})
_TOPIC_COUNTS = members(
    {
        "topic": text,
        "newRows": number(),
        "totalRows": _COUNT,
        "newFiles": optional(_COUNT),
        "newBytes": optional(_COUNT),
        "newUndecoded": _COUNT,
        "newLost": _COUNT,
        "newMissed": _COUNT,
        "offsetRanges": list_of(_SPAN),
    }
)
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _run_id(value: Any) -> None:
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise UnfitError("the id of a run", value)


_RECORD = members(
    {
        "id": _run_id,
        "startedMs": number(0, _LAST_MS),
        "runsTable": text,
        "commit": number(1, 99_999_999),
        "seconds": seconds,
        "topics": list_of(_TOPIC_COUNTS),
    }
)
MANIFEST = members(
    {"version": anything, "number": number(1, 99_999_999), "read": anything, "files": anything, "results": _results},
    {"run": text, "generation": number(0, 99_999_999), "record": _RECORD},
)
STUB = members({"version": anything, "number": number(1, 99_999_999), "run": text, "superseded": flag})


_PROCESS = members(
    {
        "host": text,
        "boot": optional(text),
        "namespace": optional(text),
        "pid": number(1, INT32),
        "started": optional(number(0)),
    }
)
MARKER = members({"base": number(0, 99_999_999), "process": _PROCESS})
