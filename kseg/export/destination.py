"""Where an export goes: a directory of this machine, or of an object store.

A local directory takes files by renaming them into their place; in an object store, where a rename is a copy, they are
written under the name they keep. Names come out of manifests too, which anybody may have written: none leads outside.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from kseg.errors import KsegError, OpenError
from kseg.store import remote_files as remote
from kseg.system.files import read_regular

ASIDE = ".tmp"
"""Ends the names of files that are being written whole, to be renamed or linked to."""
MOST_REPEATS = 100
"""How often a folder or a file aside may be taken away by others, before that is an error."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_Given = TypeVar("_Given")


class Destination(Protocol):
    """Files by names relative to the destination, with slashes. All raise KsegError where something can't be done."""

    url: str
    renames: bool
    """Whether files are written aside and renamed."""
    claims_safely: bool
    """Whether of two claims of a name at the same time one fails; known after the first claim."""

    def create(self, name: str) -> Any:
        """A context manager: a new file to write bytes to, durable once it ended without an exception."""

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """The content of a small file, or the first `most` bytes of it; None if it isn't there."""

    def open(self, name: str) -> Any:
        """A context manager: a file to read from any position. Raises OpenError if it can't be opened."""

    def size(self, name: str) -> int | None:
        """A file's bytes; None if it isn't there."""

    def claim(self, name: str, content: bytes) -> bool:
        """Writes a whole small file unless one of that name is there; tells whether it is there with that content."""

    def replace(self, name: str, content: bytes) -> None:
        """Writes a small file, in the place of one of that name."""

    def rename(self, name: str, target: str) -> None:
        """Moves a file, in the place of one that is there; does nothing if the file has gone."""

    def delete(self, name: str) -> None:
        """Removes a file, if it is there."""

    def names(self, folder: str = "") -> Iterator[str]:
        """The files below a folder."""


def open_destination(url: str) -> Destination:
    """The destination at a path or URL; nothing is made yet."""
    if url.startswith("file://"):
        return LocalDestination(unquote(urlsplit(url).path))
    if remote.is_hdfs(url):
        return HdfsDestination(url)
    return RemoteDestination(url) if remote.is_remote(url) else LocalDestination(url)


