"""The destination of an export: a local directory, or a folder of an object store.

In a local directory, files are renamed to their final names. In an object store, where a rename is a copy, they are
written under their final names. Manifests, which may be anybody's, contain names too: no name leads out of the
destination.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from kseg.errors import KsegError, OpenError, SwappedError, UnreadableError, reason
from kseg.store import remote_files as remote
from kseg.store.location import ASIDE, is_remote, without_file_scheme
from kseg.store.remote_files import check_destination, is_hdfs, local_places, open_store
from kseg.store.stored_file import StoredFile
from kseg.store.target import check_held
from kseg.system.files import Identity
from kseg.system.held_directory import HeldDirectory, LinkError

MOST_REPEATS = 100
"""The most attempts at a folder or a temporary file that others keep removing."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
UNFINISHED = re.compile(rf".*\.[0-9a-f]{{12}}{re.escape(ASIDE)}", re.DOTALL)
"""Names of files that are being written, or that a killed process left."""
_Given = TypeVar("_Given")


class Destination(Protocol):
    """Files by names relative to the destination, with slashes. All methods raise KsegError for failures."""

    url: str
    renames: bool
    """True if files are written under temporary names and renamed."""
    claims_safely: bool
    """True if exactly one of two concurrent claims of a name succeeds; known after the first claim."""

    @property
    def identity(self) -> Identity | None:
        """The destination's identity, for other processes of a run, or None if it can't be replaced meanwhile."""

    def keep_outside(self, inputs: Iterable[str | None]) -> None:
        """Raise UsageError if it lies within an input or contains one, now or later. Inputs: paths, globs, URLs."""

    def require_plain(self, folder: str = "") -> None:
        """Raise KsegError if anything below a folder is a link or a special file, which a library would follow."""

    def require_alone(self, name: str) -> None:
        """Raise KsegError if a file that a library changes has other names: it would change under those too."""

    def require_in_place(self) -> None:
        """Raise SwappedError if the path now leads to another directory."""

    def require_unchanged(self) -> None:
        """Raise SwappedError for another directory, or for a link that has replaced anything since `require_plain`."""

    def create(self, name: str) -> Any:
        """Open a new file that is synced to disk when the context ends successfully."""

    def create_unsynced(self, name: str) -> Any:
        """Open a new file for a caller that syncs it after the context, together with others, which is faster."""

    def sync(self, names: Iterable[str]) -> None:
        """Sync files to disk."""

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """Return the content of a small file, or its first `most` bytes, or None if it is missing."""

    def open(self, name: str) -> Any:
        """Return a context manager: a file to read from any position. Raises OpenError if it can't be opened."""

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, or None if it is missing."""

    def claim(self, name: str, content: bytes) -> bool:
        """Write a complete small file unless it exists; return whether it has that content now."""

    def replace(self, name: str, content: bytes) -> None:
        """Write a small file, replacing an existing one."""

    def rename(self, name: str, target: str) -> None:
        """Move a file, replacing an existing one; do nothing if the file is missing."""

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""

    def names(self, folder: str = "") -> Iterator[str]:
        """Return the files below a folder."""


def open_destination(url: str, identity: Identity | None = None) -> Destination:
    """Return the destination for a path or URL without creating it.

    identity: the identity that another process of the run has found.
    """
    path = without_file_scheme(url)
    return RemoteDestination(url) if is_remote(path) else LocalDestination(path, identity)


def overlap(one: str, other: str) -> bool:
    """Return True if one of two destinations is the other, or lies within it."""
    places = [_real_path(one), _real_path(other)]
    return os.path.commonpath(places) in places


def _real_path(place: str) -> str:
    return os.path.normpath(f"/{place}") if "://" in place else os.path.realpath(place)


def _check_name(name: str, url: str) -> str:
    """Return the name unchanged. Raises KsegError if it could lead out of the destination."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise KsegError(f"{name!r} isn't a valid file name in the destination", url)
    return name


