"""Records out of a file or standard input: lines of JSON, CSV or text."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from kseg.errors import KsegError, OpenError
from kseg.writer.json_source import read_json_lines
from kseg.writer.source_items import SourceItem
from kseg.writer.text_source import read_csv, read_text_lines

if TYPE_CHECKING:
    from kseg.redaction import Redaction

STANDARD_INPUT = "-"
_LONGEST_LINE = 128 << 20
"""Bytes: far more than a record that Kafka takes; a device may never end a line."""


@dataclass(frozen=True, slots=True)
class RecordForm:
    """What lines hold: `json`, `csv` or `text`.

    key_separator: of text: what stands between key and value; None: there are values alone. redaction: what is
    replaced in the records; None: nothing.
    """

    name: str
    key_separator: str | None = None
    redaction: "Redaction | None" = None

    def items(self, lines: Iterator[bytes]) -> Iterator[SourceItem]:
        """What some lines hold, in order. Raises SourceError for a line that can't be taken."""
        if self.name == "json":
            items = read_json_lines(lines)
        else:
            items = read_csv(lines) if self.name == "csv" else read_text_lines(lines, self.key_separator)
        if self.redaction is None:
            return items
        from kseg.writer.redacted_items import redacted_items

        return redacted_items(items, self.redaction)


@contextmanager
def opened_items(source: str, form: RecordForm) -> Iterator[Iterator[SourceItem]]:
    """What a file holds, or standard input, for `with`. Errors that name no path of their own name the source.

    Raises OpenError if it can't be opened or read, or a line never ends; else as `InputForm.items` does.
    """
    with _opened(source) as lines:
        try:
            yield form.items(_read(lines, source))
        except KsegError as error:
            if error.path is not None:
                raise
            raise KsegError(error.message, name_of_input(source)) from error


def name_of_input(source: str) -> str:
    """How messages call it."""
    return "standard input" if source == STANDARD_INPUT else source


def _opened(source: str) -> AbstractContextManager[BinaryIO]:
    if source == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(source).open("rb")
    except OSError as error:
        raise OpenError(f"can't be opened: {error.strerror}", source) from error


def _read(lines: BinaryIO, source: str) -> Iterator[bytes]:
    try:
        for number in count(1):
            line = lines.readline(_LONGEST_LINE + 1)
            if len(line) > _LONGEST_LINE:
                raise OpenError(f"line {number} has more than {_LONGEST_LINE} bytes", name_of_input(source))
            if not line:
                return
            yield line
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror}", name_of_input(source)) from error
