"""Fields of internal topics' keys and values, as the message schemas describe them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from kseg.errors import KsegError, plural
from kseg.explain.field import Content, ExplainedField
from kseg.explain.walk import MOST_FIELDS, part_of
from kseg.formats.file_names import FileKind, parse_file_name, parse_partition_directory
from kseg.formats.messages import FIXED, Shape, is_structure, is_tagged, java_text, known_version
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES_TO_4_0,
    PREVIEW_METADATA_RECORDS,
    REMOTE_LOG_RECORDS,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    Field,
    MessageSchema,
    message_schema,
    version_range,
)
from kseg.formats.varint_bytes import LONGEST_VARINT, read_uvarint

VERSION_TYPE = "int16"
_BYTES_TYPES = ("bytes", "records")


class _UnfitError(KsegError):
    """The bytes don't fit the schema."""


class MessageFields:
    """A reader of bytes, field by field; `found` has the fields so far, which are adjacent."""

    def __init__(self, raw: Content, position: int, path: str) -> None:
        """Take the bytes, the position of the first one, and the beginning of each field's path."""
        self.found: list[ExplainedField] = []
        self._out = self.found
        self._raw = raw
        self._position = position
        self._path = path
        self._at = 0
        self._end = len(raw)
        self._count = 0

    # --- a message -------------------------------------------------------------------------------------------------

    def message(self, message: MessageSchema, version: int) -> None:
        """Read a message. Raises KsegError where the bytes don't fit it; the fields before that are kept."""
        known = known_version(message, version)
        self._structure(message.fields, Shape(known, known in version_range(message.flexible), version), self._path)

    def number(self, name: str, kind: str, meaning: str) -> int:
        """Read a number before a message: a type or a version. Raises KsegError if there are too few bytes."""
        path = f"{self._path}.{name}"
        return self._uvarint(path, meaning) if kind == "uvarint" else int(self._read_fixed(path, kind, meaning))

    def finish(self, reason: str) -> list[ExplainedField]:
        """Return the fields, and the remaining bytes as one field with the reason."""
        if self._at < len(self._raw):
            rest = part_of(self._raw, self._at, len(self._raw))
            where = self._position + self._at
            self.found.append(ExplainedField(f"{self._path}.rest", where, len(rest), "bytes", rest, reason, rest))
        return self.found

    # --- its parts -------------------------------------------------------------------------------------------------

    def _structure(self, fields: tuple[Field, ...], shape: Shape, path: str) -> None:
        there = [field for field in fields if shape.version in version_range(field.versions)]
        for field in there:
            if not is_tagged(field, shape.version):
                self._field(field, shape, f"{path}.{field.name}")
        if shape.is_flexible:
            self._read_tagged({field.tag: field for field in there if is_tagged(field, shape.version)}, shape, path)

    def _read_tagged(self, known: dict[int | None, Field], shape: Shape, path: str) -> None:
        count = self._uvarint(f"{path}.taggedFields", "tagged fields that follow")
        for _ in range(count):
            tag = self._uvarint(f"{path}.tag", "")
            field = known.get(tag)
            self._out[-1].meaning = "of an unknown field" if field is None else f"of {field.name}"
            size = self._uvarint(f"{path}.size", "bytes of the field that follow")
            if field is None:
                self._bytes(f"{path}.tag{tag}", size)
            else:
                self._field(field, shape, f"{path}.{field.name}")

    def _field(self, field: Field, shape: Shape, path: str) -> None:
        if field.flexible is not None:
            shape = shape._replace(is_flexible=shape.version in version_range(field.flexible))
        if field.type.startswith("[]"):
            self._list(field, shape, path)
        elif is_structure(field.type):
            self._inner(field, shape, path)
        elif field.type == "string" or field.type in _BYTES_TYPES:
            self._read_sized(field, shape, path)
        else:
            self._read_fixed(path, field.type, "")

    def _list(self, field: Field, shape: Shape, path: str) -> None:
        with self._whole(path, "list"):
            count = self._length(f"{path}.count", "int32", shape, "elements", field.name)
            element = field._replace(type=field.type[2:], nullable="none")
            if count > self._end - self._at:
                raise _UnfitError(
                    f"{plural(count, 'element')}, but {plural(self._end - self._at, 'byte is', 'bytes are')} left"
                )
            for number in range(count):
                self._field(element, shape, f"{path}[{number}]")

    def _inner(self, field: Field, shape: Shape, path: str) -> None:
        if shape.wanted > shape.version:
            raise _UnfitError(f"version {shape.wanted} is too new for kseg, which can't read its structures")
        with self._whole(path, "structure"):
            if shape.version in version_range(field.nullable):
                is_marked_short = is_tagged(field, shape.version)
                mark_path, meaning = f"{path}.mark", "1 if the structure is present"
                mark = (
                    self._uvarint(mark_path, meaning)
                    if is_marked_short
                    else self._read_fixed(mark_path, "int8", meaning)
                )
                if mark <= (0 if is_marked_short else -1):
                    return
            self._structure(field.fields, shape, path)

    def _read_sized(self, field: Field, shape: Shape, path: str) -> None:
        kind = "int16" if field.type == "string" else "int32"
        length = self._length(f"{path}.length", kind, shape, "bytes", field.name)
        if length > 0:
            self._bytes(path, length)
            if field.type == "string":
                text = self._out[-1]
                text.kind, text.value = "string", java_text(bytes(text.raw))

    def _length(self, path: str, kind: str, shape: Shape, what: str, name: str) -> int:
        """Return a length or count; below 0 for null."""
        meaning = f"{what} of {name}; -1: null"
        if not shape.is_flexible:
            length = int(self._read_fixed(path, kind, meaning))
        else:
            length = self._uvarint(path, f"{what} of {name}, plus 1; 0: null") - 1
        return length

    # --- leaves ----------------------------------------------------------------------------------------------------

    def _read_fixed(self, path: str, kind: str, meaning: str) -> Any:
        size = FIXED[kind].sizeof()
        content = bytes(self._take(size))
        value = FIXED[kind].parse(content)
        self._add(path, size, kind, value, meaning)
        return value

    def _uvarint(self, path: str, meaning: str) -> int:
        try:
            value, end = read_uvarint(self._raw, self._at, LONGEST_VARINT)
        except EOFError as error:
            raise _UnfitError("a number has too many bytes or no end") from error
        size = end - self._at
        self._take(size)
        self._add(path, size, "uvarint", value, meaning)
        return value

    def _bytes(self, path: str, size: int) -> None:
        content = self._take(size)
        if size:
            self._add(path, size, "bytes", content, "")

    def _take(self, size: int) -> Content:
        """Return the next bytes; `_add` makes a field of them."""
        left = self._end - self._at
        if size > left:
            raise _UnfitError(f"{plural(size, 'byte is', 'bytes are')} needed, {left} left")
        self._count += 1
        if self._count > MOST_FIELDS:
            raise _UnfitError(f"more than {MOST_FIELDS} fields; kseg skips these")
        return part_of(self._raw, self._at, self._at + size)

    def _add(self, path: str, size: int, kind: str, value: object, meaning: str) -> None:
        raw = part_of(self._raw, self._at, self._at + size)
        self._out.append(ExplainedField(path, self._position + self._at, size, kind, value, meaning, raw))
        self._at += size

    @contextmanager
    def _whole(self, path: str, kind: str) -> Iterator[None]:
        """Group the fields read inside as parts of a list or structure, even after an error."""
        start, outer, own = self._at, self._out, list[ExplainedField]()
        self._out = own
        try:
            yield
        finally:
            self._out = outer
            if own:
                where = self._position + start
                outer.append(ExplainedField(path, where, self._at - start, kind, None, "", b"", children=own))


