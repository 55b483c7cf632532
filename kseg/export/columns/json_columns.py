"""JSON Schemas as columns, and their values. Parts that a schema leaves open are JSON text."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

import pyarrow as pa

from kseg.decode.decoded import NotDecodable, json_bytes, one_line
from kseg.decode.simple_values import parse_json
from kseg.export.columns.column_types import (
    MOST_COLUMNS,
    MOST_LEVELS,
    ColumnMember,
    ColumnType,
    ListType,
    MapType,
    Scalar,
    UnionType,
    arrow_type,
    check_names,
    struct_or_text,
)

_Fix = Callable[[Any], object]
_Schema = Mapping[str, Any]
_Container = TypeVar("_Container", list[Any], dict[str, Any])
OTHERS = "additionalProperties"
"""The JSON column of an object's members that its schema allows without naming them."""
_ANYTHING: _Schema = MappingProxyType({})
_SCALARS = {
    "boolean": Scalar.BOOLEAN,
    "integer": Scalar.LONG,
    "number": Scalar.DOUBLE,
    "string": Scalar.STRING,
}
_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
}
"""JSON Schema types of a Python value, the best match first."""


class _JsonBranch(NamedTuple):
    """A part of a schema: its column, and the function that prepares its values for Arrow; None if none is needed."""

    type: ColumnType
    fix: _Fix | None = None


def _json_text(value: object) -> str:
    try:
        return json_bytes(cast(Any, value)).decode()
    except (RecursionError, UnicodeEncodeError) as error:
        raise NotDecodable("the value can't be expressed in JSON") from error


_TEXT = _JsonBranch(Scalar.JSON, _json_text)


class JsonColumns:
    """A reader of one schema's values. type: of the column."""

    def __init__(self, schema: Any, references: Mapping[str, Any]) -> None:
        """Parse a schema and the schemas it refers to. Raises NotDecodable or NamesError."""
        branch = _JsonWalk(references).branch(schema, schema, ())
        self.type, self._fix = check_names(branch.type), branch.fix
        self._arrow = arrow_type(self.type)

    def value(self, body: bytes) -> object:
        """Decode a message. Raises NotDecodable if that isn't possible."""
        value = parse_json(body)
        return value if self._fix is None or value is None else self._fix(value)

    def array(self, values: Sequence[object]) -> pa.Array:
        """Convert values to an Arrow array. Raises the errors of pyarrow if a value doesn't fit."""
        return pa.array(values, self._arrow)


class _JsonWalk:
    def __init__(self, references: Mapping[str, Any]) -> None:
        self._references = references
        self._count = 0

    def branch(self, schema: Any, document: Any, within: tuple[int, ...]) -> _JsonBranch:
        """Return the column of a schema in a document; within: the schemas around it, which guard against recursion."""
        self._count += 1
        if self._count > MOST_COLUMNS or len(within) > MOST_LEVELS:
            raise NotDecodable(f"the schema needs more than {MOST_COLUMNS} columns or {MOST_LEVELS} levels")
        if not isinstance(schema, dict) or id(schema) in within:
            return _TEXT
        within = (*within, id(schema))
        if "$ref" in schema:
            found, home = self._resolve(str(schema["$ref"]), document)
            return self.branch(found, home, within)
        choices = [each for word in ("oneOf", "anyOf") for each in _part(schema, word, list)]
        if choices:
            others = [each for each in choices if each != {"type": "null"}]
            return self.branch(others[0], document, within) if len(others) == 1 else _TEXT
        if "allOf" in schema:
            every = _part(schema, "allOf", list)
            return _TEXT if len(every) != 1 else self.branch(every[0], document, within)
        kinds = [kind for kind in _kinds(schema) if kind != "null"]
        if "number" in kinds:
            kinds = [kind for kind in kinds if kind != "integer"]
        if len(kinds) == 1:
            return self._of_kind(kinds[0], schema, document, within)
        return self._union(kinds, schema, document, within) if kinds else _TEXT

    def _resolve(self, reference: str, document: Any) -> tuple[Any, Any]:
        """Return the target of a reference, and the document that contains it.

        Raises NotDecodable if there is none.
        """
        name, _, pointer = reference.partition("#")
        home = document if not name else self._references.get(name, self._references.get(name.rpartition("/")[2]))
        found = home
        for step in pointer.split("/")[1:]:
            word = step.replace("~1", "/").replace("~0", "~")
            found = found.get(word) if isinstance(found, dict) else None
        if found is None:
            raise NotDecodable(f"the schema's reference {one_line(reference[:80])} has no target")
        return found, home

    def _of_kind(self, kind: str, schema: _Schema, document: Any, within: tuple[int, ...]) -> _JsonBranch:
        if kind == "object":
            return self._object(schema, document, within)
        if kind == "array":
            return self._array(schema, document, within)
        scalar = _SCALARS.get(kind)
        if scalar is None:
            raise NotDecodable(f"the schema has the type {one_line(kind[:40])}, which JSON Schema doesn't define")
        return _JsonBranch(scalar, _FIXES.get(scalar))

    def _object(self, schema: _Schema, document: Any, within: tuple[int, ...]) -> _JsonBranch:
        properties, more = _part(schema, "properties", dict), schema.get(OTHERS, _ANYTHING)
        if not properties:
            if not isinstance(more, dict) or not more or "patternProperties" in schema:
                return _TEXT
            value = self.branch(more, document, within)
            return _JsonBranch(MapType(Scalar.STRING, value.type), _fixed_map(value.fix))
        branches = {name: self.branch(own, document, within) for name, own in properties.items()}
        members = [ColumnMember(name, branch.type) for name, branch in branches.items()]
        is_open = (more is not False or "patternProperties" in schema) and OTHERS not in properties
        if is_open:
            members.append(ColumnMember(OTHERS, Scalar.JSON))
        return _JsonBranch(struct_or_text(members), _fixed_object(branches, is_open=is_open))

    def _array(self, schema: _Schema, document: Any, within: tuple[int, ...]) -> _JsonBranch:
        items = schema.get("items")
        if not isinstance(items, dict) or "prefixItems" in schema:
            return _TEXT
        item = self.branch(items, document, within)
        return _JsonBranch(ListType(item.type), _fixed_list(item.fix))

    def _union(self, kinds: list[str], schema: _Schema, document: Any, within: tuple[int, ...]) -> _JsonBranch:
        branches = {kind: self._of_kind(kind, schema, document, within) for kind in kinds}
        members = tuple(ColumnMember(kind, branch.type) for kind, branch in branches.items())

        def fix(value: Any) -> object:
            for kind in _KINDS[type(value)]:
                if kind in branches:
                    change = branches[kind].fix
                    return {kind: value if change is None else change(value)}
            raise NotDecodable("a value doesn't match the JSON Schema: its type isn't allowed")

        return _JsonBranch(UnionType(members), fix)


