"""Plans of typed columns: schemas of a topic, and one type for all of them."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg.cluster.schemas_topic import SchemasTopic
from kseg.decode.avro import file_schema, find_references, schema_files
from kseg.decode.decoded import Headers, NotDecodable, Part, one_line
from kseg.decode.protobuf import RegisteredFile, described_message
from kseg.decode.schema_registry import RegisteredSchema, Registry, read_registry
from kseg.decode.simple_values import ID_PREFIX_SIZE, MAGIC_GUID, SchemaId, parse_indexed, parse_wire, schema_name
from kseg.errors import KsegError, OpenError, UsageError
from kseg.export.columns.column_types import (
    ColumnType,
    MismatchError,
    NamesError,
    Scalar,
    check_bounds,
    check_names,
    unify,
    unlike,
)
from kseg.export.columns.flat_columns import require_distinct_columns
from kseg.export.columns.typed_cells import (
    ANY_ID,
    KINDS,
    TypedColumn,
    WriterSchema,
    as_text,
    column_reader,
    headers_with_ids,
)
from kseg.export.plan import WorkOrder
from kseg.export.read.order_reader import OrderReader
from kseg.export.settings import NOTHING, Mode, OnMismatch, ReadOptions
from kseg.system.files import read_small

LARGEST_JSON_SCHEMA = 2 << 20
FIRST_MESSAGE = (0,)

UsedIds = Callable[[str, Callable[[SchemaId], bool]], Iterable[tuple[SchemaId, tuple[int, ...]]]]
"""A function that returns the schema ids in a topic's records, with message indexes where the predicate holds."""


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A schema, and the topic whose values it describes, or None for all topics."""

    schema: WriterSchema
    topic: str | None = None


def schemas_of_file(decoder: str, path: Path, message: str | None) -> list[KnownSchema]:
    """Return the schemas of a user's file: one for all values, or several by their ids.

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
    """The schemas of topics in a registry.

    They come from the topic's subject. Without a subject, or if its schemas are incompatible, only schemas named by
    records count.
    """

    def __init__(self, path: Path, part: Part, used_ids: UsedIds) -> None:
        self._registry: Registry = read_registry(SchemasTopic(path))
        self._part = part
        self._used_ids = used_ids

    def of_subject(self, topic: str) -> list[KnownSchema]:
        """Return the versions of the subject named after a topic, oldest first.

        Returns none if a file has several Protobuf messages: only records name the right one.
        """
        name = f"{topic}-{self._part}"
        own = [schema for schema in self._registry.schemas if schema.subject.removeprefix(_context(schema)) == name]
        found = []
        for schema in sorted(own, key=lambda schema: (schema.context, schema.version)):
            indexes = FIRST_MESSAGE if schema.kind == "PROTOBUF" else ()
            if indexes and self._message_count(schema) > 1:
                return []
            found += [KnownSchema(each, topic) for each in self._writer_schemas(schema, indexes)]
        return found

    def of_records(self, topic: str) -> list[KnownSchema]:
        """Return the schemas whose ids occur in the records of a topic, in the order of registration."""
        used = sorted(self._used_ids(topic, self._is_protobuf), key=lambda pair: (str(type(pair[0])), *pair))
        found: dict[tuple[str, tuple[int, ...]], KnownSchema] = {}
        for own, indexes in used:
            schema = self._registry.find(own)
            if schema is not None:
                for each in self._writer_schemas(schema, indexes):
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

    def _writer_schemas(self, schema: RegisteredSchema, indexes: tuple[int, ...]) -> Iterator[WriterSchema]:
        """Yield the schema under each id that values may have, with its problem if it can't be used."""
        name = f"{schema_name(schema.id)} ({one_line(schema.subject)} version {schema.version})"
        texts, problem = tuple[str, ...](), ""
        try:
            texts = self._texts(schema, indexes)
        except NotDecodable as error:
            problem = error.message
        for own in (schema.id, schema.guid):
            found = None if own is None else self._registry.find(own)  # other subjects may have it too
            if found is not None and (found.kind, found.text) == (schema.kind, schema.text):
                yield WriterSchema(str(own), name, schema.kind, texts, indexes, problem)

    def _texts(self, schema: RegisteredSchema, indexes: tuple[int, ...]) -> tuple[str, ...]:
        """Return the schema's texts. Raises NotDecodable if it can't be used."""
        if schema.kind not in KINDS:
            raise NotDecodable(f"schemas of kind {one_line(schema.kind)} can't be read")
        if schema.kind == "PROTOBUF":
            file = RegisteredFile(self._registry, schema)
            return b64encode(file.descriptors()).decode(), file.message(indexes).full_name
        needed = find_references(self._registry, schema)
        if schema.kind == "AVRO":
            return (*(each.text for each in needed), schema.text)
        return (schema.text, *self._reference_texts(schema, needed))

    def _reference_texts(self, schema: RegisteredSchema, needed: list[RegisteredSchema]) -> Iterator[str]:
        """Yield the names of referenced schemas, each followed by its text."""
        for referring in (schema, *needed):
            for reference in referring.references:
                found = self._registry.resolve_reference(reference)
                if found is not None:
                    yield from (reference.name, found.text)


