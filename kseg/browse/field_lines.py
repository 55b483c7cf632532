"""The fields of a row as lines: one for each, their parts below them, with what a decoder makes of keys and values."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kseg.decode.decoded import Decoded, Json, ValueDecoder, decoded_text
from kseg.decode.values import DecoderOptions, value_decoder
from kseg.explain.field import ExplainedField
from kseg.explain.words import notes_of, shown_value
from kseg.kernel.record import Header
from kseg.output.printable import printable

MOST_LINES = 20_000
"""Lines that are made of one row: nobody walks through more."""
_MOST_DECODED = 2_000
_LONGEST = 4_000
"""Characters of a value on the screen."""


class FieldLine(NamedTuple):
    """A line about a field: its name, or a note below it. depth: how many structures it is in."""

    depth: int
    name: str
    value: str
    field: ExplainedField
    is_wrong: bool = False
    is_note: bool = False


@dataclass(slots=True)
class Decoders:
    """What decodes keys and values: names of decoders, None for none, and what they need."""

    names: dict[str, str | None] = field(default_factory=dict)
    options: DecoderOptions = field(default_factory=DecoderOptions)
    _made: dict[str, ValueDecoder] = field(default_factory=dict)

    def choose(self, part: str, name: str | None) -> None:
        """Sets the decoder of keys or values. Raises UsageError if there is no such one, and changes nothing then."""
        if name is None:
            self._made.pop(part, None)
        else:
            self._made[part] = value_decoder(name, self.options, "key" if part == "key" else "value")
        self.names[part] = name

    def of(self, part: str) -> Callable[[bytes, list[Header]], Decoded] | None:
        """The decoder of keys or values; None if there is none."""
        return self._made.get(part)


def field_lines(fields: Iterable[ExplainedField], decoders: Decoders) -> list[FieldLine]:
    """The lines of some fields, at most MOST_LINES."""
    lines: list[FieldLine] = []
    own = list(fields)
    headers = _headers(own)
    for line in _lines(own, 0, decoders, headers):
        lines.append(line)
        if len(lines) >= MOST_LINES:
            break
    return lines


def _lines(
    fields: Iterable[ExplainedField], depth: int, decoders: Decoders, headers: list[Header]
) -> Iterator[FieldLine]:
    for each in fields:
        is_wrong = each.problem is not None
        value = "" if each.children else printable(shown_value(each))[:_LONGEST]
        yield FieldLine(depth, printable(_name(each)), value, each, is_wrong)
        for note in notes_of(each):
            yield FieldLine(depth + 1, "", printable(note.text), each, note.is_bad, is_note=True)
        yield from _decoded_lines(each, depth + 1, decoders, headers)
        yield from _lines(each.children, depth + 1, decoders, headers)


def _name(each: ExplainedField) -> str:
    """The last part of its path, `headers[0]` for an element of a list."""
    return each.name or "(all)"


def _decoded_lines(each: ExplainedField, depth: int, decoders: Decoders, headers: list[Header]) -> Iterator[FieldLine]:
    part = each.name
    decode = decoders.of(part) if part in ("key", "value") and ".headers[" not in each.path else None
    if decode is None or not isinstance(each.value, bytes | memoryview):
        return
    decoded = decode(bytes(each.value), headers)
    if decoded.reason is not None:
        yield FieldLine(
            depth, f"as {decoders.names[part]}", printable(decoded.reason), each, is_wrong=True, is_note=True
        )
        return
    text = _text(decoded.value)
    for number, line in enumerate(text.split("\n")[:_MOST_DECODED]):
        name = f"as {decoders.names[part]}" if number == 0 else ""
        yield FieldLine(depth, printable(name), printable(line)[:_LONGEST], each, is_note=True)


def _text(value: "Json | bytes") -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return decoded_text(value, pretty=True).decode("utf-8", "replace")


def _headers(fields: list[ExplainedField]) -> list[Header]:
    """The headers of a record, for decoders that look at them."""
    found = []
    for each in fields:
        for element in each.children if each.name == "headers" else ():
            parts = {part.name: part.value for part in element.children}
            key, value = parts.get("key"), parts.get("value")
            if isinstance(key, bytes | memoryview):
                content = bytes(value) if isinstance(value, bytes | memoryview) else None
                found.append(Header(str(key, "utf-8", "replace"), content))
    return found
