"""Sources in object stores and other file systems, by pyarrow's: listed once, then read by ranges.

A range is copied to the same place of an otherwise empty file on this machine, so that everything that reads logs reads
it too, at the positions of the whole file.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kseg.errors import KsegError, OpenError, UsageError, missing_library
from kseg.export import hdfs
from kseg.system.in_threads import in_threads
from kseg.system.scratch import scratch_directory

PIECE = 8 << 20
"""Bytes that a request asks for."""
PIECES_AT_ONCE = 4
"""Requests for pieces of a file that are under way at the same time."""
S3 = ("s3://", "s3a://")
UNSORTED = "--x-s3"
"""Ends the names of buckets whose objects aren't listed in order."""
SMALL_FILES = ("leader-epoch-checkpoint", ".txnindex", ".snapshot")
"""Ends of names of files that say something about a partition as a whole."""


class RemoteFile(NamedTuple):
    """A file as it was listed: bytes, and milliseconds since 1970 of its last change."""

    url: str
    size: int
    modified_ms: int


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


@cache
def file_system(root: str) -> Any:
    """Pyarrow's file system for the URLs that begin so. Raises UsageError if pyarrow knows none."""
    import pyarrow as pa
    from pyarrow import fs

    if root.startswith(f"{hdfs.SCHEME}://"):
        return hdfs.web_file_system(root)
    try:
        return fs.FileSystem.from_uri(_with_environment(root))[0]
    except (pa.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0]  # of a line for each place where a library isn't
        if "libhdfs" in first or "libjvm" in first:
            raise hdfs.no_libhdfs(root, first) from error
        raise UsageError(f"no file system for it: {first}", root) from error


def _with_environment(root: str) -> str:
    """An S3 URL with the endpoint of AWS_ENDPOINT_URL, which pyarrow doesn't look at."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if not root.startswith("s3://") or not endpoint:
        return root
    scheme, _, place = endpoint.partition("://")
    region = os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION", "us-east-1"))
    return f"{root}?endpoint_override={place}&scheme={scheme}&region={region}"


def locate(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    scheme, _, path = url.partition("://")
    authority, _, rest = path.partition("/")
    if scheme in ("s3", "s3a", "gs", "abfs", "abfss"):
        return file_system(f"{'s3' if scheme == 's3a' else scheme}://{authority}"), path.rstrip("/")
    return file_system(f"{scheme}://{authority}/"), "/" + rest.rstrip("/")


def is_hdfs(url: str) -> bool:
    """Whether a URL is one of HDFS, which renames files as disks do."""
    return url.partition("://")[0] in hdfs.SCHEMES


def list_files(url: str) -> Iterator[RemoteFile]:
    """The files at a URL and below it; of S3, with s3fs, by several requests at once.

    Raises OpenError if it can't be listed.
    """
    listed = _objects(url) if url.startswith(S3) else None
    return iter(listed or _list_files(url))


def _objects(url: str) -> list[RemoteFile] | None:
    """The objects of S3; None if there are none, or s3fs isn't there: then pyarrow looks, and says what is wrong."""
    try:
        from botocore.exceptions import BotoCoreError, ClientError

        from kseg.tiered.s3_folder import S3Folder
    except ImportError:
        return None
    start, _, path = url.partition("://")
    bucket, _, folder = path.strip("/").partition("/")
    if bucket.endswith(UNSORTED):
        return None
    try:
        objects = list(S3Folder(bucket, f"{folder}/" if folder else "").objects())
    except (BotoCoreError, ClientError):
        return None
    is_file = [found for found in objects if not found.key.endswith("/")]
    return [RemoteFile(f"{start}://{bucket}/{found.key}", found.size, found.modified_ms) for found in is_file]


def _list_files(url: str) -> Iterator[RemoteFile]:
    from pyarrow import fs

    system, path = locate(url)
    try:
        found = system.get_file_info(fs.FileSelector(path, recursive=True))
    except OSError as error:
        raise OpenError(f"can't be listed: {error}", url) from error
    prefix = url.rstrip("/").removesuffix(path)
    for info in found:
        if info.type == fs.FileType.File:
            yield RemoteFile(prefix + info.path, info.size, (info.mtime_ns or 0) // 1_000_000)


def copy_range(url: str, target: Path, start: int, end: int) -> None:
    """Copies bytes of a file to the same place of a local one. Raises OpenError if they can't be read."""
    with _copying(url, target, start) as (file, descriptor):
        _copy(file, descriptor, start, end)


def copy_file(url: str, target: Path) -> None:
    """Copies a whole file. Raises OpenError if it can't be read."""
    with _copying(url, target) as (file, descriptor):
        _copy(file, descriptor, 0, file.size())


@contextmanager
def _copying(url: str, target: Path, start: int | None = None) -> Iterator[tuple[Any, int]]:
    """The file, and the descriptor of one on this machine to write to."""
    system, path = locate(url)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        with system.open_input_file(path) as file:
            yield file, descriptor
    except OSError as error:
        raise OpenError(f"can't be read: {error}", url, start) from error
    finally:
        os.close(descriptor)


def read_range(url: str, start: int, end: int) -> bytes:
    """Bytes of a file. Raises OpenError if they can't be read."""
    system, path = locate(url)
    try:
        with system.open_input_file(path) as file:
            found: bytes = file.read_at(end - start, start)
            return found
    except OSError as error:
        raise OpenError(f"can't be read: {error}", url, start) from error


def _copy(file: Any, descriptor: int, start: int, end: int) -> None:
    """Copies the bytes, several pieces at once."""

    def copy(position: int) -> None:
        os.pwrite(descriptor, file.read_at(min(PIECE, end - position), position), position)

    for _ in in_threads(copy, range(start, end, PIECE), PIECES_AT_ONCE):
        pass


def put_if_absent(url: str, content: bytes) -> bool:
    """Writes an object unless one is there; False if one is. By s3fs: pyarrow's put has no conditions.

    Raises KsegError where no such put can be had, OSError if it fails.
    """
    try:
        import s3fs
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise KsegError(missing_library("s3fs", "s3"), url) from error
    scheme, _, path = url.partition("://")
    if scheme not in ("s3", "s3a"):
        raise KsegError("this storage can't create an object only where there is none: choose another place", url)
    region = os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION"))
    settings = {"endpoint_url": os.environ.get("AWS_ENDPOINT_URL") or None, "client_kwargs": {"region_name": region}}
    try:
        s3fs.S3FileSystem(**settings).pipe_file(path, content, chunksize=len(content) + 1, mode="create")
    except FileExistsError:
        return False
    except BotoCoreError as error:
        raise OSError(str(error)) from error
    except OSError as error:
        if error.errno == errno.EINVAL:  # some stores don't say which condition failed
            return False
        raise
    return True


@contextmanager
def local_directory(url: str, endings: Iterable[str]) -> Iterator[Path]:
    """A directory on this machine, named as the one at the URL, with those of its files whose names end so."""
    with scratch_directory() as scratch:
        directory = scratch / url.rstrip("/").rpartition("/")[2]
        directory.mkdir()
        for file in list_files(url):
            name = file.url.rpartition("/")[2]
            if name.endswith(tuple(endings)) and file.url.rpartition("/")[0] == url.rstrip("/"):
                copy_range(file.url, directory / name, 0, file.size)
        yield directory