def _part(schema: _Schema, word: str, kind: type[_Container]) -> _Container:
    """Return a list or an object in a schema, empty if absent. Raises NotDecodable if it has another type."""
    part = schema.get(word, kind())
    if not isinstance(part, kind):
        raise NotDecodable(f"{word} in the schema isn't {'a list' if kind is list else 'an object'}")
    return part


def _kinds(schema: _Schema) -> list[str]:
    """Return the types that a schema allows, as far as it names them."""
    own = schema.get("type")
    if own is not None:
        return [str(kind) for kind in (own if isinstance(own, list) else [own])]
    if "properties" in schema:
        return ["object"]
    values = _part(schema, "enum", list) or ([schema["const"]] if "const" in schema else [])
    return ["string"] if values and all(isinstance(value, str) for value in values) else []


def _mismatch(wanted: str) -> NotDecodable:
    return NotDecodable(f"a value doesn't match the JSON Schema: it isn't {wanted}")


def _whole(value: Any) -> object:
    if type(value) is int or (type(value) is float and value.is_integer()):
        return int(value)
    raise _mismatch("an integer")


def _real(value: Any) -> object:
    if type(value) not in (int, float):
        raise _mismatch("a number")
    try:
        return float(value)
    except OverflowError as error:
        raise _mismatch("a number of 64 bits") from error


def _string(value: Any) -> object:
    if not isinstance(value, str):
        raise _mismatch("a string")
    return value


_FIXES: dict[Scalar, _Fix] = {Scalar.LONG: _whole, Scalar.DOUBLE: _real, Scalar.STRING: _string}
"""Fixes of values that Arrow would convert wrongly or reject though they are valid; it checks booleans itself."""


def _apply_fix(value: Any, fix: _Fix | None) -> object:
    return value if value is None or fix is None else fix(value)


def _fixed_list(fix: _Fix | None) -> _Fix:
    def change(value: Any) -> object:
        if not isinstance(value, list):
            raise _mismatch("an array")
        return value if fix is None else [_apply_fix(each, fix) for each in value]

    return change


def _fixed_map(fix: _Fix | None) -> _Fix:
    def change(value: Any) -> object:
        if not isinstance(value, dict):
            raise _mismatch("an object")
        return value if fix is None else {name: _apply_fix(each, fix) for name, each in value.items()}

    return change


def _fixed_object(branches: dict[str, _JsonBranch], *, is_open: bool) -> _Fix:
    fixes = [(name, branch.fix) for name, branch in branches.items() if branch.fix is not None]
    names = branches.keys()

    def change(value: Any) -> object:
        if not isinstance(value, dict):
            raise _mismatch("an object")
        others = value.keys() - names
        if others and not is_open:
            raise NotDecodable("an object doesn't match the JSON Schema: it has members that aren't allowed")
        for name, fix in fixes:
            if value.get(name) is not None:
                value[name] = fix(value[name])
        if others:
            value[OTHERS] = _json_text({name: value[name] for name in value if name in others})
        return value

    return change