class LocalDestination:
    """A directory of this machine, or one that all machines of a cluster have mounted.

    It is held open from its first use on, and its files are only reached below it. So no link leads out, even if
    somebody adds one meanwhile. identity: the directory's required identity, if another process has opened it before.
    """

    renames = True

    def __init__(self, path: str, identity: Identity | None = None) -> None:
        self._root = Path(path).absolute()
        self._missing = [each for each in (self._root, *self._root.parents) if not os.path.exists(each)]  # noqa: PTH110
        self.url = str(self._root)
        self.claims_safely = True
        self._expected = identity
        self._held: HeldDirectory | None = None
        self._inputs: list[str] = []

    def _open_held(self, *, make: bool = False) -> HeldDirectory:
        """Return the directory.

        Raises OSError if it is missing or can't be made, SwappedError if it is another one.
        """
        held = self._held
        if held is not None and not (held.is_removed and self._missing):
            return held
        if make:
            self._root.mkdir(parents=True, exist_ok=True)
        held = HeldDirectory(self._root)
        if self._expected not in (None, held.identity):
            raise SwappedError(self.url)
        check_held(held, self.url, self._inputs)
        self._held = held
        return held

    @property
    def identity(self) -> Identity | None:
        """Return the identity of the directory, or None if it doesn't exist yet."""
        return None if self._held is None else self._held.identity

    def keep_outside(self, inputs: Iterable[str | None]) -> None:
        """Check that the directory is still at its original location."""
        places = [each for each in inputs if each is not None]
        check_destination(self.url, places)
        self._inputs = [local for each in places for local in local_places(each)]
        held = self._existing()
        if held is not None:
            check_held(held, self.url, self._inputs)

    def _existing(self) -> HeldDirectory | None:
        """Return the directory, or None if it doesn't exist yet."""
        try:
            return self._open_held()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OpenError(f"can't be listed: {error.strerror}", self.url) from error

    def require_plain(self, folder: str = "") -> None:
        """Check everything below the folder."""
        held = self._existing()
        if held is not None:
            with _listing_errors(held.path / folder):
                held.require_plain(folder)

    def require_alone(self, name: str) -> None:
        """Check for hard links."""
        status = self._status(name)
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            why = "the file is a hard link, so another file would change with it; replace it with a copy"
            raise KsegError(why, self._path(name))

    def require_in_place(self) -> None:
        """Check the path's target."""
        if self._held is not None:
            self._held.require_in_place()

    def require_unchanged(self) -> None:
        """Check the path's target, and everything below it."""
        self.require_in_place()
        try:
            self.require_plain()
        except LinkError as error:
            raise SwappedError(error.path or self.url) from error

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """Yield a new file; its bytes are on the disk when the context ends."""
        with self.create_unsynced(name) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def create_unsynced(self, name: str) -> Iterator[Any]:
        """Yield a new file."""
        with self._new_folders(name), self._new(name) as file:
            yield file

    def sync(self, names: Iterable[str]) -> None:
        """Wait until the files' bytes are on the disk."""
        for name in names:
            with self._new_folders(name), self._to_read(name) as file:
                os.fsync(file.fileno())

    def _path(self, name: str) -> Path:
        return self._root / _check_name(name, self.url)

    def _new(self, name: str) -> Any:
        """Return a new file to write to, after making its folders."""
        return _repeat(lambda: os.fdopen(self._open_held(make=True).open_new(name), "wb"))

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """Return the content of a small file, or None if it is missing."""
        path = self._path(name)
        try:
            with self._to_read(name) as file:
                content: bytes = file.read(most)
                return content
        except OSError as error:
            raise UnreadableError(f"can't be read: {error.strerror}", path) from error
        except OpenError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def _to_read(self, name: str) -> Any:
        _check_name(name, self.url)
        try:
            held = self._open_held()
        except OSError as error:
            raise OpenError(f"can't be opened: {error.strerror}", self._path(name)) from error
        return os.fdopen(held.open_file(name), "rb")

    def open(self, name: str) -> Any:
        """Return a file to read from any position."""
        return self._to_read(name)

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, or None if it is missing or isn't a regular file."""
        status = self._status(name)
        return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else None

    def _status(self, name: str) -> os.stat_result | None:
        _check_name(name, self.url)
        held = self._existing()
        try:
            return None if held is None else held.status(name)
        except OSError as error:
            raise OpenError(f"can't be examined: {error.strerror}", self._path(name)) from error

    def claim(self, name: str, content: bytes) -> bool:
        """Claim a name by a link, which appears with the complete content or not at all, and replaces no file.

        If a file system has no links, a claim checks and then writes.
        """
        with self._new_folders(name):
            if not _repeat(lambda: self._link(name, content)):
                return self.read(name, len(content) + 1) == content  # the server's first answer may be lost
        return True

    def _link(self, name: str, content: bytes) -> bool:
        """Link a complete file to a name; return False if the name exists."""
        aside = self._write_aside(name, content)
        with self._open_held().place(name) as (folder, last):
            own = aside.rpartition("/")[2]
            try:
                os.link(own, last, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                self.claims_safely = False
                if self._status(name) is not None:
                    return False
                os.rename(own, last, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(own, dir_fd=folder)
            os.fsync(folder)
        return True

    def _write_aside(self, name: str, content: bytes) -> str:
        """Write a complete, durable file under a temporary name, and return that. Leaves nothing after a failure."""
        aside = f"{name}.{uuid4().hex[:12]}{ASIDE}"
        try:
            with self._new(aside) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            self._drop(aside)
            raise
        return aside

    def _drop(self, aside: str) -> None:
        """Delete a temporary file if possible."""
        with suppress(OSError, KsegError):
            self._unlink(aside)

    def replace(self, name: str, content: bytes) -> None:
        """Write a temporary file and rename it."""
        with self._new_folders(name):
            _repeat(lambda: self._move_aside(self._write_aside(name, content), name))

    def _move_aside(self, aside: str, name: str) -> None:
        """Rename a temporary file. If this fails, the file is removed."""
        try:
            self._move(aside, name)
        except BaseException:
            self._drop(aside)
            raise

    def rename(self, name: str, target: str) -> None:
        """Move a file."""
        _check_name(name, self.url)
        with self._new_folders(target), suppress(FileNotFoundError):
            _repeat(lambda: self._move_existing(name, target))

    def _move_existing(self, name: str, target: str) -> None:
        """Move a file, if it exists."""
        try:
            self._move(name, target)
        except FileNotFoundError:
            if self._status(name) is not None:  # the target's folder was missing
                raise

    def _move(self, name: str, target: str) -> None:
        held = self._open_held()
        with held.place(name) as (folder, last), held.place(target, make=True) as (target_folder, target_last):
            os.rename(last, target_last, src_dir_fd=folder, dst_dir_fd=target_folder)

    def delete(self, name: str) -> None:
        """Remove a file and its folders if they become empty; the destination too, if it didn't exist before."""
        with self._new_folders(name), suppress(FileNotFoundError):
            self._unlink(name)
        self._remove_empty_folders(name)

    def _unlink(self, name: str) -> None:
        held = self._existing()
        if held is not None:
            with held.place(name) as (folder, last):
                os.unlink(last, dir_fd=folder)

    @contextmanager
    def _new_folders(self, name: str) -> Iterator[None]:
        """Remove the folders made for a file if the context fails."""
        _check_name(name, self.url)
        try:
            yield
        except OSError as error:
            self._remove_empty_folders(name)
            raise KsegError(f"can't be written: {error.strerror}", self._path(name)) from error

    def _remove_empty_folders(self, name: str) -> None:
        """Remove the empty folders of a file, and the destination if it didn't exist before."""
        parts = name.split("/")
        with suppress(OSError, KsegError):  # not empty, or missing
            held = self._open_held()
            for count in range(len(parts) - 1, 0, -1):
                with held.place("/".join(parts[:count])) as (folder, last), suppress(FileNotFoundError):
                    os.rmdir(last, dir_fd=folder)
            held.remove_if_empty(len(self._missing))

    def names(self, folder: str = "") -> Iterator[str]:
        """Yield the files below a folder, including links; symbolic links to folders aren't followed."""
        held = self._existing()
        if held is not None:
            with _listing_errors(self._path(folder) if folder else self._root):
                yield from (name for name, kind in held.entries(folder) if kind in (stat.S_IFREG, stat.S_IFLNK))


@contextmanager
def _listing_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OpenError(f"can't be listed: {error.strerror}", path) from error


def _repeat(write: Callable[[], _Given]) -> _Given:
    """Repeat the writing of a file if its result disappears: other runs clean up here too."""
    for _ in range(MOST_REPEATS):
        with suppress(FileNotFoundError):
            return write()
    return write()


def _open_or_refuse(opening: Callable[[], Any], where: str) -> Any:
    try:
        return opening()
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror or error}", where) from error


class RemoteDestination:
    """A folder of a store. HDFS renames files; in an object store a rename is a copy."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.renames = is_hdfs(url)
        self.claims_safely = self.renames
        self._is_tried = self.renames
        self._store = open_store(self.url)
        self.identity: Identity | None = None

    def keep_outside(self, inputs: Iterable[str | None]) -> None:
        """Compare the URLs."""
        check_destination(self.url, inputs)

    def require_plain(self, folder: str = "") -> None:
        """Do nothing: object stores have no links."""

    def require_alone(self, name: str) -> None:
        """Do nothing: object stores have no links."""

    def require_in_place(self) -> None:
        """Do nothing: a URL leads to one place."""

    def require_unchanged(self) -> None:
        """Do nothing: object stores have no links."""

    def create(self, name: str) -> AbstractContextManager[Any]:
        """Return a new object, which appears when it is closed."""
        return self._store.create(_check_name(name, self.url))

    create_unsynced = create

    def sync(self, names: Iterable[str]) -> None:
        """Do nothing: a store keeps each object that it has accepted."""

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """Return the content of a small file, or None if it is missing."""
        found = self._store.stat(_check_name(name, self.url))
        if found is None:
            return None
        size = found.size if most is None else min(found.size, most)
        try:
            return self._store.open(name, found.size).read(0, size)
        except OSError as error:
            raise OpenError(f"can't be read: {error.strerror or reason(error)}", f"{self.url}/{name}") from error

    def open(self, name: str) -> AbstractContextManager[Any]:
        """Return an object to read from any position."""
        found = self._store.stat(_check_name(name, self.url))
        if found is None:
            raise OpenError("can't be read: it isn't there", f"{self.url}/{name}")
        return StoredFile(self._store, found)

    def size(self, name: str) -> int | None:
        """Return an object's bytes, or None if it is missing."""
        found = self._store.stat(_check_name(name, self.url))
        return None if found is None else found.size

    def claim(self, name: str, content: bytes) -> bool:
        """Claim a name by a put on the condition that the object doesn't exist.

        If the store has no such condition, a claim checks and then writes.
        """
        if not self._is_tried:
            self._is_tried = True
            self.claims_safely = self._refuses_a_second(name, content)
            return self.claims_safely or self._look_and_write(name, content)
        if not self.claims_safely:
            return self._look_and_write(name, content)
        return self._put_if_absent(name, content) or self.read(name, len(content) + 1) == content

    def _refuses_a_second(self, name: str, content: bytes) -> bool:
        """Return True if the second of two equal conditional puts is refused: some stores ignore the condition."""
        try:
            return self._put_if_absent(name, content) and not self._put_if_absent(name, content)
        except KsegError:
            return False

    def _put_if_absent(self, name: str, content: bytes) -> bool:
        return self._store.put(_check_name(name, self.url), content, if_absent=True)

    def _look_and_write(self, name: str, content: bytes) -> bool:
        found = self.read(name, len(content) + 1)
        if found is None:
            self.replace(name, content)
        return found in (None, content)

    def replace(self, name: str, content: bytes) -> None:
        """Write an object."""
        self._store.put(_check_name(name, self.url), content)

    def rename(self, name: str, target: str) -> None:
        """Move an object within the store; do nothing if it is missing."""
        with suppress(FileNotFoundError):
            self._store.rename(_check_name(name, self.url), _check_name(target, self.url))

    def delete(self, name: str) -> None:
        """Remove an object."""
        self._store.delete(_check_name(name, self.url))

    def names(self, folder: str = "") -> Iterator[str]:
        """Yield the objects below a folder, listed as inputs are."""
        for found in remote.list_files(f"{self.url}/{folder}".rstrip("/"), may_be_missing=True):
            yield found.url[len(self.url) + 1 :]
