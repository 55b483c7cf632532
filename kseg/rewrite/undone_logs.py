"""Copies of logs that were changed as text, as they were before: salvage reads these."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from kseg.reading.log_file import LogFile
from kseg.reading.text_changes import find_change, undone
from kseg.system.new_directory import scratch_directory
from kseg.system.terminal_text import forget, show_as


class UndoneLog(NamedTuple):
    """A log that was changed as text, what was changed, and a copy of it from before."""

    log: Path
    what: str
    copy: Path


class UndoneLogs:
    """Makes such copies, in a directory that goes with it; a context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._directory: Path | None = None
        self._count = 0

    def __enter__(self) -> "UndoneLogs":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def copy_of(self, log_file: LogFile, position: int) -> UndoneLog | None:
        """A copy from before the change that is found at a position; None if nothing undoes it.

        Raises OSError if it can't be written.
        """
        change = find_change(log_file.read, position)
        if change is None:
            return None
        if self._directory is None:
            self._directory = self._stack.enter_context(scratch_directory())
        self._count += 1
        copy = self._directory / str(self._count) / log_file.path.name
        copy.parent.mkdir()
        self._stack.callback(forget, str(copy))
        show_as(str(copy), str(log_file.path))
        with copy.open("xb") as target:
            target.writelines(undone(change, log_file.read))
        modified = log_file.path.stat().st_mtime_ns
        os.utime(copy, ns=(modified, modified))
        return UndoneLog(log_file.path, change.what, copy)
