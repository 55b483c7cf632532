"""Filters that Spark leaves to the source: which partitions, offsets and times they ask for, and which rows exactly."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kseg.export.copies import Copies
from kseg.export.settings import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

_COMPARISONS = {
    "EqualTo": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
}
"""Pyspark's filters by name, since old releases have none; and Arrow's functions that mean the same, nulls included."""
_SEARCHES = {"StringStartsWith": "starts_with", "StringEndsWith": "ends_with", "StringContains": "match_substring"}
_FIRST_AFTER = {"EqualTo": 0, "GreaterThanOrEqual": 0, "GreaterThan": 1}
"""Filters that bound numbers from below, and how far above the filter's value."""
_END_AFTER = {"EqualTo": 1, "LessThan": 0, "LessThanOrEqual": 1}
"""Filters that bound numbers from above: how far above the filter's value the numbers end."""
_VALUES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "binary": (bytes, bytearray),
    "int32": int,
    "int64": int,
    "bool": bool,
    "timestamp[us, tz=UTC]": datetime,
}
"""The Python types that filters' values must have: Arrow would cut a number to fit."""


_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


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
            _mask(wanted, pa.RecordBatch.from_pylist([], schema=self.schema))
        except (KeyError, TypeError, pa.ArrowException):
            return False  # another kind of filter, value or column
        self.taken.append(wanted)
        return True

    def apply(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """The rows for which all filters are true."""
        for wanted in self.taken:
            batch = batch.filter(_mask(wanted, batch))
        return batch

    def find(self, copies: Copies) -> Copies:
        """The partitions that may have such rows."""
        return {
            (topic, partition): replicas
            for (topic, partition), replicas in copies.items()
            if all(topic in values for values in self._values("topic"))
            and all(partition in values for values in self._values("partition"))
        }

    def narrow(self, offsets: OffsetRange) -> OffsetRange:
        """The offsets of a range that such rows may have."""
        if not self.has_offsets:
            return offsets
        firsts = [value + after for value, after in self._bounds("offset", _FIRST_AFTER, min)]
        ends = [value + after for value, after in self._bounds("offset", _END_AFTER, max)]
        firsts += [] if offsets.first is None else [offsets.first]
        ends += [] if offsets.end is None else [offsets.end]
        return OffsetRange(max(firsts, default=None), min(ends, default=None))

    def first_time(self) -> int | None:
        """The least time that such rows may have, in milliseconds since 1970; None if any."""
        if not self.has_offsets:
            return None
        times = [(value - _EPOCH) // _MILLISECOND for value, _ in self._bounds("timestamp", _FIRST_AFTER, min)]
        return max(times) if times and max(times) > 0 else None

    def _values(self, column: str) -> Iterator[set[Any]]:
        """The sets of values that filters ask for."""
        for wanted in self.taken:
            if _column(wanted) == column and type(wanted).__name__ in ("EqualTo", "In"):
                yield _values_of(wanted)

    def _bounds(
        self, column: str, kinds: Mapping[str, int], nearest: Callable[[Iterable[Any]], Any]
    ) -> Iterator[tuple[Any, int]]:
        """What filters say of one end of a column's values: a value, and how far after it the end is."""
        for wanted in self.taken:
            kind = type(wanted).__name__
            if _column(wanted) == column and kind == "In" and _values_of(wanted):
                yield nearest(_values_of(wanted)), kinds["EqualTo"]
            elif _column(wanted) == column and kind in kinds:
                yield next(iter(_values_of(wanted))), kinds[kind]


def _column(wanted: Any) -> str | None:
    """The column that a filter looks at; None if it isn't one of these kinds."""
    attribute: tuple[str, ...] = getattr(wanted, "attribute", ())
    return attribute[0] if len(attribute) == 1 else None


def _values_of(wanted: Any) -> set[Any]:
    return set(wanted.value) if type(wanted).__name__ == "In" else {wanted.value}


def _mask(wanted: Any, batch: "pa.RecordBatch") -> Any:
    """For each row true, false or, as in SQL, null. Raises KeyError and others for what can't be answered so."""
    import pyarrow.compute as pc

    kind = type(wanted).__name__
    if kind == "Not":
        return pc.invert(_mask(wanted.child, batch))
    values = batch.column(_column(wanted))
    match kind:
        case "IsNull":
            return pc.is_null(values)
        case "IsNotNull":
            return pc.is_valid(values)
        case "In":
            import pyarrow as pa

            listed = pa.array([_checked(value, values.type) for value in wanted.value], values.type)
            return pc.if_else(pc.is_valid(values), pc.is_in(values, value_set=listed), pa.scalar(None, pa.bool_()))
        case "EqualNullSafe" if wanted.value is None:
            return pc.is_null(values)
        case "EqualNullSafe":
            return pc.fill_null(pc.equal(values, _scalar(wanted.value, values.type)), fill_value=False)
        case _ if kind in _SEARCHES:
            return getattr(pc, _SEARCHES[kind])(values, wanted.value)
    return pc.call_function(_COMPARISONS[kind], [values, _scalar(wanted.value, values.type)])


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
