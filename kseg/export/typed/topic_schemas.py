"""Finds the schemas of a topic's keys or values: in files, in a registry by its subject, or by the ids in records."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kseg.decode.avro import file_schema, needed_schemas, schema_files
from kseg.decode.decoded import NotDecodable, Part, one_line
from kseg.decode.protobuf import RegisteredFile, described_message
from kseg.decode.registry import RegisteredSchema, Registry, read_registry
from kseg.decode.topic import SchemasTopic
from kseg.decode.wire import SchemaId, schema_name
from kseg.errors import OpenError
from kseg.export.typed.writer_schema import ANY_ID, KINDS, WriterSchema, as_text
from kseg.system.regular_file import read_small

LARGEST_JSON_SCHEMA = 2 << 20
FIRST_MESSAGE = (0,)

UsedIds = Callable[[str, Callable[[SchemaId], bool]], Iterable[tuple[SchemaId, tuple[int, ...]]]]
"""The ids that records of a topic name; after those for which the function holds, which message of Protobuf it is."""


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A schema, and the topic whose values have it; None for all topics."""

    schema: WriterSchema
    topic: str | None = None


def schemas_of_file(decoder: str, path: Path, message: str | None) -> list[KnownSchema]:
    """The schemas of a file that the user names: one for all values, or several by their ids.

    Raises UsageError if it has none, OpenError if it can't be read.
    """
    if decoder == "protobuf":
        descriptors, name = described_message(path, message)
        return [KnownSchema(WriterSchema(ANY_ID, name, "PROTOBUF", (b64encode(descriptors).decode(), name)))]
    if decoder == "json":
        return [KnownSchema(WriterSchema(ANY_ID, str(path), "JSON", (_text(path),)))]
    files = schema_files(path)
    if files is None:
        return [KnownSchema(WriterSchema(ANY_ID, str(path), "AVRO", (as_text(file_schema(path)),)))]
    return [
        KnownSchema(WriterSchema(str(own), f"{schema_name(own)} ({file.name})", "AVRO", (as_text(file_schema(file)),)))
        for own, file in sorted(files.items(), key=lambda pair: (str(type(pair[0])), pair[0]))
    ]


def _text(path: Path) -> str:
    try:
        return read_small(path, LARGEST_JSON_SCHEMA).decode()
    except UnicodeDecodeError as error:
        raise OpenError(f"can't be read: {one_line(error)}", path) from error


class TopicSchemas:
    """The schemas that a registry has for topics.

    They are those of the topic's subject. Where it has none, or they don't go together, only those count that records
    name.
    """

    def __init__(self, path: Path, part: Part, used_ids: UsedIds) -> None:
        self._registry: Registry = read_registry(SchemasTopic(path))
        self._part = part
        self._used_ids = used_ids

    def of_subject(self, topic: str) -> list[KnownSchema]:
        """The versions of the subject that is called after a topic, the oldest first.

        None of them if a file has several messages of Protobuf: only records tell which of these they are.
        """
        name = f"{topic}-{self._part}"
        own = [schema for schema in self._registry.schemas if schema.subject.removeprefix(_context(schema)) == name]
        found = []
        for schema in sorted(own, key=lambda schema: (schema.context, schema.version)):
            indexes = FIRST_MESSAGE if schema.kind == "PROTOBUF" else ()
            if indexes and self._message_count(schema) > 1:
                return []
            found += [KnownSchema(each, topic) for each in self._known(schema, indexes)]
        return found

    def of_records(self, topic: str) -> list[KnownSchema]:
        """The schemas whose ids a topic's records have, in the order of registration."""
        used = sorted(self._used_ids(topic, self._is_protobuf), key=lambda pair: (str(type(pair[0])), *pair))
        found: dict[tuple[str, tuple[int, ...]], KnownSchema] = {}
        for own, indexes in used:
            schema = self._registry.find(own)
            if schema is not None:
                for each in self._known(schema, indexes):
                    found.setdefault(each.key, KnownSchema(each, topic))
        return list(found.values())

    def _is_protobuf(self, own: SchemaId) -> bool:
        schema = self._registry.find(own)
        return schema is not None and schema.kind == "PROTOBUF"

    def _message_count(self, schema: RegisteredSchema) -> int:
        try:
            return RegisteredFile(self._registry, schema).message_count
        except NotDecodable:
            return 0

    def _known(self, schema: RegisteredSchema, indexes: tuple[int, ...]) -> Iterator[WriterSchema]:
        """The schema under each id that values may name; with its problem if it can't be used."""
        name = f"{schema_name(schema.id)} ({one_line(schema.subject)} version {schema.version})"
        texts, problem = tuple[str, ...](), ""
        try:
            texts = self._texts(schema, indexes)
        except NotDecodable as error:
            problem = error.message
        for own in (schema.id, schema.guid):
            found = None if own is None else self._registry.find(own)  # of another subject too
            if found is not None and (found.kind, found.text) == (schema.kind, schema.text):
                yield WriterSchema(str(own), name, schema.kind, texts, indexes, problem)

    def _texts(self, schema: RegisteredSchema, indexes: tuple[int, ...]) -> tuple[str, ...]:
        """A schema as data. Raises NotDecodable if it can't be used."""
        if schema.kind not in KINDS:
            raise NotDecodable(f"schemas of kind {one_line(schema.kind)} can't be read")
        if schema.kind == "PROTOBUF":
            file = RegisteredFile(self._registry, schema)
            return b64encode(file.descriptors()).decode(), file.message(indexes).full_name
        needed = needed_schemas(self._registry, schema)
        if schema.kind == "AVRO":
            return (*(each.text for each in needed), schema.text)
        return (schema.text, *self._named(schema, needed))

    def _named(self, schema: RegisteredSchema, needed: list[RegisteredSchema]) -> Iterator[str]:
        """The names by which schemas are referred to, each followed by its text."""
        for referring in (schema, *needed):
            for reference in referring.references:
                found = self._registry.referred(reference)
                if found is not None:
                    yield from (reference.name, found.text)


def _context(schema: RegisteredSchema) -> str:
    """What stands before a subject's name in a context of its own."""
    return f":{schema.context}:" if schema.context else ""