Messages = Mapping[int, MessageSchema]
OpenRecord = Callable[[ExplainedField | None, ExplainedField | None], None]
"""A function that splits a record's key and value into fields, if they are there."""

CONSUMER_PROTOCOL_TYPE = "consumer"
_CONSUMERS_PARTS = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}
_PREVIEW_FRAME = 0
"""Frame version of Kafka 2.8, whose records had other fields."""
_TOO_MANY = "bytes too many"


def internal_opener(path: str | PathLike[str]) -> OpenRecord | None:
    """Return the opener for the records of a log by its directory name, or None if the topic isn't internal."""
    directory = parse_partition_directory(Path(path).absolute().parent)
    if directory is not None:
        return _OPENERS.get(directory.topic)
    is_snapshot = parse_file_name(path).kind is FileKind.METADATA_SNAPSHOT
    return _OPENERS["__cluster_metadata"] if is_snapshot else None


def open_records(fields: Iterable[ExplainedField], open_record: OpenRecord) -> None:
    """Open the keys and values among the fields of a batch or of its body, at most MOST_FIELDS in total."""
    count = 0
    own = {field.path: field for field in fields if field.name in ("key", "value") and not field.children}
    for stem in dict.fromkeys(path.rpartition(".")[0] for path in own):
        if ".headers[" in stem:
            continue
        key, value = own.get(f"{stem}.key"), own.get(f"{stem}.value")
        there = [field for field in (key, value) if field is not None]
        if count > MOST_FIELDS:
            for field in there:
                field.meaning = f"more than {MOST_FIELDS} fields before this one; kseg doesn't read it"
            continue
        open_record(key, value)
        count += sum(1 for field in there for _ in field.leaves())


