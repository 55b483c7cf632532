"""The plan of a dump: which files of which directories are printed, in which order, and from which copies."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.dump.forms import Problems
from kseg.errors import FileError, OpenError
from kseg.formats.file_names import KIND_OF_EXTENSION, LOG_KINDS, FileKind, parse_file_name, parse_partition_directory
from kseg.layouts.template import DUMPED_KINDS
from kseg.releases import Release, value_in
from kseg.system.placed_path import PlacedPath, StrPath, as_path, folder_of

if TYPE_CHECKING:
    from kseg.cluster.directories import FoundAt
    from kseg.cluster.joined_log import JoinedCopies
    from kseg.dump.options import DumpOptions
    from kseg.log.selection import PartitionChoice
    from kseg.system.directory_names import DirectoryNames

SHOWN_NAMES = 3
"""The most names that a note lists of what isn't sent."""


class DumpedDirectory(NamedTuple):
    """Files of one directory, in the order in which they are printed.

    path: in one spelling. names: all that are in it, where it was listed. copies: those of a partition that is read
    from several.
    """

    path: StrPath
    files: tuple[StrPath, ...]
    names: "DirectoryNames | None" = None
    copies: "JoinedCopies | None" = None

    @property
    def place(self) -> StrPath:
        """Its path in one spelling, by which parts of it that were given apart belong together."""
        return os.path.normpath(self.path) if isinstance(self.path, str) else as_path(self.path)

    @property
    def logs(self) -> list[StrPath]:
        """Those of the files that have batches."""
        return [file for file in self.files if parse_file_name(file).kind in LOG_KINDS]

    @property
    def others(self) -> list[StrPath]:
        """Those that have none."""
        return [file for file in self.files if parse_file_name(file).kind not in LOG_KINDS]


class DumpPlan(NamedTuple):
    """Everything that is printed.

    refused: errors of paths, and of directories below them, that can't be read. given: the paths. Of several files rows
    name theirs, of several partitions records name theirs.
    """

    directories: tuple[DumpedDirectory, ...]
    refused: tuple[OpenError, ...]
    given: frozenset[str]
    has_several_files: bool
    has_several_partitions: bool


def plan_dump(paths: list[StrPath], options: "DumpOptions", problems: Problems) -> DumpPlan:
    """Find the files to print: those given, and those of partitions that are meant in directories given.

    Each directory is listed once. `problems` gets notes of copies that aren't printed, and of records that others have.

    Raises:
        NoSuchPartitionError: if there are partitions, but none that is meant.
        UsageError: if copies to be joined are of two clusters.
    """
    files = [path for path in paths if not os.path.isdir(path)]  # noqa: PTH112  pathlib raises for a name that is too long
    planning = _Planning(options, problems, dict.fromkeys(files))
    for path in paths:
        if path not in planning.found:
            planning.find(path)
    has_directory = any(planning.found.values())
    has_several_files = len(paths) > 1 or has_directory or bool(planning.refused)
    has_several = has_several_files and _are_several_partitions(paths, planning.found)
    if not options.choice.is_everything:
        planning.require_choice()
    if has_directory and has_several and options.like is None and not options.all_replicas:
        planning.join_copies()
    directories = tuple(planning.directories(paths))
    given = frozenset(map(str, paths))
    return DumpPlan(directories, tuple(planning.refused), given, has_several_files, has_several)


def _are_several_partitions(paths: list[StrPath], found: "dict[StrPath, FoundAt | None]") -> bool:
    """Whether paths mean, or may mean, more than one partition: a log directory does, however many are in it."""
    directories = set()
    for path in paths:
        at = found.get(path)
        if at is not None and not at.is_partition:
            return True
        directories.add(os.path.abspath(path if at is not None else folder_of(path)))  # noqa: PTH100
    return len(directories) > 1


