"""Bounds on values of an Avro schema: finds schemas whose values could be huge, or nested without end.

fastavro recurses without a check of the stack, and makes as many values without bytes as a schema says.
"""

from collections.abc import Iterator

from kseg.decode.decoded import MOST_NESTED, NotDecodable

MOST_VALUES = 200_000
"""The most values in a schema's JSON."""
MOST_MADE = 1 << 18
"""The most values that take no bytes, in addition to a few for each byte of a message."""
_PER_BYTE = 8

Types = dict[str, object]
"""Schemas of named types, as fastavro keeps them."""


def check_json(schema: object) -> None:
    """Raises NotDecodable for JSON that is too large or too deep for a schema."""
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
        yield from (inner for name, inner in value.items() if not name.startswith("__"))  # fastavro's own
    elif isinstance(value, list):
        yield from value


class Bounds:
    """Bounds on values of a parsed schema.

    is_recursive: a named type contains itself, so values can nest as deeply as their bytes say.
    """

    def __init__(self, schema: object, types: Types) -> None:
        """Raises NotDecodable for a schema whose values could be huge regardless of their bytes."""
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
            raise NotDecodable("the Avro schema has lists of values that take no bytes: five bytes could hold billions")
        self._own = self._surplus(schema)
        repeated = [*self._items, *(types.values() if self.is_recursive else ())]
        self._repeated = max(map(self._surplus, repeated), default=0)
        self.check(0)

    def check(self, size: int) -> None:
        """Raises NotDecodable if a message of `size` bytes could become more values than its size justifies."""
        if max(self._own, 0) + size * max(self._repeated, 0) > MOST_MADE:
            raise NotDecodable(
                f"{size} bytes of the Avro schema could hold more than {MOST_MADE} values that take no bytes"
            )

    def _depth(self, schema: object) -> int:
        """Levels of values; finds out whether a type contains itself. May raise RecursionError."""
        if isinstance(schema, str):
            if schema in self._within:
                self.is_recursive = True
                return 0
            if schema in self._types and schema not in self._depth_of:
                self._within.add(schema)
                self._depth_of[schema] = self._depth(self._types[schema])
                self._within.remove(schema)
            return self._depth_of.get(schema, 0)
        return 1 + max(map(self._depth, _made_of(schema)), default=0)

    def _takes_no_bytes(self, schema: object) -> bool:
        """Whether values of a schema take no bytes, however many there are: nulls, and records of only such values."""
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
        """The most values in one value of a schema, not counting lists, less `_PER_BYTE` for each of its bytes."""
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


def _made_of(schema: object) -> Iterator[object]:
    """The schemas directly within one; a name stands for its type."""
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, dict):
        yield from (schema[name] for name in ("type", "items", "values") if name in schema)
        yield from (field["type"] for field in schema.get("fields", ()))


def _items(schemas: list[object]) -> Iterator[object]:
    """What lists and maps hold, at any level."""
    while schemas:
        each = schemas.pop()
        schemas += _made_of(each)
        if isinstance(each, dict):
            yield from (each[name] for name in ("items", "values") if name in each)