def _coordinator_opener(keys: Messages, values: Messages) -> OpenRecord:
    """Return the opener of records with a type before the key's message, and a version before the value's."""

    def open_record(key: ExplainedField | None, value: ExplainedField | None) -> None:
        number = -1

        def read_key(parts: MessageFields) -> None:
            nonlocal number
            number = parts.number("recordType", VERSION_TYPE, "")
            message = _schema_of(keys, number)
            parts.found[-1].meaning = message.name
            parts.message(message, number)

        def read_value(parts: MessageFields) -> None:
            message = _schema_of(values, number)
            _read_versioned(message, parts)
            if message.name == "GroupMetadataValue":
                _open_consumers_parts(parts.found)

        _open(key, read_key)
        _open(value, read_value)

    return open_record


def _framed_opener(records: Messages, preview: Messages) -> OpenRecord:
    """Return the opener of records with frame version, type and version before the value's message; keys are null."""

    def read(parts: MessageFields) -> None:
        frame = parts.number("frameVersion", "uvarint", "")
        number = parts.number("recordType", "uvarint", "")
        message = _schema_of(preview if frame == _PREVIEW_FRAME else records, number)
        parts.found[-1].meaning = message.name
        parts.message(message, parts.number("version", "uvarint", f"of {message.name}"))

    def open_record(_: ExplainedField | None, value: ExplainedField | None) -> None:
        _open(value, read)

    return open_record


def _open_consumers_parts(fields: list[ExplainedField]) -> None:
    """Open members' metadata and assignments of the consumer protocol; those of other protocols stay as bytes."""
    leaves = [leaf for field in fields for leaf in field.leaves()]
    if not any(leaf.name == "protocolType" and leaf.value == CONSUMER_PROTOCOL_TYPE for leaf in leaves):
        return
    for leaf in leaves:
        if leaf.name in _CONSUMERS_PARTS:
            _open(leaf, partial(_read_versioned, message_schema(_CONSUMERS_PARTS[leaf.name])))


def _read_versioned(message: MessageSchema, parts: MessageFields) -> None:
    parts.message(message, parts.number("version", VERSION_TYPE, f"of {message.name}"))


def _schema_of(messages: Messages, number: int) -> MessageSchema:
    if number not in messages:
        raise KsegError(f"kseg doesn't know records of type {number}")
    return messages[number]


def _open(field: ExplainedField | None, read: Callable[[MessageFields], None]) -> None:
    """Split a field into parts. Bytes that fit no message stay one part with the reason; they aren't damage."""
    if field is None or not field.raw:
        return
    parts = MessageFields(field.raw, field.position, field.path)
    try:
        read(parts)
    except KsegError as error:
        field.children = parts.finish(error.message)
    else:
        field.children = parts.finish(_TOO_MANY)


_OPENERS: dict[str, OpenRecord] = {
    "__consumer_offsets": _coordinator_opener(OFFSETS_KEYS, OFFSETS_VALUES_TO_4_0),
    "__transaction_state": _coordinator_opener(TRANSACTION_KEYS, TRANSACTION_VALUES),
    "__share_group_state": _coordinator_opener(SHARE_STATE_KEYS, SHARE_STATE_VALUES),
    "__cluster_metadata": _framed_opener(METADATA_RECORDS, PREVIEW_METADATA_RECORDS),
    "__remote_log_metadata": _framed_opener(REMOTE_LOG_RECORDS, {}),
}
