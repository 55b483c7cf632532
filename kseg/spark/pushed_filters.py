"""Filters that Spark leaves to the source: which partitions, offsets and times they ask for, and which rows exactly."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Protocol

from kseg.export.copies import Copies
from kseg.export.coverage import common
from kseg.export.settings import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from kseg.export.filter_bounds import FilterBounds

_COMPARISONS = {
    "EqualTo": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
}
"""Pyspark's filters by name, since old releases have none; and Arrow's functions that mean the same, nulls included."""
_SEARCHES = {"StringStartsWith": "starts_with", "StringEndsWith": "ends_with", "StringContains": "match_substring"}
_VALUES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "binary": (bytes, bytearray),
    "int32": int,
    "int64": int,
    "bool": bool,
    "timestamp[us, tz=UTC]": datetime,
}
"""The Python types that filters' values must have: Arrow would cut a number to fit."""


@dataclass
class PushedFilters:
    """The filters taken of a query. They hold for each row that is read; what they exclude isn't read, if possible.

    schema: the columns of the rows that are filtered. has_offsets: whether these are records, and no other table.
    """

    schema: "pa.Schema"
    has_offsets: bool = True
    taken: list["Filter"] = field(default_factory=list)

    def take(self, wanted: "Filter") -> bool:
        """Takes a filter if the answer is exactly Spark's own; False if Spark must filter itself."""
        import pyarrow as pa

        try:
            _answer(wanted, pa.RecordBatch.from_pylist([], schema=self.schema))
        except (KeyError, TypeError, pa.ArrowException):
            return False  # another kind of filter, value or column
        self.taken.append(wanted)
        return True

    def apply(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """The rows for which all filters are true."""
        for wanted in self.taken:
            batch = batch.filter(_answer(wanted, batch))
        return batch

    def find(self, copies: Copies) -> Copies:
        """The partitions that may have such rows."""
        return self._bounds.find(copies)

    def narrow(self, offsets: OffsetRange) -> OffsetRange:
        """The offsets of a range that such rows may have."""
        return common(offsets, self._offsets) if self.has_offsets else offsets

    def first_time(self) -> int | None:
        """The least time that such rows may have, in milliseconds since 1970; None if any."""
        time = self._bounds.first_time() if self.has_offsets else None
        return time if time is not None and time > 0 else None

    @property
    def _bounds(self) -> "FilterBounds":
        from kseg.export.filter_bounds import FilterBounds

        conditions = [_answer(wanted, _Fields(self.schema)) for wanted in self.taken]
        return FilterBounds(reduce(and_, conditions) if conditions else None, self.schema)

    @cached_property
    def _offsets(self) -> OffsetRange:
        """The same for all partitions: asked for when all filters are taken."""
        return self._bounds.offsets_anywhere()


class _Columns(Protocol):
    """Columns by their names: those of a batch, or what stands for them in an expression. Raises KeyError."""

    def column(self, name: str | None) -> Any:
        """The values."""

    @property
    def schema(self) -> "pa.Schema":
        """Their types."""


class _Fields:
    """Columns in an expression."""

    def __init__(self, schema: "pa.Schema") -> None:
        self.schema = schema

    def column(self, name: str | None) -> Any:
        """What stands for the column."""
        import pyarrow.compute as pc

        return pc.field(name)


def _column(wanted: Any) -> str | None:
    """The column that a filter looks at; None if it isn't one of these kinds."""
    attribute: tuple[str, ...] = getattr(wanted, "attribute", ())
    return attribute[0] if len(attribute) == 1 else None


def _answer(wanted: Any, columns: _Columns) -> Any:
    """For each row true, false or, as in SQL, null. Raises KeyError and others for what can't be answered so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = type(wanted).__name__
    if kind == "Not":
        return pc.invert(_answer(wanted.child, columns))
    name = _column(wanted)
    values, own = columns.column(name), columns.schema.field(name).type
    match kind:
        case "IsNull":
            return pc.is_null(values)
        case "IsNotNull":
            return pc.is_valid(values)
        case "In":
            listed = pa.array([_checked(value, own) for value in wanted.value], own)
            return pc.if_else(pc.is_valid(values), pc.is_in(values, value_set=listed), pa.scalar(None, pa.bool_()))
        case "EqualNullSafe" if wanted.value is None:
            return pc.is_null(values)
        case "EqualNullSafe":
            return pc.coalesce(pc.equal(values, _scalar(wanted.value, own)), pa.scalar(False))
        case _ if kind in _SEARCHES:
            return getattr(pc, _SEARCHES[kind])(values, wanted.value)
    return getattr(pc, _COMPARISONS[kind])(values, _scalar(wanted.value, own))


def _scalar(value: Any, kind: "pa.DataType") -> Any:
    import pyarrow as pa

    return pa.scalar(_checked(value, kind), kind)


def _checked(value: Any, kind: "pa.DataType") -> Any:
    expected = _VALUES[str(kind)]
    is_number = expected is int and isinstance(value, bool)
    if not isinstance(value, expected) or is_number or (isinstance(value, datetime) and value.tzinfo is None):
        raise TypeError(f"{value!r} is no {kind}")
    return value


class FilterOffer:
    """What Spark calls to offer filters: it returns those that Spark must apply itself.

    Spark fails a query whose reader takes filters while `spark.sql.python.filterPushdown.enabled` is off. It sees that
    by the function behind `pushFilters`. So this one shows the function of a reader that takes none: where it is off,
    nothing is offered and Spark filters; where it is on, this is called all the same.
    """

    def __init__(self, filters: PushedFilters) -> None:
        self._filters = filters

    @property
    def __func__(self) -> object:
        """The function of a reader that takes no filters."""
        from pyspark.sql.datasource import DataSourceReader

        return DataSourceReader.pushFilters

    def __call__(self, filters: list["Filter"]) -> Iterable["Filter"]:
        """Takes what can be answered exactly; gives the others back."""
        return [wanted for wanted in filters if not self._filters.take(wanted)]
