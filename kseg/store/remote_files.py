"""Files of stores by their URLs: listed, copied to this machine, and checked against destinations."""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from glob import glob
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from kseg.errors import OpenError, UsageError, reason
from kseg.store.location import (
    ObjectStore,
    StoredBytes,
    StoredObject,
    StoreKind,
    is_remote,
    parse_url,
    place_of,
    require_all,
    without_file_scheme,
)
from kseg.store.target import check_outside
from kseg.system.new_directory import scratch_directory
from kseg.system.run_usage import in_threads

PIECE = 8 << 20
"""Bytes in one request."""
PIECES_AT_ONCE = 4
"""Concurrent requests for pieces of a file."""


class RemoteFile(NamedTuple):
    """A file as listed: its bytes, and its last change in milliseconds since 1970."""

    url: str
    size: int
    modified_ms: int


class Store(ObjectStore, Protocol):
    """A writable object store. Methods raise KsegError unless stated otherwise."""

    def stat(self, key: str) -> StoredObject | None:
        """Return an object, or None if it doesn't exist."""

    def put(self, key: str, content: bytes, *, if_absent: bool = False) -> bool:
        """Write a complete object. If `if_absent` is set and the object exists, return False."""

    def create(self, key: str) -> AbstractContextManager[IO[bytes]]:
        """Return a new object to write to, which is complete when the context ends."""

    def rename(self, key: str, target: str) -> None:
        """Move an object. Raises FileNotFoundError if there is none."""

    def delete(self, key: str) -> None:
        """Remove an object, if it exists."""


def open_store(url: str) -> Store:
    """Return the store at a URL, without a request yet.

    Raises UsageError if the URL names no store, if a library is missing, or if settings are invalid.
    """
    if parse_url(url).kind is StoreKind.HDFS:
        from kseg.store.hdfs import FilesOfHdfs

        return FilesOfHdfs(url)
    from kseg.store.objects import ObjectsOfStore

    return ObjectsOfStore(url)


@cache
def _store_at(root: str) -> Store:
    """Return the process's store at the root of URLs, so that its connections are reused."""
    return open_store(root)


def _store_and_key(url: str) -> tuple[Store, str]:
    parsed = parse_url(url)
    return _store_at(parsed.root), parsed.key


def is_hdfs(url: str) -> bool:
    """Return True if a URL is one of HDFS, which renames files as disks do."""
    return is_remote(url) and parse_url(url).kind is StoreKind.HDFS


def list_files(url: str, *, may_be_missing: bool = False) -> Iterator[RemoteFile]:
    """Yield the files at a URL and below it.

    A missing folder has no files if `may_be_missing`, else OpenError is raised. Raises the stores' other errors.
    """
    store, is_any = open_store(url), False
    for found in store.objects():
        is_any = True
        yield RemoteFile(place_of(store, found.key), found.size, found.modified_ms)
    if is_any:
        return
    whole, key = _store_and_key(url)
    itself = whole.stat(key) if key else None
    if itself is not None:
        yield RemoteFile(url.rstrip("/"), itself.size, itself.modified_ms)
    elif not may_be_missing:
        raise OpenError("can't be listed: it doesn't exist", url)


def copy_range(url: str, target: Path, start: int, end: int, size: int) -> None:
    """Copy bytes of a file to the same position of a local one, several pieces at once.

    size: bytes of the file as listed. Raises OpenError if the bytes can't be read, ClusterError if the store fails.
    """
    store, key = _store_and_key(url)
    file = store.open(key, size)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT, 0o600)

    def copy(position: int) -> None:
        os.pwrite(descriptor, _read(file, url, position, min(position + PIECE, end)), position)

    try:
        for _ in in_threads(copy, range(start, end, PIECE), PIECES_AT_ONCE):
            pass
    finally:
        os.close(descriptor)


def copy_file(url: str, target: Path) -> None:
    """Copy a complete file. Raises the same errors as `copy_range`."""
    store, key = _store_and_key(url)
    found = store.stat(key)
    if found is None:
        raise OpenError("can't be read: it isn't there", url)
    copy_range(url, target, 0, found.size, found.size)


def _read(file: StoredBytes, url: str, start: int, end: int) -> bytes:
    try:
        content = file.read(start, end)
        require_all(content, end - start)
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror or reason(error)}", url, start) from error
    return content


@contextmanager
def local_directory(url: str, endings: Iterable[str]) -> Iterator[Path]:
    """Yield a local directory of the same name with copies of the files whose names have the given endings."""
    with scratch_directory() as scratch:
        directory = scratch / url.rstrip("/").rpartition("/")[2]
        directory.mkdir()
        for file in list_files(url):
            name = file.url.rpartition("/")[2]
            if name.endswith(tuple(endings)) and file.url.rpartition("/")[0] == url.rstrip("/"):
                copy_range(file.url, directory / name, 0, file.size, file.size)
        yield directory


def check_destination(destination: str, inputs: Iterable[str | None]) -> None:
    """Raise UsageError if the destination is inside an input, or the other way around.

    Inputs are paths, globs or URLs.
    """
    read = [place for each in inputs if each is not None for place in _places(each)]
    (target,) = _places(destination, is_glob=False)
    if not is_remote(target):
        check_outside(target, (place for place in read if not is_remote(place)))
        return
    for place in read:
        if f"{target}/".startswith(f"{place}/"):
            raise UsageError(f"is inside {place}, which kseg reads; specify a place outside of it", destination)
        if f"{place}/".startswith(f"{target}/"):
            raise UsageError(f"contains {place}, which kseg reads; specify another place", destination)


def local_places(path: str) -> list[str]:
    """Return the local paths that a path or glob means; none for a URL of a store."""
    return [place for place in _places(path) if not is_remote(place)]


def _places(path: str, *, is_glob: bool = True) -> Iterator[str]:
    """Yield a path unchanged, then a glob's matches; a URL in the form shared by all URLs of the same place."""
    if not is_remote(path):
        yield path
        if is_glob:
            yield from glob(path)  # noqa: PTH207  absolute globs too
        return
    if path.lower().startswith("file://"):
        yield without_file_scheme(path)
        return
    url = parse_url(path)
    parts = filter(None, (url.account, url.bucket, *url.key.split("/")))
    yield f"{url.kind.name.lower()}://{'/'.join(parts)}"
