"""A field of a structure with its bytes, its value as text, and its meaning."""

from base64 import b64encode
from codecs import getincrementaldecoder
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from json import dumps
from typing import NamedTuple

from kseg.formats.codes import Codec, ControlType, TimestampType
from kseg.times import time_text

Content = bytes | memoryview
"""Bytes of a file or of a body; a view if there are many."""


class Bits(NamedTuple):
    """Some bits of a field: `width` of them from bit `first` (the lowest is 0) on, and their meaning."""

    name: str
    first: int
    width: int
    value: int | bool
    meaning: str


class Check(NamedTuple):
    """A checksum, as stored and as computed, and the bytes that it covers, from `start` up to `end`."""

    stored: int
    computed: int
    start: int
    end: int

    @property
    def holds(self) -> bool:
        """True if both are the same."""
        return self.stored == self.computed


@dataclass(slots=True)
class ExplainedField:
    """A field, a structure of fields (`children`), or bytes that can't be read (`problem`).

    path: its name, after the names of the structures around it. position: its first byte's, in the file or in a
    decompressed body. raw: the bytes of a leaf. body: its contents after decompression.
    """

    path: str
    position: int
    size: int
    kind: str
    value: object
    meaning: str
    raw: Content
    bits: tuple[Bits, ...] = ()
    check: Check | None = None
    children: list["ExplainedField"] = field(default_factory=list)
    body: list["ExplainedField"] = field(default_factory=list)
    problem: str | None = None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    def leaves(self) -> Iterator["ExplainedField"]:
        """Yield the fields that have no parts, in order, without those of a decompressed body."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


SHOWN_WHOLE = 1 << 10
"""The most bytes that are shown in full, as text or in hex."""
PIECE = 3 << 18
"""Bytes of large contents that are converted at once; a multiple of 3, for Base64."""
_NAMES = {"codec": Codec, "timestamp_type": TimestampType, "type": ControlType}
"""Fields whose numbers have names."""
_VARINTS = ("uvarint", "varint", "varlong")


def shown_value(field: ExplainedField, zone: tzinfo = UTC) -> str:
    """Return a field's value as one line of text, a time in a zone.

    Bytes are text if they are UTF-8, otherwise hex; many bytes are shortened.
    """
    value = field.value
    if isinstance(value, bytes | memoryview):
        return _shown_bytes(value)
    if field.name == "crc" and isinstance(value, int):
        return f"0x{value:08x}"
    if isinstance(value, int) and not isinstance(value, bool):
        return " ".join(filter(None, (str(value), _in_words(field.name, value, zone))))
    return "" if value is None else str(value)


def _shown_bytes(content: Content) -> str:
    if len(content) > SHOWN_WHOLE:
        return _shown_beginning(content)
    try:
        return repr(str(content, "utf-8"))
    except UnicodeDecodeError:
        return f"0x{content.hex()}"


def _shown_beginning(content: Content) -> str:
    """Return the same for many bytes, shortened."""
    beginning = bytes(content[:SHOWN_WHOLE])
    quotes = set[str]()
    try:
        for text in text_pieces(content):
            quotes.update(quote for quote in "'\"" if quote in text)
    except UnicodeDecodeError:
        return f"0x{beginning.hex()}"
    # The choice of quotes around the text depends on all of it.
    return repr(beginning.decode(errors="ignore") + "".join(quotes))[:-1]


def text_pieces(content: Content) -> Iterator[str]:
    """Yield bytes as text, some at a time. Raises UnicodeDecodeError if they aren't UTF-8."""
    decoder = getincrementaldecoder("utf-8")()
    for at in range(0, len(content), PIECE):
        yield decoder.decode(content[at : at + PIECE], final=at + PIECE >= len(content))


class FieldNote(NamedTuple):
    """A line below a field about it. is_bad: it is a problem."""

    text: str
    is_bad: bool = False


def notes_of(field: ExplainedField) -> Iterator[FieldNote]:
    """Yield notes about bits, groups of a varint, the range of a checksum, and problems."""
    for bits in field.bits:
        yield FieldNote(f"{shown_bits(bits)}  {bits.meaning}")
    groups = opened_varint(field)
    if groups is not None:
        yield FieldNote(groups)
    if field.check is not None:
        check = field.check
        outcome = "holds" if check.holds else f"is wrong: computed 0x{check.computed:08x}"
        yield FieldNote(f"covers bytes {check.start} to {check.end - 1}; {outcome}", is_bad=not check.holds)
    elif field.problem is not None:
        yield FieldNote(field.problem, is_bad=True)


def shown_bits(bits: Bits) -> str:
    """Return place, name and value of some bits."""
    last = bits.first + bits.width - 1
    place = f"bit {bits.first}" if bits.width == 1 else f"bits {bits.first}-{last}"
    value = str(bits.value).lower()
    words = "" if isinstance(bits.value, bool) else _in_words(bits.name, bits.value)
    return f"{place} {bits.name} = {value}{f' {words}' if words else ''}"


def _in_words(name: str, value: int, zone: tzinfo = UTC) -> str:
    if name.lower().endswith("timestamp") and (time := time_text(value, zone)):
        return f"({time})"
    names = _NAMES.get(name)
    if names is None:
        return ""
    return names(value).name.lower() if value in list(names) else "unknown"


def opened_varint(field: ExplainedField) -> str | None:
    """Return how a longer varint's bytes give its value: groups of 7 bits, highest first, or None for other fields."""
    if field.kind not in _VARINTS or len(field.raw) < 2:
        return None
    groups = " ".join(f"{byte & 0x7F:07b}" for byte in reversed(field.raw))
    number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(field.raw))
    zigzag = "" if field.kind == "uvarint" else f", zig-zag {field.value}"
    return f"{groups} = {number}{zigzag}"


def json_value(value: object) -> object:
    """Return a value for JSON: bytes as {"base64": …} if they aren't UTF-8."""
    if not isinstance(value, bytes | memoryview):
        return value
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def hex_pieces(content: Content) -> Iterator[bytes]:
    """Yield bytes in hex as JSON, some at a time."""
    yield b'"'
    for at in range(0, len(content), PIECE):
        yield content[at : at + PIECE].hex().encode()
    yield b'"'


def value_pieces(content: Content) -> Iterator[bytes]:
    """Yield the JSON of `json_value`, some at a time."""
    try:
        for _ in text_pieces(content):
            pass
    except UnicodeDecodeError:
        yield b'{"base64":"'
        for at in range(0, len(content), PIECE):
            yield b64encode(content[at : at + PIECE])
        yield b'"}'
        return
    yield b'"'
    for text in text_pieces(content):
        yield dumps(text, ensure_ascii=False)[1:-1].encode()
    yield b'"'
