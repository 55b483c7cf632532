"""Avro through the fastavro library, with bounds on the expansion of schemas."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import cast
from uuid import UUID

from kseg.decode.decoded import (
    MOST_NESTED,
    Headers,
    Json,
    NotDecodable,
    Part,
    ValueDecoder,
    decoder,
    json_able,
    library,
    one_line,
)
from kseg.decode.schema_registry import Reference, RegisteredSchema, Registry
from kseg.decode.simple_values import SchemaId, parse_wire, schema_name, without_id
from kseg.errors import OpenError, UsageError, plural
from kseg.system.files import read_small

MOST_VALUES = 200_000
"""The most values in a schema's JSON."""
MOST_NEEDED = 256
"""The most schemas that a registered one needs: they are read again for each schema that needs them."""
MOST_MADE = 1 << 18
"""The most values that take no bytes, in addition to a few for each byte of a message."""
_PER_BYTE = 8

Types = dict[str, object]
"""Schemas of named types, in fastavro's form."""


def check_json(schema: object) -> None:
    """Raise NotDecodable for JSON that is too large or too deep for a schema."""
    level, depth, count = [schema], 0, 0
    while level:
        depth, count = depth + 1, count + len(level)
        if depth > MOST_NESTED:
            raise NotDecodable(f"the schema is nested more than {MOST_NESTED} levels deep")
        if count > MOST_VALUES:
            raise NotDecodable(f"the schema has more than {MOST_VALUES} values")
        level = [inner for value in level for inner in _inside(value)]


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from (inner for name, inner in value.items() if not name.startswith("__"))  # added by fastavro
    elif isinstance(value, list):
        yield from value


class Bounds:
    """Bounds on values of a parsed schema.

    is_recursive: whether a named type contains itself, so that the bytes alone determine how deeply values nest.
    """

    def __init__(self, schema: object, types: Types) -> None:
        """Raise NotDecodable for a schema whose values could be huge regardless of their bytes."""
        self._types = types
        self._surplus_of: dict[str, int] = {}
        self._is_empty_of: dict[str, bool] = {}
        self._items = list(_items([schema, *types.values()]))
        self.is_recursive = False
        self._within: set[str] = set()
        self._depth_of: dict[str, int] = {}
        if max(map(self._depth, [schema, *types])) > MOST_NESTED and not self.is_recursive:
            raise NotDecodable(f"types of the Avro schema contain each other more than {MOST_NESTED} levels deep")
        if any(map(self._takes_no_bytes, self._items)):
            raise NotDecodable(
                "the Avro schema has lists of values that take no bytes, so five bytes could hold billions"
            )
        self._own = self._surplus(schema)
        repeated = [*self._items, *(types.values() if self.is_recursive else ())]
        self._repeated = max(map(self._surplus, repeated), default=0)
        self.check(0)

    def check(self, size: int) -> None:
        """Raise NotDecodable if a message could contain more values than its size allows."""
        if max(self._own, 0) + size * max(self._repeated, 0) > MOST_MADE:
            raise NotDecodable(
                f"{plural(size, 'byte')} of the Avro schema could hold more than {MOST_MADE} values that take no bytes"
            )

    def _depth(self, schema: object) -> int:
        """Return the levels of values, and note whether a type contains itself. May raise RecursionError."""
        if isinstance(schema, str):
            if schema in self._within:
                self.is_recursive = True
                return 0
            if schema in self._types and schema not in self._depth_of:
                self._within.add(schema)
                self._depth_of[schema] = self._depth(self._types[schema])
                self._within.remove(schema)
            return self._depth_of.get(schema, 0)
        return 1 + max(map(self._depth, _members_of(schema)), default=0)

    def _takes_no_bytes(self, schema: object) -> bool:
        """Return True if values of a schema never take bytes: nulls, and records of only such values."""
        if isinstance(schema, str):
            if schema in self._types and schema not in self._is_empty_of:
                self._is_empty_of[schema] = False  # within itself
                self._is_empty_of[schema] = self._takes_no_bytes(self._types[schema])
            return schema == "null" or self._is_empty_of.get(schema, False)
        if not isinstance(schema, dict):
            return False
        if schema["type"] in ("record", "error"):
            return all(self._takes_no_bytes(field["type"]) for field in schema["fields"])
        if schema["type"] == "fixed":
            return bool(schema["size"] == 0)
        return self._takes_no_bytes(schema["type"])

    def _surplus(self, schema: object) -> int:
        """Return the most values in one value of a schema, lists aside, minus `_PER_BYTE` for each of its bytes."""
        if isinstance(schema, str):
            if schema not in self._types:
                return 1 if schema == "null" else 1 - _PER_BYTE
            if schema not in self._surplus_of:
                self._surplus_of[schema] = 0  # within itself
                self._surplus_of[schema] = self._surplus(self._types[schema])
            return self._surplus_of[schema]
        if isinstance(schema, list):
            return max(map(self._surplus, schema), default=0) - _PER_BYTE
        if not isinstance(schema, dict):
            return 0
        if schema["type"] in ("record", "error"):
            return 1 + sum(self._surplus(field["type"]) for field in schema["fields"])
        if schema["type"] == "fixed":
            return 1 - _PER_BYTE * int(schema["size"])
        if schema["type"] in ("array", "map", "enum"):
            return 1 - _PER_BYTE
        return self._surplus(schema["type"])


