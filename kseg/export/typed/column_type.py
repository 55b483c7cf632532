"""Types of decoded columns, whatever the schema that they come from: as values, and as JSON for manifests and jobs."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from kseg.decode.decoded import NotDecodable
from kseg.errors import KsegError

MOST_COLUMNS = 10_000
"""The most columns, at all levels, that one decoded column may have."""
MOST_LEVELS = 100
"""The deepest nesting of columns."""
MOST_DIGITS = 38
"""Digits of a decimal that all readers of Parquet know."""


class Scalar(StrEnum):
    """Types without others in them. Every column may be null.

    LONG is every whole number of up to 64 bits: a table doesn't change when an int becomes a long. TIMESTAMP is in UTC,
    LOCAL_TIMESTAMP in no zone, both in microseconds. JSON is text of what has no columns.
    """

    BOOLEAN = "boolean"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    DATE = "date"
    TIMESTAMP = "timestamp"
    LOCAL_TIMESTAMP = "local-timestamp"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class DecimalType:
    """Decimals of so many digits, of them `scale` after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class ListType:
    """Lists of one type."""

    item: "ColumnType"


@dataclass(frozen=True, slots=True)
class MapType:
    """Maps of keys of one type to values of another."""

    key: Scalar
    value: "ColumnType"


@dataclass(frozen=True, slots=True)
class ColumnMember:
    """A field of a struct, or one of the types of a union. aliases: other names of it in other schemas."""

    name: str
    type: "ColumnType"
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its own name, then its aliases."""
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class StructType:
    """Fields of one record. names: what schemas call it; empty where they have no name for it."""

    members: tuple[ColumnMember, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnionType:
    """Several types, of which a value has one: a struct in a table, in which one member isn't null."""

    members: tuple[ColumnMember, ...]


ColumnType: TypeAlias = Scalar | DecimalType | ListType | MapType | StructType | UnionType


def to_json(column: ColumnType) -> Any:
    """The type as JSON's values."""
    match column:
        case Scalar():
            return column.value
        case DecimalType():
            return {"decimal": [column.precision, column.scale]}
        case ListType():
            return {"list": to_json(column.item)}
        case MapType():
            return {"map": [column.key.value, to_json(column.value)]}
        case StructType():
            return {"struct": _members_to_json(column.members), "names": list(column.names)}
        case UnionType():
            return {"union": _members_to_json(column.members)}


def _members_to_json(members: tuple[ColumnMember, ...]) -> list[Any]:
    return [[member.name, to_json(member.type), *member.aliases] for member in members]


def from_json(content: Any) -> ColumnType:
    """The type of `to_json`. Raises KsegError if it is none: it may come from a manifest that anybody wrote."""
    try:
        found = _parsed(content, 0)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise KsegError("the type of a decoded column is none of kseg's") from error
    return bounded(found)


def _parsed(content: Any, level: int) -> ColumnType:
    if level > MOST_LEVELS:
        raise ValueError(level)
    if isinstance(content, str):
        return Scalar(content)
    kind = next(kind for kind in _PARSERS if kind in content)
    return _PARSERS[kind](content, level + 1)


def _parsed_decimal(content: Any, _: int) -> ColumnType:
    precision, scale = map(int, content["decimal"])
    if not 0 <= scale <= precision <= MOST_DIGITS:
        raise ValueError(precision)
    return DecimalType(precision, scale)


def _parsed_map(content: Any, level: int) -> ColumnType:
    key, value = content["map"]
    return MapType(Scalar(key), _parsed(value, level))


def _parsed_members(entries: Any, level: int) -> tuple[ColumnMember, ...]:
    members = tuple(
        ColumnMember(_name(entry[0]), _parsed(entry[1], level), tuple(map(_name, entry[2:]))) for entry in entries
    )
    if not members or len({member.name for member in members}) < len(members):
        raise ValueError(entries)
    return members


def _name(content: Any) -> str:
    if not isinstance(content, str):
        raise TypeError(content)
    return content


_PARSERS: dict[str, Callable[[Any, int], ColumnType]] = {
    "decimal": _parsed_decimal,
    "list": lambda content, level: ListType(_parsed(content["list"], level)),
    "map": _parsed_map,
    "struct": lambda content, level: StructType(
        _parsed_members(content["struct"], level), tuple(map(_name, content["names"]))
    ),
    "union": lambda content, level: UnionType(_parsed_members(content["union"], level)),
}


def bounded(column: ColumnType) -> ColumnType:
    """The type. Raises NotDecodable if it has too many columns, or too many levels of them."""
    level, count = [column], 0
    for _ in range(MOST_LEVELS):
        level = [inner for each in level for inner in inner_types(each)]
        count += len(level)
        if not level:
            return column
        if count > MOST_COLUMNS:
            raise NotDecodable(f"the schema makes more than {MOST_COLUMNS} columns")
    raise NotDecodable(f"the schema is nested more than {MOST_LEVELS} levels deep")


def inner_types(column: ColumnType) -> tuple[ColumnType, ...]:
    """The types directly within one."""
    match column:
        case ListType():
            return (column.item,)
        case MapType():
            return (column.value,)
        case StructType() | UnionType():
            return tuple(member.type for member in column.members)
        case _:
            return ()


def shown(column: ColumnType) -> str:
    """A type as messages show it."""
    match column:
        case Scalar():
            return column.value
        case DecimalType():
            return f"decimal({column.precision},{column.scale})"
        case ListType():
            return "list"
        case MapType():
            return "map"
        case StructType():
            return f"record {column.names[0]}" if column.names else "struct"
        case UnionType():
            return f"union of {', '.join(member.name for member in column.members)}"


def decimal_or_text(precision: int, scale: int) -> ColumnType:
    """A column of decimals; text if they have more digits than tables have."""
    return DecimalType(precision, scale) if precision <= MOST_DIGITS and 0 <= scale <= precision else Scalar.STRING


def struct_or_text(members: list[ColumnMember], names: tuple[str, ...] = ()) -> ColumnType:
    """A struct; JSON text if it has no field, since tables have no empty structs."""
    return StructType(tuple(members), names) if members else Scalar.JSON
