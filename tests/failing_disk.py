"""A disk that fails: the system's own calls refuse blocks of the given files, as on a real failing disk."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BLOCK = 512


class FailingDisk:
    """The unreadable bytes of files, and the files that can't be opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._blocks: dict[tuple[int, int], list[range]] = {}
        self._unopenable: set[str] = set()
        self._read_counts: dict[tuple[int, int], int] = {}
        for name in ("pread", "preadv", "read"):
            monkeypatch.setattr(os, name, self._reading(name))
        for name in ("copy_file_range", "sendfile"):
            monkeypatch.setattr(os, name, self._copying(name))
        self._open = os.open
        monkeypatch.setattr(os, "open", self._open_unless_lost)

    def lose_blocks(self, path: Path, *bad: range) -> None:
        """Make these bytes unreadable."""
        self._blocks.setdefault(_identity(path.stat()), []).extend(bad)

    def lose_file(self, path: Path) -> None:
        """Make opening the file fail."""
        self._unopenable.add(str(path.absolute()))

    def mend(self) -> None:
        """Make everything readable."""
        self._blocks.clear()
        self._unopenable.clear()

    def _open_unless_lost(self, path: Any, *arguments: Any, **options: Any) -> int:
        if isinstance(path, str | os.PathLike) and str(Path(os.fspath(path)).absolute()) in self._unopenable:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return self._open(path, *arguments, **options)

    def _check(self, descriptor: int, position: int, size: int) -> None:
        for bad in self._blocks.get(_identity(os.fstat(descriptor)), ()):
            if position < bad.stop and position + size > bad.start:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _reading(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def read(descriptor: int, what: Any, *position: int) -> Any:
            size = what if isinstance(what, int) else sum(memoryview(buffer).nbytes for buffer in what)
            self._check(descriptor, position[0] if position else 0, size)
            return real(descriptor, what, *position)

        return read

    def _copying(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def copy(first: int, second: int, *arguments: Any, **options: Any) -> Any:
            if name == "sendfile":
                self._check(second, arguments[0], arguments[1])
            else:
                self._check(first, options["offset_src"], arguments[0])
            return real(first, second, *arguments, **options)

        return copy


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
