"""HDFS as a store through pyarrow's file systems: WebHDFS, or libhdfs if a Hadoop client is installed.

Files are written under another name and then renamed.
"""

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from kseg.errors import KsegError, OpenError, UsageError, missing_library, reason
from kseg.store.location import ASIDE, ReadByKey, StoredBytes, StoredObject, parse_url, require_all

WEB = "webhdfs"
DEFAULT_PORT = 9870
"""`dfs.namenode.http-address` since Hadoop 3."""


class FilesOfHdfs:
    """Files below a URL of HDFS. The first use makes the first request.

    Raises UsageError without the libraries that the URL needs.
    """

    is_near = False

    def __init__(self, url: str) -> None:
        parsed = parse_url(url)
        self._root = parsed.root
        self._folder = f"/{parsed.key}".rstrip("/")
        self.name = self.address = url.rstrip("/")
        self._system: Any = web_system(self._root) if self._root.startswith(f"{WEB}://") else _system(self._root)

    def __reduce__(self) -> tuple[Callable[[str], "FilesOfHdfs"], tuple[str]]:
        return FilesOfHdfs, (self.name,)

    @cached_property
    def _web(self) -> Any:
        """The WebHDFS client of fsspec, which offers more than pyarrow's interface, or None for libhdfs."""
        return getattr(getattr(self._system, "handler", None), "fs", None)

    def _path(self, key: str) -> str:
        return f"{self._folder}/{key}" if key else self._folder or "/"

    def objects(self) -> Iterator[StoredObject]:
        """See ObjectStore."""
        from pyarrow import fs

        with self._errors("listed"):
            found = self._system.get_file_info(fs.FileSelector(self._path(""), recursive=True, allow_not_found=True))
        for info in found:
            if info.type == fs.FileType.File:
                if info.size is None or info.size < 0:
                    raise OpenError("can't be listed: the store reports a file without its size", info.path)
                key = info.path.removeprefix(f"{self._folder}/")
                yield StoredObject(key, info.size, (info.mtime_ns or 0) // 1_000_000)
        if not found:
            yield from self._named_file()

    def _named_file(self) -> Iterator[StoredObject]:
        """Yield the file that the URL names, if it is a file."""
        found = self.stat("")
        if found is not None:
            yield found

    def stat(self, key: str) -> StoredObject | None:
        """Return a file, or None if it doesn't exist. Raises OpenError."""
        from pyarrow import fs

        with self._errors("looked at", key):
            info = self._system.get_file_info(self._path(key))
        if info.type != fs.FileType.File:
            return None
        return StoredObject(key, info.size, (info.mtime_ns or 0) // 1_000_000)

    def open(self, key: str, size: int | None = None) -> StoredBytes:
        """See ObjectStore."""
        return ReadByKey(self, key)

    def read(self, key: str, start: int, end: int) -> bytes:
        """See ObjectStore."""
        try:
            with self._system.open_input_file(self._path(key)) as file:
                end = min(end, file.size())
                if start >= end:
                    return b""
                content: bytes = file.read_at(end - start, start)
        except FileNotFoundError:
            raise
        except system_errors() as error:
            raise OSError(reason(error)) from error
        require_all(content, end - start)
        return content

    @contextmanager
    def create(self, key: str) -> Iterator[Any]:
        """Yield a new file to write to.

        It exists at once, and remains if writing fails: nobody else knows its name.
        """
        path = self._path(key)
        with self._errors("written", key):
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
            with self._system.open_output_stream(path) as file:
                yield file

    def put(self, key: str, content: bytes, *, if_absent: bool = False) -> bool:
        """Write a file under another name and rename it; with `if_absent`, return False if the target exists.

        libhdfs can't rename over an existing file, so without `if_absent` the target itself is written.
        """
        if not if_absent and self._web is None:
            with self.create(key) as file:
                file.write(content)
            return True
        aside = f"{key}.{uuid4().hex[:12]}{ASIDE}"
        with self.create(aside) as file:
            file.write(content)
        if not if_absent:
            with self._errors("written", key):
                self._web.replace(self._path(aside), self._path(key))
            return True
        with suppress(*system_errors()):
            self._system.move(self._path(aside), self._path(key))
        is_moved = self.stat(aside) is None
        self.delete(aside)
        return is_moved

    def rename(self, key: str, target: str) -> None:
        """Move a file, replacing one at the target. Raises FileNotFoundError if there is none to move."""
        path = self._path(target)
        failure: Exception | None = None
        with self._errors("written", target):
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
            try:
                self._system.move(self._path(key), path)
            except system_errors() as error:
                failure = error
        if self.stat(key) is None:
            if failure is not None and self.stat(target) is None:
                raise FileNotFoundError(key)
            return
        if self.stat(target) is None:
            why = reason(failure) if failure else "the store didn't rename it"
            raise KsegError(f"can't be written: {why}", f"{self.name}/{target}")
        self.delete(key)

    def delete(self, key: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError), self._errors("removed", key):
            self._system.delete_file(self._path(key))

    @contextmanager
    def _errors(self, what: str, key: str = "") -> Iterator[None]:
        place = f"{self.name}/{key}".rstrip("/")
        try:
            yield
        except FileNotFoundError:
            if what == "removed":
                raise
            raise OpenError(f"can't be {what}: it isn't there", place) from None
        except system_errors() as error:
            raise (KsegError if what in ("written", "removed") else OpenError)(
                f"can't be {what}: {reason(error)}", place
            ) from error


def system_errors() -> tuple[type[Exception], ...]:
    """Return the errors that pyarrow's file systems raise: some aren't an OSError."""
    from pyarrow import ArrowException

    return OSError, ArrowException


def web_system(root: str) -> Any:
    """Return pyarrow's file system for webhdfs://[USER@]NAMENODE[:PORT].

    The user comes from the URL, HADOOP_USER_NAME, or this process, as with Hadoop's own clients. Raises UsageError if
    fsspec or requests is missing.
    """
    try:
        from kseg.store.web_hdfs import WebHdfs
    except ImportError as error:
        raise UsageError(missing_library(str(error.name), "hdfs"), root) from error
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    place = urlsplit(root)
    user = unquote(place.username or "") or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return PyFileSystem(FSSpecHandler(WebHdfs(place.hostname, place.port or DEFAULT_PORT, user=user)))


def _system(root: str) -> Any:
    """Return the HDFS file system of pyarrow. Raises UsageError if libhdfs or the JVM is missing."""
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(f"{root}/")[0]
    except system_errors() as error:
        first = reason(error)  # the rest has one line per directory without the library
        if "libhdfs" not in first and "libjvm" not in first:
            raise UsageError(f"no file system for it: {first}", root) from error
        raise UsageError(
            f"{first}: libhdfs needs JAVA_HOME, and ARROW_LIBHDFS_DIR and CLASSPATH of a Hadoop client;"
            f" {WEB}://{urlsplit(root).hostname or 'NAMENODE'}:{DEFAULT_PORT}/… needs none of them",
            f"{root}/",
        ) from error
