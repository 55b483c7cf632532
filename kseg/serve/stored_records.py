"""Records of answers as stored in logs, which are checked for changes before and after they are sent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.reading.log_file import LogFile
from kseg.serve.fetch_batches import FetchBounds, Mend, StoredRange, pieces_of, plan_fetches, readable_batches
from kseg.serve.values import READ_AT_ONCE
from kseg.system.files import open_ranged
from kseg.system.placed_path import RangedBytes


class StoredLog(NamedTuple):
    """A log's path, its file's identity, and that file's state; both are None if it doesn't exist.

    file: device and number. state: size, and modification time in nanoseconds.
    """

    path: Path
    file: tuple[int, int] | None
    state: tuple[int, int] | None


def stored_log(path: Path) -> StoredLog:
    """Return the log at a path as it is now. Call this before reading, so that a later replacement differs."""
    try:
        found = os.stat(path)  # noqa: PTH116  quicker
    except OSError:
        return StoredLog(path, None, None)
    return StoredLog(path, (found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns))


@contextmanager
def open_same(log: StoredLog) -> Iterator[FileIO | RangedBytes]:
    """Open the log file, or its range in a store. Raises OpenError if it is gone or replaced."""
    descriptor, _, source = open_ranged(log.path)
    with FileIO(descriptor) as file:
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != log.file:
            raise OpenError("was replaced after kseg read it", log.path)
        yield file if source is None else source


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """Records of an answer as stored in a log: the log, and ranges of it, with their total size as length.

    first_offset: the first batch's. next_offset: the one after the last batch. mends: changed bytes in them, by
    position.
    """

    log: StoredLog
    ranges: tuple[StoredRange, ...]
    first_offset: int
    next_offset: int
    mends: tuple[Mend, ...] = ()

    def __len__(self) -> int:
        return sum(each.size for each in self.ranges)

    def pieces(self) -> Iterator[StoredRange | bytes]:
        """Yield the contents in order: stretches of the log, and the changed bytes between them."""
        return pieces_of(self.ranges, self.mends)

    def are_there(self) -> bool:
        """Return True if the same batches are still there and intact, by position and offset. Raises OpenError."""
        bounds = FetchBounds(self.first_offset, self.next_offset, len(self), takes_any_first=True)
        with LogFile(self.log.path, buffer_size=READ_AT_ONCE) as log_file:
            plan = next(plan_fetches(readable_batches(log_file.runs(self.ranges[0].position)), bounds))
        return (plan.ranges, plan.first_offset, plan.next_offset) == (self.ranges, self.first_offset, self.next_offset)
