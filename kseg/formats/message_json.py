"""Kafka's JSON of a message, as its generated classes and Jackson write it."""

import math
from base64 import b64encode
from decimal import Decimal
from typing import Any

from kseg.formats.messages import Fields, default_of, is_tagged, known_version
from kseg.formats.schemas import Field, MessageSchema, version_range

JSON_WORDS = {None: "null", True: "true", False: "false"}
JSON_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord(character): f"\\{letter}" for character, letter in zip('"\\\b\t\n\f\r', '"\\btnfr', strict=True)
}


def json_value(message: MessageSchema, version: int, value: Fields) -> Fields:
    """Return a message as Kafka's JSON: without unknown tagged fields and tagged defaults, bytes in base64."""
    return structure_json(message.fields, known_version(message, version), value)


def structure_json(fields: tuple[Field, ...], version: int, value: Fields) -> Fields:
    """Return a structure as Kafka's JSON."""
    shown = {}
    for field in fields:
        if version in version_range(field.versions):
            default = default_of(field, version)
            inner = value.get(field.name, default)
            if inner != default or not is_tagged(field, version):
                shown[field.name] = field_json(field, version, inner)
    return shown


def field_json(field: Field, version: int, value: Any) -> Any:
    """Return a field, or an element of it, as Kafka's JSON."""
    if isinstance(value, list):
        return [field_json(field, version, element) for element in value]
    if isinstance(value, dict):
        return structure_json(field.fields, version, value)
    return b64encode(value).decode() if isinstance(value, bytes) else value


def json_text(value: Any) -> str:
    """Return JSON as Jackson writes it: no blanks, few escapes (with capital digits), Java's floating-point numbers."""
    match value:
        case str():
            return '"' + value.translate(JSON_ESCAPES) + '"'
        case None | bool():
            return JSON_WORDS[value]
        case dict():
            return "{" + ",".join(f"{json_text(name)}:{json_text(inner)}" for name, inner in value.items()) + "}"
        case list():
            return "[" + ",".join(map(json_text, value)) + "]"
        case float():
            text = double_text(value)
            return text if math.isfinite(value) else f'"{text}"'
        case _:
            return str(value)


def double_text(value: float) -> str:
    """Return a double as Java (19 and later) prints it. Source: Double.toString."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    shown = "".join(map(str, digits))
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{len(shown) - 1 + int(exponent)}"
