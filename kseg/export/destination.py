"""Where an export goes: a directory of this machine, or of an object store.

A local directory takes files by renaming them into their place; in an object store, where a rename is a copy, they are
written under the name they keep. Names come out of manifests too, which anybody may have written: none leads outside.
"""

import errno
import os
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

    @property
    def identity(self) -> Identity | None:
        """What the destination is, for the other processes of a run; None where that can't be replaced meanwhile."""

    def keep_outside(self, inputs: Iterable[str | None]) -> None:
        """Raises UsageError if it lies within what is read, or the other way round, be it later. Paths, globs, URLs."""

    def require_plain(self, folder: str = "") -> None:
        """Raises KsegError if anything below a folder is a link or a special file, which a library would follow."""

    def require_alone(self, name: str) -> None:
        """Raises KsegError if a file that a library changes has other names, under which it would change too."""

    def require_in_place(self) -> None:
        """Raises SwappedError if its path leads to another directory by now."""

    def require_unchanged(self) -> None:
        """Raises SwappedError also if anything in it was replaced by a link since `require_plain`."""

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


def open_destination(url: str, identity: Identity | None = None) -> Destination:
    """The destination at a path or URL; nothing is made yet. identity: what another process of the run has found."""
    path = without_file_scheme(url)
    return RemoteDestination(url) if is_remote(path) else LocalDestination(path, identity)


