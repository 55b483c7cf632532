"""A segment, or any other file of batches, opened by itself."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from kseg.api.kseg_warning import warn
from kseg.api.opened_logs import Logs
from kseg.api.short_table import ShortTable
from kseg.log.select.record_picker import SelectedLog, selected_logs
from kseg.log.select.selector import Selector
from kseg.reading.batch import Batch
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile
from kseg.reading.scan import scan_log
from kseg.selection import Selection


class Segment(Logs):
    """One log file; also a metadata snapshot, or a file of batches with any name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the file. Raises OpenError if it can't be opened."""
        super().__init__()
        self._file = LogFile(path)
        self._at_close.callback(self._file.close)

    @property
    def path(self) -> Path:
        """The file's path."""
        return self._file.path

    @property
    def base_offset(self) -> int | None:
        """The offset in the file's name; None if there is none."""
        return self._file.base_offset

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._file.size

    def scan(self, start: int = 0) -> Iterator[Batch | Damage]:
        """Everything in the file, in order, from a batch's position on; sizes add up to the file's size.

        Damage is given, never raised; a batch whose CRC is wrong has `is_valid` False. Records aren't looked at:
        `Batch.problem` tells whether they can be read.
        """
        yield from scan_log(self._file, start)

    def _selected(self, selection: Selection) -> Iterator[SelectedLog]:
        selector = Selector(selection, self.path.parent, warn)
        yield from selected_logs(selector, [self.path], lambda _: nullcontext(self._file), selection.limit)

    def _table(self) -> ShortTable:
        return ShortTable(f"Segment {self.path}: {self.size:,} bytes")
