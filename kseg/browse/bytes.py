"""Bytes on the screen, their fields as lines, and values that are copied."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from kseg.cluster.schemas_topic import SchemasTopic
from kseg.decode.decoded import Decoded, Json, ValueDecoder, decoded_text
from kseg.decode.values import DecoderOptions, value_decoder
from kseg.doctor.kinds import path_word
from kseg.explain.field import Content, ExplainedField, notes_of, shown_value
from kseg.explain.items import Item
from kseg.kernel.record import Header
from kseg.output.rows import json_by_pieces
from kseg.reading.log_file import LogFile
from kseg.store.target import NewFile
from kseg.system.files import open_regular
from kseg.system.terminal_text import escaped_text
from kseg.text.explain import item_objects


class ByteSource(Protocol):
    """Bytes that can be read at any position. `title` is the description shown on the screen."""

    title: str

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes at a position, or fewer if the end is reached."""


class NoBytes:
    """The source for places that have no bytes of their own, such as topics."""

    title = ""
    size = 0

    def read(self, position: int, size: int) -> bytes:
        """Return no bytes."""
        return b""


class FileBytes:
    """The bytes of a file. The file is opened again for every read, in case it has been replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.title = path.name

    @property
    def size(self) -> int:
        """Return the current size of the file, or 0 if it can't be opened."""
        try:
            return os.stat(self.path).st_size  # noqa: PTH116  as open_regular does
        except OSError:
            return 0

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes at a position, or no bytes if the file can't be opened or read."""
        from kseg.errors import OpenError

        try:
            descriptor, _ = open_regular(self.path)
        except OpenError:
            return b""
        try:
            return os.pread(descriptor, size, position)
        except OSError:
            return b""
        finally:
            os.close(descriptor)


class OpenLogBytes:
    """The bytes of an open log. They can still be read after a broker has deleted the file."""

    def __init__(self, log_file: LogFile) -> None:
        self._log_file = log_file
        self.title = log_file.path.name

    @property
    def size(self) -> int:
        """The size of the log when it was opened."""
        return self._log_file.size

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes at a position, or no bytes if the log has already been closed."""
        return b"" if self._log_file.is_closed else self._log_file.read(position, size)


class BodyBytes:
    """The decompressed records of a batch."""

    def __init__(self, content: Content, title: str) -> None:
        self._content = content
        self.title = title

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._content)

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes at a position."""
        return bytes(self._content[position : position + size])


MOST_LINES = 20_000
"""The most lines of one row: nobody walks through more."""
_MOST_DECODED = 2_000
_LONGEST = 4_000
"""The most characters of a value on the screen."""
LEAST_ROOM = 40
"""The shortest lines, in characters, that long texts are cut into."""
_HEX_ROWS = (16, 8)
"""Bytes per line in hex; the largest that fits is used."""


class FieldLine(NamedTuple):
    """A line with the name of a field, or a note below it. `depth` is the nesting level."""

    depth: int
    name: str
    value: str
    field: ExplainedField
    is_wrong: bool = False
    is_note: bool = False


@dataclass(slots=True)
class Decoders:
    """The decoders of keys and values, including their options. None means that the data isn't decoded."""

    names: dict[str, str | None] = field(default_factory=dict)
    options: DecoderOptions = field(default_factory=DecoderOptions)
    _made: dict[str, ValueDecoder] = field(default_factory=dict)

    def choose(self, part: str, name: str | None) -> None:
        """Set the decoder of keys or values. Raises UsageError if the decoder is unknown."""
        if name is None:
            self._made.pop(part, None)
        else:
            self._made[part] = value_decoder(name, self.options, "key" if part == "key" else "value")
        self.names[part] = name

    def words(self) -> list[str]:
        """Return kseg's options for these decoders."""
        given = [(f"--{part}-decoder", name) for part, name in self.names.items() if name is not None]
        if given:
            registry, schema, message = self.options.registry, self.options.schema, self.options.message
            given += [] if schema is None else [("--schema", path_word(schema))]
            given += [] if message is None else [("--message", message)]
            given += [("--schema-registry", path_word(registry.path))] if isinstance(registry, SchemasTopic) else []
        return [word for pair in given for word in pair]

    def of(self, part: str) -> Callable[[bytes, list[Header]], Decoded] | None:
        """Return the decoder of keys or values, or None if none is set."""
        return self._made.get(part)


def field_lines(
    fields: Iterable[ExplainedField], decoders: Decoders, zone: tzinfo = UTC, room: int = LEAST_ROOM
) -> list[FieldLine]:
    """Return the lines of the given fields, up to MOST_LINES. Long texts are included in full."""
    lines: list[FieldLine] = []
    own = list(fields)
    headers = _headers(own)
    for line in _lines(own, 0, _LineForm(decoders, headers, zone, max(room, LEAST_ROOM))):
        lines.append(line)
        if len(lines) >= MOST_LINES:
            break
    return lines


