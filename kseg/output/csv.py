"""CSV as in RFC 4180, with a line of names first; lines end in a line feed."""

import csv
import io
from collections.abc import Iterable

from kseg.output.stdout import write_stdout
from kseg.shown_paths import shown


class CsvWriter:
    """Writes rows to standard output; None is an empty field, truth is `true` or `false`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text, lineterminator="\n")
        self.write(names)

    def write(self, values: Iterable[object]) -> None:
        """Writes a row."""
        self._writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in values])
        write_stdout(shown(self._text.getvalue()).encode("utf-8", "surrogateescape"))
        self._text.seek(0)
        self._text.truncate()
