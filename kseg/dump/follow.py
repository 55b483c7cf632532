"""Logs that are followed as they grow."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.errors import OpenError
from kseg.log.segments import read_tail
from kseg.output.streams import flush_stdout

if TYPE_CHECKING:
    from kseg.dump.reader import DirectoryReader
    from kseg.kernel.entry_points import Output
    from kseg.system.placed_path import StrPath

PAUSE = 0.2
"""Seconds between two checks of the files."""
PrintLog = Callable[["StrPath", "DirectoryReader"], None]
"""Type of functions that print the part of a log that a reader takes, and report unopened logs."""


class _Followed:
    """A followed directory: its current segment, and the position up to which it was read.

    It begins at the end of the printed part, or of the last segment.
    """

    def __init__(self, reader: "DirectoryReader") -> None:
        self.reader = reader
        segments = reader.selector.partition.segments
        self._base_offset = segments[-1].base_offset if segments else -1
        self._position = 0
        if segments and reader.last_path == str(segments[-1].path):
            self._position = reader.end
        elif segments and reader.selector.selection.tail is not None:
            last = read_tail(segments[-1]).last
            self._position = 0 if last is None else last.end
        reader.is_following = True

    def poll(self, print_log: PrintLog) -> bool:
        """Print new data; return whether there was any."""
        # Listed before the current segment is read: if there is a next segment, the current one no longer grows.
        try:
            self.reader.selector.list_again()
        except OpenError:
            return False
        has_new = False
        for segment in self.reader.selector.partition.segments:
            if segment.base_offset < self._base_offset or self.reader.is_full:
                continue
            if segment.base_offset > self._base_offset:
                self._base_offset, self._position = segment.base_offset, 0
            if segment.path.stat().st_size > self._position:
                has_new |= self._print(segment.path, print_log)
        return has_new

    def _print(self, path: Path, print_log: PrintLog) -> bool:
        before = self._position
        self.reader.start_at(before)
        print_log(path, self.reader)
        self._position = max(self.reader.end, before)
        return self._position > before


def follow(readers: "Sequence[DirectoryReader]", output: "Output", print_log: PrintLog) -> None:
    """Print data that is appended to the logs of the given directories, until their limit is reached, or for ever."""
    followed = [_Followed(reader) for reader in readers]
    while any(not reader.is_full for reader in readers):
        has_new = []
        for each in followed:
            has_new.append(not each.reader.is_full and each.poll(print_log))
            for other in readers:
                other.left = each.reader.left
        output.flush()
        flush_stdout()
        if not any(has_new):
            time.sleep(PAUSE)
