"""Values of a typed column: each read by the schema that it names, all of a batch made into one Arrow array."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kseg.decode.decoded import Headers, NotDecodable, Part
from kseg.decode.wire import (
    ID_PREFIX_SIZE,
    MAGIC_ID,
    SCHEMA_ID_HEADER,
    WireMessage,
    parse_indexed,
    parse_wire,
    schema_name,
)
from kseg.export.typed.arrow_types import arrow_type, widened
from kseg.export.typed.writer_schema import ANY_ID, ColumnReader, TypedColumn, WriterSchema, column_reader

_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError)
"""What pyarrow, and what makes values for it, raise for values that have no place in a column."""
MOST_NOTES = 20


class _Route:
    """A reader with the values that it got of a batch, and their rows."""

    def __init__(self, schema: WriterSchema, reader: ColumnReader) -> None:
        self.kind = schema.kind
        self.read = reader.value
        self.reader = reader
        self.rows: list[int] = []
        self.values: list[object] = []


class TypedCells:
    """Makes arrays of a typed column. undecoded: values so far that are null though their bytes aren't.

    notes: why whole schemas stay raw, once for each.
    """

    def __init__(self, column: TypedColumn, part: Part) -> None:
        self.undecoded = 0
        self.notes: list[str] = []
        self._part = part
        self._type = column.type
        self._schemas = {schema.key: schema for schema in column.writers}
        self._any = self._schemas.get((ANY_ID, ()))
        self._routes: dict[tuple[str, tuple[int, ...]], _Route] = {}
        self._by_prefix: dict[bytes, _Route] = {}

    def array(self, column: pa.Array, headers: pa.Array | None) -> pa.Array:
        """The values of a column of bytes. headers: of the same rows, if they were asked for."""
        messages = column.to_pylist()
        own_headers = headers_with_ids(headers, self._part)
        for row, message in enumerate(messages):
            if message is not None:
                try:
                    self._read(row, message, None if own_headers is None else own_headers[row])
                except NotDecodable:
                    self.undecoded += 1
        return self._joined(len(messages))

    def _read(self, row: int, message: bytes, headers: Headers | None) -> None:
        if headers is None and self._any is None:
            route = self._by_prefix.get(message[:ID_PREFIX_SIZE])
            if route is not None:
                value = route.read(message[ID_PREFIX_SIZE:])
                route.rows.append(row)
                route.values.append(value)
                return
        route, bodies = self._routed(message, headers or ())
        value = _first_that_reads(route, bodies)
        route.rows.append(row)
        route.values.append(value)

    def _routed(self, message: bytes, headers: Headers) -> tuple[_Route, Sequence[bytes]]:
        """What reads a message, and what may be its body, the likeliest first."""
        wire = parse_wire(message, headers, self._part)
        if self._any is not None:
            return self._route(self._any.key), _bodies_of_any(self._any.kind, message, wire)
        if wire is None:
            raise NotDecodable("no schema id before the message or in a header")
        name = str(wire.schema_id)
        if (name, ()) in self._schemas:
            route = self._route((name, ()))
            if wire.payload is None and message.startswith(MAGIC_ID):
                self._by_prefix[message[:ID_PREFIX_SIZE]] = route
            return route, [wire.body]
        indexed = parse_indexed(wire) if any(name == own for own, _ in self._schemas) else None
        if indexed is None or (name, indexed.indexes) not in self._schemas:
            self._note(f"values of {schema_name(wire.schema_id)} are raw: it isn't among the schemas of the topic")
            raise NotDecodable("the schema isn't known")
        return self._route((name, indexed.indexes)), [indexed.body]

    def _route(self, key: tuple[str, tuple[int, ...]]) -> _Route:
        if key not in self._routes:
            schema = self._schemas[key]
            if schema.problem:
                self._note(f"values of {schema.name} are raw: {schema.problem}")
                raise NotDecodable(schema.problem)
            self._routes[key] = _Route(schema, column_reader(schema))
        return self._routes[key]

    def _note(self, text: str) -> None:
        note = f"{self._part}: {text}"
        if note not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(note)

    def _joined(self, count: int) -> pa.Array:
        """The values that were read, each at its row; then there are none any more."""
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
        """Arrays of values, of all of them if they fit; one that doesn't is left out and counted."""
        if not rows:
            return
        try:
            array = widened(route.reader.array(values), route.reader.type, self._type)
        except _UNFIT:
            if len(rows) == 1:
                self.undecoded += 1
                return
            half = len(rows) // 2
            yield from self._arrays(route, rows[:half], values[:half])
            yield from self._arrays(route, rows[half:], values[half:])
            return
        yield rows, array


def _bodies_of_any(kind: str, message: bytes, wire: WireMessage | None) -> Sequence[bytes]:
    """What may be the body of a message whose schema is known without its id: a bare one may begin like an id."""
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
    """Each record's headers, if one of them has a schema's id; else None."""
    from kseg.kernel.record import Header

    if headers is None:
        return None
    names = headers.flatten().field("key")
    if not pc.any(pc.equal(names, SCHEMA_ID_HEADER[part])).as_py():
        return None
    return [[Header(pair["key"], pair["value"]) for pair in pairs] for pairs in headers.to_pylist()]
