"""Schemas that values were written with, as data for tasks on any machine, and typed columns with all of theirs."""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import pyarrow as pa

from kseg.decode.avro import schema_json
from kseg.export.typed.column_type import ColumnType, bounded, from_json, to_json

ANY_ID = ""
"""The id of the schema of all values, whichever id they have."""


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """One schema.

    id: as values name it, in text; indexes: which message of a Protobuf file. name: as messages show it. texts: of an
    Avro schema, after those that it refers to; of a JSON Schema, before those, each with its name; of Protobuf the
    descriptors in base64, and the message's name. problem: why its values stay raw; empty if they don't.
    """

    id: str
    name: str
    kind: str
    texts: tuple[str, ...]
    indexes: tuple[int, ...] = ()
    problem: str = ""

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """What values name it by."""
        return self.id, self.indexes

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "WriterSchema":
        """The schema of dataclasses.asdict, from JSON."""
        return cls(**{**content, "texts": tuple(content["texts"]), "indexes": tuple(content["indexes"])})


class ColumnReader(Protocol):
    """Reads values of one schema."""

    @property
    def type(self) -> ColumnType:
        """The type of the column."""

    def value(self, body: bytes) -> object:
        """A value, for `array`. Raises NotDecodable."""

    def array(self, values: Sequence[object]) -> pa.Array:
        """Values as Arrow has them. Raises what pyarrow does for values that don't fit."""


def column_reader(schema: WriterSchema) -> ColumnReader:
    """What reads a schema's values. Raises NotDecodable if it can't be used, UsageError without its library."""
    reader = _READERS[schema.kind](schema.texts)
    bounded(reader.type)
    return reader


def _avro(texts: Sequence[str]) -> ColumnReader:
    from kseg.export.typed.avro_columns import AvroColumns

    return AvroColumns([schema_json(text) for text in texts])


def _protobuf(texts: Sequence[str]) -> ColumnReader:
    from kseg.export.typed.protobuf_columns import ProtobufColumns

    return ProtobufColumns(b64decode(texts[0]), texts[1])


def _json(texts: Sequence[str]) -> ColumnReader:
    from kseg.export.typed.json_columns import JsonColumns

    names, others = texts[1::2], texts[2::2]
    needed = {name: schema_json(text) for name, text in zip(names, others, strict=True)}
    return JsonColumns(schema_json(texts[0]), needed)


_READERS = {"AVRO": _avro, "PROTOBUF": _protobuf, "JSON": _json}
KINDS = frozenset(_READERS)


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """The type of a decoded column, and the schemas of its values. A manifest has the type alone."""

    type: ColumnType
    writers: tuple[WriterSchema, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The column as JSON's values."""
        return {"type": to_json(self.type), "writers": [asdict(writer) for writer in self.writers]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TypedColumn":
        """The column of `to_json`. Raises KsegError if its type is none."""
        writers = tuple(map(WriterSchema.from_json, content.get("writers", ())))
        return cls(from_json(content.get("type")), writers)


def as_text(schema: object) -> str:
    """A schema that a library has read, as JSON without what the library added."""
    if isinstance(schema, dict):
        schema = {name: value for name, value in schema.items() if not name.startswith("__")}
    return json.dumps(schema)
