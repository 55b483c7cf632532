"""Where an export goes: a directory of this machine, or of an object store.

A local directory takes files by renaming them into their place; in an object store, where a rename is a copy, they are
written under the name they keep.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from kseg.errors import KsegError, OpenError
from kseg.export import remote


class Destination(Protocol):
    """Files by names relative to the destination, with slashes."""

    url: str
    renames: bool
    """Whether files are written aside and renamed."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there."""

    def create(self, name: str) -> Any:
        """A context manager: a new file to write bytes to, durable once it ended without an exception."""

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if it isn't there."""

    def claim(self, name: str, content: bytes) -> bool:
        """Writes a whole small file unless one of that name is there; tells whether it was written."""

    def replace(self, name: str, content: bytes) -> None:
        """Writes a small file, in the place of one of that name."""

    def rename(self, name: str, target: str) -> None:
        """Moves a file, in the place of one that is there."""

    def delete(self, name: str) -> None:
        """Removes a file, if it is there."""

    def names(self, folder: str = "") -> Iterator[str]:
        """The files below a folder."""


def open_destination(url: str) -> Destination:
    """The destination at a path or URL; nothing is made yet."""
    return RemoteDestination(url) if remote.is_remote(url) else LocalDestination(url)


class LocalDestination:
    """A directory of this machine, or one that is mounted on all machines of a cluster."""

    renames = True

    def __init__(self, path: str) -> None:
        self._root = Path(path).absolute()
        self.url = str(self._root)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there."""
        return not self._root.exists() or not any(self._root.iterdir())

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """A new file; its bytes are on the disk when the context ends."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise KsegError(f"can't be written: {error.strerror}", path) from error

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if it isn't there."""
        with suppress(FileNotFoundError):
            return (self._root / name).read_bytes()
        return None

    def claim(self, name: str, content: bytes) -> bool:
        """A link appears with the whole content or not at all, and never in the place of another file."""
        path = self._root / name
        aside = self._aside(path, content)
        try:
            path.hardlink_to(aside)
        except FileExistsError:
            return False
        finally:
            aside.unlink()
        _sync_directory(path.parent)
        return True

    def replace(self, name: str, content: bytes) -> None:
        """Writes aside and renames."""
        path = self._root / name
        self._aside(path, content).replace(path)

    @staticmethod
    def _aside(path: Path, content: bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return aside

    def rename(self, name: str, target: str) -> None:
        """Moves a file."""
        path = self._root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        (self._root / name).replace(path)

    def delete(self, name: str) -> None:
        """Removes a file, and folders that it leaves empty."""
        path = self._root / name
        path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or gone
            while path.parent != self._root:
                path = path.parent
                path.rmdir()

    def names(self, folder: str = "") -> Iterator[str]:
        """The files below a folder."""
        for path in sorted((self._root / folder).rglob("*")):
            if path.is_file():
                yield path.relative_to(self._root).as_posix()


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class RemoteDestination:
    """A folder of an object store, or of HDFS, by pyarrow's file systems."""

    renames = False

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._system, self._root = remote.locate(self.url)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there."""
        return next(self.names(), None) is None

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """A new object, which appears when it is closed; also if its writing failed: nobody else knows its name."""
        try:
            self._system.create_dir(f"{self._root}/{name}".rpartition("/")[0], recursive=True)
            with self._system.open_output_stream(f"{self._root}/{name}") as file:
                yield file
        except OSError as error:
            raise KsegError(f"can't be written: {error}", f"{self.url}/{name}") from error

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if it isn't there."""
        try:
            with self._system.open_input_stream(f"{self._root}/{name}") as file:
                content: bytes = file.read()
                return content
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OpenError(f"can't be read: {error}", f"{self.url}/{name}") from error

    def claim(self, name: str, content: bytes) -> bool:
        """Looks, then writes: two exports into the same place at the same time must be kept apart by the caller."""
        if self.read(name) is not None:
            return False
        self.replace(name, content)
        return True

    def replace(self, name: str, content: bytes) -> None:
        """Writes an object."""
        with self.create(name) as file:
            file.write(content)

    def rename(self, name: str, target: str) -> None:
        """Not needed: files are written where they stay."""
        raise NotImplementedError

    def delete(self, name: str) -> None:
        """Removes an object."""
        with suppress(FileNotFoundError):
            self._system.delete_file(f"{self._root}/{name}")

    def names(self, folder: str = "") -> Iterator[str]:
        """The objects below a folder."""
        from pyarrow import fs

        root = f"{self._root}/{folder}".rstrip("/")
        selector = fs.FileSelector(root, recursive=True, allow_not_found=True)
        for info in self._system.get_file_info(selector):
            if info.type == fs.FileType.File:
                yield info.path[len(self._root) + 1 :]
