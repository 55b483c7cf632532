"""CSV and JSON lines, with counts and sizes as text."""

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import tzinfo
from types import MappingProxyType
from typing import NamedTuple

from kseg.kernel.contract import FORMULA_STARTS
from kseg.output.csv_style import CsvStyle
from kseg.output.streams import write_stdout
from kseg.system.terminal_text import json_escaped
from kseg.times import iso_time

_FORMULA_STARTS = tuple(start.decode() for start in FORMULA_STARTS)


_MARK = b"\xef\xbb\xbf"
"""The byte order mark, without which Excel takes UTF-8 for the machine's own code page."""
_EXACT_DIGITS = 15
"""Most digits that a spreadsheet keeps of a number."""
_READ_AS_NUMBER = re.compile(rf"0[0-9]+|[0-9]{{{_EXACT_DIGITS + 1},}}")
"""Texts that a spreadsheet would turn into another number."""
NO_TIMES: Mapping[str, tzinfo] = MappingProxyType({})
_ISO_TIME = re.compile(r"([0-9-]{10})T([0-9:]{8}(?:\.[0-9]+)?)(?:Z|[+-][0-9:]+)?")


class CsvWriter:
    """Writes rows to standard output, or by `write`; None is an empty field, truth is `true` or `false`.

    times: columns with times, in ISO 8601 or milliseconds; and the zone in which spreadsheets get them.
    """

    def __init__(
        self,
        names: Iterable[str],
        style: CsvStyle,
        times: Mapping[str, tzinfo] = NO_TIMES,
        write: Callable[[bytes], object] = write_stdout,
    ) -> None:
        import csv

        self._text = io.StringIO(newline="")
        end = "\r\n" if style.is_excel else "\n"
        self._writer = csv.writer(self._text, delimiter=style.separator, lineterminator=end)
        self._style = style
        self._times = times
        self._write = write
        if style.is_excel:
            write(_MARK)
        self.write_names(names)

    def write_names(self, names: Iterable[str]) -> None:
        """Write the names of the columns of the rows that follow."""
        self._names = tuple(names)
        self._write_cells(self._names)

    def write(self, values: Iterable[object]) -> None:
        """Write a row."""
        self._write_cells(list(map(self._cell, self._names, values)))

    def _write_cells(self, cells: Iterable[object]) -> None:
        self._writer.writerow(cells)
        self._write(self._text.getvalue().encode("utf-8", "surrogateescape"))
        self._text.seek(0)
        self._text.truncate()

    def _cell(self, name: str, value: object) -> object:
        if isinstance(value, bool):
            return str(value).lower()
        if self._style.is_excel:
            return self._spreadsheet_cell(name, value)
        return no_formula(value) if self._style.is_safe and isinstance(value, str) else value

    def _spreadsheet_cell(self, name: str, value: object) -> object:
        if name in self._times:
            text = iso_time(value, self._times[name]) if isinstance(value, int) else value
            moment = _ISO_TIME.fullmatch(text) if isinstance(text, str) else None
            if moment is not None:
                return f"{moment[1]} {moment[2]}"
        if isinstance(value, int) and abs(value) >= 10**_EXACT_DIGITS:
            return f"'{value}"
        if not isinstance(value, str):
            return value
        return f"'{value}" if _READ_AS_NUMBER.fullmatch(value) else no_formula(value)


def no_formula(text: str) -> str:
    """Return the text, after an apostrophe if a spreadsheet would evaluate it as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def quote_field(text: str, *, is_safe: bool = False) -> str:
    """Return a field in quotes; `is_safe` as in CsvStyle."""
    doubled = (no_formula(text) if is_safe else text).replace('"', '""')
    return f'"{doubled}"'


class JsonText(NamedTuple):
    """Text that is JSON already, such as the kernel's records; it is inserted into a line unchanged."""

    text: bytes


def json_line(members: Mapping[str, object]) -> bytes:
    r"""Return an object as a line. Non-UTF-8 bytes of a file's name become \udcNN.

    Numbers that JSON lacks are text as in Java: `Infinity`, `-Infinity`, `NaN`.
    """
    return _json(members) + b"\n"


def _json(value: object) -> bytes:
    if isinstance(value, JsonText):
        return value.text
    try:
        return _encode(value)
    except TypeError:  # some value is JsonText, or can't be JSON
        if isinstance(value, list):
            return b"[" + b",".join(map(_json, value)) + b"]"
        if isinstance(value, dict):
            return b"{" + b",".join(_encode(name) + b":" + _json(member) for name, member in value.items()) + b"}"
        raise


def _encode(value: object) -> bytes:
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(finite_json(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return json_escaped(text).encode("utf-8", "backslashreplace")


def finite_json(value: object) -> object:
    """Return a value with numbers that JSON has; others are text as in Java."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: finite_json(member) for name, member in value.items()}
        case list() | tuple():
            return [finite_json(element) for element in value]
    return value


def json_by_pieces(members: Mapping[str, object]) -> Iterator[bytes]:
    """Yield an object as a line, in pieces; a member that is an iterator yields its JSON, as large ones do."""
    separator = b"{"
    for name, value in members.items():
        yield separator + _json(name) + b":"
        yield from value if isinstance(value, Iterator) else (_json(value),)
        separator = b","
    yield b"}\n"


def write_json_by_pieces(members: Mapping[str, object]) -> None:
    """Write such an object to standard output."""
    for piece in json_by_pieces(members):
        write_stdout(piece)


def write_json(members: Mapping[str, object]) -> None:
    """Write an object to standard output."""
    write_stdout(json_line(members))