class _LineForm(NamedTuple):
    """Settings for displaying lines: decoders, record headers, time zone and line length."""

    decoders: Decoders
    headers: list[Header]
    zone: tzinfo
    room: int


def _lines(fields: Iterable[ExplainedField], depth: int, form: _LineForm) -> Iterator[FieldLine]:
    for each in fields:
        is_wrong = each.problem is not None
        value = "" if each.children else escaped_text(shown_value(each, form.zone))[:_LONGEST]
        yield FieldLine(depth, escaped_text(_name(each)), value, each, is_wrong)
        for note in notes_of(each):
            yield FieldLine(depth + 1, "", escaped_text(note.text), each, note.is_bad, is_note=True)
        yield from _decoded_lines(each, depth + 1, form)
        yield from _lines(each.children, depth + 1, form)


def _name(each: ExplainedField) -> str:
    """Return the last component of a field path, such as `headers[0]`. Fields without bytes keep the full path."""
    return (each.name if each.kind or each.size else each.path) or "(all)"


def _decoded_lines(each: ExplainedField, depth: int, form: _LineForm) -> Iterator[FieldLine]:
    part, decoders, headers = each.name, form.decoders, form.headers
    decode = decoders.of(part) if part in ("key", "value") and ".headers[" not in each.path else None
    if not isinstance(each.value, bytes | memoryview):
        return
    if decode is None:
        is_content = part in ("key", "value") and not each.children
        for text in _content_lines(bytes(each.value[:MOST_COPIED]), form.room) if is_content else ():
            yield FieldLine(depth, "", text, each, is_note=True)
        return
    decoded = decode(bytes(each.value), headers)
    if decoded.reason is not None:
        yield FieldLine(
            depth, f"as {decoders.names[part]}", escaped_text(decoded.reason), each, is_wrong=True, is_note=True
        )
        return
    text = _text(decoded.value)
    for number, line in enumerate(text.split("\n")[:_MOST_DECODED]):
        name = f"as {decoders.names[part]}" if number == 0 else ""
        yield FieldLine(depth, escaped_text(name), escaped_text(line)[:_LONGEST], each, is_note=True)


def _content_lines(content: bytes, room: int) -> Iterator[str]:
    """Yield the complete text of a key or value, as indented JSON, plain text or hex.

    Yields nothing if one line is enough.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        count = next((each for each in _HEX_ROWS if len("00 ") * each <= room), _HEX_ROWS[-1])
        begins = range(0, min(len(content), count * _MOST_DECODED), count) if len(content) > count else ()
        yield from (content[at : at + count].hex(" ") for at in begins)
        return
    lines = _json_lines(text) if text[:1] in ("{", "[") else []
    if not lines and len(text) + 2 > room:
        lines = text.split("\n")
    shown = (escaped_text(line) for line in lines)
    pieces = (line[at : at + room] for line in shown for at in range(0, max(len(line), 1), room))
    yield from islice(pieces, _MOST_DECODED)


def _json_lines(text: str) -> list[str]:
    """Return the lines of indented JSON, or an empty list if the text isn't JSON or is nested too deeply."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError):
        return []


def _text(value: "Json | bytes") -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return decoded_text(value, pretty=True).decode("utf-8", "replace")


def _headers(fields: list[ExplainedField]) -> list[Header]:
    """Return the headers of a record for decoders that need them."""
    found = []
    for each in fields:
        for element in each.children if each.name == "headers" else ():
            parts = {part.name: part.value for part in element.children}
            key, value = parts.get("key"), parts.get("value")
            if isinstance(key, bytes | memoryview):
                content = bytes(value) if isinstance(value, bytes | memoryview) else None
                found.append(Header(str(key, "utf-8", "replace"), content))
    return found


MOST_COPIED = 1 << 20
"""The most bytes of a copied value; terminals take fewer."""


def copied_text(line: FieldLine) -> str:
    """Return the value of a field as text: bytes as text if pasting it is harmless, else in hex."""
    if line.is_note:
        return line.value
    return field_text(line.field)


def field_text(field: ExplainedField) -> str:
    """Return the value of a field as text, without any notes."""
    if isinstance(field.value, bytes | memoryview):
        return _text_or_hex(field.value[:MOST_COPIED])
    if isinstance(field.value, int) and not isinstance(field.value, bool):
        return str(field.value)
    return escaped_text(shown_value(field))


def _text_or_hex(content: Content) -> str:
    try:
        text = str(content, "utf-8")
    except UnicodeDecodeError:
        return content.hex()
    return text if text.isprintable() else content.hex()


def export_item(item: Item, number: int, file: Path, path: Path) -> int:
    """Write an item to a new file in the format of `kseg explain -o json`, and return the file size.

    Raises UsageError if the file exists or lies within the input, WriteError if it can't be written.
    """
    new = NewFile(path, [file])
    objects = item_objects(item, number, str(file))
    content = b"".join(piece for members in objects for piece in json_by_pieces(members))
    new.write(content)
    return len(content)
