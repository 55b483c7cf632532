"""docs/reference/streams.md: streams, the objects of `-o json` and their fields, from streams.toml and declarations."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.layouts.record_columns import (
    BATCH_COLUMNS,
    DECODED_COLUMNS,
    PLACE_COLUMNS,
    RECORD_COLUMNS,
    STORED_COLUMNS,
    Column,
    Kind,
)
from kseg.output import columns
from kseg.text import fields

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "streams.md"
CATALOGUE = Path(__file__).with_name("streams.toml")
KINDS = {
    Kind.NUMBER: "int",
    Kind.BOOLEAN: "bool",
    Kind.WORD: "text",
    Kind.TIME: "text",
    Kind.BYTES: "text",
    Kind.HEADERS: "list",
    Kind.JSON: "any",
}
DECLARED = {each.name: each for each in vars(fields).values() if isinstance(each, columns.Field)}
TYPES = {
    columns.Kind.INTEGER: "int",
    columns.Kind.INT32: "int",
    columns.Kind.NUMBER: "number",
    columns.Kind.TEXT: "text",
    columns.Kind.BOOLEAN: "bool",
    columns.Kind.TEXTS: "list",
    columns.Kind.INTEGERS: "list",
    columns.Kind.OBJECTS: "list",
    columns.Kind.OBJECT: "object",
}
OBJECTS = """
## Objects by command

Types of fields are int, number, text, bool, list, object, and any. A field with `?` may be null. A field with `*` may
be missing.
"""


FIELDS = """
## Fields

A field of rows means the same in the JSON and CSV of all commands, and in the tables of `kseg query`.

| field | type | unit | meaning |
|---|---|---|---|
"""


class FieldKind(NamedTuple):
    """The type of an object's field: its kind, whether it may be null, whether it may be missing."""

    name: str
    kind: str
    may_be_null: bool
    may_be_missing: bool

    def __str__(self) -> str:
        """Return the text for the page."""
        return f"`{self.name}`{'*' * self.may_be_missing} {self.kind}{'?' * self.may_be_null}"


class ObjectKind(NamedTuple):
    """A kind of objects: its meaning, and its fields."""

    about: str
    fields: tuple[FieldKind, ...]


def objects() -> dict[str, dict[str, ObjectKind]]:
    """Return all kinds of objects by command and type; those of batches and records come from the columns."""
    found = {
        command: {name: ObjectKind(each["about"], tuple(_parse(each["fields"]))) for name, each in types.items()}
        for command, types in tomllib.loads(CATALOGUE.read_text(encoding="utf-8")).items()
    }
    file, *places = (FieldKind(name, "int" if name == "partition" else "text", True, True) for name in PLACE_COLUMNS)
    batch = (file._replace(may_be_null=False, may_be_missing=False), *map(_of_column, BATCH_COLUMNS))
    record = (file._replace(may_be_null=False), *places, *_record_fields())
    own = {"batch": ObjectKind("a batch, before its records", batch), "record": ObjectKind("a record", record)}
    return {**found, "dump": {**own, **found["dump"]}}


def _parse(text: str) -> Iterator[FieldKind]:
    for field in " ".join(text.split()).split(", "):
        marked, _, kind = field.rstrip("?").partition(" ")
        name = marked.rstrip("*")
        yield FieldKind(name, kind or TYPES[DECLARED[name].kind], field.endswith("?"), marked.endswith("*"))


def _of_column(column: Column) -> FieldKind:
    is_everywhere = column.v0 is not None and column.v1 is not None
    return FieldKind(column.name, KINDS[column.kind], not is_everywhere or column.name == "deleteHorizonMs", False)


def _record_fields() -> Iterator[FieldKind]:
    for column in RECORD_COLUMNS:
        field = _of_column(column)
        if column.kind is Kind.BYTES:
            yield field._replace(may_be_null=True, may_be_missing=True)
            yield FieldKind(f"{column.name}Base64", "text", False, True)
        else:
            yield field
    for column in (*STORED_COLUMNS, *DECODED_COLUMNS):
        yield FieldKind(column.name, KINDS[column.kind], False, True)
    yield FieldKind("control", "object", True, True)


def page() -> str:
    """Return the page with current tables of objects."""
    parts = [PAGE.read_text(encoding="utf-8").split(OBJECTS.splitlines()[1])[0].rstrip("\n"), "\n", OBJECTS]
    for command, kinds in objects().items():
        parts.append(f"\n### kseg {command}\n\n| type | contents | fields |\n|---|---|---|\n")
        parts += [
            f"| {_type(name)} | {kind.about} | {', '.join(map(str, kind.fields))} |\n" for name, kind in kinds.items()
        ]
    return "".join([*parts, FIELDS, *map(_field_row, (DECLARED[name] for name in sorted(DECLARED)))])


def _field_row(field: columns.Field) -> str:
    unit = "" if field.unit is None else field.unit.value
    return f"| `{field.name}` | {field.kind.value} | {unit} | {field.meaning} |\n"


def _type(name: str) -> str:
    return "(none)" if name == "answer" else f"`{name}`"
