"""The style of CSV: separators, and texts that spreadsheets understand."""

from kseg.errors import UsageError
from kseg.named_tuple import NamedTuple

SEPARATORS = {",": ",", ";": ";", "tab": "\t"}
"""Separators of CSV by the names that `--csv-separator` takes."""


class CsvStyle(NamedTuple):
    """The style of CSV.

    is_safe: an apostrophe precedes texts that a spreadsheet would evaluate as formulas. is_excel: a double click opens
    it in a spreadsheet, with all digits, and with times as times; such CSV is safe too.
    """

    is_safe: bool = False
    is_excel: bool = False
    separator: str = ","

    @property
    def needs_cells(self) -> bool:
        """True if the kernel's CSV isn't sufficient."""
        return self.is_excel or self.separator != ","

    def check(self, form: str) -> None:
        """Raise UsageError if options of CSV are given with another form."""
        if form == "csv":
            return
        if self.is_excel:
            raise UsageError("--csv-excel prints CSV; remove -o")
        if self.is_safe:
            raise UsageError("--csv-safe needs CSV; add -o csv")
        if self.separator != ",":
            raise UsageError("--csv-separator needs CSV; add -o csv or --csv-excel")


PLAIN_CSV = CsvStyle()