def _members_of(schema: object) -> Iterator[object]:
    """Yield the direct members of a schema; a name stands for its type."""
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, dict):
        yield from (schema[name] for name in ("type", "items", "values") if name in schema)
        yield from (field["type"] for field in schema.get("fields", ()))


def _items(schemas: list[object]) -> Iterator[object]:
    """Yield the members of lists and maps, at any level."""
    while schemas:
        each = schemas.pop()
        schemas += _members_of(each)
        if isinstance(each, dict):
            yield from (each[name] for name in ("items", "values") if name in each)


ReadBody = Callable[[bytes], Json]
"""A function that converts a message without schema id to its value, or raises NotDecodable."""

SCHEMA_SUFFIXES = (".avsc", ".json")

LARGEST_SCHEMA = 2 << 20
"""The largest size of a schema file, in bytes."""


def fastavro() -> ModuleType:
    """Return the library. Raises UsageError if it isn't installed."""
    return library("fastavro", "avro")


def avro_reader(schema: object, types: Types | None = None) -> ReadBody:
    """Return a reader of values of a schema (parsed JSON); `types`: named types that it uses without defining them.

    Logical types are shown as times, dates and decimals, bytes in base64. Raises NotDecodable for an invalid schema.
    """
    types = {} if types is None else types
    parsed = parsed_schema(schema, types)
    read_value = value_reader(parsed, types, parsed)

    def read(data: bytes) -> Json:
        try:
            return json_able(read_value(data))
        except RecursionError as error:
            raise NotDecodable("the value doesn't match the Avro schema: it is nested too deeply") from error

    return read


def parsed_schema(schema: object, types: Types) -> object:
    """Return a schema (parsed JSON) in fastavro's form, and add its named types to `types`. Raises NotDecodable."""
    avro = fastavro()
    try:
        parsed = cast(object, avro.parse_schema(schema, named_schemas=types))
    except _errors(avro) as error:
        raise NotDecodable(f"the Avro schema isn't valid: {one_line(error) or type(error).__name__}") from error
    _check_names(parsed)
    return parsed


def is_text(name: object) -> bool:
    """Return True if a value can be a name: fastavro accepts anything."""
    return isinstance(name, str) and not any("\ud800" <= char <= "\udfff" for char in name)


def _check_names(schema: object) -> None:
    """Raise NotDecodable if names of fields aren't text, or occur twice in a record: fastavro accepts them."""
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        waiting += _members_of(each)
        if not isinstance(each, dict) or "fields" not in each:
            continue
        seen: set[str] = set()
        for field in each["fields"]:
            name = field["name"]
            if not is_text(name):
                raise NotDecodable(
                    f"the Avro schema isn't valid: the field name {one_line(json.dumps(name))} isn't text"
                )
            if name in seen:
                raise NotDecodable(
                    f"the Avro schema isn't valid: record {each['name']} has two fields {one_line(name)}"
                )
            seen.add(name)


