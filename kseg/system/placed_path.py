"""Paths in a scratch directory that stand for what a user named: an archive's members, a tier's objects."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path, PosixPath, PurePath
from typing import Any, Protocol

from kseg.errors import OpenError, counted

StrPath = str | os.PathLike[str]


class RangedBytes(Protocol):
    """The bytes of a file that lie elsewhere. size: how many there are."""

    size: int

    def check(self) -> None:
        """Raises OpenError if none of the bytes can be had: a key is missing."""

    def read(self, position: int, size: int) -> bytes:
        """Bytes from a position on, fewer at the end. Raises OSError if they can't be had, ClusterError as a store."""

    def stretch_end(self, position: int) -> int:
        """Up to where bytes come with those at a position, at no further cost: the end of their chunk."""


class Placement:
    """What a directory or file, its root, and what lies below it stand for.

    name: the user's for it; empty if only what is placed below it has names. partition: the one in a tier that it
    stands for, as PlacedPartition. sources: of its files that are empty, by their real paths, the bytes elsewhere.
    is_far: whether reading those waits for another machine.
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
        """above: that of a directory above the root."""
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
        """Those of all placements that are placed together."""
        return (each.partition for each in self._by_root.values() if each.partition is not None)

    def at(self, real: str) -> "Placement":
        """That of another path: of the nearest root, or this one if there is none."""
        while real and real not in self._by_root:
            real = real.rpartition("/")[0]
        return self._by_root.get(real, self)

    def shown(self, real: str) -> str:
        """What the user wrote for a path: the root's name and what follows, or what is above that name."""
        if f"{real}/".startswith(f"{self.root}/"):
            return self.name + real.removeprefix(self.root)
        if self.root.startswith(f"{real}/"):
            name = PurePath(self.name)
            return str((name, *name.parents)[min(self.root.removeprefix(real).count("/"), len(name.parents))])
        return real

    def of_file(self, real: str) -> "Placement":
        """What is to be known of one of its files alone."""
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

    The system gets the real path; as text it is what the user wrote. Paths that are made from it know theirs too.
    Another process gets all of a placement with its root, and of a file below it no more than that file needs.
    """

    __slots__ = ("placement", "real")

    def __new__(cls, real: StrPath, _: Placement) -> "PlacedPath":
        """As pathlib wants it: without the placement."""
        return super().__new__(cls, real)

    def __init__(self, real: StrPath, placement: Placement) -> None:
        """Takes the real path, and the placement of its nearest root."""
        if PosixPath.__init__ is not object.__init__:  # as of Python 3.12
            super().__init__(real)  # type: ignore[call-arg]
        self.real, self.placement = Path(real), placement

    @property
    def source(self) -> RangedBytes | None:
        """The bytes elsewhere that the file stands for; None if its own are its."""
        return self.placement.sources.get(os.fspath(self))

    def let_stand_for(self, source: RangedBytes) -> None:
        """Makes an empty file of the source's size; it stands for the source. Raises OpenError if that is too large."""
        descriptor = os.open(self, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(descriptor, source.size)
        except OSError as error:
            raise OpenError(f"can't be read: no file here may have its {counted(source.size, 'byte')}", self) from error
        finally:
            os.close(descriptor)
        self.placement.sources[os.fspath(self)] = source

    def standing_for(self, partition: object) -> "PlacedPath":
        """The same path, of a directory that stands for a partition in a tier."""
        return Placement(self, str(self), self.placement, partition).path

    def __fspath__(self) -> str:
        return str(self.real)

    def __str__(self) -> str:
        return self.placement.shown(str(self.real))

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

    def _kept(self, real: Path) -> "PlacedPath":
        return PlacedPath(real, self.placement.at(str(real)))

    def __truediv__(self, key: StrPath) -> "PlacedPath":
        return self._kept(self.real / key)

    @property
    def parent(self) -> "PlacedPath":
        """See Path."""
        return self._kept(self.real.parent)

    @property
    def parents(self) -> tuple["PlacedPath", ...]:
        """See Path."""
        return tuple(map(self._kept, self.real.parents))

    def with_name(self, name: str) -> "PlacedPath":
        """See Path."""
        return self._kept(self.real.with_name(name))

    def with_stem(self, stem: str) -> "PlacedPath":
        """See Path."""
        return self._kept(self.real.with_stem(stem))

    def with_suffix(self, suffix: str) -> "PlacedPath":
        """See Path."""
        return self._kept(self.real.with_suffix(suffix))

    def absolute(self) -> "PlacedPath":
        """See Path."""
        return self

    def resolve(self, strict: bool = False) -> "PlacedPath":
        """See Path."""
        return self._kept(self.real.resolve(strict))

    def relative_to(self, *others: StrPath) -> Path:  # type: ignore[override]
        """See Path."""
        return self.real.relative_to(*(os.fspath(each) for each in others))

    def iterdir(self) -> Generator["PlacedPath", None, None]:
        """See Path."""
        yield from map(self._kept, self.real.iterdir())

    def glob(self, pattern: str) -> Generator["PlacedPath", None, None]:
        """See Path."""
        yield from map(self._kept, self.real.glob(pattern))


def as_path(path: StrPath) -> Path:
    """The same path; one that is placed stays so, which `Path` would make an ordinary one."""
    return path if isinstance(path, Path) else Path(path)


def path_named(name: str) -> Path:
    """What a name stands for that no file here has; a URL keeps its slashes, of which `Path` would drop some."""
    path = Path(name)
    return Placement(path, name).path if "://" in name else path


def is_far(path: StrPath) -> bool:
    """Whether reading what lies at a path waits for a store."""
    return isinstance(path, PlacedPath) and path.placement.is_far


def as_given(path: Path) -> StrPath:
    """A path as text, unless it is placed."""
    return path if isinstance(path, PlacedPath) else str(path)


def folder_of(path: StrPath) -> StrPath:
    """The directory of a file: as text if the path is text, so that it stays as the user wrote it."""
    return path.parent if isinstance(path, Path) else os.path.dirname(path)  # noqa: PTH120


def within(directory: PlacedPath | None, path: str) -> StrPath:
    """A real path in a directory: placed as that is, if it is."""
    return path if directory is None else directory / path
