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
    from kseg.kernel.contract import Output
    from kseg.system.placed_path import StrPath

PAUSE = 0.2
"""Seconds between two looks at the files."""
PrintLog = Callable[["StrPath", "DirectoryReader"], None]
"""Prints what a reader takes of a log; reports one that can't be opened."""


class _Followed:
    """A directory that is followed: the segment that is read, and up to where.

    It begins where it was printed to, or where the last segment ended then.
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
        """Print what is new; return whether anything was."""
        # Listed before the current one is read: when there is a next one, the current one doesn't grow any more.
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
    """Print what is appended to the logs of some directories, until their limit is reached, or for ever."""
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