def value_reader(schema: object, types: Types, read_as: object) -> Callable[[bytes], object]:
    """Return a function that reads fastavro's values, or raises NotDecodable.

    schema: the schema that bounds the values. read_as: the schema to read with, which has the same binary form. Raises
    NotDecodable if values of the schema could be huge regardless of their bytes.
    """
    avro = fastavro()
    library_errors = _errors(avro)
    try:
        bounds = Bounds(schema, types)
    except library_errors as error:
        raise NotDecodable(f"the Avro schema isn't valid: {one_line(error) or type(error).__name__}") from error
    # The compiled reader would overflow the stack, which kills the process.
    read_value = (
        library("fastavro._read_py", "avro").schemaless_reader if bounds.is_recursive else avro.schemaless_reader
    )

    def read(data: bytes) -> object:
        bounds.check(len(data))
        stream = BytesIO(data)
        try:
            value = cast(object, read_value(stream, read_as, None))
        except library_errors as error:
            raise NotDecodable(
                f"the value doesn't match the Avro schema: {one_line(error) or type(error).__name__}"
            ) from error
        if stream.tell() < len(data):
            raise NotDecodable(
                f"the value doesn't match the Avro schema:"
                f" {plural(len(data) - stream.tell(), 'byte is', 'bytes are')} left"
                " after the value"
            )
        return value

    return read


def _errors(avro: ModuleType) -> tuple[type[Exception], ...]:
    """Return fastavro's errors for invalid bytes or schemas, which it hardly checks."""
    schema_errors = (avro.schema.SchemaParseException, avro.schema.UnknownType)
    values = (ValueError, TypeError, LookupError, ArithmeticError, EOFError, AttributeError)
    return (*schema_errors, *values, RecursionError, MemoryError, StopIteration)


def registered_avro_reader(registry: Registry, schema: RegisteredSchema) -> ReadBody:
    """Return a reader of values of a registered schema.

    Raises NotDecodable if the schema, or one that it needs, can't be used.
    """
    types: Types = {}
    for needed in find_references(registry, schema):
        parsed_schema(schema_json(needed.text), types)
    return avro_reader(schema_json(schema.text), types)


def find_references(registry: Registry, schema: RegisteredSchema) -> list[RegisteredSchema]:
    """Return the schemas that a schema refers to, directly or indirectly, each once and after its own references.

    Raises NotDecodable if a schema is missing or needs itself, or if there are more than MOST_NEEDED.
    """
    needs: dict[RegisteredSchema, list[RegisteredSchema]] = {}
    waiting = [schema]
    while waiting:
        referring = waiting.pop()
        if referring not in needs:
            needs[referring] = [_resolve(registry, reference) for reference in referring.references]
            if len(needs) > MOST_NEEDED + 1:
                raise NotDecodable(f"it needs more than {MOST_NEEDED} other schemas")
            waiting += needs[referring]
    try:
        return [needed for needed in TopologicalSorter(needs).static_order() if needed != schema]
    except CycleError as error:
        raise NotDecodable("its references form a cycle") from error


def _resolve(registry: Registry, reference: Reference) -> RegisteredSchema:
    needed = registry.resolve_reference(reference)
    if needed is None:
        raise NotDecodable(f"it needs {one_line(reference.subject)} version {reference.version}, which is missing")
    return needed


def schema_json(text: str) -> object:
    """Return a schema's JSON; a primitive type may have no quotes. Raises NotDecodable, also if it is too large."""
    try:
        schema = cast(object, json.loads(text))
    except (ValueError, RecursionError) as error:
        if text.strip().isalpha():
            return text.strip()
        raise NotDecodable(f"the schema isn't JSON: {one_line(error)}") from error
    check_json(schema)
    return schema


def avro_decoder(path: Path, part: Part) -> ValueDecoder:
    """Return a decoder for one schema file or several: a directory of `ID.avsc`, or a JSON file that maps ids to files.

    Ids are numbers or GUIDs. With a single schema, messages may be bare or have any schema id.

    Raises:
        UsageError: a file isn't a schema, or the library is missing.
        OpenError: a file can't be read.
    """
    fastavro()
    files = schema_files(path)
    return _by_one(_file_reader(path), part) if files is None else _by_id(files, part)


