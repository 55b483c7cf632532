"""Protobuf messages as columns: Arrow arrays are built field by field for all messages of a batch at once."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa

from kseg.decode.decoded import NotDecodable, json_bytes, one_line
from kseg.decode.protobuf import Descriptor, FieldCounts, message_pool, protobuf
from kseg.export.columns.column_types import (
    MOST_COLUMNS,
    MOST_LEVELS,
    ColumnMember,
    ColumnType,
    DecimalType,
    ListType,
    MapType,
    Scalar,
    arrow_type,
    struct_or_text,
)

_Make = Callable[[Sequence[Any]], pa.Array]
"""A function that makes an array of the same length from a sequence of values; None becomes null."""
_UNSIGNED_LONG = DecimalType(20, 0)
_SCALARS: dict[str, ColumnType] = {
    "CPPTYPE_INT32": Scalar.LONG,
    "CPPTYPE_INT64": Scalar.LONG,
    "CPPTYPE_UINT32": Scalar.LONG,
    "CPPTYPE_UINT64": _UNSIGNED_LONG,
    "CPPTYPE_FLOAT": Scalar.FLOAT,
    "CPPTYPE_DOUBLE": Scalar.DOUBLE,
    "CPPTYPE_BOOL": Scalar.BOOLEAN,
    "CPPTYPE_ENUM": Scalar.STRING,
    "CPPTYPE_STRING": Scalar.STRING,
}
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_AS_JSON = {f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue", "Any")}
"""Message types that may hold any value."""
_TIMESTAMP = "google.protobuf.Timestamp"
_EPOCH_LIMIT = 1 << 43
"""Seconds from 1970 beyond which microseconds may overflow."""


class _Maker(NamedTuple):
    type: ColumnType
    make: _Make


class ProtobufColumns:
    """A reader of messages of one type. type: of the column."""

    def __init__(self, descriptors: bytes, message: str) -> None:
        """Load a message type from a serialized descriptor set. Raises NotDecodable."""
        self._pool = message_pool(descriptors)
        descriptor = self._pool.FindMessageTypeByName(message)
        self._counts = FieldCounts(descriptor)
        self._parse = protobuf("message_factory").GetMessageClass(descriptor).FromString
        self._error = protobuf("message").DecodeError
        column = _MessageWalk(self._pool).message(descriptor, ())
        self._make, self.type = column.make, column.type

    def value(self, body: bytes) -> object:
        """Return the message. Raises NotDecodable."""
        self._counts.check(body)
        try:
            return self._parse(body)
        except (self._error, RecursionError) as error:
            raise NotDecodable(f"not a {self._counts.descriptor.full_name}: {one_line(error)}") from error

    def array(self, values: Sequence[object]) -> pa.Array:
        """Convert messages to an Arrow array. Raises the errors of pyarrow for values that don't fit."""
        return self._make(values)


