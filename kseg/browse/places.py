"""Places that aren't logs: directories, indexes, and files of lines."""

import os
import re
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from kseg.browse.bytes import FileBytes
from kseg.browse.facts import (
    cheap_metadata,
    facts_of_file,
    facts_of_log_dir,
    facts_of_partition,
    partition_at,
    settings_of,
)
from kseg.browse.log_place import LogPlace
from kseg.browse.place import BrowsedPlace, PlaceRow, ReadRows, Scope, ShownRow, explained_at, fact, facts
from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import (
    LogDir,
    NoPartitionError,
    directory_at,
    is_of_log_dir,
    is_partition,
    pass_over,
)
from kseg.cluster.metadata_copy import AdjacentMetadata
from kseg.doctor.kinds import path_word
from kseg.errors import OpenError, plural
from kseg.explain.field import ExplainedField, shown_value
from kseg.explain.items import ENTRY_KINDS, EntryItems, Item, explain_file
from kseg.formats.file_names import LOG_KINDS, FileKind, parse_file_name, parse_partition_directory
from kseg.sizes import human_size
from kseg.system.terminal_text import escaped_text

ENOUGH_ITEMS = 512
_WIDTH = 14
_SIZE_WIDTH = 9
_NAME_WIDTHS = (32, 48)
"""The least and the most characters of a file's name; a longer name shifts its size."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]*")
"""A topic's name that can't be mistaken for a pattern or an option."""


class EntryPlace(BrowsedPlace):
    """The entries of an index or a similar file, each read when it is shown."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OpenError if it can't be opened, KsegError if it has no entries."""
        super().__init__(path.name, path)
        self._items = EntryItems(path)
        self.heading = " ".join(f"{name:>{_WIDTH}}" for name in self._items.names)

    @property
    def count(self) -> int:
        """The number of entries, including the bytes after them."""
        return self._items.count

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return an entry's values."""
        item = self._items.item(number)
        values = [leaf for field in item.fields for leaf in field.leaves()]
        if item.problem is not None or len(values) != len(self._items.names):
            return PlaceRow(
                escaped_text(f"{item.title}: {plural(item.size, 'byte')}"), item.problem is not None, is_open=False
            )
        return PlaceRow(
            escaped_text(" ".join(f"{shown_value(leaf, self.clock.zone):>{_WIDTH}}" for leaf in values)), is_open=False
        )

    def read_row(self, number: int) -> ShownRow:
        """Return an entry's fields."""
        return ShownRow(self._items.item(number), FileBytes(self.path))

    def printed_by(self, number: int) -> list[str] | None:
        """Return kseg's arguments that explain an entry."""
        return explained_at(self.path, self._items.item(number).position)

    def row_at(self, position: int) -> int:
        """Return the entry that holds a position."""
        return min(max(position, 0) // self._items.entry_size, max(self.count - 1, 0))

    def look_again(self) -> str:
        """Open the file again if its size has changed."""
        size = FileBytes(self.path).size
        if size == self._items.size or not size:
            return ""
        old = self._items.size
        self._items.close()
        self._items = EntryItems(self.path)
        return f"the file's size changed from {old} to {plural(self._items.size, 'byte')}"

    def close(self) -> None:
        """Close the file."""
        self._items.close()


class PiecesPlace(BrowsedPlace):
    """Read the pieces of a file from the beginning. A piece is a line, or the entire file."""

    def __init__(self, path: Path) -> None:
        """Read the first pieces.

        Raises OpenError if the file can't be read, KsegError if kseg doesn't know its type.
        """
        super().__init__(path.name, path)
        self._begin()

    def _begin(self) -> None:
        self._known: list[Item] = []
        self._coming = explain_file(self.path)
        self._size = FileBytes(self.path).size
        self.take_more(self.read_more())

    @property
    def count(self) -> int:
        """The number of known pieces."""
        return len(self._known)

    def read_more(self) -> ReadRows:
        """Read pieces after the known ones."""
        return ReadRows(list(islice(self._coming, ENOUGH_ITEMS)))

    def take_more(self, found: ReadRows) -> None:
        """Append pieces."""
        added = [each for each in found.rows or () if isinstance(each, Item)]
        self._known += added
        self.has_all = len(added) < ENOUGH_ITEMS

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return a line's text, or the piece's title."""
        item = self._known[number]
        is_line = len(item.fields) == 1 and isinstance(item.fields[0].value, str)
        text = str(item.fields[0].value) if is_line else item.title
        return PlaceRow(
            escaped_text(text[:256]), item.problem is not None or any(map(_is_wrong, item.fields)), is_open=False
        )

    def read_row(self, number: int) -> ShownRow:
        """Return the fields of a piece."""
        return ShownRow(self._known[number], FileBytes(self.path))

    def printed_by(self, number: int) -> list[str] | None:
        """Return kseg's arguments that explain a piece."""
        return explained_at(self.path, self._known[number].position)

    def row_at(self, position: int) -> int:
        """Return the piece that contains a position."""
        return next((at for at, item in enumerate(self._known) if position < item.position + item.size), 0)

    def look_again(self) -> str:
        """Read the file again if its size has changed."""
        old, size = self._size, FileBytes(self.path).size
        if size == old:
            return ""
        self._begin()
        return f"the file's size changed from {old} to {plural(size, 'byte')}"


def _is_wrong(field: ExplainedField) -> bool:
    return field.problem is not None or any(map(_is_wrong, field.children))


_ORDER = {kind: place for place, kind in enumerate(FileKind)}


def places_at(path: Path) -> list[BrowsedPlace]:
    """Return the places that lead to a path; a file in a partition directory follows that directory.

    Raises OpenError if it doesn't exist or can't be listed, KsegError if it isn't a Kafka file.
    """
    if path.is_file():
        place = place_of_file(path)
        directory = path.absolute().parent if path.parent == Path() else path.parent
        return [PartitionPlace(directory), place] if is_partition(directory) else [place]
    here, is_one = directory_at(path)
    if is_one:
        return [PartitionPlace(here)]
    cluster = Cluster([here], pass_over)
    found = cluster.log_dirs
    if not found:
        if any(parse_file_name(file).kind is not FileKind.UNKNOWN for file in _files_in(here)):
            return [PartitionPlace(here)]  # indexes alone, or a copy from elsewhere
        raise NoPartitionError(path)
    return [DisksPlace(here, cluster) if len(found) > 1 else LogDirPlace(found[0].path, cluster)]


def place_of_file(path: Path) -> BrowsedPlace:
    """Return a file as a place. Raises OpenError if it can't be opened, KsegError if kseg doesn't know its type."""
    kind = parse_file_name(path).kind
    if kind in LOG_KINDS:
        return LogPlace(path)
    return EntryPlace(path) if kind in ENTRY_KINDS else PiecesPlace(path)


class DirectoryPlace(BrowsedPlace):
    """A directory whose rows lead to files and directories in it. has_names: rows have names to search in."""

    has_names = True
    scopes = frozenset((Scope.RECORDS,))

    def __init__(self, title: str, path: Path) -> None:
        super().__init__(title, path)
        self.wrong: set[Path] = set()
        "Logs in which damage was found."
        self._rows = self._list()

    def _list(self) -> list[Path]:
        raise NotImplementedError

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self._rows)

    def number_of(self, path: Path) -> int | None:
        """Return the row that leads to a path."""
        return next((at for at, each in enumerate(self._rows) if each == path or each in path.parents), None)

    def find_named(self, is_match: Callable[[str], bool], number: int, *, is_back: bool) -> int | None:
        """Return the next or previous row whose name matches, wrapping around, or None without names or a match."""
        if not self.has_names:
            return None
        ahead = [*range(number + 1, self.count), *range(number + 1)]
        order = [*range(number - 1, -1, -1), *range(self.count - 1, number - 1, -1)] if is_back else ahead
        return next((each for each in order if is_match(self._rows[each].name)), None)

    def is_wrong(self, path: Path) -> bool:
        """Return True if damage was found in a log, or in a log of a directory."""
        return any(path == each or path in each.parents for each in self.wrong)

    def look_again(self) -> str:
        """List the directory again; return the names that came and went, in words."""
        before, self._rows = self._rows, self._list()
        come, gone = set(self._rows) - set(before), set(before) - set(self._rows)
        changes = [f"{len(come)} new"] if come else []
        changes += [f"{len(gone)} gone"] if gone else []
        return f"updated: {', '.join(changes)}" if changes else ""


