"""Tables whose rows are Python's values: facts about batches, segments, groups, as Arrow's record batches."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from kseg.arrow import MOST_MILLISECONDS, TIMESTAMP
from kseg.export.filter_bounds import Condition, FilterBounds
from kseg.formats.names import plain_text
from kseg.output.row_writer import Section

ROWS = 2048
"""Rows of a record batch, as many as DuckDB takes at once."""
_INT_BITS = 63


class RowColumn(NamedTuple):
    """A column: its name, its type in Arrow, and its value in a row; times are milliseconds since 1970."""

    name: str
    type: pa.DataType
    value: Callable[[Any], object]


RowsOf = Callable[[FilterBounds, Sequence[str]], Iterable[Any]]
"""Gives rows that may be wanted, by what a condition leaves, and by the names of the columns that are looked at."""


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table: its columns, and what gives its rows."""

    name: str
    columns: Sequence[RowColumn]
    rows: RowsOf

    def schema(self) -> pa.Schema:
        """Its columns in Arrow."""
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])

    def batches(self, names: Sequence[str], condition: Condition | None) -> Iterator[pa.RecordBatch]:
        """The rows for which a condition is true, with these columns."""
        schema = self.schema()
        needed = [column for column in self.columns if condition is not None or column.name in names]
        own = pa.schema([schema.field(column.name) for column in needed])
        rows = iter(self.rows(FilterBounds(condition, schema), [column.name for column in needed]))
        while taken := list(islice(rows, ROWS)):
            arrays = [_array(column, taken) for column in needed]
            batch = pa.RecordBatch.from_arrays(arrays, schema=own)
            wanted = batch if condition is None else batch.filter(condition)
            if wanted.num_rows:
                yield wanted.select(list(names))


def _array(column: RowColumn, rows: Sequence[Any]) -> pa.Array:
    values = map(column.value, rows)
    if column.type == TIMESTAMP:
        return pa.array(map(_microseconds, values), TIMESTAMP)
    if column.type == pa.int64():
        return pa.array(map(_whole_number, values), pa.int64())
    if column.type == pa.string():
        return pa.array([None if value is None else plain_text(str(value)) for value in values], pa.string())
    return pa.array(values, column.type)


def _microseconds(milliseconds: object) -> int | None:
    """A time; null for none, and for one that microseconds can't tell."""
    is_held = isinstance(milliseconds, int) and 0 <= milliseconds <= MOST_MILLISECONDS
    return milliseconds * 1000 if isinstance(milliseconds, int) and is_held else None


def _whole_number(number: Any) -> int | None:
    """A number; null where 64 bits don't hold it: sums out of damaged headers may be larger."""
    return number if number is None or -1 << _INT_BITS <= number < 1 << _INT_BITS else None


_TEXTS = pa.list_(pa.string())
_NUMBERS = pa.list_(pa.int64())
_ASSIGNED = pa.list_(
    pa.struct(
        [
            ("topic", pa.string()),
            ("topicId", pa.string()),
            ("kind", pa.string()),
            ("subtopologyId", pa.string()),
            ("partitions", _NUMBERS),
        ]
    )
)
_TYPES: dict[str, pa.DataType] = {
    "partition": pa.int32(),
    "compressionRatio": pa.float64(),
    "dirtyRatio": pa.float64(),
    **dict.fromkeys(("isHanging", "blocksLastStableOffset", "cleanable", "isOpen", "isOverdue"), pa.bool_()),
    **dict.fromkeys(("codecs", "leftovers", "orphans", "problems", "subscribedTopics"), _TEXTS),
    **dict.fromkeys(("magics", "producerIds"), _NUMBERS),
    **dict.fromkeys(("assignment", "target"), _ASSIGNED),
    "durationMs": pa.int64(),
}
"""The types of columns, other than of texts, whole numbers and times, which titles and names tell."""


def columns_of(section: Section[Any], lists: Container[str] = ()) -> list[RowColumn]:
    """The columns that JSON has of a kind of rows, typed; times once, as times. lists: columns with lists of texts."""
    return [
        RowColumn(
            column.name,
            _TEXTS if column.name in lists else _type_of(column.name, is_number=column.width > 0),
            column.value,
        )
        for column in section.columns
        if column.name and not column.name.endswith("Time")
    ]


def _type_of(name: str, *, is_number: bool) -> pa.DataType:
    if name in _TYPES:
        return _TYPES[name]
    if name.endswith("Timestamp"):
        return TIMESTAMP
    return pa.int64() if is_number else pa.string()
