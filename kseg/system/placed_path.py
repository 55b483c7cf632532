"""Paths in a scratch directory that represent the user's: an archive's members, a tier's objects."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path, PosixPath, PurePath
from typing import Any, Protocol

from kseg.errors import OpenError, plural

StrPath = str | os.PathLike[str]


class RangedBytes(Protocol):
    """The bytes of a file in another place. size: their number."""

    size: int

    def check(self) -> None:
        """Raise OpenError if none of the bytes can be read, as a key is missing."""

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from a position on, fewer at the end.

        Raises OSError if they can't be read, ClusterError as a store.
        """

    def stretch_end(self, position: int) -> int:
        """Return the end of the bytes that come with a position at no further cost: its chunk's."""


class Placement:
    """The meaning of a directory or file, its root, and its contents.

    name: the user's; empty if only placements below it have names. partition: the one in a tier that it represents, as
    PlacedPartition. sources: the remote bytes of its empty files, by their real paths. is_far: whether reading those
    waits for another machine.
    """

    def __init__(
        self,
        root: StrPath,
        name: str,
        above: "Placement | None" = None,
        partition: object | None = None,
        *,
        is_far: bool = False,
    ) -> None:
        """Take the root and its meaning. above: the placement of a directory above the root."""
        self.root, self.name, self.partition = os.fspath(root), name, partition
        self.sources: dict[str, RangedBytes] = {}
        self.is_far: bool = is_far or (above is not None and above.is_far)
        self._above = above
        self._join()

    def _join(self) -> None:
        self._by_root: dict[str, Placement] = {} if self._above is None else self._above._by_root
        if self.name:
            self._by_root[self.root] = self

    @property
    def path(self) -> "PlacedPath":
        """The path of its root."""
        return PlacedPath(self.root, self)

    @property
    def partitions(self) -> Iterator[object]:
        """Yield the partitions of all connected placements."""
        return (each.partition for each in self._by_root.values() if each.partition is not None)

    def at(self, real: str) -> "Placement":
        """Return the placement of another path: the nearest root's, or this one if there is none."""
        while real and real not in self._by_root:
            real = real.rpartition("/")[0]
        return self._by_root.get(real, self)

    def display(self, real: str) -> str:
        """Return the user's form of a path: the root's name and the rest, or the part above that name."""
        if f"{real}/".startswith(f"{self.root}/"):
            return self.name + real.removeprefix(self.root)
        if self.root.startswith(f"{real}/"):
            name = PurePath(self.name)
            return str((name, *name.parents)[min(self.root.removeprefix(real).count("/"), len(name.parents))])
        return real

    def of_file(self, real: str) -> "Placement":
        """Return the placement for one of its files alone."""
        alone = Placement(self.root, self.name)
        alone.sources = {path: source for path, source in self.sources.items() if path == real}
        return alone

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_by_root"}  # others aren't sent along

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._join()