def _checked(name: str, url: str) -> str:
    """The name. Raises KsegError if it could lead out of the destination."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise KsegError(f"{name!r} is no name of a file in it", url)
    return name


class LocalDestination:
    """A directory of this machine, or one that is mounted on all machines of a cluster."""

    renames = True

    def __init__(self, path: str) -> None:
        self._root = Path(path).absolute()
        self._missing = [each for each in (self._root, *self._root.parents) if not os.path.exists(each)]  # noqa: PTH110
        self.url = str(self._root)
        self.claims_safely = True

    def _path(self, name: str) -> Path:
        """A name's path. Raises KsegError if a symbolic link on the way to it leads out of the destination."""
        path = self._root / _checked(name, self.url)
        parent, root = os.path.realpath(path.parent), os.path.realpath(self._root)
        if parent != root and not parent.startswith(root.rstrip(os.sep) + os.sep):
            raise KsegError(f"a symbolic link leads out of {self.url}: remove it, or choose another place", path)
        return path

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """A new file; its bytes are on the disk when the context ends."""
        path = self._path(name)
        with self._written(path), _opened_new(path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """The content of a small file; None if it isn't there."""
        try:
            return read_regular(self._path(name), most)
        except OpenError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    @contextmanager
    def open(self, name: str) -> Iterator[Any]:
        """A file to read from any position."""
        path = self._path(name)
        with _opened(lambda: path.open("rb"), path) as file:
            yield file

    def size(self, name: str) -> int | None:
        """A file's bytes; None if it isn't there, or is no regular file."""
        path = self._path(name)
        try:
            status = path.lstat()
        except OSError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def claim(self, name: str, content: bytes) -> bool:
        """A link appears with the whole content or not at all, and never in the place of another file.

        Where a file system has no links, a claim looks and then writes.
        """
        path = self._path(name)
        with self._written(path):
            if not _repeated(lambda: self._link(path, content)):
                return self.read(name, len(content) + 1) == content  # a server's first answer may have been lost
            _sync_directory(path.parent)
        return True

    def _link(self, path: Path, content: bytes) -> bool:
        aside = _write_aside(path, content)
        try:
            path.hardlink_to(aside)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            self.claims_safely = False
            if os.path.lexists(path):
                return False
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
        return True

    def replace(self, name: str, content: bytes) -> None:
        """Writes aside and renames."""
        path = self._path(name)
        with self._written(path):
            _repeated(lambda: _write_aside(path, content).replace(path))

    def rename(self, name: str, target: str) -> None:
        """Moves a file."""
        path, target_path = self._path(name), self._path(target)

        def move() -> None:
            target_path.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(path):
                path.replace(target_path)

        with self._written(target_path), suppress(FileNotFoundError):
            _repeated(move)

    def delete(self, name: str) -> None:
        """Removes a file, and folders that it leaves empty: the destination too, if it wasn't there before."""
        path = self._path(name)
        with self._written(path):
            path.unlink(missing_ok=True)
        self._remove_empty_folders(path)

    @contextmanager
    def _written(self, path: Path) -> Iterator[None]:
        """Writes a file; where that fails, folders that were made for it go again."""
        try:
            yield
        except OSError as error:
            self._remove_empty_folders(path)
            raise KsegError(f"can't be written: {error.strerror}", path) from error

    def _remove_empty_folders(self, path: Path) -> None:
        """Removes the folders of a file that are empty, the destination too if it wasn't there before."""
        with suppress(OSError):  # not empty
            while path.parent != self._root:
                path = path.parent
                with suppress(FileNotFoundError):
                    path.rmdir()
            for folder in self._missing:
                folder.rmdir()

    def names(self, folder: str = "") -> Iterator[str]:
        """The files below a folder; symbolic links to folders aren't followed."""
        start = self._path(folder) if folder else self._root
        if folder and start.is_symlink():
            raise OpenError("is a symbolic link: no export has one there", start)
        for parent, folders, files in os.walk(start, onerror=_raise_unless_gone):
            folders.sort()
            for name in sorted(files):
                path = Path(parent, name)
                if path.is_file() or path.is_symlink():
                    yield path.relative_to(self._root).as_posix()


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise OpenError(f"can't be listed: {error.strerror}", error.filename) from error


def _opened(opening: Callable[[], Any], where: str | Path) -> Any:
    try:
        return opening()
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror or error}", where) from error


def _repeated(write: Callable[[], _Given]) -> _Given:
    """Does what writes a file again, if what it has made before goes away: other runs tidy up here too."""
    for _ in range(MOST_REPEATS):
        with suppress(FileNotFoundError):
            return write()
    return write()


def _opened_new(path: Path) -> Any:
    """A new file to write to, and the folders that it needs."""

    def make() -> Any:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")

    return _repeated(make)


def _write_aside(path: Path, content: bytes) -> Path:
    """A new file beside a path, whole and durable; none if that fails."""
    aside = path.with_name(f"{path.name}.{uuid4().hex[:12]}{ASIDE}")
    try:
        with _opened_new(aside) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    return aside


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class RemoteDestination:
    """A folder of an object store, by pyarrow's file systems; claims in S3 by s3fs, if that is there."""

    renames = False

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.claims_safely = False
        self._system, self._root = remote.locate(self.url)
        self._is_tried = False

    def _path(self, name: str) -> str:
        return f"{self._root}/{_checked(name, self.url)}"

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """A new object, which appears when it is closed; also if its writing failed: nobody else knows its name."""
        path = self._path(name)
        try:
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
            with self._system.open_output_stream(path) as file:
                yield file
        except OSError as error:
            raise KsegError(f"can't be written: {error}", f"{self.url}/{name}") from error

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """The content of a small file; None if it isn't there."""
        try:
            with self._system.open_input_stream(self._path(name)) as file:
                content: bytes = file.read(most)
                return content
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OpenError(f"can't be read: {error}", f"{self.url}/{name}") from error

    @contextmanager
    def open(self, name: str) -> Iterator[Any]:
        """An object to read from any position."""
        path = self._path(name)
        with _opened(lambda: self._system.open_input_file(path), f"{self.url}/{name}") as file:
            yield file

    def size(self, name: str) -> int | None:
        """An object's bytes; None if it isn't there."""
        try:
            info = self._system.get_file_info(self._path(name))
        except OSError as error:
            raise OpenError(f"can't be looked at: {error}", f"{self.url}/{name}") from error
        size: int | None = info.size
        return size

    def claim(self, name: str, content: bytes) -> bool:
        """A put on the condition that nothing is there. Where that can't be had, a claim looks and then writes."""
        if not self._is_tried:
            self._is_tried = True
            self.claims_safely = self._refuses_a_second(name, content)
            return self.claims_safely or self._look_and_write(name, content)
        if not self.claims_safely:
            return self._look_and_write(name, content)
        return self._put_if_absent(name, content) or self.read(name) == content

    def _refuses_a_second(self, name: str, content: bytes) -> bool:
        """Whether the first of two equal puts is done and the second is refused: some stores ignore the condition."""
        try:
            return self._put_if_absent(name, content) and not self._put_if_absent(name, content)
        except KsegError:
            return False

    def _put_if_absent(self, name: str, content: bytes) -> bool:
        try:
            return remote.put_if_absent(f"{self.url}/{name}", content)
        except OSError as error:
            raise KsegError(f"can't be written: {error}", f"{self.url}/{name}") from error

    def _look_and_write(self, name: str, content: bytes) -> bool:
        found = self.read(name)
        if found is None:
            self.replace(name, content)
        return found in (None, content)

    def replace(self, name: str, content: bytes) -> None:
        """Writes an object."""
        with self.create(name) as file:
            file.write(content)

    def rename(self, name: str, target: str) -> None:
        """Copies an object and removes it, without reading it here; does nothing if it has gone."""
        try:
            self._system.move(self._path(name), self._path(target))
        except FileNotFoundError:
            return
        except OSError as error:
            raise KsegError(f"can't be moved: {error}", f"{self.url}/{name}") from error

    def delete(self, name: str) -> None:
        """Removes an object."""
        try:
            self._system.delete_file(self._path(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise KsegError(f"can't be removed: {error}", f"{self.url}/{name}") from error

    def names(self, folder: str = "") -> Iterator[str]:
        """The objects below a folder."""
        from pyarrow import fs

        root = f"{self._root}/{folder}".rstrip("/")
        selector = fs.FileSelector(root, recursive=True, allow_not_found=True)
        try:
            found = self._system.get_file_info(selector)
        except OSError as error:
            raise OpenError(f"can't be listed: {error}", self.url) from error
        for info in found:
            if info.type == fs.FileType.File:
                yield info.path[len(self._root) + 1 :]


class HdfsDestination(RemoteDestination):
    """A folder of HDFS: files are renamed into their place, and never by that into the place of another one."""

    renames = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.claims_safely = True

    def claim(self, name: str, content: bytes) -> bool:
        """Renames a file that is whole; that fails where one of the name is. What is there then decides."""
        aside = self._write_aside(name, content)
        with suppress(OSError):
            self._system.move(self._path(aside), self._path(name))
        self.delete(aside)
        return self.read(name, len(content) + 1) == content

    def _write_aside(self, name: str, content: bytes) -> str:
        aside = f"{name}.{uuid4().hex[:12]}{ASIDE}"
        with self.create(aside) as file:
            file.write(content)
        return aside

    def replace(self, name: str, content: bytes) -> None:
        """Writes aside and renames, over WebHDFS. libhdfs can't rename into the place of a file: it writes in place."""
        web = getattr(getattr(self._system, "handler", None), "fs", None)
        if web is None:
            super().replace(name, content)
            return
        aside = self._write_aside(name, content)
        try:
            web.replace(self._path(aside), self._path(name))
        except OSError as error:
            raise KsegError(f"can't be written: {error}", f"{self.url}/{name}") from error

    def rename(self, name: str, target: str) -> None:
        """Moves a file; one that is at the target is the same, since no name of an export comes back."""
        from pyarrow import fs

        path, target_path = self._path(name), self._path(target)
        try:
            self._system.create_dir(target_path.rpartition("/")[0], recursive=True)
            failure: OSError | None = None
            try:
                self._system.move(path, target_path)
            except OSError as error:
                failure = error
            left, there = self._system.get_file_info([path, target_path])
        except OSError as error:
            raise KsegError(f"can't be written: {error}", f"{self.url}/{target}") from error
        if left.type == fs.FileType.NotFound:
            return
        if there.type == fs.FileType.NotFound:
            raise KsegError(f"can't be written: {failure or 'the storage did not rename it'}", f"{self.url}/{target}")
        self.delete(name)
