"""CSV and JSON lines, with counts and sizes as text."""

import io
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.kernel.contract import FORMULA_STARTS
from kseg.output.streams import write_stdout
from kseg.system.terminal_text import json_escaped

_FORMULA_STARTS = tuple(start.decode() for start in FORMULA_STARTS)


def check_csv_safe(csv_safe: bool, form: str) -> None:
    """Raises UsageError if safe CSV is asked for with another form."""
    if csv_safe and form != "csv":
        raise UsageError("--csv-safe needs CSV: add -o csv")


class CsvWriter:
    """Writes rows to standard output; None is an empty field, truth is `true` or `false`.

    is_safe: puts an apostrophe before texts that a spreadsheet would evaluate as formulas.
    """

    def __init__(self, names: Iterable[str], *, is_safe: bool = False) -> None:
        import csv

        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._is_safe = is_safe
        self.write(names)

    def write(self, values: Iterable[object]) -> None:
        """Writes a row."""
        self._writer.writerow([self._cell(value) for value in values])
        write_stdout(self._text.getvalue().encode("utf-8", "surrogateescape"))
        self._text.seek(0)
        self._text.truncate()

    def _cell(self, value: object) -> object:
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, str):
            return value
        return no_formula(value) if self._is_safe else value


def no_formula(text: str) -> str:
    """The text, after an apostrophe if a spreadsheet would evaluate it as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def quoted(text: str, *, is_safe: bool = False) -> str:
    """A field in quotes; `is_safe` as in CsvWriter."""
    doubled = (no_formula(text) if is_safe else text).replace('"', '""')
    return f'"{doubled}"'


class JsonText(NamedTuple):
    """Text that is JSON already, such as the kernel's records; it is put into a line unchanged."""

    text: bytes


def json_line(members: Mapping[str, object]) -> bytes:
    """An object as a line. Text that isn't UTF-8, of a file's name, has its bytes as \\udcNN.

    Numbers that JSON lacks are text as in Java: `Infinity`, `-Infinity`, `NaN`.
    """
    return _json(members) + b"\n"


def _json(value: object) -> bytes:
    if isinstance(value, JsonText):
        return value.text
    try:
        return _encoded(value)
    except TypeError:  # there is JSON in it, or what can't be JSON
        if isinstance(value, list):
            return b"[" + b",".join(map(_json, value)) + b"]"
        if isinstance(value, dict):
            return b"{" + b",".join(_encoded(name) + b":" + _json(member) for name, member in value.items()) + b"}"
        raise


def _encoded(value: object) -> bytes:
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(finite_json(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return json_escaped(text).encode("utf-8", "backslashreplace")


def finite_json(value: object) -> object:
    """A value whose numbers JSON has; the others are text as in Java."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: finite_json(member) for name, member in value.items()}
        case list() | tuple():
            return [finite_json(element) for element in value]
    return value


def json_by_pieces(members: Mapping[str, object]) -> Iterator[bytes]:
    """An object as a line, some bytes at a time; a member that is an iterator gives its JSON so, as large ones do."""
    separator = b"{"
    for name, value in members.items():
        yield separator + _json(name) + b":"
        yield from value if isinstance(value, Iterator) else (_json(value),)
        separator = b","
    yield b"}\n"


def write_json_by_pieces(members: Mapping[str, object]) -> None:
    """Writes such an object to standard output."""
    for piece in json_by_pieces(members):
        write_stdout(piece)


def write_json(members: Mapping[str, object]) -> None:
    """Writes an object to standard output."""
    write_stdout(json_line(members))


_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_size(size: int) -> str:
    """A size in the largest unit of 1024 bytes that it fills, with a decimal: `6.5 KiB`; below one in bytes."""
    if size < 1024:
        return f"{size} B"
    value, slot = size / 1024, 0
    while round(value, 1) >= 1024 and slot < len(_UNITS) - 1:
        value, slot = value / 1024, slot + 1
    return f"{value:.1f} {_UNITS[slot]}"


def exact_size(size: int) -> str:
    """A size in bytes."""
    return str(size)
