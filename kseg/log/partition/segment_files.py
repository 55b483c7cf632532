"""The files of a segment, as a listing of their directory has them."""

from pathlib import Path
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.reading.log_file import LogFile


class FoundFile(NamedTuple):
    """A file as its directory listed it: bytes, and milliseconds since 1970 of its last modification.

    inode: its number in the file system, 0 if it isn't known: a file of the same name may take its place.
    """

    directory: Path
    name: str
    size: int
    modified_ms: int
    inode: int = 0

    @property
    def path(self) -> Path:
        """Its path."""
        return self.directory / self.name

    @property
    def full_name(self) -> str:
        """The same as text, which takes a tenth of the time."""
        return path_text(self.directory, self.name)


def path_text(directory: Path, name: str) -> str:
    """The text of the path of a file in a directory."""
    place = str(directory)
    return name if place == "." else f"{place}{name}" if place.endswith("/") else f"{place}/{name}"


class SegmentFiles(NamedTuple):
    """A segment: its log and the files next to it, None if a file is missing.

    In an orphan only the log is missing.
    """

    base_offset: int
    log: FoundFile | None
    offset_index: FoundFile | None = None
    time_index: FoundFile | None = None
    transaction_index: FoundFile | None = None

    @property
    def path(self) -> Path:
        """The log's path."""
        return self._own_log.path

    @property
    def _own_log(self) -> FoundFile:
        if self.log is None:
            raise KsegError(f"the segment of base offset {self.base_offset} has no log")
        return self.log

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return 0 if self.log is None else self.log.size

    @property
    def files(self) -> tuple[FoundFile, ...]:
        """Its files, the log first."""
        return tuple(file for file in self[1:] if file is not None)

    def open_log(self, *, keep_cache: bool = True) -> LogFile:
        """The log; one that can't be opened is unreadable as a whole. Raises OpenError if it is gone."""
        log = self._own_log
        return LogFile.of_directory(log.full_name, log.size, keep_cache=keep_cache)
