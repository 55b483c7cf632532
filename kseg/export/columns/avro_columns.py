"""Avro schemas as columns, and their values as Arrow arrays.

fastavro reads with a rewritten schema that has the same binary form. In it, the types of a union are records of one
field, so that a value shows its type. Logical types are left to Arrow, which converts complete columns.
"""

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from itertools import count
from typing import Any, NamedTuple, cast
from uuid import UUID

import pyarrow as pa

from kseg.decode.avro import Types, is_text, parsed_schema, value_reader
from kseg.decode.decoded import NotDecodable, json_able, json_bytes, one_line
from kseg.errors import plural
from kseg.export.columns.column_types import (
    MOST_COLUMNS,
    MOST_LEVELS,
    ColumnMember,
    ColumnType,
    ListType,
    MapType,
    Scalar,
    UnionType,
    decimal_or_text,
    list_of,
    struct_or_text,
)

_Fix = Callable[[Any], object]
_RECORDS = ("record", "error")
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_FIELD = "value"
_MOST_DIGITS = 1000
"""The most digits of a decimal as text: a schema may claim any number, and one byte would become as many digits."""


class _AvroBranch(NamedTuple):
    """A part of a schema: its column, the schema to read it with, Arrow's type for it, and the fix of its values."""

    type: ColumnType
    schema: object
    storage: pa.DataType
    fix: _Fix | None = None