def schema_files(path: Path) -> dict[SchemaId, Path] | None:
    """Return the files of several schemas by id, from a directory or a JSON file, or None if the path is one schema's.

    Raises UsageError if a file isn't a schema, or there is none; OpenError if a file can't be read.
    """
    if path.is_dir():
        files = {_id_of(file.stem): file for file in _schema_files(path)}
    else:
        content = _file_json(path)
        if not isinstance(content, dict) or "type" in content:
            return None
        files = {_id_of(name): path.parent / str(file) for name, file in content.items()}
    if not files:
        raise UsageError("has no schema; name the files ID.avsc", path)
    return files


def _schema_files(directory: Path) -> list[Path]:
    return sorted(file for file in directory.iterdir() if file.suffix in SCHEMA_SUFFIXES and _is_id(file.stem))


def _is_id(name: str) -> bool:
    try:
        _id_of(name)
    except UsageError:
        return False
    return True


def _id_of(name: str) -> SchemaId:
    try:
        return int(name) if name.isdecimal() else UUID(name)
    except ValueError as error:
        raise UsageError(f"{one_line(name)} isn't a schema id; specify a number or a GUID") from error


def _file_json(path: Path) -> object:
    try:
        text = read_small(path, LARGEST_SCHEMA).decode()
    except UnicodeDecodeError as error:
        raise OpenError(f"can't be read: {one_line(error)}", path) from error
    try:
        return schema_json(text)
    except NotDecodable as error:
        raise UsageError(error.message, path) from error


def _file_reader(path: Path) -> ReadBody:
    try:
        return avro_reader(file_schema(path))
    except NotDecodable as error:
        raise UsageError(error.message, path) from error


def file_schema(path: Path) -> object:
    """Return the schema of a file; files next to it, by name, define its other named types.

    Raises UsageError if it isn't a schema, OpenError if it can't be read.
    """
    avro = fastavro()
    files = _SchemaFiles(path, avro.repository.SchemaRepositoryError)
    try:
        return cast(object, avro.schema.load_schema(path.stem, repo=files))
    except NotDecodable as error:
        raise UsageError(error.message, path) from error
    except (*_errors(avro), avro.repository.SchemaRepositoryError) as error:
        raise UsageError(f"the Avro schema isn't valid: {one_line(error)}", path) from error


class _SchemaFiles:
    """Schemas by name: the given file and its neighbours; a repository in fastavro's terms."""

    def __init__(self, path: Path, missing: type[Exception]) -> None:
        self._path, self._missing = path, missing

    def load(self, name: str) -> object:
        """Return a schema's JSON. Raises UsageError if it isn't a schema, OpenError if it can't be read."""
        path = self._path if name == self._path.stem else self._path.with_name(f"{Path(name).name}.avsc")
        if path != self._path and (path.stem != name or not _is_there(path)):
            raise self._missing(name)
        return _file_json(path)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # not a valid file name
        return False


def _by_id(files: dict[SchemaId, Path], part: Part) -> ValueDecoder:
    readers = {schema_id: _file_reader(file) for schema_id, file in files.items()}

    def read(data: bytes, headers: Headers) -> Json:
        message = parse_wire(data, headers, part)
        if message is None:
            raise without_id(data)
        if message.schema_id not in readers:
            raise NotDecodable(f"{schema_name(message.schema_id)} isn't among the given schemas")
        return readers[message.schema_id](message.body)

    return decoder(read)


def _by_one(read_body: ReadBody, part: Part) -> ValueDecoder:
    def read(data: bytes, headers: Headers) -> Json:
        message = parse_wire(data, headers, part)
        if message is None:
            return read_body(data)
        try:
            return read_body(message.body)
        except NotDecodable as error:
            # A bare value may begin like a schema id.
            with suppress(NotDecodable):
                return read_body(data)
            raise error

    return decoder(read)