class _MessageWalk:
    def __init__(self, pool: Descriptor) -> None:
        self._pool = pool
        self._count = 0

    def message(self, descriptor: Descriptor, within: tuple[str, ...]) -> _Maker:
        name = descriptor.full_name
        if name in _WRAPPERS and "value" in descriptor.fields_by_name:
            column = _scalar(descriptor.fields_by_name["value"])
            return _Maker(column.type, lambda messages: column.make([_of(each, "value") for each in messages]))
        if name == _TIMESTAMP and {"seconds", "nanos"} <= {*descriptor.fields_by_name.keys()}:
            return _Maker(Scalar.TIMESTAMP, _timestamps)
        if name in _AS_JSON or name in within:
            return _Maker(Scalar.JSON, self._json_texts)
        if len(within) > MOST_LEVELS:
            raise NotDecodable(f"the schema is nested more than {MOST_LEVELS} levels deep")
        self._count += len(descriptor.fields)
        if self._count > MOST_COLUMNS:
            raise NotDecodable(f"the schema needs more than {MOST_COLUMNS} columns")
        columns = {field.name: self._field(field, (*within, name)) for field in descriptor.fields}
        members = [ColumnMember(own, column.type) for own, column in columns.items()]
        kind = struct_or_text(members, (descriptor.name,))
        if kind is Scalar.JSON:
            return _Maker(kind, self._json_texts)
        return _Maker(kind, _structs(arrow_type(kind), [(own, column.make) for own, column in columns.items()]))

    def _field(self, field: Descriptor, within: tuple[str, ...]) -> _Maker:
        if _is_map(field):
            return self._map(field, within)
        if _is_repeated(field):
            return _lists(field.name, self._single(field, within))
        column, name = self._single(field, within), field.name
        if field.has_presence:
            return _Maker(column.type, lambda messages: column.make([_present(each, name) for each in messages]))
        return _Maker(column.type, lambda messages: column.make([_of(each, name) for each in messages]))

    def _single(self, field: Descriptor, within: tuple[str, ...]) -> _Maker:
        return _scalar(field) if field.message_type is None else self.message(field.message_type, within)

    def _map(self, field: Descriptor, within: tuple[str, ...]) -> _Maker:
        own_key, own_value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
        key, value, name = _scalar(own_key), self._single(own_value, within), field.name
        # Keys of uint64 become text: no table has maps with decimal keys.
        key_type = key.type if isinstance(key.type, Scalar) else Scalar.STRING
        kind = MapType(key_type, value.type)
        to_key = (lambda each: each) if key_type is key.type else str

        def make(messages: Sequence[Any]) -> pa.Array:
            maps = [None if each is None else getattr(each, name) for each in messages]
            keys = [to_key(own) for each in maps if each is not None for own in each]
            values = value.make([each[own] for each in maps if each is not None for own in each])
            own_arrow = arrow_type(kind)
            entries = pa.StructArray.from_arrays(
                [pa.array(keys, own_arrow.key_type), values], fields=[own_arrow.key_field, own_arrow.item_field]
            )
            return _container_array(own_arrow, maps, entries)

        return _Maker(kind, make)

    def _json_texts(self, messages: Sequence[Any]) -> pa.Array:
        return pa.array([None if each is None else self._json_text(each) for each in messages], pa.string())

    def _json_text(self, message: Any) -> str:
        json_format = protobuf("json_format")
        try:
            shown = json_format.MessageToDict(
                message,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
                descriptor_pool=self._pool,
            )
        except (json_format.Error, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(one_line(error)) from error
        return json_bytes(shown).decode()


def _is_repeated(field: Descriptor) -> bool:
    # Older releases of the library have only the label, which is deprecated in newer ones.
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def _is_map(field: Descriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _of(message: Any, name: str) -> Any:
    return None if message is None else getattr(message, name)


def _present(message: Any, name: str) -> Any:
    return getattr(message, name) if message is not None and message.HasField(name) else None


def _scalar(field: Descriptor) -> _Maker:
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return _Maker(Scalar.STRING, lambda numbers: pa.array(_names(numbers, names), pa.string()))
    kind: ColumnType = Scalar.BYTES if field.type == field.TYPE_BYTES else _SCALARS[_cpp_type(field)]
    if kind == _UNSIGNED_LONG:
        whole = arrow_type(kind)
        return _Maker(kind, lambda values: pa.array([None if v is None else Decimal(v) for v in values], whole))
    own = arrow_type(kind)
    return _Maker(kind, lambda values: pa.array(values, own))


def _cpp_type(field: Descriptor) -> str:
    return next(name for name in _SCALARS if getattr(field, name) == field.cpp_type)


def _names(numbers: Iterable[int | None], names: dict[int, str]) -> list[str | None]:
    """Return the names of an enum's values. Values without a name are returned as numbers."""
    return [None if number is None else names.get(number) or str(number) for number in numbers]


def _timestamps(messages: Sequence[Any]) -> pa.Array:
    return pa.array([None if each is None else _microseconds(each) for each in messages], arrow_type(Scalar.TIMESTAMP))


def _microseconds(message: Any) -> int:
    if abs(message.seconds) > _EPOCH_LIMIT:
        raise ValueError("the time can't be expressed in microseconds")
    return int(message.seconds * 1_000_000 + message.nanos // 1000)


def _structs(kind: pa.StructType, makers: list[tuple[str, _Make]]) -> _Make:
    def make(messages: Sequence[Any]) -> pa.Array:
        mask = pa.array([each is None for each in messages], pa.bool_())
        return pa.StructArray.from_arrays([own(messages) for _, own in makers], fields=list(kind), mask=mask)

    return make


def _lists(name: str, item: _Maker) -> _Maker:
    kind = ListType(item.type)
    own_arrow = arrow_type(kind)

    def make(messages: Sequence[Any]) -> pa.Array:
        lists = [None if each is None else getattr(each, name) for each in messages]
        items = item.make([each for own in lists if own is not None for each in own])
        return _container_array(own_arrow, lists, items)

    return _Maker(kind, make)


def _container_array(kind: pa.DataType, containers: Sequence[Any], inner: pa.Array) -> pa.Array:
    """Build an array of lists or maps from their concatenated contents."""
    ends = accumulate((0 if each is None else len(each) for each in containers), initial=0)
    offsets = pa.array(list(ends), pa.int32())
    validity = pa.array([None if each is None else True for each in containers], pa.bool_())
    buffers = [validity.buffers()[0], offsets.buffers()[1]]
    return pa.Array.from_buffers(kind, len(containers), buffers, children=[inner])
