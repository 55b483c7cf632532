"""Types of typed columns: one type for several schemas, and its Arrow type."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import TIMESTAMP
from kseg.decode.decoded import NotDecodable
from kseg.errors import KsegError, quote

MOST_COLUMNS = 10_000
"""The most columns, at all levels, of one decoded column."""
MOST_LEVELS = 100
"""The deepest nesting of columns: Arrow reads Parquet schemas of at most this many levels, with the root."""
MOST_DIGITS = 38
"""The most digits of a decimal that all readers of Parquet support."""
FIRST_TIME, END_TIME = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999, which all readers of all formats support, in microseconds since 1970."""
_DAY = 86_400_000_000


class Scalar(StrEnum):
    """Types that contain no others. Every column may be null.

    LONG is any integer of up to 64 bits, so that a table doesn't change when an int becomes a long. TIMESTAMP is in
    UTC, LOCAL_TIMESTAMP has no zone; both are in microseconds. JSON is the text of values without columns.
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
    """A decimal type with the given precision and scale."""

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
    """A field of a struct, or one of the types of a union. aliases: its other names in other schemas."""

    name: str
    type: "ColumnType"
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its own name, then its aliases."""
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class StructType:
    """The fields of one record. names: the record's names in schemas; empty if it has none."""

    members: tuple[ColumnMember, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnionType:
    """Several types, of which a value has one: in a table, a struct with one member that isn't null."""

    members: tuple[ColumnMember, ...]


ColumnType: TypeAlias = Scalar | DecimalType | ListType | MapType | StructType | UnionType


def to_json(column: ColumnType) -> Any:
    """Return the type as JSON's values."""
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
    """Return the type of `to_json`. Raises KsegError if it is invalid: the manifest that has it may be anybody's."""
    try:
        found = _parse(content, 0)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise KsegError("the type of a decoded column is unknown") from error
    return check_bounds(found)


def _parse(content: Any, level: int) -> ColumnType:
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
    return MapType(Scalar(key), _parse(value, level))


def _parsed_members(entries: Any, level: int) -> tuple[ColumnMember, ...]:
    members = tuple(
        ColumnMember(_name(entry[0]), _parse(entry[1], level), tuple(map(_name, entry[2:]))) for entry in entries
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
    "list": lambda content, level: ListType(_parse(content["list"], level)),
    "map": _parsed_map,
    "struct": lambda content, level: StructType(
        _parsed_members(content["struct"], level), tuple(map(_name, content["names"]))
    ),
    "union": lambda content, level: UnionType(_parsed_members(content["union"], level)),
}


def check_bounds(column: ColumnType) -> ColumnType:
    """Return the type unchanged. Raises NotDecodable if it has too many columns or levels."""
    level, count = [(column, 2)], 0  # the root of a Parquet file's schema is the first level
    while level:
        level = [(inner, depth + _levels(each)) for each, depth in level for inner in inner_types(each)]
        count += len(level)
        if count > MOST_COLUMNS:
            raise NotDecodable(f"the schema needs more than {MOST_COLUMNS} columns")
        if any(depth > MOST_LEVELS for _, depth in level):
            raise NotDecodable(f"the schema's columns are nested more than {MOST_LEVELS} levels deep in Parquet")
    return column


def _levels(column: ColumnType) -> int:
    """Return the levels that a type adds in Parquet: lists and maps contain a repeated group."""
    return 2 if isinstance(column, ListType | MapType) else 1


class NamesError(KsegError):
    """The error of field names that a table can't have, or can't have together."""


def check_names(column: ColumnType) -> ColumnType:
    """Return the type unchanged. Raises NamesError for names that tables can't have, or that they can't tell apart.

    Spark, DuckDB and Delta ignore case; Iceberg finds a field by its path, with dots between the names.
    """
    seen: dict[str, str] = {}
    for path in _paths(column, ""):
        if "\0" in path or any("\ud800" <= char <= "\udfff" for char in path):
            raise NamesError(f"field {quote(path)} has a character that column names can't have")
        other = seen.setdefault(path.lower(), path)
        if other is not path:
            raise NamesError(f"fields {quote(other)} and {quote(path)} would have the same name in a table")
    return column


def _paths(column: ColumnType, place: str) -> Iterator[str]:
    """Yield the paths of all fields within a type, as Iceberg names them."""
    match column:
        case ListType():
            inner = [("element", column.item)]
        case MapType():
            inner = [("key", column.key), ("value", column.value)]
        case StructType() | UnionType():
            inner = [(member.name, member.type) for member in column.members]
        case _:
            return
    for name, kind in inner:
        path = f"{place}.{name}" if place else name
        yield path
        yield from _paths(kind, path)


def inner_types(column: ColumnType) -> tuple[ColumnType, ...]:
    """Return the types directly within one."""
    match column:
        case ListType():
            return (column.item,)
        case MapType():
            return (column.value,)
        case StructType() | UnionType():
            return tuple(member.type for member in column.members)
        case _:
            return ()


def type_text(column: ColumnType) -> str:
    """Return a type as messages show it."""
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
    """Return a decimal type; text if tables don't support that many digits."""
    return DecimalType(precision, scale) if precision <= MOST_DIGITS and 0 <= scale <= precision else Scalar.STRING


def struct_or_text(members: list[ColumnMember], names: tuple[str, ...] = ()) -> ColumnType:
    """Return a struct; JSON text if it has no fields, since tables have no empty structs."""
    return StructType(tuple(members), names) if members else Scalar.JSON


_WIDER = {
    frozenset({Scalar.LONG, Scalar.FLOAT}): Scalar.DOUBLE,
    frozenset({Scalar.LONG, Scalar.DOUBLE}): Scalar.DOUBLE,
    frozenset({Scalar.FLOAT, Scalar.DOUBLE}): Scalar.DOUBLE,
    frozenset({Scalar.STRING, Scalar.BYTES}): Scalar.BYTES,
}
"""Common types of two types. A long and a float become a double: a float would lose more digits."""


class MismatchError(KsegError):
    """Two types without a common column. field: the path from the value to the field; empty for the value itself."""

    def __init__(self, field: str, new: ColumnType, old: ColumnType) -> None:
        self.field, self.new, self.old = field, new, old
        super().__init__(f"{f'field {field}' if field else 'the value'} is {type_text(new)}, not {type_text(old)}")


def unify(old: ColumnType, new: ColumnType, field: str = "") -> ColumnType:
    """Return the common type of two types. Fields keep their original names.

    Raises MismatchError if there is none.
    """
    match old, new:
        case _ if old == new:
            return old
        case UnionType(), UnionType():
            return UnionType(_join_members(old.members, new.members, field))
        case UnionType(), _:
            return _with_member(old, new)
        case _, UnionType():
            return _with_member(new, old)
        case Scalar(), Scalar() if frozenset({old, new}) in _WIDER:
            return _WIDER[frozenset({old, new})]
        case DecimalType(), DecimalType() if old.scale == new.scale:
            return DecimalType(max(old.precision, new.precision), old.scale)
        case ListType(), ListType():
            return ListType(unify(old.item, new.item, f"{field}[]"))
        case MapType(), MapType() if old.key == new.key:
            return MapType(old.key, unify(old.value, new.value, f"{field}[]"))
        case StructType(), StructType() if not old.names or not new.names or set(old.names) & set(new.names):
            names = tuple(dict.fromkeys((*old.names, *new.names)))
            return StructType(_join_members(old.members, new.members, field), names)
        case _:
            raise MismatchError(field, new, old)


def _join_members(old: Sequence[ColumnMember], new: Sequence[ColumnMember], field: str) -> tuple[ColumnMember, ...]:
    """Return the members of both types; a member that both have, by name or alias, is there once."""
    found = list(old)
    taken: set[str] = set()
    for member in new:
        place = f"{field}.{member.name}" if field else member.name
        match = partner(member, found)
        if match is None:
            found.append(member)
            continue
        if match.name in taken:
            raise MismatchError(place, member.type, match.type)
        taken.add(match.name)
        aliases = tuple(name for name in dict.fromkeys((*match.names, *member.names)) if name != match.name)
        joined = replace(match, type=unify(match.type, member.type, place), aliases=aliases)
        found[found.index(match)] = joined
    return tuple(found)


def partner(member: ColumnMember, others: Sequence[ColumnMember]) -> ColumnMember | None:
    """Return the same member among others: by its name, or else by a shared name or alias; None if there is none."""
    same = next((other for other in others if other.name == member.name), None)
    return same or next((other for other in others if set(other.names) & set(member.names)), None)


def _with_member(union: UnionType, own: ColumnType) -> UnionType:
    """Return the union extended by a type that may be in it already."""
    if place_in(union, own) is not None:
        return union
    name = own.names[0] if isinstance(own, StructType) and own.names else type_text(own)
    same = next((member for member in union.members if member.name == name), None)
    if same is None:
        return UnionType((*union.members, ColumnMember(name, own)))
    return UnionType(_join_members(union.members, [ColumnMember(name, own)], ""))


def place_in(union: UnionType, own: ColumnType) -> int | None:
    """Return the index of the first member of a union that can hold all values of a type; None if there is none."""
    for place, member in enumerate(union.members):
        if holds(member.type, own):
            return place
    return None


def holds(wide: ColumnType, own: ColumnType) -> bool:
    """Return True if a type can hold all values of another one."""
    try:
        return unify(wide, own) == wide
    except MismatchError:
        return False


def unlike(written: ColumnType, wanted: ColumnType, field: str = "") -> MismatchError | None:
    """Return the reason why files of two types can't be read as one table, or None if they can.

    Added fields and wider floats and decimals are allowed: readers and table formats support them.
    """
    match written, wanted:
        case _ if written == wanted or (written, wanted) == (Scalar.FLOAT, Scalar.DOUBLE):
            return None
        case DecimalType(), DecimalType() if written.scale == wanted.scale and written.precision <= wanted.precision:
            return None
        case ListType(), ListType():
            return unlike(written.item, wanted.item, f"{field}[]")
        case MapType(), MapType() if written.key == wanted.key:
            return unlike(written.value, wanted.value, f"{field}[]")
        case StructType(), StructType():
            return _unlike_members(written.members, wanted.members, field)
        case UnionType(), UnionType():
            return _unlike_members(written.members, wanted.members, field)
        case _:
            return MismatchError(field, wanted, written)


def _unlike_members(
    written: Sequence[ColumnMember], wanted: Sequence[ColumnMember], field: str
) -> MismatchError | None:
    by_name = {member.name: member for member in wanted}
    for member in written:
        place = f"{field}.{member.name}" if field else member.name
        found = unlike(member.type, by_name[member.name].type, place)
        if found is not None:
            return found
    return None


_SCALARS: dict[Scalar, pa.DataType] = {
    Scalar.BOOLEAN: pa.bool_(),
    Scalar.LONG: pa.int64(),
    Scalar.FLOAT: pa.float32(),
    Scalar.DOUBLE: pa.float64(),
    Scalar.STRING: pa.string(),
    Scalar.BYTES: pa.binary(),
    Scalar.DATE: pa.date32(),
    Scalar.TIMESTAMP: TIMESTAMP,
    Scalar.LOCAL_TIMESTAMP: pa.timestamp("us"),
    Scalar.JSON: pa.string(),
}


def arrow_type(column: ColumnType) -> pa.DataType:
    """Return the Arrow type of a column; lists have Parquet's names, which Spark requires."""
    match column:
        case Scalar():
            return _SCALARS[column]
        case DecimalType():
            return pa.decimal128(column.precision, column.scale)
        case ListType():
            return list_of(arrow_type(column.item))
        case MapType():
            return pa.map_(_SCALARS[column.key], arrow_type(column.value))
        case StructType() | UnionType():
            return pa.struct([pa.field(member.name, arrow_type(member.type)) for member in column.members])


def list_of(item: pa.DataType) -> pa.ListType:
    """Return a list type that uses the element name required by Parquet."""
    return pa.list_(pa.field("element", item))


def widen(array: pa.Array, own: ColumnType, wide: ColumnType) -> pa.Array:
    """Cast an array to a wider type. The array must not have an offset.

    Raises pyarrow.ArrowInvalid for a time or a date outside of the years 1 to 9999.
    """
    match own, wide:
        case UnionType(), UnionType():
            return _struct(array, own.members, wide)
        case _, UnionType():
            return _as_member(array, own, wide)
        case StructType(), StructType():
            return _struct(array, own.members, wide)
        case ListType(), ListType():
            items = widen(array.values, own.item, wide.item)
            return _with_contents(array, arrow_type(wide), items)
        case MapType(), MapType():
            return _map(array, own, wide)
        case _:
            return _in_years(pc.cast(array, arrow_type(wide), safe=not _may_round(array.type, arrow_type(wide))))


def _in_years(array: pa.Array) -> pa.Array:
    """Raise pyarrow.ArrowInvalid for dates and times that some readers don't support."""
    if pa.types.is_date32(array.type):
        numbers, unit = array.view(pa.int32()), _DAY
    elif pa.types.is_timestamp(array.type):
        numbers, unit = array.view(pa.int64()), 1
    else:
        return array
    bounds = pc.min_max(numbers)
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    if first is not None and (first * unit < FIRST_TIME or last * unit >= END_TIME):
        raise pa.ArrowInvalid("the time is outside of the years 1 to 9999")
    return array


def _may_round(own: pa.DataType, wide: pa.DataType) -> bool:
    """Return True if rounding is allowed, as for longs that Avro reads as doubles."""
    return bool(pa.types.is_floating(wide) or (pa.types.is_timestamp(own) and own.unit == "ns"))


def _struct(array: pa.StructArray, own: tuple[ColumnMember, ...], wide: StructType | UnionType) -> pa.Array:
    places = {}
    for place, member in enumerate(own):
        match = partner(member, wide.members)
        if match is not None:
            places[match.name] = place
    children = [
        widen(array.field(places[member.name]), own[places[member.name]].type, member.type)
        if member.name in places
        else pa.nulls(len(array), arrow_type(member.type))
        for member in wide.members
    ]
    return _struct_array(children, wide, array.is_null())


def _as_member(array: pa.Array, own: ColumnType, wide: UnionType) -> pa.Array:
    place = place_in(wide, own)
    children = [
        widen(array, own, member.type) if number == place else pa.nulls(len(array), arrow_type(member.type))
        for number, member in enumerate(wide.members)
    ]
    return _struct_array(children, wide, array.is_null())


def _struct_array(children: list[pa.Array], wide: StructType | UnionType, mask: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(children, fields=list(arrow_type(wide)), mask=mask)


def _map(array: pa.MapArray, own: MapType, wide: MapType) -> pa.Array:
    kind = arrow_type(wide)
    values = widen(array.items, own.value, wide.value)
    keys = pc.cast(array.keys, kind.key_type)
    entries = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    return _with_contents(array, kind, entries)


def _with_contents(array: pa.Array, kind: pa.DataType, inner: pa.Array) -> pa.Array:
    """Return a list or map with other contents at the same positions."""
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], children=[inner])


def text_columns(field: pa.Field) -> Iterator[str]:
    """Yield the Parquet paths of the text columns, which use dictionary encoding."""
    yield from _text_columns(field.type, field.name)


def _text_columns(kind: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_string(kind):
        yield path
    elif pa.types.is_struct(kind):
        for inner in kind:
            yield from _text_columns(inner.type, f"{path}.{inner.name}")
    elif pa.types.is_list(kind):
        yield from _text_columns(kind.value_type, f"{path}.list.element")
    elif pa.types.is_map(kind):
        yield from _text_columns(kind.key_type, f"{path}.key_value.key")
        yield from _text_columns(kind.item_type, f"{path}.key_value.value")
