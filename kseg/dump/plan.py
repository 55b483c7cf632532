"""The plan of a dump: the printed files, their order, and the copies they come from."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.dump.forms import Problems
from kseg.errors import FileError, OpenError
from kseg.formats.file_names import KIND_OF_EXTENSION, LOG_KINDS, FileKind, parse_file_name, parse_partition_directory
from kseg.layouts.template import DUMPED_KINDS
from kseg.named_tuple import NamedTuple
from kseg.releases import Release, value_in
from kseg.system.placed_path import PlacedPath, StrPath, as_path, folder_of

if TYPE_CHECKING:
    from kseg.cluster.directories import FoundAt
    from kseg.cluster.joined_log import JoinedCopies
    from kseg.dump.options import DumpOptions
    from kseg.log.selection import PartitionChoice
    from kseg.system.directory_names import DirectoryNames

SHOWN_NAMES = 3
"""Most names of unsent files that a note lists."""


class DumpedDirectory(NamedTuple):
    """Files of one directory, in the order of printing.

    path: in one spelling. names: all names in it, if it was listed. copies: the copies of a partition that is read from
    several.
    """

    path: StrPath
    files: tuple[StrPath, ...]
    names: "DirectoryNames | None" = None
    copies: "JoinedCopies | None" = None

    @property
    def place(self) -> StrPath:
        """The path in one spelling, which joins parts of a directory that were given separately."""
        return os.path.normpath(self.path) if isinstance(self.path, str) else as_path(self.path)

    @property
    def logs(self) -> list[StrPath]:
        """The files that have batches."""
        return [file for file in self.files if parse_file_name(file).kind in LOG_KINDS]

    @property
    def others(self) -> list[StrPath]:
        """The files that have no batches."""
        return [file for file in self.files if parse_file_name(file).kind not in LOG_KINDS]


class DumpPlan(NamedTuple):
    """All printed files.

    refused: errors of unreadable paths, and of unreadable directories below them. given: the given paths.
    has_several_files: rows name their file. has_several_partitions: records name their partition.
    """

    directories: tuple[DumpedDirectory, ...]
    refused: tuple[OpenError, ...]
    given: frozenset[str]
    has_several_files: bool
    has_several_partitions: bool


def plan_dump(paths: list[StrPath], options: "DumpOptions", problems: Problems) -> DumpPlan:
    """Find the files to print: given files, and files of chosen partitions in given directories.

    Each directory is listed once. `problems` gets notes about copies that aren't printed, and about records that other
    copies have.

    Raises:
        NoSuchPartitionError: if there are partitions, but not all chosen ones.
        UsageError: if copies to be joined belong to two clusters.
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
    """Return True if paths mean, or may mean, more than one partition. A log directory always does."""
    directories = set()
    for path in paths:
        at = found.get(path)
        if at is not None and not at.is_partition:
            return True
        directories.add(os.path.abspath(path if at is not None else folder_of(path)))  # noqa: PTH100
    return len(directories) > 1