class DisksPlace(DirectoryPlace):
    """Several log directories: a broker's disks."""

    heading = "log directories"

    def __init__(self, path: Path, cluster: Cluster) -> None:
        self._cluster, self._found = cluster, cluster.log_dirs
        super().__init__(str(path), path)

    def _list(self) -> list[Path]:
        return [each.path for each in self._found]

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return a log directory."""
        return PlaceRow(escaped_text(self._rows[number].name), self.is_wrong(self._rows[number]))

    def read_row(self, number: int) -> ShownRow:
        """Return the facts of a log directory."""
        return facts_of_log_dir(self._found[number])

    def printed_by(self, number: int) -> list[str] | None:
        """Return kseg's arguments that list a log directory."""
        return ["ls", path_word(self._rows[number])]

    def enter(self, number: int) -> BrowsedPlace:
        """Return its topics."""
        return _with_damage(LogDirPlace(self._rows[number], self._cluster), self.wrong)

    def logs_from(self, number: int) -> list[Path]:
        """Return the logs of this log directory and of the following ones."""
        found = [LogDir(path) for path in self._rows[number:]]
        return [log for each in found for directory in each.directories for log in logs_of(directory)]


class LogDirPlace(DirectoryPlace):
    """The topics of a log directory, and the files next to them."""

    heading = "topics"

    def __init__(self, path: Path, cluster: Cluster) -> None:
        self._cluster = cluster
        self._beside = cheap_metadata(cluster)
        super().__init__(str(path), path)

    def _list(self) -> list[Path]:
        self._sizes = _Sizes()
        self._log_dir = LogDir(self.path)
        self._topics: dict[str, list[Path]] = defaultdict(list)
        for directory in self._log_dir.directories:
            self._topics[_topic_of(directory)].append(directory)
        files = (self.path / name for name in sorted(os.listdir(self.path)) if is_of_log_dir(name))  # noqa: PTH208
        self._files = [path for path in files if path.is_file()]
        return [*(self.path / name for name in self._topics), *self._files]

    def number_of(self, path: Path) -> int | None:
        """Return the row of the topic that contains a path."""
        for number, directories in enumerate(self._topics.values()):
            if any(each == path or each in path.parents for each in directories):
                return number
        return super().number_of(path)

    def _of_row(self, number: int) -> list[Path] | None:
        """Return the partitions of a row, or None for a file."""
        return list(self._topics.values())[number] if number < len(self._topics) else None

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return a topic, or a file."""
        directories = self._of_row(number)
        name = self._rows[number].name
        if directories is None:
            return PlaceRow(escaped_text(name), is_open=parse_file_name(name).kind is not FileKind.UNKNOWN)
        is_wrong = any(map(self.is_wrong, directories))
        text = f"{name}  {plural(len(directories), 'partition')}, {self._sizes.text(directories)}"
        return PlaceRow(escaped_text(text), is_wrong)

    def read_row(self, number: int) -> ShownRow:
        """Return the facts of a topic or a file."""
        directories = self._of_row(number)
        if directories is None:
            return facts_of_file(self._rows[number], self.clock)
        logs = [partition_at(each) for each in directories]
        sizes = [each.size for each in logs if each is not None]
        return facts(
            f"topic {self._rows[number].name}",
            fact("topic", escaped_text(self._rows[number].name)),
            fact("partitions", len(directories), "on this disk"),
            fact("segments", sum(len(each.segments) for each in logs if each is not None)),
            fact("size", human_size(sum(sizes)), "of all logs"),
            read_more=lambda: settings_of(logs[0], self._beside),
        )

    def printed_by(self, number: int) -> list[str] | None:
        """Return kseg's arguments that list a topic, or print a file."""
        directories, name = self._of_row(number), self._rows[number].name
        if directories is None:
            return _dump_arguments(self._rows[number])
        if _PLAIN_NAME.fullmatch(name):
            return ["ls", path_word(self.path), "--topic", name]
        return ["ls", *map(path_word, directories)]

    def enter(self, number: int) -> BrowsedPlace | None:
        """Return the partitions of a topic, or a file."""
        directories = self._of_row(number)
        if directories is None:
            return place_of_file(self._rows[number])
        name = self._rows[number].name
        return _with_damage(TopicPlace(name, self.path, directories, self._cluster, self._beside), self.wrong)

    def logs_from(self, number: int) -> list[Path]:
        """Return the logs of this topic and of the following ones."""
        return [log for each in list(self._topics.values())[number:] for path in each for log in logs_of(path)]


