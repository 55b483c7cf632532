"""A directory that is held open: its contents are reached through its descriptor, and never through a link."""

import errno
import os
import stat
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kseg.errors import KsegError, OpenError, SwappedError
from kseg.system.files import Identity

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | _CLOEXEC
_BELOW = _DIRECTORY | os.O_NOFOLLOW
_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | _CLOEXEC
_TO_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | _CLOEXEC


class LinkError(KsegError):
    """A symbolic link is in a place for directories and files only."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(
            "is a symbolic link, and kseg doesn't write through links; remove it, or choose another place", path
        )


class HeldDirectory:
    """A directory by its descriptor. All actions apply to this directory, even if its path leads elsewhere later.

    Names are relative to it, with slashes. Raises OSError if it can't be opened; links that lead to it are followed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.descriptor = os.open(path, _DIRECTORY)
        weakref.finalize(self, os.close, self.descriptor).atexit = False
        self.identity = _identity(os.fstat(self.descriptor))

    @property
    def is_removed(self) -> bool:
        """True if it has been removed, so that nothing can be created in it."""
        return os.fstat(self.descriptor).st_nlink == 0

    @property
    def lasting_path(self) -> Path:
        """A path that leads here while this is held, also from forked processes; without such a path its own.

        On Linux nobody can redirect this path, unlike its own.
        """
        through = Path(f"/proc/self/fd/{self.descriptor}")
        with suppress(OSError):
            if _identity(through.stat()) == self.identity:
                return through
        return self.path

    def iter_ancestors(self) -> Iterator[Identity]:
        """Yield the directory itself and its ancestors up to the root, wherever it has been moved to."""
        path, last = ".", None
        while (identity := _identity(os.stat(path, dir_fd=self.descriptor))) != last:
            yield identity
            path, last = f"{path}/..", identity

    def require_in_place(self) -> None:
        """Raise SwappedError if its path now leads elsewhere."""
        try:
            found = self.path.stat()
        except OSError as error:
            raise SwappedError(self.path) from error
        if _identity(found) != self.identity:
            raise SwappedError(self.path)

    @contextmanager
    def folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Open a directory below. Raises LinkError, or OSError if it doesn't exist or can't be created."""
        descriptor = os.dup(self.descriptor)
        try:
            for depth in range(1, len(parts) + 1):
                below = self._open_folder(descriptor, parts[:depth], make=make)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_folder(self, above: int, parts: Sequence[str], *, make: bool = False) -> int:
        """Open the last of some folders by the descriptor of the one above; raises as `folder`."""
        try:
            return os.open(parts[-1], _BELOW, dir_fd=above)
        except FileNotFoundError:
            if not make:
                raise
        except OSError as error:
            self._refuse_link(error, above, parts)
            raise
        with suppress(FileExistsError):
            os.mkdir(parts[-1], dir_fd=above)
        return self._open_folder(above, parts)

    @contextmanager
    def place(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the directory of a name; yield its descriptor and the last part of the name; raises as `folder`."""
        *parts, last = name.split("/")
        with self.folder(parts, make=make) as descriptor:
            yield descriptor, last

    def open_new(self, name: str) -> int:
        """Create a file in a directory, which is created too; return its descriptor. Raises LinkError, OSError."""
        with self.place(name, make=True) as (descriptor, last):
            return os.open(last, _TO_WRITE, 0o666, dir_fd=descriptor)

    def open_file(self, name: str) -> int:
        """Open a file to read. Raises LinkError, or OpenError if it can't be opened or isn't a regular file."""
        try:
            with self.place(name) as (folder, last):
                try:
                    descriptor = os.open(last, _TO_READ, dir_fd=folder)
                except OSError as error:
                    self._refuse_link(error, folder, name.split("/"))
                    raise
        except OSError as error:
            raise OpenError(f"can't be opened: {error.strerror}", self.path / name) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OpenError("isn't a regular file", self.path / name)
        return descriptor

    def status(self, name: str) -> os.stat_result | None:
        """Return the status of a name itself, not of its target, or None if it doesn't exist."""
        try:
            with self.place(name) as (descriptor, last):
                return os.stat(last, dir_fd=descriptor, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def entries(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """Yield the names of files below a folder and their types (`stat.S_IFMT`); none if it isn't a folder.

        Raises LinkError if the folder is a link, OSError if it can't be listed.
        """
        waiting = [tuple(folder.split("/")) if folder else ()]
        above: tuple[str, ...] | None = None
        with ExitStack() as held:
            while waiting:
                parts = waiting.pop()
                try:
                    if not parts:
                        found = _list_entries(self.descriptor)
                    else:
                        if above != parts[:-1]:  # folders of one folder follow each other: it stays open
                            held.close()
                            above = None
                            descriptor = held.enter_context(self.folder(parts[:-1]))
                            above = parts[:-1]
                        found = self._list_folder(descriptor, parts)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                prefix = "".join(f"{part}/" for part in parts)
                yield from ((prefix + name, kind) for name, kind in found if kind != stat.S_IFDIR)
                waiting += [(*parts, name) for name, kind in reversed(found) if kind == stat.S_IFDIR]

    def _list_folder(self, above: int, parts: Sequence[str]) -> list[tuple[str, int]]:
        descriptor = self._open_folder(above, parts)
        try:
            return _list_entries(descriptor)
        finally:
            os.close(descriptor)

    def require_plain(self, folder: str = "") -> None:
        """Raise LinkError or KsegError if a folder has contents other than directories and regular files."""
        for name, kind in self.entries(folder):
            if kind == stat.S_IFLNK:
                raise LinkError(self.path / name)
            if kind != stat.S_IFREG:
                why = "is neither a file nor a directory; remove it, or choose another place"
                raise KsegError(why, self.path / name)

    def remove_if_empty(self, levels: int) -> None:
        """Remove the directory and up to `levels` ancestors, as long as they exist and are empty."""
        descriptor, names = os.dup(self.descriptor), [*self.path.parts[1:]]
        try:
            for name in reversed(names[len(names) - levels :]):
                above = os.open("..", _DIRECTORY, dir_fd=descriptor)
                own = _identity(os.fstat(descriptor))
                os.close(descriptor)
                descriptor = above
                if _identity(os.stat(name, dir_fd=above, follow_symlinks=False)) != own:
                    return
                os.rmdir(name, dir_fd=above)
        except OSError:
            return
        finally:
            os.close(descriptor)

    def _refuse_link(self, error: OSError, above: int, parts: Sequence[str]) -> None:
        """Raise LinkError if an error is due to a link, for which systems have several error numbers.

        parts: the names below the directory; above: the descriptor of the folder that has the last one.
        """
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            with suppress(FileNotFoundError):
                if stat.S_ISLNK(os.stat(parts[-1], dir_fd=above, follow_symlinks=False).st_mode):
                    raise LinkError(self.path.joinpath(*parts)) from error


def _list_entries(descriptor: int) -> list[tuple[str, int]]:
    """Return the names in a directory with their types, sorted by name."""
    found = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                found.append((entry.name, _kind_of(entry)))
    return sorted(found)


def _kind_of(entry: "os.DirEntry[str]") -> int:
    """Return the type as `stat.S_IFMT` does; uses the listing if it has the type."""
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    if entry.is_file(follow_symlinks=False):
        return stat.S_IFREG
    return stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino
