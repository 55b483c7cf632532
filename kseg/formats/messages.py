"""Kafka's messages as construct grammars, made from a schema and a version.

Values are plain: a message or structure is a dict by field name in the schema's order, bytes are bytes, a uuid is
Kafka's text of it. Tagged fields that aren't in a message have their default. Source: Kafka's message generator,
KIP-482.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple, TypeVar

from construct import (
    Adapter,
    Bytes,
    Construct,
    ConstructError,
    Flag,
    Float64b,
    FormatField,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    StreamError,
)

from kseg.errors import FileError
from kseg.formats.grammar import UVARINT
from kseg.formats.schemas import NULL, Field, MessageSchema, version_range

Result = TypeVar("Result")
Fields = dict[str, Any]
"""A message's or structure's value."""

UNKNOWN_TAGGED_FIELDS = "unknownTaggedFields"
"""The key of the tagged fields that the schema doesn't know: {tag: bytes}; absent if there are none."""
MAXIMUM_STRING_SIZE = 0x7FFF
NO_TEXT = "null"
"""Java's text of an exception without message, for example when a buffer ends too early."""
ZERO_UUID = "A" * 22
ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


class MessageError(FileError):
    """Bytes that aren't a message of this kind, or a value that doesn't fit into one.

    `kafka_text` is Kafka's own exception text.
    """

    def __init__(self, message: str, kafka_text: str | None = None) -> None:
        super().__init__(message)
        self.kafka_text = message if kafka_text is None else kafka_text


class LazyList:
    """A list of known length for writing only: each element is made when it is written, and not kept."""

    def __init__(self, count: int, elements: Iterable[Any]) -> None:
        self._count, self._elements = count, elements

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._elements
        except (TypeError, ValueError, AttributeError) as error:  # construct would blame the message for it
            raise RuntimeError(f"an element can't be made: {error!r}") from error


class ParsedMessage(NamedTuple):
    """A message's value, and its end in the given bytes."""

    value: Fields
    end: int


class _FieldSource(BytesIO):
    """The bytes of a message, with a limit for parsed elements and tagged fields."""

    elements_left: int | None = None

    def take(self, count: int) -> None:
        """Count elements before they are read."""
        if self.elements_left is not None:
            self.elements_left -= count
            if self.elements_left < 0:
                raise MessageError("more elements and tagged fields than kseg reads from one message")


def parse_message(
    message: MessageSchema,
    version: int,
    data: bytes | memoryview,
    position: int = 0,
    *,
    most_elements: int | None = None,
) -> ParsedMessage:
    """Parse the message at a position of the bytes; ignores the bytes after it.

    A version that the schema doesn't know is read as the nearest known one, as in Kafka; a newer one can't have
    structures then. An element of one byte becomes an object of hundreds of bytes, so `most_elements` limits elements
    and tagged fields in bytes from unknown sources.

    Raises:
        MessageError: the bytes end too early; a length, count or null is impossible; or there are too many elements.
    """
    return _end_of(parse_in_steps(message, version, data, position, most_elements=most_elements))


def parse_in_steps(
    message: MessageSchema,
    version: int,
    data: bytes | memoryview,
    position: int = 0,
    *,
    most_elements: int | None = None,
) -> Generator[None, None, ParsedMessage]:
    """Parse the same with a step after each element and tagged field, for long messages."""
    stream = _FieldSource(data)
    stream.elements_left = most_elements
    stream.seek(position)
    try:
        value = yield from grammar(message, version).read_in_steps(stream)
    except ConstructError as error:
        raise MessageError(f"{message.name} version {version}: its bytes end too early", NO_TEXT) from error
    return ParsedMessage(value, stream.tell())


def _end_of(steps: Generator[None, None, Result]) -> Result:
    """Return the result of some steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def build_message(message: MessageSchema, version: int, value: Fields) -> bytes:
    """Build the bytes of a message; fields that the value lacks get their defaults.

    Raises:
        MessageError: a value has the wrong type, is too large, or is null in a field that can't be null.
    """
    stream = BytesIO()
    for _ in write_in_steps(message, version, value, stream):
        pass
    return stream.getvalue()


def write_in_steps(message: MessageSchema, version: int, value: Fields, stream: Any) -> Iterator[None]:
    """Write the bytes of a message to an object with `write`, with a step after each element of a list.

    A blob of any type is written unchanged. Raises as `build_message` does.
    """
    try:
        yield from grammar(message, version).steps(value, stream)
    except (ConstructError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).strip() or type(error).__name__
        raise MessageError(f"{message.name} version {version}: {reason.splitlines()[-1]}") from error


def known_version(message: MessageSchema, version: int) -> int:
    """Return the version, or the nearest one that the message's schema knows."""
    first, last = version_range(message.versions)
    return max(first, min(version, last))


class Shape(NamedTuple):
    """The version in which the fields of a message are read."""

    version: int
    is_flexible: bool
    wanted: int
    """The requested version; higher than `version` if the schema doesn't know it."""


@lru_cache(maxsize=1024)
def grammar(message: MessageSchema, version: int) -> Construct:
    """Return the grammar of a message in a version, for parsing and building."""
    known = known_version(message, version)
    return Structure(message.fields, Shape(known, known in version_range(message.flexible), version))


def is_tagged(field: Field, version: int) -> bool:
    """Return True if the field is a tagged field."""
    return version in version_range(field.tagged)


def is_structure(kind: str) -> bool:
    """Return True if a type is a structure's name."""
    return kind[0].isupper()


def default_of(field: Field, version: int) -> Any:
    """Return the value of a missing field."""
    if field.default is not None:
        return None if field.default == NULL else field.default
    if field.type.startswith("[]"):
        return []
    if is_structure(field.type):
        return {
            inner.name: default_of(inner, version) for inner in field.fields if version in version_range(inner.versions)
        }
    return ZERO_VALUES.get(field.type, 0)


ZERO_VALUES: dict[str, bool | float | str | bytes] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": ZERO_UUID,
}


def remaining(stream: BytesIO) -> int:
    """Return the number of remaining bytes."""
    return stream.getbuffer().nbytes - stream.tell()


def read_exactly(stream: BytesIO, size: int) -> bytes:
    """Return the next `size` bytes; allocates no memory for missing bytes."""
    if size > (left := remaining(stream)):
        raise MessageError(f"Error reading byte array of {size} byte(s): only {left} byte(s) available")
    return stream.read(size)


class _CompactLength(Construct):  # type: ignore[misc]
    """A length or count plus one, so that 0 is null. A server's requests have many."""

    def _parse(self, stream: BytesIO, context: Any, path: str) -> int:
        return int(UVARINT._parse(stream, context, path)) - 1

    def _build(self, obj: int, stream: BytesIO, context: Any, path: str) -> int:
        UVARINT._build(obj + 1, stream, context, path)
        return obj


COMPACT_LENGTH = _CompactLength()


class Sized(Construct):  # type: ignore[misc]
    """A value after its length or count, which is -1 for null; any negative one means null, as in Kafka."""

    def __init__(self, field: Field, version: int, length: Construct) -> None:
        super().__init__()
        self.field = field
        self.length = length
        self.is_nullable = version in version_range(field.nullable)

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        length = self.read_length(stream)
        return None if length is None else self.parse_sized(stream, length, context, path)

    def read_length(self, stream: BytesIO) -> int | None:
        """Return the length or count, or None for null."""
        length: int = self.length._parse(stream, None, "")
        if length >= 0:
            return length
        if not self.is_nullable:
            raise MessageError(f"non-nullable field {self.field.name} was serialized as null")
        return None

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if obj is None and not self.is_nullable:
            raise MessageError(f"{self.field.name} can't be null")
        if obj is None:
            self.length._build(-1, stream, context, path)
        else:
            self.build_sized(obj, stream, context, path)
        return obj

    def parse_sized(self, stream: BytesIO, length: int, context: Any, path: str) -> Any:
        """Return the value after its length."""
        raise NotImplementedError

    def build_sized(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        """Write length and value."""
        raise NotImplementedError


class Blob(Sized):
    """Bytes."""

    def parse_sized(self, stream: BytesIO, length: int, context: Any, path: str) -> bytes:
        """Return the bytes."""
        return read_exactly(stream, length)

    def build_sized(self, value: bytes, stream: BytesIO, context: Any, path: str) -> None:
        """Write length and bytes."""
        self.length._build(len(value), stream, context, path)
        stream.write(value)


class TextType(Sized):
    """A string in UTF-8; invalid bytes become U+FFFD as in Java."""

    def parse_sized(self, stream: BytesIO, length: int, context: Any, path: str) -> str:
        """Return the text."""
        if length > MAXIMUM_STRING_SIZE:
            raise MessageError(f"string field {self.field.name} had invalid length {length}")
        return java_text(read_exactly(stream, length))

    def build_sized(self, value: str, stream: BytesIO, context: Any, path: str) -> None:
        """Write length and text."""
        data = value.encode()
        if len(data) > MAXIMUM_STRING_SIZE:
            raise MessageError(f"{self.field.name} has {len(data)} bytes, {MAXIMUM_STRING_SIZE} are allowed")
        self.length._build(len(data), stream, context, path)
        stream.write(data)


class List(Sized):
    """An array."""

    def __init__(self, field: Field, version: int, length: Construct, element: Construct) -> None:
        super().__init__(field, version, length)
        self.element = element

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        return _end_of(self.read_in_steps(stream))

    def read_in_steps(self, stream: BytesIO) -> Generator[None, None, list[Any] | None]:
        """Read the elements with a step after each.

        As in Kafka, a count larger than the remaining bytes is refused, which bounds the loop.
        """
        length = self.read_length(stream)
        if length is None:
            return None
        if length > (left := remaining(stream)):
            raise MessageError(
                f"Tried to allocate a collection of size {length}, but there are only {left} bytes remaining."
            )
        if isinstance(stream, _FieldSource):
            stream.take(length)
        elements = []
        for _ in range(length):
            if isinstance(self.element, Structure):
                element = yield from self.element.read_in_steps(stream)
            else:
                element = self.element._parse(stream, None, "")
            elements.append(element)
            yield
        return elements

    def build_sized(self, value: list[Any] | LazyList, stream: BytesIO, context: Any, path: str) -> None:
        """Write count and elements."""
        self.length._build(len(value), stream, context, path)
        for element in value:
            self.element._build(element, stream, context, path)

    def steps(self, value: list[Any] | LazyList | None, stream: BytesIO) -> Iterator[None]:
        """Write count and elements, with a step after each."""
        if value is None:
            self._build(value, stream, None, "")
            return
        self.length._build(len(value), stream, None, "")
        for element in value:
            if isinstance(self.element, Structure):
                yield from self.element.steps(element, stream)
            else:
                self.element._build(element, stream, None, "")
            yield


class Optional(Construct):  # type: ignore[misc]
    """A structure that may be null, after a mark: an int8, negative for null.

    Among the tagged fields the mark is a uvarint instead, 0 for null; Kafka's tables don't say this.
    """

    def __init__(self, inner: Construct, is_tagged: bool) -> None:
        super().__init__()
        self.inner = inner
        self.mark = UVARINT if is_tagged else Int8sb
        self.null = 0 if is_tagged else -1

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        mark = self.mark._parse(stream, context, path)
        return None if mark <= self.null else self.inner._parse(stream, context, path)

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        self.mark._build(self.null if obj is None else 1, stream, context, path)
        if obj is not None:
            self.inner._build(obj, stream, context, path)
        return obj


class TooNew(Construct):  # type: ignore[misc]
    """A structure in a message of a version that the schema doesn't know: Kafka reads such a message without it."""

    def __init__(self, name: str, version: int) -> None:
        super().__init__()
        self.text = f"Can't read version {version} of {name}"

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        raise MessageError(self.text)

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        raise MessageError(self.text)


class FixedFields(NamedTuple):
    """Neighbouring fields of fixed size, which are read and written at once: a server's requests consist of them."""

    grammars: dict[str, Construct]
    layout: Struct

    def read(self, fields: Fields, stream: BytesIO) -> None:
        """Add the values to the fields of a structure."""
        data = stream.read(self.layout.size)
        if len(data) < self.layout.size:
            raise StreamError
        fields.update(zip(self.grammars, self.layout.unpack(data), strict=True))

    def write(self, fields: Fields, stream: BytesIO) -> None:
        """Write the values in the fields of a structure."""
        try:
            stream.write(self.layout.pack(*map(fields.__getitem__, self.grammars)))
        except StructError:
            for name, inner in self.grammars.items():  # the error is the wrong field's
                inner._build(fields[name], stream, None, name)


def _parts(grammars: dict[str, Construct]) -> Iterator[tuple[str, Construct | FixedFields]]:
    """Yield the fields of a structure by name, those of fixed size together with their neighbours."""
    for is_fixed, fields in groupby(grammars.items(), lambda field: bool(_format_of(field[1]))):
        if is_fixed:
            fixed = dict(fields)
            yield "", FixedFields(fixed, Struct(">" + "".join(map(_format_of, fixed.values()))))
        else:
            yield from fields


def _format_of(inner: Construct) -> str:
    """Return the format of a type of fixed size in a `struct`; empty if it has none."""
    if inner is Flag:
        return "?"
    return str(inner.fmtstr[1:]) if isinstance(inner, FormatField) else ""


_NO_TAGGED_FIELDS = UVARINT.build(0)


class Structure(Construct):  # type: ignore[misc]
    """Fields in order and, in flexible versions, the tagged ones after them."""

    def __init__(self, fields: tuple[Field, ...], shape: Shape) -> None:
        super().__init__()
        version = shape.version
        fields = tuple(field for field in fields if version in version_range(field.versions))
        self.is_flexible = shape.is_flexible
        grammars = {field.name: field_grammar(field, shape) for field in fields}
        tagged = [field for field in fields if is_tagged(field, version)]
        self.tags = {field.tag: field.name for field in tagged}
        self.tagged_grammars = {field.name: grammars.pop(field.name) for field in tagged}
        self.defaults = {field.name: default_of(field, version) for field in fields}
        self.grammars = grammars
        self.parts = tuple(_parts(grammars))

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Fields:
        return _end_of(self.read_in_steps(stream))

    def read_in_steps(self, stream: BytesIO) -> Generator[None, None, Fields]:
        """Read the fields, with a step after each element of a list and each tagged field."""
        read: Fields = {}
        for name, inner in self.parts:
            if isinstance(inner, FixedFields):
                inner.read(read, stream)
            elif isinstance(inner, List):
                read[name] = yield from inner.read_in_steps(stream)
            else:
                read[name] = inner._parse(stream, None, name)
        if self.is_flexible:
            yield from self.read_tagged_in_steps(read, stream)
        if not self.tags and UNKNOWN_TAGGED_FIELDS not in read:
            return read  # complete, and in the schema's order
        value = {name: read[name] if name in read else copy_default(default) for name, default in self.defaults.items()}
        if UNKNOWN_TAGGED_FIELDS in read:
            value[UNKNOWN_TAGGED_FIELDS] = read[UNKNOWN_TAGGED_FIELDS]
        return value

    def read_tagged_in_steps(self, read: Fields, stream: BytesIO) -> Generator[None, None, None]:
        """Read the tagged fields, with a step after each. The size of a known one is ignored, as in Kafka."""
        for _ in range(UVARINT._parse(stream, None, "")):
            if isinstance(stream, _FieldSource):
                stream.take(1)
            tag = UVARINT._parse(stream, None, "")
            size = UVARINT._parse(stream, None, "")
            if tag in self.tags:
                name = self.tags[tag]
                read[name] = self.tagged_grammars[name]._parse(stream, None, name)
            else:
                read.setdefault(UNKNOWN_TAGGED_FIELDS, {})[tag] = read_exactly(stream, max(0, size))
            yield

    def _build(self, obj: Fields, stream: BytesIO, context: Any, path: str) -> Fields:
        for _ in self.steps(obj, stream):
            pass
        return obj

    def steps(self, obj: Fields, stream: BytesIO) -> Iterator[None]:
        """Write the fields, with a step after each element of a list."""
        value = {name: obj.get(name, default) for name, default in self.defaults.items()}
        for name, inner in self.parts:
            if isinstance(inner, FixedFields):
                inner.write(value, stream)
            elif isinstance(inner, List):
                yield from inner.steps(value[name], stream)
            else:
                inner._build(value[name], stream, None, name)
        if self.is_flexible and (self.tags or obj.get(UNKNOWN_TAGGED_FIELDS)):
            self.build_tagged({**value, UNKNOWN_TAGGED_FIELDS: obj.get(UNKNOWN_TAGGED_FIELDS, {})}, stream)
        elif self.is_flexible:
            stream.write(_NO_TAGGED_FIELDS)

    def build_tagged(self, value: Fields, stream: BytesIO) -> None:
        """Write the tagged fields that differ from their defaults, and the unknown ones, ordered by tag."""
        tagged = {int(tag): data for tag, data in value[UNKNOWN_TAGGED_FIELDS].items()}
        for tag, name in self.tags.items():
            if value[name] != self.defaults[name]:
                tagged[int(tag or 0)] = self.tagged_grammars[name].build(value[name])
        UVARINT._build(len(tagged), stream, None, "")
        for tag, data in sorted(tagged.items()):
            UVARINT._build(tag, stream, None, "")
            UVARINT._build(len(data), stream, None, "")
            stream.write(data)


def copy_default(default: Any) -> Any:
    """Return a copy of a default that its reader may change."""
    if isinstance(default, dict):
        return {name: copy_default(value) for name, value in default.items()}
    return [] if isinstance(default, list) else default


class UuidText(Adapter):  # type: ignore[misc]
    """A uuid as Kafka writes it: base64url without padding."""

    def _decode(self, obj: bytes, context: Any, path: str) -> str:
        return urlsafe_b64encode(obj)[:22].decode()

    def _encode(self, obj: str, context: Any, path: str) -> bytes:
        return urlsafe_b64decode(f"{obj}==")


FIXED: dict[str, Construct] = {
    "bool": Flag,
    "int8": Int8sb,
    "int16": Int16sb,
    "uint16": Int16ub,
    "int32": Int32sb,
    "uint32": Int32ub,
    "int64": Int64sb,
    "float64": Float64b,
    "uuid": UuidText(Bytes(16)),
}
"""Types of fixed size."""


def field_grammar(field: Field, shape: Shape) -> Construct:
    """Return the grammar of a field."""
    version = shape.version
    if field.flexible is not None:
        shape = shape._replace(is_flexible=version in version_range(field.flexible))
    if field.type.startswith("[]"):
        # An element can't be null, even if the list can.
        element = field_grammar(field._replace(type=field.type[2:], nullable="none"), shape)
        return List(field, version, COMPACT_LENGTH if shape.is_flexible else Int32sb, element)
    if is_structure(field.type):
        inner = TooNew(field.type, shape.wanted) if shape.wanted > version else Structure(field.fields, shape)
        return Optional(inner, is_tagged(field, version)) if version in version_range(field.nullable) else inner
    if field.type == "string":
        return TextType(field, version, COMPACT_LENGTH if shape.is_flexible else Int16sb)
    if field.type in ("bytes", "records"):
        return Blob(field, version, COMPACT_LENGTH if shape.is_flexible else Int32sb)
    return FIXED[field.type]


def java_text(data: bytes) -> str:
    """Decode UTF-8 as Java does: an encoded surrogate becomes one U+FFFD, where Python makes two or three."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ENCODED_SURROGATE.sub(b"\xff", data).decode(errors="replace")
