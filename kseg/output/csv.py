"""CSV as in RFC 4180; the first line has the names, and lines end with a line feed."""

import io
from collections.abc import Iterable

from kseg.archive.shown_paths import shown
from kseg.errors import UsageError
from kseg.kernel.program import FORMULA_STARTS
from kseg.output.stdout import write_stdout

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
        write_stdout(shown(self._text.getvalue()).encode("utf-8", "surrogateescape"))
        self._text.seek(0)
        self._text.truncate()

    def _cell(self, value: object) -> object:
        if isinstance(value, bool):
            return str(value).lower()
        return no_formula(value) if self._is_safe and isinstance(value, str) else value


def no_formula(text: str) -> str:
    """The text, after an apostrophe if a spreadsheet would evaluate it as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def quoted(text: str, *, is_safe: bool = False) -> str:
    """A field in quotes; `is_safe` as in CsvWriter."""
    doubled = (no_formula(text) if is_safe else text).replace('"', '""')
    return f'"{doubled}"'
