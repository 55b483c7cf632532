"""Changes of database rows: what a run read, and what became of the rows of its table."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that a run has read, one row each, with the columns of the table and kseg's own.

    keys: the columns of the key. columns: the table's columns with their types, as in Unwrapping. skipped: records that
    aren't changes, by kind.
    """

    rows: pa.Table
    columns: tuple[tuple[str, Any], ...]
    keys: tuple[str, ...]
    skipped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """The effects of a run's changes.

    changes: the ones that were read. inserted, updated, deleted: rows of the table; in a history, all changes are
    inserted. superseded: changes before a later one of the same key in the same run. unchanged: changes that alter
    nothing: the table has a later one, or the row was deleted before. undecided: pairs of changes of a key from
    different partitions whose order isn't known. skipped: records that aren't changes, by kind. total: rows of the
    table; None if the run committed nothing. files: the rows of each new file, by name.
    """

    changes: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    superseded: int = 0
    unchanged: int = 0
    undecided: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    total: int | None = None
    files: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON's values."""
        members = asdict(self)
        del members["files"]
        return {**members, "skipped": dict(sorted(self.skipped.items()))}


def row_numbers(count: int) -> pa.Array:
    """Return the numbers from 0 to below a count."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)
