"""Kafka's message schemas: messages and their fields, with version ranges in Kafka's notation.

They are data in `message_schemas/`, one line per message in Kafka's schema language, written by tools/read_schemas.py.
A file is read at the first use of one of its messages, and only that message's line is parsed.
"""

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from json import loads
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

NULL = "null"
"""The default of a field that is null, as in Kafka's schemas."""

_FOLDER = Path(__file__).with_name("message_schemas")
_NEWEST_FILES = (
    "consumer_offsets",
    "consumer_protocol",
    "transaction_state",
    "share_group_state",
    "cluster_metadata",
    "remote_log_metadata",
    "control_records",
    "protocol",
)
"""Files of the newest release's messages, which all have different names; the largest file comes last."""


class Field(NamedTuple):
    """A field of a message or of a structure in it."""

    name: str
    """The name as in Kafka's JSON."""
    type: str
    """`int32`, `string`, `[]string`, … or a structure's name, `[]` before it for a list."""
    versions: str
    """The versions that have the field: `0+`, `1-3`, `2`, `none`."""
    nullable: str = "none"
    tag: int | None = None
    tagged: str = "none"
    """The versions in which it is a tagged field."""
    default: bool | int | str | None = None
    """The default; None: the type's own (0, false, empty, the zero uuid, a structure of defaults); `NULL`: null."""
    flexible: str | None = None
    """The flexible versions, if they differ from the message's."""
    fields: "tuple[Field, ...]" = ()


class MessageSchema(NamedTuple):
    """A message: key or value of a coordinator's record, metadata records, request, response, header, or other data."""

    name: str
    kind: str
    """The kind in Kafka's words: request, response, header, data, metadata, coordinator-key, coordinator-value."""
    api_key: int | None
    """The number of the request or record type."""
    versions: str
    """The versions that can be read and written; `none` for abandoned requests."""
    flexible: str
    """The versions with compact lengths and tagged fields."""
    fields: tuple[Field, ...]

    def __hash__(self) -> int:
        """Return the name's hash: messages are keys of caches, and hashing all fields would cost more than it saves."""
        return hash(self.name)


class VersionRange(NamedTuple):
    """Versions from `first` to `last`, both included; empty if last is below first."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        """Return True if a version is in the range."""
        return isinstance(version, int) and self.first <= version <= self.last


def version_range(text: str) -> VersionRange:
    """Parse a range in Kafka's notation: `0-4`, `3+`, `2` or `none`."""
    if text == "none":
        return VersionRange(0, -1)
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), 32767)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))


class _Line(NamedTuple):
    """A message's line, with the kind and number at its beginning."""

    kind: str
    api_key: int | None
    text: str


@cache
def message_schema(name: str) -> MessageSchema:
    """Return the newest release's message with this name, as Kafka spells it. Raises KeyError if there is none."""
    return _message(next((file for file in _NEWEST_FILES if name in _lines(file)), _NEWEST_FILES[0]), name)


def messages_in(file: str) -> list[MessageSchema]:
    """Return all messages of a file, ordered by number and name."""
    return [_message(file, name) for name in _lines(file)]


class MessageTable(Mapping[int, MessageSchema]):
    """Messages of a file and kind by their number, each read on first use.

    `added` names messages of the file under numbers that its lines don't have.
    """

    def __init__(self, file: str, kind: str, added: Mapping[int, str] = MappingProxyType({})) -> None:
        self._file, self._kind, self._added = file, kind, dict(added)

    def __getitem__(self, number: int) -> MessageSchema:
        return _message(self._file, self.names[number])

    def __contains__(self, number: object) -> bool:
        return number in self.names

    def __iter__(self) -> Iterator[int]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def names(self) -> Mapping[int, str]:
        """The messages' names by number; no message is parsed for them."""
        lines = _lines(self._file).items()
        numbered = {line.api_key: name for name, line in lines if line.kind == self._kind and line.api_key is not None}
        return {**numbered, **self._added}


METADATA_RECORDS = MessageTable("cluster_metadata", "metadata")
PREVIEW_METADATA_RECORDS = MessageTable("cluster_metadata_2_8", "metadata")
"""Records of the 2.8 preview, after frame version 0."""
REMOTE_LOG_RECORDS = MessageTable("remote_log_metadata", "metadata")
OFFSETS_KEYS = MessageTable("consumer_offsets", "coordinator-key")
OFFSETS_VALUES = MessageTable("consumer_offsets", "coordinator-value")
OFFSETS_VALUES_TO_4_0 = MessageTable("consumer_offsets", "coordinator-value", {0: "OffsetCommitValue"})
"""Until 4.0 the types 0 and 1 were versions of one key, and had one value."""
TRANSACTION_KEYS = MessageTable("transaction_state", "coordinator-key")
TRANSACTION_VALUES = MessageTable("transaction_state", "coordinator-value")
SHARE_STATE_KEYS = MessageTable("share_group_state", "coordinator-key")
SHARE_STATE_VALUES = MessageTable("share_group_state", "coordinator-value")
REQUESTS = MessageTable("protocol", "request")
RESPONSES = MessageTable("protocol", "response")


@cache
def _lines(file: str) -> Mapping[str, _Line]:
    """Return the lines of a file by the name of their message."""
    lines = {}
    for text in (_FOLDER / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
        head = loads(text[: text.index(',"validVersions"')] + "}")
        lines[head["name"]] = _Line(head["type"], head.get("apiKey"), text)
    return lines


@cache
def _message(file: str, name: str) -> MessageSchema:
    line = _lines(file)[name]
    stored = loads(line.text)
    structures = {each["name"]: each["fields"] for each in stored.get("commonStructs", ())}
    fields = _fields(stored["fields"], structures)
    return MessageSchema(name, line.kind, line.api_key, stored["validVersions"], stored["flexibleVersions"], fields)


def _fields(stored: list[dict[str, Any]], structures: Mapping[str, list[dict[str, Any]]]) -> tuple[Field, ...]:
    """Return fields from their stored form; a structure's are in its field, or once for all fields of its type."""
    return tuple(
        Field(
            name=field["name"],
            type=field["type"],
            versions=field["versions"],
            nullable=field.get("nullableVersions", "none"),
            tag=field.get("tag"),
            tagged=field.get("taggedVersions", "none"),
            default=field.get("default"),
            flexible=field.get("flexibleVersions"),
            fields=_fields(field.get("fields") or structures.get(field["type"].removeprefix("[]"), []), structures),
        )
        for field in stored
    )
