"""Cells of typed columns: values read with their writers' schemas, as Arrow arrays."""

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from kseg.decode.avro import schema_json
from kseg.decode.decoded import Headers, NotDecodable, Part, one_line
from kseg.decode.simple_values import (
    ID_PREFIX_SIZE,
    MAGIC_ID,
    SCHEMA_ID_HEADER,
    WireMessage,
    parse_indexed,
    parse_wire,
    schema_name,
    without_id,
)
from kseg.export.columns.column_types import ColumnType, arrow_type, check_bounds, from_json, to_json, widen

ANY_ID = ""
"""The id of a schema that applies to all values, whichever id they have."""


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """A writer's schema.

    id: as text, as values have it; indexes: the message of a Protobuf file. name: for messages to users. texts: an Avro
    schema, after the referenced ones; a JSON Schema, before the referenced ones, each with its name; Protobuf's
    descriptors in base64 and the message's name. problem: why its values stay raw; empty if they don't.
    """

    id: str
    name: str
    kind: str
    texts: tuple[str, ...]
    indexes: tuple[int, ...] = ()
    problem: str = ""

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """The schema id and the message indexes of values."""
        return self.id, self.indexes

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "WriterSchema":
        """Return the schema of dataclasses.asdict, from JSON."""
        return cls(**{**content, "texts": tuple(content["texts"]), "indexes": tuple(content["indexes"])})


class ColumnReader(Protocol):
    """A reader of one schema's values."""

    @property
    def type(self) -> ColumnType:
        """The type of the column."""

    def value(self, body: bytes) -> object:
        """Return a value, for `array`. Raises NotDecodable."""

    def array(self, values: Sequence[object]) -> pa.Array:
        """Convert values to an Arrow array. Raises the errors of pyarrow for values that don't fit."""


def column_reader(schema: WriterSchema) -> ColumnReader:
    """Return the reader of the values of a schema.

    Raises NotDecodable if the schema can't be used, UsageError without its library.
    """
    try:
        reader = _READERS[schema.kind](schema.texts)
    except _MISSHAPEN as error:
        reason = one_line(error) or type(error).__name__
        raise NotDecodable(f"the schema isn't valid for {schema.kind}: {reason}") from error
    check_bounds(reader.type)
    return reader


def _avro(texts: Sequence[str]) -> ColumnReader:
    from kseg.export.columns.avro_columns import AvroColumns

    return AvroColumns([schema_json(text) for text in texts])


def _protobuf(texts: Sequence[str]) -> ColumnReader:
    from kseg.export.columns.protobuf_columns import ProtobufColumns

    return ProtobufColumns(b64decode(texts[0]), texts[1])


def _json(texts: Sequence[str]) -> ColumnReader:
    from kseg.export.columns.json_columns import JsonColumns

    names, others = texts[1::2], texts[2::2]
    needed = {name: schema_json(text) for name, text in zip(names, others, strict=True)}
    return JsonColumns(schema_json(texts[0]), needed)


