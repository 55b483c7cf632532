"""Schema registries: schemas by id, and records in Confluent's wire format."""

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import md5
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import UUID

from kseg.decode.decoded import NotDecodable
from kseg.decode.simple_values import SchemaId, read_json
from kseg.errors import UsageError

DEFAULT_CONTEXT = ""
LATEST_VERSION = -1
LARGEST_TEXT = 4 << 20
"""The most characters of a schema."""
MOST_TEXT = 256 << 20
"""The most characters of all schemas, which are kept in memory."""


class Reference(NamedTuple):
    """A reference to another schema: the name used for it, and its place in the registry."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject.

    `kind` is AVRO, PROTOBUF or JSON; `guid`: None if unknown; `is_deleted`: whether it is soft-deleted, or deleted by a
    tombstone while its schema is still in the log. Messages written with a deleted schema are still readable with it.
    """

    subject: str
    version: int
    id: int
    guid: UUID | None
    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    is_deleted: bool = False

    @property
    def context(self) -> str:
        """The context in the prefix of the subject's name (`:.context:subject`): ids are unique within one."""
        return self.subject.split(":")[1] if self.subject.startswith(":.") else DEFAULT_CONTEXT


class Registry:
    """Schemas by id, GUID, or subject and version.

    unreadable: the number of records of the topic that couldn't be read.
    """

    def __init__(self, schemas: Iterable[RegisteredSchema], unreadable: int = 0) -> None:
        """Take all versions of all subjects; several of them may have the same id."""
        self.schemas = tuple(schemas)
        self.unreadable = unreadable
        self._versions = {(schema.subject, schema.version): schema for schema in self.schemas}
        # The last one wins: undeleted versions of the default context come last.
        ranked = sorted(self.schemas, key=lambda schema: (schema.context == DEFAULT_CONTEXT, not schema.is_deleted))
        self._by_id: dict[SchemaId, RegisteredSchema] = {schema.id: schema for schema in ranked}
        self._by_id |= {schema.guid: schema for schema in ranked if schema.guid is not None}
        in_order = sorted(self.schemas, key=lambda schema: schema.version)
        self._latest = {schema.subject: schema for schema in in_order}

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return the schema with an id or GUID, preferably in the default context, or None if it doesn't exist."""
        return self._by_id.get(schema_id)

    def resolve_reference(self, reference: Reference) -> RegisteredSchema | None:
        """Return the target of a reference, or None if it is missing."""
        if reference.version == LATEST_VERSION:
            return self._latest.get(reference.subject)
        return self._versions.get((reference.subject, reference.version))


class SchemaRecords(Protocol):
    """The records of a registry's topic `_schemas`."""

    @property
    def path(self) -> Path:
        """The path of the records, for messages."""

    def records(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Return keys and values in the log's order. Raises OpenError if they can't be read."""


def read_registry(topic: SchemaRecords) -> Registry:
    """Return the registry that results from the records of a topic.

    Raises:
        OpenError: the records can't be read.
        UsageError: they have no schema.
    """
    registry = registry_of(topic.records())
    if not registry.schemas:
        raise UsageError("has no schema; specify the partition directory of _schemas", topic.path)
    return registry


def registry_of(records: Iterable[tuple[bytes | None, bytes | None]]) -> Registry:
    """Return the registry after all records of `_schemas`, given as keys and values in the log's order.

    Raises UsageError for more schemas than memory should hold.
    """
    versions = _Versions()
    unreadable = 0
    for key, value in records:
        try:
            versions.apply(_object(key), None if value is None else _object(value))
        except NotDecodable:
            unreadable += 1
    return Registry(versions.schemas.values(), unreadable)


class _Versions:
    """Versions of subjects, built from one record after another."""

    def __init__(self) -> None:
        self.schemas: dict[tuple[str, int], RegisteredSchema] = {}
        self._living: dict[str, list[int]] = {}  # the subject's lowest version first: deletions remove these
        self._size = 0

    def apply(self, key: "Members", value: "Members | None") -> None:
        """Apply a record. Raises NotDecodable if it isn't a registry's, UsageError if there are too many."""
        kind = key.members.get("keytype")
        if kind == "SCHEMA":
            name = (key.text("subject"), key.number("version"))
            if value is not None:
                self._add(_schema(*name, value))
            elif name in self.schemas:
                self._delete(name)
        elif kind in ("DELETE_SUBJECT", "CLEAR_SUBJECT") and value is not None:
            subject = key.text("subject")
            last = value.number("version") if kind == "DELETE_SUBJECT" else None
            living = self._living.get(subject, [])
            while living and (last is None or living[0] <= last):
                self._delete((subject, heappop(living)))

    def _add(self, schema: RegisteredSchema) -> None:
        self._size += len(schema.text)
        if self._size > MOST_TEXT:
            raise UsageError(f"the schemas of _schemas have more than {MOST_TEXT} characters; specify them as files")
        self.schemas[schema.subject, schema.version] = schema
        heappush(self._living.setdefault(schema.subject, []), schema.version)

    def _delete(self, name: tuple[str, int]) -> None:
        self.schemas[name] = replace(self.schemas[name], is_deleted=True)


def _schema(subject: str, version: int, value: "Members") -> RegisteredSchema:
    text = value.text("schema")
    if len(text) > LARGEST_TEXT:
        raise NotDecodable(f"the schema has more than {LARGEST_TEXT} characters")
    references = tuple(_references(value))
    return RegisteredSchema(
        subject,
        version,
        value.number("id"),
        _guid(value, text),
        str(value.members.get("schemaType") or "AVRO").upper(),
        text,
        references,
        bool(value.members.get("deleted", False)),
    )


def _references(value: "Members") -> Iterator[Reference]:
    listed = value.members.get("references") or []
    if not isinstance(listed, list):
        raise NotDecodable("references isn't a list")
    for entry in listed:
        members = Members(entry if isinstance(entry, dict) else {})
        yield Reference(members.text("name"), members.text("subject"), members.number("version"))


def _guid(value: "Members", text: str) -> UUID | None:
    """Return the GUID: the MD5 of the schema.

    Newer registries store it; if the schema is only text, it can be computed.
    """
    stored = value.members.get("md5")
    if isinstance(stored, str):
        try:
            return UUID(bytes=b64decode(stored, validate=True))
        except ValueError:
            return None
    if any(value.members.get(name) for name in ("references", "metadata", "ruleSet")):
        return None
    return UUID(bytes=md5(text.encode(), usedforsecurity=False).digest())


class Members(NamedTuple):
    """A JSON object's members, by type."""

    members: dict[str, object]

    def text(self, name: str) -> str:
        """Return the text of a member. Raises NotDecodable if it isn't text."""
        value = self.members.get(name)
        if not isinstance(value, str):
            raise NotDecodable(f"{name} is {json.dumps(value, default=str)[:40]}, expected text")
        return value

    def number(self, name: str) -> int:
        """Return the integer of a member. Raises NotDecodable if it isn't an integer."""
        value = self.members.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise NotDecodable(f"{name} is {json.dumps(value, default=str)[:40]}, expected an integer")
        return value


def _object(data: bytes | None) -> Members:
    value = read_json(data or b"")
    if not isinstance(value, dict):
        raise NotDecodable("not a JSON object")
    return Members({**value})