class PlacedPath(PosixPath):
    """A path in a scratch directory that knows its placement.

    The system gets the real path; as text it is the user's path. Paths made from it know their placements, too.
    Another process gets the complete placement with its root, and with a file below it only that file's part.
    """

    __slots__ = ("placement", "real")

    def __new__(cls, real: StrPath, _: Placement) -> "PlacedPath":
        """Make the path as pathlib requires: without the placement."""
        return super().__new__(cls, real)

    def __init__(self, real: StrPath, placement: Placement) -> None:
        """Take the real path, and the placement of its nearest root."""
        if PosixPath.__init__ is not object.__init__:  # as of Python 3.12
            super().__init__(real)  # type: ignore[call-arg]
        self.real, self.placement = Path(real), placement

    @property
    def source(self) -> RangedBytes | None:
        """The remote bytes of the file, or None if it has its own."""
        return self.placement.sources.get(os.fspath(self))

    def let_stand_for(self, source: RangedBytes) -> None:
        """Make an empty file of the source's size that represents it. Raises OpenError if that is too large."""
        descriptor = os.open(self, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(descriptor, source.size)
        except OSError as error:
            raise OpenError(
                f"can't be read: this machine allows no file of {plural(source.size, 'byte')}", self
            ) from error
        finally:
            os.close(descriptor)
        self.placement.sources[os.fspath(self)] = source

    def standing_for(self, partition: object) -> "PlacedPath":
        """Return the same path, of a directory that represents a partition in a tier."""
        return Placement(self, str(self), self.placement, partition).path

    def __fspath__(self) -> str:
        return str(self.real)

    def __str__(self) -> str:
        return self.placement.display(str(self.real))

    def __repr__(self) -> str:
        return f"PlacedPath({str(self.real)!r}, {str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.real == (other.real if isinstance(other, PlacedPath) else other)

    def __hash__(self) -> int:
        return hash(self.real)

    def __lt__(self, other: PurePath) -> bool:
        return self.real < Path(os.fspath(other))

    def __gt__(self, other: PurePath) -> bool:
        return self.real > Path(os.fspath(other))

    def __reduce__(self) -> tuple[Any, ...]:
        real, placement = str(self.real), self.placement
        return PlacedPath, (real, placement if real == placement.root else placement.of_file(real))

    def _with_placement(self, real: Path) -> "PlacedPath":
        return PlacedPath(real, self.placement.at(str(real)))

    def __truediv__(self, key: StrPath) -> "PlacedPath":
        return self._with_placement(self.real / key)

    @property
    def parent(self) -> "PlacedPath":
        """See Path."""
        return self._with_placement(self.real.parent)

    @property
    def parents(self) -> tuple["PlacedPath", ...]:
        """See Path."""
        return tuple(map(self._with_placement, self.real.parents))

    def with_name(self, name: str) -> "PlacedPath":
        """See Path."""
        return self._with_placement(self.real.with_name(name))

    def with_stem(self, stem: str) -> "PlacedPath":
        """See Path."""
        return self._with_placement(self.real.with_stem(stem))

    def with_suffix(self, suffix: str) -> "PlacedPath":
        """See Path."""
        return self._with_placement(self.real.with_suffix(suffix))

    def absolute(self) -> "PlacedPath":
        """See Path."""
        return self

    def resolve(self, strict: bool = False) -> "PlacedPath":
        """See Path."""
        return self._with_placement(self.real.resolve(strict))

    def relative_to(self, *others: StrPath) -> Path:  # type: ignore[override]
        """See Path."""
        return self.real.relative_to(*(os.fspath(each) for each in others))

    def iterdir(self) -> Generator["PlacedPath", None, None]:
        """See Path."""
        yield from map(self._with_placement, self.real.iterdir())

    def glob(self, pattern: str) -> Generator["PlacedPath", None, None]:
        """See Path."""
        yield from map(self._with_placement, self.real.glob(pattern))


def as_path(path: StrPath) -> Path:
    """Return a path as a Path; one with a placement keeps it, which `Path` would drop."""
    return path if isinstance(path, Path) else Path(path)


def path_of_name(name: str) -> Path:
    """Return the path of a name that isn't a local file; a URL keeps its slashes, of which `Path` would drop some."""
    path = Path(name)
    return Placement(path, name).path if "://" in name else path


def is_far(path: StrPath) -> bool:
    """Return True if reading at a path waits for a store."""
    return isinstance(path, PlacedPath) and path.placement.is_far


def as_given(path: Path) -> StrPath:
    """Return a path as text, unless it has a placement."""
    return path if isinstance(path, PlacedPath) else str(path)


def folder_of(path: StrPath) -> StrPath:
    """Return the directory of a file: as text if the path is text, so that it stays as the user wrote it."""
    return path.parent if isinstance(path, Path) else os.path.dirname(path)  # noqa: PTH120


def within(directory: PlacedPath | None, path: str) -> StrPath:
    """Return a real path in a directory, with the directory's placement if it has one."""
    return path if directory is None else directory / path