_MISSHAPEN = (TypeError, ValueError, LookupError, AttributeError, RecursionError, StopIteration)
"""Errors of walking a schema whose JSON has unexpected types: no library checks all of it."""
_READERS = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}
KINDS = frozenset(_READERS)


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """The type of a decoded column, and the schemas of its values. A manifest has the type alone."""

    type: ColumnType
    writers: tuple[WriterSchema, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON's values."""
        return {"type": to_json(self.type), "writers": [asdict(writer) for writer in self.writers]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TypedColumn":
        """Parse a column from its JSON form. Raises KsegError if the type is invalid."""
        writers = tuple(map(WriterSchema.from_json, content.get("writers", ())))
        return cls(from_json(content.get("type")), writers)


def as_text(schema: object) -> str:
    """Return a schema that fastavro has parsed as JSON, without fastavro's additions.

    fastavro adds all named types to the outermost schema, and to each branch if that is a union.
    """
    return json.dumps([_as_written(each) for each in schema] if isinstance(schema, list) else _as_written(schema))


def _as_written(schema: object) -> object:
    if not isinstance(schema, dict):
        return schema
    return {name: value for name, value in schema.items() if not name.startswith("__")}


_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError)
"""Errors of pyarrow, and of the functions that prepare its values, for values that a column can't hold."""
MOST_NOTES = 20


class _Route:
    """A reader with its values of a batch, and their rows."""

    def __init__(self, schema: WriterSchema, reader: ColumnReader) -> None:
        self.kind = schema.kind
        self.read = reader.value
        self.reader = reader
        self.rows: list[int] = []
        self.values: list[object] = []


class TypedCells:
    """A maker of arrays for a typed column. failures: the rows of the last array that don't decode, with reasons.

    notes: why all values of a schema stay raw, once per schema.
    """

    def __init__(self, column: TypedColumn, part: Part) -> None:
        self.failures: dict[int, str] = {}
        self.notes: list[str] = []
        self._part = part
        self._type = column.type
        self._schemas = {schema.key: schema for schema in column.writers}
        self._any = self._schemas.get((ANY_ID, ()))
        self._routes: dict[tuple[str, tuple[int, ...]], _Route] = {}
        self._by_prefix: dict[bytes, _Route] = {}

    def array(self, column: pa.Array, headers: pa.Array | None) -> pa.Array:
        """Decode a column of bytes. `headers` are the headers of the same rows, if needed."""
        messages, self.failures = column.to_pylist(), {}
        own_headers = headers_with_ids(headers, self._part)
        for row, message in enumerate(messages):
            if message is not None:
                try:
                    self._read(row, message, None if own_headers is None else own_headers[row])
                except NotDecodable as error:
                    self.failures[row] = error.message
        return self._join_arrays(len(messages))

    def _read(self, row: int, message: bytes, headers: Headers | None) -> None:
        if headers is None and self._any is None:
            route = self._by_prefix.get(message[:ID_PREFIX_SIZE])
            if route is not None:
                value = route.read(message[ID_PREFIX_SIZE:])
                route.rows.append(row)
                route.values.append(value)
                return
        route, bodies = self._find_route(message, headers or ())
        value = _first_that_reads(route, bodies)
        route.rows.append(row)
        route.values.append(value)

    def _find_route(self, message: bytes, headers: Headers) -> tuple[_Route, Sequence[bytes]]:
        """Return the reader of a message, and the candidates for its body, the most likely first."""
        wire = parse_wire(message, headers, self._part)
        if self._any is not None:
            return self._route(self._any.key), _bodies_of_any(self._any.kind, message, wire)
        if wire is None:
            raise without_id(message)
        name = str(wire.schema_id)
        if (name, ()) in self._schemas:
            route = self._route((name, ()))
            if wire.payload is None and message.startswith(MAGIC_ID):
                self._by_prefix[message[:ID_PREFIX_SIZE]] = route
            return route, [wire.body]
        indexed = parse_indexed(wire) if any(name == own for own, _ in self._schemas) else None
        if indexed is None or (name, indexed.indexes) not in self._schemas:
            self._note(f"values of {schema_name(wire.schema_id)} stay raw: the schema isn't among the topic's schemas")
            raise NotDecodable(f"{schema_name(wire.schema_id)} isn't among the topic's schemas")
        return self._route((name, indexed.indexes)), [indexed.body]

    def _route(self, key: tuple[str, tuple[int, ...]]) -> _Route:
        if key not in self._routes:
            schema = self._schemas[key]
            if schema.problem:
                self._note(f"values of {schema.name} stay raw: {schema.problem}")
                raise NotDecodable(schema.problem)
            self._routes[key] = _Route(schema, column_reader(schema))
        return self._routes[key]

    def _note(self, text: str) -> None:
        note = f"{self._part}: {text}"
        if note not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(note)

    def _join_arrays(self, count: int) -> pa.Array:
        """Return the values that were read, each at its row, and forget them."""
        arrays: list[pa.Array] = []
        places: list[int | None] = [None] * count
        first = 0
        for route in self._routes.values():
            for rows, array in self._arrays(route, route.rows, route.values):
                arrays.append(array)
                for place, row in enumerate(rows, first):
                    places[row] = place
                first += len(rows)
            route.rows, route.values = [], []
        if len(arrays) == 1 and len(arrays[0]) == count:
            return arrays[0]
        if not arrays:
            return pa.nulls(count, arrow_type(self._type))
        return pa.concat_arrays(arrays).take(pa.array(places, pa.int64()))

    def _arrays(
        self, route: _Route, rows: Sequence[int], values: Sequence[object]
    ) -> Iterable[tuple[Sequence[int], pa.Array]]:
        """Yield arrays of values: one of all if they fit, else without each value that doesn't, which is a failure."""
        if not rows:
            return
        try:
            array = widen(route.reader.array(values), route.reader.type, self._type)
        except _UNFIT as error:
            if len(rows) == 1:
                self.failures[rows[0]] = f"the value doesn't fit into the column: {one_line(error)}"
                return
            half = len(rows) // 2
            yield from self._arrays(route, rows[:half], values[:half])
            yield from self._arrays(route, rows[half:], values[half:])
            return
        yield rows, array


def _bodies_of_any(kind: str, message: bytes, wire: WireMessage | None) -> Sequence[bytes]:
    """Return the candidates for the body of a message with a known schema: a bare body may begin like an id."""
    if wire is None or kind == "JSON":
        return [message]
    return [parse_indexed(wire).body] if kind == "PROTOBUF" else [wire.body, message]


def _first_that_reads(route: _Route, bodies: Sequence[bytes]) -> object:
    *others, last = bodies
    for body in others:
        try:
            return route.read(body)
        except NotDecodable:
            continue
    return route.read(last)


def headers_with_ids(headers: pa.Array | None, part: Part) -> list[Headers] | None:
    """Return the headers of all records if at least one has a schema id, or None otherwise."""
    from kseg.kernel.record import Header

    if headers is None:
        return None
    names = headers.flatten().field("key")
    if not pc.any(pc.equal(names, SCHEMA_ID_HEADER[part])).as_py():
        return None
    return [[Header(pair["key"], pair["value"]) for pair in pairs] for pairs in headers.to_pylist()]
