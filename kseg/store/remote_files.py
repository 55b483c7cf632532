"""Files of stores by their URLs: listed, copied here, and kept apart from destinations."""

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
"""Bytes that a request asks for."""
PIECES_AT_ONCE = 4
"""Requests for pieces of a file that are under way at the same time."""


class RemoteFile(NamedTuple):
    """A file as it was listed: bytes, and milliseconds since 1970 of its last change."""

    url: str
    size: int
    modified_ms: int


class Store(ObjectStore, Protocol):
    """A store that can be written to. Errors are KsegErrors, but for those that are named."""

    def stat(self, key: str) -> StoredObject | None:
        """An object; None if it isn't there."""

    def put(self, key: str, content: bytes, *, if_absent: bool = False) -> bool:
        """Writes a whole object; if_absent: unless one is there, which False tells."""

    def create(self, key: str) -> AbstractContextManager[IO[bytes]]:
        """A new object to write to, which is whole when the context ends."""

    def rename(self, key: str, target: str) -> None:
        """Moves an object. Raises FileNotFoundError if there is none."""

    def delete(self, key: str) -> None:
        """Removes an object, if it is there."""


def open_store(url: str) -> Store:
    """The store at a URL. Asks it for nothing yet.

    Raises UsageError for a URL that names none, without the library that it needs, or for settings that can't be.
    """
    if parse_url(url).kind is StoreKind.HDFS:
        from kseg.store.hdfs import FilesOfHdfs

        return FilesOfHdfs(url)
    from kseg.store.objects import ObjectsOfStore

    return ObjectsOfStore(url)


@cache
def _store_at(root: str) -> Store:
    """A process's store at the root of URLs: its connections are used again."""
    return open_store(root)


def _found(url: str) -> tuple[Store, str]:
    """The store of a file, and the file's key."""
    parsed = parse_url(url)
    return _store_at(parsed.root), parsed.key


def is_hdfs(url: str) -> bool:
    """Whether a URL is one of HDFS, which renames files as disks do."""
    return is_remote(url) and parse_url(url).kind is StoreKind.HDFS


def list_files(url: str, *, may_be_missing: bool = False) -> Iterator[RemoteFile]:
    """The files at a URL and below it.

    may_be_missing: a folder that isn't there has no files; else OpenError is raised. Raises as stores do.
    """
    store, is_any = open_store(url), False
    for found in store.objects():
        is_any = True
        yield RemoteFile(place_of(store, found.key), found.size, found.modified_ms)
    if is_any:
        return
    whole, key = _found(url)
    itself = whole.stat(key) if key else None
    if itself is not None:
        yield RemoteFile(url.rstrip("/"), itself.size, itself.modified_ms)
    elif not may_be_missing:
        raise OpenError("can't be listed: nothing is there", url)


def copy_range(url: str, target: Path, start: int, end: int, size: int) -> None:
    """Copies bytes of a file to the same place of a local one, several pieces at once.

    size: how many bytes it was listed with. Raises OpenError if they can't be had, ClusterError if the store fails.
    """
    store, key = _found(url)
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
    """Copies a whole file. Raises as `copy_range`."""
    store, key = _found(url)
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
    """A directory on this machine, named as the one at the URL, with those of its files whose names end so."""
    with scratch_directory() as scratch:
        directory = scratch / url.rstrip("/").rpartition("/")[2]
        directory.mkdir()
        for file in list_files(url):
            name = file.url.rpartition("/")[2]
            if name.endswith(tuple(endings)) and file.url.rpartition("/")[0] == url.rstrip("/"):
                copy_range(file.url, directory / name, 0, file.size, file.size)
        yield directory


def check_destination(destination: str, inputs: Iterable[str | None]) -> None:
    """Raises UsageError if files of the destination would lie among those that are read, or the other way round.

    Inputs are paths, globs or URLs.
    """
    read = [place for each in inputs if each is not None for place in _places(each)]
    (target,) = _places(destination, is_glob=False)
    if not is_remote(target):
        check_outside(target, (place for place in read if not is_remote(place)))
        return
    for place in read:
        if f"{target}/".startswith(f"{place}/"):
            raise UsageError(f"is inside {place}, which is read: kseg writes nothing there", destination)
        if f"{place}/".startswith(f"{target}/"):
            raise UsageError(f"contains {place}, which is read: kseg writes nothing there", destination)


def local_places(path: str) -> list[str]:
    """The places of this machine that a path or glob means; none for a URL of a store."""
    return [place for place in _places(path) if not is_remote(place)]


def _places(path: str, *, is_glob: bool = True) -> Iterator[str]:
    """A path as it is, a glob's matches too, a URL as all that mean the same place have it."""
    if not is_remote(path):
        yield path
        if is_glob:
            yield from glob(path)  # noqa: PTH207  an absolute one too
        return
    if path.lower().startswith("file://"):
        yield without_file_scheme(path)
        return
    url = parse_url(path)
    parts = filter(None, (url.account, url.bucket, *url.key.split("/")))
    yield f"{url.kind.name.lower()}://{'/'.join(parts)}"