class TopicPlace(DirectoryPlace):
    """The partitions of a topic on one disk."""

    heading = "partitions"

    def __init__(
        self, topic: str, path: Path, directories: list[Path], cluster: Cluster, beside: AdjacentMetadata
    ) -> None:
        self._directories, self._cluster, self._beside = directories, cluster, beside
        super().__init__(topic, path)

    def _list(self) -> list[Path]:
        self._sizes = _Sizes()
        return [each for each in self._directories if each.is_dir()]

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return a partition."""
        path = self._rows[number]
        return PlaceRow(escaped_text(f"{path.name}  {self._sizes.text([path])}"), self.is_wrong(path))

    def read_row(self, number: int) -> ShownRow:
        """Return the facts of a partition."""
        partition = partition_at(self._rows[number])
        if partition is None:
            raise OpenError("can't be listed", self._rows[number])
        return facts_of_partition(partition, self._cluster, self._beside, self.clock)

    def printed_by(self, number: int) -> list[str] | None:
        """Return kseg's arguments that list a partition."""
        return ["ls", path_word(self._rows[number])]

    def enter(self, number: int) -> BrowsedPlace:
        """Return its files."""
        return _with_damage(PartitionPlace(self._rows[number]), self.wrong)

    def logs_from(self, number: int) -> list[Path]:
        """Return the logs of this partition and of the following ones."""
        return [log for path in self._rows[number:] for log in logs_of(path)]