def _context(schema: RegisteredSchema) -> str:
    """Return the prefix of a subject's name that denotes a context."""
    return f":{schema.context}:" if schema.context else ""


TEXT = TypedColumn(Scalar.JSON)
"""The placeholder of a column of JSON text."""


class _RefusedSchema(UsageError):
    """The error of a schema that can't be in the column."""


@dataclass(frozen=True, slots=True)
class ColumnWish:
    """The inputs of a typed column.

    decoder: avro, protobuf or json; schema, message, registry: as in DecoderOptions. leaves_raw: whether values of a
    schema that doesn't fit stay raw, rather than being an error. written: the destination's column; None for a new one.
    """

    part: Part
    decoder: str
    schema: Path | None
    message: str | None
    registry: Path | None
    leaves_raw: bool
    written: TypedColumn | None


def plan_column(wish: ColumnWish, topics: Iterable[str], used_ids: UsedIds) -> TypedColumn | None:
    """Return the column, or None if no schema is known.

    Raises UsageError if a schema can't be read, or if schemas are incompatible with each other or the destination and
    no values may stay raw; OpenError.
    """
    if wish.schema is not None:
        return _plan(wish, schemas_of_file(wish.decoder, wish.schema, wish.message))
    assert wish.registry is not None
    registered = TopicSchemas(wish.registry, wish.part, used_ids)
    names = sorted(set(topics))
    by_topic = {topic: registered.of_subject(topic) or registered.of_records(topic) for topic in names}
    try:
        return _plan(replace(wish, leaves_raw=False), [each for own in by_topic.values() for each in own])
    except _RefusedSchema:
        # A version without records doesn't matter.
        used = [each for topic in names for each in registered.of_records(topic)]
        return _plan(wish, used)


def _plan(wish: ColumnWish, found: Sequence[KnownSchema]) -> TypedColumn | None:
    joined = _GrowingType(wish)
    for each in found:
        joined.add(each)
    if joined.type is None:
        return None
    writers = tuple(joined.writers)
    if wish.written == TEXT and joined.type is not Scalar.JSON:
        raise UsageError(
            f"the destination has {wish.part}s as text; choose another destination, --decoded text or --overwrite"
        )
    return TypedColumn(joined.type, writers)


@dataclass(slots=True)
class _GrowingType:
    """A type that grows with each schema."""

    wish: ColumnWish
    written: ColumnType | None = None
    type: ColumnType | None = None
    writers: list[WriterSchema] = field(default_factory=list)
    _own: list[tuple[KnownSchema, ColumnType]] = field(default_factory=list)
    _seen: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.wish.written is not None and self.wish.written != TEXT:
            self.type = self.written = self.wish.written.type

    def add(self, found: KnownSchema) -> None:
        """Extend the type by a schema. Raises UsageError if that is impossible and values may not stay raw."""
        schema = found.schema
        if schema.key in self._seen:
            return
        self._seen.add(schema.key)
        try:
            own, self.type = self._extend(schema)
            self._own.append((found, own))
        except (MismatchError, NamesError, NotDecodable) as error:
            if not self.wish.leaves_raw:
                raise self._refusal(found, error) from error
            schema = replace(schema, problem=error.message, texts=())
        self.writers.append(schema)

    def _extend(self, schema: WriterSchema) -> tuple[ColumnType, ColumnType]:
        """Return the schema's type, and the common type that includes it."""
        if schema.problem:
            raise NotDecodable(schema.problem)
        own = column_reader(schema).type
        wide = check_names(own if self.type is None else check_bounds(unify(self.type, own)))
        refused = None if self.written is None else unlike(self.written, wide)
        if refused is not None:
            raise refused
        return own, wide

    def _refusal(self, found: KnownSchema, error: KsegError) -> UsageError:
        what = f"{found.schema.name} of topic {found.topic}" if found.topic is not None else found.schema.name
        if isinstance(error, NamesError):
            advice = "make the values text with --decoded text, or leave them raw with --on-mismatch raw"
            return _RefusedSchema(f"{what}: {error.message}; {advice}")
        if not isinstance(error, MismatchError):
            return _RefusedSchema(f"{what} can't be used: {error.message}; leave its values raw with --on-mismatch raw")
        other = next((each for each, own in self._own if _differ(own, error, found)), None)
        if other is None:
            where, advice = "as in the destination", "choose another destination"
        elif other.topic == found.topic:
            where, advice = f"as in {other.schema.name}", "make the values text with --decoded text"
        else:
            where = f"as in {other.schema.name} of topic {other.topic}"
            advice = "export each topic with --topic into its own DEST"
        return _RefusedSchema(
            f"{what}: {error.message} {where}, so one column can't have both; {advice}, or leave the values raw with"
            " --on-mismatch raw"
        )


