"""Plans a typed column: one type for all schemas of all topics, and for what is written already."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kseg.decode.decoded import NotDecodable, Part
from kseg.errors import KsegError, UsageError
from kseg.export.typed.column_type import ColumnType, Scalar, bounded
from kseg.export.typed.topic_schemas import KnownSchema, TopicSchemas, UsedIds, schemas_of_file
from kseg.export.typed.unify import MismatchError, unified, unlike
from kseg.export.typed.writer_schema import TypedColumn, WriterSchema, column_reader

TEXT = TypedColumn(Scalar.JSON)
"""What stands for a column of JSON text."""


class _Refused(UsageError):
    """A schema that can't be in the column."""


@dataclass(frozen=True, slots=True)
class ColumnWish:
    """What a typed column is made from.

    decoder: avro, protobuf or json; schema, message, registry: as in DecoderOptions. leaves_raw: values whose schema
    doesn't fit stay raw; else such a schema is an error. written: the column of the destination; None if that is new.
    """

    part: Part
    decoder: str
    schema: Path | None
    message: str | None
    registry: Path | None
    leaves_raw: bool
    written: TypedColumn | None


def plan_column(wish: ColumnWish, topics: Iterable[str], used_ids: UsedIds) -> TypedColumn | None:
    """The column; None if no schema is known.

    Raises UsageError if schemas don't go together, with each other or with the destination, and nothing stays raw; or
    if one can't be read; OpenError.
    """
    if wish.schema is not None:
        return _planned(wish, schemas_of_file(wish.decoder, wish.schema, wish.message))
    assert wish.registry is not None
    registered = TopicSchemas(wish.registry, wish.part, used_ids)
    names = sorted(set(topics))
    by_topic = {topic: registered.of_subject(topic) or registered.of_records(topic) for topic in names}
    try:
        return _planned(replace(wish, leaves_raw=False), [each for own in by_topic.values() for each in own])
    except _Refused:
        # A version that no record has doesn't matter.
        used = [each for topic in names for each in registered.of_records(topic)]
        return _planned(wish, used)


def _planned(wish: ColumnWish, found: Sequence[KnownSchema]) -> TypedColumn | None:
    joined = _Joined(wish)
    for each in found:
        joined.add(each)
    if joined.type is None:
        return None
    writers = tuple(joined.writers)
    if wish.written == TEXT and joined.type is not Scalar.JSON:
        raise UsageError(
            f"{wish.part}s are text in the destination: choose another place, --decoded text or --overwrite"
        )
    return TypedColumn(joined.type, writers)


@dataclass(slots=True)
class _Joined:
    """A type that grows by schemas."""

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
        """Makes room for a schema. Raises UsageError if there is none, and its values aren't to stay raw."""
        schema = found.schema
        if schema.key in self._seen:
            return
        self._seen.add(schema.key)
        try:
            own, self.type = self._with(schema)
            self._own.append((found, own))
        except (MismatchError, NotDecodable) as error:
            if not self.wish.leaves_raw:
                raise self._refusal(found, error) from error
            schema = replace(schema, problem=error.message, texts=())
        self.writers.append(schema)

    def _with(self, schema: WriterSchema) -> tuple[ColumnType, ColumnType]:
        """The schema's type, and the one that has room for it too."""
        if schema.problem:
            raise NotDecodable(schema.problem)
        own = column_reader(schema).type
        if self.type is None:
            return own, own
        wide = bounded(unified(self.type, own))
        refused = None if self.written is None else unlike(self.written, wide)
        if refused is not None:
            raise refused
        return own, wide

    def _refusal(self, found: KnownSchema, error: KsegError) -> UsageError:
        what = f"{found.schema.name} of topic {found.topic}" if found.topic is not None else found.schema.name
        if not isinstance(error, MismatchError):
            return _Refused(f"{what} can't be used: {error.message}; --on-mismatch raw leaves its values raw")
        other = next((each for each, own in self._own if _differ(own, error, found)), None)
        if other is None:
            where, advice = "as in the destination", "choose another place"
        elif other.topic == found.topic:
            where, advice = f"as in {other.schema.name}", "--decoded text makes them text"
        else:
            where = f"as in {other.schema.name} of topic {other.topic}"
            advice = "export each by --topic into a DEST of its own"
        return _Refused(
            f"{what}: {error.message} {where}: no column has room for both; {advice}, --on-mismatch raw leaves it raw"
        )


def _differ(own: ColumnType, error: MismatchError, found: KnownSchema) -> bool:
    """Whether an earlier schema is one that the found one can't be joined with."""
    try:
        unified(own, column_reader(found.schema).type)
    except MismatchError as same:
        return same.field == error.field
    return False
