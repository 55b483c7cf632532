"""What an export needs of a table format's library: to read what its log says, and to commit to it in one step."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from kseg.export.manifest import Manifest
from kseg.export.result import ExportedFile, Result
from kseg.export.settings import ReadOptions

APPLICATION = "kseg"
"""Under this name the number and the progress stand in a table's log."""


class TableName(NamedTuple):
    """A table of Iceberg's: the catalog by its name in pyiceberg's configuration, None for one at the destination."""

    catalog: str | None = None
    name: str = "kafka.records"


NO_TABLE = TableName()


class RowRange(NamedTuple):
    """The records of a partition with offsets from `first` to below `end`."""

    topic: str
    partition: int | None
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class TableChange:
    """A commit: the files that are added, the rows that go, and what the log is to say from then on.

    base: the number of the commit that it is built on; replaces_all: all rows that were there go.
    """

    base: int
    manifest: Manifest
    results: tuple[Result, ...]
    gone: tuple[RowRange, ...] = ()
    replaces_all: bool = False

    def files(self) -> list[tuple[Result, ExportedFile]]:
        """The files that are added."""
        return [(result, file) for result in self.results for file in result.files]


class TableLog(Protocol):
    """A table's log. All raise KsegError where it can't be read or written.

    own_names: what the names of its own files in the destination begin with.
    """

    own_names: tuple[str, ...]

    @property
    def location(self) -> str:
        """What readers are given: the path or URL of the table, or of its newest metadata."""

    def number(self) -> int | None:
        """The number of kseg's last commit, 0 in a table that has none yet, None where no table is.

        Raises UsageError if the table is somebody else's.
        """

    def progress(self) -> Manifest:
        """What kseg's last commit says, which has the number of the commit."""

    def is_buried(self) -> bool:
        """Whether so much came after kseg's last commit that the log may soon forget it."""

    def with_field_ids(self, read: ReadOptions) -> ReadOptions:
        """The same with the ids that the table has for the columns, or will have when they are committed.

        Raises UsageError if it can't have these columns.
        """

    def commit(self, change: TableChange) -> None:
        """Commits, all or nothing. Raises OvertakenError if kseg's last commit isn't the one it is built on."""

    def active_files(self) -> Iterable[str]:
        """The names of the files that count, as the export gave them."""

    def has_commit_of(self, run_id: str) -> bool:
        """Whether a run has committed, as far as the log goes back."""

    def merge(self, target_size: int) -> dict[str, Any]:
        """Joins small files; gives how many files were `removed` and `added`.

        Raises OvertakenError, and nothing has changed, if anybody has committed meanwhile.
        """