def _differ(own: ColumnType, error: MismatchError, found: KnownSchema) -> bool:
    """Return True if an earlier schema is incompatible with the given one."""
    try:
        unify(own, column_reader(found.schema).type)
    except MismatchError as same:
        return same.field == error.field
    return False


UsedId = tuple[SchemaId, tuple[int, ...]]


def with_typed_columns(
    read: ReadOptions, written: ReadOptions | None, topics: Iterable[str], orders: Sequence[WorkOrder]
) -> ReadOptions:
    """Return the reading options with the typed columns that all topics share; their `schema()` is the table's.

    written: the options of the destination's existing columns, if any, which the new ones extend. orders: their records
    are searched if a topic has no registered schema. Raises the errors of `plan_column`.
    """
    decode = read.decode
    columns: dict[str, Any] = {}
    for part, decoder in decode.typed_parts().items():
        wish = ColumnWish(
            part,
            decoder,
            _path(decode.schema),
            decode.message,
            _path(decode.registry),
            decode.on_mismatch is OnMismatch.RAW,
            None if written is None else written.decode.typed_columns().get(part, TEXT),
        )
        column = plan_column(wish, topics, _RecordIds(read, orders, part).used_ids)
        if column is not None:
            columns[part] = column.to_json()
        elif decode.is_flat:
            raise UsageError(f"--flatten: there is no schema of {part}s for {', '.join(sorted(topics))}")
    planned = read if not columns else replace(read, decode=replace(decode, columns=columns))
    require_distinct_columns(
        (part, field.name)
        for part, column in planned.decode.decoded_fields().items()
        if part in planned.decode.flat_parts()
        for field in column.type
    )
    return planned


def without_writers(read: ReadOptions) -> ReadOptions:
    """Return the options with the column types alone, for a manifest."""
    columns: dict[str, Any] = {
        part: TypedColumn(column.type).to_json() for part, column in read.decode.typed_columns().items()
    }
    return read if not columns else replace(read, decode=replace(read.decode, columns=columns))


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


class _RecordIds:
    """The schema ids in the records of orders."""

    def __init__(self, read: ReadOptions, orders: Sequence[WorkOrder], part: Part) -> None:
        self._read = replace(
            read, headers=True, has_header_maps=False, batch_columns=False, latest_per_key=None, redaction=None,
            decode=NOTHING, mode=Mode.PERMISSIVE,
        )  # fmt: skip
        self._orders = orders
        self._part = part

    def used_ids(self, topic: str, has_indexes: Callable[[SchemaId], bool]) -> set[UsedId]:
        """Return the ids in a topic's keys or values, as `UsedIds` describes."""
        found: set[UsedId] = set()
        for order in self._orders:
            if order.topic == topic:
                for batch in OrderReader(order, self._read, checksums=False).batches():
                    found |= self._ids_of(batch, has_indexes)
        return found

    def _ids_of(self, batch: pa.RecordBatch, has_indexes: Callable[[SchemaId], bool]) -> set[UsedId]:
        messages, headers = batch.column(self._part), headers_with_ids(batch.column("headers"), self._part)
        if headers is None and not self._has_guids(messages):
            starts = pc.unique(pc.binary_slice(messages, 0, ID_PREFIX_SIZE)).to_pylist()
            found = set(self._ids_in(((start, ()) for start in starts), lambda _: False))
            if not any(has_indexes(own) for own, _ in found):
                return found
        pairs = zip(messages.to_pylist(), headers or repeat(()))  # noqa: B905  the second has no end
        return set(self._ids_in(pairs, has_indexes))

    def _has_guids(self, messages: pa.Array) -> bool:
        return bool(pc.any(pc.equal(pc.binary_slice(messages, 0, 1), MAGIC_GUID)).as_py())

    def _ids_in(
        self, messages: Iterable[tuple[bytes | None, Headers]], has_indexes: Callable[[SchemaId], bool]
    ) -> Iterator[UsedId]:
        for message, headers in messages:
            wire = None if message is None else parse_wire(message, headers, self._part)
            if wire is None:
                continue
            if not has_indexes(wire.schema_id):
                yield wire.schema_id, ()
                continue
            with suppress(NotDecodable):
                yield wire.schema_id, parse_indexed(wire).indexes