_PRIMITIVES: dict[str, _AvroBranch] = {
    "boolean": _AvroBranch(Scalar.BOOLEAN, "boolean", pa.bool_()),
    "int": _AvroBranch(Scalar.LONG, "int", pa.int64()),
    "long": _AvroBranch(Scalar.LONG, "long", pa.int64()),
    "float": _AvroBranch(Scalar.FLOAT, "float", pa.float32()),
    "double": _AvroBranch(Scalar.DOUBLE, "double", pa.float64()),
    "bytes": _AvroBranch(Scalar.BYTES, "bytes", pa.binary()),
    "string": _AvroBranch(Scalar.STRING, "string", pa.string()),
    "null": _AvroBranch(Scalar.JSON, "null", pa.string()),
}
_LOGICAL: dict[tuple[str, str], _AvroBranch] = {
    ("int", "date"): _AvroBranch(Scalar.DATE, "int", pa.date32()),
    # Times become text: neither Spark nor Delta has times without a date.
    ("int", "time-millis"): _AvroBranch(Scalar.STRING, "int", pa.time32("ms")),
    ("long", "time-micros"): _AvroBranch(Scalar.STRING, "long", pa.time64("us")),
    **{
        ("long", f"{kind}timestamp-{name}"): _AvroBranch(scalar, "long", pa.timestamp(unit, zone))
        for kind, scalar, zone in (("", Scalar.TIMESTAMP, "UTC"), ("local-", Scalar.LOCAL_TIMESTAMP, None))
        for name, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}


class AvroColumns:
    """A reader of one schema's values. type: of the column; storage: the type of the results of `value`."""

    def __init__(self, texts: Sequence[object]) -> None:
        """Take a schema (parsed JSON), after the schemas that it refers to. Raises NotDecodable if it can't be used."""
        types: Types = {}
        *_, parsed = [parsed_schema(schema, types) for schema in texts]
        branch = _AvroWalk(types).branch(parsed, ())
        whole = {"type": "record", "name": "kseg_whole", "fields": [{"name": _FIELD, "type": branch.schema}]}
        self._read = value_reader(parsed, types, parsed_schema(whole, dict(types)))
        self._fix = branch.fix
        self._storage = branch.storage
        self.type = branch.type

    def value(self, body: bytes) -> object:
        """Return the value of a message. Raises NotDecodable."""
        value = cast(dict[str, object], self._read(body))[_FIELD]
        return value if self._fix is None or value is None else self._fix(value)

    def array(self, values: Sequence[object]) -> pa.Array:
        """Return values as an Arrow array. Raises pyarrow's errors for values that don't fit."""
        return pa.array(values, self._storage)


class _AvroWalk:
    def __init__(self, types: Types) -> None:
        self._types = types
        self._numbers = count()

    def _new_name(self) -> str:
        number = next(self._numbers)
        if number > MOST_COLUMNS:
            raise NotDecodable(f"the schema needs more than {MOST_COLUMNS} columns")
        return f"kseg_{number}"

    def branch(self, schema: Any, within: tuple[str, ...]) -> _AvroBranch:
        if isinstance(schema, str):
            return _PRIMITIVES[schema] if schema in _PRIMITIVES else self.branch(self._types[schema], within)
        if isinstance(schema, list):
            return self._union(schema, within)
        kind = schema["type"]
        if len(within) > MOST_LEVELS:
            raise NotDecodable(f"the schema is nested more than {MOST_LEVELS} levels deep")
        if not isinstance(kind, str):
            return self.branch(kind, within)
        if kind in _RECORDS:
            return self._record(schema, within)
        if kind in _MAKERS:
            return _MAKERS[kind](self, schema, (*within, ""))
        if kind == "bytes" and _is_decimal(schema):
            return _decimal(schema, "bytes")
        return _LOGICAL.get((kind, str(schema.get("logicalType")))) or self.branch(kind, within)

    def _record(self, schema: Any, within: tuple[str, ...]) -> _AvroBranch:
        name = schema["name"]
        if name in within:
            return _AvroBranch(Scalar.JSON, name, pa.string(), _json_text)
        branches = {field["name"]: self.branch(field["type"], (*within, name)) for field in schema["fields"]}
        fields = [{"name": own, "type": branch.schema} for own, branch in branches.items()]
        read_as = {"type": "record", "name": self._new_name(), "fields": fields}
        members = [
            ColumnMember(field["name"], branches[field["name"]].type, _aliases(field))
            for field in schema["fields"]
            if branches[field["name"]].schema != "null"
        ]
        names = tuple(dict.fromkeys(map(_simple, (name, *_aliases(schema)))))
        column = struct_or_text(members, names)
        if column is Scalar.JSON:
            return _AvroBranch(column, read_as, pa.string(), _json_text)
        storage = pa.struct([(member.name, branches[member.name].storage) for member in members])
        return _AvroBranch(column, read_as, storage, _fixed_members(branches))

    def _union(self, schema: list[Any], within: tuple[str, ...]) -> _AvroBranch:
        others = [each for each in schema if each != "null"]
        if not others:
            return _PRIMITIVES["null"]._replace(schema=schema)
        if any(isinstance(each, list) for each in others):
            raise NotDecodable("the Avro schema isn't valid: a union directly contains a union")
        if len(others) == 1:
            only = self.branch(others[0], within)
            return only._replace(schema=[only.schema if each != "null" else "null" for each in schema])
        simple = [_simple(_type_name(each)) for each in others]
        names = [own if simple.count(own) == 1 else _type_name(each) for own, each in zip(simple, others, strict=True)]
        if not all(map(is_text, names)):
            raise NotDecodable("the Avro schema isn't valid: a union contains an unnamed type")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise NotDecodable(f"the Avro schema isn't valid: a union contains {one_line(twice)} twice")
        branches = {name: self.branch(each, within) for name, each in zip(names, others, strict=True)}
        wrapped = iter(
            {"type": "record", "name": self._new_name(), "fields": [{"name": name, "type": branch.schema}]}
            for name, branch in branches.items()
        )
        read_as = ["null" if each == "null" else next(wrapped) for each in schema]
        members = tuple(ColumnMember(name, branch.type) for name, branch in branches.items())
        storage = pa.struct([(name, branch.storage) for name, branch in branches.items()])
        return _AvroBranch(UnionType(members), read_as, storage, _fixed_members(branches))

    def array(self, schema: Any, within: tuple[str, ...]) -> _AvroBranch:
        item = self.branch(schema["items"], within)
        read_as = {"type": "array", "items": item.schema}
        fix = item.fix
        fixed = None if fix is None else lambda values: [None if each is None else fix(each) for each in values]
        return _AvroBranch(ListType(item.type), read_as, list_of(item.storage), fixed)

    def map(self, schema: Any, within: tuple[str, ...]) -> _AvroBranch:
        value = self.branch(schema["values"], within)
        read_as = {"type": "map", "values": value.schema}
        storage = pa.map_(pa.string(), value.storage)
        fix = value.fix
        fixed = (
            None
            if fix is None
            else lambda pairs: {key: None if each is None else fix(each) for key, each in pairs.items()}
        )
        return _AvroBranch(MapType(Scalar.STRING, value.type), read_as, storage, fixed)

    def enum(self, schema: Any, _: tuple[str, ...]) -> _AvroBranch:
        read_as = {"type": "enum", "name": self._new_name(), "symbols": schema["symbols"]}
        return _AvroBranch(Scalar.STRING, read_as, pa.string())

    def fixed(self, schema: Any, _: tuple[str, ...]) -> _AvroBranch:
        read_as = {"type": "fixed", "name": self._new_name(), "size": schema["size"]}
        if _is_decimal(schema):
            return _decimal(schema, read_as)
        if schema.get("logicalType") == "uuid" and schema["size"] == 16:
            return _AvroBranch(Scalar.STRING, read_as, pa.string(), lambda data: str(UUID(bytes=data)))
        return _AvroBranch(Scalar.BYTES, read_as, pa.binary())


_MAKERS = {"array": _AvroWalk.array, "map": _AvroWalk.map, "enum": _AvroWalk.enum, "fixed": _AvroWalk.fixed}


def _aliases(schema: Any) -> tuple[str, ...]:
    listed = schema.get("aliases")
    return tuple(filter(is_text, listed)) if isinstance(listed, list) else ()


def _type_name(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    return str(schema["name"]) if "name" in schema else str(schema["type"])


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


def _json_text(value: object) -> str:
    try:
        return json_bytes(json_able(value)).decode()
    except (RecursionError, UnicodeEncodeError) as error:
        raise NotDecodable("the value can't be expressed in JSON") from error


def _fixed_members(branches: dict[str, _AvroBranch]) -> _Fix | None:
    """Return the fix that changes the fields of a record in place, or None if no field needs one."""
    fixes = [(name, branch.fix) for name, branch in branches.items() if branch.fix is not None]
    if not fixes:
        return None

    def fix(record: dict[str, object]) -> object:
        for name, change in fixes:
            value = record.get(name)
            if value is not None:
                record[name] = change(value)
        return record

    return fix


def _is_decimal(schema: Any) -> bool:
    """Return True if bytes are decimals: Avro ignores an invalid logical type."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    is_whole = type(precision) is int and type(scale) is int
    return schema.get("logicalType") == "decimal" and is_whole and 0 <= scale <= precision <= _MOST_DIGITS


def _decimal(schema: Any, read_as: object) -> _AvroBranch:
    precision, scale = schema["precision"], schema.get("scale", 0)
    most = precision // 2 + 8  # bytes: values of `precision` digits need fewer

    def exact(data: bytes) -> Decimal:
        if len(data) > most:
            raise NotDecodable(
                f"a decimal of {precision} digits has {plural(len(data), 'byte')}, expected at most {most}"
            )
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)

    column = decimal_or_text(precision, scale)
    if column is Scalar.STRING:
        return _AvroBranch(column, read_as, pa.string(), lambda data: format(exact(data), "f"))
    return _AvroBranch(column, read_as, pa.decimal128(precision, scale), exact)
