"""Follows logs that grow, from segment to segment."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.errors import OpenError
from kseg.log.partition.segment_tail import read_tail
from kseg.output.stdout import flush_stdout

if TYPE_CHECKING:
    from kseg.dump.options import DumpContext
    from kseg.dump.part import Part

PAUSE = 0.2
"""Seconds between two looks at the files."""


class _Followed:
    """A directory that is followed: the segment that is read, and up to where.

    It begins where its part was printed to, or where the last segment ended then.
    """

    def __init__(self, part: "Part") -> None:
        self.part = part
        segments = part.selector.partition.segments
        self._base_offset = segments[-1].base_offset if segments else -1
        self._position = 0
        if segments and part.last_path == str(segments[-1].path):
            self._position = part.end
        elif segments and part.selector.selection.tail is not None:
            last = read_tail(segments[-1]).last
            self._position = 0 if last is None else last.end

    def poll(self, context: "DumpContext", dump_one: Callable[[str, "DumpContext"], None]) -> bool:
        """Prints what is new; gives whether anything was."""
        # Listed before the current one is read: when there is a next one, the current one doesn't grow any more.
        try:
            self.part.selector.list_again()
        except OpenError:
            return False
        has_new = False
        for segment in self.part.selector.partition.segments:
            if segment.base_offset < self._base_offset or self.part.is_full:
                continue
            if segment.base_offset > self._base_offset:
                self._base_offset, self._position = segment.base_offset, 0
            if segment.path.stat().st_size > self._position:
                has_new |= self._print(segment.path, context, dump_one)
        return has_new

    def _print(self, path: Path, context: "DumpContext", dump_one: Callable[[str, "DumpContext"], None]) -> bool:
        before = self._position
        self.part.start = before
        context.part = self.part
        try:
            dump_one(str(path), context)
        finally:
            context.part = None
        self._position = max(self.part.end, before)
        return self._position > before


def follow(parts: list["Part"], context: "DumpContext", dump_one: Callable[[str, "DumpContext"], None]) -> None:
    """Prints what is appended to the logs of some directories, until their limit is reached, or for ever."""
    followed = [_Followed(part) for part in parts]
    context.is_following = True
    while any(not each.part.is_full for each in followed):
        has_new = []
        for each in followed:
            has_new.append(not each.part.is_full and each.poll(context, dump_one))
            for other in followed:
                other.part.left = each.part.left
        context.output.flush()
        flush_stdout()
        if not any(has_new):
            time.sleep(PAUSE)