class _Planning:
    """What is found while a dump is planned.

    found: by path, None for a file. left_out: real paths of directories that aren't printed, since others answer for
    their partitions.
    """

    def __init__(self, options: "DumpOptions", problems: Problems, files: "dict[StrPath, FoundAt | None]") -> None:
        self.found = files
        self.refused: list[OpenError] = []
        self._options, self._problems = options, problems
        self._left_out: frozenset[str] = frozenset()
        self._copies: dict[str, JoinedCopies] = {}
        self._seen: set[tuple[int, int]] | None = None

    def find(self, path: StrPath) -> None:
        """Find what a directory holds; it and those below it that can't be listed are refused."""
        from kseg.cluster.directories import find_at

        try:
            self.found[path] = find_at(path, self.refused.append)
        except OpenError as error:
            error.path = str(path)
            self.refused.append(error)

    def _at_directories(self) -> "list[FoundAt]":
        return [each for each in self.found.values() if each is not None]

    def require_choice(self) -> None:
        """Raise NoSuchPartitionError if there are partitions, but none that is meant."""
        from kseg.cluster.directories import partition_directories
        from kseg.log.selection import NoSuchPartitionError

        choice = self._options.choice
        there = [each for path, at in self.found.items() if at is None for each in partition_directories(path)]
        there += [each for at in self._at_directories() for each in at.partitions()]
        if there and not any(map(choice.takes_directory, there)):
            raise NoSuchPartitionError(choice, there)

    def join_copies(self) -> None:
        """Find which copy of each partition is printed, and what is left out: further copies, and what isn't theirs."""
        from kseg.cluster.cluster import Cluster
        from kseg.cluster.joined_log import JoinedCopies
        from kseg.cluster.taken import taken_of

        replicas = Cluster.of(self._at_directories()).partitions(self._options.choice)
        several = [each.copies for each in replicas if len(each.copies) > 1]
        taken = taken_of(replicas)
        for line in taken.sentences(verbose=self._options.is_verbose):
            self._problems.note(line)
        if several:
            self._problems.note("each record is printed once; --all-replicas prints each copy")
        aside = [each.path for each in taken.left_out if each.offsets is None]
        if aside and not several and self._options.output != "kcat":
            self._problems.note("--all-replicas prints directories that are left out, too")
        further = [copy.path for copies in several for copy in copies[1:]]
        self._left_out = frozenset(os.path.realpath(path) for path in (*further, *aside))
        joined = (JoinedCopies(copies, self._problems.note) for copies in several)
        self._copies = {os.path.abspath(each.place.path): each for each in joined}  # noqa: PTH100
        self._seen = set()

    def directories(self, paths: list[StrPath]) -> "Iterator[DumpedDirectory]":
        """Yield the directories with files to print; files given one after another are together."""
        for is_there, group in groupby(paths, lambda path: self.found.get(path) is not None):
            if not is_there:
                yield from self._of_files([path for path in group if path in self.found])
                continue
            for path in group:
                found = self.found[path]
                assert found is not None
                yield from self._of_directory(path, found)

    def _of_files(self, files: list[StrPath]) -> "Iterator[DumpedDirectory]":
        choice = self._options.choice
        meant = (path for path in files if choice.takes_directory(folder_of(path)))
        for directory, group in groupby(meant, directory_of):
            yield DumpedDirectory(directory, tuple(group))

    def _of_directory(self, path: StrPath, found: "FoundAt") -> "Iterator[DumpedDirectory]":
        """Yield the directories at a path with files to print; refuse the path if there are none."""
        folders = _partitions(found) if not self._options.choice.is_everything else _folders(found)
        listed = [self._listed(*each) for each in folders if self._is_printed(each[0])]
        has_files = any(each.files for each in listed)
        if self._options.takes_only_logs:
            listed = [each._replace(files=tuple(each.logs)) for each in listed]
        listed = [each for each in listed if each.files]
        if not self._has_left_out(path):
            self._refuse_empty(path, found, has_files=has_files, has_logs=bool(listed))
        yield from self._sent(path, listed)

    def _refuse_empty(self, path: StrPath, found: "FoundAt", *, has_files: bool, has_logs: bool) -> None:
        """Refuse a directory without files to print; all commands say the same of one without partitions."""
        from kseg.cluster.directories import NoPartitionError

        if has_files and not has_logs:
            self.refused.append(OpenError("holds no logs", path))
        elif not has_files and (self._options.choice.is_everything or not found.has_partitions):
            empty = OpenError("holds no files", path) if found.is_partition else NoPartitionError(path)
            self.refused.append(empty)

    def _sent(self, path: StrPath, listed: list[DumpedDirectory]) -> Iterable[DumpedDirectory]:
        if not self._options.sends_records:
            return listed
        return _directories_to_send(path, listed, self._options.choice, self._problems)

    def _is_printed(self, directory: Path) -> bool:
        """Whether a directory is meant, isn't left out and, where copies are joined, wasn't there by another name."""
        if not self._options.choice.is_everything and not self._options.choice.takes_directory(directory):
            return False
        if self._seen is None:
            return True
        try:
            status = os.stat(directory)  # noqa: PTH116  quicker
        except OSError:  # who reads its files says so
            return True
        own = status.st_dev, status.st_ino
        if own in self._seen or (self._left_out and os.path.realpath(directory) in self._left_out):
            return False
        self._seen.add(own)
        return True

    def _has_left_out(self, path: StrPath) -> bool:
        """Whether a directory is one of those that aren't printed, or has one in it."""
        own = os.path.realpath(path) if self._left_out else ""
        return any(each == own or each.startswith(f"{own}/") for each in self._left_out)

    def _listed(self, directory: Path, names: "DirectoryNames | None") -> DumpedDirectory:
        """Return the files of a directory that are printed."""
        if names is None:
            from kseg.system.directory_names import list_names

            try:
                names = list_names(directory)
            except FileError as error:
                self._refuse_below(error)
                return DumpedDirectory(directory, ())
        shown = sorted(name for name in names.files if kind_to_dump(name, self._options.like) is not FileKind.UNKNOWN)
        files = tuple(_path_in(directory, name) for name in shown)
        copies = self._copies.get(os.path.abspath(directory)) if self._copies else None  # noqa: PTH100
        return DumpedDirectory(directory, files, names, copies)

    def _refuse_below(self, error: FileError) -> None:
        from kseg.errors import UnreadableError

        self.refused.append(UnreadableError(error.message, error.path))


