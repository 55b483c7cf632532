"""Stores of remote objects: their names, sizes and times, and ranges of their bytes. A directory may be one."""

import errno
import os
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from kseg.errors import OpenError


class StoredObject(NamedTuple):
    """An object as it was listed: its key below the store's root, bytes, milliseconds since 1970 of its last change."""

    key: str
    size: int
    modified_ms: int


class ObjectStore(Protocol):
    """Objects below one root.

    name: the root as the user gave it; address: all of it, which objects' names go on. is_near: whether each read costs
    so little that many may be made where one would do.
    """

    name: str
    address: str
    is_near: bool

    def objects(self) -> Iterator[StoredObject]:
        """All of them. Raises OpenError or ClusterError if they can't be listed."""

    def read(self, key: str, start: int, end: int) -> bytes:
        """Bytes of an object, fewer where it ends.

        Raises OSError if the object can't be read, ClusterError if the store fails.
        """


def place_of(store: ObjectStore, key: str) -> str:
    """Where an object lies, for messages."""
    return f"{store.name.rstrip('/')}/{key}" if key else store.name


class DirectoryStore:
    """Objects that are files below a directory; symbolic links to directories aren't followed."""

    is_near = True

    def __init__(self, root: str) -> None:
        self.name = root
        self.address = self._root = os.path.abspath(root)  # noqa: PTH100  without following links

    def objects(self) -> Iterator[StoredObject]:
        """See ObjectStore."""
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self._root, folder)) as entries:  # noqa: PTH118  many of them
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                raise OpenError(f"can't be listed: {error.strerror}", place_of(self, folder)) from error
            for entry in found:
                key = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{key}/")
                elif entry.is_file():
                    status = entry.stat()
                    yield StoredObject(key, status.st_size, status.st_mtime_ns // 1_000_000)

    def read(self, key: str, start: int, end: int) -> bytes:
        """See ObjectStore."""
        descriptor = os.open(os.path.join(self._root, key), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))  # noqa: PTH118
        try:
            pieces: list[bytes] = []
            while start < end and (piece := os.pread(descriptor, end - start, start)):
                pieces.append(piece)
                start += len(piece)
        finally:
            os.close(descriptor)
        return b"".join(pieces)


def broken(reason: str) -> OSError:
    """The error of bytes that are there and aren't what they should be."""
    return OSError(errno.EIO, reason)