def _checked(name: str, url: str) -> str:
    """The name. Raises KsegError if it could lead out of the destination."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise KsegError(f"{name!r} is no name of a file in it", url)
    return name


class LocalDestination:
    """A directory of this machine, or one that is mounted on all machines of a cluster.

    From its first use on it is held open, and its files are reached below it alone: no link leads out, also if somebody
    puts one there meanwhile. identity: what the directory must be, if another process has opened it before.
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

    def _opened(self, *, make: bool = False) -> HeldDirectory:
        """The directory. Raises OSError if it isn't there or can't be made, SwappedError if it is another one."""
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
        """The directory's; None before it is there."""
        return None if self._held is None else self._held.identity

    def keep_outside(self, inputs: Iterable[str | None]) -> None:
        """Looks where the directory really is, now and whenever it is opened."""
        places = [each for each in inputs if each is not None]
        check_destination(self.url, places)
        self._inputs = [local for each in places for local in local_places(each)]
        held = self._there()
        if held is not None:
            check_held(held, self.url, self._inputs)

    def _there(self) -> HeldDirectory | None:
        """The directory; None if it isn't there yet."""
        try:
            return self._opened()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OpenError(f"can't be listed: {error.strerror}", self.url) from error

    def require_plain(self, folder: str = "") -> None:
        """Looks at all below the folder."""
        held = self._there()
        if held is not None:
            with _listed(held.path / folder):
                held.require_plain(folder)

    def require_alone(self, name: str) -> None:
        """Looks for hard links."""
        status = self._status(name)
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            why = "is a hard link, so another file would change with it; replace it by a copy"
            raise KsegError(why, self._path(name))

    def require_in_place(self) -> None:
        """Looks where the path leads."""
        if self._held is not None:
            self._held.require_in_place()

    def require_unchanged(self) -> None:
        """Looks where the path leads, and at all below it."""
        self.require_in_place()
        try:
            self.require_plain()
        except LinkError as error:
            raise SwappedError(error.path or self.url) from error

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """A new file; its bytes are on the disk when the context ends."""
        with self._written(name), self._new(name) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def _path(self, name: str) -> Path:
        return self._root / _checked(name, self.url)

    def _new(self, name: str) -> Any:
        """A new file to write to, and the folders that it needs."""
        return _repeated(lambda: os.fdopen(self._opened(make=True).open_new(name), "wb"))

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """The content of a small file; None if it isn't there."""
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
        path = self._path(name)
        try:
            held = self._opened()
        except OSError as error:
            raise OpenError(f"can't be opened: {error.strerror}", path) from error
        return os.fdopen(held.open_file(name), "rb")

    def open(self, name: str) -> Any:
        """A file to read from any position."""
        return self._to_read(name)

    def size(self, name: str) -> int | None:
        """A file's bytes; None if it isn't there, or is no regular file."""
        status = self._status(name)
        return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else None

    def _status(self, name: str) -> os.stat_result | None:
        path = self._path(name)
        held = self._there()
        try:
            return None if held is None else held.status(name)
        except OSError as error:
            raise OpenError(f"can't be looked at: {error.strerror}", path) from error

    def claim(self, name: str, content: bytes) -> bool:
        """A link appears with the whole content or not at all, and never in the place of another file.

        Where a file system has no links, a claim looks and then writes.
        """
        with self._written(name):
            if not _repeated(lambda: self._link(name, content)):
                return self.read(name, len(content) + 1) == content  # a server's first answer may have been lost
        return True

    def _link(self, name: str, content: bytes) -> bool:
        """Links a file that is whole to a name; False if something is there."""
        aside = self._write_aside(name, content)
        with self._opened().place(name) as (folder, last):
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
        """A new file beside a name, whole and durable; gives its name. Leaves nothing if that fails."""
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
        """Removes a file aside, if that can be."""
        with suppress(OSError, KsegError):
            self._unlink(aside)

    def replace(self, name: str, content: bytes) -> None:
        """Writes aside and renames."""
        with self._written(name):
            _repeated(lambda: self._move_aside(self._write_aside(name, content), name))

    def _move_aside(self, aside: str, name: str) -> None:
        """Moves a file aside to its name. Leaves nothing if that fails."""
        try:
            self._move(aside, name)
        except BaseException:
            self._drop(aside)
            raise

    def rename(self, name: str, target: str) -> None:
        """Moves a file."""
        _checked(name, self.url)
        with self._written(target), suppress(FileNotFoundError):
            _repeated(lambda: None if self._status(name) is None else self._move(name, target))

    def _move(self, name: str, target: str) -> None:
        held = self._opened()
        with held.place(name) as (folder, last), held.place(target, make=True) as (target_folder, target_last):
            os.rename(last, target_last, src_dir_fd=folder, dst_dir_fd=target_folder)

    def delete(self, name: str) -> None:
        """Removes a file, and folders that it leaves empty: the destination too, if it wasn't there before."""
        with self._written(name), suppress(FileNotFoundError):
            self._unlink(name)
        self._remove_empty_folders(name)

    def _unlink(self, name: str) -> None:
        held = self._there()
        if held is not None:
            with held.place(name) as (folder, last):
                os.unlink(last, dir_fd=folder)

    @contextmanager
    def _written(self, name: str) -> Iterator[None]:
        """Writes a file; where that fails, folders that were made for it go again."""
        path = self._path(name)
        try:
            yield
        except OSError as error:
            self._remove_empty_folders(name)
            raise KsegError(f"can't be written: {error.strerror}", path) from error

    def _remove_empty_folders(self, name: str) -> None:
        """Removes the folders of a file that are empty, the destination too if it wasn't there before."""
        parts = name.split("/")
        with suppress(OSError, KsegError):  # not empty, or gone
            held = self._opened()
            for count in range(len(parts) - 1, 0, -1):
                with held.place("/".join(parts[:count])) as (folder, last), suppress(FileNotFoundError):
                    os.rmdir(last, dir_fd=folder)
            held.remove_if_empty(len(self._missing))

    def names(self, folder: str = "") -> Iterator[str]:
        """The files below a folder, links among them; symbolic links to folders aren't followed."""
        held = self._there()
        if held is not None:
            with _listed(self._path(folder) if folder else self._root):
                yield from (name for name, kind in held.entries(folder) if kind in (stat.S_IFREG, stat.S_IFLNK))


