"""Values in words: times, codes by name, checksums in hex, varints opened up, bytes as text."""

from base64 import b64encode
from datetime import UTC, datetime

from kseg.explain.field import Bits, Field
from kseg.formats.codes import Codec, ControlType, TimestampType

_YEAR_9999_MS = 253_402_300_800_000
_NAMES = {"codec": Codec, "timestamp_type": TimestampType, "type": ControlType}
"""Fields whose numbers have names."""
_VARINTS = ("uvarint", "varint", "varlong")


def shown_value(field: Field) -> str:
    """A field's value as text of one line: bytes as text where they are UTF-8, else in hex."""
    value = field.value
    if isinstance(value, bytes):
        return _shown_bytes(value)
    if field.name == "crc" and isinstance(value, int):
        return f"0x{value:08x}"
    if isinstance(value, int) and not isinstance(value, bool):
        return " ".join(filter(None, (str(value), _in_words(field.name, value))))
    return "" if value is None else str(value)


def _shown_bytes(content: bytes) -> str:
    try:
        return repr(content.decode())
    except UnicodeDecodeError:
        return f"0x{content.hex()}"


def shown_bits(bits: Bits) -> str:
    """What some bits are: their place, name, value."""
    last = bits.first + bits.width - 1
    place = f"bit {bits.first}" if bits.width == 1 else f"bits {bits.first}-{last}"
    value = str(bits.value).lower()
    words = "" if isinstance(bits.value, bool) else _in_words(bits.name, bits.value)
    return f"{place} {bits.name} = {value}{f' {words}' if words else ''}"


def _in_words(name: str, value: int) -> str:
    if name.endswith("timestamp") and 0 <= value < _YEAR_9999_MS:
        moment = datetime.fromtimestamp(value // 1000, UTC)
        return f"({moment:%Y-%m-%dT%H:%M:%S}.{value % 1000:03}Z)"
    names = _NAMES.get(name)
    if names is None:
        return ""
    return names(value).name.lower() if value in list(names) else "unknown"


def opened_varint(field: Field) -> str | None:
    """How a varint of more than one byte comes to its value: groups of 7 bits, highest first; None for other fields."""
    if field.kind not in _VARINTS or len(field.raw) < 2:
        return None
    groups = " ".join(f"{byte & 0x7F:07b}" for byte in reversed(field.raw))
    number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(field.raw))
    zigzag = "" if field.kind == "uvarint" else f", zig-zag {field.value}"
    return f"{groups} = {number}{zigzag}"


def json_value(value: object) -> object:
    """A value for JSON: bytes as {"base64": …} where they aren't UTF-8."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}