class _Planning:
    """The findings of a plan in progress.

    found: by path, None for a file. left_out: real paths of directories that aren't printed, since other copies are
    used for their partitions.
    """

    def __init__(self, options: "DumpOptions", problems: Problems, files: "dict[StrPath, FoundAt | None]") -> None:
        self.found = files
        self.refused: list[OpenError] = []
        self._options, self._problems = options, problems
        self._left_out: frozenset[str] = frozenset()
        self._copies: dict[str, JoinedCopies] = {}
        self._seen: set[tuple[int, int]] | None = None

    def find(self, path: StrPath) -> None:
        """Find the contents of a directory; refuse directories that can't be listed."""
        from kseg.cluster.directories import find_at

        try:
            self.found[path] = find_at(path, self.refused.append)
        except OpenError as error:
            error.path = str(path)
            self.refused.append(error)

    def _at_directories(self) -> "list[FoundAt]":
        return [each for each in self.found.values() if each is not None]

    def require_choice(self) -> None:
        """Raise NoSuchPartitionError if there are partitions, but not all chosen ones."""
        from kseg.cluster.directories import partition_directories

        there = [each for path, at in self.found.items() if at is None for each in partition_directories(path)]
        there += [each for at in self._at_directories() for each in at.partitions()]
        self._options.choice.require(there)

    def join_copies(self) -> None:
        """Find the printed copy of each partition; omit further copies and directories of other partitions."""
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
            self._problems.note("--all-replicas also prints omitted directories")
        further = [copy.path for copies in several for copy in copies[1:]]
        self._left_out = frozenset(os.path.realpath(path) for path in (*further, *aside))
        joined = (JoinedCopies(copies, self._problems.note) for copies in several)
        self._copies = {os.path.abspath(each.place.path): each for each in joined}  # noqa: PTH100
        self._seen = set()

    def directories(self, paths: list[StrPath]) -> "Iterator[DumpedDirectory]":
        """Yield the directories with files to print; consecutive given files are together."""
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
        listed = [self._printed_files(*each) for each in folders if self._is_printed(each[0])]
        has_files = any(each.files for each in listed)
        if self._options.takes_only_logs:
            listed = [each._replace(files=tuple(each.logs)) for each in listed]
        listed = [each for each in listed if each.files]
        if not self._has_left_out(path):
            self._refuse_empty(path, found, has_files=has_files, has_logs=bool(listed))
        yield from self._files_to_send(path, listed)

    def _refuse_empty(self, path: StrPath, found: "FoundAt", *, has_files: bool, has_logs: bool) -> None:
        """Refuse a directory without files to print; all commands report a directory without partitions alike."""
        from kseg.cluster.directories import NoPartitionError

        if has_files and not has_logs:
            self.refused.append(OpenError("has no logs", path))
        elif not has_files and (self._options.choice.is_everything or not found.has_partitions):
            empty = OpenError("has no files", path) if found.is_partition else NoPartitionError(path)
            self.refused.append(empty)

    def _files_to_send(self, path: StrPath, listed: list[DumpedDirectory]) -> Iterable[DumpedDirectory]:
        if not self._options.sends_records:
            return listed
        return _directories_to_send(path, listed, self._options.choice, self._problems)

    def _is_printed(self, directory: Path) -> bool:
        """Return True if a directory is chosen, isn't omitted, and wasn't joined under another name."""
        if not self._options.choice.is_everything and not self._options.choice.takes_directory(directory):
            return False
        if self._seen is None:
            return True
        try:
            status = os.stat(directory)  # noqa: PTH116  quicker
        except OSError:  # the reader of its files reports it
            return True
        own = status.st_dev, status.st_ino
        if own in self._seen or (self._left_out and os.path.realpath(directory) in self._left_out):
            return False
        self._seen.add(own)
        return True

    def _has_left_out(self, path: StrPath) -> bool:
        """Return True if a directory is omitted, or has an omitted one in it."""
        own = os.path.realpath(path) if self._left_out else ""
        return any(each == own or each.startswith(f"{own}/") for each in self._left_out)

    def _printed_files(self, directory: Path, names: "DirectoryNames | None") -> DumpedDirectory:
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
    """Return the logs below a path whose records are sent to a cluster; note the others.

    Files that a broker set aside are omitted: their records no longer belong to the partition, or are in other files
    too. Internal topics are omitted unless they are named, since a cluster has its own. A given file is always
    included.
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
            logs = tuple(log for log in logs if parse_file_name(log).kind is FileKind.LOG)  # no bootstrap.checkpoint
        elif name is not None and name.topic in INTERNAL_TOPICS and name.topic not in choice.topics:
            internal.update({name.topic: None} if logs else {})
            logs = ()
        if logs:
            sent.append(each._replace(files=logs))
    if internal:
        problems.note(
            f"not sent, since a cluster has its own: {_list_first(internal)}; specify --topic NAME to send one"
        )
    if aside:
        problems.note(
            f"not sent, since a broker set them aside: {_list_first(aside)}; specify its own PATH to send one"
        )
    return sent


def _list_first(names: Collection[StrPath]) -> str:
    """Return the first names, and the number of the others."""
    more = len(names) - SHOWN_NAMES
    first = ", ".join(map(str, islice(names, SHOWN_NAMES)))
    return f"{first} and {more} more" if more > 0 else first


def _folders(found: "FoundAt") -> "Iterator[tuple[Path, DirectoryNames | None]]":
    """Yield the directories that may have Kafka's files, with their names as far as they were listed."""
    for each in found.walked:
        yield each.path, each.names
        yield from ((directory, each.listed.get(directory)) for directory in each.directories)
    if found.is_partition:
        yield found.here, found.names


def _partitions(found: "FoundAt") -> "Iterator[tuple[Path, DirectoryNames | None]]":
    """Yield the same only for partitions."""
    walked = {each.path for each in found.walked}
    return (each for each in _folders(found) if each[0] not in walked)


def _path_in(directory: Path, name: str) -> StrPath:
    """Return the path of a file: as text, unless the directory is a stand-in; in `.` it begins with `./`."""
    return directory / name if isinstance(directory, PlacedPath) else os.path.join(directory, name)  # noqa: PTH118


def directory_of(path: StrPath) -> StrPath:
    """Return the directory of a file, in one spelling: `a.log` and `./b.log` are neighbours."""
    directory = folder_of(path)
    return os.path.normpath(directory) if isinstance(directory, str) else directory


def file_path(path: StrPath) -> StrPath:
    """Return the path as java.io.File prints it, without repeated and trailing slashes."""
    if not isinstance(path, str):
        return path
    path = re.sub("/+", "/", path)
    return path.removesuffix("/") or path


def kind_to_dump(path: StrPath, like: Release | None) -> FileKind:
    """Return the kind that a file is printed as; UNKNOWN if it isn't printed.

    A release's tool only reads the text after the last dot; kseg also knows text files and Kafka's suffixes.
    """
    if like is None:
        kind = parse_file_name(path).kind
        return FileKind.UNKNOWN if kind is FileKind.LOCK else kind  # a lock file is always empty
    _, dot, extension = as_path(path).name.rpartition(".")
    kind = KIND_OF_EXTENSION.get(dot + extension, FileKind.UNKNOWN)
    return kind if kind in value_in(like, DUMPED_KINDS) else FileKind.UNKNOWN
