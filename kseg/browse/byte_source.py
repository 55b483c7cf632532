"""Where the bytes on the screen come from: a file, or the decompressed records of a batch."""

import os
from pathlib import Path
from typing import Protocol

from kseg.explain.field import Content
from kseg.reading.log_file import LogFile
from kseg.system.regular_file import open_regular


class ByteSource(Protocol):
    """Bytes that can be read at any position. title: what they are, in words."""

    title: str

    @property
    def size(self) -> int:
        """How many there are."""

    def read(self, position: int, size: int) -> bytes:
        """Some of them, fewer where they end."""


class NoBytes:
    """Of what has no bytes of its own: a topic."""

    title = ""
    size = 0

    def read(self, position: int, size: int) -> bytes:
        """Nothing."""
        return b""


class FileBytes:
    """The bytes of a file; it is opened for each look, so that it is always the file of this name that is seen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.title = path.name

    @property
    def size(self) -> int:
        """Bytes of the file now; 0 if it can't be opened."""
        try:
            return os.stat(self.path).st_size  # noqa: PTH116  as open_regular does
        except OSError:
            return 0

    def read(self, position: int, size: int) -> bytes:
        """Some of them; none if the file can't be opened or read."""
        from kseg.errors import OpenError

        try:
            descriptor, _ = open_regular(self.path)
        except OpenError:
            return b""
        try:
            return os.pread(descriptor, size, position)
        except OSError:
            return b""
        finally:
            os.close(descriptor)


class OpenLogBytes:
    """The bytes of a log that is open: they can be read even after a broker has deleted it."""

    def __init__(self, log_file: LogFile) -> None:
        self._log_file = log_file
        self.title = log_file.path.name

    @property
    def size(self) -> int:
        """Bytes of the log when it was opened."""
        return self._log_file.size

    def read(self, position: int, size: int) -> bytes:
        """Some of them; none once the log is closed: a screen that is left may be drawn once more."""
        return b"" if self._log_file.is_closed else self._log_file.read(position, size)


class BodyBytes:
    """The decompressed records of a batch."""

    def __init__(self, content: Content, title: str) -> None:
        self._content = content
        self.title = title

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._content)

    def read(self, position: int, size: int) -> bytes:
        """Some of them."""
        return bytes(self._content[position : position + size])