@contextmanager
def _listed(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OpenError(f"can't be listed: {error.strerror}", path) from error


def _repeated(write: Callable[[], _Given]) -> _Given:
    """Does what writes a file again, if what it has made before goes away: other runs tidy up here too."""
    for _ in range(MOST_REPEATS):
        with suppress(FileNotFoundError):
            return write()
    return write()


def _opened(opening: Callable[[], Any], where: str) -> Any:
    try:
        return opening()
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror or error}", where) from error


class RemoteDestination:
    """A folder of a store. In HDFS files are renamed into their place; in a store of objects a rename is a copy."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.renames = is_hdfs(url)
        self.claims_safely = self.renames
        self._is_tried = self.renames
        self._store = open_store(self.url)
        self.identity: Identity | None = None

    def keep_outside(self, inputs: Iterable[str | None]) -> None:
        """By the URLs."""
        check_destination(self.url, inputs)

    def require_plain(self, folder: str = "") -> None:
        """Nothing: stores of objects have no links."""

    def require_alone(self, name: str) -> None:
        """Nothing, as above."""

    def require_in_place(self) -> None:
        """Nothing: a URL leads to one place."""

    def require_unchanged(self) -> None:
        """Nothing, as above."""

    def create(self, name: str) -> AbstractContextManager[Any]:
        """A new object, which appears when it is closed."""
        return self._store.create(_checked(name, self.url))

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """The content of a small file; None if it isn't there."""
        found = self._store.stat(_checked(name, self.url))
        if found is None:
            return None
        size = found.size if most is None else min(found.size, most)
        try:
            return self._store.open(name, found.size).read(0, size)
        except OSError as error:
            raise OpenError(f"can't be read: {error.strerror or reason(error)}", f"{self.url}/{name}") from error

    def open(self, name: str) -> AbstractContextManager[Any]:
        """An object to read from any position."""
        found = self._store.stat(_checked(name, self.url))
        if found is None:
            raise OpenError("can't be read: it isn't there", f"{self.url}/{name}")
        return StoredFile(self._store, found)

    def size(self, name: str) -> int | None:
        """An object's bytes; None if it isn't there."""
        found = self._store.stat(_checked(name, self.url))
        return None if found is None else found.size

    def claim(self, name: str, content: bytes) -> bool:
        """A put on the condition that nothing is there. Where that can't be had, a claim looks and then writes."""
        if not self._is_tried:
            self._is_tried = True
            self.claims_safely = self._refuses_a_second(name, content)
            return self.claims_safely or self._look_and_write(name, content)
        if not self.claims_safely:
            return self._look_and_write(name, content)
        return self._put_if_absent(name, content) or self.read(name, len(content) + 1) == content

    def _refuses_a_second(self, name: str, content: bytes) -> bool:
        """Whether the first of two equal puts is done and the second is refused: some stores ignore the condition."""
        try:
            return self._put_if_absent(name, content) and not self._put_if_absent(name, content)
        except KsegError:
            return False

    def _put_if_absent(self, name: str, content: bytes) -> bool:
        return self._store.put(_checked(name, self.url), content, if_absent=True)

    def _look_and_write(self, name: str, content: bytes) -> bool:
        found = self.read(name, len(content) + 1)
        if found is None:
            self.replace(name, content)
        return found in (None, content)

    def replace(self, name: str, content: bytes) -> None:
        """Writes an object."""
        self._store.put(_checked(name, self.url), content)

    def rename(self, name: str, target: str) -> None:
        """Moves an object, without reading it here; does nothing if it has gone."""
        with suppress(FileNotFoundError):
            self._store.rename(_checked(name, self.url), _checked(target, self.url))

    def delete(self, name: str) -> None:
        """Removes an object."""
        self._store.delete(_checked(name, self.url))

    def names(self, folder: str = "") -> Iterator[str]:
        """The objects below a folder, listed as inputs are."""
        for found in remote.list_files(f"{self.url}/{folder}".rstrip("/"), may_be_missing=True):
            yield found.url[len(self.url) + 1 :]