class PartitionPlace(DirectoryPlace):
    """The files of a partition: segments, snapshots, and others."""

    has_names = False

    def heading_in(self, width: int) -> str:
        """Return the names of the columns in a list of this width."""
        return f"{'file':<{_name_width(width)}} {'size':>{_SIZE_WIDTH}}"

    def __init__(self, path: Path) -> None:
        super().__init__(path.absolute().name, path)

    def _list(self) -> list[Path]:
        return sorted(_files_in(self.path), key=_file_order)

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return a row for a file. Logs are listed by full name, other files by suffix."""
        path = self._rows[number]
        name = escaped_text(path.name)
        stem = path.name.partition(".")[0]
        above = self._rows[number - 1].name.partition(".")[0] if number else None
        if stem and stem == above and parse_file_name(path).base_offset is not None:
            name = " " * len(stem) + escaped_text(path.name[len(stem) :])
        is_open = parse_file_name(path).kind is not FileKind.UNKNOWN
        return PlaceRow(
            f"{name:<{_name_width(width)}} {human_size(FileBytes(path).size):>{_SIZE_WIDTH}}",
            self.is_wrong(path),
            is_open,
        )

    def read_row(self, number: int) -> ShownRow:
        """Return the facts of a file."""
        return facts_of_file(self._rows[number], self.clock, self._next_base(number))

    def _next_base(self, number: int) -> int | None:
        names = (parse_file_name(path) for path in self._rows[number + 1 :])
        return next((name.base_offset for name in names if name.kind is FileKind.LOG and name.suffix is None), None)

    def printed_by(self, number: int) -> list[str] | None:
        """Return kseg's arguments that print a file."""
        return _dump_arguments(self._rows[number])

    def enter(self, number: int) -> BrowsedPlace | None:
        """Return a file."""
        path = self._rows[number]
        return None if parse_file_name(path).kind is FileKind.UNKNOWN else place_of_file(path)

    def logs_from(self, number: int) -> list[Path]:
        """Return the logs of this row and of the following ones; a row below its log includes that log."""
        stem = self._rows[number].name.partition(".")[0] if self._rows else ""
        return [path for path in logs_of(self.path) if path.name.partition(".")[0] >= stem]


def _name_width(width: int) -> int:
    least, most = _NAME_WIDTHS
    return min(max(width - _SIZE_WIDTH - 3, least), most)


def _dump_arguments(path: Path) -> list[str] | None:
    return None if parse_file_name(path).kind is FileKind.UNKNOWN else ["dump", path_word(path)]


class _Sizes:
    """Sizes of partitions' logs for a list; each directory is listed once."""

    def __init__(self) -> None:
        self._known: dict[Path, int] = {}

    def text(self, directories: list[Path]) -> str:
        """Return the size of all logs in the given directories."""
        for path in directories:
            if path not in self._known:
                partition = partition_at(path)
                self._known[path] = 0 if partition is None else partition.size
        return human_size(sum(self._known[path] for path in directories))


def logs_of(directory: Path) -> list[Path]:
    """Return the logs of a partition, in order; none if it can't be listed."""
    partition = partition_at(directory)
    return [] if partition is None else [segment.path for segment in partition.segments]


def _with_damage(place: DirectoryPlace, wrong: set[Path]) -> DirectoryPlace:
    """Return the place with its known damage; it reports new damage to the place above."""
    place.wrong = wrong
    return place


def _topic_of(directory: Path) -> str:
    name = parse_partition_directory(directory)
    return directory.name if name is None else name.topic if name.state is None else f"{name.topic} ({name.state})"


def _files_in(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return [path / entry.name for entry in entries if entry.is_file()]
    except OSError as error:
        raise OpenError(f"can't be listed: {error.strerror}", path) from error


def _file_order(path: Path) -> tuple[int, int, str]:
    """Return a sort key: segments first, by base offset, each log before its indexes; then files without an offset."""
    name = parse_file_name(path)
    return (1 << 63 if name.base_offset is None else name.base_offset, _ORDER[name.kind], path.name)
