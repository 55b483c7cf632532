"""Fields of objects, and columns with their values: the one declaration behind JSON, CSV, tables and SQL."""

from collections.abc import Callable, Iterable
from datetime import UTC, tzinfo
from enum import Enum
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from kseg.output.fitting import LEAST_PATH, LEAST_TEXT, Cut, Head
from kseg.sizes import human_size
from kseg.system.terminal_text import escaped_text
from kseg.times import duration_text, iso_time, time_text, zone_name

Row = TypeVar("Row", contravariant=True)
NOT_SHOWN = ""
"""Title of a column that only JSON and CSV have."""


class Kind(Enum):
    """The type of the values of a field."""

    INTEGER = "integer"
    INT32 = "32-bit integer"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    TEXTS = "list of texts"
    INTEGERS = "list of integers"
    OBJECTS = "list of objects"
    OBJECT = "object"


_CUT_KINDS = (Kind.TEXT, Kind.TEXTS, Kind.INTEGERS, Kind.OBJECTS, Kind.OBJECT)
_NUMBERS = (Kind.INTEGER, Kind.INT32, Kind.NUMBER)


class Unit(Enum):
    """Unit of the values of a field. Values of COUNT and BYTES add up."""

    COUNT = "count"
    BYTES = "bytes"
    MS = "ms"
    TIMESTAMP = "ms since 1970"
    ISO_TIME = "ISO 8601"
    OFFSET = "offset"
    POSITION = "byte position"
    RATIO = "ratio"
    PATH = "path"


_SUMMED = (Unit.COUNT, Unit.BYTES)


class Field(NamedTuple):
    """A field: its name in JSON and CSV, which has one meaning in all objects; `members`: fields of its objects."""

    name: str
    kind: Kind
    meaning: str
    unit: Unit | None = None
    members: "tuple[Field, ...]" = ()

    def number_text(self, number: int) -> str:
        """Return a number for people: sizes and durations have their unit."""
        if self.unit is Unit.BYTES:
            return human_size(number)
        return duration_text(number) if self.unit is Unit.MS else str(number)


FOR_PEOPLE = Field("", Kind.TEXT, "")
"""The field of columns that only people see."""


class Column(NamedTuple, Generic[Row]):
    """A column: a field, a title for people, and the field's value in a row.

    `show` returns the text for people; None shows the value in its field's unit. `is_right` aligns it right; None does
    so with numbers that aren't timestamps. `in_zone` makes the same column with its times in another zone than UTC;
    None: it has no times. `rank`: if a terminal has no room for all columns, columns of the highest rank are omitted
    first, columns of rank 0 never. `is_sentence`: its texts are never shortened, but folded.
    """

    field: Field
    title: str
    value: Callable[[Row], object]
    show: Callable[[Row], str] | None = None
    is_right: bool | None = None
    in_zone: "Callable[[tzinfo], Column[Row]] | None" = None
    rank: int = 1
    is_sentence: bool = False

    @property
    def name(self) -> str:
        """The name of its field."""
        return self.field.name

    @property
    def is_set_right(self) -> bool:
        """True if people see it aligned right."""
        if self.is_right is None:
            return self.field.kind in _NUMBERS and self.field.unit is not Unit.TIMESTAMP
        return self.is_right

    @property
    def head(self) -> Head:
        """Its form for people if there is no room for all columns."""
        is_path, is_time = self.field.unit is Unit.PATH, self.field.unit is Unit.ISO_TIME
        cut = None
        if self.is_sentence or (self.field.kind in _CUT_KINDS and not is_time):
            is_end_cut = self.field is FOR_PEOPLE and not self.is_sentence
            cut = Cut(LEAST_TEXT, in_middle=False) if is_end_cut else Cut(LEAST_PATH, in_middle=True)
        return Head(self.title, cut, self.rank, is_path, self.is_sentence)

    def text(self, row: Row) -> str:
        """Return the text that a person sees in a row."""
        if self.show is not None:
            return escaped_text(self.show(row))
        match self.value(row):
            case None:
                return ""
            case bool(value):
                return "yes" if value else "no"
            case int(value):
                return self.field.number_text(value)
            case list(value) | tuple(value):
                return escaped_text(",".join(map(str, value)))
            case value:
                return escaped_text(str(value))

    def sum_text(self, rows: Iterable[Row]) -> str | None:
        """Return the sum of its values, and the number of rows without a value, or None if there is no sum."""
        if self.field.unit not in _SUMMED:
            return None
        values = [self.value(row) for row in rows]
        counting = [value for value in values if isinstance(value, int) and value >= 0]
        if not sum(counting):
            return None
        unknown = sum(value is None for value in values)
        negative = len(values) - len(counting) - unknown
        left_out = [f"{number} {what}" for number, what in ((unknown, "unknown"), (negative, "negative")) if number]
        text = self.field.number_text(sum(counting))
        return f"{text} (without {', '.join(left_out)})" if left_out else text


def zoned_title(title: str, zone: tzinfo) -> str:
    """Return the title of a column of times, with their zone; the empty title stays empty."""
    return title if title == NOT_SHOWN else f"{title} ({zone_name(zone)})"


def timestamp_column(
    field: Field, title: str, value: Callable[[Row], int | None], zone: tzinfo = UTC, *, rank: int = 1
) -> Column[Row]:
    """Make a column of milliseconds since 1970, null for none; people see the time in the zone."""

    def milliseconds(row: Row) -> int | None:
        timestamp = value(row)
        return None if timestamp is None or timestamp < 0 else timestamp

    in_zone = partial(timestamp_column, field, title, value, rank=rank)
    shown, head = (lambda row: time_text(value(row), zone)), zoned_title(title, zone)
    return Column(field, head, milliseconds, shown, in_zone=in_zone, rank=rank)


def iso_time_column(
    field: Field, value: Callable[[Row], int | None], title: str = NOT_SHOWN, zone: tzinfo = UTC
) -> Column[Row]:
    """Make a column of times in ISO 8601 from milliseconds since 1970."""
    in_zone = partial(iso_time_column, field, value, title)
    return Column(
        field,
        zoned_title(title, zone),
        lambda row: iso_time(value(row), zone),
        lambda row: time_text(value(row), zone),
        in_zone=in_zone,
    )


def listed_column(
    field: Field, title: str, value: Callable[[Row], tuple[object, ...]], *, is_right: bool = False, rank: int = 1
) -> Column[Row]:
    """Make a column of lists; people see their elements separated by commas."""
    return Column(
        field, title, lambda row: list(value(row)), lambda row: ",".join(map(str, value(row))), is_right, rank=rank
    )