def _directories_to_send(
    path: StrPath, directories: Iterable[DumpedDirectory], choice: "PartitionChoice", problems: Problems
) -> list[DumpedDirectory]:
    """Return the logs below a path whose records a cluster is to get; note the others.

    Not files that a broker put aside: their records aren't the partition's any more, or are in others too. Nor internal
    topics, of which a cluster has its own, unless one is named. What was given itself is always meant.
    """
    from kseg.decode.record_decoders import INTERNAL_TOPICS

    sent: list[DumpedDirectory] = []
    internal: dict[str, None] = {}
    aside: dict[StrPath, None] = {}
    for each in directories:
        name = None if as_path(each.path) == as_path(path) else parse_partition_directory(each.path)
        aside.update(dict.fromkeys(log for log in each.files if parse_file_name(log).suffix is not None))
        logs = tuple(log for log in each.files if log not in aside)
        if name is None and parse_partition_directory(Path(each.path).absolute()) is None:
            logs = tuple(log for log in logs if parse_file_name(log).kind is FileKind.LOG)  # not bootstrap.checkpoint
        elif name is not None and name.topic in INTERNAL_TOPICS and name.topic not in choice.topics:
            internal.update({name.topic: None} if logs else {})
            logs = ()
        if logs:
            sent.append(each._replace(files=logs))
    if internal:
        problems.note(f"not sent: {_listed(internal)}: a cluster has its own; --topic NAME sends one")
    if aside:
        problems.note(f"not sent: {_listed(aside)}: a broker put them aside; a PATH of its own sends one")
    return sent


def _listed(names: Collection[StrPath]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - SHOWN_NAMES
    first = ", ".join(map(str, islice(names, SHOWN_NAMES)))
    return f"{first} and {more} more" if more > 0 else first


def _folders(found: "FoundAt") -> "Iterator[tuple[Path, DirectoryNames | None]]":
    """Yield the directories in which Kafka's files may lie, with the names in them as far as they were listed."""
    for each in found.walked:
        yield each.path, each.names
        yield from ((directory, each.listed.get(directory)) for directory in each.directories)
    if found.is_partition:
        yield found.here, found.names


def _partitions(found: "FoundAt") -> "Iterator[tuple[Path, DirectoryNames | None]]":
    """Yield the same of partitions alone."""
    walked = {each.path for each in found.walked}
    return (each for each in _folders(found) if each[0] not in walked)


def _path_in(directory: Path, name: str) -> StrPath:
    """The path of a file: as text, unless the directory is placed; one in `.` begins so."""
    return directory / name if isinstance(directory, PlacedPath) else os.path.join(directory, name)  # noqa: PTH118


def directory_of(path: StrPath) -> StrPath:
    """The directory of a file, in one spelling: `a.log` and `./b.log` are neighbours."""
    directory = folder_of(path)
    return os.path.normpath(directory) if isinstance(directory, str) else directory


def file_path(path: StrPath) -> StrPath:
    """The path as java.io.File shows it: slashes that are repeated or at its end are left out, nothing else."""
    if not isinstance(path, str):
        return path
    path = re.sub("/+", "/", path)
    return path.removesuffix("/") or path


def kind_to_dump(path: StrPath, like: Release | None) -> FileKind:
    """The kind that a file is printed as; UNKNOWN if it isn't printed.

    A release's tool looks only at the text after the last dot; kseg knows text files and Kafka's suffixes too.
    """
    if like is None:
        kind = parse_file_name(path).kind
        return FileKind.UNKNOWN if kind is FileKind.LOCK else kind  # it is always empty
    _, dot, extension = as_path(path).name.rpartition(".")
    kind = KIND_OF_EXTENSION.get(dot + extension, FileKind.UNKNOWN)
    return kind if kind in value_in(like, DUMPED_KINDS) else FileKind.UNKNOWN
